"""Infers the types of replies from the values at each place, and writes them as Python.

A type is a tree of the classes below, and every value seen fits it. Memory use depends on how
much the replies differ, not on how many there are.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Collection, Iterator, Sequence
from datetime import date, datetime
from math import isfinite
from typing import TypeAlias

import msgspec

from ..core.json_value import Json
from ..types.coerce import fits
from ..types.nodes import Scalar
from ..types.problems import counted
from .recorded_replies import RecordedReply

MAX_MEMBERS = 100
"""Objects with more distinct keys than this are dicts with arbitrary keys."""
MAX_PLACES = 100_000
"""After this many places, new ones are not examined, and their type is `Any`."""
MAX_DEPTH = 100
"""Deeper values are not examined."""
MAX_NESTED = 12
"""Deeper objects and arrays are `Any`."""
MIN_DATES = 3
"""A place holds dates if it has at least this many strings and all of them are dates."""
MAX_TEXTS = 8
"""A place is a `Literal` if it has at most this many distinct strings,"""
MIN_LITERAL_VALUES = 20
"""and at least this many in total,"""
MIN_LITERAL_REPLIES = 5
"""from at least this many replies,"""
MIN_LITERAL_USES = 3
"""each occurring at least this many times."""
MIN_VARYING_KEYS = 6
"""Objects with varying keys are dicts if they have at least this many keys in total."""
_MAX_WORD = 40
_MIN_TREE_MEMBERS = 2
_MIN_MERGED = 2
"""Records with fewer members are too likely to be equal by chance."""
_DATE = re.compile(r"\d{4}-\d\d-\d\d")
_DATE_NODE, _DATETIME_NODE = Scalar(date), Scalar(datetime)
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
    """A named type: `str`, `int`, `float`, `bool`, `None`, `date`, `datetime`, `Any`."""

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
    """A type for objects with the same members; compared by identity."""

    path: tuple[str, ...]
    """The tool, and the names of the members that lead here, with `Item` for an array and `Value`
    for a dict."""
    objects: int
    replies: int
    members: dict[str, Member]
    name: str = ""


InferredType: TypeAlias = Plain | LiteralOf | ListOf | DictOf | UnionOf | RecordType
ANY, NONE, TEXT = Plain("Any"), Plain("None"), Plain("str")


class ToolType(msgspec.Struct):
    """A tool's reply type, and the number of replies that it was inferred from."""

    tool: str
    kind: InferredType
    replies: int


class SeenReplies:
    """Evidence from all tools' replies; numbers the replies and limits the number of places."""

    def __init__(self) -> None:
        self.tools: dict[str, Evidence] = {}
        self.content: set[str] = set()
        """The tools with replies that have only content, such as an image."""
        self.reply = 0
        self.depth = 0
        """The number of arrays and objects around the value being counted."""
        self._places = 0

    def add(self, recorded: RecordedReply) -> None:
        """Count a reply; once there are too many tools, replies from new ones are ignored."""
        if recorded.tool not in self.tools:
            if not self.take_place():
                return
            self.tools[recorded.tool] = Evidence()
        match recorded.data.kind:
            case "data":
                self.reply += 1
                self.tools[recorded.tool].add(recorded.data.value, self)
            case "content":
                self.content.add(recorded.tool)

    def take_place(self) -> bool:
        """Count one more place; return whether it may be examined."""
        self._places += 1
        return self._places <= MAX_PLACES

    def types(self) -> list[ToolType]:
        """Return the types of the tools that returned data, sorted by name."""
        inference = _Inference()
        return [
            ToolType(tool, inference.type_of(evidence, (tool,)), evidence.count)
            for tool, evidence in sorted(self.tools.items())
            if evidence.count
        ]


