"""MCP's Streamable HTTP at one path, for both eras, and `POST /message` for plain requests.

In the stateful era, a signed id holds the session, and streams can be resumed. In the stateless
era, each POST stands alone, and disconnecting cancels it. Its clients repeat parts of the body
in headers, for proxies and gateways; a request whose headers differ from its body is refused.
"""

from __future__ import annotations

import asyncio
import re
import time
from collections.abc import Coroutine, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from ...calls.runtime import Runtime
from ...core.json_value import Json
from ...core.reply import Reply
from ...core.signing import Signer
from ...core.versions import LATEST_STATEFUL, STATEFUL, V2025_11_25, V2026_07_28
from ...errors import Unavailable
from ...protocol.engine import Engine
from ...protocol.jsonrpc import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    Frame,
    Id,
    Message,
    Meta,
    Notification,
    Request,
    Response,
    RpcError,
    ToolCall,
    error_frame,
    is_batch,
    is_stateless,
    joined,
    meta_of,
    parse,
    parse_batch,
    read_params,
    result_frame,
)
from ...protocol.listing import described_if_hiding, is_gated, is_visible_to
from ...protocol.mcp_peer import McpPeer
from ...protocol.mcp_request_info import NAMED_BY, decode_header
from ...protocol.refusals import batch_challenge
from ...protocol.session import ClientCapabilities, require_meta, stateless_version
from ...protocol.subscriptions import Subscription, change_frame
from ...registry.composition import apply_switch
from ...registry.declarations import Change, Registry
from ...tools.tool import Tool
from ..http.routes import refuse_media
from .in_flight import BatchPeer, HttpPeer, InFlight
from .request import JSON_HEADERS, HttpRequest, challenge_headers
from .sessions import (
    SESSION_HEADER,
    SESSION_METHODS,
    VERSION_HEADER,
    HttpClient,
    HttpError,
    Sessions,
    SessionSync,
)
from .sse import EventStream, write_until_disconnected
from .worker_sockets import RegistryChanged, RegistrySwitched, WorkerBus, WorkerMessage

if TYPE_CHECKING:
    from ...protocol.task_methods import TaskFeed
_STATEFUL_VERSIONS = frozenset(name.encode() for name in STATEFUL)
_ACCEPTED = (b"json", b"event-stream", b"application/*", b"*/*")
"""Parts of an Accept header; a client that sends the header must include one of them."""
METHOD = b"mcp-method"
NAME = b"mcp-name"
PARAM = b"mcp-param-"
_ROUTING = (VERSION_HEADER, METHOD, NAME)
_STATUS = {INTERNAL_ERROR: 200, METHOD_NOT_FOUND: 404}
"""The HTTP status for an error code; 400 for all others."""
_NUMBER = re.compile(r"-?\d{1,300}(\.\d{1,300})?([eE][+-]?\d{1,3})?", re.ASCII)


