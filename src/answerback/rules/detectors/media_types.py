"""Which sort of file some bytes are, told by how they begin."""

from __future__ import annotations

from binascii import Error, a2b_base64

_PNG, _JPEG, _GIF, _WEBP = "image/png", "image/jpeg", "image/gif", "image/webp"
_WAV, _MP3, _OGG, _FLAC, _PDF = (
    "audio/wav",
    "audio/mpeg",
    "audio/ogg",
    "audio/flac",
    "application/pdf",
)
_MAGIC = {
    b"\x89PNG\r\n\x1a\n": _PNG,
    b"\xff\xd8\xff": _JPEG,
    b"GIF87a": _GIF,
    b"GIF89a": _GIF,
    b"OggS": _OGG,
    b"fLaC": _FLAC,
    b"ID3": _MP3,
    b"%PDF-": _PDF,
}
# Names in use for the same thing, and what says nothing about it.
_ALIASES = {
    _JPEG: {"image/jpg", "image/pjpeg"},
    _PNG: {"image/x-png", "image/apng"},
    _WAV: {"audio/x-wav", "audio/wave", "audio/vnd.wave"},
    _MP3: {"audio/mp3", "audio/x-mp3", "audio/x-mpeg"},
    _OGG: {"application/ogg", "audio/opus", "audio/vorbis", "video/ogg"},
    _FLAC: {"audio/x-flac"},
}
_SAYS_NOTHING = "application/octet-stream"
_HEAD = 24  # Characters of base64 whose 18 bytes tell every sort above.


def decoded(data: str) -> bytes | None:
    """The bytes of base64, or none if it is not base64 as MCP has it."""
    try:
        return a2b_base64(data, strict_mode=True)
    except (Error, ValueError):
        return None


def mended(data: str) -> str | None:
    """The same bytes in proper base64, where only its form is out of order."""
    text = "".join(data.split()).replace("-", "+").replace("_", "/").rstrip("=")
    text += "=" * (-len(text) % 4)
    return text if decoded(text) is not None else None


def sort_of(data: str) -> str | None:
    """The media type that the bytes of some base64 show, if they show any."""
    head = decoded(data[:_HEAD]) or b""
    if head.startswith(b"RIFF"):
        return {b"WEBP": _WEBP, b"WAVE": _WAV}.get(head[8:12])
    return next((mime for magic, mime in _MAGIC.items() if head.startswith(magic)), None)


def agrees(mime: str, sort: str) -> bool:
    """Whether a declared media type can be that of bytes of this sort."""
    essence = mime.partition(";")[0].strip().lower()
    return essence in (sort, _SAYS_NOTHING) or essence in _ALIASES.get(sort, ())