class Texts:
    """The strings at a place: the first few distinct values, and their format."""

    def __init__(self) -> None:
        self.count = 0
        self.values: dict[str, int] | None = {}
        """How many times each string occurs; None if there are too many or one is long."""
        self.are_dates = True
        self.are_datetimes = True

    def add(self, text: str) -> None:
        self.count += 1
        self._remember(text, 1)
        has_date = bool(_DATE.match(text))
        self.are_dates = self.are_dates and has_date and fits(_DATE_NODE, text)
        self.are_datetimes = self.are_datetimes and has_date and fits(_DATETIME_NODE, text)

    def merge(self, other: Texts) -> None:
        self.count += other.count
        self.are_dates = self.are_dates and other.are_dates
        self.are_datetimes = self.are_datetimes and other.are_datetimes
        if other.values is None:
            self.values = None
        else:
            for text, times in other.values.items():
                self._remember(text, times)

    def _remember(self, text: str, times: int) -> None:
        if self.values is not None:
            self.values[text] = self.values.get(text, 0) + times
            if len(self.values) > MAX_TEXTS or len(text) > _MAX_WORD:
                self.values = None


class Evidence:
    """All values found at one place in one tool's replies."""

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
        """The members of all objects here, by name, in order of first appearance."""
        self.values: Evidence | None = None
        """The members of all objects here, merged, if they have too many names."""
        self.same_as: Evidence | None = None
        """The enclosing place that has the same objects, as in a tree."""
        self.is_tree = False
        """Whether another place is the same as this one."""
        self.is_opaque = False
        """Whether a value here was not examined."""
        self._last_reply = self._last_object_reply = 0

    def add(self, value: Json, seen: SeenReplies) -> None:
        """Count a value and everything inside it."""
        self.count += 1
        if self._last_reply != seen.reply:
            self._last_reply = seen.reply
            self.replies += 1
        match value:
            case None:
                self.nulls += 1
            case bool():
                self.bools += 1
            case int():
                self.ints += 1
            case float():
                self.floats += 1
                # JSON has no NaN or infinity: such numbers are sent as null.
                self.nulls += not isfinite(value)
            case str():
                self.texts = self.texts or Texts()
                self.texts.add(value)
            case list() | dict() if seen.depth >= MAX_DEPTH:
                self.is_opaque = True
            case list() | dict():
                seen.depth += 1
                self._add_parts(value, seen)
                seen.depth -= 1

    def _add_parts(self, value: list[Json] | dict[str, Json], seen: SeenReplies) -> None:
        if isinstance(value, list):
            if self.items is None:
                self.items = Evidence()
                self.is_opaque |= not seen.take_place()
            for item in () if self.is_opaque else value:
                self.items.add(item, seen)
            return
        self.objects += 1
        if self._last_object_reply != seen.reply:
            self._last_object_reply = seen.reply
            self.object_replies += 1
        if self.members is None:
            self.members = {}
        for name, member in value.items():
            if self.is_opaque:
                return
            if self.values is None and name not in self.members:
                if len(self.members) >= MAX_MEMBERS:
                    self.members, self.values = {}, self.merged_values()
                else:
                    self.members[name] = Evidence()
                    self.is_opaque |= not seen.take_place()
            place = self.members[name] if self.values is None else self.values
            place.add(member, seen)

    def merged_values(self) -> Evidence:
        """Return the merged values of all members, as for a dict with arbitrary keys."""
        if self.values is not None:
            return self.values
        merged = Evidence()
        for member in (self.members or {}).values():
            merged.merge(member)
        return merged

    def merge(self, other: Evidence) -> None:
        """Add the values seen at another place in the same tool's replies."""
        self.count += other.count
        # The same reply may have a value at both places, so take the larger count.
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


