"""TargetConsole: the ASGI application for `console TARGET`, a page for any kind of server.

The page sends MCP messages to `targets/N/mcp`; they are forwarded to the target's process or URL.
Anyone who can send them can run commands as this user, so all requests except the page's need the
start token. Only the console's URL contains it, in the fragment, which browsers never send.
"""

from __future__ import annotations

import asyncio
import hmac
import re
import secrets
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from ...client.client_session import OTHER_TRANSPORT
from ...client.faults import ConnectError, HttpRefused, NoAnswer, SessionLost
from ...client.frames import (
    Incoming,
    Outgoing,
    Transport,
    cut_message,
    decode_frame,
    incoming_decoder,
    malformed_response,
)
from ...contract import STANDARD
from ...core.limits import MAX_BODY
from ...core.reply import Reply, failure
from ...core.shape import RESULT
from ...core.versions import LATEST_STATEFUL, STATELESS
from ...dialects import HttpReply, write
from ...dialects.status_and_headers import JSON
from ...protocol.jsonrpc import (
    INTERNAL_ERROR,
    Id,
    Request,
    RpcError,
    error_frame,
    is_batch,
    notification_frame,
    parse,
    parse_batch,
)
from ..asgi.request import (
    JSON_HEADERS,
    ClientDisconnected,
    HttpRequest,
    Message,
    Receive,
    Scope,
    Send,
)
from ..asgi.sse import EventStream, disconnected, write_until_disconnected
from ..http.host_and_origin import Guard
from ..http.routes import CONSOLE_VIEWS, no_route, refuse_media, refuse_method
from ..http.server_options import WebOptions
from .console_page import ABOUT, NO_STORE, page_for, views_of, wants_page

START_TOKEN = b"x-answerback-console"
_ENDPOINT = re.compile(r"/targets/(\d{1,4})/mcp")
_SESSION = b"mcp-session-id"
_CASED = {b"mcp-protocol-version": "MCP-Protocol-Version"}
"""The name under which a transport looks up the header."""
_MAX_UNREAD = 100
"""How many messages may wait for a stream; beyond that, the oldest are dropped."""
_MAX_SESSIONS = 8
"""How many connections to a target are kept; a page has one for each MCP version."""
_NO_TOKEN = failure(
    "This console needs the token in its address; open the address that the terminal shows",
    code="FORBIDDEN",
)
_NO_SESSION = failure("The connection to the server has ended; open it again", code="NOT_FOUND")


class Exchange:
    """A request to the target, and everything that arrives up to its response."""

    def __init__(self, id: Id) -> None:
        loop = asyncio.get_running_loop()
        self.id = id
        self.stream = EventStream(loop)
        self.answer: asyncio.Future[msgspec.Raw] = loop.create_future()
        self.began = asyncio.Event()
        """Set as soon as something has arrived."""
        self.sending: asyncio.Task[None] | None = None
        self.status = 200
        """The HTTP status, if nothing arrives before the response."""
        self.is_abandoned = False
        """True if nobody is reading the stream."""

    @property
    def only_frame(self) -> bytes | None:
        """The response, if nothing else arrived before it."""
        return self.stream.frame(1) if self.stream.ended and self.stream.count == 1 else None

    def add(self, frame: bytes) -> None:
        self.stream.offer(frame)
        self.began.set()

    def finish(self, frame: bytes) -> None:
        self.stream.append(frame)
        self.stream.end()
        self.began.set()
        if not self.answer.done():
            self.answer.set_result(msgspec.Raw(b"{}"))

    def fail(self, error: Exception) -> None:
        """End with an error in place of the response."""
        if not self.stream.ended:
            if isinstance(error, HttpRefused):
                self.status = error.status
            else:
                # After a 404, the client opens another session.
                self.status = 404 if isinstance(error, SessionLost) else 502
            self.finish(failure_frame(self.id, error))


