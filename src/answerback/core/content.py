"""Content blocks: text, images, audio, links and embedded resources.

They know nothing about wires or dialects.
"""

from __future__ import annotations

from collections.abc import Iterable
from datetime import datetime
from functools import lru_cache
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Self, TypeAlias, TypedDict, Unpack, cast

import msgspec

if TYPE_CHECKING:
    from collections.abc import Mapping
    from pathlib import Path

    from .metadata import Place

    # Type checkers see a TypedDict as a Mapping, not as a dict.
    Meta: TypeAlias = Mapping[str, Any] | None
else:
    Meta = "dict[str, Any] | None"


class Annotations(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """A block's audience, priority (0 to 1) and last change (ISO 8601)."""

    audience: tuple[Literal["user", "assistant"], ...] | None = None
    """Who the block is for: "user", "assistant" or both."""
    priority: float | None = None
    """How important the block is, from 0 to 1."""
    last_modified: str | None = msgspec.field(default=None, name="lastModified")
    """When the content last changed (ISO 8601), such as "2025-05-03T14:30:00Z"."""

    def __post_init__(self) -> None:
        if self.priority is not None and not 0 <= self.priority <= 1:
            raise ValueError(f"priority must be between 0 and 1, not {self.priority!r}")
        if self.audience is not None and not set(self.audience) <= {"user", "assistant"}:
            raise ValueError(f"audience is 'user', 'assistant' or both, not {self.audience!r}")
        if self.last_modified is not None:
            try:
                datetime.fromisoformat(self.last_modified)
            except ValueError:
                message = f"lastModified must be ISO 8601, not {self.last_modified!r}"
                raise ValueError(message) from None


class Text(msgspec.Struct, frozen=True):
    """A text block."""

    type: ClassVar[Literal["text"]] = "text"
    """The block's type in MCP."""
    text: str
    """The text."""
    meta: Meta = None
    """The block's `_meta`, for hosts."""
    annotations: Annotations | None = None
    """Audience, priority and last change."""

    def __post_init__(self) -> None:
        if self.meta is not None:
            check_meta(self.meta, "block")


if TYPE_CHECKING:

    class MediaOptions(TypedDict, total=False):
        """The keyword arguments of `Image` and `Audio`."""

        url: str | None
        """The file's URL, instead of its bytes."""
        alt: str | None
        """Alternative text for models and people who cannot see or hear it."""
        width: int | None
        """The width in pixels."""
        height: int | None
        """The height in pixels."""
        caption: str | None
        """A caption to show with it."""
        annotations: Annotations | None
        """Audience, priority and last change."""

    class EmbeddedOptions(TypedDict, total=False):
        """The keyword arguments of `Embedded`."""

        annotations: Annotations | None
        """Audience, priority and last change."""
        meta: Meta
        """The block's `_meta`."""
        content_meta: Meta
        """The `_meta` of the resource inside the block."""


_INSTEAD = {
    "format": "{name}(data, mime='{kind}/{value}')",
    "path": "{name}.open(path)",
    "mimeType": "mime=",
    "mime_type": "mime=",
    "media_type": "mime=",
    "altText": "alt=",
}
"""Arguments of other libraries' image classes, and what to write instead."""


class _HintsAtArguments(msgspec.StructMeta):
    """Suggests a replacement for an argument of another library's image class."""

    # Hidden from type checkers, which would otherwise stop checking the arguments.
    if not TYPE_CHECKING:

        def __call__(self, *args, **kwargs):
            try:
                return super().__call__(*args, **kwargs)
            except TypeError:
                wrong = next((name for name in kwargs if name in _INSTEAD), None)
                if wrong is None:
                    raise
                name, value = self.__name__, kwargs[wrong]
                instead = _INSTEAD[wrong].format(name=name, kind=name.lower(), value=value)
                message = f"{name} has no argument {wrong!r}; write {instead}"
                raise TypeError(message) from None


class _Bytes(msgspec.Struct, frozen=True, metaclass=_HintsAtArguments):
    data: bytes = b""
    """The bytes, raw or as base64 text."""
    mime: str = ""
    """The media type of the bytes, such as "image/png" or "audio/mpeg"."""
    meta: Meta = None
    """The block's `_meta`, for hosts."""


class _Media(_Bytes, frozen=True, kw_only=True):
    url: str | None = None
    alt: str | None = None
    width: int | None = None
    height: int | None = None
    caption: str | None = None
    annotations: Annotations | None = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        if not isinstance(self.data, bytes):
            instead = f"bytes, {name}.open(path) or url="
            data = _bytes_of(self.data, f"{name} data", instead)
            msgspec.structs.force_setattr(self, "data", data)
        if self.url is not None and self.data:
            raise ValueError(f"{name} needs either data or url, not both")
        if self.url is None and "/" not in self.mime:
            raise ValueError(f"{name} needs a url, or data and a mime such as 'image/png'")
        if self.meta is not None:
            check_meta(self.meta, "block")

    @classmethod
    def open(cls, path: str | Path, meta: Meta = None, **more: Unpack[MediaOptions]) -> Self:
        """Read a file; its media type is guessed from its name."""
        import mimetypes
        from pathlib import Path

        mime = mimetypes.guess_type(str(path))[0]
        if mime is None:
            raise ValueError(f"no media type is known for {str(path)!r}; pass data and mime")
        return cls(Path(path).read_bytes(), mime, meta, **more)


def _bytes_of(data: object, what: str, instead: str) -> bytes:
    """Decode base64 text, which protocols and many libraries use for bytes."""
    if not isinstance(data, str):
        raise TypeError(f"{what} must be bytes, not {type(data).__name__}")
    from base64 import b64decode

    try:
        return b64decode(data, validate=True)
    except ValueError:
        raise ValueError(f"{what} is a str that is not base64; pass {instead}") from None


def check_meta(meta: object, place: Place, argument: str = "meta") -> None:
    """Reject a host key that is misspelt or in the wrong place."""
    if isinstance(meta, Annotations):
        raise TypeError("meta must be a dict, not Annotations; write annotations=Annotations(…)")
    from . import metadata

    metadata.check_meta(meta, place, argument)


class Image(_Media, frozen=True):
    """An image: its bytes, raw or as base64 text, and its media type; or its URL."""

    type: ClassVar[Literal["image"]] = "image"
    """The block's type in MCP."""
    if TYPE_CHECKING:
        # Type checkers use a field's type as the argument's type.
        def __init__(
            self,
            data: bytes | str = b"",
            mime: str = "",
            meta: Meta = None,
            **more: Unpack[MediaOptions],
        ) -> None: ...


class Audio(_Media, frozen=True):
    """Audio: its bytes, raw or as base64 text, and its media type; or its URL."""

    type: ClassVar[Literal["audio"]] = "audio"
    """The block's type in MCP."""
    if TYPE_CHECKING:

        def __init__(
            self,
            data: bytes | str = b"",
            mime: str = "",
            meta: Meta = None,
            **more: Unpack[MediaOptions],
        ) -> None: ...


class _Named(msgspec.Struct, frozen=True):
    uri: str
    """The resource's address, or an identifier such as `instance-1`."""
    name: str
    """The resource's name."""


class Link(_Named, frozen=True, kw_only=True):
    """A link to a resource; `kind` is the type of resource ("url", "file", …)."""

    type: ClassVar[Literal["resource_link"]] = "resource_link"
    """The block's type in MCP."""
    kind: str = "url"
    """The kind of resource, such as "url" or "file"."""
    title: str | None = None
    """The title that people see."""
    description: str | None = None
    """A description of the resource, for models."""
    mime: str | None = None
    """The resource's media type."""
    metadata: dict[str, Any] | None = None
    """Your own metadata about the resource, for the envelope dialect."""
    annotations: Annotations | None = None
    """Audience, priority and last change."""
    meta: Meta = None
    """The block's `_meta`, for hosts."""

    def __post_init__(self) -> None:
        if self.meta is not None:
            check_meta(self.meta, "block")


class Embedded(msgspec.Struct, frozen=True):
    """A resource with its contents: text, or a blob as bytes or base64 text.

    `meta` is the block's `_meta`, and `content_meta` is that of the resource inside it.
    """

    type: ClassVar[Literal["resource"]] = "resource"
    """The block's type in MCP."""
    uri: str
    """The resource's URI."""
    text: str | None = None
    """The contents, if they are text."""
    blob: bytes | None = None
    """The contents, if they are binary: bytes or base64 text."""
    mime: str | None = None
    """The media type of the contents."""
    title: str | None = None
    """The title that people see."""
    annotations: Annotations | None = None
    meta: Meta = None
    content_meta: Meta = None
    if TYPE_CHECKING:

        def __init__(
            self,
            uri: str,
            text: str | None = None,
            blob: bytes | str | None = None,
            mime: str | None = None,
            title: str | None = None,
            **more: Unpack[EmbeddedOptions],
        ) -> None: ...

    def __post_init__(self) -> None:
        if any(isinstance(each, dict) for each in (self.text, self.blob)):
            raise TypeError(
                f"Embedded takes text or bytes, not a dict; write Embedded({self.uri!r}, text=…, "
                "mime=…, meta=…), or blob=… for bytes"
            )
        if (self.text is None) == (self.blob is None):
            raise ValueError("Embedded needs either text or blob")
        if self.blob is not None and not isinstance(self.blob, bytes):
            blob = _bytes_of(self.blob, "Embedded blob", "bytes or text=")
            msgspec.structs.force_setattr(self, "blob", blob)
        if self.meta is not None:
            check_meta(self.meta, "block")
        if self.content_meta is not None:
            check_meta(self.content_meta, "content", "content_meta")


class Icon(msgspec.Struct, frozen=True, omit_defaults=True, metaclass=_HintsAtArguments):
    """An icon for a tool, resource, prompt or app.

    `src` is an https or data URL, `mime` its media type, and `sizes` its sizes: ("48x48",).
    """

    src: str
    """An https or data URL."""
    mime: str | None = msgspec.field(default=None, name="mimeType")
    """The icon's media type."""
    sizes: tuple[str, ...] | None = None
    """The available sizes, such as ("48x48",)."""
    theme: Literal["light", "dark"] | None = None
    """The background it is designed for."""


Block: TypeAlias = Text | Image | Audio | Link | Embedded
BLOCKS = (Text, Image, Audio, Link, Embedded)


def changed_block(block: Block, **changes: object) -> Block:
    """Return a copy with *changes*; `_meta` is not checked, because it may be another server's."""
    changed: Block = cast("Any", block).__copy__()
    for name, value in changes.items():
        msgspec.structs.force_setattr(changed, name, value)
    return changed


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
    "InputRequiredResult": "ask with a parameter: sure: Annotated[bool, Ask('…')]",
    "CreateTaskResult": "return the task's result, and write @app.tool(task='optional')",
}
METHODS: dict[str, type[Block]] = {
    "to_image_content": Image,
    "to_audio_content": Audio,
    "to_resource_content": Embedded,
}
"""The methods of FastMCP's and the SDK's `Image`, `Audio` and `File` that create a block."""