class _Inference:
    """Infers the types of all tools, and merges equal records."""

    def __init__(self) -> None:
        self._open: dict[int, RecordType] = {}
        """The records being built, which may be recursive, by the ids of their evidence."""
        self._known: dict[object, RecordType] = {}

    def type_of(self, evidence: Evidence, path: tuple[str, ...]) -> InferredType:
        if evidence.is_opaque or (evidence.items is not None and len(path) > MAX_NESTED):
            return ANY
        members: list[InferredType] = []
        if evidence.bools:
            members.append(Plain("bool"))
        if evidence.ints or evidence.floats:
            members.append(Plain("float" if evidence.floats else "int"))
        if evidence.texts is not None:
            is_reply = len(path) == 1
            members.append(TEXT if is_reply else _text_type(evidence.texts, evidence.replies))
        if evidence.items is not None:
            members.append(ListOf(self.type_of(evidence.items, (*path, "Item"))))
        objects = evidence if evidence.same_as is None else evidence.same_as
        if objects.members is not None:
            members.append(self._type_of_objects(objects, path))
        if evidence.nulls:
            members.append(NONE)
        # A nested value that was always null could be anything; an entire reply may really be null.
        is_unknown = not members or (members == [NONE] and len(path) > 1)
        if is_unknown or ANY in members:
            return ANY
        return members[0] if len(members) == 1 else UnionOf(tuple(members))

    def _type_of_objects(self, evidence: Evidence, path: tuple[str, ...]) -> InferredType:
        if (known := self._open.get(id(evidence))) is not None:
            return known
        if len(path) > MAX_NESTED:
            return ANY
        if not evidence.is_tree and _has_free_keys(evidence):
            return DictOf(self.type_of(evidence.merged_values(), (*path, "Value")))
        # Folding one member can add branches to others, as with `left` and `right`.
        while any(_fold(evidence, name) for name in list(evidence.members or ())):
            pass
        if evidence.values is not None:
            # The branches of the tree have too many distinct members.
            return DictOf(ANY)
        record = RecordType(path, evidence.objects, evidence.object_replies, {})
        self._open[id(evidence)] = record
        for name, member in (evidence.members or {}).items():
            record.members[name] = Member(
                self.type_of(member, (*path, name)),
                member.count,
                is_required=member.count == evidence.objects,
                is_always_null=member.nulls == member.count and not member.floats,
            )
        del self._open[id(evidence)]
        return self._merged(record)

    def _merged(self, record: RecordType) -> RecordType:
        """Return an equal known record, with this one's objects added; otherwise this one."""
        is_part_of_tree = any(each in self._open.values() for each in records_in(record, set()))
        if len(record.members) < _MIN_MERGED or is_part_of_tree:
            return record
        key = frozenset(
            (name, member.is_required, _key(member.kind, record))
            for name, member in record.members.items()
        )
        known = self._known.setdefault(key, record)
        # Two tools' replies are separate types, even if they are equal.
        if known is record or len(known.path) == len(record.path) == 1:
            return record
        both = known.replies, record.replies
        # The same reply may contain both.
        known.replies = max(both) if known.path[0] == record.path[0] else sum(both)
        known.objects += record.objects
        for name, member in record.members.items():
            known.members[name].count += member.count
        # The merged record is named after the place closer to the reply's root.
        known.path = min(known.path, record.path, key=lambda path: (len(path), path))
        return known


def _key(kind: InferredType, owner: RecordType) -> object:
    """Return a value that is equal for equal types, even if they contain *owner* itself."""
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


def records_in(kind: InferredType, seen: set[RecordType]) -> Iterator[RecordType]:
    """Yield the records in a type that have not been *seen*, dependencies first."""
    match kind:
        case ListOf(item=item):
            yield from records_in(item, seen)
        case DictOf(value=value):
            yield from records_in(value, seen)
        case UnionOf(members=members):
            for each in members:
                yield from records_in(each, seen)
        case RecordType() if kind not in seen:
            seen.add(kind)
            for member in kind.members.values():
                yield from records_in(member.kind, seen)
            yield kind


