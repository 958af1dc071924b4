"""The routes for REST and CGI: one function answers every request that is not MCP.

There are paths for tools, the list of functions, the OpenAPI document and health. The refusals
for methods, bodies and unknown paths are here too; MCP over HTTP also uses them.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol, TypeAlias

import msgspec

from ...calls.call import Call, reply_or_refusal
from ...calls.failures import log_internal_error
from ...calls.runtime import Runtime
from ...contract import RESERVED_ROUTES
from ...core.json_value import JsonObject
from ...core.peer import RequestSource
from ...core.reply import Error, Reply, failure
from ...core.shape import RESULT, Shape
from ...dialects import HttpReply, write
from ...dialects.accept import choose, prefers_json
from ...dialects.status_and_headers import JSON
from ...errors import ToolError
from ...registry.declarations import HealthState, Registry

if TYPE_CHECKING:
    from ...core.request_info import RequestInfo
    from .list_pages import ListPages
    from .task_routes import TaskRoutes


def refuse_method(method: str, allowed: str) -> Reply[Any] | None:
    """Return a refusal if the method is not in *allowed*, a comma-separated list."""
    if method == allowed or method in allowed.split(", "):
        return None
    return failure(f"Method not allowed: {method}; use {allowed}", code="METHOD_NOT_ALLOWED")


def refuse_media(content_type: bytes) -> Reply[Any] | None:
    """Refuse a body that is not JSON: any web page can post a form without permission."""
    media = content_type.decode("latin-1").partition(";")[0].strip().lower()
    if not media or media == "application/json" or media.endswith("+json"):
        return None
    return failure(
        f"Unsupported media type: {media}; send JSON with Content-Type: application/json",
        code="UNSUPPORTED_MEDIA_TYPE",
    )


def refuse_encoding(encoding: bytes) -> Reply[Any] | None:
    """Refuse a compressed body; *encoding* is the `Content-Encoding` header."""
    name = encoding.decode("latin-1").strip().lower()
    if name in ("", "identity"):
        return None
    return failure(
        f"Unsupported content encoding: {name}; send the body without compression",
        code="UNSUPPORTED_MEDIA_TYPE",
    )


def no_route(path: str, root: str, *, mcp: str = "", has_pages: bool = False) -> Reply[Any]:
    """Return the refusal for an unknown *path* below *root*; *mcp* is the MCP path, if any."""
    parts = [f"Not found: {root}{path}"]
    # Newcomers try "/" first, and a client of an app mounted at /mcp is sent to its "/".
    if mcp and path in ("/", "/mcp"):
        parts.append(f"MCP is at {root}{mcp}")
    if path == "/" and has_pages:
        parts.append(f"see {root}/functions and {root}/openapi.json")
    return failure("; ".join(parts), code="ROUTE_NOT_FOUND")


def too_large(limit: int, hint: str) -> Reply[Any]:
    return failure(f"Body larger than {limit} bytes", code="TOO_LARGE", hint=hint)


Page: TypeAlias = Callable[[Runtime, str], HttpReply]
"""Builds a page's response; the second argument is the app's mount point."""

PUBLIC = ("/healthz", "/readyz")
"""Pages that need no credentials, even if the app has `auth=`."""
CONSOLE_VIEWS = "/console/views"
CONSOLE_PATHS = frozenset({"/", "/docs", "/console/about.json", "/console/frame", CONSOLE_VIEWS})
"""The paths that the console uses, if it is enabled."""


def function_list(registry: Registry, *, hidden: bool = True) -> bytes:
    """Return the tools and their schemas as JSON, including those hidden from some callers."""
    tools = list(registry.tools.values())
    if not hidden and registry.hides_entries:
        from ...gates.prompts import shown_to_all

        tools = shown_to_all(tools)
    functions: list[JsonObject] = []
    for tool in tools:
        entry: JsonObject = {"name": tool.name, "description": tool.description}
        if tool.title:
            entry["title"] = tool.title
        entry["inputSchema"] = tool.input_schema
        if tool.output_schema is not None:
            entry["outputSchema"] = tool.output_schema
        if tool.settings.widget is not None:
            entry["widget"] = tool.settings.widget
        functions.append(entry)
    return msgspec.json.encode(functions)


def _functions(runtime: Runtime, root: str) -> HttpReply:
    return HttpReply(200, function_list(runtime.registry, hidden=False), JSON)


def _openapi(runtime: Runtime, root: str) -> HttpReply:
    from .openapi import document_json

    return HttpReply(200, document_json(runtime.registry, root), JSON)


def _health(runtime: Runtime, root: str) -> HttpReply:
    return HttpReply(200, _health_json(runtime.registry, "ok", _results(runtime)), JSON)


def _readiness(runtime: Runtime, root: str) -> HttpReply:
    results = _results(runtime)
    is_ready = all(result.ready for result in results.values())
    status = "ready" if is_ready else "not ready"
    body = _health_json(runtime.registry, status, results)
    return HttpReply(200 if is_ready else 503, body, JSON)


def _health_json(registry: Registry, status: str, results: Mapping[str, HealthState]) -> bytes:
    health: JsonObject = {
        "status": status,
        "name": registry.name,
        "version": registry.version,
    }
    if results:
        health["checks"] = {
            name: {"ready": result.ready, **result.details} for name, result in results.items()
        }
    return msgspec.json.encode(health)


def _results(runtime: Runtime) -> dict[str, HealthState]:
    """Return the results of the applicable health checks, by name."""
    results: dict[str, HealthState] = {}
    for name, check in runtime.health().items():
        try:
            result = check()
        except Exception:  # noqa: BLE001 -- a failing check must not fail the page
            log_internal_error(f"the health check {name!r}")
            result = HealthState(False, {"error": "the check failed"})
        if result is not None:
            results[name] = result
    return results


PAGES: Mapping[str, Page] = {
    "/functions": _functions,
    "/openapi.json": _openapi,
    "/healthz": _health,
    "/readyz": _readiness,
}


# Longer Accept headers are truncated before parsing.
_MAX_ACCEPT = 2048


class RestRequest(RequestSource, Protocol):
    """An HTTP request; ASGI and CGI each have their own."""

    @property
    def method(self) -> str: ...
    @property
    def path(self) -> str:
        """The path below the app's mount point."""

    @property
    def root(self) -> str:
        """The app's mount point."""

    @property
    def accept(self) -> bytes: ...
    @property
    def query(self) -> bytes:
        """The URL's query, without the question mark."""

    @property
    def content_type(self) -> bytes: ...
    @property
    def caller(self) -> str:
        """The client's address."""

    @property
    def is_disconnected(self) -> Callable[[], bool] | None: ...
    @property
    def headers(self) -> Mapping[bytes, bytes]:
        """The headers by lower-case name."""

    def describe_request(self, wire: str) -> RequestInfo: ...