class McpEndpoint:
    """Checks each request, finds its era, and passes it on."""

    def __init__(self, runtime: Runtime, signer: Signer, bus: WorkerBus, *, sessions: bool) -> None:
        self._registry = registry = runtime.registry
        self._engine = Engine(runtime, lambda: signer)
        in_flight = InFlight()
        keeper = Sessions(signer, bus.number, is_bound=runtime.auth is not None, are_kept=sessions)
        self._has_sessions = sessions
        self._stateful = Stateful(registry, self._engine, keeper, bus, in_flight)
        self._stateless = Stateless(registry, self._engine, in_flight)

    async def answer(
        self, http: HttpRequest, body: bytes | Reply[Any], refused: Reply[Any] | None
    ) -> None:
        """Respond to a request; *refused* is the guard's refusal."""
        try:
            if refused is None and http.method == "POST":
                if http.content_type != b"application/json":
                    refused = refuse_media(http.content_type)
                if isinstance(body, bytes) and refused is None:
                    if http.path == "/message":
                        await self._message(body, http)
                    else:
                        await self._post(body, http)
                    return
            reason = refused or body
            if isinstance(reason, Reply) and reason.error is not None:
                status = reason.error.row.status
                raise HttpError(status, RpcError(INVALID_REQUEST, reason.error.message))
            await self._get_or_delete(http)
        except Unavailable as exc:
            headers = ((b"retry-after", b"%d" % (exc.retry_after or 1)), *JSON_HEADERS)
            await http.respond(503, headers, error_frame(None, _unavailable(exc)))
        except HttpError as error:
            frame = error_frame(error.error.id, error.error)
            await http.respond(error.status, (*error.headers, *JSON_HEADERS), frame)

    async def apply(self, message: WorkerMessage) -> None:
        if isinstance(message, RegistryChanged):
            self._registry.changes.deliver(message.change)
        elif isinstance(message, RegistrySwitched):
            apply_switch(self._registry, message.switch)
        else:
            await self._stateful.sync.apply(message)

    def open(self) -> None:
        """Accept requests, even after an earlier shutdown."""
        self._stateful.sync.questions.open()

    def close(self) -> None:
        """End open streams and questions."""
        self._stateful.close()
        self._stateless.close()

    def _post(self, body: bytes, http: HttpRequest) -> Coroutine[Any, Any, None]:
        """Return the coroutine that answers the message or the batch; raises HttpError."""
        http.text = body
        if b"json" not in http.accept and http.accept:
            accept = http.accept.lower()
            if not any(media in accept for media in _ACCEPTED):
                reason = "Not acceptable: accept application/json and text/event-stream"
                raise HttpError(406, RpcError(INVALID_REQUEST, reason))
        stateless = _names_stateless_version(http)
        try:
            if is_batch(body):
                texts = parse_batch(body)
                if stateless:
                    raise RpcError(INVALID_REQUEST, "This protocol version has no batches")
                return self._stateful.post_batch(texts, http)
            message = parse(body)
            if isinstance(message, Request):
                meta = meta_of(message)
                # Check the body too: a client that forgot the header gets an error that names it.
                if stateless or is_stateless(meta):
                    return self._stateless.post(message, meta, http)
                return self._stateful.post(message, meta, http)
        except RpcError as error:
            raise HttpError(400, error) from None
        return http.respond(202, (), b"") if stateless else self._stateful.accept(message, http)

    async def _get_or_delete(self, http: HttpRequest) -> None:
        with_sessions = (
            self._has_sessions and http.path != "/message" and not _names_stateless_version(http)
        )
        if with_sessions:
            if http.method == "GET":
                return await self._stateful.get(http)
            if http.method == "DELETE":
                return await self._stateful.delete(http)
        allowed = "GET, POST, DELETE" if with_sessions else "POST"
        error = RpcError(INVALID_REQUEST, f"Method not allowed: {http.method}")
        raise HttpError(405, error, Allow=allowed)

    async def _message(self, body: bytes, http: HttpRequest) -> None:
        """Answer one JSON-RPC request in plain JSON, without a handshake or a session."""
        http.text = body
        try:
            request = parse(body)
        except RpcError as error:
            raise HttpError(400, error) from None
        if not isinstance(request, Request):
            await http.respond(202, (), b"")
            return
        peer = McpPeer()
        peer.id = request.id
        peer.version = LATEST_STATEFUL
        peer.client = ClientCapabilities()
        peer.caller = http.caller
        peer.http = http
        peer.can_refuse_by_status = True
        frame = await self._message_frame(request, peer)
        status, headers = 200, JSON_HEADERS
        if peer.error is not None and peer.error.challenge is not None:
            status, challenge = peer.error.challenge
            headers = challenge_headers(challenge)
        await http.respond(status, headers, frame)

    async def _message_frame(self, request: Request, peer: McpPeer) -> Frame:
        try:
            if request.method == "ping":
                return result_frame(request.id, b"{}")
            if request.method == "initialize":
                has_user = peer.describe_request("mcp").user is not None
                server_info = self._engine.server_info
                _, result = server_info.initialize(request.params, has_user=has_user)
                return result_frame(request.id, result)
            meta_of(request)
        except RpcError as error:
            return error_frame(request.id, error)
        return await self._engine.respond(request, peer)


