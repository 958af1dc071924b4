"""`list`: lists the tools, their arguments and their descriptions."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, Any

import msgspec

from ..registry.declarations import registry_of
from ..server.standard_streams import take_stdout
from .program import (
    NO_SERVER,
    Program,
    add_server_options,
    add_tag_options,
    printable,
    require_widgets,
    write_json,
    write_stderr,
    write_stdout,
)
from .tool_help import usage, usage_table

if TYPE_CHECKING:
    from ..app import App
    from ..tools.tool import Tool


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser_with_target("list")
    parser.add_argument("--json", action="store_true", help="names, descriptions and schemas")
    add_tag_options(parser)
    add_server_options(parser, program)
    options = parser.parse_args(arguments)
    server = program.find_server(options.target)
    if (options.transport or options.inherit_env) and server is None:
        parser.error(NO_SERVER)
    out = take_stdout()
    if server is not None:
        from .remote import list_remote

        return list_remote(server, options, out)
    app = require_widgets(program.load_tagged(options.target, options))
    if options.json:
        from ..server.http.pages import function_list

        write_json(out, msgspec.json.format(function_list(registry_of(app)), indent=2))
    else:
        write_stdout(out, f"{printable(list_tools(app))}\n".encode())
        _note_missing_types(app)
    return 0


def _note_missing_types(app: App) -> None:
    """Name the tools without a return annotation, because nothing else tells the author."""
    names = [
        name
        for name, tool in app.tools.items()
        if "return" not in tool.source.function.__annotations__
    ]
    if names:
        have = "has" if len(names) == 1 else "have"
        write_stderr(
            f"note: {', '.join(names)} {have} no return type, so callers get no output schema; "
            "write -> and the type"
        )


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
        summary += f" (requires {', '.join(map(_gate_name, tool.gates.declared))})"
    return summary.lstrip()


def _gate_name(gate: Callable[..., Any]) -> str:
    from ..tools.requires import ReadyGate

    if isinstance(gate, ReadyGate):
        return gate.label
    name: str = getattr(gate, "__name__", type(gate).__name__)
    return name
