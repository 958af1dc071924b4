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
_RUN = re.compile(rb"\[+|\]+")


def is_too_deep(raw: bytes) -> bool:
    """Whether the text nests deeper than we read; takes time linear in its length."""
    # Most is too short to be deep; the count of all openings bounds the rest.
    if len(raw) <= DEEPEST or raw.count(b"[") + raw.count(b"{") <= DEEPEST:
        return False
    marks, levels = _marks(raw), 0
    # A round removes the innermost level. What is left when a round would remove little
    # has few runs of equal brackets for its length.
    while len(fewer := marks.replace(b"[]", b"")) * 16 < len(marks) * 15:
        marks, levels = fewer, levels + 1
    return _is_deeper(marks, DEEPEST - levels)


def _is_deeper(marks: bytes, most: int) -> bool:
    depth = 0
    for run in _RUN.finditer(marks):
        start, end = run.span()
        if marks.startswith(b"[", start):
            depth += end - start
            if depth > most:
                return True
        else:
            depth -= end - start
    return False


def _marks(raw: bytes) -> bytes:
    """The brackets of the text, without those in its strings."""
    if b"\\" in raw:
        # Pairs first: what then still stands before a quote escapes it.
        raw = raw.replace(b"\\\\", b"").replace(b'\\"', b"")
    marks = raw.translate(_BRACKETS, _REST)
    # Quotes side by side hold no bracket, whichever strings they belong to.
    return b"".join(marks.replace(b'""', b"").split(b'"')[::2])


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
