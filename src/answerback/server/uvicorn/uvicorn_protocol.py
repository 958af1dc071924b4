"""The HTTP/1.1 protocol for `serve`, and the plain ASGI layers around the application.

The protocol depends on uvicorn's internals; no other module does.

`UvicornProtocol` handles one connection. It differs from uvicorn's own protocol as follows:

- A request with an `Upgrade` header is served as if it had none. Every Java client sends
  `Upgrade: h2c`; uvicorn would drop the body of its request (uvicorn issue 2722).
- The size of headers and of trailers is limited, so a client cannot fill memory with them.
  Trailers are not added to the headers.
- A connection is closed if the client sends nothing for `idle_timeout` seconds, with status 408
  if a request is incomplete.
- Pipelined requests are answered in order, even if the last one is malformed. If the client
  disconnects, the request that is being answered is notified as well as the last one.
- A client that closes its sending half (`shutdown(SHUT_WR)`) after a request still gets a response
  that is complete within `half_close_timeout` seconds. It looks like a client that closed the
  connection, so it counts as disconnected after that time.
- Malformed HTTP is refused in JSON, like everything else.
- The application's `send` is a `_FastPath`. With it, our own ASGI application reads a body and
  writes a response without ASGI messages.

uvicorn creates a `RequestResponseCycle` for each request. `scope` and `cycle` belong to the last
request read, and `_current` is the cycle whose response is being written or was written last.
They determine the state of the connection:

| state             | recognised by                             | timer                 | timeout  |
|-------------------|-------------------------------------------|-----------------------|----------|
| idle              | no cycle, or its response is complete     | since it was opened;  | close    |
|                   |                                           | later uvicorn's own   |          |
| reading headers   | the scope has no method                   | since the first byte  | 408      |
| reading body      | `cycle.more_body`                         | since the last chunk  | 408      |
| discarding body   | `cycle.more_body`, response is complete   | since the last chunk  | close    |
| responding        | no `more_body`, response not complete     | stopped               | -        |
| earlier response  | `_current` is not `cycle`, and its        | that of the last      | restart  |
| pending           | response is not complete                  | request's state       |          |

The last state occurs together with another one; pipelined requests cause it.
"""

from __future__ import annotations

import asyncio
import logging
import time
from collections.abc import Awaitable, Callable
from functools import lru_cache
from typing import Any, TypeAlias
from urllib.parse import quote

from ...contract import STANDARD
from ...core.limits import LARGE_BODY
from ...core.reply import failure
from ...core.shape import RESULT
from ...dialects import write
from ...errors import needs_extra
from ..asgi.request import (
    Body,
    FastPath,
    HttpRequest,
    Message,
    Receive,
    Scope,
    Send,
    joined_headers,
)
from ..http.host_and_origin import TrustedProxies, is_local
from ..http.server_options import ServeOptions, networks

with needs_extra("serve"):
    import httptools
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle
    from uvicorn.server import ServerState


Application: TypeAlias = Callable[[Scope, Receive, Send], Awaitable[None]]


def add_layers(application: Application, options: ServeOptions) -> Application:
    """Return the application with the layers *options* ask for; the request log is outermost."""
    if options.debug:
        application = _only_local_clients(application)
    if options.root_path:
        application = _below_prefix(application, options.root_path)
    if options.access_log:
        proxies = TrustedProxies(networks(options.web.trusted_proxies))
        application = _logged(application, proxies)
    return application


