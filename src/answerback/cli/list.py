"""`list`: lists the tools and prompts with their arguments, and the resources."""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from ..core.versions import LATEST_STATEFUL
from ..protocol.listing import prompt_entry, resource_entry
from ..registry.declarations import registry_of
from ..server.process import take_stdout
from .program import (
    Program,
    add_server_options,
    add_tag_options,
    printable,
    refuse_server_options,
    require_widgets,
    write_json,
    write_stderr,
    write_stdout,
)
from .tool_help import section, usage, usage_table

if TYPE_CHECKING:
    from ..app import App
    from ..tools.tool import Tool
    from .program import Options


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser_with_target("list")
    parser.add_argument("--json", action="store_true", help="names, descriptions and schemas")
    group = parser.add_mutually_exclusive_group()
    group.add_argument("--resources", action="store_true", help="only the resources")
    group.add_argument("--prompts", action="store_true", help="only the prompts")
    add_tag_options(parser)
    add_server_options(parser, program)
    options = parser.parse_args(arguments)
    server = program.find_server(options.target)
    out = take_stdout()
    if server is not None:
        from .remote import list_remote

        return list_remote(server, options, out)
    refuse_server_options(options)
    app = require_widgets(program.load_tagged(options.target, options))
    if options.json:
        write_json(out, msgspec.json.format(_json_list(app, options), indent=2))
        return 0
    write_stdout(out, f"{printable(_lists(app, options))}\n".encode())
    # Nothing else tells the author which tools have no return annotation.
    names = [
        name
        for name, tool in app.tools.items()
        if tool.settings.output_schema is None
        and "return" not in tool.source.function.__annotations__
    ]
    if names:
        have = "has" if len(names) == 1 else "have"
        write_stderr(
            f"note: {', '.join(names)} {have} no return type, so callers get no output schema; "
            "write -> and the type"
        )
    return 0


def _json_list(app: App, options: Options) -> bytes:
    registry = registry_of(app)
    if options.prompts:
        entries = [prompt_entry(each, LATEST_STATEFUL) for each in registry.prompts.values()]
    elif options.resources:
        entries = [resource_entry(each, LATEST_STATEFUL) for each in registry.resources.values()]
    else:
        from ..server.http.routes import function_list

        return function_list(registry)
    return msgspec.json.encode(entries)


def _lists(app: App, options: Options) -> str:
    registry = registry_of(app)
    # A widget's page is for hosts; it is mentioned on its tool's line.
    resources = [
        (each.uri, _summary(each))
        for each in registry.resources.values()
        if options.resources or not each.is_widget
    ]
    prompts = [(usage(each), _summary(each)) for each in registry.prompts.values()]
    if options.resources:
        return usage_table(resources) or f"{registry.name} has no resources"
    if options.prompts:
        return usage_table(prompts) or f"{registry.name} has no prompts"
    parts = [list_tools(app), section("resources", resources), section("prompts", prompts)]
    return "\n\n".join(each for each in parts if each)


def list_tools(app: App) -> str:
    """Return the usage and summary of each tool."""
    rows = [(usage(tool), _summary(tool)) for tool in app.tools.values()]
    return usage_table(rows) if rows else f"{registry_of(app).name} has no tools"


def _summary(tool: Tool) -> str:
    """Return the description's first line, the widget that shows the reply, and the gates."""
    summary = tool.description.partition("\n")[0]
    if tool.settings.widget is not None:
        summary += f" (widget: {tool.settings.widget})"
    if tool.gates is not None:
        from ..tools.requires import BuiltinGate

        names = [
            gate.label
            if isinstance(gate, BuiltinGate)
            else getattr(gate, "__name__", type(gate).__name__)
            for gate in tool.gates.declared
        ]
        summary += f" (requires {', '.join(names)})"
    return summary.lstrip()
