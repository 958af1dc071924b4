"""Lists in kept wholes: where a list continues, and the items from there on."""

from __future__ import annotations

import json
from typing import TYPE_CHECKING

import msgspec

from ..core.list_page import KeptPart, Page
from .pieces import FEW
from .ranges import find

if TYPE_CHECKING:
    from .wholes import Wholes

ITEMS = "items"
START = b'{"items":['
"""How the JSON of each page begins."""
_BYTES = 4
"""The most bytes of one character in UTF-8."""
_MORE = 4096
"""So many bytes are read beyond those of a full page, so that its last item is whole."""
_items = msgspec.json.Decoder(list[msgspec.Raw])
# The values do not matter, only where they end.
_scan = json.JSONDecoder(parse_int=len, parse_float=len).raw_decode


class _KeptPage(msgspec.Struct):
    items: list[msgspec.Raw]
    total: int | None = None
    next: str | None = None


_pages = msgspec.json.Decoder(_KeptPage)


def kept_list(body: bytes, part: KeptPart) -> list[msgspec.Raw] | Page[msgspec.Raw]:
    """Return the rest of a kept list; in a page if it is a page's."""
    if part.path.endswith(ITEMS):
        return _kept_page(body, part)
    return _items.decode(find(body, part.path))[part.offset :]


def _kept_page(body: bytes, part: KeptPart) -> Page[msgspec.Raw]:
    """Return a kept page with the rest of its items."""
    page = _pages.decode(find(body, part.path.removesuffix(ITEMS).removesuffix(".")))
    return Page(page.items[part.offset :], total=page.total, next=page.next)


async def read_page(
    wholes: Wholes, part: KeptPart, owner: str, room: int | None
) -> Page[msgspec.Raw] | None:
    """Return a kept page from *part* on; None if it is no longer kept.

    It has all the remaining items, or more than fit into *room* characters: only those are read,
    so that the cost of a page does not depend on the length of the list.
    """
    if room is None or not part.at:
        whole = await wholes.find(part.id, owner)
        return None if whole is None else _kept_page(whole.body, part)
    size = room * _BYTES + _MORE
    while True:
        is_rest = part.at + size >= part.end
        window = slice(part.at, part.end if is_rest else part.at + size)
        whole = await wholes.find(part.id, owner, window, slice(part.end, None))
        if whole is None:
            return None
        length = window.stop - window.start
        used = _bytes_of_items(whole.body[:length], room)
        if used is not None or is_rest:
            items = whole.body[: length if used is None else used]
            page = _pages.decode(START + items + whole.body[length:])
            return Page(page.items, total=page.total, next=page.next)
        size *= 8


def _bytes_of_items(window: bytes, room: int) -> int | None:
    """Return how long the first items are that exceed *room*; None if the window ends before."""
    text = window.decode(errors="ignore")
    at = count = 0
    try:
        # A list of few items is cut in another way.
        while at <= room or count <= FEW:
            _, at = _scan(text, at)
            if not text.startswith(",", at):  # The rest of a number may be missing.
                return None
            at, count = at + 1, count + 1
    except (ValueError, RecursionError):
        return None
    return len(text[: at - 1].encode())
