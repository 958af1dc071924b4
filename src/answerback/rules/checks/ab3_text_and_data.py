"""AB3xx: text and data agree, and both are valid JSON."""

from __future__ import annotations

import ast
import json
import math
from typing import Any

import msgspec

from ...core.reply import RESULT_MEMBERS
from ...dialects.hosts import HOSTS
from ...dialects.seen_reply import lost_blocks_and_data
from ..finding import (
    ENVELOPE,
    MCP,
    MCP_DATA,
    MCP_FAILURE,
    MCP_TEXT,
    REST,
    WEATHER_SCHEMA,
    Example,
    Fault,
    Faults,
    Scope,
    blocks_result,
    rule,
    text_result,
)
from ..reply_view import (
    ReplyView,
    block_at,
    kind_name,
    named_members,
    parent_of,
    pointer_token,
    walk_values,
)
from .ab1_forms import text_for

_OPTIONAL_MEMBERS = {
    "mcp": ("structuredContent", "isError", "_meta", "resultType"),
    "envelope": ("data", "meta"),
}
_DATA_POINTERS = {"mcp": "/structuredContent", "envelope": "/data", "rest": ""}
_DATA_ONLY = [name for name, host in HOSTS.items() if host.half == "structuredContent"]
_CONTENT_ONLY = [name for name, host in HOSTS.items() if host.half == "content"]
_DATA_TITLES = " and ".join(HOSTS[name].title for name in _DATA_ONLY) + " show only the data"
_CONTENT_TITLES = " and ".join(HOSTS[name].title for name in _CONTENT_ONLY) + " show only content"
_UNSET = msgspec.UNSET
_MAX_LITERAL = 100_000


@rule(
    "AB301",
    scope=Scope(dialects=MCP, when="success", plain_replies="none"),
    hint="make the text from the finished data",
    bad=text_result('{"temperature":21,"humidity":65}', structuredContent={"temperature": 22.5}),
    good=MCP_DATA,
)
def text_contradicts_data(reply: ReplyView) -> Faults:
    """Some hosts show the model the text, others the data; both must say the same thing."""
    if not reply.texts_unlike_data:
        return ()
    return [
        Fault(f"/content/{index}/text", f"the text and structuredContent differ in {names}")
        for index, _, value in reply.texts_unlike_data
        if (names := _contradictions(value, reply.data))
    ]


@rule(
    "AB302",
    scope=Scope(dialects=MCP, when="success", plain_replies="none"),
    severity="warning",
    hint="put the same members in both",
    bad=text_result('{"temperature":22.5,"humidity":65}', structuredContent={"temperature": 22.5}),
    good=MCP_DATA,
)
def text_and_data_differ(reply: ReplyView) -> Faults:
    """A member that is only in the text or the data is lost in hosts that show only the other."""
    faults = []
    for index, _, value in reply.texts_unlike_data:
        if isinstance(value, dict) and not _contradictions(value, reply.data):
            names = ", ".join(sorted(value.keys() ^ reply.data.keys())[:5])
            # JSON that has nothing in common with the data has a different subject.
            if names and (not value or value.keys() & reply.data.keys()):
                message = f"only the text or only structuredContent has {names}"
                faults.append(Fault(f"/content/{index}/text", message))
    return faults


def _contradictions(text: Any, data: dict[str, Any]) -> str:
    if not isinstance(text, dict):
        return ""
    return ", ".join(sorted(name for name in text.keys() & data.keys() if text[name] != data[name]))


def _add_data_text(reply: dict[str, Any], _: str) -> None:
    if "structuredContent" in reply and not reply.get("isError"):
        reply["content"] = [text_for(reply)]


@rule(
    "AB303",
    scope=Scope(dialects=MCP, when="success", plain_replies="none"),
    severity="warning",
    hint="add the data as JSON in a text block, even if the data is empty",
    bad={"content": [], "structuredContent": {"result": []}},
    good=text_result("[]", structuredContent={"result": []}),
    fix=_add_data_text,
)
def nothing_in_content(reply: ReplyView) -> Faults:
    """Hosts that read only content show the model nothing, and some gateways drop the reply."""
    return [Fault("/content", "Empty content array")] if reply.json.get("content") == [] else ()