def _below_prefix(application: Application, prefix: str) -> Application:
    """Answer paths below *prefix* and, because most proxies remove it, paths without it."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] == "http":
            scope["root_path"] = prefix
            if not f"{scope['path']}/".startswith(f"{prefix}/"):
                scope["path"] = prefix + scope["path"]
        await application(scope, receive, send)

    return answer


def _only_local_clients(application: Application) -> Application:
    """Refuse clients on other machines, even behind a proxy on this machine."""

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http" or is_local(scope, joined_headers(scope)):
            await application(scope, receive, send)
            return
        refusal = failure(
            "This server was started with --debug, so it answers only clients on its own machine",
            code="FORBIDDEN",
        )
        written = write(refusal, "rest", RESULT, STANDARD)
        await HttpRequest(scope, receive, send).respond_with(written)

    return answer


def _logged(application: Application, proxies: TrustedProxies) -> Application:
    """Log one line per request, once its response is complete."""
    logger = logging.getLogger("answerback.access")
    logger.setLevel(logging.INFO)
    if not logger.hasHandlers():
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(message)s"))
        logger.addHandler(handler)

    async def answer(scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            await application(scope, receive, send)
            return
        client = "-"
        if scope.get("client") is not None:
            client = scope["client"][0]
            if proxies.trusts(client):
                client = proxies.read(joined_headers(scope)).client or client
        path = scope["path"]
        if not path.isprintable() or " " in path:
            # A terminal would act on some of these characters, and others would end the line.
            path = quote(path)
        request = f"{scope['method']} {path}"
        status: list[int] = []

        async def watched(message: Message) -> None:
            if message["type"] == "http.response.start":
                status.append(message["status"])
            await send(message)

        start = time.perf_counter()
        try:
            await application(scope, receive, watched)
        finally:
            duration = (time.perf_counter() - start) * 1000
            logger.info("%s %s %s %.1f ms", client, request, status[0] if status else "-", duration)

    return answer


_MAX_HEADER_BYTES = 64 * 1024
_SHUTDOWN_IDLE_TIMEOUT = 2.0
_SHUTDOWN_NEW_TIMEOUT = 1.0
"""Seconds for the first request of a new connection to arrive while the server is shutting down."""
_REFUSAL = (
    b"HTTP/1.1 %b\r\ncontent-type: application/json\r\n"
    b"x-error-code: INVALID_INPUT\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b"
)


class DrainState(ServerState):
    """Tells all of a server's connections whether to close after each response."""

    is_draining = False

    def drain(self) -> None:
        self.is_draining = True
        for connection in list(self.connections):
            # A new connection has no cycle.
            if isinstance(cycle := getattr(connection, "cycle", None), RequestResponseCycle):
                cycle.keep_alive = cycle.keep_alive and cycle.response_started


