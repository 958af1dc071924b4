"""Tools, resources and prompts as the lists of each version show them."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

import msgspec

from ..content import Icon
from ..dialects.mcp_blocks import project_annotations
from ..tools.options import ToolSettings
from ..tools.prompt import Prompt
from ..tools.resource import Resource
from ..tools.tool import Tool
from ..versions import Version


def tool_entry(tool: Tool, version: Version) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": tool.contract.tool_prefix + tool.name}
    if tool.description:
        entry["description"] = tool.description
    entry["inputSchema"] = tool.input_schema
    if version.structured and tool.output_schema is not None:
        entry["outputSchema"] = tool.output_schema
    if version.tool_annotations and (hints := tool.settings.hints):
        entry["annotations"] = hints
    return entry | _extras(tool.settings, version)


def resource_entry(resource: Resource, version: Version) -> dict[str, Any]:
    where = "uri" if resource.template is None else "uriTemplate"
    entry: dict[str, Any] = {where: resource.uri, "name": resource.name}
    if resource.description:
        entry["description"] = resource.description
    if resource.mime:
        entry["mimeType"] = resource.mime
    if resource.template is None and resource.size is not None:
        entry["size"] = resource.size
    if resource.annotations:
        told = project_annotations(resource.annotations, version)
        entry["annotations"] = msgspec.to_builtins(told)
    return entry | _extras(resource.settings, version)


def prompt_entry(prompt: Prompt, version: Version) -> dict[str, Any]:
    entry: dict[str, Any] = {"name": prompt.name}
    if prompt.description:
        entry["description"] = prompt.description
    if prompt.parameters:
        entry["arguments"] = [
            {"name": parameter.name, "required": parameter.required}
            | ({"description": parameter.description} if parameter.description else {})
            for parameter in prompt.parameters
        ]
    return entry | _extras(prompt.settings, version)


def icons_of(icons: Sequence[Icon]) -> list[dict[str, Any]]:
    shown: list[dict[str, Any]] = msgspec.to_builtins(icons)
    return shown


def _extras(settings: ToolSettings, version: Version) -> dict[str, Any]:
    extras: dict[str, Any] = {}
    if version.titles and settings.title:
        extras["title"] = settings.title
    if version.icons and settings.icons:
        extras["icons"] = icons_of(settings.icons)
    if version.titles and settings.meta:
        extras["_meta"] = settings.meta
    return extras
