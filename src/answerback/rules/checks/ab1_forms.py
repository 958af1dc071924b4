"""Rules AB1xx: the form of content, envelopes and MCP results."""

from __future__ import annotations

import re
from datetime import UTC, datetime
from typing import Any

import msgspec

from ...core.json_value import is_integer
from ...core.versions import VERSIONS
from ..finding import (
    ENVELOPE,
    ENVELOPE_FAILURE,
    ENVELOPE_SUCCESS,
    MCP,
    MCP_DATA,
    MCP_FAILURE,
    MCP_IMAGE,
    MCP_TEXT,
    PROBLEM,
    REST,
    Example,
    Fault,
    Faults,
    Scope,
    blocks_result,
    rule,
    text_result,
)
from ..reply_view import ReplyView, block_at, kind_name, parent_of, quoted

_TEXT = (str,)
_NUMBER = (int, float)

# For each block type: the required members and the optional ones, with their Python types.
_MEMBERS: dict[str, dict[str, tuple[dict[str, tuple[type, ...]], dict[str, tuple[type, ...]]]]] = {
    "mcp": {
        "text": ({"text": _TEXT}, {}),
        "image": ({"data": _TEXT, "mimeType": _TEXT}, {}),
        "audio": ({"data": _TEXT, "mimeType": _TEXT}, {}),
        "resource_link": (
            {"uri": _TEXT, "name": _TEXT},
            {"title": _TEXT, "description": _TEXT, "mimeType": _TEXT, "size": _NUMBER},
        ),
        "resource": ({"resource": (dict,)}, {}),
    },
    "envelope": {
        "text": ({"text": _TEXT}, {}),
        "image": (
            {"url": _TEXT, "altText": _TEXT},
            {"width": _NUMBER, "height": _NUMBER, "caption": _TEXT},
        ),
        "resource": (
            {"resourceType": _TEXT, "identifier": _TEXT, "name": _TEXT},
            {"description": _TEXT, "metadata": (dict,)},
        ),
    },
}
# The `Version` field that says whether a version supports the block type.
_VERSION_FIELD = {"audio": "audio", "resource_link": "links"}
_HINTS = {
    "blob": "send bytes as image, audio, or a resource with a blob",
    "json": "send JSON as text, and the data itself as structuredContent",
    "image_url": "send the bytes as an image, or the address as a resource_link",
    "file": "send a resource with its body, or a resource_link",
    "link": "the type is resource_link",
    "video": "send a resource with a blob, or a resource_link",
}


def text_for(reply: dict[str, Any]) -> dict[str, Any]:
    """Return a text block for a reply without text: compact JSON of `structuredContent`; in an
    envelope, the text that the convention's `wrapToolResponse` adds."""
    data = reply.get("structuredContent", reply.get("data"))
    if reply.get("success") is False:
        error = reply.get("error")
        message = error.get("message") if isinstance(error, dict) else error
        text = f"Error: {message or reply.get('message') or 'Unknown error'}"
    elif "structuredContent" in reply:
        text = msgspec.json.encode(data).decode()
    elif data:
        text = msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
    else:
        text = reply.get("message") or "Operation completed successfully"
    return {"type": "text", "text": str(text)}


def _fill_content(reply: dict[str, Any], _: str) -> None:
    content = reply.get("content")
    if isinstance(content, str):
        reply["content"] = [{"type": "text", "text": content}]
    elif content is None and reply.keys() & {"success", "structuredContent"}:
        reply["content"] = [text_for(reply)]


@rule(
    "AB102",
    scope=Scope(dialects=MCP + ENVELOPE, plain_replies="none"),
    hint="Response must include a content array",
    bad={"success": True, "data": {"instanceId": "instance-1"}},
    good=ENVELOPE_SUCCESS,
    fix=_fill_content,
)
def missing_content(reply: ReplyView) -> Faults:
    """Every client reads `content`; a reply without it appears empty or is rejected."""
    content = reply.json.get("content")
    if isinstance(content, list) or reply.json.get("resultType", "complete") != "complete":
        return ()
    return [Fault("/content" if "content" in reply.json else "", "Missing content array")]


def _set_text_type(reply: dict[str, Any], pointer: str) -> None:
    block = block_at(reply, pointer)
    if isinstance(block.get("text"), str) and not block.get("type"):
        block["type"] = "text"


@rule(
    "AB104",
    scope=Scope(dialects=MCP + ENVELOPE, plain_replies="none"),
    hint="Each content item must include a type field",
    bad={"success": True, "content": [{"text": "Operation completed"}]},
    good=ENVELOPE_SUCCESS,
    fix=_set_text_type,
)
def missing_type(reply: ReplyView) -> Faults:
    """The type says how to show an item; without it, a client drops the item."""
    return [
        Fault(f"/content/{index}", f"Content item {index} missing type field")
        for index, block in reply.blocks
        if not block.get("type")
    ]


