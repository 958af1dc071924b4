"""Reads `Annotated` metadata: msgspec's `Meta`, pydantic's `Field`, annotated_types, text.

pydantic and annotated_types are not imported: their objects are recognised by their class's
module.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import msgspec

from .nodes import NO_LIMITS, NO_NOTES, Notes, ValueLimits

_LIMIT_NAMES = ("ge", "gt", "le", "lt", "multiple_of", "min_length", "max_length", "pattern")
_NOTE_NAMES = ("title", "description", "examples")
# Of two limits with the same name, the narrower one counts.
_NARROWER: dict[str, Any] = {
    "ge": max,
    "gt": max,
    "min_length": max,
    "le": min,
    "lt": min,
    "max_length": min,
}


class Metadata(msgspec.Struct, kw_only=True):
    """The limits and notes from one type's `Annotated` metadata."""

    limits: ValueLimits = NO_LIMITS
    notes: Notes = NO_NOTES
    foreign_limits: bool = False
    """Some of the limits are not in a msgspec `Meta`, so msgspec does not apply them."""
    replaced_patterns: tuple[str, ...] = ()
    """Patterns that are kept as checks, because a later one is the limit."""
    needs_pydantic: bool = False
    """The metadata has pydantic objects (a validator, `strip_whitespace`) that only it applies."""


def read_metadata(items: Iterable[Any]) -> Metadata:
    """Read the items of an `Annotated`, the innermost first."""
    metadata = Metadata()
    for item in _flatten(items):
        _read_item(item, metadata)
    return metadata


def _library_of(item: Any) -> str:
    return type(item).__module__.partition(".")[0]


def _flatten(items: Iterable[Any]) -> Iterator[Any]:
    for item in items:
        if getattr(item, "__is_annotated_types_grouped_metadata__", False):
            yield from _flatten(item)
        elif is_field_info(item):
            yield from _flatten(item.metadata)
            yield item
        else:
            yield item


def is_field_info(item: Any) -> bool:
    """Return whether *item* is pydantic's `Field(...)`, or a subclass such as FastAPI's `Query`."""
    return any(
        cls.__name__ == "FieldInfo" and cls.__module__.startswith("pydantic.")
        for cls in type(item).__mro__
    )


def _read_item(item: Any, metadata: Metadata) -> None:
    if isinstance(item, msgspec.Meta):
        _add_limits(metadata, item, (*_LIMIT_NAMES, "tz"))
        _add_notes(metadata, item, item.extra_json_schema)
    elif isinstance(item, str):
        metadata.notes = msgspec.structs.replace(metadata.notes, description=item)
    elif is_field_info(item):
        extra = item.json_schema_extra if isinstance(item.json_schema_extra, dict) else {}
        deprecated = {"deprecated": True} if getattr(item, "deprecated", None) else {}
        _add_notes(metadata, item, {**deprecated, **extra})
    elif type(item).__name__ == "Doc":
        metadata.notes = msgspec.structs.replace(metadata.notes, description=item.documentation)
    elif _library_of(item) == "annotated_types":
        metadata.foreign_limits = True
        match type(item).__name__:
            case "Predicate" | "Not":
                _add_check(metadata, item.func if type(item).__name__ == "Predicate" else item)
            case "Timezone":
                aware = item.tz is not None
                metadata.limits = msgspec.structs.replace(metadata.limits, tz=aware)
            case _:
                _add_limits(metadata, item, _LIMIT_NAMES)
    elif _library_of(item) in ("pydantic", "pydantic_core"):
        members = getattr(item, "__dict__", {})
        names = {name for name, value in members.items() if value is not None}
        if names and names <= set(_LIMIT_NAMES):
            metadata.foreign_limits = True
            _add_limits(metadata, item, _LIMIT_NAMES)
        else:
            metadata.needs_pydantic = True


def _add_limits(metadata: Metadata, item: Any, names: tuple[str, ...]) -> None:
    found = {name: value for name in names if (value := getattr(item, name, None)) is not None}
    for name in found.keys() & _NARROWER.keys():
        earlier = getattr(metadata.limits, name)
        found[name] = found[name] if earlier is None else _NARROWER[name](earlier, found[name])
    if "pattern" in found:
        from .patterns import searcher

        found["pattern"] = getattr(found["pattern"], "pattern", found["pattern"])
        if metadata.limits.pattern is not None:
            metadata.replaced_patterns += (metadata.limits.pattern,)
        _keep_as_check(metadata, "pattern", lambda limit, value: searcher(limit)(value) is not None)
    if "multiple_of" in found:
        _keep_as_check(metadata, "multiple_of", lambda limit, value: value % limit == 0)
    if not found:
        return
    limits = msgspec.structs.replace(metadata.limits, **found)
    # `Meta` accepts only one of `ge` and `gt`, and the narrower one implies the other.
    if limits.ge is not None and limits.gt is not None:
        dropped = "ge" if limits.gt >= limits.ge else "gt"
        limits = msgspec.structs.replace(limits, **{dropped: None})
    if limits.le is not None and limits.lt is not None:
        dropped = "le" if limits.lt <= limits.le else "lt"
        limits = msgspec.structs.replace(limits, **{dropped: None})
    metadata.limits = limits


def _keep_as_check(metadata: Metadata, name: str, fits: Callable[[Any, Any], bool]) -> None:
    """Keep an earlier limit as a check, because a second limit with its name replaces it."""
    earlier = getattr(metadata.limits, name)
    if earlier is not None:
        _add_check(metadata, partial(fits, earlier))


def _add_check(metadata: Metadata, check: Callable[[Any], Any]) -> None:
    checks = (*metadata.limits.checks, check)
    metadata.limits = msgspec.structs.replace(metadata.limits, checks=checks)


def _add_notes(metadata: Metadata, item: Any, extra: dict[str, Any] | None) -> None:
    found = {
        name: value for name in _NOTE_NAMES if (value := getattr(item, name, None)) is not None
    }
    if extra:
        found["extra"] = {**(metadata.notes.extra or {}), **extra}
    metadata.notes = msgspec.structs.replace(metadata.notes, **found)
