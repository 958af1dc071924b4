"""The console's page, one HTML document that is joined from the files in `parts/`, and its routes.

The scripts share one module, in the order of `SCRIPTS`. Indentation and lines of comment are left
out, so a template literal cannot rely on the spaces before a line. `make console` minifies them;
until then, the page has the scripts as they are. The page loads nothing else: its
Content-Security-Policy allows only the script and the style that it has itself.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Iterator
from functools import cache
from gzip import compress
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, cast, get_args
from urllib.parse import parse_qs

import msgspec

from ...contract import STANDARD, Contract, Dialect
from ...core.content import Text
from ...core.reply import Error, Reply
from ...core.versions import LATEST_STATEFUL, STATELESS, VERSIONS, Version
from ...dialects import HttpReply, shape_of, write
from ...dialects.accept import MEDIA_TYPES, prefers_html
from ...dialects.hosts import FRAMEWORKS, HOSTS
from ...dialects.seen_reply import seen_by
from ...dialects.status_and_headers import JSON
from ...errors import InvalidInput, MissingExtraError, ToolError
from ...protocol.widget import CSP
from ...reading import read
from ...rules.catalogue import RULES
from ...rules.finding import Finding
from ...rules.reply_view import CheckContext
from ...rules.rule_pages import terminal_page
from ...rules.validation import check
from ..asgi.request import ClientDisconnected, HttpRequest
from ..http.host_and_origin import is_local
from ..http.routes import refuse_media, refuse_method

if TYPE_CHECKING:
    from ...calls.runtime import Runtime
    from ...core.json_value import JsonObject
    from ..asgi.authenticated import Authenticated
    from ..http.host_and_origin import Guard
    from ..http.routes import Routes
    from ..http.server_options import StartHelp, WebOptions


_MAX_SHOWN = 50_000
"""How many characters of one text are sent to the page."""
_MAX_FINDINGS = 100
_ACCEPT = {dialect: media for media, dialect in MEDIA_TYPES.items()}
_MAX_CHARS = "anthropic/maxResultSizeChars"


class ListedTool(msgspec.Struct, rename="camel"):
    """The parts of a tool's entry in `tools/list` that the views need."""

    name: str
    output_schema: dict[str, Any] | None = None
    meta: dict[str, Any] | None = msgspec.field(default=None, name="_meta")

    @property
    def max_chars(self) -> int | None:
        found = (self.meta or {}).get(_MAX_CHARS)
        return found if isinstance(found, int) else None


class ViewsRequest(msgspec.Struct):
    """The body of a request: a result, and where it comes from."""

    result: dict[str, Any]
    tool: ListedTool
    version: str = ""
    """The version of MCP that the result is written in."""


_requests = msgspec.json.Decoder(ViewsRequest)


class WrittenReply(msgspec.Struct):
    """A reply as a dialect writes it."""

    dialect: Dialect
    accept: str
    """The media type with which a client asks for it; empty for the app's own dialect."""
    status: int
    media_type: str
    headers: dict[str, str]
    body: str
    """JSON; empty if the body is not text."""
    size: int


class SeenBy(msgspec.Struct):
    """A reply as a host or a framework shows it to a model."""

    id: str
    title: str
    is_host: bool
    part: str
    text: str
    size: int
    """How many characters the text has; *text* may have fewer."""
    tokens: int
    media: list[str]
    failed: bool
    lost: list[str]
    cut: str
    large: str
    """Says how it cuts large replies."""
    date: str
    source: str


class ShownFinding(msgspec.Struct):
    """A finding, with its rule's page."""

    rule: str
    name: str
    severity: str
    pointer: str
    message: str
    hint: str
    page: str


class ReplyViews(msgspec.Struct):
    dialects: list[WrittenReply]
    models: list[SeenBy]
    findings: list[ShownFinding]
    rules: int
    """How many rules there are."""
    unchecked: str
    """Why the output schema was not checked; empty if it was."""


def encoded_views(body: bytes, contract: Contract = STANDARD) -> bytes:
    """Return the JSON of all views; *body* is a `ViewsRequest`. Raises InvalidInput."""
    try:
        request = _requests.decode(body)
    except (msgspec.MsgspecError, RecursionError) as exc:
        raise InvalidInput(f"the views of a reply need its result and its tool: {exc}") from exc
    return msgspec.json.encode(reply_views(request, contract))


