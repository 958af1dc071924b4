"""Stored lists: where a list that was cut short continues, and the items from there on."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import TYPE_CHECKING, NamedTuple

import msgspec

from ..core.list_page import Page, StoredPart
from .pieces import FEW, UTF8_BYTES

if TYPE_CHECKING:
    from .reply_store import StoredReplies


ITEMS = "items"
DATA = "data"
"""The member that holds the data if the call's arguments are stored too."""
_STARTS = {ITEMS: b'{"items":[', DATA: b'{"data":[', f"{DATA}.{ITEMS}": b'{"data":{"items":['}
"""How a stored reply's JSON starts, by the path of its list."""
_MORE = 4096
"""How many bytes to read beyond a full page, so that its last item is complete."""
_items = msgspec.json.Decoder(list[msgspec.Raw])
# Only the positions where values end matter, not the values themselves.
_scan = json.JSONDecoder(parse_int=len, parse_float=len).raw_decode


class _StoredPage(msgspec.Struct):
    items: list[msgspec.Raw]
    total: int | None = None
    next: str | None = None


class _StoredCall(msgspec.Struct):
    data: _StoredPage | list[msgspec.Raw]
    arguments: msgspec.Raw = msgspec.Raw()


_pages = msgspec.json.Decoder(_StoredPage)
_calls = msgspec.json.Decoder(_StoredCall)


class StoredList(NamedTuple):
    """Items of a stored list, starting at a given part: all of them, or as many as requested."""

    data: list[msgspec.Raw] | Page[msgspec.Raw]
    arguments: bytes
    """The arguments of the call that returned the list, if they are stored."""


def first_part(id: str, path: str, body: bytes, items: bytes) -> tuple[StoredPart, list[int]]:
    """Return the list at *path* in a reply as a part, and each item's size in bytes."""
    sizes = [memoryview(item).nbytes for item in _items.decode(items)]
    start = _STARTS[path]
    end = len(start) + sum(sizes) + len(sizes) - 1
    # The sizes reveal the items' positions only if the JSON has no spaces.
    at = len(start) if body.startswith(start) and body.startswith(b"],", end) else 0
    return StoredPart(id, path, 0, at, end, len(sizes)), sizes


async def read_page(
    replies: StoredReplies, part: StoredPart, owner: str, room: int | None
) -> Page[msgspec.Raw] | None:
    """Return a stored page, starting at *part*, or None if it is no longer stored.

    The page has all remaining items, or enough to exceed *room* characters.
    """
    if room is None:
        found = await _read(replies, part, owner)
    else:
        # A list with few items is cut differently.
        enough = lambda length, count: length > room and count > FEW  # noqa: E731
        found = await _read(replies, part, owner, room * UTF8_BYTES, enough)
    return found.data if found is not None and isinstance(found.data, Page) else None


async def read_list(
    replies: StoredReplies, part: StoredPart, owner: str, limit: int | None
) -> StoredList | None:
    """Return at least *limit* items of a stored list, or all remaining ones.

    Return None if it is no longer stored.
    """
    if limit is None:
        return await _read(replies, part, owner)
    usual = (part.end - part.at) // max(part.count - part.offset, 1) + 1
    return await _read(replies, part, owner, 2 * limit * usual, lambda _, count: count > limit)


async def _read(
    replies: StoredReplies,
    part: StoredPart,
    owner: str,
    size: int = 0,
    is_enough: Callable[[int, int], bool] | None = None,
) -> StoredList | None:
    """Return a stored list, starting at *part*: all of it, or just enough items.

    Reads only those items, starting with *size* bytes, so that the cost of a page does not depend
    on the list's length. *is_enough* receives the number of characters and the number of items.
    """
    if is_enough is None or not part.at:
        stored = await replies.find(part.id, owner)
        return None if stored is None else _decoded(stored.body, part, part.offset)
    size += _MORE
    while True:
        is_rest = part.at + size >= part.end
        window = slice(part.at, part.end if is_rest else part.at + size)
        stored = await replies.find(part.id, owner, window, slice(part.end, None))
        if stored is None:
            return None
        length = window.stop - window.start
        used = _bytes_of_items(stored.body[:length], is_enough)
        if used is not None or is_rest:
            items = stored.body[: length if used is None else used]
            return _decoded(_STARTS[part.path] + items + stored.body[length:], part)
        size *= 8


def _decoded(body: bytes, part: StoredPart, skipped: int = 0) -> StoredList:
    call = _StoredCall(_pages.decode(body)) if part.path == ITEMS else _calls.decode(body)
    data = call.data
    if isinstance(data, list):
        return StoredList(data[skipped:], bytes(call.arguments))
    page = Page(data.items[skipped:], total=data.total, next=data.next)
    return StoredList(page, bytes(call.arguments))


def _bytes_of_items(window: bytes, is_enough: Callable[[int, int], bool]) -> int | None:
    """Return the byte length of just enough items, or None if the window has too few."""
    text = window.decode(errors="ignore")
    at = count = 0
    try:
        while not is_enough(at, count):
            _, at = _scan(text, at)
            if not text.startswith(",", at):  # The rest of a number may be missing.
                return None
            at, count = at + 1, count + 1
    except (ValueError, RecursionError):
        return None
    return len(text[: at - 1].encode())
