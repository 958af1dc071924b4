"""Names that authors know from elsewhere, and what to write instead.

They are from FastMCP, the official SDK, other frameworks, and drafts of this library.

Only messages use it, so it is imported when something is refused.
"""

from __future__ import annotations

from collections.abc import Collection, Mapping
from typing import NoReturn

_OPTIONS = {
    "instructions": "write description=, which models read as the server's instructions",
    "annotations": "write read_only=, destructive=, idempotent= or open_world=",
    "output_schema": "write a return annotation, which makes the schema",
    "structured_output": "write values=Values(structured=False), or a return annotation, which "
    "makes the schema",
    "mime_type": "write mime=",
    "uri": "write the URI first, as in @app.resource('config://app')",
    "host": "give it to the command: serve --host 127.0.0.1",
    "port": "give it to the command: serve --port 8000",
    "log_level": "give it to the command: serve --log-level info",
    "debug": "give it to the command: serve --debug",
    "mask_error_details": "exceptions are masked unless serve has --debug; raise ToolError to show "
    "a message",
    "strict_input_validation": "write values=Values(lenient=False)",
    "on_duplicate_tools": "a second tool of one name is always refused",
    "stateless_http": "HTTP clients choose; nothing is to be set",
    "json_response": "HTTP clients choose; nothing is to be set",
    "token_verifier": "write auth=OAuth(issuer=…, url=…) of answerback.auth",
    "auth_server_provider": "write auth=OAuth(issuer=…, url=…) of answerback.auth",
    # `auth` is an app's option; FastMCP has it on tools too.
    "auth": "write requires=[login(), scope('admin')] of answerback.gates",
    "scopes": "write requires=[scope('admin')] of answerback.gates",
    "security_schemes": "write meta={'securitySchemes': [{'type': 'noauth'}]}",
    "app": "write widget='NAME', and app.widget('NAME', path='NAME.html')",
}
_CONTEXT = {
    **{
        level: f"write ctx.log(message, {level!r}), without await"
        for level in ("debug", "info", "warning", "error")
    },
    "report_progress": "write ctx.progress(done, total, message), without await",
    "list_roots": "write await ctx.roots()",
    "request_context": "write ctx.request for the request",
    "request_id": "write ctx.request for the request",
    "client_id": "write ctx.request for the request",
    "session_id": "write ctx.request for the request",
    "session": "write ctx.request for the request",
    "lifespan_context": "write ctx.state",
    "fastmcp": "use the App of your module",
    "mcp_server": "use the App of your module",
    "read_resource": "call the function of the resource",
    "get_state": "keep state in your own objects",
    "set_state": "keep state in your own objects",
}
_RUN = {
    "transport": "the command decides: app.run(['mcp']) for stdio, app.run(['serve']) for HTTP",
    "host": "write app.run(['serve', '--host', '127.0.0.1'])",
    "port": "write app.run(['serve', '--port', '8000'])",
    "mount_path": "mount app.asgi() in your application",
    "path": "mount app.asgi() in your application",
}
_WHOLE_ARGUMENTS = frozenset({"params", "args", "arguments", "input", "payload", "body", "kwargs"})
_OF_THE_SERVER = frozenset(
    {"manager", "logger", "db", "database", "session", "client", "pool", "conn", "connection"}
    | {"config", "settings", "request", "req", "user"}
)

_GROUPED = {
    **dict.fromkeys(("invoking", "invoked", "visible_to"), ("widget", "Shown", "")),
    "idempotency_key": ("task", "Task", "key"),
    **dict.fromkeys(("lenient", "returns", "structured", "nan"), ("values", "Values", "")),
    **dict.fromkeys(("url", "sessions", "challenge", "used_tokens"), ("access", "Access", "")),
    "task_limits": ("limits", "Limits", "tasks"),
}
"""Options that became part of another option: that one, its class, and the new name if any."""


def refuse_grouped(options: Mapping[str, object], known: Collection[str]) -> None:
    """Raise TypeError if one of *options* became part of another option among *known*."""
    old = {name: _GROUPED[name] for name in sorted(options) if name in _GROUPED}
    old = {name: place for name, place in old.items() if name not in known and place[0] in known}
    if not old:
        return
    first, (option, kind, _) = next(iter(old.items()))
    plain = options.get(option)
    parts = [repr(plain)] if isinstance(plain, str) else []
    parts += [
        f"{renamed or name}={_shown(options[name])}"
        for name, (place, _, renamed) in old.items()
        if place == option
    ]
    package = "answerback" if kind == "Limits" else "answerback.options"
    raise TypeError(
        f"{first}= is now part of {option}=: write {option}={kind}({', '.join(parts)}), "
        f"with {kind} from {package}"
    )


def _shown(value: object) -> str:
    return repr(value) if isinstance(value, str | bool | set | list | tuple) else "…"


def option_hint(name: str) -> str | None:
    """Return what to write instead of another framework's option *name*."""
    return _OPTIONS.get(name)


def missing_context_member(name: str) -> AttributeError:
    """Return the error for a member that `Context` does not have."""
    hint = _CONTEXT.get(name)
    text = f"'Context' object has no attribute {name!r}"
    return AttributeError(text if hint is None else f"{text}; {hint}")


def refuse_run_options(options: dict[str, object]) -> NoReturn:
    """Raise TypeError for options of `app.run`, which takes a command line's words."""
    name = min(options)
    hint = _RUN.get(name, "it takes the words of a command line, as in app.run(['mcp'])")
    raise TypeError(f"app.run takes no {name}=; {hint}")


def refuse_text(arguments: str) -> NoReturn:
    """Raise TypeError for a string where `app.run` takes a list of words."""
    words = {"stdio": ["mcp"], "http": ["serve"], "sse": ["serve"], "streamable-http": ["serve"]}
    wanted = words.get(arguments, arguments.split())
    raise TypeError(f"app.run takes a list of words, not {arguments!r}; write app.run({wanted!r})")


def missing_type_hint(parameter: str, function: str) -> str:
    """Return what to write for a parameter without a type."""
    if function == "<lambda>":
        return "a lambda cannot have types, so write a def"
    if parameter in ("ctx", "context"):
        return f"write {parameter}: Context with Context from answerback"
    if parameter in _WHOLE_ARGUMENTS:
        return (
            f"write one parameter for each argument, as in def {function}(x: int, y: str), "
            f"or {parameter}: Annotated[dict, AllArguments] for all arguments as one object"
        )
    if parameter in _OF_THE_SERVER:
        return (
            f"write {parameter}: str for an argument, "
            f"or {parameter}: Annotated[T, Depends(fn)] for a value of the server's"
        )
    return f"write {parameter}: str"