@lru_cache(maxsize=1_000)
def block_class(kind: type) -> type[Block] | None:
    """Return our class for a block class from any library; None for any other class."""
    for base in kind.__mro__:
        if base in BLOCKS:
            return base
        if _package(base) in _SDK and base.__name__ in _SDK_BLOCKS and hasattr(base, "model_dump"):
            return _SDK_BLOCKS[base.__name__]
    return next((each for name, each in METHODS.items() if hasattr(kind, name)), None)


@lru_cache(maxsize=1_000)
def is_result_class(kind: type) -> bool:
    """Return whether this class is the SDK's or FastMCP's tool result."""
    return any(_package(base) in _RESULTS.get(base.__name__, ()) for base in kind.__mro__)


def instead_of_result(kind: type) -> str | None:
    """Return what to write instead of an SDK result that tools cannot return here."""
    return _OTHER_RESULTS.get(kind.__name__) if _package(kind) in _SDK else None


def is_block(value: object) -> bool:
    """Return whether *value* is a content block, ours or another library's."""
    return block_class(type(value)) is not None  # type: ignore[arg-type]  # classes are hashable


def is_result(value: object) -> bool:
    """Return whether *value* is a tool result from the SDK or from FastMCP."""
    return is_result_class(type(value))  # type: ignore[arg-type]  # classes are hashable


def is_icon(value: object) -> bool:
    """Return whether *value* is an icon, ours or the SDK's."""
    if isinstance(value, Icon):
        return True
    kind = type(value)
    return kind.__name__ == "Icon" and _package(kind) in _SDK and hasattr(kind, "model_dump")


def our_icons(icons: Iterable[Any]) -> tuple[Icon, ...]:
    """Convert the SDK's icons to ours."""
    written = (
        each if isinstance(each, Icon) else each.model_dump(by_alias=True, exclude_none=True)
        for each in icons
    )
    return tuple(msgspec.convert(each, Icon) for each in written)


def content_of(value: object, *, only: bool = False) -> tuple[Any, ...] | None:
    """Return the content block or list of blocks as a tuple; None for any other value.

    Strings become text blocks if *only* blocks are declared, or if the list also contains a block.
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
