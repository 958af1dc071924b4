"""Decodes base64, and detects the media type of bytes by their magic number."""

from __future__ import annotations

import re
from binascii import Error, a2b_base64

_PNG, _JPEG, _GIF, _WEBP = "image/png", "image/jpeg", "image/gif", "image/webp"
_WAV, _MP3, _OGG, _FLAC = "audio/wav", "audio/mpeg", "audio/ogg", "audio/flac"
_MAGIC = {
    b"\x89PNG\r\n\x1a\n": _PNG,
    b"\xff\xd8\xff": _JPEG,
    b"GIF87a": _GIF,
    b"GIF89a": _GIF,
    b"OggS": _OGG,
    b"fLaC": _FLAC,
    b"ID3": _MP3,
    b"%PDF-": "application/pdf",
}
# Other names for the same media type.
_ALIASES = {
    _JPEG: {"image/jpg", "image/pjpeg"},
    _PNG: {"image/x-png", "image/apng"},
    _WAV: {"audio/x-wav", "audio/wave", "audio/vnd.wave"},
    _MP3: {"audio/mp3", "audio/x-mp3", "audio/x-mpeg"},
    _OGG: {"application/ogg", "audio/opus", "audio/vorbis", "video/ogg"},
    _FLAC: {"audio/x-flac"},
}
MEDIA_TYPE = re.compile(r"[\w!#$&^.+-]+/[\w!#$&^.+-]+(?:\s*;.*)?")
_ANY_BYTES = "application/octet-stream"
_HEAD = 24  # Base64 characters to decode: their 18 bytes cover every magic number above.


def decode_base64(data: str) -> bytes | None:
    """Return the decoded bytes, or None if *data* is not padded base64 in the standard alphabet."""
    try:
        return a2b_base64(data, strict_mode=True)
    except (Error, ValueError):
        return None


def normalized_base64(data: str) -> str | None:
    """Return *data* as standard base64, or None if it is not base64. Line breaks, missing padding
    and the URL-safe alphabet are accepted."""
    text = "".join(data.split()).replace("-", "+").replace("_", "/").rstrip("=")
    text += "=" * (-len(text) % 4)
    return text if decode_base64(text) is not None else None


def detected_media_type(data: str) -> str | None:
    """Return the media type of base64 *data*, if it is listed above."""
    return media_type_of(decode_base64(data[:_HEAD]) or b"")


def media_type_of(head: bytes) -> str | None:
    """Return the media type of the bytes, if it is listed above."""
    if head.startswith(b"RIFF"):
        return {b"WEBP": _WEBP, b"WAVE": _WAV}.get(head[8:12])
    return next((mime for magic, mime in _MAGIC.items() if head.startswith(magic)), None)


def media_types_agree(declared: str, detected: str) -> bool:
    """Return whether the declared type is the detected one, an alias of it, or octet-stream."""
    essence = declared.partition(";")[0].strip().lower()
    return essence in (detected, _ANY_BYTES) or essence in _ALIASES.get(detected, ())


def is_media_type_of(kind: str, mime: str) -> bool:
    """Return whether *mime* is a valid media type for *kind*, "image" or "audio"."""
    if not MEDIA_TYPE.fullmatch(mime):
        return False
    return mime.lower().startswith(f"{kind}/") or mime.lower() == "application/ogg"
