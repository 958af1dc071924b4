"""Recognises a text that is how a program prints a value that it could not encode."""

from __future__ import annotations

import re

BUFFER_START = '{"type":"Buffer","data":['
"""How the JSON of a Buffer of Node.js begins."""
_MAX_LENGTH = 300
_UNENCODED_VALUE = re.compile(
    r"\[object (?:Object|Promise|Blob|ArrayBuffer|Undefined)\]|undefined"
    r"|<(?:coroutine object|generator object|async_generator object|function|bound method)\b.*>"
    r"|<(?:[\w.]+ )?object at 0x[0-9a-fA-F]+>|<[\w.]+ object at 0x[0-9a-fA-F]+>"
    r"|<Response \[\d{3}\]>|Promise \{.*\}|(?:Embedded|Audio|Image) .*not supported yet\."
)


def is_unencoded(text: str) -> bool:
    """Return whether the whole text is such a value; spaces and line breaks may surround it."""
    return len(text) < _MAX_LENGTH and bool(_UNENCODED_VALUE.fullmatch(text.strip(" \t\r\n")))