class TargetSession:
    """A connection with its own child process or HTTP session; receives the target's frames."""

    def __init__(self, transport: Transport, on_lost: Callable[[], None]) -> None:
        self._transport = transport
        self._on_lost = on_lost
        self._exchanges: dict[Id, Exchange] = {}
        self._listener: EventStream | None = None
        self._unread: deque[bytes] = deque(maxlen=_MAX_UNREAD)
        """Messages that arrived while there was no stream."""

    async def open(self) -> None:
        """Start the child process or prepare the HTTP requests; raises ConnectError or NoAnswer."""
        await self._transport.open(self, self._lost)

    def request(self, id: Id, method: str, frame: bytes, headers: Mapping[str, str]) -> Exchange:
        """Send a request; raises RpcError if one with the same id is already running."""
        if id in self._exchanges:
            raise RpcError(INTERNAL_ERROR, f"a request with id {id!r} is already running", id=id)
        exchange = self._exchanges[id] = Exchange(id)
        outgoing = Outgoing(frame, id, method, headers, exchange.answer)
        while self._unread:
            exchange.add(self._unread.popleft())
        exchange.sending = asyncio.ensure_future(self._send(outgoing, exchange))
        return exchange

    async def notify(self, method: str, frame: bytes, headers: Mapping[str, str]) -> None:
        """Send a notification, or a response to the target's question; raises NoAnswer."""
        await self._transport.send(Outgoing(frame, None, method, headers))
        if method == "notifications/initialized":
            await self._transport.listen()

    async def cancel(self, exchange: Exchange) -> None:
        """Cancel a stateless request whose client has disconnected."""
        self._exchanges.pop(exchange.id, None)
        if self._transport.closes_to_cancel and exchange.sending is not None:
            exchange.sending.cancel()
            return
        params = {"requestId": exchange.id}
        frame = notification_frame("notifications/cancelled", params)
        with suppress(NoAnswer):
            await self._transport.send(Outgoing(frame, method="notifications/cancelled"))

    def listen(self) -> EventStream:
        """Return a stream for messages that belong to no request; it replaces any earlier one."""
        if self._listener is not None:
            self._listener.end()
        self._listener = EventStream(asyncio.get_running_loop())
        while self._unread:
            self._listener.append(self._unread.popleft())
        return self._listener

    async def close(self) -> None:
        """End the streams and the connection, and with it the child process."""
        self._end(NoAnswer("the console closed the connection"))
        sending = [each.sending for each in self._exchanges.values() if each.sending is not None]
        for task in sending:
            task.cancel()
        await self._transport.close()

    def receive(self, frame: bytes) -> Id | None:
        if frame[:1] != b"{" and is_batch(frame):
            with suppress(RpcError):
                for each in parse_batch(frame):
                    self._receive_one(each)
            return None
        # An event's data is one line, and a line break in JSON is only whitespace.
        return self._receive_one(frame.replace(b"\n", b" ").replace(b"\r", b" "))

    async def receive_large(self, frame: bytes) -> Id | None:
        return self.receive(frame)

    def receive_cut(self, edges: bytes) -> None:
        found = cut_message(edges, "it is too large for the console")
        self._refuse(found.id, found.reason)

    def _receive_one(self, frame: bytes) -> Id | None:
        message, frame = _read(frame)
        if message is None:
            self._refuse(*(malformed_response(frame) or (None, "")))
        elif message.method is None:
            exchange = None if message.id is None else self._exchanges.pop(message.id, None)
            if exchange is not None:
                exchange.finish(frame)
                return message.id
        elif (exchange := self._stream_for(message)) is not None:
            exchange.add(frame)
        elif self._listener is not None and not self._listener.ended:
            self._listener.offer(frame)
        else:
            self._unread.append(frame)
        return None

    def _stream_for(self, message: Incoming) -> Exchange | None:
        """Return the request that a message belongs to, or else the newest running one."""
        if message.method == "notifications/progress":
            with suppress(ValueError, RecursionError):
                token = msgspec.json.decode(message.params, type=_Progress).progress_token
                if token is not None and token in self._exchanges:
                    return self._exchanges[token]
        running = [each for each in self._exchanges.values() if not each.is_abandoned]
        return running[-1] if running else None

    def _refuse(self, id: Id | None, reason: str) -> None:
        """Answer the request whose response cannot be read."""
        exchange = None if id is None else self._exchanges.pop(id, None)
        if exchange is not None:
            exchange.fail(NoAnswer(f"the server's response cannot be read: {reason}"))

    async def _send(self, outgoing: Outgoing, exchange: Exchange) -> None:
        try:
            await self._transport.send(outgoing)
        except (NoAnswer, RpcError) as exc:
            self._exchanges.pop(exchange.id, None)
            exchange.fail(exc)
            if isinstance(exc, SessionLost):
                self._lost(exc)

    def _lost(self, error: Exception) -> None:
        self._end(error)
        self._on_lost()

    def _end(self, error: Exception) -> None:
        for exchange in self._exchanges.values():
            exchange.fail(error)
        if self._listener is not None:
            self._listener.end()


def _read(frame: bytes) -> tuple[Incoming | None, bytes]:
    """Return the message in a frame, and the frame as JSON that a browser can read."""
    try:
        return incoming_decoder.decode(frame), frame
    except (ValueError, RecursionError):
        message = decode_frame(frame)
    if message is None or message.method is not None:
        return message, frame
    error = None if message.error is None else message.error.as_exception()
    if error is not None:
        return message, error_frame(message.id, error)
    body = {"jsonrpc": "2.0", "id": message.id, "result": message.result}
    return message, msgspec.json.encode(body)


