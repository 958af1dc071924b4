"""AB1xx, the rest of a reply's shape: JSON, the members of MCP, errors of REST and problem."""

from __future__ import annotations

from typing import Any

from ...core.json_value import is_integer
from ..examples import MCP_DATA, MCP_FAILURE, MCP_TEXT, text_result
from ..finding import ENVELOPE, MCP, PROBLEM, REST, Example, Fault, Faults, Scope, rule
from ..json_values import kind_name, parent_of
from ..reply_view import ReplyView

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
    scope=Scope(dialects=MCP + ENVELOPE + REST + PROBLEM, part="document"),
    hint="send JSON, and nothing before or after it",
    bad=Example(b"<html><h1>502 Bad Gateway</h1></html>"),
    good=Example(b'{"content":[{"type":"text","text":"5 \xc2\xb0C and cloudy in Oslo"}]}'),
)
def not_json(reply: ReplyView) -> Faults:
    """A client parses the reply first, and shows nothing of a reply that is not JSON."""
    # `validate` applies this rule itself: there is no decoded reply to check.
    return ()


@rule(
    "AB115",
    scope=Scope(dialects=MCP, plain_replies="none"),
    hint="write true or false, without quotes",
    bad=text_result("Location not found", isError="true"),
    good=MCP_FAILURE,
)
def is_error_not_boolean(reply: ReplyView) -> Faults:
    """A client takes any value other than true for a success, or refuses the reply."""
    flag = reply.json.get("isError")
    if flag is None or isinstance(flag, bool):
        return ()
    return [Fault("/isError", f"isError is {kind_name(flag)}, not true or false")]


@rule(
    "AB116",
    scope=Scope(dialects=MCP + ENVELOPE, part="document"),
    hint='an MCP reply is {"content": […]}',
    bad=Example("5 °C and cloudy in Oslo", "mcp"),
    good=MCP_TEXT,
)
def not_an_object(reply: ReplyView) -> Faults:
    """A bare string or list has no member that says what it is, or whether the call failed."""
    # `check` applies this rule itself: the other checks get only objects.
    return ()


@rule(
    "AB117",
    scope=Scope(dialects=MCP, needs="version"),
    hint='add "resultType": "complete"',
    bad=Example(MCP_TEXT, version="2026-07-28"),
    good=Example({**MCP_TEXT, "resultType": "complete"}, version="2026-07-28"),
    fix=lambda reply, _: reply.update(resultType="complete"),
)
def missing_result_type(reply: ReplyView) -> Faults:
    """From 2026-07-28 on a result may ask for input; clients refuse one without `resultType`."""
    version = reply.version
    if version is None or not version.result_type or "resultType" in reply.json:
        return ()
    return [Fault("", f"no resultType, which {version.name} requires")]


def _rename_member(reply: dict[str, Any], pointer: str) -> None:
    holder, name = parent_of(reply, pointer)
    holder.setdefault(_SPELLING[name.lower()], holder.pop(name))


@rule(
    "AB118",
    scope=Scope(dialects=MCP, plain_replies="none"),
    hint="MCP spells its members in camelCase; with pydantic: model_dump(by_alias=True)",
    bad=text_result("Location not found", is_error=True),
    good=MCP_FAILURE,
    fix=_rename_member,
)
def misspelt_member(reply: ReplyView) -> Faults:
    """A member under another name is ignored: an error becomes a success, data is lost."""
    faults = [] if _MISSPELT.isdisjoint(reply.json) else _misspelt(reply.json, "")
    for index, block in reply.blocks:
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
    scope=Scope(dialects=REST),
    hint='an error is {"error": "message"}; its code goes in the X-Error-Code header',
    bad=Example({"error": {"code": "NOT_FOUND", "message": "no such city"}}, "rest"),
    good=Example({"error": "no such city"}, "rest"),
)
def rest_error_not_text(reply: ReplyView) -> Faults:
    """Callers show the `error` of a REST reply as it is; an object is shown as nonsense."""
    if not reply.failed or isinstance(reply.json["error"], str):
        return ()
    return [Fault("/error", f"error is {kind_name(reply.json['error'])}, not text")]


@rule(
    "AB120",
    scope=Scope(dialects=PROBLEM),
    hint="RFC 9457: type, title, detail and instance are text, status is the HTTP status",
    bad=Example({"error": "no such city"}, "problem"),
    good=Example(
        {"type": "about:blank", "title": "Not Found", "status": 404, "detail": "no such city"},
        "problem",
    ),
)
def bad_problem(reply: ReplyView) -> Faults:
    """A client reads the members of RFC 9457, and ignores one of the wrong type."""
    members = reply.json
    if members.keys().isdisjoint(_PROBLEM_MEMBERS):
        return [Fault("", "the problem has none of type, title, status and detail")]
    return [
        Fault(f"/{name}", f"the problem's {name} is {kind_name(members[name])}")
        for name, wanted in _PROBLEM_MEMBERS.items()
        # In Python a bool is an int; in JSON true is not a number.
        if name in members
        and (not isinstance(members[name], wanted) or isinstance(members[name], bool))
    ]


@rule(
    "AB121",
    scope=Scope(dialects=MCP, part="rpc"),
    hint="an error has an integer code and a message",
    bad=Example({"error": "Unknown tool: ad"}, method="tools/call"),
    good=Example({"error": {"code": -32602, "message": "Unknown tool: ad"}}, method="tools/call"),
)
def bad_rpc_error(reply: ReplyView) -> Faults:
    """Clients decide by the code what to do; without a code they fail to read the error."""
    error = reply.json.get("error")
    if not isinstance(error, dict):
        return [Fault("/error", f"error is {kind_name(error)}, not an object")]
    faults = []
    code = error.get("code")
    if not is_integer(code):
        faults.append(Fault("/error", "error has no integer code"))
    if not isinstance(error.get("message"), str):
        faults.append(Fault("/error", "error has no message"))
    return faults


@rule(
    "AB122",
    scope=Scope(dialects=MCP, plain_replies="none"),
    hint="_meta is an object; structured data goes in structuredContent",
    bad={**MCP_DATA, "_meta": "cached"},
    good={**MCP_DATA, "_meta": {"cached": True}},
)
def bad_meta(reply: ReplyView) -> Faults:
    """Clients read `_meta` as an object, and refuse the reply if it is anything else."""
    meta = reply.json.get("_meta")
    if meta is None or isinstance(meta, dict):
        return ()
    return [Fault("/_meta", f"_meta is {kind_name(meta)}, not an object")]
