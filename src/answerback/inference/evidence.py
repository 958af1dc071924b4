"""Counts the values that replies have at each place: their kinds, texts, items and members.

It decides nothing about types. Its size depends on how the replies differ, not on their number.
"""

from __future__ import annotations

import re
from collections.abc import Iterator
from datetime import date, datetime

from ..core.json_value import Json
from ..types.coerce import fits
from ..types.nodes import Scalar

MAX_MEMBERS = 100
"""An object with more different keys is a dict with free keys."""
MAX_PLACES = 100_000
"""After so many places, new ones are not looked into: their type is `Any`."""
MAX_DEPTH = 100
"""Deeper values are not looked into."""
MAX_TEXTS = 8
"""So many different texts of a place are remembered, for a `Literal`."""
_MAX_LENGTH = 40
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DATE_NODE, _DATETIME_NODE = Scalar(date), Scalar(datetime)


class ReplyCounter:
    """Numbers the replies, and bounds the number of places."""

    def __init__(self) -> None:
        self.reply = 0
        self.places = 0
        self.depth = 0
        """The number of arrays and objects around the value that is counted."""

    def take_place(self) -> bool:
        """Return whether one more place may be looked into."""
        self.places += 1
        return self.places <= MAX_PLACES


class Texts:
    """The texts of a place: the values of the first few different ones, and their form."""

    def __init__(self) -> None:
        self.count = 0
        self.values: dict[str, int] | None = {}
        """How often each text occurs; None if there are more than MAX_TEXTS, or long ones."""
        self.are_dates = True
        self.are_datetimes = True

    def add(self, text: str) -> None:
        self.count += 1
        self._remember(text, 1)
        has_date = bool(_DATE.match(text))
        self.are_dates = self.are_dates and has_date and fits(_DATE_NODE, text)
        self.are_datetimes = self.are_datetimes and has_date and fits(_DATETIME_NODE, text)

    def _remember(self, text: str, times: int) -> None:
        if self.values is None:
            return
        self.values[text] = self.values.get(text, 0) + times
        if len(self.values) > MAX_TEXTS or len(text) > _MAX_LENGTH:
            self.values = None

    def merge(self, other: Texts) -> None:
        self.count += other.count
        self.are_dates = self.are_dates and other.are_dates
        self.are_datetimes = self.are_datetimes and other.are_datetimes
        if other.values is None:
            self.values = None
        else:
            for text, times in other.values.items():
                self._remember(text, times)


class Evidence:
    """All values that one tool's replies have at one place."""

    def __init__(self) -> None:
        self.count = 0
        self.replies = 0
        """The number of replies with a value here."""
        self.nulls = self.bools = self.ints = self.floats = 0
        self.texts: Texts | None = None
        self.items: Evidence | None = None
        """The items of all arrays here."""
        self.objects = 0
        self.object_replies = 0
        """The number of replies with an object here."""
        self.members: dict[str, Evidence] | None = None
        """The members of all objects here, by their names in the order of their first use."""
        self.values: Evidence | None = None
        """The members of all objects here, if they have too many names."""
        self.same_as: Evidence | None = None
        """The place around this one that has the same objects, as in a tree."""
        self.is_tree = False
        """Whether another place is the same as this one."""
        self.is_opaque = False
        """Whether a value here was not looked into."""
        self._last_reply = self._last_object_reply = 0

    def add(self, value: Json, counter: ReplyCounter) -> None:
        """Count a value, and what is in it."""
        self.count += 1
        if self._last_reply != counter.reply:
            self._last_reply = counter.reply
            self.replies += 1
        match value:
            case None:
                self.nulls += 1
            case bool():
                self.bools += 1
            case int():
                self.ints += 1
            case float():
                self._add_float(value)
            case str():
                self.texts = self.texts or Texts()
                self.texts.add(value)
            case list() | dict() if counter.depth >= MAX_DEPTH:
                self.is_opaque = True
            case list():
                counter.depth += 1
                self._add_items(value, counter)
                counter.depth -= 1
            case dict():
                counter.depth += 1
                self._add_members(value, counter)
                counter.depth -= 1

    def _add_float(self, number: float) -> None:
        self.floats += 1
        # JSON has no NaN and no infinity: such numbers are sent as null.
        if not float("-inf") < number < float("inf"):
            self.nulls += 1

    def _add_items(self, items: list[Json], counter: ReplyCounter) -> None:
        if self.items is None:
            self.items = Evidence()
            self.is_opaque |= not counter.take_place()
        if not self.is_opaque:
            for item in items:
                self.items.add(item, counter)

    def _add_members(self, found: dict[str, Json], counter: ReplyCounter) -> None:
        self.objects += 1
        if self._last_object_reply != counter.reply:
            self._last_object_reply = counter.reply
            self.object_replies += 1
        if self.members is None:
            self.members = {}
        for name, value in found.items():
            if self.is_opaque:
                return
            self._member(name, counter).add(value, counter)

    def _member(self, name: str, counter: ReplyCounter) -> Evidence:
        if self.values is not None:
            return self.values
        assert self.members is not None
        known = self.members.get(name)
        if known is not None:
            return known
        if len(self.members) >= MAX_MEMBERS:
            self.values = self.merged_values()
            self.members = {}
            return self.values
        self.is_opaque |= not counter.take_place()
        return self.members.setdefault(name, Evidence())

    def merged_values(self) -> Evidence:
        """Return the members' values together, as those of a dict with free keys."""
        if self.values is not None:
            return self.values
        merged = Evidence()
        for member in (self.members or {}).values():
            merged.merge(member)
        return merged

    def merge(self, other: Evidence) -> None:
        """Add what was seen at another place of the same tool."""
        self.count += other.count
        # The same replies may have both; at least so many have one.
        self.replies = max(self.replies, other.replies)
        self.nulls += other.nulls
        self.bools += other.bools
        self.ints += other.ints
        self.floats += other.floats
        self.is_opaque |= other.is_opaque
        self.same_as = self.same_as or other.same_as
        if other.texts is not None:
            self.texts = self.texts or Texts()
            self.texts.merge(other.texts)
        if other.items is not None:
            self.items = self.items or Evidence()
            self.items.merge(other.items)
        self._merge_members(other)

    def _merge_members(self, other: Evidence) -> None:
        self.objects += other.objects
        self.object_replies = max(self.object_replies, other.object_replies)
        if other.members is None:
            return
        if self.members is None:
            self.members = {}
        names = self.members.keys() | other.members.keys()
        if self.values is not None or other.values is not None or len(names) > MAX_MEMBERS:
            values = self.merged_values()
            values.merge(other.merged_values())
            self.members, self.values = {}, values
            return
        for name, member in other.members.items():
            self.members.setdefault(name, Evidence()).merge(member)

    def kinds(self) -> Iterator[str]:
        """Yield the kinds of the values, without null."""
        if self.bools:
            yield "bool"
        if self.ints or self.floats:
            yield "number"
        if self.texts is not None:
            yield "text"
        if self.items is not None:
            yield "array"
        if self.members is not None:
            yield "object"
