"""Messages for names from other frameworks and from the conventions, and for misspelt names.

`HINTS` lists the forty names that FastMCP and official SDK servers use most. This module
is loaded only if a name is refused, or if another framework is loaded.
"""

from __future__ import annotations

import re
from collections.abc import Collection, Iterable, Iterator, Mapping
from types import UnionType
from typing import Annotated, Any, Literal, NoReturn, Union, get_args, get_origin

from ..core.author_errors import did_you_mean, similar_names

HINTS: dict[str, dict[str, str]] = {
    "from answerback import": {
        "FastMCP": "write from answerback import App",
        "MCPServer": "write from answerback import App",
        "Client": "write from answerback import connect, and async with connect(app) as server:",
        "ToolResult": "write success('text', data), or return the value or the blocks themselves",
        "CallToolResult": "write success('text', data), or return the value or the blocks "
        "themselves",
        "TextContent": "write Text, or return a str",
        "ImageContent": "write Image",
        "EmbeddedResource": "write Embedded",
        "ToolAnnotations": "write the options read_only=, destructive=, idempotent= and "
        "open_world=",
        "MCPError": "write ToolError or NotFound",
        "Middleware": "write a function, async def timing(call, next), in App(middleware=[timing])",
    },
    "option": {
        "instructions": "write description=, which models read as the server's instructions",
        "dependencies": "packages belong in pyproject.toml; for a value that the server provides, "
        "write a parameter Annotated[T, Depends(fn)]",
        "annotations": "write read_only=, destructive=, idempotent= or open_world=",
        "structured_output": "write values=Values(structured=False), or a return annotation, "
        "from which the schema is derived",
        "mime_type": "write mime=",
        "transport": "the command decides: app.run(['mcp']) for stdio, app.run(['serve']) for HTTP",
        "host": "write app.run(['serve', '--host', '127.0.0.1'])",
        "port": "write app.run(['serve', '--port', '8000'])",
        "log_level": "write app.run(['serve', '--log-level', 'info'])",
        "path": "MCP is served at /mcp; to move it, write app.asgi(mcp='/path')",
        "stateless_http": "leave it out; HTTP clients choose",
    },
    "App": {
        "list_tools": "write app.tools, the tools by name",
        "list_resources": "write app.resources, the resources by URI",
        "list_prompts": "write: async with connect(app) as server: await server.prompts()",
        "call_tool": "write await app.call('NAME', x=1)",
        "read_resource": "write: async with connect(app) as server: await server.read(uri)",
        "add_prompt": "write app.prompt(fn)",
        "run_stdio_async": "write await app.run_async(['mcp'])",
        "run_http_async": "write await app.run_async(['serve']), or run the app under a server "
        "such as uvicorn",
        "streamable_http_app": "write app.asgi()",
        "sse_app": "write app.asgi(), which serves streamable HTTP, the successor of SSE, at /mcp",
        "custom_route": "write @app.route('/path', methods=['GET'])",
        "settings": "pass settings to the command: serve --host 127.0.0.1 --port 8000",
        "add_middleware": "write App(middleware=[timing]), with async def timing(call, next); "
        "wrap app.asgi() in middleware for HTTP",
    },
    "Context": {
        "error": "write ctx.log(message, 'error')",
        "warning": "write ctx.log(message, 'warning')",
        "info": "write ctx.log(message, 'info')",
        "request_context": "write ctx.request for the request, or ctx.state for what the lifespan "
        "yielded",
        "session": "write ctx.request for the request, await ctx.sample(…) and await ctx.roots() "
        "for questions",
    },
}
"""What to write instead of a name, by where the name is used."""