class Routes:
    """Answers requests for one registry. *prefixes* are the paths before a tool's name."""

    def __init__(
        self,
        runtime: Runtime,
        *,
        wire: str,
        prefixes: tuple[str, ...],
        has_tasks: bool,
        mcp: str = "",
    ) -> None:
        """*has_tasks* is False for CGI: a one-call process cannot run tasks.

        Without *prefixes*, only the health pages are served. *mcp* is the MCP path, if any.
        """
        self._runtime = runtime
        self._registry = runtime.registry
        self._has_tasks = has_tasks
        self._handle = runtime.handlers.tools
        self._wire = wire
        self._prefixes = prefixes
        self._mcp = mcp

    async def answer(self, request: RestRequest, body: bytes | Reply[Any]) -> HttpReply:
        """Return the response to a request; *body* is a Reply if the body could not be read."""
        for prefix in self._prefixes:
            if request.path.startswith(prefix):
                name = request.path[len(prefix) :]
                # Only with the prefix "/" can a tool's path clash with one of the server's own.
                if name and (prefix != "/" or name.partition("/")[0] not in RESERVED_ROUTES):
                    if "/tasks/" in name and self._registry.has_tasks and self._tasks is not None:
                        return await self._tasks.answer(name, request, body)
                    if "/pages/" in name and self._wire == "rest":
                        return await self._list_pages.answer(name, request)
                    return await self._call(name, request, body)
        is_served = self._prefixes or request.path in PUBLIC
        page = PAGES.get(request.path) if is_served else None
        if page is None:
            has_pages = bool(self._prefixes)
            unknown = no_route(request.path, request.root, mcp=self._mcp, has_pages=has_pages)
            return self.refuse(unknown, request)
        refused = refuse_method(request.method, "GET, HEAD")
        if refused is not None:
            return self.refuse(refused, request, allow="GET, HEAD")
        return page(self._runtime, request.root)

    async def _call(self, name: str, request: RestRequest, body: bytes | Reply[Any]) -> HttpReply:
        # Nearly all requests POST JSON and need no further checks.
        if request.method != "POST" or request.content_type != b"application/json":
            refused = refuse_method(request.method, "POST") or refuse_media(request.content_type)
            if refused is not None:
                return self.refuse(refused, request, allow="POST")
        if isinstance(body, Reply):
            return self.refuse(body, request)
        limit = None
        if b"limit=" in request.query and self._wire == "rest":
            try:
                limit = self._list_pages.asked_limit(request)
            except ToolError as exc:
                return self.refuse(Reply(error=Error.of(exc)), request)
        call = Call(name, body or b"{}", wire=self._wire, caller=request.caller)
        call.is_disconnected = request.is_disconnected
        call.request = request
        registry = self._registry
        if registry.has_tasks or registry.has_keys:
            if self._tasks is not None:
                outcome = await self._tasks.call(call, request)
                if isinstance(outcome, HttpReply):
                    return outcome
            else:
                from .task_routes import refuse_without_server

                refused = refuse_without_server(registry, call, request)
                outcome = await self._handle(call) if refused is None else refused
        else:
            outcome = await self._handle(call)
        reply = outcome if isinstance(outcome, Reply) else reply_or_refusal(outcome)
        if limit is not None and reply.error is None:
            return await self._list_pages.write_first(reply, call, limit, request)
        return self.write_call(reply, call, request)

    def write_call(self, reply: Reply[Any], call: Call, request: RestRequest) -> HttpReply:
        """Return a call's reply as a response.

        A tool's error may ask for a login, or name a page to open. Both are for one user, so
        they must not be cached.
        """
        written = self._write(reply, request, call.shape)
        error = reply.error
        if error is None or call.tool is None:
            return written
        from ...dialects.common import REFUSAL

        written = self._with_status(written)
        auth = self._runtime.auth
        headers: list[tuple[str, str]] = []
        if call.challenge or (auth is not None and error.row.status == 401):
            from ...core.authentication import Challenge
            from ...gates.prompts import header_value

            challenge = call.challenge or Challenge(description=error.message)
            headers.append(("WWW-Authenticate", header_value(auth, challenge)))
        if REFUSAL in reply.meta and (url := reply.meta[REFUSAL].get("url")):
            from ...gates.prompts import url_value

            headers.append(("X-Error-Url", url_value(url)))
        if not headers:
            return written
        headers.append(("Cache-Control", "no-store"))
        return msgspec.structs.replace(written, headers=(*written.headers, *headers))

    @cached_property
    def _tasks(self) -> TaskRoutes | None:
        if not self._has_tasks:
            return None
        # Imported here, so that apps without tasks do not pay for it.
        from .task_routes import TaskRoutes

        return TaskRoutes(self._runtime, self)

    @cached_property
    def _list_pages(self) -> ListPages:
        # Imported when a part of a list is first requested.
        from .list_pages import ListPages

        return ListPages(self._runtime, self)

    def write_finished(self, reply: Reply[Any], request: RestRequest, shape: Shape) -> HttpReply:
        """Return a finished call's reply as a response."""
        written = self._write(reply, request, shape)
        return written if reply.error is None else self._with_status(written)

    def _with_status(self, written: HttpReply) -> HttpReply:
        """Return a tool's error response, with status 200 if the contract always sends that."""
        if self._registry.contract.always_200 and written.media_type == JSON:
            return msgspec.structs.replace(written, status=200)
        return written

    def refuse(self, reply: Reply[Any], request: RestRequest, *, allow: str = "") -> HttpReply:
        """Return a refusal as a response; *allow* lists the allowed methods."""
        written = self._write(reply, request, RESULT)
        if not allow or written.status != 405:
            return written
        return msgspec.structs.replace(written, headers=(*written.headers, ("Allow", allow)))

    def _write(self, reply: Reply[Any], request: RestRequest, shape: Shape) -> HttpReply:
        contract = self._registry.contract
        dialect = contract.http
        # The other dialects' media types contain a plus sign, as in `problem+json`.
        if b"+" in request.accept:
            accept = request.accept[:_MAX_ACCEPT].decode("latin-1")
            dialect = choose(accept, contract, failed=reply.error is not None)
        # The OpenAPI document describes the data without additions.
        written = write(reply, dialect, shape.without_additions(), contract)
        # Replies with data have no headers.
        if written.headers and request.accept:
            from ...dialects.rest import FORM, write_content

            # Images and audio are sent as bytes, unless the client prefers JSON.
            has_bytes = written.header(FORM) in ("image", "audio")
            accept = request.accept[:_MAX_ACCEPT].decode("latin-1")
            if has_bytes and prefers_json(accept, written.media_type):
                return write_content(reply)
        return written