def _names_stateless_version(http: HttpRequest) -> bool:
    version = http.headers.get(VERSION_HEADER)
    if version is None or version in _STATEFUL_VERSIONS:
        return False
    return version.strip() not in _STATEFUL_VERSIONS


class Stateful:
    """Answers POST, GET and DELETE requests from clients that use 2025-11-25 or earlier."""

    def __init__(
        self,
        registry: Registry,
        engine: Engine,
        sessions: Sessions,
        bus: WorkerBus,
        in_flight: InFlight,
    ) -> None:
        self._registry = registry
        self._engine = engine
        self._bus = bus
        self._in_flight = in_flight
        self._sessions = sessions
        self.sync = SessionSync(registry, bus, sessions, in_flight)
        self._open_streams: set[EventStream] = set()

    async def post(self, request: Request, meta: Meta | None, http: HttpRequest) -> None:
        if request.method == "initialize":
            await self._initialize(request, http)
            return
        client = self._sessions.identify(http)
        level = self._sessions.level(client)
        peer = HttpPeer(request.id, client.version, client.capabilities, http)
        peer.level = level
        if self._registry.has_gates:
            peer.is_held = is_gated(self._registry, request, self._engine.tool_name(request))
        if meta is not None:
            peer.progress_token = meta.token
        if client.session is not None:
            peer.key = (client.nonce, request.id)
            peer.session = client.session
            peer.questions = self.sync.questions
        # A client that lists text/event-stream first gets a stream immediately.
        if http.accept.lstrip().lower().startswith(b"text/event-stream"):
            self._begin_stream(peer, client, request.id)
        # Nothing is lost by cancelling: the client can wait for the same task again.
        peer.cancel_on_disconnect = request.method == "tasks/result" and peer.stream.id is None
        if request.method in SESSION_METHODS:
            await peer.finish(await self._answer_session(request, client, peer))
        elif peer.cancel_on_disconnect:
            await self._answer(request, peer)
        elif _can_be_asked(client.capabilities) and self._engine.may_ask(request):
            await self._in_flight.run_detachable(peer, self._answer(request, peer))
        else:
            await self._answer(request, peer)

    async def _answer(self, request: Request, peer: HttpPeer) -> None:
        await peer.finish(await self._in_flight.run(self._engine, request, peer))

    async def accept(self, message: Notification | Response, http: HttpRequest) -> None:
        """Acknowledge a message that gets no response."""
        await self.sync.accept(message, self._sessions.identify(http))
        await http.respond(202, (), b"")

    async def post_batch(self, texts: list[bytes], http: HttpRequest) -> None:
        """Answer the messages in a batch, one by one."""
        client = self._sessions.identify(http)
        if not client.version.batches or not texts:
            reason = "The batch is empty" if not texts else "This protocol version has no batches"
            raise HttpError(400, RpcError(INVALID_REQUEST, reason))
        messages: list[Message | RpcError] = []
        for text in texts:
            try:
                messages.append(parse(text))
            except RpcError as error:
                messages.append(error)
        unanswered = [each for each in messages if isinstance(each, Notification | Response)]
        if len(unanswered) == len(messages):
            for each in unanswered:
                await self.sync.accept(each, client)
            await http.respond(202, (), b"")
            return
        requests = [each for each in messages if isinstance(each, Request)]
        batch = HttpPeer(0, client.version, client.capabilities, http)
        if self._registry.has_gates:
            _refuse_batch(self._engine, requests, batch)
        batch.level = self._sessions.level(client)
        batch.questions = self.sync.questions if client.session is not None else None
        if http.accept.lstrip().lower().startswith(b"text/event-stream"):
            self._begin_stream(batch, client, None)
        answering = self._answer_batch(messages, client, batch)
        if _can_be_asked(client.capabilities) and any(map(self._engine.may_ask, requests)):
            await self._in_flight.run_detachable(batch, answering)
        else:
            await answering
            batch.stop_watching()

    async def _answer_batch(
        self, messages: list[Message | RpcError], client: HttpClient, batch: HttpPeer
    ) -> None:
        responses = [await self._answer_part(each, client, batch) for each in messages]
        frames = [joined(frame) for frame in responses if frame is not None]
        await batch.finish(b"[%b]" % b",".join(frames) if frames else None)

    async def get(self, http: HttpRequest) -> None:
        """Send a session's notifications, or the rest of a resumed stream."""
        client = self._sessions.identify(http)
        if client.session is None:
            raise HttpError(405, RpcError(INVALID_REQUEST, "No session"), Allow="POST, DELETE")
        resumed, start = await self.sync.resumable.resume(client, http.headers)
        if resumed is not None:
            await self._write(resumed, http, start)
            return
        since = await self._bus.catch_up()
        # The session may have ended on another host.
        client = self._sessions.identify(http)
        stream = EventStream(asyncio.get_running_loop())
        opened = await self.sync.open_stream(client, since)

        def on_change(change: Change) -> None:
            if self._sessions.wants(client, change) and self.sync.active.is_active(opened):
                stream.offer_or_end(change_frame(change))

        unsubscribe = self._registry.changes.subscribe(on_change)
        try:
            await self._write(stream, http, start)
        finally:
            unsubscribe()
            self.sync.close_stream(opened)

    async def delete(self, http: HttpRequest) -> None:
        client = self._sessions.identify(http)
        if client.session is None:
            raise HttpError(400, RpcError(INVALID_REQUEST, "Missing Mcp-Session-Id"))
        await self.sync.end_session(client)
        if self._registry.has_budgets:
            await self._engine.runtime.stored_replies.forget_session(client.nonce.hex())
        await http.respond(204, (), b"")

    def close(self) -> None:
        """End open streams and questions."""
        for stream in self._open_streams:
            stream.end()
        self.sync.questions.close()
        self._in_flight.close()

    async def _write(self, stream: EventStream, http: HttpRequest, start: int) -> None:
        self._open_streams.add(stream)
        try:
            await write_until_disconnected(stream, http, start=start, expires=http.expires)
        finally:
            self.sync.resumable.stop_following(stream)
            self._open_streams.discard(stream)

    async def _initialize(self, request: Request, http: HttpRequest) -> None:
        try:
            session, result = self._engine.server_info.initialize(
                request.params,
                has_user=http.scope.get("user") is not None,
                has_session=self._sessions.are_kept,
            )
        except RpcError as error:
            await http.respond(200, JSON_HEADERS, error_frame(request.id, error))
            return
        headers = JSON_HEADERS
        if self._sessions.are_kept:
            headers = ((SESSION_HEADER, self._sessions.new_id(session, http)), *headers)
        await http.respond(200, headers, result_frame(request.id, result))

    def _begin_stream(self, peer: HttpPeer, client: HttpClient, request: Id | None) -> None:
        """Respond with an event stream; a session's client can resume it."""
        if client.session is None:
            peer.begin_stream()
            return
        # Older clients try to read the empty event as JSON.
        peer.prime = client.version is V2025_11_25
        peer.begin_stream(self.sync.resumable.new(client, request))

    async def _answer_session(self, request: Request, client: HttpClient, peer: HttpPeer) -> bytes:
        described = described_if_hiding(self._registry, peer)
        try:
            if request.method != "ping" and not self._sessions.are_kept:
                message = f"{request.method} needs a session, and this server has none"
                raise RpcError(METHOD_NOT_FOUND, message)
            return result_frame(request.id, await self.sync.answer(request, client, described))
        except RpcError as error:
            return error_frame(request.id, error)
        except Unavailable as exc:
            if peer.can_refuse_by_status:
                raise
            return error_frame(request.id, _unavailable(exc))

    async def _answer_part(
        self, message: Message | RpcError, client: HttpClient, batch: HttpPeer
    ) -> Frame | None:
        """Return the response to one message in a batch, if there is one."""
        if isinstance(message, RpcError):
            return error_frame(message.id, message)
        if not isinstance(message, Request):
            # A batch with requests gets a response, whose status does not depend on this.
            with suppress(Unavailable):
                await self.sync.accept(message, client)
            return None
        if message.method == "initialize":
            error = RpcError(INVALID_REQUEST, "initialize cannot be sent in a batch")
            return error_frame(message.id, error)
        try:
            meta = meta_of(message)
        except RpcError as error:
            return error_frame(message.id, error)
        peer = BatchPeer(message.id, batch)
        if message.method in SESSION_METHODS:
            return await self._answer_session(message, client, peer)
        peer.level = batch.level
        if meta is not None:
            peer.progress_token = meta.token
        if client.session is not None:
            peer.key = (client.nonce, message.id)
            peer.session = client.session
        return await self._in_flight.run(self._engine, message, peer)