CONVENTIONS = {
    "createsuccessresponse": "write success(data), or success(text, data, meta)",
    "buildsuccessresponse": "return the data itself, or write success(data)",
    **dict.fromkeys(
        ("createerrorresponse", "builderrorresponse"),
        "write failure(message, code, details), or raise ToolError(message, code, details)",
    ),
    "createtextcontent": "write Text(text, meta)",
    "createimagecontent": "write Image(data, mime, meta)",
    "createresourcecontent": "write Embedded(uri, text=…, mime=…)",
    "wraptoolresponse": "write wrap(fn)",
    "formatcomplexdataastext": "return the data: contract='envelope' makes the text",
    "validatemcpresponse": "write validate(response, 'envelope')",
    "mcpresponsevalidationmiddleware": "write ValidReplies, from answerback.middleware",
    "auditmcpresponse": "write audit(name, response, dialect='envelope')",
    "wrapwithaudit": "write audit(name, fn, dialect='envelope')",
    "mockmcpclient": "write DisplayClient, from answerback.testing",
    "handleerror": "raise ToolError(message): every failure of a tool becomes a reply",
    "dfmerror": "write a subclass of ToolError",
    "errorcode": "write your own Enum, as in ToolError(message, ErrorCode.ENTITY_EXISTS)",
    "retrywithbackoff": "write Retry(attempts=3, on=Exception), from answerback.resilience",
    "circuitbreaker": "write Breaker(name, failures=3), from answerback.resilience",
    "registertool": "write @app.tool(name=…, title=…, description=…)",
    "generateopenapispec": "write app.openapi()",
    "generateoutputjsonschema": "write app.tools[name].output_schema",
    "mcptoolresponse": "write Reply[Data, Meta]",
    "mcptoolresponseschema": "run answerback schema mcp",
    "mcpresponseschema": "run answerback schema envelope --convention",
    "mcpcontent": "write Text, Image, Audio or Embedded",
    "openairesponsemetadata": "write ResultMeta",
    "securityschemes": "write meta={'securitySchemes': [{'type': 'noauth'}]}",
    "createloginpromptresponse": "write login_prompt(feature), from answerback.gates",
    "createsubscriptionrequiredresponse": (
        "write subscription_prompt(feature, user, url=…), from answerback.gates"
    ),
    "createplaidrequiredresponse": (
        "write await link_prompt(user, headers, service='plaid'), from answerback.gates"
    ),
}
"""Names from the documents in docs/reference/conventions.md, in lower case without underscores."""

HOMES = {
    "answerback.auth": "ApiKey ApiKeys Authenticator CannotAuthenticate Challenge Credentials "
    "Introspection OAuth OAuthOptions TokenLookup TokenProof Unauthorized User",
    "answerback.client": "BadTarget Change ConnectError ElicitationRequest FilledPrompt "
    "ManyServers RemotePrompt RemoteResource RemoteServer RemoteTemplate RemoteTool StartedTask "
    "start_task",
    "answerback.client.login": "ClientCredentials FileTokens KeyringTokens Login MemoryTokens "
    "RegisteredClient TokenStore browser paste",
    "answerback.contract": "ALIGNED APPS DIRECT ENVELOPE PRESETS STANDARD",
    "answerback.errors": "AnswerbackError Code add_codes",
    "answerback.gates": "LinkRefused Redeemed Refusal UsedFiles UsedTokens link_prompt linked "
    "login login_prompt scope subscription subscription_prompt",
    "answerback.models": "ConversionReport ModelTools ToolReport to_anthropic to_gemini to_openai "
    "to_openai_responses",
    "answerback.options": "Access ReplyLimits Shown Task TaskLimits Values",
    "answerback.records": "Entry Event JSONL Logging OpenTelemetry Records SQLite Sink Store",
    "answerback.resilience": "Breaker BreakerStore Clock Limit LimitStore Retry",
    "answerback.testing": "DisplayClient TestContext assert_valid_reply",
}
"""The public names in modules other than `answerback`."""

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
"""Options that became part of another option: that option, its class, and the new name if any."""


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


def option_hint(name: str, known: Collection[str]) -> str:
    """Return what to write instead of *name*, an option that is not among *known*."""
    # `inputSchema` is `input_schema`, and `_meta` is `meta`.
    plain = re.sub(r"(?<=[a-z0-9])([A-Z])", r"_\1", name).lower().strip("_")
    if plain in known:
        return f"write {plain}="
    if hint := HINTS["option"].get(plain) or CONVENTIONS.get(plain.replace("_", "")):
        return hint
    if similar := similar_names(plain, known):
        return did_you_mean(similar)
    return f"the options are {', '.join(sorted(known))}"


def missing_member(
    owner: Literal["App", "Context"], name: str, known: Iterable[str]
) -> AttributeError:
    """Return the error for a member that an App or a Context does not have."""
    hint = HINTS[owner].get(name, "")
    if not hint and not name.startswith("_"):
        hint = did_you_mean(similar_names(name, [each for each in known if each[0] != "_"]))
    text = f"{owner!r} object has no attribute {name!r}"
    # With `obj` set to None, Python does not add its own suggestion.
    return AttributeError(f"{text}; {hint}" if hint else text, name=name, obj=None)


