"""Writes inferred types as Python: TypedDicts or dataclasses, each after those that it needs.

The names of the classes depend on the replies only, not on their order.
"""

from __future__ import annotations

import builtins
import keyword
import re
from collections.abc import Collection, Sequence

from ..types.problems import counted
from .inferred_types import (
    DictOf,
    InferredType,
    ListOf,
    LiteralOf,
    Member,
    Plain,
    RecordType,
    ToolType,
    UnionOf,
    records_in,
)

_HEAD = '"""The types of replies, inferred from recorded ones by `answerback types`."""'
_TABLE = "REPLY_TYPES"
_IMPORTS = {
    "dataclasses": ("dataclass",),
    "datetime": ("date", "datetime"),
    "typing": ("Any", "Literal", "NotRequired", "TypedDict"),
}
_IMPORTED = frozenset(name for names in _IMPORTS.values() for name in names)
_RESERVED = frozenset({*_IMPORTED, *dir(builtins), *keyword.kwlist, _TABLE})
# A field of such a name hides the type from the annotations after it; a dataclass takes `type.mro`
# for the default of `mro`.
_HIDING = frozenset(
    {"bool", "dict", "float", "int", "list", "mro", "str", *_IMPORTED, *keyword.kwlist}
)
_MAX_NAME = 80
_WORDS = re.compile(r"[A-Za-z0-9]+")
# Texts are not names: `"date"` needs no import.
_NAME_OR_TEXT = re.compile(r""""(?:[^"\\]|\\.)*"|'(?:[^'\\]|\\.)*'|#.*|\b[A-Za-z]\w*""")


def module_source(tools: Sequence[ToolType], *, dataclasses: bool = False) -> str:
    """Name the records, and return a module with the types and a table of them by their tools."""
    seen: set[RecordType] = set()
    records = [record for each in tools for record in records_in(each.kind, seen)]
    _name_records(records)
    # A member of the same name would hide a class from the annotations after it.
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
    """Return a type as it stands in an annotation; a class that is not *defined* is quoted."""
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
            # `"Node" | None` is an error when it runs, so the whole is quoted.
            return _quoted(" | ".join(_annotation(each) for each in members))
        case RecordType(name=name):
            return name if defined is None or name in defined else _quoted(name)


def _quoted(text: str) -> str:
    """Return a Python literal of the text, in double quotes if they need no escape."""
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