def reply_views(request: ViewsRequest, contract: Contract = STANDARD) -> ReplyViews:
    """Return all views of a result; *contract* is that of the app which sent it."""
    result, tool = request.result, request.tool
    reply = read(result, output_schema=tool.output_schema)
    version = VERSIONS.get(request.version)
    findings, unchecked = _findings(result, tool, version)
    return ReplyViews(
        dialects=[_written(reply, dialect, contract, version) for dialect in get_args(Dialect)],
        models=list(_models(result, tool.max_chars)),
        findings=[
            ShownFinding(
                rule=finding.rule,
                name=finding.name,
                severity=finding.severity,
                pointer=finding.pointer,
                message=finding.message,
                hint=finding.hint,
                page=terminal_page(RULES[finding.rule]),
            )
            for finding in findings[:_MAX_FINDINGS]
        ],
        rules=len(RULES),
        unchecked=unchecked,
    )


def _written(
    reply: Reply[Any], dialect: Dialect, contract: Contract, version: Version | None
) -> WrittenReply:
    shape = reply.shape or shape_of(reply, contract)
    written = write(reply, dialect, shape, contract, version)
    is_text = written.media_type.endswith("json") or written.media_type.startswith("text/")
    return WrittenReply(
        dialect=dialect,
        accept="" if dialect == contract.http else _ACCEPT.get(dialect, ""),
        status=written.status,
        media_type=written.media_type,
        headers=dict(written.headers),
        body=written.body.decode("utf-8", "replace")[:_MAX_SHOWN] if is_text else "",
        size=len(written.body),
    )


def _models(result: dict[str, Any], max_chars: int | None) -> Iterator[SeenBy]:
    for is_host, known in ((True, HOSTS), (False, FRAMEWORKS)):
        for name, model in known.items():
            seen = seen_by(result, name, max_chars)
            yield SeenBy(
                id=name,
                title=model.title,
                is_host=is_host,
                part=seen.half,
                text=seen.text[:_MAX_SHOWN],
                size=len(seen.text),
                tokens=seen.tokens,
                # The images and the audio that the model gets beside the text.
                media=[
                    type(part).__name__.lower() for part in seen.parts if not isinstance(part, Text)
                ],
                failed=seen.failed,
                lost=[each.part for each in seen.lost],
                cut=seen.cut,
                large=model.size,
                date=model.date,
                source=model.source,
            )


def _findings(
    result: dict[str, Any], tool: ListedTool, version: Version | None
) -> tuple[tuple[Finding, ...], str]:
    """Return the findings in a result, and why its schema was not checked."""
    context = CheckContext(
        version, tool.output_schema, "tools/call", listed=True, max_chars=tool.max_chars
    )
    try:
        return check(result, "mcp", context), ""
    except MissingExtraError as exc:
        without = msgspec.structs.replace(context, schema=None, listed=False)
        return check(result, "mcp", without), str(exc)


FRAME = "/console/frame"
_HTML = "text/html; charset=utf-8"
_PAGE = b"""<!doctype html>
<meta charset="utf-8">
<title>Widget</title>
<script>
  addEventListener("message", function show({ source, origin, data }) {
    // The origin of this sandboxed page is "null"; that of its address is the console's.
    if (source !== parent || origin !== location.origin) return;
    if (data?.method !== "ui/notifications/sandbox-resource-ready") return;
    removeEventListener("message", show);
    document.open();
    document.write(data.params.html);
    document.close();
  });
  const ready = { jsonrpc: "2.0", method: "ui/notifications/sandbox-proxy-ready", params: {} };
  // The console counts the loads: this page's own must not be lost when the widget is written.
  addEventListener("load", () => parent.postMessage(ready, location.origin), { once: true });
</script>
"""


class DeclaredCsp(msgspec.Struct, rename="camel"):
    """The `csp` of MCP Apps."""

    connect_domains: list[str] = []
    resource_domains: list[str] = []
    frame_domains: list[str] = []
    base_uri_domains: list[str] = []


def widget_frame(query: bytes) -> HttpReply:
    """Return the page; `csp` in *query* is what the widget declares. Raises InvalidInput."""
    given = parse_qs(query.decode("latin-1")).get("csp", ["{}"])[0]
    try:
        declared = msgspec.json.decode(given, type=DeclaredCsp)
        csp = CSP(
            connect=declared.connect_domains,
            resources=declared.resource_domains,
            frames=declared.frame_domains,
            base_uris=declared.base_uri_domains,
        )
    except ValueError as exc:
        raise InvalidInput(f"The console cannot enforce the widget's csp: {exc}") from exc
    headers = (
        ("Content-Security-Policy", _policy(csp)),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cache-Control", "no-cache"),
    )
    return HttpReply(200, _PAGE, _HTML, headers)


