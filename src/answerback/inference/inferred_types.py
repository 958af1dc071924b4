"""Decides which type fits all values of a place, from the evidence.

A type is a tree of the classes here. Every value that was counted fits it.
"""

from __future__ import annotations

import re
from typing import TypeAlias

import msgspec

from .evidence import Evidence, Texts

MIN_DATES = 3
"""A place has dates if it has at least so many texts, and all of them are dates."""
MIN_LITERAL_VALUES = 20
"""A place is a `Literal` if it has at least so many texts,"""
MIN_LITERAL_REPLIES = 5
"""from at least so many replies,"""
MIN_LITERAL_USES = 3
"""each of which occurs at least so often. `evidence.MAX_TEXTS` bounds how many may differ."""
MIN_VARYING_KEYS = 6
"""Objects whose keys differ from object to object are dicts if they have so many keys in all."""
MAX_NESTED = 12
"""Deeper objects and arrays are `Any`."""
_MIN_TREE_MEMBERS = 2
_WORD = re.compile(r"[A-Za-z][\w./+-]*", re.ASCII)
_FREE_KEY = re.compile(
    r"-?\d+"
    r"|\d{4}-\d\d(-\d\d.*)?"
    r"|(?=[a-f\-]*\d)[0-9a-f-]{8,}"
    r"|.*[/\\@:.].*",
    re.IGNORECASE | re.DOTALL,
)
"""Keys that are data: numbers, dates, hashes and UUIDs, paths, file names, addresses."""


class Plain(msgspec.Struct, frozen=True):
    """A type with a name: `str`, `int`, `float`, `bool`, `None`, `date`, `datetime`, `Any`."""

    name: str


class LiteralOf(msgspec.Struct, frozen=True):
    values: tuple[str, ...]


class ListOf(msgspec.Struct, frozen=True):
    item: InferredType


class DictOf(msgspec.Struct, frozen=True):
    value: InferredType


class UnionOf(msgspec.Struct, frozen=True):
    members: tuple[InferredType, ...]


class Member(msgspec.Struct):
    """A member of a record, and how many of the record's objects have it."""

    kind: InferredType
    count: int
    is_required: bool
    is_always_null: bool = False


class RecordType(msgspec.Struct, eq=False):
    """Objects with the same members; two of them are equal if they are one."""

    tool: str
    path: tuple[str, ...]
    """The names of the members that lead here, `Item` for an array and `Value` for a dict."""
    objects: int
    replies: int
    members: dict[str, Member] = {}
    name: str = ""


InferredType: TypeAlias = Plain | LiteralOf | ListOf | DictOf | UnionOf | RecordType
ANY, NONE, TEXT = Plain("Any"), Plain("None"), Plain("str")


def infer_type(tool: str, evidence: Evidence) -> InferredType:
    """Return the type of a tool's data; a reply that is only a text is `str`."""
    return _Inference(tool).type_of(evidence, (), is_whole_reply=True)


