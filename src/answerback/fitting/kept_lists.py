"""Lists in kept wholes: where a list continues, and the items from there on."""

from __future__ import annotations

import msgspec

from ..core.list_page import KeptPart, Page
from .ranges import find

ITEMS = "items"
_items = msgspec.json.Decoder(list[msgspec.Raw])


class _KeptPage(msgspec.Struct):
    items: list[msgspec.Raw]
    total: int | None = None
    next: str | None = None


_pages = msgspec.json.Decoder(_KeptPage)


def kept_list(body: bytes, part: KeptPart) -> list[msgspec.Raw] | Page[msgspec.Raw]:
    """Return the rest of a kept list; in a page if it is a page's."""
    if part.path.endswith(ITEMS):
        return kept_page(body, part)
    return _items.decode(find(body, part.path))[part.offset :]


def kept_page(body: bytes, part: KeptPart) -> Page[msgspec.Raw]:
    """Return a kept page with the rest of its items."""
    page = _pages.decode(find(body, part.path.removesuffix(ITEMS).removesuffix(".")))
    return Page(page.items[part.offset :], total=page.total, next=page.next)
