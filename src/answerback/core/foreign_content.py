"""Recognises the content blocks and results of the official SDK and of FastMCP.

Neither is imported: a class is recognised by its name and module, or by the method that makes the
SDK's block, once for each class.
"""

from __future__ import annotations

from collections.abc import Iterable
from functools import lru_cache
from typing import Any

import msgspec

from .content import BLOCKS, Audio, Block, Embedded, Icon, Image, Link, Text

_SDK = ("mcp", "mcp_types")
_SDK_BLOCKS: dict[str, type[Block]] = {
    "TextContent": Text,
    "ImageContent": Image,
    "AudioContent": Audio,
    "ResourceLink": Link,
    "EmbeddedResource": Embedded,
    "TextResourceContents": Embedded,
    "BlobResourceContents": Embedded,
}
_RESULTS = {"CallToolResult": _SDK, "ToolResult": ("fastmcp",)}
_OTHER_RESULTS = {
    "InputRequiredResult": "ask by a parameter: sure: Annotated[bool, Ask('…')]",
    "CreateTaskResult": "return the task's result, and write @app.tool(task='optional')",
}
METHODS: dict[str, type[Block]] = {
    "to_image_content": Image,
    "to_audio_content": Audio,
    "to_resource_content": Embedded,
}
"""The methods of `Image`, `Audio` and `File` in FastMCP and in the SDK, which make a block."""


@lru_cache(maxsize=1_000)
def block_class(kind: type) -> type[Block] | None:
    """Return our block class for a class whose objects are blocks; None for any other class."""
    for base in kind.__mro__:
        if base in BLOCKS:
            return base
        if _package(base) in _SDK and base.__name__ in _SDK_BLOCKS and hasattr(base, "model_dump"):
            return _SDK_BLOCKS[base.__name__]
    return next((each for name, each in METHODS.items() if hasattr(kind, name)), None)


@lru_cache(maxsize=1_000)
def is_result_class(kind: type) -> bool:
    """Return whether this is a tool's result in the SDK or in FastMCP."""
    return any(_package(base) in _RESULTS.get(base.__name__, ()) for base in kind.__mro__)


def instead_of_result(kind: type) -> str | None:
    """Return what to write instead of an SDK's result that tools here do not return."""
    return _OTHER_RESULTS.get(kind.__name__) if _package(kind) in _SDK else None


def is_block(value: object) -> bool:
    """Return whether *value* is a content block, ours or another library's."""
    return block_class(type(value)) is not None  # type: ignore[arg-type]  # classes are hashable


def is_result(value: object) -> bool:
    """Return whether *value* is a tool's result of the SDK or of FastMCP."""
    return is_result_class(type(value))  # type: ignore[arg-type]  # classes are hashable


def is_icon(value: object) -> bool:
    """Return whether *value* is an icon, ours or the SDK's."""
    if isinstance(value, Icon):
        return True
    kind = type(value)
    return kind.__name__ == "Icon" and _package(kind) in _SDK and hasattr(kind, "model_dump")


def own_icons(icons: Iterable[Any]) -> tuple[Icon, ...]:
    """Return our icons for icons of either library."""
    written = (
        each if isinstance(each, Icon) else each.model_dump(by_alias=True, exclude_none=True)
        for each in icons
    )
    return tuple(msgspec.convert(each, Icon) for each in written)


def content_of(value: object, *, only: bool = False) -> tuple[Any, ...] | None:
    """Return a content block, or those in a list, of any library; None for any other value.

    Strings become text blocks if *only* blocks are declared, or if there is a block too.
    """
    if not isinstance(value, list | tuple):
        return (value,) if is_block(value) else None
    if not all(isinstance(item, str) or is_block(item) for item in value):
        return None
    if not only and all(isinstance(item, str) for item in value):
        return None
    return tuple(Text(item) if isinstance(item, str) else item for item in value)


def _package(kind: type) -> str:
    return str(kind.__module__).partition(".")[0]