@rule(
    "AB304",
    scope=Scope(dialects=MCP + ENVELOPE + REST, plain_replies="none"),
    hint="JSON has no such number; use null, or leave the member out",
    bad=Example(
        b'{"content":[{"type":"text","text":"no mean"}],"structuredContent":{"mean":NaN}}', "mcp"
    ),
    good=text_result('{"mean":null}', structuredContent={"mean": None}),
)
def not_a_number(reply: ReplyView) -> Faults:
    """`NaN` and `Infinity` are not JSON, so a client's parser rejects replies that contain them."""
    if reply.data is _UNSET or not reply.may_have_nulls:
        return ()
    return [
        Fault(at, f"{json.dumps(each)} is not JSON")
        for at, each in walk_values(reply.data, _DATA_POINTERS[reply.dialect])
        if isinstance(each, float) and not math.isfinite(each)
    ]


@rule(
    "AB312",
    scope=Scope(dialects=MCP + ENVELOPE, plain_replies="json"),
    severity="warning",
    hint="use null, or leave the member out",
    bad=text_result('{"mean": NaN}'),
    good=text_result('{"mean": null}'),
)
def not_a_number_in_text(reply: ReplyView) -> Faults:
    """A program that reads the text as JSON rejects it, because JSON has no such number."""
    if len(reply.json_texts) == len(reply.texts) or (
        "NaN" not in reply.json_text and "Infinity" not in reply.json_text
    ):
        return ()
    return [
        Fault(f"/content/{index}/text", f"the text would be JSON without {name}")
        for index, text in reply.texts
        if text.lstrip()[:1] in ("{", "[") and (name := _constant_in(text))
    ]


def _constant_in(text: str) -> str:
    """Return the first NaN, Infinity or -Infinity in text that is otherwise JSON."""
    names: list[str] = []
    try:
        json.loads(text, parse_constant=names.append)
    except (ValueError, RecursionError):
        return ""
    return names[0] if names else ""


def _drop_member(reply: dict[str, Any], pointer: str) -> None:
    holder, name = parent_of(reply, pointer)
    holder.pop(name, None)


@rule(
    "AB305",
    scope=Scope(dialects=MCP + ENVELOPE, plain_replies="none"),
    hint="leave out a member that has no value",
    bad=text_result("5 °C and cloudy in Oslo", structuredContent=None, _meta=None),
    good=MCP_TEXT,
    fix=_drop_member,
)
def explicit_null(reply: ReplyView) -> Faults:
    """An optional member may be left out, but must not be null: strict clients reject the reply."""
    if not reply.may_have_nulls and not reply.media:
        return ()
    names = [name for name in _OPTIONAL_MEMBERS[reply.dialect] if name in reply.json]
    faults = _null_faults({name: reply.json[name] for name in names}, "")
    for index, block in reply.blocks:
        faults += _null_faults(block, f"/content/{index}", but=("text", "data", "type"))
        if isinstance(resource := block.get("resource"), dict):
            faults += _null_faults(resource, f"/content/{index}/resource", but=("uri",))
    return faults


def _null_faults(members: dict[str, Any], at: str, but: tuple[str, ...] = ()) -> list[Fault]:
    return [
        Fault(f"{at}/{pointer_token(name)}", f"{name} is null")
        for name, value in members.items()
        if value is None and name not in but
    ]


@rule(
    "AB306",
    scope=Scope(dialects=MCP, plain_replies="none"),
    severity="warning",
    hint="send the whole list as one block of JSON",
    bad=blocks_result(
        {"type": "text", "text": '{"id":1}'},
        {"type": "text", "text": '{"id":2}'},
        structuredContent={"result": [{"id": 1}, {"id": 2}]},
    ),
    good=text_result('[{"id":1},{"id":2}]', structuredContent={"result": [{"id": 1}, {"id": 2}]}),
)
def one_block_per_item(reply: ReplyView) -> Faults:
    """A list in several blocks looks like several answers, a list of one item does not look like a
    list, and an empty list disappears."""
    values = [value for _, _, value in reply.json_texts]
    if len(values) < 2 or len(values) != len(reply.blocks):
        return ()
    if values == _only_member(reply.data) or (reply.data is _UNSET and _is_table(values)):
        return [Fault("/content", f"a list of {len(values)} items in {len(values)} blocks")]
    return ()


