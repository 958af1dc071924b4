"""Turns content blocks and results from the SDK and FastMCP into ours."""

from __future__ import annotations

from binascii import a2b_base64
from collections.abc import Iterator, Sequence
from contextlib import suppress
from typing import Any

import msgspec

from ..core.content import BLOCKS, METHODS, Block, Text, is_block, is_result
from ..core.media_types import media_type_of
from ..errors import MalformedReply
from ..types.json_text import MAX_DEPTH
from ..types.problems import InvalidOutput
from .mcp_blocks import read_block


def own_block(value: Any) -> Block:
    """Return any library's block as one of ours; raise InvalidOutput if it is malformed."""
    if isinstance(value, BLOCKS):
        return value
    for name in METHODS:
        if (make := getattr(value, name, None)) is not None:
            value = make()
    found = value.model_dump(mode="json", by_alias=True, exclude_none=True)
    if "type" not in found:
        # The contents of a resource, without the block around them.
        found = {"type": "resource", "resource": found}
    try:
        return read_block(found)
    except MalformedReply as error:
        raise InvalidOutput("", str(error)) from None


def complete_block(block: Any) -> Any:
    """Return a block written by hand in the form that MCP defines; other values unchanged.

    An image or a sound gets the media type of its bytes; a resource with only a URI is a link.
    Raises InvalidOutput if the bytes are not base64.
    """
    match block:
        case {"type": "image" | "audio", "data": str(data)}:
            try:
                payload = a2b_base64(data, strict_mode=True)
            except ValueError:
                raise InvalidOutput("data", "is not base64") from None
            if "mimeType" in block or (mime := media_type_of(payload)) is None:
                return block
            return {**block, "mimeType": mime}
        case {"type": "resource", "uri": str(uri), **others} if "resource" not in others:
            return {"name": uri, **others, "type": "resource_link", "uri": uri}
    return block


def result_object(result: Any) -> dict[str, Any]:
    """Return the MCP result for an SDK's `CallToolResult` or FastMCP's `ToolResult`."""
    if not hasattr(result, "to_mcp_result"):
        found: dict[str, Any] = result.model_dump(by_alias=True, mode="json", exclude_none=True)
        # Version 2 marks the result as complete, which every tool result is.
        found.pop("resultType", None)
        return found
    found = {
        "content": [own_block(block) for block in result.content],
        "isError": getattr(result, "is_error", False),
    }
    if result.structured_content is not None:
        found["structuredContent"] = result.structured_content
    return found | ({"_meta": result.meta} if result.meta else {})


_PLAIN = frozenset({str, int, float, bool, bytes, type(None)})


def take_blocks(value: Any, content: Sequence[Any] = ()) -> tuple[Any, tuple[Block, ...]]:
    """Replace each block in *value* with a name; return it, and *content* with the blocks added.

    A value without blocks is returned unchanged.
    """
    taker = _Taker([own_block(each) for each in content])
    return taker.take(value, ()), tuple(taker.content)


def with_blocks_as_content(reply: dict[str, Any]) -> dict[str, Any]:
    """Return a finished reply with the blocks in its other members moved into its content."""
    others = {name: each for name, each in reply.items() if name != "content"}
    listed = reply.get("content")
    blocks = listed if isinstance(listed, list | tuple) else ()
    taker = _Taker([own_block(each) if is_block(each) else each for each in blocks])
    taken = taker.take(others, ())
    return reply if taken is others else {**taken, "content": taker.content}


class _Taker:
    def __init__(self, content: Sequence[Any]) -> None:
        # Blocks, or their JSON.
        self.content: list[Any] = list(content)
        # By the block's id, so that a block used twice is sent once. The block itself is stored
        # too, so that its id is not reused.
        self._names: dict[int, tuple[Any, str]] = {}

    def take(self, value: Any, around: tuple[int, ...]) -> Any:
        """Return the value without its blocks; *around* holds the ids of the enclosing values."""
        if type(value) in _PLAIN or id(value) in around or len(around) > MAX_DEPTH:
            return value
        if is_block(value):
            return self._name(value)
        if is_result(value):
            return value
        around = (*around, id(value))
        if isinstance(value, dict):
            return self._object(value, value.items(), around)
        if isinstance(value, list | tuple | set | frozenset):
            items = [self.take(each, around) for each in value]
            unchanged = all(new is old for new, old in zip(items, value, strict=True))
            return value if unchanged else items
        if hasattr(type(value), "__pydantic_serializer__"):
            return self._model(value, around)
        fields = self._object(value, _fields(value), around)
        is_array = getattr(getattr(value, "__struct_config__", None), "array_like", False)
        return list(fields.values()) if is_array and fields is not value else fields

    def _object(self, value: Any, members: Any, around: tuple[int, ...]) -> Any:
        found = {name: (each, self.take(each, around)) for name, each in members}
        if all(new is old for old, new in found.values()):
            return value
        return {name: new for name, (_, new) in found.items()}

    def _model(self, model: Any, around: tuple[int, ...]) -> Any:
        """Return a pydantic object's JSON, with names in place of the blocks in its fields."""
        fields = getattr(type(model), "model_fields", {})
        members = {**getattr(model, "__dict__", {}), **(getattr(model, "model_extra", None) or {})}
        taken = {name: self.take(each, around) for name, each in members.items()}
        changed = {name: each for name, each in taken.items() if each is not members[name]}
        if not changed:
            return model
        if "root" in fields:
            return changed["root"]
        written = type(model).__pydantic_serializer__.to_python(
            model, mode="json", by_alias=True, warnings=False, exclude=set(changed)
        )
        for name, each in changed.items():
            field = fields.get(name)
            alias = field and (field.serialization_alias or field.alias)
            written[alias or name] = each
        return written

    def _name(self, value: Any) -> str:
        """Return a block's text or URI, or its kind and number; add all but text to the content."""
        if id(value) in self._names:
            return self._names[id(value)][1]
        block = own_block(value)
        if isinstance(block, Text):
            return block.text
        self.content.append(block)
        uri: str = getattr(block, "uri", None) or getattr(block, "url", None) or ""
        types = (
            each.get("type") if isinstance(each, dict) else getattr(each, "type", None)
            for each in self.content
        )
        number = sum(each == block.type for each in types)
        is_short = uri and not uri.startswith("data:")
        name = uri if is_short else f"{block.type} {number}"
        self._names[id(value)] = (value, name)
        return name


def _fields(value: Any) -> Iterator[tuple[str, Any]]:
    """Yield the JSON names and the values of an object's fields."""
    kind = type(value)
    if isinstance(value, msgspec.Struct):
        if (tag := kind.__struct_config__.tag) is not None:
            yield str(kind.__struct_config__.tag_field), tag
        names = dict(zip(kind.__struct_encode_fields__, kind.__struct_fields__, strict=True))
    else:
        names = {name: name for name in getattr(kind, "__dataclass_fields__", ())}
        names |= {field.name: field.name for field in getattr(kind, "__attrs_attrs__", ())}
    for json_name, name in names.items():
        # An author's property may raise any exception; the output check explains it.
        with suppress(Exception):
            each = getattr(value, name)
            if each is not msgspec.UNSET:
                yield json_name, each
