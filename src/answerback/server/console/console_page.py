"""The console's page and routes: a reply's views, a widget's frame, and the HTML document.

The document is built from the files in `parts/`; it loads nothing else, and its
Content-Security-Policy allows only its script and style. The scripts share one module, in the
order of `SCRIPTS`, without comments or indentation, so template literals cannot rely on leading
spaces. `make console` minifies them; until then, the page uses the scripts as they are.
"""

from __future__ import annotations

import asyncio
from base64 import b64encode
from functools import cache
from gzip import compress
from hashlib import sha256
from importlib.resources import files
from typing import TYPE_CHECKING, Any, Literal, NamedTuple, get_args
from urllib.parse import parse_qs

import msgspec

from ...contract import Contract, Dialect
from ...core.content import Text
from ...core.reply import Error, Reply
from ...core.versions import LATEST_STATEFUL, STATELESS, VERSIONS, Version
from ...dialects import HttpReply, shape_of, write
from ...dialects.accept import MEDIA_TYPES, prefers_html
from ...dialects.hosts import FRAMEWORKS, HOSTS, Host
from ...dialects.seen_reply import SeenReply, seen_by
from ...dialects.status_and_headers import JSON
from ...errors import InvalidInput, MissingExtraError, ToolError
from ...protocol.widget import CSP
from ...reading import read
from ...rules.catalogue import RULES
from ...rules.reply_view import CheckContext
from ...rules.rule_pages import terminal_page
from ...rules.validation import check
from ..asgi.request import HttpRequest
from ..http.host_and_origin import is_local
from ..http.routes import CONSOLE_VIEWS, refuse_media, refuse_method

if TYPE_CHECKING:
    from ...calls.runtime import Runtime
    from ...core.json_value import JsonObject
    from ..http.routes import Routes
    from ..http.server_options import StartHelp, WebOptions


_MAX_SHOWN = 50_000
"""Maximum number of characters of a string to send to the page."""
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
    """The body of a request for views: a result, and where it comes from."""

    result: dict[str, Any]
    tool: ListedTool
    version: str = ""
    """The MCP version of the result."""


def _encoded_views(body: bytes, contract: Contract) -> bytes:
    """Return the JSON of all views; *body* is a `ViewsRequest`. Raises InvalidInput.

    *contract* belongs to the app that sent the result.
    """
    try:
        request = msgspec.json.decode(body, type=ViewsRequest)
    except (msgspec.MsgspecError, RecursionError) as exc:
        raise InvalidInput(f"the views of a reply need its result and its tool: {exc}") from exc
    result, tool = request.result, request.tool
    reply = read(result, output_schema=tool.output_schema)
    version = VERSIONS.get(request.version)
    context = CheckContext(
        version, tool.output_schema, "tools/call", listed=True, max_chars=tool.max_chars
    )
    unchecked = ""
    try:
        findings = check(result, "mcp", context)
    except MissingExtraError as exc:
        unchecked = str(exc)
        without_schema = msgspec.structs.replace(context, schema=None, listed=False)
        findings = check(result, "mcp", without_schema)
    views = {
        "dialects": [_written(reply, each, contract, version) for each in get_args(Dialect)],
        "models": [
            _seen(seen_by(result, name, tool.max_chars), name, host)
            for name, host in (HOSTS | FRAMEWORKS).items()
        ],
        "findings": [
            {**msgspec.structs.asdict(each), "page": terminal_page(RULES[each.rule])}
            for each in findings[:_MAX_FINDINGS]
        ],
        "rules": len(RULES),
        # Why the output schema was not checked; empty if it was.
        "unchecked": unchecked,
    }
    return msgspec.json.encode(views)


def _written(
    reply: Reply[Any], dialect: Dialect, contract: Contract, version: Version | None
) -> JsonObject:
    """Return a reply as a dialect writes it."""
    shape = reply.shape or shape_of(reply, contract)
    written = write(reply, dialect, shape, contract, version)
    is_text = written.media_type.endswith("json") or written.media_type.startswith("text/")
    return {
        "dialect": dialect,
        # The media type to request it with; the app's own dialect needs none.
        "accept": "" if dialect == contract.http else _ACCEPT.get(dialect, ""),
        "status": written.status,
        "media_type": written.media_type,
        "headers": dict(written.headers),
        "body": written.body.decode("utf-8", "replace")[:_MAX_SHOWN] if is_text else "",
        "size": len(written.body),
    }


def _seen(seen: SeenReply, name: str, host: Host) -> JsonObject:
    """Return a reply as a host or a framework shows it to a model."""
    return {
        "id": name,
        "title": host.title,
        "is_host": name in HOSTS,
        "part": seen.half,
        "text": seen.text[:_MAX_SHOWN],
        "size": len(seen.text),
        "tokens": seen.tokens,
        # The images and audio that the model gets in addition to the text.
        "media": [type(part).__name__.lower() for part in seen.parts if not isinstance(part, Text)],
        "failed": seen.failed,
        "lost": [each.part for each in seen.lost],
        "cut": seen.cut,
        # How the host cuts large replies.
        "large": host.size,
        "date": host.date,
        "source": host.source,
    }


