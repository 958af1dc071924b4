"""JSON text: what may be read at all.

The depth is bounded by a number of ours, not by how much stack happens to be left.
"""

import re
from typing import Any

import msgspec

from answerback.types.problems import InvalidJson

DEEPEST = 200
_MARKS = re.compile(rb'"(?:[^"\\]|\\.)*+"?|[\[{]|[\]}]', re.DOTALL)


def is_too_deep(raw: bytes) -> bool:
    """Whether the text nests deeper than we read."""
    # The count of all openings bounds the depth and costs next to nothing.
    if raw.count(b"[") + raw.count(b"{") <= DEEPEST:
        return False
    depth = 0
    for mark in _MARKS.finditer(raw):
        first = raw[mark.start()]
        if first in b"[{":
            depth += 1
            if depth > DEEPEST:
                return True
        elif first in b"]}":
            depth -= 1
    return False


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
