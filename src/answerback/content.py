"""Content blocks: text, images, audio, links and embedded resources.

They know nothing of wires and dialects.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias

import msgspec

if TYPE_CHECKING:
    from pathlib import Path

Meta: TypeAlias = "dict[str, Any] | None"


class Annotations(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """The audience of a block, its priority (0 to 1) and its last change (ISO 8601)."""

    audience: tuple[Literal["user", "assistant"], ...] | None = None
    priority: float | None = None
    last_modified: str | None = msgspec.field(default=None, name="lastModified")

    def __post_init__(self) -> None:
        if self.priority is not None and not 0 <= self.priority <= 1:
            raise ValueError(f"priority must be between 0 and 1, not {self.priority!r}")
        if self.audience is not None and not set(self.audience) <= {"user", "assistant"}:
            raise ValueError(f"audience is 'user', 'assistant' or both, not {self.audience!r}")
        if self.last_modified is not None:
            _require_iso_8601(self.last_modified)


class Text(msgspec.Struct, frozen=True):
    text: str
    annotations: Annotations | None = None
    meta: Meta = None


class _Bytes(msgspec.Struct, frozen=True):
    data: bytes = b""
    mime: str = ""


class _Media(_Bytes, frozen=True, kw_only=True):
    url: str | None = None
    alt: str | None = None
    width: int | None = None
    height: int | None = None
    caption: str | None = None
    annotations: Annotations | None = None
    meta: Meta = None

    def __post_init__(self) -> None:
        name = type(self).__name__
        if not isinstance(self.data, bytes):
            msgspec.structs.force_setattr(self, "data", _bytes_of(self.data, name))
        if self.url is not None and self.data:
            raise ValueError(f"{name} needs either data or url, not both")
        if self.url is None and "/" not in self.mime:
            raise ValueError(f"{name} needs a url, or data and a mime such as 'image/png'")

    @classmethod
    def open(cls, path: str | Path, **more: Any) -> Self:
        """Read a file; its media type is guessed from its name."""
        import mimetypes
        from pathlib import Path

        mime = mimetypes.guess_type(str(path))[0]
        if mime is None:
            raise ValueError(f"no media type is known for {str(path)!r}; give data and mime")
        return cls(Path(path).read_bytes(), mime, **more)


def _bytes_of(data: object, name: str) -> bytes:
    """Return the bytes of base64 text, as protocols and many libraries give it."""
    if not isinstance(data, str):
        raise TypeError(f"{name} data must be bytes, not {type(data).__name__}")
    from base64 import b64decode

    try:
        return b64decode(data, validate=True)
    except ValueError:
        raise ValueError(
            f"{name} data is a str that is not base64; give bytes, {name}.open(path) or url="
        ) from None


class Image(_Media, frozen=True):
    """An image: its bytes and media type, or its URL."""


class Audio(_Media, frozen=True):
    """Audio: its bytes and media type, or its URL."""


class _Named(msgspec.Struct, frozen=True):
    uri: str
    name: str


class Link(_Named, frozen=True, kw_only=True):
    """A link to a resource; `kind` is the type of resource ("url", "file", …)."""

    kind: str = "url"
    title: str | None = None
    description: str | None = None
    mime: str | None = None
    metadata: dict[str, Any] | None = None
    annotations: Annotations | None = None
    meta: Meta = None


class Embedded(msgspec.Struct, frozen=True):
    """A resource with its contents: text or blob."""

    uri: str
    text: str | None = None
    blob: bytes | None = None
    mime: str | None = None
    title: str | None = None
    annotations: Annotations | None = None
    meta: Meta = None

    def __post_init__(self) -> None:
        if (self.text is None) == (self.blob is None):
            raise ValueError("Embedded needs either text or blob")
        if self.blob is not None and not isinstance(self.blob, bytes):
            raise TypeError(f"Embedded blob must be bytes, not {type(self.blob).__name__}")


class Icon(msgspec.Struct, frozen=True, omit_defaults=True):
    """An icon of a tool, resource, prompt or app; `src` is an https or data URL."""

    src: str
    mime: str | None = msgspec.field(default=None, name="mimeType")
    sizes: tuple[str, ...] | None = None
    theme: Literal["light", "dark"] | None = None


Block: TypeAlias = Text | Image | Audio | Link | Embedded
BLOCKS = (Text, Image, Audio, Link, Embedded)


def _require_iso_8601(text: str) -> None:
    from datetime import datetime

    try:
        datetime.fromisoformat(text)
    except ValueError:
        raise ValueError(f"lastModified must be ISO 8601, not {text!r}") from None
