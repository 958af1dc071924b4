"""Words that authors know from elsewhere, each with what to write instead.

They are from FastMCP, the official SDK, FastAPI, MCP's JSON, and drafts of this library. Only
messages use them, so the module is loaded when something is refused.
"""

from __future__ import annotations

_OAUTH = "write auth=OAuth(issuer=…, url=…) of answerback.auth"
_DEPENDS = "for a value that the server provides, write a parameter Annotated[T, Depends(fn)]"
_NOTHING = "HTTP clients choose; nothing is to be set"
_DUPLICATES = "a second one of the same name is always refused"
_PATHS = "MCP is served at /mcp; to move it, write app.asgi(mcp='/path')"
_NO_PAGES = "lists of up to 1,000 entries are one page"
_OPENAPI = "the OpenAPI document is at /openapi.json, and app.openapi() returns it"

OPTIONS = {
    "instructions": "write description=, which models read as the server's instructions",
    "annotations": "write read_only=, destructive=, idempotent= or open_world=",
    **{
        f"{hint}_hint": f"write {hint}="
        for hint in ("read_only", "destructive", "idempotent", "open_world")
    },
    "structured_output": "write values=Values(structured=False), or a return annotation, which "
    "makes the schema",
    "parameters": "write input_schema=, or leave it out: the parameters' types make the schema",
    "mime_type": "write mime=",
    "uri": "write the URI first, as in @app.resource('config://app')",
    "name_or_fn": "write name=",
    "host": "give it to the command: serve --host 127.0.0.1",
    "port": "give it to the command: serve --port 8000",
    "log_level": "give it to the command: serve --log-level info",
    "client_log_level": "give it to the command: serve --log-level info",
    "debug": "give it to the command: serve --debug",
    "root_path": "give it to the command: serve --root-path /tools",
    "mask_error_details": "exceptions are masked; raise ToolError to show a message, or write "
    "errors={YourError: NotFound}",
    "strict_input_validation": "write values=Values(lenient=False)",
    **dict.fromkeys(("on_duplicate", "on_duplicate_tools", "on_duplicate_prompts"), _DUPLICATES),
    **dict.fromkeys(("on_duplicate_resources", "warn_on_duplicate_tools"), _DUPLICATES),
    **dict.fromkeys(("warn_on_duplicate_resources", "warn_on_duplicate_prompts"), _DUPLICATES),
    "stateless_http": _NOTHING,
    "json_response": _NOTHING,
    "event_store": "interrupted streams can be resumed; nothing is to be set",
    "retry_interval": "interrupted streams can be resumed; nothing is to be set",
    **dict.fromkeys(("mount_path", "sse_path", "message_path", "streamable_http_path"), _PATHS),
    "max_request_body_size": "give it to the command: serve --max-body, or write "
    "app.asgi(max_body=…)",
    "transport_security": "give it to the command: serve --allow-host and --allow-origin, or write "
    "app.asgi(hosts=…, origins=…)",
    "token_verifier": _OAUTH,
    "auth_server_provider": _OAUTH,
    # `auth` is an app's option; FastMCP has it on tools too.
    "auth": "write requires=[login(), scope('admin')] of answerback.gates",
    "version": "an App has a version; put a tool's into its name, such as search_v2",
    "scopes": "write requires=[scope('admin')] of answerback.gates",
    "security": "write requires=[scope('admin')] of answerback.gates; for the paths of a resource "
    "allow_paths=",
    "resource_security": "paths are checked already; write allow_paths=('name',) on a resource "
    "whose parameter may be any path",
    "security_schemes": "write meta={'securitySchemes': [{'type': 'noauth'}]}",
    "app": "write widget='NAME', and app.widget('NAME', path='NAME.html')",
    "tools": "write app.add_tool(fn) for each function",
    "resources": "write @app.resource('config://app') above each function",
    "prompts": "write @app.prompt above each function",
    "include_tags": "give it to the command: serve --tag read",
    "exclude_tags": "give it to the command: serve --exclude-tag admin, or write "
    "app.disable(tag='admin')",
    "enabled": "write app.disable('NAME') after it is registered",
    "exclude_args": _DEPENDS,
    "dependencies": f"packages belong in pyproject.toml; {_DEPENDS}",
    "run_in_thread": "a def runs in a thread; write inline=True to run it in place",
    "serializer": "write register_type(YourType, …), or return text",
    "tool_serializer": "write register_type(YourType, …), or return text",
    "tasks": "write task='optional' on a tool",
    "list_page_size": _NO_PAGES,
    "session_state_store": "keep state in your own objects, such as ctx.state",
    "sampling_handler": "the client's model answers ctx.sample; there is no other handler",
    "providers": "write app.include(other), with another App",
    "transforms": "register a function with the name and the arguments that you want",
    "tool_transformations": "register a function with the name and the arguments that you want",
    "extensions": "register what you need on the App; capabilities follow from that",
    "experimental_capabilities": "capabilities follow from what is registered",
    # FastAPI.
    "response_model": "write a return annotation, which makes the schema",
    "status_code": "the reply decides: 200, or the status of the error that is raised",
    "summary": "write title=, or description=",
    "operation_id": "write name=",
    "responses": "write raises=[NotFound]",
    "include_in_schema": "write app.disable('NAME') to hide it from every caller",
    "deprecated": "say so in the description, which models read",
    "response_class": "return Text, Image or Embedded of answerback, or write @app.route for a "
    "page of your own",
    "docs_url": _OPENAPI,
    "redoc_url": _OPENAPI,
    "openapi_url": _OPENAPI,
    "on_startup": "write App(lifespan=…), a context manager function",
    "on_shutdown": "write App(lifespan=…), a context manager function",
    "exception_handlers": "write errors={KeyError: NotFound}",
}
"""Options of an app, a tool, a resource or a prompt; in snake_case."""