def _refuse_batch(engine: Engine, requests: list[Request], batch: HttpPeer) -> None:
    """Raise HttpError if the client must log in for one of the requests; if so, none runs."""
    for request in requests:
        error = batch_challenge(engine.runtime, request, engine.tool_name(request), batch)
        if error is not None and error.challenge is not None:
            status, challenge = error.challenge
            headers = {"www-authenticate": challenge, "cache-control": "no-store"}
            raise HttpError(status, error, **headers)


def _can_be_asked(client: ClientCapabilities) -> bool:
    return client.form or client.url or client.sampling or client.roots


def _unavailable(exc: Unavailable) -> RpcError:
    """Return the error for a request that needs the database while it is unavailable."""
    data = {"code": exc.code, "retryable": exc.retryable, "retry_after": exc.retry_after}
    return RpcError(INTERNAL_ERROR, exc.message, data)


class Stateless:
    """Answers POST requests from clients that use 2026-07-28 or later."""

    def __init__(self, registry: Registry, engine: Engine, in_flight: InFlight) -> None:
        self._registry = registry
        self._engine = engine
        self._prefix = registry.contract.tool_prefix
        self._in_flight = in_flight
        self._subscriptions: dict[EventStream, Subscription] = {}

    async def post(self, request: Request, meta: Meta | None, http: HttpRequest) -> None:
        try:
            peer = self._peer_for(request, meta, http)
            if request.method == "subscriptions/listen":
                feed = await self._engine.task_feed(request.params, peer)
                await self._subscribe(request, peer, feed)
                return
        except RpcError as error:
            frame = error_frame(request.id, error)
            await http.respond(_STATUS.get(error.code, 400), JSON_HEADERS, frame)
            return
        found = await self._in_flight.run(self._engine, request, peer)
        if found is None:
            await peer.abandon()
        elif peer.error is None:
            await peer.finish(found)
        else:
            await peer.finish(found, _STATUS.get(peer.error.code, 400))

    def _peer_for(self, request: Request, found: Meta | None, http: HttpRequest) -> HttpPeer:
        """Return the peer for a request; raises RpcError.

        Checks, in this order: repeated headers, `_meta`, headers that match the body, version.
        """
        headers = http.headers
        if len(headers) != len(http.scope["headers"]):
            names = [name for name, _ in http.scope["headers"]]
            for name in names:
                if (name in _ROUTING or name.startswith(PARAM)) and names.count(name) > 1:
                    raise _mismatch(name, "appears twice")
        meta, client = require_meta(found)
        _check_routing(request, str(meta.version), headers)
        version = stateless_version(meta)
        params = request.params
        peer = HttpPeer(request.id, version, client, http)
        if isinstance(params, ToolCall):
            tool = self._registry.tools.get(params.name.removeprefix(self._prefix))
            if tool is not None and tool.signature.header_params and is_visible_to(peer)(tool):
                _check_params(tool, params, headers)
        peer.level = meta.level
        peer.progress_token = meta.token
        peer.cancel_on_disconnect = True
        if self._registry.has_gates:
            peer.is_held = is_gated(self._registry, request, self._engine.tool_name(request))
        return peer

    async def _subscribe(self, request: Request, peer: HttpPeer, tasks: TaskFeed | None) -> None:
        loop = asyncio.get_running_loop()
        stream = EventStream(loop)
        described = described_if_hiding(self._registry, peer)
        subscription = Subscription(
            self._registry, request.id, request.params, stream.offer_or_end, described, tasks
        )
        self._subscriptions[stream] = subscription
        timer = None
        if (expires := peer.http.expires) is not None:
            delay = max(0.0, expires - time.time())
            timer = loop.call_later(delay, self._end, stream, subscription)
        try:
            await write_until_disconnected(stream, peer.http)
        finally:
            if timer is not None:
                timer.cancel()
            subscription.end()
            del self._subscriptions[stream]

    def close(self) -> None:
        """End every subscription with its result."""
        for stream, subscription in self._subscriptions.items():
            self._end(stream, subscription)

    def _end(self, stream: EventStream, subscription: Subscription) -> None:
        info = self._engine.server_info.server_info(V2026_07_28)
        stream.append(subscription.last_frame(info))
        stream.end()


