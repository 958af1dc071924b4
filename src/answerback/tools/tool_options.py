"""The options of tools, resources and prompts: their types, their checks and their defaults.

A new option is a key of a TypedDict here, a field of `ToolSettings` with its default and,
if a value can be wrong, a row of `_CHECKS`. Options of resources alone are in `resource`.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import Any, TypedDict

import msgspec

from ..content import Icon
from ..errors import ToolError


class CommonOptions(TypedDict, total=False):
    """The options of tools, resources and prompts alike."""

    name: str
    title: str
    description: str
    icons: Sequence[Icon]
    meta: dict[str, Any]


class ToolOptions(CommonOptions, total=False):
    """The options of `@app.tool` and `app.add_tool`."""

    examples: Sequence[Mapping[str, Any]]
    """Argument objects, shown in the OpenAPI document."""
    raises: Sequence[type[ToolError]]
    """The errors that callers should expect, for the OpenAPI document."""
    input_schema: dict[str, Any]
    """Shown instead of the schema of the parameters, which still decide what is accepted."""
    inline: bool
    """Run a plain `def` in place, not in a thread; for quick functions that never block."""
    timeout: float | None
    """The seconds that a call may take."""
    lenient: bool
    """Accept "7" for 7 and JSON in a string, which models send."""
    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool
    """Hints for hosts; a host must not rely on them."""


class ToolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """The options of a tool, with the default of each that the author did not give."""

    name: str | None = None
    title: str | None = None
    description: str | None = None
    icons: Sequence[Icon] = ()
    meta: dict[str, Any] | None = None
    examples: Sequence[Mapping[str, Any]] = ()
    raises: Sequence[type[ToolError]] = ()
    input_schema: dict[str, Any] | None = None
    inline: bool = False
    timeout: float | None = None
    lenient: bool = False
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None

    @property
    def hints(self) -> dict[str, bool]:
        """The hints that the author gave, by the names of MCP's tool annotations."""
        hints = {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }
        return {name: bool(value) for name, value in hints.items() if value is not None}


_SETTINGS = frozenset(ToolSettings.__struct_fields__)


def resolve_options(options: Mapping[str, Any]) -> ToolSettings:
    """Return *options* with defaults; None means the default, and other keys are ignored."""
    given = {
        name: value for name, value in options.items() if value is not None and name in _SETTINGS
    }
    return ToolSettings(**given)


def check_options(options: Mapping[str, Any], known: type[Any]) -> None:
    """Raise TypeError for an option that *known* does not have, or for a wrong value."""
    if unknown := options.keys() - known.__annotations__.keys():
        names = ", ".join(sorted(known.__annotations__))
        raise TypeError(f"no option is named {min(unknown)!r}; there are {names}")
    for name, (expected, is_valid) in _CHECKS.items():
        value = options.get(name)
        if value is not None and not is_valid(value):
            raise TypeError(f"{name}={value!r} should be {expected}")


def _are_all(values: Any, is_valid: Callable[[Any], bool]) -> bool:
    return isinstance(values, list | tuple) and all(map(is_valid, values))


def _is_error_class(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, ToolError)


def _is_duration(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


_CHECKS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "title": ("a str", lambda value: isinstance(value, str)),
    "description": ("a str", lambda value: isinstance(value, str)),
    "icons": ("a list of Icon", lambda value: _are_all(value, lambda one: isinstance(one, Icon))),
    "meta": ("a dict", lambda value: isinstance(value, dict)),
    "examples": (
        "a list of argument objects, such as [{'x': 7}]",
        lambda value: _are_all(value, lambda one: isinstance(one, Mapping)),
    ),
    "raises": (
        "a list of subclasses of ToolError",
        lambda value: _are_all(value, _is_error_class),
    ),
    "timeout": ("a number of seconds greater than 0", _is_duration),
    "input_schema": (
        "a JSON Schema with 'type': 'object'",
        lambda value: isinstance(value, dict) and value.get("type") == "object",
    ),
}
"""For each option that is checked: how a message describes its values, and the check."""
