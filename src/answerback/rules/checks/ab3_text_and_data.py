"""AB3xx: whether text and data say the same, in JSON that everybody can read."""

from __future__ import annotations

import json
import math
from typing import Any

import msgspec

from ..examples import MCP_DATA, MCP_TEXT, said, shown
from ..finding import ENVELOPE, MCP, REST, About, Example, Fault, Faults, Scope, rule
from ..json_values import block_at, kind, parent_of
from ..reply_view import Subject, escape, visited
from .ab1_content import text_for

_OPTIONAL = {
    "mcp": ("structuredContent", "isError", "_meta", "resultType"),
    "envelope": ("data", "meta"),
}
_UNSET = msgspec.UNSET
RESULT_MEMBERS = frozenset({"content", "isError", "structuredContent", "_meta", "resultType"})
_LONGEST_LITERAL = 100_000


@rule(
    "AB301",
    About(
        scope=Scope(dialects=MCP, when="success"),
        hint="make the text of the same data, when all of it is known",
        bad=said('{"temperature":21,"humidity":65}', structuredContent={"temperature": 22.5}),
        good=MCP_DATA,
    ),
)
def text_contradicts_data(it: Subject) -> Faults:
    """Some hosts show the model the text, others the data; it has to learn the same from both."""
    if not it.unequal:
        return ()
    return [
        Fault(f"/content/{index}/text", f"the text and structuredContent differ in {names}")
        for index, _, value in it.unequal
        if (names := _contradictions(value, it.data))
    ]


@rule(
    "AB302",
    About(
        scope=Scope(dialects=MCP, when="success"),
        severity="warning",
        hint="put the same members in both",
        bad=said('{"temperature":22.5,"humidity":65}', structuredContent={"temperature": 22.5}),
        good=MCP_DATA,
    ),
)
def text_and_data_differ(it: Subject) -> Faults:
    """What only the text has, or only the data, is lost on the hosts that show the other."""
    faults = []
    for index, _, value in it.unequal:
        if isinstance(value, dict) and not _contradictions(value, it.data):
            names = ", ".join(sorted(value.keys() ^ it.data.keys())[:5])
            # JSON that has nothing in common with the data is about something else.
            if names and (not value or value.keys() & it.data.keys()):
                message = f"only the text or only structuredContent has {names}"
                faults.append(Fault(f"/content/{index}/text", message))
    return faults


def _contradictions(text: Any, data: dict[str, Any]) -> str:
    """The members of which text and data say different things."""
    if not isinstance(text, dict):
        return ""
    return ", ".join(sorted(name for name in text.keys() & data.keys() if text[name] != data[name]))


def _say_the_data(found: dict[str, Any], _: str) -> None:
    if "structuredContent" in found and not found.get("isError"):
        found["content"] = [text_for(found)]


@rule(
    "AB303",
    About(
        scope=Scope(dialects=MCP, when="success"),
        severity="warning",
        hint="add the data as JSON in a text block; for nothing to say, say that",
        bad={"content": [], "structuredContent": {"result": []}},
        good=said("[]", structuredContent={"result": []}),
        fix=_say_the_data,
    ),
)
def nothing_in_content(it: Subject) -> Faults:
    """Hosts that read only content show the model nothing, and some gateways drop the reply."""
    if it.found.get("content") != []:
        return ()
    return [Fault("/content", "Empty content array")]


@rule(
    "AB304",
    About(
        scope=Scope(dialects=MCP + ENVELOPE + REST),
        hint="JSON has no such number; say null, or leave the member out",
        bad=said('{"mean": NaN}'),
        good=said('{"mean": null}'),
    ),
)
def not_a_number(it: Subject) -> Faults:
    """`NaN` and `Infinity` are not JSON: a client's parser refuses the reply that has them."""
    faults = []
    if it.data is not _UNSET and it.has_nulls:
        where = "/structuredContent" if it.dialect == "mcp" else "/data"
        where = "" if it.dialect == "rest" else where
        faults = [Fault(at, f"{name} is not JSON") for at, name in _not_finite(it.data, where)]
    if len(it.parsed) < len(it.texts) and ("NaN" in it.raw or "Infinity" in it.raw):
        faults += [
            Fault(f"/content/{index}/text", f"the text is JSON but for {name}")
            for index, text in it.texts
            if text.lstrip()[:1] in ("{", "[") and (name := _constant_in(text))
        ]
    return faults