FRAME = "/console/frame"
HTML = "text/html; charset=utf-8"
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
    """The `csp` object in MCP Apps."""

    connect_domains: list[str] = []
    resource_domains: list[str] = []
    frame_domains: list[str] = []
    base_uri_domains: list[str] = []


def widget_frame(query: bytes) -> HttpReply:
    """Return a widget's frame; `csp` in *query* is its declared policy. Raises InvalidInput."""
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
    # The policy that MCP Apps hosts enforce; it does not allow this server's origin.
    policy = "; ".join(
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
    headers = (
        ("Content-Security-Policy", policy),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cache-Control", "no-cache"),
    )
    return HttpReply(200, _PAGE, HTML, headers)


def _directive(name: str, *sources: str) -> str:
    return " ".join((name, *(sources or ("'none'",))))


_LIBRARY = "preact_htm.js"
"""The file preact/standalone.module.js from the npm package htm, unchanged."""
MINIFIED = "page.min.js"
"""The library and the scripts, minified, below a line with the digest of their source."""
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
"""The scripts, each after the ones that it uses while loading."""
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
    """The body, compressed with gzip."""
    headers: tuple[tuple[str, str], ...]


@cache
def console_page(page: Literal["", "docs"] = "") -> ConsolePage:
    """Return the page at `/` or `/docs`, and its headers; built at the first request."""
    parts = files(__package__) / "parts"
    joined = joined_script()
    # The minified file may be out of date.
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
    """Return the library and the scripts as one script, without indentation or comments."""
    parts = files(__package__) / "parts"
    scripts = [_compact((parts / name).read_text(encoding="utf-8")) for name in SCRIPTS]
    return "\n".join([_as_names((parts / _LIBRARY).read_text(encoding="utf-8")), *scripts])


def script_digest(joined: str) -> str:
    """Return the first line of this script's minified file."""
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
TOKEN_PAGE = "/dev/token"
"""The `serve --dev-auth` page that issues test tokens."""
NO_STORE = (("Cache-Control", "no-store"),)


class ConsoleRoutes:
    """Answers requests for one app's console."""

    def __init__(self, runtime: Runtime, routes: Routes, options: WebOptions) -> None:
        self._runtime = runtime
        self._routes = routes
        self._options = options

    def serves(self, request: HttpRequest) -> bool:
        """Return whether the console answers this request, which is for one of its paths."""
        if self._options.only_local_console and not is_local(request.scope, request.headers):
            return False
        return request.path in (ABOUT, FRAME, CONSOLE_VIEWS) or wants_page(request)

    async def answer(self, request: HttpRequest, body: bytes | Reply[Any]) -> HttpReply:
        """Return the response to a request that the console serves."""
        if request.path == CONSOLE_VIEWS:
            refused = refuse_method(request.method, "POST") or refuse_media(request.content_type)
            found: bytes | Reply[Any] | HttpReply = refused or body
            if isinstance(found, bytes):
                found = await views_of(found, self._runtime.registry.contract)
            return self._routes.refuse(found, request) if isinstance(found, Reply) else found
        if request.path == ABOUT:
            # Users on other machines cannot run the program, and do not need its path.
            client_is_local = is_local(request.scope, request.headers)
            start = self._options.start if client_is_local else None
            return HttpReply(200, msgspec.json.encode(self._about(start)), JSON, NO_STORE)
        if request.path == FRAME:
            try:
                return widget_frame(request.query)
            except ToolError as exc:
                return self._routes.refuse(Reply(error=Error.of(exc)), request)
        return page_for(request)

    def _about(self, start: StartHelp | None) -> JsonObject:
        registry = self._runtime.registry
        server: dict[str, Any] = {
            "name": registry.name,
            "mcp": self._options.mcp.lstrip("/"),
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
    """Return whether a browser is asking for a page; other programs get JSON."""
    # A prefix without a trailing slash is the page `/` too.
    is_page = request.path in PAGES or request.path == request.root
    if request.method not in ("GET", "HEAD") or not is_page:
        return False
    return prefers_html(request.accept.decode("latin-1"))


async def views_of(body: bytes, contract: Contract) -> HttpReply | Reply[Any]:
    """Return all views of the result in *body*, or a refusal if it is malformed."""
    try:
        # In a thread, because a large result takes a while.
        views = await asyncio.to_thread(_encoded_views, body, contract)
    except ToolError as exc:
        return Reply(error=Error.of(exc))
    return HttpReply(200, views, JSON, NO_STORE)


def page_for(request: HttpRequest) -> HttpReply:
    page = console_page("docs" if request.path == "/docs" else "")
    if b"gzip" not in request.headers.get(b"accept-encoding", b""):
        return HttpReply(200, page.body, HTML, page.headers)
    return HttpReply(200, page.compressed, HTML, (*page.headers, ("Content-Encoding", "gzip")))