def _policy(csp: CSP) -> str:
    """Return the policy that hosts of MCP Apps enforce; it does not allow this server's origin."""
    return "; ".join(
        (
            "default-src 'none'",
            _directive("script-src", "'unsafe-inline'", *csp.resources),
            _directive("style-src", "'unsafe-inline'", *csp.resources),
            _directive("img-src", "data:", *csp.resources),
            _directive("font-src", "data:", *csp.resources),
            _directive("media-src", "data:", *csp.resources),
            _directive("connect-src", *csp.connect),
            _directive("frame-src", *csp.frames),
            _directive("base-uri", *csp.base_uris),
            "form-action 'none'",
            "frame-ancestors 'self'",
            "sandbox allow-scripts",
        )
    )


def _directive(name: str, *sources: str) -> str:
    return " ".join((name, *(sources or ("'none'",))))


_LIBRARY = "preact_htm.js"
"""The file preact/standalone.module.js of the npm package htm, unchanged."""
MINIFIED = "page.min.js"
"""The library and the scripts, minified, under a line that names them by their digest."""
SCRIPTS = (
    "store.js",
    "mcp_client.js",
    "server.js",
    "common.js",
    "schema.js",
    "schema_problems.js",
    "servers.js",
    "schema_form.js",
    "code_samples.js",
    "tool_call.js",
    "models_view.js",
    "pages_view.js",
    "arguments_form.js",
    "widget_host.js",
    "widget_view.js",
    "reply_view.js",
    "tool_list.js",
    "activity.js",
    "questions_view.js",
    "log_view.js",
    "login_view.js",
    "tasks.js",
    "tasks_view.js",
    "completed_field.js",
    "entry_list.js",
    "resources_view.js",
    "prompts_view.js",
    "tools_view.js",
    "history_view.js",
    "start_view.js",
    "main.js",
)
"""The scripts, each after those that it uses while it is loaded."""
STYLES = (
    "style.css",
    "form.css",
    "replies.css",
    "servers.css",
    "rest.css",
    "widgets.css",
    "start.css",
)


class ConsolePage(NamedTuple):
    body: bytes
    compressed: bytes
    """The body, compressed by gzip."""
    headers: tuple[tuple[str, str], ...]


@cache
def console_page(page: Literal["", "docs"] = "") -> ConsolePage:
    """Return the page at `/` or `/docs`, and its headers; joined at the first request."""
    parts = files(__package__) / "parts"
    joined = joined_script()
    # The minified file may be that of earlier scripts.
    digest, _, minified = (parts / MINIFIED).read_text(encoding="utf-8").partition("\n")
    script = minified if digest == script_digest(joined) else joined
    style = "\n".join(_compact((parts / name).read_text(encoding="utf-8")) for name in STYLES)
    shell = (parts / "shell.html").read_text(encoding="utf-8").replace("{{page}}", page, 1)
    body = shell.replace("{{style}}", style, 1).replace("{{script}}", script, 1).encode()
    policy = "; ".join(
        (
            "default-src 'none'",
            f"script-src {_hash(script)}",
            f"style-src {_hash(style)}",
            "connect-src 'self'",
            "img-src 'self' data: blob:",
            "media-src data: blob:",
            "frame-src 'self'",
            "base-uri 'none'",
            "form-action 'none'",
            "frame-ancestors 'none'",
        )
    )
    headers = (
        ("Content-Security-Policy", policy),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cross-Origin-Opener-Policy", "same-origin"),
        ("Cache-Control", "no-cache"),
        ("Vary", "Accept, Accept-Encoding"),
    )
    return ConsolePage(body, compress(body), headers)


def joined_script() -> str:
    """Return the library and the scripts as one, without indentation and comments."""
    parts = files(__package__) / "parts"
    own = [_compact((parts / name).read_text(encoding="utf-8")) for name in SCRIPTS]
    return "\n".join([_as_names((parts / _LIBRARY).read_text(encoding="utf-8")), *own])


def script_digest(joined: str) -> str:
    """Return the first line of the minified file of this script."""
    return f"// {sha256(joined.encode()).hexdigest()}"


def _compact(text: str) -> str:
    lines = (line.strip() for line in text.splitlines())
    return "\n".join(line for line in lines if line and not line.startswith("//"))


def _as_names(library: str) -> str:
    """Return a module as a script that defines the names it exports."""
    body, _, exports = library.rpartition("export{")
    pairs = [pair.split(" as ") for pair in exports.strip().rstrip(";}").split(",")]
    members = ", ".join(f"{name}: {local}" for local, name in pairs)
    names = ", ".join(name for _, name in pairs)
    return f"const {{ {names} }} = (() => {{ {body} return {{ {members} }}; }})();"


def _hash(text: str) -> str:
    return f"'sha256-{b64encode(sha256(text.encode()).digest()).decode()}'"