class UvicornProtocol(HttpToolsProtocol):
    """One connection. Its cycles are `Any`, because uvicorn's annotations leave out None."""

    idle_timeout = 30.0
    """Maximum seconds for a request's headers to arrive, and between two chunks of its body."""
    half_close_timeout = 1.0
    """Seconds that running calls have after the client has closed its sending half."""
    _header_bytes = 0
    """The number of bytes of incomplete headers or trailers received so far."""
    _header_scope: Any = None
    """The scope of the request whose headers are not complete yet."""
    _current: Any = None
    """The cycle whose response is being written, or was written last."""
    _timer: asyncio.TimerHandle | None = None
    _half_close_timer: asyncio.TimerHandle | None = None
    _idle_since: float | None = None
    """When the last response was completed, if the connection has been kept alive since."""
    _is_closing = False

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        if self.client is None and self.server is not None and self.server[1] is None:
            # The clients of a unix socket are on this machine, like those on loopback.
            self.client, self.server = ("127.0.0.1", 0), ("127.0.0.1", 0)
        self._restart_timer()

    def eof_received(self) -> bool | None:  # type: ignore[override]  # uvicorn returns nothing
        """Return True to stay connected while answering a client that has stopped sending."""
        cycle: Any = self.cycle
        if self.scheme == "https":
            # TLS cannot be closed in one direction only.
            return None
        earlier = self._earlier_response_pending
        if earlier or (cycle is not None and not (cycle.more_body or cycle.response_started)):
            # An incomplete request after the complete ones is dropped.
            self._refuse(b"400 Bad Request", "The request is incomplete")
            if self._half_close_timer is None:
                self._half_close_timer = self.loop.call_later(
                    self.half_close_timeout, self.transport.close
                )
            return True
        return None

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_timer()
        if self.timeout_keep_alive_task is not None:
            self.timeout_keep_alive_task.cancel()
        if self._half_close_timer is not None:
            self._half_close_timer.cancel()
        if self._earlier_response_pending:
            # uvicorn notifies only the cycle that was read last.
            self._current.disconnected = True
            self._current.message_event.set()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        # A client that is still sending may finish; one that has stopped must not delay shutdown.
        self._is_closing = True
        is_new = self.cycle is None
        bound = _SHUTDOWN_NEW_TIMEOUT if is_new else _SHUTDOWN_IDLE_TIMEOUT
        self.idle_timeout = min(self.idle_timeout, bound)
        if self._timer is not None:
            self._restart_timer()
        # The first request of a new connection may be on its way.
        if not is_new:
            super().shutdown()

    def on_response_complete(self) -> None:
        if self.pipeline or self.transport.is_closing():
            super().on_response_complete()
            return
        # As in uvicorn, but one timer serves many responses: starting one for each costs more.
        self.server_state.total_requests += 1
        self.flow.resume_reading()
        self._idle_since = self.loop.time()
        if self.timeout_keep_alive_task is None:
            self._await_request(self.timeout_keep_alive)

    def _await_request(self, seconds: float) -> None:
        self.timeout_keep_alive_task = self.loop.call_later(
            seconds, self.timeout_keep_alive_handler
        )

    def timeout_keep_alive_handler(self) -> None:
        self.timeout_keep_alive_task = None
        if self._idle_since is None:
            return  # A request has arrived; its response starts the timer again.
        left = self._idle_since + self.timeout_keep_alive - self.loop.time()
        if left > 0:
            self._await_request(left)
        else:
            super().timeout_keep_alive_handler()

    def _unset_keepalive_if_required(self) -> None:
        self._idle_since = None

    def data_received(self, data: bytes) -> None:
        self._idle_since = None
        previous: Any = self.cycle
        was_reading_body = previous is not None and previous.more_body
        buffered = len(previous.body) if was_reading_body else 0
        try:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as upgrade:
                self._reparse_without_upgrade(data, upgrade)
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request")
            return
        scope: Any = self.scope
        cycle: Any = self.cycle
        reading_headers = scope is not None and "method" not in scope
        if reading_headers:
            # If the chunk also ended an earlier request, we cannot tell how many of its bytes
            # belong to these headers, so counting starts at 1.
            ended_a_request = was_reading_body or cycle is not previous
            only_headers = scope is self._header_scope or not ended_a_request
            self._header_bytes = self._header_bytes + len(data) if only_headers else 1
            self._header_scope = scope
            if self._timer is None:
                self._restart_timer()
        elif cycle is None or cycle.more_body or cycle.response_complete:
            # No request was completed. Either a body continues, or the client is sending line
            # breaks or the rest of an answered request's body, which uvicorn discards.
            reading_body = was_reading_body and cycle is previous and not cycle.response_complete
            reading_trailers = reading_body and len(cycle.body) == buffered
            self._header_bytes = self._header_bytes + len(data) if reading_trailers else 0
            self._restart_timer()
        else:  # Responding.
            self._header_bytes = 0
            if self._timer is not None:
                self._stop_timer()
            return
        if self._header_bytes > _MAX_HEADER_BYTES:
            self.send_400_response("Headers too large")

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._current = cycle
        if self._timer is not None:
            # While an earlier response was pending, uvicorn paused reading, so this request's
            # body gets its full time from now on.
            self._restart_timer()
        send = _FastPath(cycle, self.loop)
        # As in uvicorn, without its `reset_contextvars` option, which is not set here.
        task = self.loop.create_task(
            cycle.run_asgi(lambda scope, receive, _: app(scope, receive, send))
        )
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    @property
    def _earlier_response_pending(self) -> bool:
        """Whether the response to a request before the last one read is incomplete."""
        current = self._current
        return current is not None and current is not self.cycle and not current.response_complete

    def _restart_timer(self) -> None:
        self._stop_timer()
        self._timer = self.loop.call_later(self.idle_timeout, self._on_timeout)

    def _stop_timer(self) -> None:
        if self._timer is not None:
            self._timer.cancel()
            self._timer = None

    def _on_timeout(self) -> None:
        """Close the connection if the client stopped sending and is not waiting for a response."""
        cycle: Any = self.cycle
        response_pending = cycle is not None and not cycle.response_complete
        responding = response_pending and (cycle.response_started or not cycle.more_body)
        if responding or self._earlier_response_pending:
            self._restart_timer()
        elif response_pending or self._header_bytes:
            self._refuse(b"408 Request Timeout", "The request did not arrive in time")
        else:
            self.transport.close()

    def _reparse_without_upgrade(self, data: bytes, upgrade: Exception | None) -> None:
        """Parse the request again without its `Upgrade` header, and then the rest of *data*.

        *upgrade* is the parser's exception; its argument is the offset of the rest. The rest may
        contain more requests with such a header.
        """
        while upgrade is not None and self.scope["method"] != "CONNECT":
            version = self.scope["http_version"].encode()
            lines = [b"%b %b HTTP/%b" % (self.scope["method"].encode(), self.url, version)]
            lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
            data = b"\r\n".join([*lines, b"", data[upgrade.args[0] :]])
            self.parser = httptools.HttpRequestParser(self)
            try:
                self.parser.feed_data(data)
                upgrade = None
            except httptools.HttpParserUpgrade as another:
                upgrade = another

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        cycle: Any = self.cycle
        # A request with an Upgrade header gets its cycle when it is parsed again.
        if cycle is not None and cycle.scope is self.scope:
            state = self.server_state
            is_draining = isinstance(state, DrainState) and state.is_draining
            if self._is_closing or is_draining or not self.parser.should_keep_alive():
                # uvicorn before 0.53 does not check this until it writes the response.
                cycle.keep_alive = False
            # uvicorn would append the trailers to the scope's headers.
            self.headers = []

    def _should_upgrade(self) -> bool:
        """Keep uvicorn from starting the request: it is parsed again without the header."""
        return self.scope["method"] != "CONNECT"

    def send_400_response(self, msg: str) -> None:
        self._refuse(b"400 Bad Request", msg)

    def _refuse(self, status: bytes, message: str) -> None:
        """Refuse the last request and close the connection; earlier ones are still answered."""
        self._stop_timer()
        cycle: Any = self.cycle
        if self._earlier_response_pending and cycle.more_body:
            # The last request will never be complete; it is the newest one in the pipeline.
            self.pipeline.popleft()
            cycle = self.cycle = self.pipeline[0][0] if self.pipeline else self._current
        responding = cycle is not None and not (cycle.response_complete or cycle.more_body)
        if responding:
            # uvicorn closes the connection after this response.
            cycle.keep_alive = False
            self.flow.pause_reading()
            return
        body = b'{"error":"%b"}' % message.encode()
        self.transport.write(_REFUSAL % (status, len(body), body))
        self.transport.close()