class _Named(msgspec.Struct):
    """The member that the name header repeats; its type is checked later."""

    name: Json = None
    uri: Json = None
    task: Json = msgspec.field(default=None, name="taskId")


def _check_routing(request: Request, version: str, headers: Mapping[bytes, bytes]) -> None:
    """Raise RpcError if a header is missing, malformed, or differs from the body."""
    params = request.params
    name: Json = None
    if isinstance(params, ToolCall):
        name = params.name
    elif (member := NAMED_BY.get(request.method)) is not None:
        named = read_params(params, _Named)
        name = {"name": named.name, "uri": named.uri, "taskId": named.task}[member]
    for header, value in ((VERSION_HEADER, version), (METHOD, request.method), (NAME, name)):
        if not isinstance(value, str):
            continue  # The request has no name, or a malformed one, which is refused later.
        found = headers.get(header)
        if found is None:
            raise _mismatch(header, "is missing")
        is_equal = found.decode("latin-1") == value and value[:2] != "=?"
        if not is_equal and _decoded(header, found) != value:
            raise _mismatch(header, "does not match the body")


def _check_params(tool: Tool, params: ToolCall, headers: Mapping[bytes, bytes]) -> None:
    """Raise RpcError if a mirrored argument differs between its header and the body."""
    try:
        arguments = msgspec.json.decode(params.arguments)
    except ValueError:
        return  # The pipeline decodes the arguments later, and reports the error.
    for path, header in tool.signature.header_params.items():
        value = arguments
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        name = PARAM + header.lower().encode()
        found = headers.get(name)
        if value is None:
            continue
        if found is None:
            raise _mismatch(name, "is missing")
        if not _is_equal(_decoded(name, found), value):
            raise _mismatch(name, "does not match the body")


def _decoded(name: bytes, value: bytes) -> str:
    """Return a header's value; base64 in `=?base64?…?=` is decoded."""
    text = value.decode("latin-1").strip(" \t")
    if text[:2] != "=?":
        return text
    try:
        return decode_header(text)
    except ValueError:
        raise _mismatch(name, "is not base64-encoded UTF-8") from None


def _is_equal(text: str, value: Json) -> bool:
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, int | float):
        if _NUMBER.fullmatch(text) is None:
            return False
        # A float would round a large integer, and "3.0" is an integer too.
        whole, _, rest = text.partition(".")
        is_float = rest.strip("0") or "e" in text.lower()
        return (float(text) if is_float else int(whole)) == value
    return bool(text == value)


def _mismatch(name: bytes, what: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, f"Header {name.decode('latin-1')} {what}")
