"""The tools as other programs read about them."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from ..app import App
    from ..tools.tool import Tool


def listing(app: App) -> list[dict[str, Any]]:
    return [_entry(tool) for tool in app.tools.values()]


def health(app: App) -> dict[str, str]:
    return {"status": "ok", "name": app.name, "version": app.version}


def _entry(tool: Tool) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": tool.name, "description": tool.description}
    if tool.title:
        entry["title"] = tool.title
    entry["inputSchema"] = tool.input_schema
    if tool.output_schema is not None:
        entry["outputSchema"] = tool.output_schema
    return entry
