"""What `Annotated` says beside the type, in msgspec's, pydantic's or annotated_types' words.

Objects of the other libraries are known by their class's module, so neither is imported.
"""

import re
from collections.abc import Callable, Iterable, Iterator
from functools import partial
from typing import Any

import msgspec

from .nodes import NO_LIMITS, NO_NOTES, Limits, Notes

_NUMBERS = ("ge", "gt", "le", "lt", "multiple_of")
_LIMITS = (*_NUMBERS, "min_length", "max_length", "pattern")
_NOTES = ("title", "description", "examples")
# How two limits of one name are combined: the narrower one holds.
_NARROWER: dict[str, Any] = {
    "ge": max,
    "gt": max,
    "min_length": max,
    "le": min,
    "lt": min,
    "max_length": min,
}


class Extras(msgspec.Struct, kw_only=True):
    """All that `Annotated` metadata says about one type."""

    limits: Limits = NO_LIMITS
    notes: Notes = NO_NOTES
    # Some limits are not in msgspec's own words.
    foreign: bool = False
    # Only pydantic can tell what it means (a validator, strip_whitespace, ...).
    needs_pydantic: bool = False


def read_metadata(metadata: Iterable[Any]) -> Extras:
    """Read the items of an `Annotated`, the innermost first."""
    extras = Extras()
    for item in _flat(metadata):
        _read_item(item, extras)
    return extras


def _library(item: Any) -> str:
    return type(item).__module__.partition(".")[0]


def _flat(metadata: Iterable[Any]) -> Iterator[Any]:
    for item in metadata:
        if getattr(item, "__is_annotated_types_grouped_metadata__", False):
            yield from _flat(item)
        elif _is_field(item):
            yield from _flat(item.metadata)
            yield item
        else:
            yield item


def _is_field(item: Any) -> bool:
    return _library(item) == "pydantic" and type(item).__name__ == "FieldInfo"


def _read_item(item: Any, extras: Extras) -> None:
    if isinstance(item, msgspec.Meta):
        _limit(extras, item, (*_LIMITS, "tz"))
        _note(extras, item, item.extra_json_schema)
    elif isinstance(item, str):
        extras.notes = msgspec.structs.replace(extras.notes, description=item)
    elif _is_field(item):
        extra = item.json_schema_extra
        _note(extras, item, extra if isinstance(extra, dict) else None)
    elif type(item).__name__ == "Doc":
        extras.notes = msgspec.structs.replace(extras.notes, description=item.documentation)
    elif _library(item) == "annotated_types":
        _read_annotated_types(item, extras)
    elif _library(item) in ("pydantic", "pydantic_core"):
        _read_pydantic(item, extras)


def _read_annotated_types(item: Any, extras: Extras) -> None:
    extras.foreign = True
    match type(item).__name__:
        case "Predicate" | "Not":
            check = item.func if type(item).__name__ == "Predicate" else item
            checks = (*extras.limits.checks, check)
            extras.limits = msgspec.structs.replace(extras.limits, checks=checks)
        case "Timezone":
            aware = item.tz is not None
            extras.limits = msgspec.structs.replace(extras.limits, tz=aware)
        case _:
            _limit(extras, item, _LIMITS)


def _read_pydantic(item: Any, extras: Extras) -> None:
    told = {name for name, value in getattr(item, "__dict__", {}).items() if value is not None}
    if told and told <= set(_LIMITS):
        extras.foreign = True
        _limit(extras, item, _LIMITS)
    else:
        extras.needs_pydantic = True


def _limit(extras: Extras, item: Any, names: tuple[str, ...]) -> None:
    found = {name: value for name in names if (value := getattr(item, name, None)) is not None}
    for name in found.keys() & _NARROWER.keys():
        held = getattr(extras.limits, name)
        found[name] = found[name] if held is None else _NARROWER[name](held, found[name])
    if "pattern" in found:
        found["pattern"] = getattr(found["pattern"], "pattern", found["pattern"])
        _keep(extras, "pattern", lambda held, value: re.search(held, value) is not None)
    if "multiple_of" in found:
        _keep(extras, "multiple_of", lambda held, value: value % held == 0)
    if not found:
        return
    extras.limits = _sharpen(msgspec.structs.replace(extras.limits, **found))


def _keep(extras: Extras, name: str, holds: Callable[[Any, Any], bool]) -> None:
    """Make a check of the limit that another of its name is about to replace."""
    held = getattr(extras.limits, name)
    if held is not None:
        checks = (*extras.limits.checks, partial(holds, held))
        extras.limits = msgspec.structs.replace(extras.limits, checks=checks)


def _sharpen(limits: Limits) -> Limits:
    # `ge` with `gt` says nothing that the narrower of them does not, and Meta takes one only.
    if limits.ge is not None and limits.gt is not None:
        dropped = "ge" if limits.gt >= limits.ge else "gt"
        limits = msgspec.structs.replace(limits, **{dropped: None})
    if limits.le is not None and limits.lt is not None:
        dropped = "le" if limits.lt <= limits.le else "lt"
        limits = msgspec.structs.replace(limits, **{dropped: None})
    return limits


def _note(extras: Extras, item: Any, extra: dict[str, Any] | None) -> None:
    found = {name: value for name in _NOTES if (value := getattr(item, name, None)) is not None}
    if extra:
        found["extra"] = {**(extras.notes.extra or {}), **extra}
    extras.notes = msgspec.structs.replace(extras.notes, **found)
