"""Connection: the one client at the other end of a pipe, in either era."""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import Any, Protocol, TypeAlias

from ..calls.failures import log_internal_error
from ..calls.stepping import run_at_once
from ..registry import Registry
from ..versions import Version
from .engine import Engine, task_feed
from .jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    Frame,
    Notification,
    Request,
    Response,
    RpcError,
    error_frame,
    is_batch,
    joined,
    parse,
    parse_batch,
    read_params,
    result_frame,
)
from .mcp_peer import McpPeer
from .params import CancelledParams, Id
from .session import ClientCapabilities
from .single_session import SingleSession
from .subscriptions import Subscription


class Answering(Protocol):
    """The answering of one message, which may move from the thread that read it to another."""

    @property
    def peer(self) -> McpPeer | None:
        """The peer of the request that is answered now; its cancellation ends the answering."""

    @peer.setter
    def peer(self, peer: McpPeer | None) -> None: ...


Start: TypeAlias = "Callable[[Callable[[Answering], Coroutine[Any, Any, None]]], None]"
"""Starts a coroutine that answers a message, and returns where the coroutine first waits."""


class Connection:
    """Receives messages and sends frames.

    *start* starts the coroutine that answers a message. *make_peer* makes the peer of a request;
    *on_response* gets the client's responses.
    """

    def __init__(
        self,
        registry: Registry,
        engine: Engine,
        send: Callable[[Frame], None],
        start: Start,
        make_peer: Callable[[Id, Version, ClientCapabilities], McpPeer],
        on_response: Callable[[Response], None],
    ) -> None:
        self._registry = registry
        self._engine = engine
        self._send = send
        self._start = start
        self._make_peer = make_peer
        self._on_response = on_response
        self._session = SingleSession(registry, engine.server_info, send)
        self._running: dict[Id, McpPeer] = {}
        self._ended: set[McpPeer] = set()
        """The requests that the server cancelled, because it ends."""

    def receive(self, text: bytes) -> None:
        """Answer a message, or begin to."""
        try:
            if is_batch(text):
                texts = self._checked_batch(parse_batch(text))
                self._start(partial(self._answer_batch, texts))
                return
            message = parse(text)
            if isinstance(message, Request):
                self._receive_request(message, text)
            else:
                self._receive_unanswered(message)
        except RpcError as error:
            self._send(error_frame(error.id, error))
        except Exception:  # noqa: BLE001 -- a bug of ours ends one message, not the connection
            log_internal_error("a message")
            self._send(error_frame(None, RpcError(INTERNAL_ERROR, "Internal error")))

    def cancel_all(self) -> None:
        """Cancel every request that runs; a client that waits for one still gets its response."""
        peers = list(self._running.values())
        self._ended = {peer for peer in peers if not peer.cancelled}
        for peer in peers:
            peer.cancel()

    def _receive_request(self, request: Request, text: bytes) -> None:
        peer = self._peer_for(request, text)
        if peer is None:
            self._send(result_frame(request.id, self._session.answer(request)))
        elif request.method == "subscriptions/listen" and peer.version.stateless:
            self._subscribe(request, peer)
        else:
            self._start(partial(self._answer, request, peer))

    def _subscribe(self, request: Request, peer: McpPeer) -> None:
        """The subscription stays open until the client cancels it or disconnects."""
        try:
            feed = run_at_once(task_feed(self._engine, request.params, peer))
            subscription = Subscription(
                self._registry, request.id, request.params, self._send, tasks=feed
            )
        except RpcError as error:
            del self._running[request.id]
            self._send(error_frame(request.id, error))
            return

        def end() -> None:
            subscription.end()
            self._running.pop(request.id, None)

        peer.on_cancel(end)

    async def _answer(self, request: Request, peer: McpPeer, answering: Answering) -> None:
        frame = await self._frame(request, peer, answering)
        if frame is not None:
            self._send(frame)

    async def _frame(self, request: Request, peer: McpPeer, answering: Answering) -> Frame | None:
        """The response, or None for a request that was cancelled meanwhile."""
        answering.peer = peer
        try:
            frame = await self._engine.respond(request, peer)
        except BaseException:
            if not peer.cancelled:
                raise
            frame = error_frame(request.id, RpcError(INTERNAL_ERROR, "The call was cancelled"))
        finally:
            answering.peer = None
            self._running.pop(request.id, None)
        return None if peer.cancelled and peer not in self._ended else frame

    def _peer_for(self, request: Request, text: bytes) -> McpPeer | None:
        """The peer of a request; None if the request is about the session itself.

        It is registered when its request is read, so that a cancellation read next finds it.
        """
        try:
            peer = self._session.peer_for(request, self._make_peer)
            if peer is None:
                return None
            if request.id in self._running:
                raise RpcError(INVALID_REQUEST, f"Request {request.id!r} is still running")
        except RpcError as error:
            error.id = request.id
            raise
        peer.text = text
        self._running[request.id] = peer
        return peer

    def _receive_unanswered(self, message: Notification | Response) -> None:
        if isinstance(message, Response):
            self._on_response(message)
        elif message.method == "notifications/cancelled":
            # A notification gets no response, so a malformed one is ignored.
            with suppress(RpcError):
                id = read_params(message.params, CancelledParams).id
                if id is not None and (peer := self._running.get(id)) is not None:
                    peer.cancel()

    def _checked_batch(self, texts: list[bytes]) -> list[bytes]:
        """Return the texts; raises RpcError for a batch that the session does not allow."""
        session = self._session.state
        if session is None or not session.version.batches:
            raise RpcError(INVALID_REQUEST, "This protocol version has no batches")
        if not texts:
            raise RpcError(INVALID_REQUEST, "The batch is empty")
        return texts

    async def _answer_batch(self, texts: list[bytes], answering: Answering) -> None:
        found = [await self._batch_frame(text, answering) for text in texts]
        frames = [joined(frame) for frame in found if frame is not None]
        if frames:
            self._send(b"[%b]" % b",".join(frames))

    async def _batch_frame(self, text: bytes, answering: Answering) -> Frame | None:
        """The response to one message of a batch, if it gets one."""
        try:
            message = parse(text)
            if not isinstance(message, Request):
                self._receive_unanswered(message)
                return None
            if message.method == "initialize":
                raise RpcError(INVALID_REQUEST, "initialize is not for batches", id=message.id)
            peer = self._peer_for(message, text)
            if peer is None:
                return result_frame(message.id, self._session.answer(message))
            return await self._frame(message, peer, answering)
        except RpcError as error:
            return error_frame(error.id, error)