def _not_finite(value: Any, pointer: str) -> list[tuple[str, str]]:
    return [
        (at, json.dumps(each))
        for at, each in visited(value, pointer)
        if isinstance(each, float) and not math.isfinite(each)
    ]


def _constant_in(text: str) -> str:
    """The first of NaN and its like in what is otherwise JSON."""
    names: list[str] = []
    try:
        json.loads(text, parse_constant=names.append)
    except (ValueError, RecursionError):
        return ""
    return names[0] if names else ""


def _drop(found: dict[str, Any], pointer: str) -> None:
    holder, name = parent_of(found, pointer)
    holder.pop(name, None)


@rule(
    "AB305",
    About(
        scope=Scope(dialects=MCP + ENVELOPE),
        hint="leave out a member that has no value",
        bad=said("5 °C and cloudy in Oslo", structuredContent=None, _meta=None),
        good=MCP_TEXT,
        fix=_drop,
    ),
)
def explicit_null(it: Subject) -> Faults:
    """An optional member may be left out, not be null: strict clients refuse the reply."""
    if not it.has_nulls and not it.media:
        return ()
    found, faults = it.found, []
    if None in found.values():
        optional = _OPTIONAL[it.dialect]
        faults = [Fault(f"/{name}", f"{name} is null") for name in optional if _null(found, name)]
    for index, block in it.blocks:
        if None in block.values():
            at = f"/content/{index}"
            faults += [
                Fault(f"{at}/{escape(name)}", f"{name} is null")
                for name, value in block.items()
                if value is None and name not in ("text", "data", "type")
            ]
        resource = block.get("resource")
        if isinstance(resource, dict) and None in resource.values():
            at = f"/content/{index}/resource"
            faults += [Fault(f"{at}/{name}", f"{name} is null") for name in _nulls(resource)]
    return faults


def _null(found: dict[str, Any], name: str) -> bool:
    return name in found and found[name] is None


def _nulls(resource: dict[str, Any]) -> list[str]:
    return [escape(name) for name, value in resource.items() if value is None and name != "uri"]


@rule(
    "AB306",
    About(
        scope=Scope(dialects=MCP),
        severity="warning",
        hint="send the whole list as one block of JSON",
        bad=shown(
            {"type": "text", "text": '{"id":1}'},
            {"type": "text", "text": '{"id":2}'},
            structuredContent={"result": [{"id": 1}, {"id": 2}]},
        ),
        good=said('[{"id":1},{"id":2}]', structuredContent={"result": [{"id": 1}, {"id": 2}]}),
    ),
)
def one_block_per_item(it: Subject) -> Faults:
    """A list in pieces reads as several answers, one item as no list, and none as nothing."""
    parts = it.parsed
    if len(parts) < 2 or len(parts) != len(it.blocks):
        return ()
    values = [value for _, _, value in parts]
    if values == _listed(it.data) or (it.data is _UNSET and _alike(values)):
        return [Fault("/content", f"a list of {len(parts)} in {len(parts)} blocks")]
    return ()


def _listed(data: Any) -> Any:
    return next(iter(data.values())) if isinstance(data, dict) and len(data) == 1 else None


def _alike(values: list[Any]) -> bool:
    """Whether they are records of one table: three or more, with the same names."""
    names = [frozenset(value) if isinstance(value, dict) else frozenset() for value in values]
    return len(values) > 2 and bool(names[0]) and len(set(names)) == 1