@rule(
    "AB111",
    scope=Scope(dialects=MCP + ENVELOPE, plain_replies="none"),
    hint='an item must be an object, such as {"type": "text", "text": "…"}',
    bad={"content": ["5 °C and cloudy in Oslo"]},
    good=MCP_TEXT,
)
def item_not_an_object(reply: ReplyView) -> Faults:
    """Clients look for a type in each item; one bare string makes them reject the whole reply."""
    content = reply.json.get("content")
    if not isinstance(content, list) or len(content) == len(reply.blocks):
        return ()
    return [
        Fault(f"/content/{index}", f"Content item {index} is {kind_name(block)}, not an object")
        for index, block in enumerate(content)
        if not isinstance(block, dict)
    ]


@rule(
    "AB112",
    scope=Scope(dialects=MCP + ENVELOPE, part="block"),
    hint="see the members of each type in `answerback schema`",
    bad=blocks_result({"type": "image", "uri": "https://example.com/chart.png"}),
    good=MCP_IMAGE,
)
def bad_item(reply: ReplyView, block: dict[str, Any], index: int) -> Faults:
    """An item that lacks its type's members cannot be shown, and strict clients reject it."""
    members = _MEMBERS[reply.dialect].get(block["type"])
    if members is None:
        return ()
    required, optional = members
    for name, kinds in required.items():
        if not isinstance(block.get(name), kinds):
            return _bad_members(block, index, required, optional)
    if optional and not block.keys().isdisjoint(optional):
        return _bad_members(block, index, required, optional)
    return _bad_resource(block, index) if "resource" in required else ()


def _bad_members(
    block: dict[str, Any],
    index: int,
    required: dict[str, tuple[type, ...]],
    optional: dict[str, tuple[type, ...]],
) -> Faults:
    block_type, faults = block["type"], []
    for name, kinds in (required | optional).items():
        value = block.get(name)
        if name in required and value is None:
            faults.append(Fault(f"/content/{index}", f"{block_type} item {index} has no {name}"))
        elif value is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
            message = f"{block_type} item {index}: {name} is {kind_name(value)}"
            faults.append(Fault(f"/content/{index}/{name}", message))
    return faults


def _bad_resource(block: dict[str, Any], index: int) -> Faults:
    resource, at = block["resource"], f"/content/{index}/resource"
    faults = []
    if not isinstance(resource.get("uri"), str):
        faults.append(Fault(at, f"resource item {index} has no uri"))
    bodies = [name for name in ("text", "blob") if isinstance(resource.get(name), str)]
    if len(bodies) != 1:
        found = "both text and blob" if bodies else "neither text nor blob"
        faults.append(Fault(at, f"resource item {index} has {found}"))
    return faults


@rule(
    "AB113",
    scope=Scope(dialects=MCP, part="block"),
    hint="the types are text, image, audio, resource_link and resource",
    bad=blocks_result({"type": "blob", "data": "UEsDBA==", "mimeType": "application/zip"}),
    good=blocks_result(
        {
            "type": "resource",
            "resource": {
                "uri": "file:///report.zip",
                "mimeType": "application/zip",
                "blob": "UEsDBA==",
            },
        }
    ),
)
def unknown_item_type(reply: ReplyView, block: dict[str, Any], index: int) -> Faults:
    """Clients know five types, and reject the whole reply if it contains any other."""
    name = block["type"]
    if name in _MEMBERS["mcp"]:
        return ()
    message = f"Content item {index} has the type {name!r}, which MCP does not define"
    return [Fault(f"/content/{index}/type", message, _HINTS.get(name, ""))]


