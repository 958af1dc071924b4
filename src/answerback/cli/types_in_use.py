"""The types that replies are compared with: those of an App's tools, or of a printed module."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

import msgspec

from ..app import App
from ..inference.declared_types import is_dict, says_nothing
from ..inference.type_names import TABLE
from ..registry.declarations import registry_of
from ..tools.tool import Tool
from .program import Program
from .target import app_of, load_module


class TypesInUse(msgspec.Struct):
    app: App | None
    """None for a module of types."""
    types: Mapping[str, Any]
    """The tools' types, by their names."""
    tools: Mapping[str, Tool]
    """The tools of the App; none for a module of types."""
    without_types: frozenset[str]
    """The tools whose return type says nothing about the data."""
    dicts: frozenset[str]
    """The tools that return a dict."""


def load_types(program: Program, target: str | None) -> TypesInUse | None:
    """Return the types of the target; None without one. Raises CannotLoad."""
    if program.app is not None:
        return _types_of(program.app)
    if target is None:
        return None
    module = load_module(target)
    table = getattr(module, TABLE, None)
    if isinstance(table, dict):
        return TypesInUse(None, table, {}, frozenset(), _dicts(table))
    return _types_of(app_of(module, target))


def _types_of(app: App) -> TypesInUse:
    tools = registry_of(app).tools
    types = {name: tool.returns.data_type for name, tool in tools.items()}
    without = {
        name
        for name, tool in tools.items()
        if tool.settings.output_schema is None
        and (not tool.returns.declared or says_nothing(types[name]))
    }
    return TypesInUse(app, types, tools, frozenset(without), _dicts(types))


def _dicts(types: Mapping[str, Any]) -> frozenset[str]:
    return frozenset(name for name, kind in types.items() if is_dict(kind))