def _only_member(data: Any) -> Any:
    return next(iter(data.values())) if isinstance(data, dict) and len(data) == 1 else None


def _is_table(values: list[Any]) -> bool:
    names = [frozenset(value) if isinstance(value, dict) else frozenset() for value in values]
    return len(values) > 2 and bool(names[0]) and len(set(names)) == 1


@rule(
    "AB307",
    scope=Scope(dialects=MCP, plain_replies="json"),
    hint="send the result itself, not its JSON as text",
    bad=text_result('{"content":[{"type":"text","text":"5 °C"}],"isError":false}'),
    good=text_result("5 °C"),
)
def reply_in_a_text(reply: ReplyView) -> Faults:
    """A proxy that turns a result into text loses its data, its images and its `isError`."""
    schema = reply.context.schema
    for index, _, value in reply.json_texts:
        blocks = value.get("content") if isinstance(value, dict) else None
        if not isinstance(blocks, list) or not blocks or not value.keys() <= RESULT_MEMBERS:
            continue
        if not all(isinstance(block, dict) and block.get("type") for block in blocks):
            continue
        # Before 2025-06-18, data could only be sent as text.
        is_data = reply.data is _UNSET or value == reply.data
        if is_data and schema is not None and "content" in named_members(schema, schema):
            continue
        return [Fault(f"/content/{index}/text", "the text is a complete tool result in JSON")]
    return ()


@rule(
    "AB308",
    scope=Scope(dialects=MCP + ENVELOPE, plain_replies="json"),
    severity="warning",
    hint="encode it once",
    bad=text_result('"{\\"temperature\\":22.5}"'),
    good=text_result('{"temperature":22.5}'),
)
def json_encoded_twice(reply: ReplyView) -> Faults:
    """Text that was encoded twice has to be decoded twice, and no client does that."""
    for index, text in reply.texts:
        if not text.startswith(('"{', '"[')) or not text.rstrip().endswith('"'):
            continue
        try:
            inner = msgspec.json.decode(msgspec.json.decode(text, type=str))
        except ValueError:
            continue
        if isinstance(inner, dict | list):
            return [Fault(f"/content/{index}/text", "the text is JSON in a JSON string")]
    return ()


def _rewrite_as_json(reply: dict[str, Any], pointer: str) -> None:
    block = block_at(reply, pointer)
    block["text"] = msgspec.json.encode(_python_literal(block["text"])).decode()


@rule(
    "AB309",
    scope=Scope(dialects=MCP + ENVELOPE, part="text"),
    severity="warning",
    hint="write it with json.dumps, not str",
    bad=text_result("{'temperature': 22.5, 'windy': None}"),
    good=text_result('{"temperature":22.5,"windy":null}'),
    fix=_rewrite_as_json,
)
def python_in_text(reply: ReplyView, text: str, index: int) -> Faults:
    """The `str` of a Python value is not JSON, and no client can parse it."""
    if not text.startswith(("{'", "['", "[{'")) or _python_literal(text) is None:
        return ()
    return [Fault(f"/content/{index}/text", "the text is the repr of a Python value, not JSON")]


def _python_literal(text: str) -> Any:
    """Return the dict or list whose `repr` is *text*, if it can be encoded as JSON; else None."""
    if len(text) > _MAX_LITERAL:
        return None
    try:
        value = ast.literal_eval(text.rstrip())
        msgspec.json.encode(value)
    except (ValueError, SyntaxError, TypeError, MemoryError, RecursionError):
        return None
    return value if isinstance(value, dict | list) else None


@rule(
    "AB310",
    scope=Scope(dialects=MCP, plain_replies="none"),
    hint='wrap it: {"result": …}',
    bad=Example(text_result("[1,2]", structuredContent=[1, 2]), version="2025-11-25"),
    good=Example(text_result("[1,2]", structuredContent={"result": [1, 2]}), version="2025-11-25"),
)
def data_not_object_in_version(reply: ReplyView) -> Faults:
    """Before 2026-07-28, structuredContent must be an object; clients reject lists and scalars."""
    data = reply.data
    if data is _UNSET or data is None or isinstance(data, dict):
        return ()
    if reply.is_stateless or (reply.version is not None and not reply.version.structured):
        return ()
    return [Fault("/structuredContent", f"structuredContent is {kind_name(data)}, not an object")]