@rule(
    "AB114",
    scope=Scope(dialects=MCP, part="block", needs="version", types=("audio", "resource_link")),
    hint="send text, or a resource, to clients that use that version",
    bad=Example(
        blocks_result({"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}),
        version="2024-11-05",
    ),
    good=Example(
        blocks_result({"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}),
        version="2025-03-26",
    ),
)
def item_type_too_new(reply: ReplyView, block: dict[str, Any], index: int) -> Faults:
    """A client rejects a type that does not exist in the version it asked for."""
    field = _VERSION_FIELD[block["type"]]
    if reply.version is None or getattr(reply.version, field):
        return ()
    since = next(name for name, version in VERSIONS.items() if getattr(version, field))
    message = f"{block['type']} is not in {reply.version.name}; it was added in {since}"
    return [Fault(f"/content/{index}/type", message)]


_DATE_TIME = re.compile(
    r"\d{4}-(?:0[1-9]|1[0-2])-(?:0[1-9]|[12]\d|3[01])[Tt ]"
    r"(?:[01]\d|2[0-3]):[0-5]\d:(?:[0-5]\d|60)(?:\.\d+)?(?:[Zz]|[+-]\d\d:\d\d)"
)
# Names used elsewhere instead of `success`: the convention's fifth pitfall.
_OTHER_FLAGS = ("ok", "status", "isError", "succeeded", "result")


def _with(envelope: dict[str, Any] = ENVELOPE_SUCCESS, **changes: Any) -> Example:
    return Example({**envelope, **changes}, "envelope")


@rule(
    "AB101",
    scope=Scope(dialects=ENVELOPE),
    hint="Response must include a boolean success field",
    bad=Example({"ok": True, "data": {"instanceId": "instance-1"}}, "envelope"),
    good=ENVELOPE_SUCCESS,
)
def missing_success(reply: ReplyView) -> Faults:
    """Clients look at `success` first; without it, they have to guess whether the call worked."""
    members = reply.json
    if isinstance(members.get("success"), bool):
        return ()
    other = next((name for name in _OTHER_FLAGS if name in members), None)
    hint = f"use success, not {other}" if other and "success" not in members else ""
    return [Fault("/success" if "success" in members else "", "Missing success field", hint)]


@rule(
    "AB103",
    scope=Scope(dialects=ENVELOPE),
    hint="say what was done in a text item, if only 'Operation completed successfully'",
    bad=_with(content=[]),
    good=ENVELOPE_SUCCESS,
    fix=lambda reply, _: reply.update(content=[text_for(reply)]),
)
def empty_content(reply: ReplyView) -> Faults:
    """Content is what people see; an empty list shows nothing."""
    return [Fault("/content", "Empty content array")] if reply.json.get("content") == [] else ()


def _set_timestamp(reply: dict[str, Any], _: str) -> None:
    now = datetime.now(UTC).isoformat(timespec="milliseconds")
    reply["timestamp"] = now.replace("+00:00", "Z")


@rule(
    "AB105",
    scope=Scope(dialects=ENVELOPE),
    hint="give the time the reply was made, such as 2026-01-31T12:00:00Z",
    bad=Example(
        {name: each for name, each in ENVELOPE_SUCCESS.items() if name != "timestamp"}, "envelope"
    ),
    good=ENVELOPE_SUCCESS,
    fix=_set_timestamp,
)
def missing_timestamp(reply: ReplyView) -> Faults:
    """Without a timestamp, fresh and cached replies look the same, and replies cannot be sorted."""
    return () if reply.json.get("timestamp") else [Fault("", "Missing timestamp")]


@rule(
    "AB106",
    scope=Scope(dialects=ENVELOPE, when="failure"),
    hint="add error with a code and a message",
    bad=Example({"success": False, "message": "Instance not found"}, "envelope"),
    good=ENVELOPE_FAILURE,
)
def missing_error_object(reply: ReplyView) -> Faults:
    """A program that handles the failure looks for its code only in `error`."""
    return () if reply.json.get("error") else [Fault("", "Error response missing error object")]


def _drop_null_error(reply: dict[str, Any], _: str) -> None:
    if reply.get("error") is None:
        reply.pop("error", None)


@rule(
    "AB107",
    scope=Scope(dialects=ENVELOPE),
    hint="leave error out of a success, or set success: false",
    bad=_with(error={"code": "STALE", "message": "The cache is old"}),
    good=ENVELOPE_SUCCESS,
    fix=_drop_null_error,
)
def error_on_success(reply: ReplyView) -> Faults:
    """A reply is a success or a failure; clients may read a success with an `error` as either."""
    if reply.json.get("success") is True and "error" in reply.json:
        return [Fault("/error", "Success response has an error")]
    return ()


@rule(
    "AB108",
    scope=Scope(dialects=ENVELOPE),
    hint="write it in RFC 3339 form, with a time zone: 2026-01-31T12:00:00Z",
    bad=_with(timestamp="31/01/2026 12:00"),
    good=ENVELOPE_SUCCESS,
)
def bad_timestamp(reply: ReplyView) -> Faults:
    """Clients parse the timestamp, and misread other formats and times without a time zone."""
    stamp = reply.json.get("timestamp")
    if not stamp or isinstance(stamp, datetime):
        return ()
    if isinstance(stamp, str) and _DATE_TIME.fullmatch(stamp):
        return ()
    return [Fault("/timestamp", f"timestamp is not a date-time: {quoted(stamp)}")]


def _make_error_object(reply: dict[str, Any], _: str) -> None:
    if isinstance(reply.get("error"), str):
        reply["error"] = {"code": "UNKNOWN_ERROR", "message": reply["error"]}


@rule(
    "AB109",
    scope=Scope(dialects=ENVELOPE),
    hint="error is an object with a code and a message, both text",
    bad=_with(ENVELOPE_FAILURE, error="Instance 'instance-1' not found"),
    good=ENVELOPE_FAILURE,
    fix=_make_error_object,
)
def bad_error_object(reply: ReplyView) -> Faults:
    """Programs branch on an error's `code` and show its `message`; both have to be strings."""
    error = reply.json.get("error")
    if not error or reply.json.get("success") is True:
        return ()
    if not isinstance(error, dict):
        return [Fault("/error", f"error is {kind_name(error)}, not an object")]
    return [
        Fault("/error", f"error has no {name}")
        if name not in error
        else Fault(f"/error/{name}", f"error {name} is {kind_name(error[name])}, not text")
        for name in ("code", "message")
        if not isinstance(error.get(name), str)
    ]


@rule(
    "AB110",
    scope=Scope(dialects=ENVELOPE),
    severity="warning",
    hint='put it in an object, such as {"result": …}',
    bad=_with(data=[1, 2, 3]),
    good=_with(data={"result": [1, 2, 3]}),
)
def data_not_an_object(reply: ReplyView) -> Faults:
    """Members can be added to an object without breaking clients, but not to a list or a number."""
    faults = []
    data = reply.json.get("data", msgspec.UNSET)
    if data is not msgspec.UNSET and not isinstance(data, dict):
        faults.append(Fault("/data", f"data is {kind_name(data)}, not an object"))
    error = reply.json.get("error")
    if isinstance(error, dict) and not isinstance(error.get("details", {}), dict):
        details = kind_name(error["details"])
        faults.append(Fault("/error/details", f"error details is {details}, not an object"))
    return faults


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
    hint="send JSON, with nothing before or after it",
    bad=Example(b"<html><h1>502 Bad Gateway</h1></html>"),
    good=Example(b'{"content":[{"type":"text","text":"5 \xc2\xb0C and cloudy in Oslo"}]}'),
)
def not_json(reply: ReplyView) -> Faults:
    """A client parses the reply first, and shows nothing at all if it is not JSON."""
    # `validate` applies this rule itself, because there is no decoded reply to check.
    return ()


@rule(
    "AB115",
    scope=Scope(dialects=MCP, plain_replies="none"),
    hint="write true or false, without quotes",
    bad=text_result("Location not found", isError="true"),
    good=MCP_FAILURE,
)
def is_error_not_boolean(reply: ReplyView) -> Faults:
    """A client treats any value other than true as a success, or rejects the reply."""
    flag = reply.json.get("isError")
    if flag is None or isinstance(flag, bool):
        return ()
    return [Fault("/isError", f"isError is {kind_name(flag)}, not true or false")]


@rule(
    "AB116",
    scope=Scope(dialects=MCP + ENVELOPE, part="document"),
    hint='an MCP reply must be {"content": […]}',
    bad=Example("5 °C and cloudy in Oslo", "mcp"),
    good=MCP_TEXT,
)
def not_an_object(reply: ReplyView) -> Faults:
    """A bare string or list has no member to say what it is, or whether the call failed."""
    # `check` applies this rule itself, because the other checks expect objects.
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
    """Since 2026-07-28, a result may ask for input; clients reject one without `resultType`."""
    version = reply.version
    if version is None or not version.stateless or "resultType" in reply.json:
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
    """A member with the wrong name is ignored: an error becomes a success, or data is lost."""
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
    """Callers show a REST reply's `error` as is; an object shows up as gibberish."""
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
    """A client reads the RFC 9457 members, and ignores any that have the wrong type."""
    members = reply.json
    if members.keys().isdisjoint(_PROBLEM_MEMBERS):
        return [Fault("", "the problem has none of type, title, status or detail")]
    return [
        Fault(f"/{name}", f"the problem's {name} is {kind_name(members[name])}")
        for name, wanted in _PROBLEM_MEMBERS.items()
        # In Python, a bool is an int; in JSON, true is not a number.
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
    """Clients use the code to decide what to do; without one, they cannot read the error."""
    error = reply.json.get("error")
    if not isinstance(error, dict):
        return [Fault("/error", f"error is {kind_name(error)}, not an object")]
    faults = []
    if not is_integer(error.get("code")):
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
    """Clients read `_meta` as an object, and reject the reply if it is anything else."""
    meta = reply.json.get("_meta")
    if meta is None or isinstance(meta, dict):
        return ()
    return [Fault("/_meta", f"_meta is {kind_name(meta)}, not an object")]
