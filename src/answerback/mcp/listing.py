"""The lists of tools, resources, templates and prompts, in pages."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING, Any, TypeAlias

from ..versions import Version
from . import params
from .entries import prompt_entry, resource_entry, tool_entry
from .messages import Params
from .pages import page

if TYPE_CHECKING:
    from ..app import App

_Entry: TypeAlias = Callable[[Any, Version], dict[str, Any]]


def _tools(app: App) -> list[Any]:
    return list(app.tools.values())


def _resources(app: App) -> list[Any]:
    return [each for each in app.resources.values() if each.template is None]


def _templates(app: App) -> list[Any]:
    return [each for each in app.resources.values() if each.template is not None]


def _prompts(app: App) -> list[Any]:
    return list(app.prompts.values())


LISTS: dict[str, tuple[str, Callable[[App], list[Any]], _Entry]] = {
    "tools/list": ("tools", _tools, tool_entry),
    "resources/list": ("resources", _resources, resource_entry),
    "resources/templates/list": ("resourceTemplates", _templates, resource_entry),
    "prompts/list": ("prompts", _prompts, prompt_entry),
}
"""By method: what the list is called, what is on it, and how each is shown."""


def one_page(app: App, method: str, version: Version, raw: Params) -> dict[str, Any]:
    key, items, entry = LISTS[method]
    shown, after = page(items(app), params.read(raw, params.Page).cursor)
    result: dict[str, Any] = {key: [entry(item, version) for item in shown]}
    return result if after is None else result | {"nextCursor": after}