@rule(
    "AB307",
    About(
        scope=Scope(dialects=MCP),
        hint="hand on the result itself, not its JSON in a text",
        bad=said('{"content":[{"type":"text","text":"5 °C"}],"isError":false}'),
        good=said("5 °C"),
    ),
)
def reply_in_a_text(it: Subject) -> Faults:
    """A middle box that flattens a result loses its data, its pictures and whether it failed."""
    for index, _, value in it.parsed:
        if isinstance(value, dict) and "content" in value and _is_result(value):
            return [Fault(f"/content/{index}/text", "the text is a whole tool result in JSON")]
    return ()


def _is_result(value: dict[str, Any]) -> bool:
    blocks = value.get("content")
    return (
        isinstance(blocks, list)
        and bool(blocks)
        and value.keys() <= RESULT_MEMBERS
        and all(isinstance(block, dict) and block.get("type") for block in blocks)
    )


@rule(
    "AB308",
    About(
        scope=Scope(dialects=MCP + ENVELOPE),
        severity="warning",
        hint="encode it once",
        bad=said('"{\\"temperature\\":22.5}"'),
        good=said('{"temperature":22.5}'),
    ),
)
def json_encoded_twice(it: Subject) -> Faults:
    """What was encoded twice has to be decoded twice, and no client does."""
    for index, text in it.texts:
        if text.startswith(('"{', '"[')) and text.rstrip().endswith('"') and _is_twice(text):
            return [Fault(f"/content/{index}/text", "the text is JSON in a JSON string")]
    return ()


def _is_twice(text: str) -> bool:
    try:
        inner = msgspec.json.decode(msgspec.json.decode(text, type=str))
    except ValueError:
        return False
    return isinstance(inner, dict | list)


def _as_json(found: dict[str, Any], pointer: str) -> None:
    block = block_at(found, pointer)
    block["text"] = msgspec.json.encode(_literal(block["text"])).decode()


@rule(
    "AB309",
    About(
        scope=Scope(dialects=MCP + ENVELOPE, part="text"),
        severity="warning",
        hint="write it with json.dumps, not with str",
        bad=said("{'temperature': 22.5, 'windy': None}"),
        good=said('{"temperature":22.5,"windy":null}'),
        fix=_as_json,
    ),
)
def python_in_text(it: Subject, text: str, index: int) -> Faults:
    """Python's way of writing a value is not JSON: no client can parse it, whatever it is in."""
    if not text.startswith(("{'", "['", "[{'")) or _literal(text) is None:
        return ()
    return [Fault(f"/content/{index}/text", "the text is a value as Python writes it, not JSON")]


def _literal(text: str) -> Any:
    """The object or list that Python writes so, if JSON can say it too."""
    import ast

    if len(text) > _LONGEST_LITERAL:
        return None
    try:
        value = ast.literal_eval(text.rstrip())
        msgspec.json.encode(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


@rule(
    "AB310",
    About(
        scope=Scope(dialects=MCP),
        hint='wrap it: {"result": …}',
        bad=Example(said("[1,2]", structuredContent=[1, 2]), version="2025-11-25"),
        good=Example(said("[1,2]", structuredContent={"result": [1, 2]}), version="2025-11-25"),
    ),
)
def data_not_object_in_version(it: Subject) -> Faults:
    """Before 2026-07-28 structuredContent is an object; clients refuse lists and single values."""
    data = it.data
    if data is _UNSET or data is None or isinstance(data, dict):
        return ()
    version = it.version
    stateless = version.stateless if version is not None else "resultType" in it.found
    if stateless or (version is not None and not version.structured):
        return ()
    return [Fault("/structuredContent", f"structuredContent is {kind(data)}, not an object")]


@rule(
    "AB311",
    About(
        scope=Scope(dialects=MCP, needs="version"),
        hint="send the JSON as text only to a client of that version",
        bad=Example(MCP_DATA, version="2025-03-26"),
        good=Example(MCP_DATA, version="2025-06-18"),
    ),
)
def data_too_new(it: Subject) -> Faults:
    """A client of a version without structuredContent fails the call, or shows it to nobody."""
    version = it.version
    if version is None or version.structured or it.data is _UNSET:
        return ()
    message = f"structuredContent is not in {version.name}; it came with 2025-06-18"
    return [Fault("/structuredContent", message)]
