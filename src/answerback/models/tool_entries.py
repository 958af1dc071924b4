"""Reads sets of tools: an App, the result of `tools/list`, or any library's objects and dicts."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

import msgspec

from ..core.versions import LATEST_STATEFUL
from ..protocol.listing import tool_entry
from ..registry.declarations import HasRegistry, registry_of

_SCHEMA_NAMES = ("input_schema", "inputSchema", "parameters")
"""The member with the arguments' schema: in SDK 2, in MCP and SDK 1, in FastMCP's tools."""


class ToolEntry(msgspec.Struct, frozen=True):
    """The parts of a tool that a model gets."""

    name: str
    description: str
    schema: Mapping[str, Any]
    for_model: bool = True
    """False if only a widget may call the tool."""


def read_tools(tools: Any) -> tuple[list[ToolEntry], list[str]]:
    """Return the tools of an App, a list, a mapping by name or a `tools/list` result.

    Of tools with the same name the first is returned; the second value is the other tools' names.
    Raises TypeError for anything else.
    """
    entries: dict[str, ToolEntry] = {}
    doubled: dict[str, None] = {}
    for each in map(_entry, _listed(tools)):
        if each.name in entries:
            # A foreign server's list must not stop its client: the report names the tool.
            doubled[each.name] = None
        else:
            entries[each.name] = each
    return list(entries.values()), list(doubled)


def _listed(tools: Any) -> Iterable[Any]:
    if isinstance(tools, HasRegistry):
        return [tool_entry(each, LATEST_STATEFUL) for each in registry_of(tools).tools.values()]
    if isinstance(tools, Mapping):
        if "name" in tools and not isinstance(tools["name"], Mapping):
            raise TypeError("tools should be a list; this is one tool, so write [tool]")
        listed = tools.get("tools")
        return listed if isinstance(listed, list) else list(tools.values())
    listed = getattr(tools, "tools", None)
    if isinstance(listed, list | tuple):
        return listed
    if hasattr(tools, "__await__"):
        raise TypeError("tools should be a list, and this must be awaited first: await …")
    if isinstance(tools, str | bytes) or not isinstance(tools, Iterable):
        raise TypeError(f"tools should be an App or a list of tools, not {type(tools).__name__}")
    return tools


def _entry(tool: Any) -> ToolEntry:
    name = _member(tool, "name")
    schema: Any = next((found for key in _SCHEMA_NAMES if (found := _member(tool, key))), {})
    if not isinstance(name, str):
        raise TypeError(f"{tool!r:.200} is not a tool: it has no name")
    if not isinstance(schema, Mapping):
        # One tool of a foreign server must not stop the others: the report says what is malformed.
        schema = {"properties": schema}
    text = _member(tool, "description") or _member(tool, "title") or ""
    return ToolEntry(name, text, schema, _is_for_model(tool))


def _member(tool: Any, name: str) -> Any:
    return tool.get(name) if isinstance(tool, Mapping) else getattr(tool, name, None)


def _is_for_model(tool: Any) -> bool:
    meta = _member(tool, "_meta") or _member(tool, "meta")
    if not isinstance(meta, Mapping):
        return True
    ui = meta.get("ui")
    visibility = ui.get("visibility") if isinstance(ui, Mapping) else None
    if isinstance(visibility, list | tuple):
        return "model" in visibility
    return meta.get("openai/visibility") != "private"
