"""Connection: the one client at the other end of a pipe, in either era."""

from __future__ import annotations

import threading
from collections.abc import Callable, Coroutine
from contextlib import suppress
from contextvars import copy_context
from typing import TYPE_CHECKING, Any, TypeVar

from ..calls.failures import log_internal_error
from ..calls.runners import NO_LOOP, ON_LOOP, InThread, run_at_once
from ..calls.thread_pool import outcome_of
from ..core.versions import LATEST_STATEFUL
from ..errors import ToolError
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
    """Receives messages and sends frames.

    *make_peer* makes the peer for a request; *on_response* receives the client's responses.
    *post_to_loop* calls a function on the event loop, and passes it the loop.
    """

    def __init__(
        self,
        registry: Registry,
        engine: Engine,
        send: Callable[[Frame], None],
        make_peer: Callable[[], McpPeer],
        on_response: Callable[[Response], None],
        post_to_loop: Callable[[Callable[[asyncio.AbstractEventLoop], object]], None],
    ) -> None:
        self._registry = registry
        self._engine = engine
        self._send = send
        self._make_peer = make_peer
        self._on_response = on_response
        self.post_to_loop = post_to_loop
        self._unanswered: set[_Answering] = set()
        """The messages being answered by a pool thread or the event loop."""
        self._answered = threading.Condition()
        self._is_ending = False
        self._session = SingleSession(registry, engine.server_info, send)
        self._running: dict[Id, McpPeer] = {}
        """The requests being answered, and the open subscriptions."""
        self._ended: set[McpPeer] = set()
        """The requests that the server cancelled because it is shutting down."""

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
                answering = _Answering(self)
                answering.begin(self._answer_batch(texts, answering))
                return
            message = parse(text)
            if not isinstance(message, Request):
                self._receive_unanswered(message)
                return
            peer = self._peer_for(message, text)
            if peer is None:
                self._send(result_frame(message.id, self._session.answer(message)))
            elif message.method == "subscriptions/listen" and peer.version.stateless:
                self._subscribe(message, peer)
            else:
                answering = _Answering(self)
                answering.begin(self._answer(message, peer, answering))
        except RpcError as error:
            self._send(error_frame(error.id, error))
        except Exception:  # noqa: BLE001 -- our bug ends one message, not the connection
            log_internal_error("a message")
            self._send(error_frame(None, RpcError(INTERNAL_ERROR, "Internal error")))

    def cancel_all(self) -> None:
        """Cancel every running request; a client waiting for one still receives a response."""
        peers = list(self._running.values())
        self._ended = {peer for peer in peers if not peer.cancelled}
        for peer in peers:
            self._cancel(peer)

    def wait_until_answered(self, give_up: Callable[[], bool]) -> None:
        """Wait until all messages are answered, or until *give_up* returns True."""
        self._is_ending = True
        with self._answered:
            while self._unanswered and not give_up():
                self._answered.wait(0.1)

    def add_unanswered(self, answering: _Answering) -> None:
        self._unanswered.add(answering)

    def _end(self, answering: _Answering) -> None:
        self._unanswered.discard(answering)
        # Otherwise no thread is waiting for it.
        if self._is_ending:
            with self._answered:
                self._answered.notify()

    def _cancel(self, peer: McpPeer) -> None:
        peer.cancel()
        for answering in list(self._unanswered):
            if answering.peer is peer:
                answering.stop_if_cancelled()

    def _subscribe(self, request: Request, peer: McpPeer) -> None:
        """Open a subscription, until the client cancels it or disconnects."""
        try:
            feed = run_at_once(self._engine.task_feed(request.params, peer))
            described = described_if_hiding(self._registry, peer)
            subscription = Subscription(
                self._registry, request.id, request.params, self._send, described, feed
            )
        except RpcError as error:
            del self._running[request.id]
            self._send(error_frame(request.id, error))
            return

        def end() -> None:
            subscription.end()
            self._running.pop(request.id, None)

        peer.on_cancel(end)

    async def _answer(self, request: Request, peer: McpPeer, answering: _Answering) -> None:
        try:
            frame = await self._frame(request, peer, answering)
            if frame is not None:
                self._send(frame)
        finally:
            self._end(answering)

    async def _frame(self, request: Request, peer: McpPeer, answering: _Answering) -> Frame | None:
        """Return the response, or None for a request cancelled in the meantime."""
        answering.peer = peer
        if peer.cancelled:
            answering.stop_if_cancelled()
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

    async def _answer_batch(self, texts: list[bytes], answering: _Answering) -> None:
        try:
            found = [await self._batch_frame(text, answering) for text in texts]
            frames = [joined(frame) for frame in found if frame is not None]
            if frames:
                self._send(b"[%b]" % b",".join(frames))
        finally:
            self._end(answering)

    async def _batch_frame(self, text: bytes, answering: _Answering) -> Frame | None:
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
            return await self._frame(message, peer, answering)
        except RpcError as error:
            return error_frame(error.id, error)