CONTEXT = {
    **{
        level: f"write ctx.log(message, {level!r})"
        for level in ("debug", "info", "warning", "error")
    },
    "report_progress": "write ctx.progress(done, total, message)",
    "list_roots": "write await ctx.roots()",
    "request_context": "write ctx.request for the request, or ctx.state for what the lifespan "
    "yielded",
    "request_id": "write ctx.request.id",
    "client_id": "write ctx.user for the user, or ctx.request.client for the client program",
    "session_id": "write ctx.request.session",
    "headers": "write ctx.request.headers",
    "client_capabilities": "write ctx.can",
    "transport": "write ctx.wire",
    "session": "write ctx.request for the request, await ctx.sample(…) and await ctx.roots() for "
    "questions",
    "lifespan_context": "write ctx.state",
    "fastmcp": "use the App of your module",
    "mcp_server": "use the App of your module",
    "server": "use the App of your module",
    "app": "use the App of your module",
    "read_resource": "call the function of the resource",
    "list_resources": "write app.resources, with the App of your module",
    "get_prompt": "call the function of the prompt",
    "list_prompts": "call the function of the prompt",
    **dict.fromkeys(("get_state", "set_state", "delete_state"), "keep state in your own objects"),
    **dict.fromkeys(
        ("enable_components", "disable_components", "reset_visibility"),
        "write app.enable(tag=…) and app.disable(tag=…), which are for all callers, or "
        "@app.visible for some",
    ),
    "elicit_url": "write requires=[linked(…)] of answerback.gates",
    "close_sse_stream": "write ctx.close_stream()",
    "close_standalone_sse_stream": "write ctx.close_stream()",
    "notify_resource_updated": "write app.resource_changed(uri)",
    "send_notification": "changes of lists are announced by themselves; write "
    "app.resource_changed(uri) for a resource",
    **dict.fromkeys(
        ("notify_tools_changed", "notify_resources_changed", "notify_prompts_changed"),
        "nothing is to be called: changes of the lists are announced by themselves",
    ),
    "create_message": "write await ctx.sample('…')",
    "logger": "write ctx.log(message, 'info'), or use the module logging",
    "warn": "write ctx.log(message, 'warning')",
}
"""Members of the context."""

