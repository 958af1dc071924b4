"""Long lists in pages. A cursor is ours to read, and nobody else's."""

from __future__ import annotations

from base64 import urlsafe_b64decode, urlsafe_b64encode
from collections.abc import Sequence
from typing import TypeVar

from .messages import INVALID_PARAMS, RpcError

T = TypeVar("T")

SIZE = 100


def page(items: Sequence[T], cursor: str | None) -> tuple[Sequence[T], str | None]:
    """The items of one page, and the cursor of the next."""
    start = _start(cursor) if cursor else 0
    end = start + SIZE
    return items[start:end], _cursor(end) if end < len(items) else None


def _cursor(start: int) -> str:
    return urlsafe_b64encode(f"from {start}".encode()).decode()


def _start(cursor: str) -> int:
    try:
        word, number = urlsafe_b64decode(cursor.encode()).decode().split(" ")
    except ValueError:
        word, number = "", ""
    if word != "from" or not number.isascii() or not number.isdigit() or len(number) > 9:
        raise RpcError(INVALID_PARAMS, "Invalid cursor")
    return int(number)
