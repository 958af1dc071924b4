"""Cut pages: a `Page` that is too large ends earlier, and its `next` continues it."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import NamedTuple

import msgspec

from ..core.list_page import KeptPart
from ..core.reply import Cut
from .kept_lists import ITEMS, first_part, part_after
from .reply_store import PREFIX

_members = msgspec.json.Decoder(dict[str, msgspec.Raw])
_encode = msgspec.json.Encoder().encode


class Paging(NamedTuple):
    """How the call's page continues."""

    part: KeptPart | None
    """The kept part that the page begins with; None if the tool has just returned it."""
    cursor: Callable[[KeptPart], str]
    """Returns the cursor that continues at a part."""
    sizes: Sequence[int] = ()
    """The bytes of each kept item from the part on; empty for a stored reply."""


def items_cut(cuts: list[Cut]) -> Cut | None:
    """Return the cut of a page's items."""
    return next((cut for cut in cuts if cut.path == ITEMS), None)


class _Counts(msgspec.Struct):
    total: int | None = None
    next: str | None = None


_counts = msgspec.json.Decoder(_Counts)


def items_in_all(page: bytes, cut: Cut) -> int | None:
    """Return how many items all pages have together; None if *page* does not say it."""
    counts = _counts.decode(page)
    is_whole = counts.total is None and counts.next is None
    return cut.total if is_whole else counts.total


def first_page(whole: bytes, uri: str | None, paging: Paging) -> Paging:
    """Return how a page continues that the tool has just returned; *whole* is kept at *uri*."""
    if uri is None:
        return paging
    items = _members.decode(whole)[ITEMS]
    part, sizes = first_part(uri.removeprefix(PREFIX), ITEMS, whole, bytes(items))
    return paging._replace(part=part, sizes=sizes)


def shortened(encoded: bytes, cut: Cut, paging: Paging) -> bytes:
    """Return the JSON of a page that has lost items, with the cursor for them."""
    following, part = None, paging.part
    if part is not None:
        following = paging.cursor(part_after(part, cut.returned, paging.sizes))
    page = _members.decode(encoded)
    return _encode(page | {"returned": cut.returned, "next": following})


def path_in_whole(path: str, part: KeptPart | None) -> str:
    """Return where something in a page is in the whole that the page comes from."""
    if part is None or not path.startswith(f"{ITEMS}."):
        return path
    index, dot, below = path.removeprefix(f"{ITEMS}.").partition(".")
    return f"{part.path}.{int(index) + part.offset}{dot}{below}"
