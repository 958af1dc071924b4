"""The HTTP headers that repeat parts of a request since 2026-07-28, for proxies and gateways."""

from __future__ import annotations

import re
from base64 import b64decode, b64encode

NAMED_BY = {
    "tools/call": "name",
    "prompts/get": "name",
    "resources/read": "uri",
    "tasks/get": "taskId",
    "tasks/update": "taskId",
    "tasks/cancel": "taskId",
}
"""The parameter that the header `Mcp-Name` repeats, by method."""
_OPEN, _CLOSE = "=?base64?", "?="
is_plain = re.compile(r"(?!=\?base64\?.*\?=$)(?! )[\x20-\x7e]*(?<! )").fullmatch
"""Matches a value that a header carries as it is; nearly every tool name is one."""


def encode_header(value: str) -> str:
    """Return the header's value, in base64 if a header cannot carry it as it is."""
    if is_plain(value):
        return value
    return f"{_OPEN}{b64encode(value.encode()).decode()}{_CLOSE}"


def decode_header(value: str) -> str:
    """Return the text given to `encode_header`; raises ValueError if its base64 is malformed."""
    if not (value.startswith(_OPEN) and value.endswith(_CLOSE)):
        return value
    return b64decode(value[len(_OPEN) : -len(_CLOSE)], validate=True).decode()
