"""AB1xx, content: the rules for `content` and its items, in MCP and in the envelope."""

from __future__ import annotations

from typing import Any

import msgspec

from ...core.versions import VERSIONS
from ..examples import ENVELOPE_SUCCESS, MCP_IMAGE, MCP_TEXT, blocks_result
from ..finding import ENVELOPE, MCP, Example, Fault, Faults, Scope, rule
from ..json_values import block_at, kind_name
from ..reply_view import ReplyView

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
# The field of `Version` that says whether a version has the block type.
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
    """Every client reads `content`; a reply without it is shown as nothing or refused."""
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
    """The type says how an item is to be shown; without it a client drops the item."""
    faults = []
    for index, block in reply.blocks:
        if not block.get("type"):
            faults.append(Fault(f"/content/{index}", f"Content item {index} missing type field"))
    return faults


@rule(
    "AB111",
    scope=Scope(dialects=MCP + ENVELOPE, plain_replies="none"),
    hint='an item is an object, such as {"type": "text", "text": "…"}',
    bad={"content": ["5 °C and cloudy in Oslo"]},
    good=MCP_TEXT,
)
def item_not_an_object(reply: ReplyView) -> Faults:
    """Clients look for a type in each item, and refuse the whole reply for an item of bare text."""
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
    """An item without the members of its type cannot be shown, and strict clients refuse it."""
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
    """Clients know five types and refuse the whole reply when there is another."""
    name = block["type"]
    if name in _MEMBERS["mcp"]:
        return ()
    message = f"Content item {index} has the type {name!r}, which MCP does not know"
    return [Fault(f"/content/{index}/type", message, _HINTS.get(name, ""))]


@rule(
    "AB114",
    scope=Scope(dialects=MCP, part="block", needs="version", types=("audio", "resource_link")),
    hint="send text, or a resource, to a client of that version",
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
    """A client refuses a type that the version it asked for does not have."""
    field = _VERSION_FIELD[block["type"]]
    if reply.version is None or getattr(reply.version, field):
        return ()
    since = next(name for name, version in VERSIONS.items() if getattr(version, field))
    message = f"{block['type']} is not in {reply.version.name}; it came with {since}"
    return [Fault(f"/content/{index}/type", message)]
