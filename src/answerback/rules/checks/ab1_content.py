"""AB1xx, content: what both MCP and the envelope ask of it, and what each asks of an item."""

from __future__ import annotations

from typing import Any

import msgspec

from ...versions import VERSIONS
from ..examples import ENVELOPE_SUCCESS, MCP_IMAGE, MCP_TEXT, shown
from ..finding import ENVELOPE, MCP, About, Example, Fault, Faults, Scope, rule
from ..json_values import block_at, kind
from ..reply_view import Subject

_TEXT = (str,)
_NUMBER = (int, float)

# For each type: the members it must have, and of what sort those are that it may have.
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
_SINCE = {"audio": "audio", "resource_link": "links"}
_NEAR = {
    "blob": "send bytes as image, audio, or a resource with a blob",
    "json": "send JSON as text, and the data itself as structuredContent",
    "image_url": "send the bytes as an image, or the address as a resource_link",
    "file": "send a resource with its body, or a resource_link",
    "link": "the type is resource_link",
    "video": "send a resource with a blob, or a resource_link",
}


def text_for(found: dict[str, Any]) -> dict[str, Any]:
    """The text that seed 000's `wrapToolResponse` gives a reply without one."""
    data = found.get("structuredContent", found.get("data"))
    if found.get("success") is False:
        error = found.get("error")
        message = error.get("message") if isinstance(error, dict) else error
        text = f"Error: {message or found.get('message') or 'Unknown error'}"
    elif "structuredContent" in found:
        text = msgspec.json.encode(data).decode()
    elif data:
        text = msgspec.json.format(msgspec.json.encode(data), indent=2).decode()
    else:
        text = found.get("message") or "Operation completed successfully"
    return {"type": "text", "text": str(text)}


def _fill_content(found: dict[str, Any], _: str) -> None:
    content = found.get("content")
    if isinstance(content, str):
        found["content"] = [{"type": "text", "text": content}]
    elif content is None and found.keys() & {"success", "structuredContent"}:
        found["content"] = [text_for(found)]


@rule(
    "AB102",
    About(
        scope=Scope(dialects=MCP + ENVELOPE),
        hint="Response must include a content array",
        bad={"success": True, "data": {"instanceId": "instance-1"}},
        good=ENVELOPE_SUCCESS,
        fix=_fill_content,
    ),
)
def missing_content(it: Subject) -> Faults:
    """Every client reads `content`; a reply without it is shown as nothing or refused."""
    content = it.found.get("content")
    if isinstance(content, list) or it.found.get("resultType", "complete") != "complete":
        return ()
    return [Fault("/content" if "content" in it.found else "", "Missing content array")]


def _call_it_text(found: dict[str, Any], pointer: str) -> None:
    block = block_at(found, pointer)
    if isinstance(block.get("text"), str) and not block.get("type"):
        block["type"] = "text"


@rule(
    "AB104",
    About(
        scope=Scope(dialects=MCP + ENVELOPE),
        hint="Each content item must include a type field",
        bad={"success": True, "content": [{"text": "Operation completed"}]},
        good=ENVELOPE_SUCCESS,
        fix=_call_it_text,
    ),
)
def missing_type(it: Subject) -> Faults:
    """The type says how an item is to be shown; without it a client drops the item."""
    faults = []
    for index, block in it.blocks:
        if not block.get("type"):
            faults.append(Fault(f"/content/{index}", f"Content item {index} missing type field"))
    return faults


@rule(
    "AB111",
    About(
        scope=Scope(dialects=MCP + ENVELOPE),
        hint='an item is an object, such as {"type": "text", "text": "…"}',
        bad={"content": ["5 °C and cloudy in Oslo"]},
        good=MCP_TEXT,
    ),
)
def item_not_an_object(it: Subject) -> Faults:
    """Clients look for a type in each item; text of its own they refuse with all the reply."""
    content = it.found.get("content")
    if not isinstance(content, list) or len(content) == len(it.blocks):
        return ()
    return [
        Fault(f"/content/{index}", f"Content item {index} is {kind(block)}, not an object")
        for index, block in enumerate(content)
        if not isinstance(block, dict)
    ]


@rule(
    "AB112",
    About(
        scope=Scope(dialects=MCP + ENVELOPE, part="block"),
        hint="see the members of each type in `answerback schema`",
        bad=shown({"type": "image", "uri": "https://example.com/chart.png"}),
        good=MCP_IMAGE,
    ),
)
def bad_item(it: Subject, block: dict[str, Any], index: int) -> Faults:
    """An item without the members of its type cannot be shown, and strict clients refuse it."""
    members = _MEMBERS[it.dialect].get(block["type"])
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
    noun, faults = block["type"], []
    for name, kinds in (required | optional).items():
        value = block.get(name)
        if name in required and value is None:
            faults.append(Fault(f"/content/{index}", f"{noun} item {index} has no {name}"))
        elif value is not None and (not isinstance(value, kinds) or isinstance(value, bool)):
            message = f"{noun} item {index}: {name} is {kind(value)}"
            faults.append(Fault(f"/content/{index}/{name}", message))
    return faults


def _bad_resource(block: dict[str, Any], index: int) -> Faults:
    resource, at = block["resource"], f"/content/{index}/resource"
    faults = []
    if not isinstance(resource.get("uri"), str):
        faults.append(Fault(at, f"resource item {index} has no uri"))
    bodies = [name for name in ("text", "blob") if isinstance(resource.get(name), str)]
    if len(bodies) != 1:
        what = "both text and blob" if bodies else "neither text nor blob"
        faults.append(Fault(at, f"resource item {index} has {what}"))
    return faults


@rule(
    "AB113",
    About(
        scope=Scope(dialects=MCP, part="block"),
        hint="the types are text, image, audio, resource_link and resource",
        bad=shown({"type": "blob", "data": "UEsDBA==", "mimeType": "application/zip"}),
        good=shown(
            {
                "type": "resource",
                "resource": {
                    "uri": "file:///report.zip",
                    "mimeType": "application/zip",
                    "blob": "UEsDBA==",
                },
            }
        ),
    ),
)
def unknown_item_type(it: Subject, block: dict[str, Any], index: int) -> Faults:
    """Clients know five types and refuse the whole reply when there is another."""
    name = block["type"]
    if name in _MEMBERS["mcp"]:
        return ()
    message = f"Content item {index} has the type {name!r}, which MCP does not know"
    return [Fault(f"/content/{index}/type", message, _NEAR.get(name, ""))]


@rule(
    "AB114",
    About(
        scope=Scope(dialects=MCP, part="block", needs="version", types=("audio", "resource_link")),
        hint="send text, or a resource, to a client of that version",
        bad=Example(
            shown({"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}),
            version="2024-11-05",
        ),
        good=Example(
            shown({"type": "audio", "data": "UklGRg==", "mimeType": "audio/wav"}),
            version="2025-03-26",
        ),
    ),
)
def item_type_too_new(it: Subject, block: dict[str, Any], index: int) -> Faults:
    """A client refuses a type that the version it asked for does not have."""
    needed = _SINCE[block["type"]]
    if it.version is None or getattr(it.version, needed):
        return ()
    since = next(name for name, version in VERSIONS.items() if getattr(version, needed))
    message = f"{block['type']} is not in {it.version.name}; it came with {since}"
    return [Fault(f"/content/{index}/type", message)]