class _Inference:
    """The inference for one tool; it knows the records around a place, which may be recursive."""

    def __init__(self, tool: str) -> None:
        self._tool = tool
        self._open: dict[int, RecordType] = {}
        """The records whose members are being worked out, by the id of their evidence."""

    def type_of(
        self, evidence: Evidence, path: tuple[str, ...], *, is_whole_reply: bool = False
    ) -> InferredType:
        if evidence.is_opaque:
            return ANY
        members: list[InferredType] = []
        if evidence.bools:
            members.append(Plain("bool"))
        if evidence.ints or evidence.floats:
            members.append(Plain("float" if evidence.floats else "int"))
        if evidence.texts is not None:
            members.append(TEXT if is_whole_reply else _text_type(evidence.texts, evidence.replies))
        if evidence.items is not None:
            members.append(self._list(evidence.items, path))
        objects = evidence if evidence.same_as is None else evidence.same_as
        if objects.members is not None:
            members.append(self._object(objects, path))
        if evidence.nulls:
            members.append(NONE)
        if not members or ANY in members:
            return ANY
        return members[0] if len(members) == 1 else UnionOf(tuple(members))

    def _list(self, items: Evidence, path: tuple[str, ...]) -> InferredType:
        if len(path) >= MAX_NESTED:
            return ANY
        return ListOf(self._known(items, (*path, "Item")))

    def _known(self, evidence: Evidence, path: tuple[str, ...]) -> InferredType:
        """Return a place's type; `Any` for one that only had nulls."""
        found = self.type_of(evidence, path)
        return ANY if found == NONE else found

    def _object(self, evidence: Evidence, path: tuple[str, ...]) -> InferredType:
        if (known := self._open.get(id(evidence))) is not None:
            return known
        if len(path) >= MAX_NESTED:
            return ANY
        if not evidence.is_tree and has_free_keys(evidence):
            return DictOf(self._known(evidence.merged_values(), (*path, "Value")))
        fold_recursion(evidence)
        if evidence.values is not None:
            # The branches of the tree have too many different members.
            return DictOf(ANY)
        record = RecordType(self._tool, path, evidence.objects, evidence.object_replies, {})
        self._open[id(evidence)] = record
        for name, member in (evidence.members or {}).items():
            kind = self.type_of(member, (*path, name))
            is_required = member.count == evidence.objects
            if kind == NONE:
                record.members[name] = Member(ANY, member.count, is_required, is_always_null=True)
            else:
                record.members[name] = Member(kind, member.count, is_required)
        del self._open[id(evidence)]
        return record


def _text_type(texts: Texts, replies: int) -> InferredType:
    if texts.count >= MIN_DATES and texts.are_dates:
        return Plain("date")
    if texts.count >= MIN_DATES and texts.are_datetimes:
        return Plain("datetime")
    if _is_enumeration(texts, replies):
        return LiteralOf(tuple(sorted(texts.values or ())))
    return TEXT


def _is_enumeration(texts: Texts, replies: int) -> bool:
    """Return whether the evidence is strong that there are no other values than those seen."""
    values = texts.values
    if values is None or len(values) < 2:
        return False
    if texts.count < MIN_LITERAL_VALUES or replies < MIN_LITERAL_REPLIES:
        return False
    return all(
        times >= MIN_LITERAL_USES and _WORD.fullmatch(text) for text, times in values.items()
    )


def _can_be_name(key: str) -> bool:
    return bool(key) and key.isprintable() and not {'"', "\\"} & set(key)


def has_free_keys(evidence: Evidence) -> bool:
    """Return whether the objects are dicts whose keys are data, not records with named members."""
    if evidence.values is not None or not evidence.members:
        return True
    names = evidence.members
    if not all(map(_can_be_name, names)):
        return True
    free = sum(bool(_FREE_KEY.fullmatch(name)) for name in names)
    if free * 3 >= len(names) * 2:
        return True
    is_varying = len(names) >= MIN_VARYING_KEYS and all(
        member.count * 2 <= evidence.objects for member in names.values()
    )
    return is_varying and len(set(evidence.merged_values().kinds())) == 1


def fold_recursion(evidence: Evidence) -> None:
    """Count the branches of a tree at its root; `same_as` then leads back to the root."""
    is_changed = True
    while is_changed:
        # Folding one member adds the branches of others, such as those of `left` and `right`.
        is_changed = any(_fold(evidence, name) for name in list(evidence.members or ()))


def _fold(root: Evidence, name: str) -> bool:
    """Move a member's objects to the root if they are like it; return whether they are."""
    members = root.members or {}
    place = _place_of_objects(members[name])
    if place is None or place.members is None or place.values is not None:
        return False
    is_known = place.same_as is root
    if not is_known and not _is_like(root, place.members, name):
        return False
    branch = Evidence()
    branch.members, branch.objects = place.members, place.objects
    place.members, place.objects, place.same_as = None, 0, root
    root.is_tree = True
    root.merge(branch)
    return True


def _place_of_objects(member: Evidence) -> Evidence | None:
    """Return where a member has objects: it is one, or its items are."""
    if member.members is not None:
        return member
    return member.items


def _is_like(root: Evidence, members: dict[str, Evidence], name: str) -> bool:
    known = (root.members or {}).keys()
    return name in members and len(members) >= _MIN_TREE_MEMBERS and members.keys() <= known
