"""Writes inferred types as Python: TypedDicts or dataclasses, each after those that it needs."""

from __future__ import annotations

import keyword
import re
from collections.abc import Collection, Iterable, Sequence

import msgspec

from ..types.describe import counted
from .inferred_types import (
    DictOf,
    InferredType,
    ListOf,
    LiteralOf,
    Member,
    Plain,
    RecordType,
    UnionOf,
)
from .type_names import IMPORTED, TABLE, all_records

_IMPORTS = {
    "dataclasses": ("dataclass",),
    "datetime": ("date", "datetime"),
    "typing": ("Any", "Literal", "NotRequired", "TypedDict"),
}
_HEAD = '"""The types of replies, inferred from recorded ones by `answerback types`."""'
# A field of such a name hides the type from the annotations after it; a dataclass takes `type.mro`
# for the default of `mro`.
_HIDING = frozenset(
    {"bool", "dict", "float", "int", "list", "mro", "str", *IMPORTED, *keyword.kwlist}
)
# Texts are not names: `"date"` needs no import.
_NAME_OR_TEXT = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|#.*|\b[A-Za-z]\w*""")


class ToolType(msgspec.Struct):
    """A tool's type, and the number of replies behind it."""

    tool: str
    kind: InferredType
    replies: int


def module_source(tools: Sequence[ToolType], *, dataclasses: bool = False) -> str:
    """Return a module with the types of all tools, and a table of them by the tools' names."""
    parts = [*definitions(tools, dataclasses=dataclasses), _table(tools)]
    return f"{_HEAD}\n\n{import_lines(parts)}\n\n\n" + "\n\n\n".join(parts) + "\n"


def import_lines(parts: Iterable[str]) -> str:
    """Return the imports that the definitions need."""
    used = {name for part in parts for name in _NAME_OR_TEXT.findall(part)}
    lines = []
    for module, names in _IMPORTS.items():
        if found := [name for name in names if name in used]:
            lines.append(f"from {module} import {', '.join(found)}")
    return "\n".join(lines)


def definitions(tools: Sequence[ToolType], *, dataclasses: bool = False) -> list[str]:
    """Return the definitions of all records, each after those that it needs."""
    records = all_records({each.tool: each.kind for each in tools})
    # A member of the same name would hide a class from the annotations after it.
    classes = {record.name for record in records}
    written: set[str] = set()
    found = []
    for record in records:
        lines = _record_lines(record, written, classes, dataclasses=dataclasses)
        found.append("\n".join([_comment(record), *lines]))
        written.add(record.name)
    return found


def annotation(kind: InferredType, defined: Collection[str] | None = None) -> str:
    """Return a type as it stands in an annotation; a class that is not *defined* is quoted."""
    match kind:
        case Plain(name=name):
            return name
        case LiteralOf(values=values):
            return f"Literal[{', '.join(map(quoted, values))}]"
        case ListOf(item=item):
            return f"list[{annotation(item, defined)}]"
        case DictOf(value=value):
            return f"dict[str, {annotation(value, defined)}]"
        case UnionOf(members=members):
            return _union(members, defined)
        case RecordType(name=name):
            is_defined = defined is None or name in defined
            return name if is_defined else quoted(name)


def _union(members: Sequence[InferredType], defined: Collection[str] | None) -> str:
    texts = [annotation(each, defined) for each in members]
    if not any(text.startswith('"') for text in texts):
        return " | ".join(texts)
    # `"Node" | None` is an error when it runs, so the whole is quoted.
    return quoted(" | ".join(annotation(each) for each in members))


def quoted(text: str) -> str:
    """Return a Python literal of the text, in double quotes if they need no escape."""
    literal = repr(text)
    return f'"{literal[1:-1]}"' if literal[0] == "'" and '"' not in literal else literal


def _comment(record: RecordType) -> str:
    objects = "" if record.objects == record.replies else f"{counted(record.objects, 'object')} in "
    return f"# {objects}{counted(record.replies, 'reply', 'replies')}"


def _record_lines(
    record: RecordType, written: Collection[str], classes: Collection[str], *, dataclasses: bool
) -> list[str]:
    if not all(_can_be_field(name, classes) for name in record.members):
        return _functional_lines(record, written)
    head = [f"class {record.name}(TypedDict):"]
    members = list(record.members.items())
    if dataclasses:
        head = ["@dataclass", f"class {record.name}:"]
        # Fields with a default come last.
        members.sort(key=lambda each: not each[1].is_required)
    fields = (
        f"    {name}: {_field(member, written, dataclasses=dataclasses)}{_note(member, record)}"
        for name, member in members
    )
    return [*head, *fields]


def _functional_lines(record: RecordType, written: Collection[str]) -> list[str]:
    """Return a TypedDict with names that cannot be those of a class's fields."""
    members = (
        f"        {quoted(name)}: {_field(member, written)},{_note(member, record)}"
        for name, member in record.members.items()
    )
    head = f"{record.name} = TypedDict("
    return [head, f"    {quoted(record.name)},", "    {", *members, "    },", ")"]


def _can_be_field(name: str, classes: Collection[str]) -> bool:
    is_name = name.isascii() and name.isidentifier() and not name.startswith("__")
    return is_name and name not in _HIDING and name not in classes


def _field(member: Member, written: Collection[str], *, dataclasses: bool = False) -> str:
    text = annotation(member.kind, written)
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


def _table(tools: Sequence[ToolType]) -> str:
    rows = (
        f"    {quoted(each.tool)}: {annotation(each.kind)},"
        f"  # {counted(each.replies, 'reply', 'replies')}"
        for each in tools
    )
    return "\n".join([f"{TABLE}: dict[str, Any] = {{", *rows, "}"])