PAGES = ("/", "/docs")
ABOUT = "/console/about.json"
VIEWS = "/console/views"
TOKEN_PAGE = "/dev/token"
"""The page of `serve --dev-auth` that gives test tokens."""
HTML = "text/html; charset=utf-8"
NO_STORE = (("Cache-Control", "no-store"),)


class ConsoleRoutes:
    """Answers the requests of one app's console."""

    def __init__(
        self,
        runtime: Runtime,
        guard: Guard,
        routes: Routes,
        auth: Authenticated | None,
        options: WebOptions,
    ) -> None:
        self._runtime = runtime
        self._guard = guard
        self._routes = routes
        self._auth = auth
        self._max_body = options.max_body
        self._start = options.start
        self._mcp = options.mcp
        self._only_local = options.only_local_console

    async def answer(self, request: HttpRequest) -> bool:
        """Answer a request for the console; return False for other requests."""
        is_own_machine = is_local(request.scope, request.headers)
        if self._only_local and not is_own_machine:
            return False
        if request.path == VIEWS:
            await self._answer_views(request)
            return True
        if request.path not in (ABOUT, FRAME) and not wants_page(request):
            return False
        refused = self._guard.refuse(request.scope, request.headers)
        if refused is not None:
            await request.respond_with(self._routes.refuse(refused, request))
        elif request.path == ABOUT:
            # Users of other machines can neither run the program nor need its path.
            start = self._start if is_own_machine else None
            body = msgspec.json.encode(self._about(start))
            await request.respond_with(HttpReply(200, body, JSON, NO_STORE))
        elif request.path == FRAME:
            try:
                frame = widget_frame(request.query)
            except ToolError as exc:
                frame = self._routes.refuse(Reply(error=Error.of(exc)), request)
            await request.respond_with(frame)
        else:
            await request.respond_with(page_for(request))
        return True

    async def _answer_views(self, request: HttpRequest) -> None:
        """Answer with all views of a result, for users who may call tools."""
        try:
            body = await request.body(self._max_body)
        except ClientDisconnected:
            await request.end_after_disconnect()
            return
        refused = (
            self._guard.refuse(request.scope, request.headers)
            or refuse_method(request.method, "POST")
            or refuse_media(request.content_type)
        )
        if refused is None and isinstance(body, Reply):
            refused = body
        if refused is not None:
            await request.respond_with(self._routes.refuse(refused, request))
        elif self._auth is not None and (answered := await self._auth.answer(request, body)):
            await request.respond_with(answered)
        else:
            contract = self._runtime.registry.contract
            found = await views_of(cast("bytes", body), contract)
            if isinstance(found, Reply):
                found = self._routes.refuse(found, request)
            await request.respond_with(found)

    def _about(self, start: StartHelp | None) -> JsonObject:
        registry = self._runtime.registry
        server: dict[str, Any] = {
            "name": registry.name,
            "mcp": self._mcp.lstrip("/"),
            "functions": registry.contract.route.lstrip("/"),
            "frame": FRAME.lstrip("/"),
            "dialect": registry.contract.http,
            "prefix": registry.contract.tool_prefix,
            "versions": [LATEST_STATEFUL.name, *STATELESS],
        }
        auth = self._runtime.auth
        pages = {} if auth is None else auth.pages or {}
        return {
            "name": registry.name,
            "title": registry.title,
            "version": registry.version,
            "description": registry.description,
            "auth": auth is not None,
            "tokens": TOKEN_PAGE.lstrip("/") if TOKEN_PAGE in pages else None,
            "servers": [server],
            "start": msgspec.to_builtins(start),
        }


def wants_page(request: HttpRequest) -> bool:
    """Return whether a browser asks for a page; programs get JSON as before."""
    # A prefix without a slash at its end is the page `/` too.
    is_page = request.path in PAGES or request.path == request.root
    if request.method not in ("GET", "HEAD") or not is_page:
        return False
    return prefers_html(request.accept.decode("latin-1"))


async def views_of(body: bytes, contract: Contract) -> HttpReply | Reply[Any]:
    """Return all views of the result in *body*, or the refusal of a malformed one."""
    # Imported at the first call in a console: it needs the rules and the modelled hosts.

    try:
        # In a thread, because a large result takes a while.
        views = await asyncio.to_thread(encoded_views, body, contract)
    except ToolError as exc:
        return Reply(error=Error.of(exc))
    return HttpReply(200, views, JSON, NO_STORE)


def page_for(request: HttpRequest) -> HttpReply:
    """Return the page at the request's path."""
    page = console_page("docs" if request.path == "/docs" else "")
    if b"gzip" not in request.headers.get(b"accept-encoding", b""):
        return HttpReply(200, page.body, HTML, page.headers)
    return HttpReply(200, page.compressed, HTML, (*page.headers, ("Content-Encoding", "gzip")))