def package_hint(name: str, known: Collection[str]) -> str:
    """Return what to write instead of a name that the package does not have; empty if unknown."""
    for module, names in HOMES.items():
        if name in names.split():
            return f"write from {module} import {name}"
    if hint := CONVENTIONS.get(name.replace("_", "").lower()):
        return f"{hint}; docs/reference/conventions.md lists the other names"
    return HINTS["from answerback import"].get(name) or did_you_mean(similar_names(name, known))


def refuse_run_options(options: dict[str, object]) -> NoReturn:
    """Raise TypeError for options to `app.run`, which takes command-line arguments."""
    name = min(options)
    hint = HINTS["option"].get(name, "it takes command-line arguments, as in app.run(['mcp'])")
    raise TypeError(f"app.run takes no {name}=; {hint}")


def refuse_text(arguments: str) -> NoReturn:
    """Raise TypeError for a string where `app.run` expects a list."""
    words = {"stdio": ["mcp"], "http": ["serve"], "sse": ["serve"], "streamable-http": ["serve"]}
    wanted = words.get(arguments, arguments.split())
    raise TypeError(f"app.run takes a list, not {arguments!r}; write app.run({wanted!r})")


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
            f"or {parameter}: Annotated[T, Depends(fn)] for a value from the server"
        )
    return f"write {parameter}: str"


# What to write instead, by the first part of a class's module and by the class's name.
_DEPENDS = "{name}: Annotated[T, Depends(fn)] with Depends from answerback"
_CONTEXT = "{name}: Context with Context from answerback"
_REQUEST = "ctx: Context and read ctx.request"
_USER = "ctx: Context and read ctx.user"
_FILLED_IN: dict[tuple[str, str], str] = {
    ("fastapi", "Depends"): _DEPENDS,
    ("fastapi", "Security"): f"{_DEPENDS}, or {_USER}",
    ("fastapi", "Header"): f"{_REQUEST}.headers",
    ("fastapi", "Cookie"): f"{_REQUEST}.headers['cookie']",
    ("fastapi", "File"): "{name}: bytes",
    ("fastmcp", "Context"): _CONTEXT,
    ("fastmcp", "CurrentContext"): _CONTEXT,
    ("fastmcp", "CurrentRequest"): _REQUEST,
    ("fastmcp", "CurrentHeaders"): f"{_REQUEST}.headers",
    ("fastmcp", "CurrentAccessToken"): _USER,
    ("fastmcp", "TokenClaim"): _USER,
    # The packages that provide FastMCP's dependencies.
    ("uncalled_for", "Dependency"): _DEPENDS,
    ("docket", "Dependency"): _DEPENDS,
    ("mcp", "Context"): _CONTEXT,
    ("mcp", "Resolve"): _DEPENDS,
    ("starlette", "Request"): _REQUEST,
    ("starlette", "HTTPConnection"): _REQUEST,
    ("starlette", "Response"): "no such parameter; return the data, or failure(...)",
    ("starlette", "BackgroundTasks"): "no such parameter; start the work in the function",
}


def refuse_foreign_marker(parameter: str, annotation: object, default: object, where: str) -> None:
    """Raise a TypeError naming *where* for a parameter that another framework would fill in.

    Such a parameter must never become an argument. The frameworks are not imported; their objects
    are recognised by module and class name.
    """
    for cls in (type(default), *_classes(annotation)):
        for base in getattr(cls, "__mro__", ()):
            library = base.__module__.partition(".")[0]
            advice = _FILLED_IN.get((library, base.__name__.lstrip("_")))
            if advice is not None:
                names = {"fastapi": "FastAPI", "starlette": "Starlette", "mcp": "the MCP SDK"}
                owner = names.get(cls.__module__.partition(".")[0], "FastMCP")
                raise TypeError(
                    f"{where} is filled in by {owner}'s {cls.__name__.lstrip('_')}, which "
                    f"Answerback does not support; write {advice.format(name=parameter)}"
                )


def _classes(annotation: Any) -> Iterator[Any]:
    """Yield the classes of an annotation's markers, and its types."""
    if get_origin(annotation) is Annotated:
        yield from map(type, annotation.__metadata__)
        yield from _classes(annotation.__origin__)
    elif get_origin(annotation) in (Union, UnionType):
        for each in get_args(annotation):
            yield from _classes(each)
    else:
        yield get_origin(annotation) or annotation
