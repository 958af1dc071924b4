"""The `_meta` keys and hints of a tool that has a widget, or that a widget may call."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any

from ...core.author_errors import did_you_mean, similar_names
from ...core.json_value import JsonObject
from ...options import Shown
from ...registry.declarations import Registry
from ...tools.tool import Tool
from ...tools.tool_options import ToolOptions, check_options
from .widget import Widget, widget_uri

_ON_THE_PAGE = ("csp", "permissions", "domain", "prefersBorder")
"""Members of `ui` that belong to a widget; hosts ignore them on a tool."""


class MissingWidget(ValueError):
    """A tool names a widget that its app does not have."""


def with_widget_keys(options: ToolOptions) -> ToolOptions:
    """Return a tool's options with its widget's keys in `meta`, and with the hints.

    Raises TypeError or ValueError if an option is wrong, or if `meta` has one of these keys.
    """
    check_options(options, ToolOptions)
    made: ToolOptions = {**options}
    widget = options.get("widget")
    shown = widget if isinstance(widget, Shown) else Shown(widget)
    if meta := _merged(options.get("meta") or {}, _keys(shown)):
        made["meta"] = meta
    if shown.name is not None:
        read_only = bool(options.get("read_only"))
        defaults = {"read_only": False, "destructive": not read_only, "open_world": True}
        for name, default in defaults.items():
            if options.get(name) is None:
                made[name] = default  # type: ignore[literal-required]  # keys of ToolOptions
    return made


def _keys(shown: Shown) -> JsonObject:
    """Return MCP Apps' keys, and ChatGPT's equivalents."""
    ui: JsonObject = {}
    keys: JsonObject = {"ui": ui}
    if (name := shown.name) is not None:
        uri = widget_uri(name)
        ui["resourceUri"] = uri
        keys |= {"ui/resourceUri": uri, "openai/outputTemplate": uri}
    visible = shown.visible_to
    if name is not None or visible is not None:
        visible = ("model", "app") if visible is None else visible
        ui["visibility"] = [who for who in ("model", "app") if who in visible]
        keys["openai/widgetAccessible"] = "app" in visible
        keys["openai/visibility"] = "public" if "model" in visible else "private"
    if shown.invoking is not None:
        keys["openai/toolInvocation/invoking"] = shown.invoking
    if shown.invoked is not None:
        keys["openai/toolInvocation/invoked"] = shown.invoked
    return keys if ui else {name: value for name, value in keys.items() if name != "ui"}


def _merged(meta: Mapping[str, Any], keys: JsonObject) -> JsonObject:
    """Return the author's `meta` with our keys; raises ValueError if both have the same key."""
    authors_ui = meta.get("ui", {})
    if not isinstance(authors_ui, dict):
        raise TypeError(f"'ui' in meta should be a dict, not {authors_ui!r}")
    for name in _ON_THE_PAGE:
        if name in authors_ui:
            raise ValueError(f"meta has 'ui' with {name!r}, which belongs to app.widget(…)")
    ours = keys.get("ui", {})
    twice = [name for name in meta if name in keys and name != "ui"]
    twice += [f"ui.{name}" for name in authors_ui if name in ours]
    if twice:
        raise ValueError(f"meta has {twice[0]!r}, which widget= writes; leave it out of meta")
    merged = {**meta, **keys}
    if authors_ui or ours:
        merged["ui"] = {**authors_ui, **ours}
    return merged


def missing_widget(tool: Tool) -> str | None:
    """Return a message if a tool names a widget that its own app does not have."""
    name = tool.settings.widget
    if name is None:
        return None
    owner = tool.path[-1]
    resources = owner.resources.own
    if widget_uri(name) in resources:
        return None
    known = [each.name for each in resources.values() if isinstance(each, Widget)]
    hint = did_you_mean(similar_names(name, known))
    if not hint:
        there = f"its widgets are {', '.join(sorted(known))}" if known else "it has none"
        hint = f"{there}; write app.widget({name!r}, path='{name}.html')"
    return f"{tool.owner} names the widget {name!r}, which {owner.name!r} does not have; {hint}"


def check_widgets(registry: Registry) -> None:
    """Raise MissingWidget if a served tool names an unknown widget or page."""
    for tool in registry.tools.values():
        message = missing_widget(tool)
        meta = tool.settings.meta or {}
        ui = meta.get("ui", {})
        page = meta.get("openai/outputTemplate") or ui.get("resourceUri")
        if message is None and page is not None and tool.settings.widget is None:
            known = registry.resources.values()
            if all(each.uri != page and each.arguments_for(page) is None for each in known):
                advice = f"write app.widget('NAME', …) and widget='NAME', or app.resource({page!r})"
                message = f"{tool.owner} names the page {page!r}, which is not a resource; {advice}"
        if message is not None:
            raise MissingWidget(message)
