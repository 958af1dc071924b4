"""Names that authors of FastMCP and SDK servers write, and what Answerback has instead.

They are looked up only for a message about a mistake.
"""

from __future__ import annotations

from collections.abc import Iterable

_MASKED = (
    "exceptions are always masked; raise a ToolError with the message for callers, or start "
    "`serve --debug` on your own machine"
)
_AUTHENTICATION = "a proxy in front of the server authenticates clients; see docs/deployment.md"
_OPTIONS = {
    "annotations": "write read_only=, destructive=, idempotent= or open_world=",
    "auth": _AUTHENTICATION,
    "auth_server_provider": _AUTHENTICATION,
    "debug": "start the program with `serve --debug`",
    "dependencies": "list them in pyproject.toml",
    "enabled": "leave the tool out, or call app.disable(name)",
    "exclude_args": "mark the parameter with Depends(...)",
    "host": "start the program with `serve --host`, or set HOST",
    "instructions": "write description=",
    "json_response": "leave it out; each client gets the form that it accepts",
    "log_level": "start the program with `serve --log-level`",
    "mask_error_details": _MASKED,
    "on_duplicate": "leave it out; a second tool of the same name is refused",
    "output_schema": "write the type of the result as the return annotation",
    "port": "start the program with `serve --port`, or set PORT",
    "run_in_thread": "leave it out; a `def` runs in a thread unless it has inline=True",
    "stateless_http": "leave it out; clients with and without sessions are served at one address",
    "strict_input_validation": "write lenient=False",
    "structured_output": "write structured=False",
    "token_verifier": _AUTHENTICATION,
    "tools": "register each function with @app.tool or app.add_tool",
    "warn_on_duplicate_tools": "leave it out; a second tool of the same name is refused",
}
_RUN = {
    "transport": (
        "the command decides: `python file.py mcp` is stdio and `python file.py serve` is HTTP; "
        "in a program, app.run(['mcp'])"
    ),
    "host": "app.run(['serve', '--host', '127.0.0.1'])",
    "port": "app.run(['serve', '--port', '8000'])",
    "path": "MCP is at /mcp; app.run(['serve', '--root-path', '/tools']) is for a proxy",
    "log_level": "app.run(['serve', '--log-level', 'info'])",
}
_CONTEXTS = ("ctx", "context")


def advice_for_option(name: str) -> str | None:
    """The advice about an option that `App` and tools do not have; None if there is none."""
    return _OPTIONS.get(name)


def advice_for_run(names: Iterable[str]) -> str:
    """The message about keyword arguments of `app.run`."""
    name = min(names)
    advice = _RUN.get(name, "write the words of the command line: app.run(['serve'])")
    return f"app.run takes no {name}=; {advice}"


def type_to_write(parameter: str) -> str:
    """The type that a message suggests for a parameter without one."""
    return "Context" if parameter in _CONTEXTS else "str"