@rule(
    "AB311",
    scope=Scope(dialects=MCP, needs="version"),
    hint="send the JSON only as text to clients that use that version",
    bad=Example(MCP_DATA, version="2025-03-26"),
    good=Example(MCP_DATA, version="2025-06-18"),
)
def data_too_new(reply: ReplyView) -> Faults:
    """A client whose version has no structuredContent rejects the reply or ignores the data."""
    version = reply.version
    if version is None or version.structured or reply.data is _UNSET:
        return ()
    message = f"structuredContent is not in {version.name}; it was added in 2025-06-18"
    return [Fault("/structuredContent", message)]


@rule(
    "AB313",
    scope=Scope(dialects=MCP, when="success", plain_replies="none"),
    severity="warning",
    hint="make each half complete: repeat the text in a member of the data, such as message, with "
    "images by name or link, and repeat the data as JSON in a text block",
    bad=text_result("Found 1 account: savings", structuredContent={"total": 12.5}),
    good=blocks_result(
        {"type": "text", "text": "Found 1 account: savings"},
        {"type": "text", "text": '{"total":12.5}'},
        structuredContent={"total": 12.5, "message": "Found 1 account: savings"},
        _meta={"answerback/added": "message"},
    ),
)
def lost_in_hosts(reply: ReplyView) -> Faults:
    """Some hosts show the model only the data, others only the content, so anything missing from
    that half is lost."""
    if reply.context.unsent or not isinstance(reply.data, dict) or not reply.blocks:
        return ()
    # The only text block is the data, or AB301 and AB302 report how it differs.
    has_one_text = len(reply.blocks) == 1 and bool(reply.texts)
    if has_one_text and (reply.json_texts or reply.texts[0][1] == _only_member(reply.data)):
        return ()
    # Hosts that show the same half lose the same parts. It is not the reply's fault if a host
    # shows no audio, for example.
    lost = [each for each in lost_blocks_and_data(reply.json, _DATA_ONLY[0]) if each.part != "data"]
    # In most replies, a text block is the data's JSON.
    copies = (reply.data, _only_member(reply.data))
    has_data_as_text = any(value in copies for _, _, value in reply.json_texts)
    unseen = [] if has_data_as_text else lost_blocks_and_data(reply.json, _CONTENT_ONLY[0])
    return [
        *(Fault(each.pointer, f"{_DATA_TITLES}, which lacks this {each.part}") for each in lost),
        *(
            Fault(each.pointer, f"{_CONTENT_TITLES}, which lacks the data")
            for each in unseen
            if each.part == "data"
        ),
    ]


_WEATHER_TOOL: dict[str, Any] = {
    "name": "weather",
    "inputSchema": {"type": "object", "properties": {"city": {"type": "string"}}},
}


@rule(
    "AB320",
    scope=Scope(dialects=MCP + ENVELOPE + REST, when="success", needs="schema"),
    hint="return what the schema says, or change the schema",
    bad=Example(
        text_result('{"temperature":"warm"}', structuredContent={"temperature": "warm"}),
        schema=WEATHER_SCHEMA,
    ),
    good=Example(MCP_DATA, schema=WEATHER_SCHEMA),
)
def output_schema_violated(reply: ReplyView) -> Faults:
    """Clients check data against the schema, and discard the whole reply if it does not match."""
    return _schema_faults(reply)


def _schema_faults(reply: ReplyView) -> Faults:
    schema = reply.context.schema
    if schema is None or reply.data is _UNSET:
        return ()
    from ...types.schema_check import schema_check

    return [
        Fault(_DATA_POINTERS[reply.dialect] + pointer, message)
        for pointer, message in schema_check(schema)(reply.sent_data)
    ]


@rule(
    "AB321",
    scope=Scope(dialects=MCP, when="success", needs="schema"),
    hint="send the data as structuredContent, or set isError: true",
    bad=Example(text_result("22.5 °C, 65 %"), schema=WEATHER_SCHEMA),
    good=Example(MCP_DATA, schema=WEATHER_SCHEMA),
)
def data_missing(reply: ReplyView) -> Faults:
    """A tool with an output schema has to send data; clients raise an error if there is none."""
    if reply.context.schema is None or reply.data is not _UNSET:
        return ()
    if reply.json.get("resultType", "complete") != "complete":
        return ()
    if reply.version is not None and not reply.version.structured:
        return ()
    return [Fault("", "the tool has an output schema, but the reply has no structuredContent")]