_INCLUDE = "write app.include(other, prefix='other_'), with another App"
_ASGI = "write app.asgi()"
_MOUNT = "to serve the app in FastAPI, write api.mount('/tools', app)"
_ROUTE = "write @app.route('/path', methods=['GET'])"
_METHOD = (
    "write @app.tool, which is served at POST /functions/NAME, "
    "or @app.route('/path', methods=['GET']) for a page of your own"
)
_RUN_STDIO = "write await app.run_async(['mcp'])"
_RUN_HTTP = "write await app.run_async(['serve']), or run the app under a server such as uvicorn"
_READ_TOOLS = "write app.tools, the tools by name"
_READ_RESOURCES = "write app.resources, the resources by URI"
_CONNECT = "write: async with connect(app) as server:"
_ERRORS = (
    "write @app.error(KeyError) above a function of the exception, "
    "or App(errors={KeyError: NotFound})"
)
_LIFESPAN = "write App(lifespan=…), a context manager function"
_OWN_VALUE = "it is the value that you gave to App"
_FUNCTIONS = (
    "it is not available: register a function for each operation, with app.add_tool(fn, "
    "input_schema=…) if it has a JSON Schema"
)
_PROXY = "it is not available: call the other server in a tool, with connect(url) of answerback"

APP = {
    **dict.fromkeys(("mount", "import_server", "include_router", "add_provider"), _INCLUDE),
    **dict.fromkeys(("http_app", "streamable_http_app", "wsgi_app"), _ASGI),
    "sse_app": f"{_ASGI}, which serves streamable HTTP, the successor of SSE, at /mcp",
    "custom_route": _ROUTE,
    **dict.fromkeys(("add_route", "api_route", "add_api_route"), _METHOD),
    **dict.fromkeys(("get", "post", "put", "patch", "delete", "head", "options", "trace"), _METHOD),
    "websocket": "it is not available; a tool reports with ctx.progress and ctx.log while it runs",
    "call_tool": "write await app.call('NAME', x=1)",
    **dict.fromkeys(("get_tool", "get_tools", "list_tools"), _READ_TOOLS),
    **dict.fromkeys(("get_resource", "get_resources", "list_resources"), _READ_RESOURCES),
    **dict.fromkeys(("get_resource_template", "get_resource_templates"), _READ_RESOURCES),
    "list_resource_templates": _READ_RESOURCES,
    "read_resource": f"{_CONNECT} await server.read(uri)",
    **dict.fromkeys(
        ("prompts", "get_prompts", "list_prompts"), f"{_CONNECT} await server.prompts()"
    ),
    **dict.fromkeys(
        ("get_prompt", "render_prompt"), f"{_CONNECT} await server.prompt('NAME', x=1)"
    ),
    "run_stdio_async": _RUN_STDIO,
    **dict.fromkeys(
        ("run_http_async", "run_sse_async", "run_streamable_http_async", "serve"), _RUN_HTTP
    ),
    "get_context": "write get_context(), with get_context from answerback, or a parameter "
    "ctx: Context",
    "settings": "give settings to the command: serve --host 127.0.0.1 --port 8000",
    "add_middleware": "write App(middleware=[timing]), with async def timing(call, next); "
    "wrap app.asgi() in middleware for HTTP",
    "middleware": "write App(middleware=[timing]), with async def timing(call, next); "
    "wrap app.asgi() in middleware for HTTP",
    **dict.fromkeys(("exception_handler", "add_exception_handler", "errorhandler"), _ERRORS),
    **dict.fromkeys(("on_event", "on_startup", "on_shutdown", "session_manager"), _LIFESPAN),
    "dependency_overrides": "write app.overrides, or with app.override(fn, replacement):",
    **dict.fromkeys(
        ("add_resource", "add_resource_fn", "add_template"), "write app.resource(uri)(fn)"
    ),
    "add_prompt": "write app.prompt(fn)",
    "add_completion_handler": "write @app.completion('PROMPT', 'argument')",
    "remove_resource": "write app.disable(uri)",
    **dict.fromkeys(("from_openapi", "from_fastapi", "from_client"), _FUNCTIONS),
    **dict.fromkeys(("as_proxy", "create_proxy"), _PROXY),
    **dict.fromkeys(
        ("add_transform", "add_tool_transformation", "wrap_transform"),
        "register a function with the name and the arguments that you want",
    ),
    **dict.fromkeys(
        ("add_extension", "create_initialization_options", "get_capabilities"),
        "register what you need on the App; capabilities follow from that",
    ),
    **dict.fromkeys(
        ("name", "version", "title", "icons", "website_url", "description"), _OWN_VALUE
    ),
    "instructions": f"write App(description=…); {_OWN_VALUE}",
    # FastAPI's include_router reads these.
    "routes": f"write @app.route('/path') to add one; {_MOUNT}",
    "_contains_router": _MOUNT,
    **dict.fromkeys(("openapi_schema", "openapi_url", "docs_url"), _OPENAPI),
    "logger": "use the module logging, or ctx.log for the client",
    "get_tasks": "type: answerback tasks list --tasks FILE",
}
"""Members of the server object; an App has none of these names."""