class _Progress(msgspec.Struct, rename="camel"):
    progress_token: Id | None = None


def failure_frame(id: Id | None, error: Exception) -> bytes:
    """Return the error response for a request that the target did not answer."""
    if isinstance(error, RpcError):
        return error_frame(id, error)
    # These errors include the end of a child process's stderr, for this program's user.
    details = error.details if isinstance(error, NoAnswer | ConnectError) else None
    return error_frame(id, RpcError(INTERNAL_ERROR, str(error), details or None))


class ConsoleTarget(msgspec.Struct, kw_only=True):
    """A server that the user can choose on the page."""

    name: str
    target: str
    """Its argument on the command line or to `connect`, without secrets."""
    member: str = ""
    """Its name in an mcp.json file."""
    transports: tuple[Callable[[], Transport], ...] = ()
    """Functions that create the transports, in the order to try them."""
    takes_token: bool = False
    """Whether the user's token is sent to it, as it is for a URL."""
    error: str = ""
    """Why it cannot be used."""
    sessions: dict[str, TargetSession] = {}
    """The open connections, by the id that the page uses; the most recently used is last."""


class TargetConsole:
    """Serves the page, and passes its messages on to the targets."""

    def __init__(self, name: str, targets: list[ConsoleTarget]) -> None:
        self.token = secrets.token_urlsafe(32)
        self._name = name
        self._targets = targets
        self._guard = Guard(WebOptions())
        self._closing: set[asyncio.Task[None]] = set()

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        if scope["type"] != "http":
            return
        request = HttpRequest(scope, receive, send)
        try:
            body = await request.body(MAX_BODY)
        except ClientDisconnected:
            await request.end_after_disconnect()
            return
        refused = self._guard.refuse(scope, request.headers)
        given = request.headers.get(START_TOKEN, b"")
        # The page itself needs no token.
        if not wants_page(request) and not hmac.compare_digest(given, self.token.encode()):
            refused = refused or _NO_TOKEN
        if refused is not None:
            await _refuse(request, refused)
        elif isinstance(body, Reply):
            await _refuse(request, body)
        else:
            await self._answer(request, body)

    async def close(self) -> None:
        """End all connections and their child processes."""
        for target in self._targets:
            for session in list(target.sessions.values()):
                self._close(session)
            target.sessions.clear()
        if self._closing:
            await asyncio.wait(self._closing)

    async def _answer(self, request: HttpRequest, body: bytes) -> None:
        endpoint = _ENDPOINT.fullmatch(request.path)
        number = int(endpoint[1]) if endpoint else len(self._targets)
        if wants_page(request):
            await request.respond_with(page_for(request))
        elif request.path == ABOUT:
            about = msgspec.json.encode(self._about())
            await request.respond_with(HttpReply(200, about, JSON, NO_STORE))
        elif request.path == CONSOLE_VIEWS:
            refused = refuse_method(request.method, "POST") or refuse_media(request.content_type)
            found = await views_of(body, STANDARD) if refused is None else refused
            if isinstance(found, Reply):
                await _refuse(request, found)
            else:
                await request.respond_with(found)
        elif number < len(self._targets):
            await self._answer_mcp(self._targets[number], request, body)
        else:
            await _refuse(request, no_route(request.path, request.root))

    def _about(self) -> dict[str, Any]:
        servers = [
            {
                "name": each.name,
                "mcp": f"targets/{number}/mcp",
                "versions": [LATEST_STATEFUL.name, *STATELESS],
                # The page finds out which of the versions the server supports.
                "foreign": True,
                "target": each.target,
                "member": each.member,
                "error": each.error,
            }
            for number, each in enumerate(self._targets)
        ]
        has_urls = any(each.takes_token for each in self._targets)
        return {"name": self._name, "version": "", "auth": has_urls, "servers": servers}

    async def _answer_mcp(self, target: ConsoleTarget, request: HttpRequest, body: bytes) -> None:
        refused = refuse_method(request.method, "POST, GET, DELETE")
        if request.method == "POST":
            refused = refused or refuse_media(request.content_type)
        given = request.headers.get(_SESSION, b"").decode("latin-1")
        session = target.sessions.pop(given, None)
        if session is not None and request.method != "DELETE":
            # Move it to the end: it is now the most recently used.
            target.sessions[given] = session
        if refused is not None:
            await _refuse(request, refused)
        elif session is None and (given or request.method != "POST"):
            await _refuse(request, _NO_SESSION)
        elif request.method == "POST":
            await self._post(target, session, request, body)
        elif session is not None and request.method == "GET":
            await write_until_disconnected(session.listen(), request)
        elif session is not None:
            self._close(session)
            await request.respond(204, (), b"")

    async def _post(
        self,
        target: ConsoleTarget,
        session: TargetSession | None,
        request: HttpRequest,
        body: bytes,
    ) -> None:
        headers = _headers(target, request)
        try:
            message = parse(body)
            if session is not None and isinstance(message, Request):
                exchange = session.request(message.id, message.method, body, headers)
                await _respond(session, exchange, request)
            elif session is not None:
                try:
                    await session.notify(getattr(message, "method", ""), body, headers)
                except NoAnswer as exc:
                    await request.respond(502, JSON_HEADERS, failure_frame(None, exc))
                else:
                    await request.respond(202, (), b"")
            elif isinstance(message, Request):
                await self._begin(target, request, body, message)
            else:
                await _refuse(request, _NO_SESSION)
        except RpcError as exc:
            await request.respond(400, JSON_HEADERS, error_frame(exc.id, exc))

    async def _begin(
        self, target: ConsoleTarget, request: HttpRequest, body: bytes, message: Request
    ) -> None:
        """Open a connection, and send the first message.

        A URL may need another transport; we find out when it refuses the first one.
        """
        for make in target.transports:
            id = secrets.token_urlsafe(16)
            session = TargetSession(make(), partial(self._drop, target, id))
            target.sessions[id] = session
            if len(target.sessions) > _MAX_SESSIONS:
                # The first one is the least recently used.
                self._drop(target, next(iter(target.sessions)))
            try:
                await session.open()
            except (ConnectError, NoAnswer) as exc:
                self._drop(target, id)
                await request.respond(502, JSON_HEADERS, failure_frame(message.id, exc))
                return
            exchange = session.request(message.id, message.method, body, _headers(target, request))
            if not await _has_begun(exchange, request):
                self._drop(target, id)
                return
            if exchange.status in OTHER_TRANSPORT and make is not target.transports[-1]:
                self._drop(target, id)
                continue
            if exchange.status != 200:
                self._drop(target, id)
            await _respond(session, exchange, request, id)
            return
        unusable = NoAnswer(target.error or "the server cannot be used")
        await request.respond(502, JSON_HEADERS, failure_frame(message.id, unusable))

    def _drop(self, target: ConsoleTarget, id: str) -> None:
        session = target.sessions.pop(id, None)
        if session is not None:
            self._close(session)

    def _close(self, session: TargetSession) -> None:
        closing = asyncio.ensure_future(session.close())
        self._closing.add(closing)
        closing.add_done_callback(self._closing.discard)


