"""Page: a part of a long list, with the cursor of the next part."""

from __future__ import annotations

from typing import Generic, TypeVar

import msgspec

T = TypeVar("T")


# The items are positional, and the others are keyword-only: msgspec decides that for all fields of
# a class.
class _Items(msgspec.Struct, Generic[T], frozen=True):
    items: list[T]
    """The items of this page."""


class Page(_Items[T], Generic[T], frozen=True, kw_only=True):
    """A page of a long list: `return Page(rows, total=7253, next="after row 50")`.

    `next` is your own text. Callers get it signed, and a call with it as `cursor` gets it back.
    """

    returned: int = 0
    """How many items this page has. It is counted here; you need not give it."""
    total: int | None = None
    """How many items there are in all; None if that is not known."""
    next: str | None = None
    """The cursor of the next page; None on the last one."""

    def __post_init__(self) -> None:
        msgspec.structs.force_setattr(self, "returned", len(self.items))


class KeptPart(msgspec.Struct, frozen=True, array_like=True):
    """The rest of a stored list: its items from *offset* on."""

    id: str
    """The stored reply's id."""
    path: str
    """Where the list is in the stored data, such as "items"."""
    offset: int
    at: int = 0
    """The byte of the stored data where the item at *offset* begins; 0 if that is not known."""
    end: int = 0
    """The byte where the list ends."""
    count: int = 0
    """How many items the complete list has."""
