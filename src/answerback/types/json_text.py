"""JSON text: what may be read at all.

The depth is bounded by a number of ours, not by how much stack happens to be left.
"""

import re
from typing import Any

import msgspec

from .problems import InvalidJson

DEEPEST = 200
_BRACKETS = bytes.maketrans(b"{}", b"[]")
_REST = bytes(set(range(256)) - set(b'[]{}"'))
_ESCAPE = re.compile(rb"\\.", re.DOTALL)
_STRING = re.compile(rb'"[^"]*"?')


def is_too_deep(raw: bytes) -> bool:
    """Whether the text nests deeper than we read."""
    # Most is too short to be deep; the count of all openings bounds the rest.
    if len(raw) <= DEEPEST or raw.count(b"[") + raw.count(b"{") <= DEEPEST:
        return False
    marks = _marks(raw)
    # Each round takes away the innermost level, and most of the text in the first few.
    for level in range(DEEPEST):
        fewer = marks.replace(b"[]", b"")
        if len(fewer) == len(marks):
            # What never closes is no JSON, but may be too deep to find that out.
            return level + marks.count(b"[") > DEEPEST
        marks = fewer
    return b"[" in marks


def _marks(raw: bytes) -> bytes:
    """The brackets of the text, without those in its strings."""
    if b"\\" in raw:
        raw = _ESCAPE.sub(b"", raw)
    marks = raw.translate(_BRACKETS, _REST)
    # Quotes side by side hold no bracket, whichever strings they belong to.
    return _STRING.sub(b"", marks.replace(b'""', b""))


def refuse_bad_text(raw: bytes) -> None:
    """Refuse what msgspec would overlook in the values that it skips."""
    if is_too_deep(raw):
        raise InvalidJson(f"JSON is nested deeper than {DEEPEST} levels")
    if not raw.isascii():
        try:
            raw.decode()
        except UnicodeDecodeError as error:
            raise InvalidJson(f"JSON is not UTF-8 (byte {error.start})") from None


def load(raw: bytes) -> Any:
    """Decode any JSON; a number that does not fit is a msgspec.ValidationError."""
    refuse_bad_text(raw)
    try:
        return msgspec.json.decode(raw)
    except msgspec.ValidationError:
        raise
    except msgspec.DecodeError as error:
        raise InvalidJson(str(error)) from None
    except (UnicodeDecodeError, RecursionError) as error:
        raise InvalidJson(f"JSON cannot be read: {type(error).__name__}") from None
