"""Connection: the one client at the other end of a pipe, in either era."""

from __future__ import annotations

from collections.abc import Callable, Container
from contextlib import suppress
from typing import TYPE_CHECKING, TypeVar

from ..calls.failures import log_internal_error
from ..core.event_loop import spawn
from ..core.versions import LATEST_STATEFUL
from ..registry.declarations import Change, Registry
from .engine import Engine
from .jsonrpc import (
    INTERNAL_ERROR,
    INVALID_REQUEST,
    METHOD_NOT_FOUND,
    CancelledParams,
    Frame,
    Id,
    Notification,
    Params,
    ReadResource,
    Request,
    Response,
    RpcError,
    SetLevel,
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
from .listing import described_if_hiding
from .mcp_peer import McpPeer
from .session import ClientCapabilities, ServerInfo, Session, require_meta, stateless_version
from .subscriptions import Subscription, change_frame, subscribed_uri

if TYPE_CHECKING:
    import asyncio


P = TypeVar("P", bound=McpPeer)

_EMPTY_RESULT = b"{}"
_NEEDS_NO_LOOP = frozenset({"initialize", "ping", "server/discover"})


class SingleSession:
    """Answers requests about the session itself; *send* sends the frames that report changes."""

    def __init__(
        self, registry: Registry, server_info: ServerInfo, send: Callable[[bytes], None]
    ) -> None:
        self.state: Session | None = None
        self._registry = registry
        self._server_info = server_info
        self._send = send
        self._unsubscribe: Callable[[], None] = lambda: None
        self.methods: dict[str, Callable[[Params], bytes]] = {
            "initialize": self._initialize,
            "ping": lambda _: _EMPTY_RESULT,
            "logging/setLevel": self._set_level,
            "resources/subscribe": lambda raw: self._subscribe(raw, wanted=True),
            "resources/unsubscribe": lambda raw: self._subscribe(raw, wanted=False),
        }

    def close(self) -> None:
        """Send no more changes."""
        self._unsubscribe()

    def peer_for(self, request: Request, make_peer: Callable[[], P]) -> P | None:
        """Return a request's peer, in its era; None if the request is about the session itself.

        Raises RpcError for a method that does not exist in the request's era.
        """
        meta = meta_of(request)
        is_about_session = request.method in self.methods
        if is_stateless(meta):
            meta, client = require_meta(meta)
            version = stateless_version(meta)
            if is_about_session:
                raise RpcError(METHOD_NOT_FOUND, f"Method not found: {request.method}")
            peer = make_peer()
            peer.version, peer.client = version, client
            peer.level = meta.level
        elif is_about_session:
            return None
        else:
            peer = make_peer()
            self._join(peer)
        peer.id = request.id
        if meta is not None:
            peer.progress_token = meta.token
        return peer

    def _join(self, peer: McpPeer) -> None:
        """Set the session's data about the client on a stateful request's peer."""
        session = self.state
        if session is None:
            # Requests before `initialize` are served too, so that they can be tried in a shell.
            peer.version, peer.client = LATEST_STATEFUL, ClientCapabilities()
            return
        peer.version, peer.client = session.version, session.client
        peer.level = session.level
        peer.session = session

    def answer(self, request: Request) -> bytes:
        """Return the result of a request about the session itself; raises RpcError."""
        try:
            return self.methods[request.method](request.params)
        except RpcError as error:
            error.id = request.id
            raise

    def _initialize(self, raw: Params) -> bytes:
        self.state, result = self._server_info.initialize(raw)
        self._unsubscribe()
        self._unsubscribe = self._registry.changes.subscribe(self._on_change)
        return result

    def _on_change(self, change: Change) -> None:
        session = self.state
        if session is None:
            return
        if change.kind != "resource" or change.uri in session.subscriptions:
            self._send(change_frame(change))

    def _set_level(self, raw: Params) -> bytes:
        level = read_params(raw, SetLevel).level
        if self.state is not None:
            self.state.level = level
        return _EMPTY_RESULT

    def _subscribe(self, raw: Params, *, wanted: bool) -> bytes:
        uris = set() if self.state is None else self.state.subscriptions
        if wanted:
            peer = McpPeer()
            self._join(peer)
            described = described_if_hiding(self._registry, peer)
            uris.add(subscribed_uri(self._registry, raw, uris, described))
        else:
            uris.discard(read_params(raw, ReadResource).uri)
        return _EMPTY_RESULT


class Connection:
    """Receives messages and sends frames, on an event loop.

    *make_peer* makes the peer for a request; *on_response* receives the client's responses.
    """

    def __init__(
        self,
        registry: Registry,
        engine: Engine,
        send: Callable[[Frame], None],
        make_peer: Callable[[], McpPeer],
        on_response: Callable[[Response], None],
    ) -> None:
        self._registry = registry
        self._engine = engine
        self._send = send
        self._make_peer = make_peer
        self._on_response = on_response
        self._session = SingleSession(registry, engine.server_info, send)
        self._running: dict[Id, McpPeer] = {}
        """The requests being answered, and the open subscriptions."""
        self._tasks: dict[McpPeer, asyncio.Task[None]] = {}
        """The tasks that have begun to answer a request."""
        self.loop: asyncio.AbstractEventLoop | None = None
        """The event loop; None until the first message has been answered."""
        self._answering: set[asyncio.Task[None]] = set()
        """All tasks that answer messages."""
        self._ended: set[McpPeer] = set()
        """The requests that the server cancelled because it is shutting down."""

    def receive_without_loop(self, text: bytes) -> bool:
        """Answer a client's first message if that needs no event loop; otherwise return False."""
        with suppress(RpcError):
            message = None if is_batch(text) else parse(text)
            if isinstance(message, Request) and message.method in _NEEDS_NO_LOOP:
                self.receive(text)
                return True
        return False

    def receive(self, text: bytes) -> None:
        """Answer a message, or start answering it."""
        try:
            if is_batch(text):
                texts = parse_batch(text)
                session = self._session.state
                if session is None or not session.version.batches:
                    raise RpcError(INVALID_REQUEST, "This protocol version has no batches")
                if not texts:
                    raise RpcError(INVALID_REQUEST, "The batch is empty")
                spawn(self._answer_batch(texts), self._answering)
                return
            message = parse(text)
            if not isinstance(message, Request):
                self._receive_unanswered(message)
                return
            peer = self._peer_for(message, text)
            if peer is None:
                self._send(result_frame(message.id, self._session.answer(message)))
            elif message.method == "server/discover":
                del self._running[message.id]
                if not peer.version.stateless:
                    error = f"Method not found: {message.method}"
                    raise RpcError(METHOD_NOT_FOUND, error, id=message.id)
                found = self._engine.server_info.discover(peer.version)
                self._send(result_frame(message.id, found))
            elif message.method == "subscriptions/listen" and peer.version.stateless:
                spawn(self._subscribe(message, peer), self._answering)
            else:
                assert self.loop is not None
                self._answering.add(self.loop.create_task(self._answer(message, peer)))
        except RpcError as error:
            self._send(error_frame(error.id, error))
        except Exception:  # noqa: BLE001 -- our bug ends one message, not the connection
            log_internal_error("a message")
            self._send(error_frame(None, RpcError(INTERNAL_ERROR, "Internal error")))

    def cancel_all(self, in_threads: Container[object]) -> None:
        """Cancel every running request; a client waiting for one still receives a response.

        Calls *in_threads* cannot be stopped: they are told, and answered if they end soon.
        """
        peers = list(self._running.values())
        self._ended = {peer for peer in peers if not peer.cancelled}
        for peer in peers:
            if peer in in_threads:
                peer.cancel()
            else:
                self._cancel(peer)

    async def wait_until_answered(self) -> None:
        """Wait until all messages are answered."""
        import asyncio

        while self._answering:
            await asyncio.wait(self._answering)

    def _cancel(self, peer: McpPeer) -> None:
        # Only once: a second cancellation would interrupt a `finally` block.
        if peer.cancelled:
            return
        peer.cancel()
        # A task that has not begun yet will find its peer cancelled.
        if (task := self._tasks.get(peer)) is not None:
            task.cancel()

    async def _subscribe(self, request: Request, peer: McpPeer) -> None:
        """Open a subscription, until the client cancels it or disconnects."""
        try:
            feed = await self._engine.task_feed(request.params, peer)
            if peer.cancelled:
                self._running.pop(request.id, None)
                return
            described = described_if_hiding(self._registry, peer)
            subscription = Subscription(
                self._registry, request.id, request.params, self._send, described, feed
            )
        except RpcError as error:
            self._running.pop(request.id, None)
            self._send(error_frame(request.id, error))
            return

        def end() -> None:
            subscription.end()
            self._running.pop(request.id, None)

        peer.on_cancel(end)

    async def _answer(self, request: Request, peer: McpPeer) -> None:
        task = _current_task()
        try:
            frame = await self._frame(request, peer, task)
            if frame is not None:
                self._send(frame)
        finally:
            # Not in a callback of the task, which would take another turn of the loop.
            self._answering.discard(task)

    async def _frame(
        self, request: Request, peer: McpPeer, task: asyncio.Task[None]
    ) -> Frame | None:
        """Return the response, or None for a request cancelled in the meantime."""
        self._tasks[peer] = task
        frame: Frame | None = None
        try:
            if not peer.cancelled:
                frame = await self._engine.respond(request, peer)
        except BaseException:
            if not peer.cancelled:
                raise
            # The task may have more requests of a batch to answer.
            task.uncancel()
        finally:
            del self._tasks[peer]
            self._running.pop(request.id, None)
        if not peer.cancelled:
            return frame
        if peer not in self._ended:
            return None
        return frame or error_frame(request.id, RpcError(INTERNAL_ERROR, "The call was cancelled"))

    def _peer_for(self, request: Request, text: bytes) -> McpPeer | None:
        """Return a request's peer; None if the request is about the session itself.

        It is registered when the request is read, so that an immediate cancellation finds it.
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
            # A notification has no response, so a malformed one is ignored.
            with suppress(RpcError):
                id = read_params(message.params, CancelledParams).id
                if id is not None and (peer := self._running.get(id)) is not None:
                    self._cancel(peer)

    async def _answer_batch(self, texts: list[bytes]) -> None:
        task = _current_task()
        found = [await self._batch_frame(text, task) for text in texts]
        frames = [joined(frame) for frame in found if frame is not None]
        if frames:
            self._send(b"[%b]" % b",".join(frames))

    async def _batch_frame(self, text: bytes, task: asyncio.Task[None]) -> Frame | None:
        """Return the response to one message in a batch, if there is one."""
        try:
            message = parse(text)
            if not isinstance(message, Request):
                self._receive_unanswered(message)
                return None
            if message.method == "initialize":
                raise RpcError(INVALID_REQUEST, "initialize cannot be in a batch", id=message.id)
            peer = self._peer_for(message, text)
            if peer is None:
                return result_frame(message.id, self._session.answer(message))
            return await self._frame(message, peer, task)
        except RpcError as error:
            return error_frame(error.id, error)


def _current_task() -> asyncio.Task[None]:
    # Imported here, because the first message is answered without an event loop.
    import asyncio

    task = asyncio.current_task()
    assert task is not None
    return task