async def _respond(
    session: TargetSession, exchange: Exchange, request: HttpRequest, id: str = ""
) -> None:
    """Send the response as JSON, or as a stream if other messages arrive before it."""
    has_begun = await _has_begun(exchange, request)
    session_header = ((_SESSION, id.encode()),) if id else ()
    if (frame := exchange.only_frame) is not None:
        await request.respond(exchange.status, (*JSON_HEADERS, *session_header), frame)
        return
    if has_begun:
        send = request.send

        async def add_header(message: Message) -> None:
            if message["type"] == "http.response.start":
                message = {**message, "headers": [*message["headers"], *session_header]}
            await send(message)

        request.send = add_header
        await write_until_disconnected(exchange.stream, request)
    if not exchange.stream.ended:
        exchange.is_abandoned = True
        if request.headers.get(b"mcp-protocol-version", b"").decode("latin-1") in STATELESS:
            await session.cancel(exchange)


async def _has_begun(exchange: Exchange, request: HttpRequest) -> bool:
    """Wait until something arrives; return False if the client disconnects first."""
    arriving = asyncio.ensure_future(exchange.began.wait())
    leaving = asyncio.ensure_future(disconnected(request.receive))
    await asyncio.wait({arriving, leaving}, return_when=asyncio.FIRST_COMPLETED)
    arriving.cancel()
    leaving.cancel()
    return exchange.began.is_set()


def _headers(target: ConsoleTarget, request: HttpRequest) -> dict[str, str]:
    """Return the headers for a message to the target: MCP's own, and the user's token."""
    found = {
        _CASED.get(name, name.decode()): value.decode("latin-1")
        for name, value in request.headers.items()
        if name.startswith(b"mcp-") and name != _SESSION
    }
    token = request.headers.get(b"authorization")
    if target.takes_token and token is not None:
        found["authorization"] = token.decode("latin-1")
    return found


async def _refuse(request: HttpRequest, refusal: Reply[Any]) -> None:
    await request.respond_with(write(refusal, "rest", RESULT, STANDARD))
