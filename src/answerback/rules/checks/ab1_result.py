"""AB1xx, the rest of a reply's shape: MCP's own members, REST's and problem's errors."""

from __future__ import annotations

from typing import Any

from ..examples import MCP_DATA, MCP_FAILURE, MCP_TEXT, said
from ..finding import ENVELOPE, MCP, PROBLEM, REST, About, Example, Fault, Faults, Scope, rule
from ..json_values import kind, parent_of
from ..reply_view import Subject

_SPELLING = {
    "is_error": "isError",
    "iserror": "isError",
    "structured_content": "structuredContent",
    "structuredcontent": "structuredContent",
    "mime_type": "mimeType",
    "mimetype": "mimeType",
}
_MISSPELT = frozenset(_SPELLING)
_PROBLEM_MEMBERS = {"type": str, "title": str, "status": int, "detail": str, "instance": str}


@rule(
    "AB100",
    About(
        scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM),
        hint="send JSON, and nothing before or after it",
        bad=Example(b"<html><h1>502 Bad Gateway</h1></html>"),
        good=Example(b'{"content":[{"type":"text","text":"5 \xc2\xb0C and cloudy in Oslo"}]}'),
    ),
)
def not_json(it: Subject) -> Faults:
    """A client parses before it does anything else; of what is no JSON it shows nothing."""
    # Put to use by `validate`, since there is no subject to check.
    return ()


@rule(
    "AB115",
    About(
        scope=Scope(dialects=MCP),
        hint="write true or false, without quotes",
        bad=said("Location not found", isError="true"),
        good=MCP_FAILURE,
    ),
)
def is_error_not_boolean(it: Subject) -> Faults:
    """A client that compares with true takes anything else for a success, or refuses it."""
    flag = it.found.get("isError")
    if flag is None or isinstance(flag, bool):
        return ()
    return [Fault("/isError", f"isError is {kind(flag)}, not true or false")]


def _complete(found: dict[str, Any], _: str) -> None:
    found["resultType"] = "complete"


@rule(
    "AB116",
    About(
        scope=Scope(dialects=MCP + ENVELOPE),
        hint='an MCP reply is {"content": […]}',
        bad=Example("5 °C and cloudy in Oslo", "mcp"),
        good=MCP_TEXT,
    ),
)
def not_an_object(it: Subject) -> Faults:
    """A bare string or list has nowhere to say what it is, nor whether the call failed."""
    # Put to use by `check`, which hands only objects on.
    return ()


@rule(
    "AB117",
    About(
        scope=Scope(dialects=MCP, needs="version"),
        hint='add "resultType": "complete"',
        bad=Example(MCP_TEXT, version="2026-07-28"),
        good=Example({**MCP_TEXT, "resultType": "complete"}, version="2026-07-28"),
        fix=_complete,
    ),
)
def missing_result_type(it: Subject) -> Faults:
    """From 2026-07-28 on a result may be a question back; clients refuse one that does not say."""
    version = it.version
    if version is None or not version.result_type or "resultType" in it.found:
        return ()
    return [Fault("", f"no resultType, which {version.name} asks for")]


def _respell(found: dict[str, Any], pointer: str) -> None:
    holder, name = parent_of(found, pointer)
    holder.setdefault(_SPELLING[name.lower()], holder.pop(name))


@rule(
    "AB118",
    About(
        scope=Scope(dialects=MCP),
        hint="MCP spells its members in camelCase; with pydantic: model_dump(by_alias=True)",
        bad=said("Location not found", is_error=True),
        good=MCP_FAILURE,
        fix=_respell,
    ),
)
def misspelt_member(it: Subject) -> Faults:
    """A member under another name is ignored: an error becomes a success, data is lost."""
    faults = [] if _MISSPELT.isdisjoint(it.found) else _misspelt(it.found, "")
    for index, block in it.blocks:
        if not _MISSPELT.isdisjoint(block):
            faults += _misspelt(block, f"/content/{index}")
    return faults


def _misspelt(holder: dict[str, Any], pointer: str) -> list[Fault]:
    return [
        Fault(f"{pointer}/{name}", f"{name} should be {right}")
        for name, right in _SPELLING.items()
        if holder.get(name) is not None and right not in holder
    ]


@rule(
    "AB119",
    About(
        scope=Scope(dialects=REST),
        hint='an error is {"error": "message"}; its code goes in the X-Error-Code header',
        bad=Example({"error": {"code": "NOT_FOUND", "message": "no such city"}}, "rest"),
        good=Example({"error": "no such city"}, "rest"),
    ),
)
def rest_error_not_text(it: Subject) -> Faults:
    """Every caller of a plain HTTP reply shows `error` as it is; an object shows as nonsense."""
    if it.found.keys() != {"error"} or isinstance(it.found["error"], str):
        return ()
    return [Fault("/error", f"error is {kind(it.found['error'])}, not text")]


@rule(
    "AB120",
    About(
        scope=Scope(dialects=PROBLEM),
        hint="RFC 9457: type, title, detail and instance are text, status is the HTTP status",
        bad=Example({"error": "no such city"}, "problem"),
        good=Example(
            {"type": "about:blank", "title": "Not Found", "status": 404, "detail": "no such city"},
            "problem",
        ),
    ),
)
def bad_problem(it: Subject) -> Faults:
    """A client that asked for a problem reads the members of RFC 9457, and ignores a wrong one."""
    found = it.found
    if found.keys().isdisjoint(_PROBLEM_MEMBERS):
        return [Fault("", "the problem has none of type, title, status and detail")]
    return [
        Fault(f"/{name}", f"the problem's {name} is {kind(found[name])}")
        for name, wanted in _PROBLEM_MEMBERS.items()
        if name in found and not _is_a(wanted, found[name])
    ]


def _is_a(wanted: type, value: Any) -> bool:
    # For Python true is a number; for JSON it is not.
    return isinstance(value, wanted) and not isinstance(value, bool)


@rule(
    "AB121",
    About(
        scope=Scope(dialects=MCP, part="rpc"),
        hint="an error has an integer code and a message",
        bad=Example({"error": "Unknown tool: ad"}, method="tools/call"),
        good=Example(
            {"error": {"code": -32602, "message": "Unknown tool: ad"}}, method="tools/call"
        ),
    ),
)
def bad_rpc_error(it: Subject) -> Faults:
    """Clients tell what to do by the number; without one they fail on the error itself."""
    error = it.found.get("error")
    if not isinstance(error, dict):
        return [Fault("/error", f"error is {kind(error)}, not an object")]
    faults = []
    code = error.get("code")
    if not isinstance(code, int) or isinstance(code, bool):
        faults.append(Fault("/error", "error has no integer code"))
    if not isinstance(error.get("message"), str):
        faults.append(Fault("/error", "error has no message"))
    return faults


@rule(
    "AB122",
    About(
        scope=Scope(dialects=MCP),
        hint="_meta is an object; structured data goes in structuredContent",
        bad={**MCP_DATA, "_meta": "cached"},
        good={**MCP_DATA, "_meta": {"cached": True}},
    ),
)
def bad_meta(it: Subject) -> Faults:
    """Clients read `_meta` as an object and refuse the reply when it is anything else."""
    meta = it.found.get("_meta")
    if meta is None or isinstance(meta, dict):
        return ()
    return [Fault("/_meta", f"_meta is {kind(meta)}, not an object")]