def _text_type(texts: Texts, replies: int) -> InferredType:
    if texts.count >= MIN_DATES and texts.are_dates:
        return Plain("date")
    if texts.count >= MIN_DATES and texts.are_datetimes:
        return Plain("datetime")
    # A `Literal` needs strong evidence that there are no values other than those seen.
    values = texts.values or {}
    is_frequent = texts.count >= MIN_LITERAL_VALUES and replies >= MIN_LITERAL_REPLIES
    is_each_frequent = len(values) > 1 and min(values.values()) >= MIN_LITERAL_USES
    if is_frequent and is_each_frequent and all(map(_WORD.fullmatch, values)):
        return LiteralOf(tuple(sorted(values)))
    return TEXT


def _has_free_keys(evidence: Evidence) -> bool:
    """Return whether the objects are dicts whose keys are data, not records with named members."""
    names = evidence.members
    if evidence.values is not None or not names:
        return True
    if not all(name and name.isprintable() and not {'"', "\\"} & set(name) for name in names):
        return True
    free = sum(bool(_FREE_KEY.fullmatch(name)) for name in names)
    if free * 3 >= len(names) * 2:
        return True
    most = max(member.count for member in names.values())
    if len(names) < MIN_VARYING_KEYS or most * 2 > evidence.objects:
        return False
    values = evidence.merged_values()
    numbers = values.ints + values.floats
    kinds = (values.bools, numbers, values.texts, values.items, values.objects)
    return sum(map(bool, kinds)) == 1


def _fold(root: Evidence, name: str) -> bool:
    """Merge a member's objects into the root if they look like it, as the branches of a tree do.

    `same_as` then points back to the root. Return whether the objects look alike.
    """
    known = root.members or {}
    member = known[name]
    place = member if member.members is not None else member.items
    if place is None or place.members is None or place.values is not None:
        return False
    names = place.members.keys()
    is_like = name in names and len(names) >= _MIN_TREE_MEMBERS and names <= known.keys()
    if place.same_as is not root and not is_like:
        return False
    branch = Evidence()
    branch.members, branch.objects = place.members, place.objects
    place.members, place.objects, place.same_as = None, 0, root
    root.is_tree = True
    root.merge(branch)
    return True


_HEAD = '"""Reply types, inferred from recorded replies by `answerback types`."""'
_TABLE = "REPLY_TYPES"
_IMPORTS = {
    "dataclasses": ("dataclass",),
    "datetime": ("date", "datetime"),
    "typing": ("Any", "Literal", "NotRequired", "TypedDict"),
}
_IMPORTED = frozenset(name for names in _IMPORTS.values() for name in names)
_RESERVED = frozenset({*_IMPORTED, *dir(builtins), *keyword.kwlist, _TABLE})
# A field with one of these names would hide the type from later annotations; a dataclass would use
# `type.mro` as the default for `mro`.
_HIDING = frozenset(
    {"bool", "dict", "float", "int", "list", "mro", "str", *_IMPORTED, *keyword.kwlist}
)
_MAX_NAME = 80
_WORDS = re.compile(r"[A-Za-z0-9]+")
# Strings are not names: `"date"` needs no import.
_NAME_OR_TEXT = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|#.*|\b[A-Za-z]\w*""")


def module_source(tools: Sequence[ToolType], *, dataclasses: bool = False) -> str:
    """Name the records, and return a module with the types and a table that maps tools to them."""
    seen: set[RecordType] = set()
    records = [record for each in tools for record in records_in(each.kind, seen)]
    _name_records(records)
    # A member with the same name would hide a class from later annotations.
    classes = {record.name for record in records}
    written: set[str] = set()
    parts = []
    for record in records:
        parts.append(_definition(record, written, classes, dataclasses=dataclasses))
        written.add(record.name)
    rows = (
        f"    {_quoted(each.tool)}: {_annotation(each.kind)},"
        f"  # {counted(each.replies, 'reply', 'replies')}\n"
        for each in tools
    )
    parts.append(f"{_TABLE}: dict[str, Any] = {{\n{''.join(rows)}}}")
    used = {name for part in parts for name in _NAME_OR_TEXT.findall(part)}
    imports = []
    for module, names in _IMPORTS.items():
        if found := [name for name in names if name in used]:
            imports.append(f"from {module} import {', '.join(found)}")
    return "\n\n\n".join([f"{_HEAD}\n\n" + "\n".join(imports), *parts]) + "\n"