@rule(
    "AB322",
    scope=Scope(dialects=MCP, when="failure", needs="schema"),
    hint="leave structuredContent out of an error; details can go in _meta",
    bad=Example(
        text_result("no such city", isError=True, structuredContent={"error": "no such city"}),
        schema=WEATHER_SCHEMA,
    ),
    good=Example(MCP_FAILURE, schema=WEATHER_SCHEMA),
)
def error_breaks_schema(reply: ReplyView) -> Faults:
    """Clients check the data in errors too, and then report the schema instead of the error."""
    return _schema_faults(reply)[:1]


@rule(
    "AB323",
    scope=Scope(dialects=MCP, when="success", needs="schema"),
    severity="note",
    hint="declare an outputSchema",
    bad=Example(MCP_DATA, listed=True),
    good=Example(MCP_DATA, listed=True, schema=WEATHER_SCHEMA),
)
def output_schema_missing(reply: ReplyView) -> Faults:
    """Without a schema, clients cannot check the data or offer its members by name."""
    if not reply.context.listed or reply.context.schema is not None:
        return ()
    if not isinstance(reply.data, dict):
        return ()
    return [Fault("/structuredContent", "the tool sends data but declares no output schema")]


@rule(
    "AB330",
    scope=Scope(dialects=MCP, part="tool"),
    hint='for no arguments: {"type": "object", "additionalProperties": false}',
    bad={"tools": [{"name": "weather", "description": "Tell the weather."}]},
    good={"tools": [_WEATHER_TOOL]},
)
def input_schema_missing(reply: ReplyView, tool: dict[str, Any], index: int) -> Faults:
    """Every tool needs an inputSchema whose root is an object; clients drop tools without one."""
    schema = tool.get("inputSchema")
    if isinstance(schema, dict) and schema.get("type") == "object":
        return ()
    name = tool.get("name", index)
    if isinstance(schema, dict):
        message = f"the inputSchema of {name} has no type: object at its root"
        return [Fault(f"/tools/{index}/inputSchema", message)]
    return [Fault(f"/tools/{index}", f"{name} has no inputSchema")]


@rule(
    "AB331",
    scope=Scope(dialects=MCP, part="tool"),
    hint='wrap both the schema and the data: {"result": …}',
    bad=Example(
        {"tools": [{**_WEATHER_TOOL, "outputSchema": {"type": "array"}}]},
        version="2025-11-25",
    ),
    good=Example(
        {"tools": [{**_WEATHER_TOOL, "outputSchema": WEATHER_SCHEMA}]}, version="2025-11-25"
    ),
)
def output_schema_not_an_object(reply: ReplyView, tool: dict[str, Any], index: int) -> Faults:
    """Before 2026-07-28, clients reject the list unless each outputSchema describes an object."""
    schema = tool.get("outputSchema")
    if schema is None or reply.is_stateless:
        return ()
    if isinstance(schema, dict) and schema.get("type") == "object":
        return ()
    message = f"the outputSchema of {tool.get('name', index)} has no type: object at its root"
    return [Fault(f"/tools/{index}/outputSchema", message)]


@rule(
    "AB332",
    scope=Scope(dialects=MCP, part="tool"),
    severity="warning",
    hint="leave it out for clients that use that version",
    bad=Example(
        {"tools": [{**_WEATHER_TOOL, "outputSchema": WEATHER_SCHEMA}]}, version="2024-11-05"
    ),
    good=Example({"tools": [_WEATHER_TOOL]}, version="2024-11-05"),
)
def output_schema_too_new(reply: ReplyView, tool: dict[str, Any], index: int) -> Faults:
    """A client whose version has no output schemas may fail calls to tools that have one."""
    if reply.version is None or reply.version.structured or "outputSchema" not in tool:
        return ()
    name, version = tool.get("name", index), reply.version.name
    message = f"{name} has an outputSchema, which is not in {version}"
    return [Fault(f"/tools/{index}/outputSchema", message)]
