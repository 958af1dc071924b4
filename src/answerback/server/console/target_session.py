"""TargetSession: one client's connection to a target of `console`, message by message.

The page speaks MCP itself; nothing here knows what a message means, except which response belongs
to which request.
"""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Callable, Mapping
from contextlib import suppress

import msgspec

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
from ...protocol.jsonrpc import (
    INTERNAL_ERROR,
    Id,
    RpcError,
    error_frame,
    is_batch,
    notification_frame,
    parse_batch,
)
from ..asgi.sse import EventStream

_MAX_KEPT = 100
"""How many messages wait for a stream; the oldest are dropped."""


class Exchange:
    """A request to the target, and what arrives until its response."""

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
        """True if nobody reads the stream."""

    @property
    def only_frame(self) -> bytes | None:
        """The response, if nothing else arrived before it."""
        return self.stream.frame(1) if self.stream.ended and self.stream.count == 1 else None

    def add(self, frame: bytes) -> None:
        self.stream.offer(frame)
        self.began.set()

    def finish(self, frame: bytes) -> None:
        """End with the response."""
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
                # After 404 the client opens another session.
                self.status = 404 if isinstance(error, SessionLost) else 502
            self.finish(failure_frame(self.id, error))


class TargetSession:
    """A connection with its own child process or HTTP session; receives the target's frames."""

    def __init__(self, transport: Transport, on_lost: Callable[[], None]) -> None:
        self._transport = transport
        self._on_lost = on_lost
        self._exchanges: dict[Id, Exchange] = {}
        self._listener: EventStream | None = None
        self._kept: deque[bytes] = deque(maxlen=_MAX_KEPT)
        """Messages that arrived while there was no stream."""

    async def open(self) -> None:
        """Start the child process, or prepare the HTTP requests; raises ConnectError, NoAnswer."""
        await self._transport.open(self, self._lost)

    def request(self, id: Id, method: str, frame: bytes, headers: Mapping[str, str]) -> Exchange:
        """Send a request; raises RpcError if one with the same id is running."""
        if id in self._exchanges:
            raise RpcError(INTERNAL_ERROR, f"a request with the id {id!r} is running", id=id)
        exchange = self._exchanges[id] = Exchange(id)
        outgoing = Outgoing(frame, id, method, headers, exchange.answer)
        while self._kept:
            exchange.add(self._kept.popleft())
        exchange.sending = asyncio.ensure_future(self._send(outgoing, exchange))
        return exchange

    async def notify(self, method: str, frame: bytes, headers: Mapping[str, str]) -> None:
        """Send a notification, or a response to the target's question; raises NoAnswer."""
        await self._transport.send(Outgoing(frame, None, method, headers))
        if method == "notifications/initialized":
            await self._transport.listen()

    async def cancel(self, exchange: Exchange) -> None:
        """Cancel a request of the stateless era, whose client has disconnected."""
        self._exchanges.pop(exchange.id, None)
        if self._transport.closes_to_cancel and exchange.sending is not None:
            exchange.sending.cancel()
            return
        params = {"requestId": exchange.id}
        frame = notification_frame("notifications/cancelled", params)
        with suppress(NoAnswer):
            await self._transport.send(Outgoing(frame, method="notifications/cancelled"))

    def listen(self) -> EventStream:
        """Return a stream for what belongs to no request; it replaces an earlier one."""
        if self._listener is not None:
            self._listener.end()
        self._listener = EventStream(asyncio.get_running_loop())
        while self._kept:
            self._listener.append(self._kept.popleft())
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
        # An event's data is one line, and a line break in JSON is only white space.
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
            self._kept.append(frame)
        return None

    def _stream_for(self, message: Incoming) -> Exchange | None:
        """Return the request that a message belongs to, else the newest one that is running."""
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
    # They have the end of a child process's stderr, for this program's user.
    details = error.details if isinstance(error, NoAnswer | ConnectError) else None
    return error_frame(id, RpcError(INTERNAL_ERROR, str(error), details or None))