class _Answering:
    """The coroutine that answers one message.

    The reading thread steps it until it waits. If it waits for a function, a pool thread calls that
    function, continues the coroutine and sends the answer. If it needs an event loop, the loop
    continues it, and no thread is blocked.
    """

    peer: McpPeer | None = None
    """The peer of the request being answered."""
    _job: _ThreadJob | None = None
    _task: asyncio.Task[None] | None = None
    _cancelled: McpPeer | None = None
    """The peer whose request was cancelled on the loop."""
    _steps: Coroutine[Any, Any, None]

    def __init__(self, connection: Connection) -> None:
        self._connection = connection
        # One for all steps: a context variable must be reset in the context it was set in.
        self.context = copy_context()

    def begin(self, steps: Coroutine[Any, Any, None]) -> None:
        """Step the coroutine until it waits, in this thread."""
        self._steps = steps
        self._go_on(steps.send, None)

    def send(self, value: Any) -> None:
        """Continue the coroutine with the value it waited for."""
        self._go_on(self._steps.send, value)

    def throw(self, error: BaseException) -> None:
        """Continue the coroutine with an error."""
        self._go_on(self._steps.throw, error)

    @property
    def is_cancelled(self) -> bool:
        # Read once, because another thread may continue the coroutine in the meantime.
        peer = self.peer
        return peer is not None and peer.cancelled

    def stop_if_cancelled(self) -> None:
        """Stop answering the request if it was cancelled. May be called from any thread."""
        task, job = self._task, self._job
        if not self.is_cancelled:
            return
        if task is not None:
            task.get_loop().call_soon_threadsafe(self._cancel_task, task)
        elif job is not None:
            job.cancel()

    def _go_on(self, resume: Callable[[Any], Any], value: Any) -> None:
        self._job = None  # The job refers to this object.
        try:
            wanted = self.context.run(resume, value)
            while not isinstance(wanted, InThread) and wanted is not ON_LOOP:
                wanted = self.context.run(self._steps.throw, RuntimeError(NO_LOOP))
        except StopIteration:
            return
        except Exception:  # noqa: BLE001 -- our bug ends one response, not the thread
            log_internal_error("a response")
            return
        self._connection.add_unanswered(self)
        if isinstance(wanted, InThread):
            self._job = _ThreadJob(self, wanted)
            wanted.pool.submit((self._job,))
            # The cancellation may have arrived before the job existed.
            self.stop_if_cancelled()
        else:
            self._connection.post_to_loop(self._move_to_loop)

    def _move_to_loop(self, loop: asyncio.AbstractEventLoop) -> None:
        self._task = loop.create_task(self._steps, context=self.context)
        # The cancellation may have arrived before the task existed; then the tool does not run.
        if self.is_cancelled:
            self._cancel_task(self._task)

    def _cancel_task(self, task: asyncio.Task[None]) -> None:
        # Only once: a second cancellation would interrupt a `finally` block.
        if self._cancelled is not self.peer:
            self._cancelled = self.peer
            task.cancel()


class _ThreadJob:
    """A function that a coroutine awaits. The thread that takes the job continues the coroutine."""

    loop: asyncio.AbstractEventLoop | None = None

    def __init__(self, answering: _Answering, wanted: InThread) -> None:
        self._answering = answering
        self._wanted = wanted
        self._free = [True]
        """Empty once the pool, or a cancellation, has taken the job; `pop` is atomic."""
        self._outcome: tuple[Any, BaseException | None] | None = None

    @property
    def is_lost(self) -> bool:
        return self._answering.is_cancelled

    def run(self) -> None:
        if self._take():
            wanted = self._wanted
            self._outcome = outcome_of(self._answering.context, wanted.function, wanted.kwargs)
        del self  # An error's traceback keeps this frame alive, and the job keeps the error.

    def finish(self) -> None:
        if self._outcome is None:
            return
        value, error = self._outcome
        if error is None:
            self._answering.send(value)
        else:
            self._answering.throw(error)

    def refuse(self, error: Exception) -> None:
        if self._take():
            self._answering.throw(error)

    def cancel(self) -> None:
        """Prevent the call if no thread has started it; otherwise count its thread as lost."""
        if self._take():
            self._answering.throw(ToolError("The call was cancelled", code="CANCELLED"))
        else:
            self._wanted.pool.make_room()

    def _take(self) -> bool:
        try:
            return self._free.pop()
        except IndexError:
            return False
