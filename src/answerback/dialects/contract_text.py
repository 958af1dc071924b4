"""The texts a contract wants in a reply's content, for its data and for its error."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ..content import Block, Text
from .common import encode, encoded_data

if TYPE_CHECKING:
    from ..contract import Contract, ErrorStyle
    from ..reply import Error, Reply
    from ..shape import Shape

DONE = "Operation completed successfully"
PREFIX = "Error: "


def filled(reply: Reply[Any], shape: Shape, contract: Contract) -> tuple[Block, ...]:
    """The reply's blocks with the text its contract adds; never none.

    Filling what is filled adds nothing, so a reply that was read is written as it was.
    """
    if reply.error is not None:
        return _led_by(error_text(reply.error, contract.error_text), reply.content)
    if reply.data is msgspec.UNSET:
        return reply.content or (Text(DONE),)
    texts = [block.text for block in reply.content if isinstance(block, Text)]
    if texts and contract.text in ("own", "readable"):
        return reply.content
    text = data_text(encoded_data(reply), shape, contract)
    if contract.text == "json_first" or not texts:
        return _led_by(text, reply.content)
    return reply.content if text in texts else (*reply.content, Text(text))


def data_text(encoded: bytes, shape: Shape, contract: Contract) -> str:
    """What data says in words. A string is its own text, unless the contract says JSON."""
    match contract.text:
        case "json_first":
            return shape.wrap(encoded).decode()
        case "indented":
            return msgspec.json.format(shape.wrap(encoded), indent=2).decode()
        case "json":
            # Told by the JSON, not by the value: a date must read the same when it comes back.
            is_text = encoded.startswith(b'"')
            return msgspec.json.decode(encoded) if is_text else shape.wrap(encoded).decode()
        case _:
            return _readable(encoded)


def error_text(error: Error, style: ErrorStyle) -> str:
    match style:
        case "prefixed":
            return PREFIX + error.message
        case "json":
            return encode({"error": error.message}).decode()
        case "coded":
            details = "" if error.details is None else f" ({encode(error.details).decode()})"
            return f"{error.code}: {error.message}{details}"
        case _:
            return error.message


def message_in(text: str, style: ErrorStyle) -> str:
    """The message that *text* tells of, as far as the style lets it be told."""
    match style:
        case "prefixed":
            return text.removeprefix(PREFIX)
        case "json":
            return _member(text, "error") or text
        case _:
            return text


def _led_by(text: str, content: tuple[Block, ...]) -> tuple[Block, ...]:
    first = content[0] if content else None
    return content if isinstance(first, Text) and first.text == text else (Text(text), *content)


def _readable(encoded: bytes) -> str:
    if encoded == b"null":
        return DONE
    from .readable import render

    return render(msgspec.json.decode(encoded)) or DONE


def _member(text: str, name: str) -> str | None:
    try:
        found = msgspec.json.decode(text)
    except ValueError:
        return None
    member = found.get(name) if isinstance(found, dict) else None
    return member if isinstance(member, str) else None