def _name_records(records: Sequence[RecordType]) -> None:
    """Name each record after its tool and the members that lead to it."""
    used = set(_RESERVED)
    for record in sorted(records, key=lambda each: each.path):
        tool, *path = record.path
        words = _WORDS.findall(" ".join([tool, *(path or ["Reply"])]))
        name = "".join(word[0].upper() + word[1:] for word in words) or "Reply"
        wanted = (f"Tool{name}" if name[0].isdigit() else name)[:_MAX_NAME]
        record.name, number = wanted, 2
        while record.name in used:
            record.name, number = f"{wanted}{number}", number + 1
        used.add(record.name)


def _annotation(kind: InferredType, defined: Collection[str] | None = None) -> str:
    """Return a type as written in an annotation; a class that is not *defined* is quoted."""
    match kind:
        case Plain(name=name):
            return name
        case LiteralOf(values=values):
            return f"Literal[{', '.join(map(_quoted, values))}]"
        case ListOf(item=item):
            return f"list[{_annotation(item, defined)}]"
        case DictOf(value=value):
            return f"dict[str, {_annotation(value, defined)}]"
        case UnionOf(members=members):
            texts = [_annotation(each, defined) for each in members]
            if not any(text.startswith('"') for text in texts):
                return " | ".join(texts)
            # `"Node" | None` is an error at run time, so the whole annotation is quoted.
            return _quoted(" | ".join(_annotation(each) for each in members))
        case RecordType(name=name):
            return name if defined is None or name in defined else _quoted(name)


def _quoted(text: str) -> str:
    """Return a Python literal for a string, in double quotes if that needs no escapes."""
    literal = repr(text)
    return f'"{literal[1:-1]}"' if literal[0] == "'" and '"' not in literal else literal


def _definition(
    record: RecordType, written: Collection[str], classes: Collection[str], *, dataclasses: bool
) -> str:
    objects = "" if record.objects == record.replies else f"{counted(record.objects, 'object')} in "
    comment = f"# {objects}{counted(record.replies, 'reply', 'replies')}"
    members = list(record.members.items())
    if not all(_can_be_field(name, classes) for name in record.members):
        head, tail = f'{record.name} = TypedDict(\n    "{record.name}",\n    {{', ["    },", ")"]
        lines = [
            f"        {_quoted(name)}: {_field(member, written)},{_note(member, record)}"
            for name, member in members
        ]
        return "\n".join([comment, head, *lines, *tail])
    head = f"class {record.name}(TypedDict):"
    if dataclasses:
        head = f"@dataclass\nclass {record.name}:"
        # Fields with a default come last.
        members.sort(key=lambda each: not each[1].is_required)
    lines = [
        f"    {name}: {_field(member, written, dataclasses=dataclasses)}{_note(member, record)}"
        for name, member in members
    ]
    return "\n".join([comment, head, *lines])


def _can_be_field(name: str, classes: Collection[str]) -> bool:
    is_name = name.isascii() and name.isidentifier() and not name.startswith("__")
    return is_name and name not in _HIDING and name not in classes


def _field(member: Member, written: Collection[str], *, dataclasses: bool = False) -> str:
    text = _annotation(member.kind, written)
    if member.is_required:
        return text
    if not dataclasses:
        return f"NotRequired[{text}]"
    if text.startswith('"'):
        return f'{text[:-1]} | None" = None'
    is_optional = text == "Any" or text.endswith("| None")
    return f"{text} = None" if is_optional else f"{text} | None = None"


def _note(member: Member, record: RecordType) -> str:
    notes = []
    if member.is_always_null:
        notes.append("always null")
    if not member.is_required:
        notes.append(f"in {member.count} of {record.objects}")
    return f"  # {', '.join(notes)}" if notes else ""