@lru_cache(4)
def _line(header: tuple[bytes, bytes]) -> bytes:
    """Return a header line that every response has, such as the current date."""
    return b"%b: %b\r\n" % header


class _FastPath(FastPath):
    """Does in one step what `RequestResponseCycle` does in several; see `asgi.request`."""

    __slots__ = ("_cycle", "loop")

    def __init__(self, cycle: RequestResponseCycle, loop: asyncio.AbstractEventLoop) -> None:
        self._cycle = cycle
        self.loop = loop

    def __call__(self, message: Any) -> Awaitable[None]:
        return self._cycle.send(message)

    def body(self) -> bytes | None:
        cycle = self._cycle
        if cycle.more_body or cycle.disconnected:
            return None
        body = bytes(cycle.body)
        cycle.body = bytearray()  # Frees the buffer: a call may run for a long time.
        return body

    def is_disconnected(self) -> bool:
        return self._cycle.disconnected

    def respond(self, head: bytes, body: Body) -> bool:
        cycle = self._cycle
        if cycle.flow.write_paused or cycle.access_log or cycle.scope["method"] == "HEAD":
            return False
        cycle.response_started = True
        cycle.waiting_for_100_continue = False
        if cycle.disconnected or cycle.transport.is_closing():
            cycle.response_complete = True
            return True
        lines = [head, *map(_line, cycle.default_headers)]
        if not cycle.keep_alive:
            lines.append(b"connection: close\r\n")
        pieces = (body,) if isinstance(body, bytes) else body
        length = sum(map(len, pieces))
        lines.append(b"content-length: %d\r\n\r\n" % length)
        if length < LARGE_BODY:
            cycle.transport.write(b"".join((*lines, *pieces)))
        else:
            cycle.transport.writelines((b"".join(lines), *pieces))
        cycle.response_complete = True
        cycle.message_event.set()
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()
        return True
