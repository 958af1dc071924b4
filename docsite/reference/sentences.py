"""One line for each variable, route, header and `_meta` key that a scan of the source finds."""

from __future__ import annotations

EXAMPLES = {
    "call": "calculator.py add x=7 y=3",
    "read": "notes.py config://app",
    "prompt": "notes.py review text=@draft.md",
    "console": "mcp.json",
    "worker": "jobs.py --state postgresql://localhost/tools",
}
"""Arguments of commands whose target is not enough."""
VARIABLES = {
    "ANSWERBACK_SECRET": (
        "servers, `worker`, `state`",
        "Signs sessions, questions, cursors and links, and seals the state of "
        "[several hosts](../guides/several-hosts.md). At least 16 bytes; several are separated by "
        "commas, and the first one signs. By default each process makes a key of its own.",
    ),
    "ANSWERBACK_STATE": (
        "servers, `worker`, `state`",
        "The PostgreSQL database that [several hosts](../guides/several-hosts.md) "
        "share, as `postgresql://user@host/name`; `--state` takes its place.",
    ),
    "ANSWERBACK_STATE_LISTEN": (
        "servers, `worker`",
        "The database itself, if `ANSWERBACK_STATE` goes through a pooler; "
        "`--state-listen` takes its place.",
    ),
    "ANSWERBACK_MAX_BODY": (
        "CGI",
        "The largest request body under [CGI](../guides/cgi.md), in bytes; "
        "4194304 by default. For `serve` it is `--max-body`.",
    ),
    "ANSWERBACK_TUNE": (
        "`serve`, `mcp`, `worker`",
        "`0` leaves Python's garbage collection and thread switching as they are; "
        "otherwise a server collects less often and switches threads sooner.",
    ),
    "ANSWERBACK_RELOAD": (
        "`serve`",
        "Set by `serve --reload` for the program that it starts; do not set it.",
    ),
    "HOST": (
        "`serve`",
        "The address to listen on; 127.0.0.1 by default. `--host` takes its place.",
    ),
    "PORT": ("`serve`", "The port to listen on; 8000 by default. `--port` takes its place."),
    "HTTP_PROXY": (
        "the client",
        "The proxy of the client's requests, as are `HTTPS_PROXY`, `ALL_PROXY` and "
        "`NO_PROXY`, also in small letters. Under CGI it is ignored, because a request's header "
        "`Proxy` sets it.",
    ),
    "WEB_CONCURRENCY": (
        "`app.asgi()`",
        "Read under another server, for the warning about several workers without "
        "`ANSWERBACK_SECRET`.",
    ),
    "GRANIAN_WORKERS": ("`app.asgi()`", "The same for granian."),
    "BROWSER": ("the command line", "The browser that opens login pages and the console."),
    "DISPLAY": (
        "the command line",
        "On Linux, says that there is a screen, so that login pages can be opened.",
    ),
    "WAYLAND_DISPLAY": ("the command line", "The same for Wayland."),
    "SSH_CONNECTION": (
        "the command line",
        "Says that the terminal is remote: a login page is printed, not opened.",
    ),
    "XDG_CONFIG_HOME": (
        "the command line",
        "The folder of settings on Linux, for `install` and the command line's "
        "logins; `~/.config` by default.",
    ),
    "APPDATA": ("the command line", "The same on Windows."),
    "PATH": (
        "the command line",
        "Searched for the command of a console script, for hints about starting it.",
    ),
    "GATEWAY_INTERFACE": (
        "CGI",
        "Set by a web server: `python app.py` then answers a CGI request.",
    ),
    "REQUEST_METHOD": ("CGI", "The request's method."),
    "PATH_INFO": ("CGI", "The path below the program."),
    "SCRIPT_NAME": ("CGI", "The path of the program itself."),
    "QUERY_STRING": ("CGI", "The query."),
    "CONTENT_TYPE": ("CGI", "The body's media type."),
    "CONTENT_LENGTH": ("CGI", "The body's length in bytes; no more is read."),
    "HTTP_ACCEPT": (
        "CGI",
        "The header `Accept`. The other `HTTP_…` variables are the other headers.",
    ),
    "HTTP_CONTENT_ENCODING": ("CGI", "A compressed body, which is refused."),
    "HTTP_TRANSFER_ENCODING": ("CGI", "A body without a length, which is refused."),
    "REMOTE_ADDR": ("CGI", "The client's address."),
    "REMOTE_USER": ("CGI", "The user that the web server authenticated, for the records."),
}
ROUTES = {
    "/functions": ("", "GET, HEAD", "Lists the tools: names, descriptions, schemas."),
    "": (
        "/functions/{name}",
        "POST",
        "Calls a tool; the contract's `route` is the path before it.",
    ),
    "/tasks/": (
        "/functions/{name}/tasks/{id}",
        "GET, HEAD, POST, DELETE",
        "A [task](../guides/tasks.md#over-rest): its state, answers to its questions, its "
        "cancellation.",
    ),
    "/result": ("/functions/{name}/tasks/{id}/result", "GET, HEAD", "The reply of the task."),
    "/pages/": (
        "/functions/{name}/pages/{cursor}",
        "GET, HEAD",
        "The rest of a [long list](../guides/pages.md).",
    ),
    "/mcp": ("", "GET, POST, DELETE", "[MCP](mcp.md#over-http) over Streamable HTTP."),
    "/message": ("", "POST", "One JSON-RPC request without a session, answered in plain JSON."),
    "/openapi.json": ("", "GET, HEAD", "The [OpenAPI](openapi.md) document."),
    "/healthz": (
        "",
        "GET, HEAD",
        "200 as long as the process answers, with its [checks](wires.md#health).",
    ),
    "/readyz": ("", "GET, HEAD", "200 if calls can be served, else 503, with the same checks."),
    "/": ("", "GET", "[The console](wires.md#the-console) for a browser, where it is shown."),
    "/docs": ("", "GET", "The same page."),
    "/console/about.json": ("", "GET", "What the console's page shows of the app."),
    "/console/frame": ("", "GET", "The frame in which the console shows a widget."),
    "/console/views": ("", "POST", "What a model in each modelled host sees of a reply."),
    "/dev/token": (
        "",
        "POST",
        "A [test token](../guides/auth.md#without-an-identity-provider), with `--dev-auth` only.",
    ),
    "/.well-known/oauth-protected-resource": (
        "",
        "GET",
        "Where clients log in (RFC 9728), also with the endpoint's path behind it; with "
        "[`auth=OAuth(…)`](../guides/auth.md) only.",
    ),
}
"""By the part of the path in the source: the whole path, the methods, and what it does."""
NOT_OURS = {"/.well-known/oauth-authorization-server", "/.well-known/openid-configuration"}
"""Paths that an identity provider answers."""
READ = {
    "accept": (
        "all",
        "Chooses the [dialect](wires.md#other-forms), and over MCP whether a stream comes.",
    ),
    "accept-encoding": ("console", "With gzip, the console's page is compressed."),
    "access-control-request-method": (
        "all",
        "A browser's question before a request of another site.",
    ),
    "authorization": ("all", "`Bearer TOKEN`: the [user](../guides/auth.md) or the API key."),
    "content-encoding": ("all", "Refused with 415: bodies are not compressed."),
    "content-length": ("all", "The body's length; too large a body is refused with 413."),
    "content-type": ("all", "Must be JSON or missing."),
    "forwarded": (
        "all",
        "The client behind a [trusted proxy](wires.md#behind-a-proxy) (RFC 7239).",
    ),
    "host": ("all", "Must be this machine or a name of `--allow-host`."),
    "idempotency-key": (
        "REST",
        "The [key](../guides/tasks.md#idempotency-keys) of a call that runs once.",
    ),
    "last-event-id": ("MCP", "Resumes a stream of MCP behind this event."),
    "mcp-method": ("MCP", "The method of an MCP request from 2026-07-28 on; must fit the body."),
    "mcp-name": ("MCP", "The tool, prompt or resource of such a request; must fit the body."),
    "mcp-param-": (
        "MCP",
        "`Mcp-Param-NAME`: an argument that is marked with `Header`; must fit the body.",
    ),
    "mcp-protocol-version": ("MCP", "The MCP version of a request."),
    "mcp-session-id": ("MCP", "The session, before 2026-07-28."),
    "origin": ("all", "Must be the server itself or a site of `--allow-origin`."),
    "prefer": (
        "REST",
        "`respond-async` and `wait=SECONDS`: a call that becomes a "
        "[task](../guides/tasks.md#over-rest).",
    ),
    "via": ("all", "Says that a proxy is in between: `--debug` then refuses the request."),
    "x-answerback-console": ("console", "The token of `answerback console` for a server."),
    "x-api-key": ("all", "An [API key](../guides/auth.md)."),
    "x-forwarded-for": ("all", "The client's address behind a trusted proxy."),
    "x-forwarded-host": ("all", "The host that the client asked for."),
    "x-forwarded-prefix": ("all", "The path that the proxy removed."),
    "x-forwarded-proto": ("all", "The scheme that the client used."),
    "x-real-ip": (
        "all",
        "Says that a proxy is in between: `--debug` and test tokens are then refused.",
    ),
}
SENT = {
    "access-control-allow-headers": ("all", "CORS, for the sites of `--allow-origin`."),
    "access-control-allow-methods": ("all", "The same."),
    "access-control-allow-origin": ("all", "The same; pages of any site may read where to log in."),
    "access-control-expose-headers": ("all", "The headers that pages of these sites can read."),
    "access-control-max-age": ("all", "How long a browser may keep the answer."),
    "allow": ("all", "With 405: the methods that the path has."),
    "cache-control": ("all", "`no-store` with tasks, tokens and refusals; `no-cache` with pages."),
    "content-encoding": ("console", "`gzip`, for the console's page only."),
    "content-length": ("all", "The body's length."),
    "content-security-policy": (
        "console",
        "What the console's page and a widget's frame may load.",
    ),
    "content-type": ("all", "The media type of the dialect, or of an image's or sound's bytes."),
    "cross-origin-opener-policy": ("console", "Keeps the console's page apart from other sites."),
    "date": ("all", "When the response was made."),
    "location": ("REST", "With 202: the path of the task."),
    "mcp-session-id": ("MCP", "The new session, before 2026-07-28."),
    "preference-applied": ("REST", "Which part of `Prefer` was followed."),
    "referrer-policy": ("console", "The console's page names itself to nobody."),
    "retry-after": ("all", "Seconds after which the caller should try again."),
    "vary": ("console", "The console's page depends on `Accept`."),
    "www-authenticate": ("all", "With 401 and 403: [how to log in](../guides/gates.md)."),
    "x-accel-buffering": ("MCP", "`no`, so that nginx passes on the events of a stream at once."),
    "x-answerback-form": ("REST", "`content`, `image` or `audio`: the body is not data."),
    "x-content-type-options": ("REST, console", "`nosniff`, with bytes and pages."),
    "x-error-code": ("REST", "The [code](errors.md) of an error."),
    "x-error-hint": (
        "REST",
        "What the caller can do; other characters than printable ASCII are `%XX`.",
    ),
    "x-error-url": ("REST", "The page that a [gate](../guides/gates.md) leads to."),
}
META = {
    "answerback/error": ("a result", "The error's code, details, retryable and hint."),
    "answerback/refusal": (
        "a result",
        "Why a [gate](../guides/gates.md) refused the call, for widgets.",
    ),
    "answerback/added": (
        "a result, a block",
        "The member `message` that was added to the data, or `true` for an added text.",
    ),
    "answerback/cut": ("a result", "What a [budget](../guides/large-replies.md) left out."),
    "answerback/timestamp": ("a result", "When the reply was made, if its sender says so."),
    "answerback/bare": ("a result", "The data is wrapped only because MCP requires an object."),
    "answerback/tags": ("a tool, resource or prompt", "Its [tags](../guides/composition.md#tags)."),
    "answerback/idempotencyKey": (
        "a request",
        "The [key](../guides/tasks.md#idempotency-keys) of a call that runs once.",
    ),
    "answerback/image": ("a block", "What MCP's image block has no member for, such as `alt`."),
    "answerback/audio": ("a block", "The same for sound."),
    "answerback/link": ("a block", "The same for a link, such as `kind`."),
    "answerback/embedded": ("a block", "The same for an embedded resource."),
    "answerback/filled-in": ("an envelope's block", "Its `altText` was added."),
    "answerback/address": ("an envelope's block", "Its `data:` URL is the author's own."),
    "anthropic/maxResultSizeChars": ("a tool", "The tool's `budget`, for Claude Code."),
    "io.modelcontextprotocol/protocolVersion": (
        "a request",
        "The MCP version, from 2026-07-28 on.",
    ),
    "io.modelcontextprotocol/clientCapabilities": (
        "a request",
        "What the client can do, likewise.",
    ),
    "io.modelcontextprotocol/clientInfo": ("a request", "The client's name and version, likewise."),
    "io.modelcontextprotocol/logLevel": ("a request", "The lowest level of log messages to send."),
    "io.modelcontextprotocol/serverInfo": ("a result", "The server's name and version."),
    "io.modelcontextprotocol/subscriptionId": ("a notification", "The subscription it belongs to."),
    "io.modelcontextprotocol/related-task": ("a message", "The task it belongs to (2025-11-25)."),
    "io.modelcontextprotocol/toolFailure": (
        "a result",
        "The [proposed metadata](../guides/reading.md#failures-of-other-servers) of a failure, "
        "with `Contract(tool_failure=True)`.",
    ),
    "progressToken": ("a request", "Asks for progress; the notifications carry it."),
    "webplus/i18n": ("a request", "The user's language, from older clients."),
}
NOT_META = {"io.modelcontextprotocol/ui", "io.modelcontextprotocol/tasks"}
"""Names of extensions, which are not keys of `_meta`."""
