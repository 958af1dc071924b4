"""The text blocks that a contract adds to a reply, for its data or for its error.

It also recognises the text that programs print for values they could not encode.
"""

from __future__ import annotations

import re
from typing import Any

import msgspec

from ..contract import Contract, ErrorStyle
from ..core.content import Block, Text
from ..core.reply import Error, Reply
from ..core.shape import Shape
from ..errors import BUILT_IN, UNKNOWN_ERROR, ToolError
from .common import encode, encoded_data

BUFFER_START = '{"type":"Buffer","data":['
"""The start of a Node.js Buffer's JSON."""
_MAX_LENGTH = 300
_UNENCODED_VALUE = re.compile(
    r"\[object (?:Object|Promise|Blob|ArrayBuffer|Undefined)\]|undefined"
    r"|<(?:coroutine object|generator object|async_generator object|function|bound method)\b.*>"
    r"|<(?:[\w.]+ )?object at 0x[0-9a-fA-F]+>|<[\w.]+ object at 0x[0-9a-fA-F]+>"
    r"|<Response \[\d{3}\]>|Promise \{.*\}|(?:Embedded|Audio|Image) .*not supported yet\."
)


def is_unencoded(text: str) -> bool:
    """Return whether a program printed this text for a value that it could not encode.

    Surrounding whitespace is ignored.
    """
    return len(text) < _MAX_LENGTH and bool(_UNENCODED_VALUE.fullmatch(text.strip(" \t\r\n")))


DONE = "Operation completed successfully"
"""The text for a reply with neither content nor data."""
PREFIX = "Error: "
"""The prefix of the error text with `error_text="prefixed"`."""
HINT_LINE = "\nHint: "
_AUTHORS_CODES = frozenset({UNKNOWN_ERROR, *(each.kind for each in ToolError.__subclasses__())})
"""The codes for authors to use; the others in the table are for failures of the call itself."""


def content_with_text(reply: Reply[Any], shape: Shape, contract: Contract) -> tuple[Block, ...]:
    """Return the reply's blocks with the text that its contract adds; at least one block.

    Text that is already present is not added again, so a reply that was read from a dialect is
    written unchanged.
    """
    if reply.error is not None:
        text = error_text(reply.error, contract.error_text)
        # Programs may parse the text in the other styles.
        has_hint = contract.hint_in_text and contract.error_text in ("message", "prefixed")
        if has_hint and reply.error.hint:
            text += HINT_LINE + reply.error.hint
        return _with_first_text(text, reply.content)
    if reply.data is msgspec.UNSET:
        return reply.content or (Text(DONE),)
    texts = [block.text for block in reply.content if isinstance(block, Text)]
    if texts and not shape.structured:
        return reply.content
    if texts and contract.text in ("own", "readable"):
        return reply.content + _agreeing_text(texts, encoded_data(reply), shape, contract)
    text = data_text(encoded_data(reply), shape, contract)
    if contract.text == "json_first" or not texts:
        return _with_first_text(text, reply.content)
    is_there = text in texts or any(is_same_json(each, text) for each in texts)
    return reply.content if is_there else (*reply.content, Text(text))


def _agreeing_text(
    texts: list[str], encoded: bytes, shape: Shape, contract: Contract
) -> tuple[Block, ...]:
    """Return the data's JSON as a block if a text block is JSON that contradicts the data."""
    if not any(text.lstrip().startswith("{") for text in texts):
        return ()
    # The contract's own text may look like an object, for example if the data is a string.
    if data_text(encoded, shape, contract) in texts:
        return ()
    wrapped = shape.wrap(encoded)
    data = msgspec.json.decode(wrapped)
    found = [each for each in map(json_or_none, texts) if isinstance(each, dict)]
    if not isinstance(data, dict) or data in found:
        return ()
    contradicts = any(
        data[name] != each[name] for each in found for name in each.keys() & data.keys()
    )
    return (Text(wrapped.decode()),) if contradicts else ()


def json_or_none(text: str) -> Any:
    """Decode JSON; return None if the text is not JSON."""
    try:
        return msgspec.json.decode(text)
    except (ValueError, RecursionError):
        return None


def is_same_json(one: str, other: str) -> bool:
    """Return whether the two strings are the same JSON array or object, ignoring whitespace."""
    if not one.lstrip().startswith(("{", "[")) or not other.startswith(("{", "[")):
        return False
    try:
        return bool(msgspec.json.decode(one) == msgspec.json.decode(other))
    except (ValueError, RecursionError):
        return False


def data_text(encoded: bytes, shape: Shape, contract: Contract, *, is_part: bool = False) -> str:
    """Return the text for *encoded* data; a string is used as is where the contract allows it.

    With *is_part*, the data was truncated, so the text does not claim to be complete.
    """
    match contract.text:
        case "json_first":
            return shape.wrap(encoded).decode()
        case "indented":
            return msgspec.json.format(shape.wrap(encoded), indent=2).decode()
        case "json":
            # Go by the JSON, not the Python value: a date is sent as a string.
            is_text = encoded.startswith(b'"')
            return msgspec.json.decode(encoded) if is_text else shape.wrap(encoded).decode()
        case _:
            if encoded in (b"null", b"{}"):
                return DONE
            from .readable import render

            return render(msgspec.json.decode(encoded), is_part=is_part) or DONE


def error_text(error: Error, style: ErrorStyle) -> str:
    match style:
        case "prefixed":
            return PREFIX + error.message
        case "json":
            return encode({"error": error.message}).decode()
        case "coded" if error.code in BUILT_IN and error.code not in _AUTHORS_CODES:
            return error.message
        case "coded":
            details = "" if error.details is None else f" ({encode(error.details).decode()})"
            return f"{error.code}: {error.message}{details}"
        case _:
            return error.message


def message_from_text(text: str, style: ErrorStyle) -> str:
    """Return the error message in *text*, without anything the style added.

    Text in the "coded" style is returned unchanged.
    """
    match style:
        case "prefixed":
            return text.removeprefix(PREFIX)
        case "json":
            try:
                found = msgspec.json.decode(text)
            except ValueError:
                return text
            message = found.get("error") if isinstance(found, dict) else None
            return message if isinstance(message, str) and message else text
        case _:
            return text


def _with_first_text(text: str, content: tuple[Block, ...]) -> tuple[Block, ...]:
    first = content[0] if content else None
    return content if isinstance(first, Text) and first.text == text else (Text(text), *content)
