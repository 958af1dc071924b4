"""Merges equal records, and names them by the tool and the members that lead to them.

The names depend on the replies only, not on their order.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Collection, Iterator, Mapping

from .inferred_types import (
    DictOf,
    InferredType,
    ListOf,
    RecordType,
    UnionOf,
)

IMPORTED = frozenset(
    {"Any", "Literal", "NotRequired", "TypedDict", "dataclass", "date", "datetime"}
)
"""The names that a module of types imports."""
TABLE = "REPLY_TYPES"
RESERVED = frozenset({*IMPORTED, *dir(builtins), *keyword.kwlist, TABLE})
_MIN_MERGED = 2
"""Records with fewer members are equal too often by chance."""
_MAX_NAME = 80
_WORDS = re.compile(r"[A-Za-z0-9]+")


def merge_equal(types: Mapping[str, InferredType]) -> dict[str, InferredType]:
    """Return the tools' types, in which equal records are one record."""
    merging = _Merging()
    return {tool: merging.merged(types[tool]) for tool in sorted(types)}


class _Merging:
    def __init__(self) -> None:
        self._known: dict[object, RecordType] = {}
        self._open: list[RecordType] = []
        """The records around the one that is looked at."""

    def merged(self, kind: InferredType) -> InferredType:
        match kind:
            case ListOf(item=item):
                return ListOf(self.merged(item))
            case DictOf(value=value):
                return DictOf(self.merged(value))
            case UnionOf(members=members):
                return UnionOf(tuple(map(self.merged, members)))
            case RecordType() if kind not in self._open:
                return self._merged_record(kind)
        return kind

    def _merged_record(self, record: RecordType) -> RecordType:
        self._open.append(record)
        for member in record.members.values():
            member.kind = self.merged(member.kind)
        self._open.pop()
        if len(record.members) < _MIN_MERGED or self._refers_outward(record):
            return record
        key = frozenset(
            (name, member.is_required, _key(member.kind, record))
            for name, member in record.members.items()
        )
        known = self._known.setdefault(key, record)
        # The replies of two tools have each a type of its own.
        if known is record or not (known.path or record.path):
            return record
        _join(known, record)
        return known

    def _refers_outward(self, record: RecordType) -> bool:
        """Return whether a record has another one, around it, as a part."""
        return any(each in self._open for each in records_in(record))


def _join(known: RecordType, other: RecordType) -> None:
    """Count another record's objects, and take its place if it is nearer to its reply."""
    is_same_tool = known.tool == other.tool
    known.replies = (
        max(known.replies, other.replies) if is_same_tool else known.replies + other.replies
    )
    known.objects += other.objects
    for name, member in other.members.items():
        known.members[name].count += member.count
    if _place(other) < _place(known):
        known.tool, known.path = other.tool, other.path


def _place(record: RecordType) -> tuple[int, str, tuple[str, ...]]:
    return len(record.path), record.tool, record.path


def _key(kind: InferredType, owner: RecordType) -> object:
    """Return a value that is equal for equal types; a record's own name for itself is one."""
    match kind:
        case RecordType():
            return "itself" if kind is owner else id(kind)
        case ListOf(item=item):
            return "list", _key(item, owner)
        case DictOf(value=value):
            return "dict", _key(value, owner)
        case UnionOf(members=members):
            return "union", frozenset(_key(each, owner) for each in members)
    return kind


def records_in(kind: InferredType) -> Iterator[RecordType]:
    """Yield all records of a type, once each: first those that others need."""
    yield from _records(kind, set())


def _records(kind: InferredType, seen: set[int]) -> Iterator[RecordType]:
    match kind:
        case ListOf(item=item):
            yield from _records(item, seen)
        case DictOf(value=value):
            yield from _records(value, seen)
        case UnionOf(members=members):
            for each in members:
                yield from _records(each, seen)
        case RecordType() if id(kind) not in seen:
            seen.add(id(kind))
            for member in kind.members.values():
                yield from _records(member.kind, seen)
            yield kind


def all_records(types: Mapping[str, InferredType]) -> list[RecordType]:
    """Return all records of all tools, once each: first those that others need."""
    seen: set[int] = set()
    return [record for kind in types.values() for record in _records(kind, seen)]


def name_records(types: Mapping[str, InferredType], taken: Collection[str] = ()) -> None:
    """Name the records; *taken* names are those of the module that they are written into."""
    used = {*RESERVED, *taken}
    for record in sorted(all_records(types), key=lambda each: (each.tool, each.path)):
        record.name = _free_name(_wanted_name(record), used)
        used.add(record.name)


def _wanted_name(record: RecordType) -> str:
    words = [record.tool, *(record.path or ("Reply",))]
    name = "".join(map(_camel, words)) or "Reply"
    return (f"Tool{name}" if name[0].isdigit() else name)[:_MAX_NAME]


def _camel(text: str) -> str:
    return "".join(word[0].upper() + word[1:] for word in _WORDS.findall(text))


def _free_name(wanted: str, used: Collection[str]) -> str:
    name, number = wanted, 2
    while name in used:
        name, number = f"{wanted}{number}", number + 1
    return name
