"""Page: a part of a long list, with the cursor for the next part."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


# A base class, because `items` is positional and the other fields are keyword-only: in msgspec,
# all fields of a class are either one or the other.
class _Items(msgspec.Struct, Generic[T], frozen=True):
    items: list[T]
    """The items on this page."""


class Page(_Items[T], Generic[T], frozen=True, kw_only=True):
    """A page of a long list: `return Page(rows, total=7253, next="after row 50")`.

    `next` is any string you choose. Callers receive it signed, and send it back as a `cursor`.
    """

    returned: int = 0
    """How many items this page has; counted automatically."""
    total: int | None = None
    """How many items there are in all; None if unknown."""
    next: str | None = None
    """The cursor for the next page; None on the last one."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "returned", len(self.items))


class StoredPart(msgspec.Struct, frozen=True, array_like=True):
    """The rest of a stored list: its items starting at *offset*."""

    id: str
    """The stored reply's id."""
    path: str
    """Where the list is in the reply, such as "items"."""
    offset: int
    at: int = 0
    """The byte offset, within the reply, of the item at *offset*; 0 if unknown."""
    end: int = 0
    """The byte offset where the list ends."""
    count: int = 0
    """How many items the whole list has."""