RUN = {
    "transport": "the command decides: app.run(['mcp']) for stdio, app.run(['serve']) for HTTP",
    "host": "write app.run(['serve', '--host', '127.0.0.1'])",
    "port": "write app.run(['serve', '--port', '8000'])",
    **dict.fromkeys(("mount_path", "path"), _PATHS),
    "show_banner": "no banner is printed",
    "log_level": "write app.run(['serve', '--log-level', 'info'])",
    "debug": "write app.run(['serve', '--debug'])",
    "reload": "write app.run(['serve', '--reload'])",
    "workers": "write app.run(['serve', '--workers', '2'])",
}
"""Options of `run`."""

_WRITE_APP = "write from answerback import App"
_RETURN_BLOCKS = "write success('text', data), or return the value or the blocks themselves"

PACKAGE = {
    **dict.fromkeys(("FastMCP", "MCPServer", "FastAPI", "Server", "APIRouter"), _WRITE_APP),
    "Client": "write from answerback import connect, and async with connect(app) as server:",
    "ClientSession": "write from answerback import connect, and async with connect(url) as server:",
    **dict.fromkeys(("ToolResult", "CallToolResult"), _RETURN_BLOCKS),
    **dict.fromkeys(("CurrentContext", "Request"), "write a parameter ctx: Context"),
    "TextContent": "write Text, or return a str",
    "ImageContent": "write Image",
    "AudioContent": "write Audio",
    "EmbeddedResource": "write Embedded",
    "ResourceLink": "write Link",
    "File": "write Embedded",
    "ToolAnnotations": "write the options read_only=, destructive=, idempotent= and open_world=",
    **dict.fromkeys(("UserMessage", "AssistantMessage", "PromptMessage"), "write Message"),
    **dict.fromkeys(("McpError", "MCPError", "HTTPException"), "write ToolError or NotFound"),
    **dict.fromkeys(("ResourceError", "PromptError", "ValidationError"), "write ToolError"),
    "NotFoundError": "write NotFound",
    "Field": "write from pydantic import Field, or put descriptions into the docstring",
    **dict.fromkeys(
        ("Query", "Path", "Body", "Form", "UploadFile"),
        "a parameter's type and its line in the docstring are enough",
    ),
    "Security": "write requires=[scope('admin')], with scope from answerback.gates",
    "Middleware": "write a function, async def timing(call, next), in App(middleware=[timing])",
    "TokenVerifier": "write OAuth or ApiKeys, from answerback.auth",
    "AuthSettings": "write OAuth or ApiKeys, from answerback.auth",
    "create_proxy": "call the other server in a tool, with connect(url)",
    "BackgroundTasks": "write @app.tool(task='optional')",
    "Error": "write failure('message', code='NOT_FOUND'), or raise NotFound",
}
"""Names that authors import from a framework's package."""

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
    "errorcode": "write an Enum of your own, as in ToolError(message, ErrorCode.ENTITY_EXISTS)",
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
    "createloginpromptresponse": "write login_prompt(feature), from answerback.gates",
    "createsubscriptionrequiredresponse": (
        "write subscription_prompt(feature, user, url=…), from answerback.gates"
    ),
    "createplaidrequiredresponse": (
        "write await link_prompt(user, headers, service='plaid'), from answerback.gates"
    ),
}
"""Names of the documents in docs/reference/conventions.md, without capitals and underscores."""

HOMES = {
    "answerback.auth": "ApiKey ApiKeys Authenticator CannotAuthenticate Challenge Credentials "
    "Introspection OAuth OAuthOptions TokenLookup TokenProof Unauthorized User",
    "answerback.client": "BadTarget ConnectError ElicitationRequest FilledPrompt ManyServers "
    "RemotePrompt RemoteResource RemoteServer RemoteTemplate RemoteTool StartedTask start_task",
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
"""The public names that other modules than `answerback` have."""
