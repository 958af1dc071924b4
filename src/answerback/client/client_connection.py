"""ClientConnection: requests and responses over one transport, from open to close.

Each request has a `Deadline`. `ServerMessages` answers the server's own requests.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from typing import Any, Literal, TypeVar

import msgspec

from ..core.clocks import RUNNING, Deadline, PausableClock, clocks_paused
from ..core.event_loop import spawn
from ..core.json_value import JsonObject
from ..core.limits import LARGE, MAX_BYTES
from ..core.log import logger
from ..core.peer import Log, Progress
from ..core.versions import LATEST_STATEFUL
from ..protocol.jsonrpc import (
    URL_ELICITATION_REQUIRED,
    Id,
    RpcError,
    error_frame,
    notification_frame,
    request_frame,
    result_frame,
)
from ..registry.declarations import Change
from .faults import (
    INVALID_RESPONSE,
    TIMED_OUT,
    TOO_LARGE,
    ConnectionLost,
    NoAnswer,
    SessionLost,
    check_numbers,
)
from .frames import (
    Incoming,
    Outgoing,
    ServerFacts,
    StatefulEra,
    StatelessEra,
    Transport,
    Unreadable,
    cut_message,
    incoming_decoder,
    messages_in,
)
from .user_handlers import InputRounds, OnProgress, UserHandlers

_LOGGER = logger("answerback.client")
T = TypeVar("T")
_NEVER = float("inf")
_decoder = msgspec.json.Decoder(dict[str, Any])
_LOGGED = 20
"""How many unreadable lines are logged per connection."""
_IDLE_SECONDS = 0.05
"""Seconds between checks on whether a lost session's last request has ended."""


class ProbeDeadline(Deadline):
    """The deadline for a request that some servers never answer.

    It is paused during a login, because a server that asks for a login is responding.
    """

    __slots__ = ()


async def read_in_thread(deadline: Deadline, work: Callable[[], T]) -> T:
    """Run *work* in a thread, within the deadline; raises NoAnswer when the time is up.

    The thread then keeps running, but the limits on what a server may send bound its work too.
    """
    try:
        async with deadline.limit():
            return await asyncio.to_thread(work)
    except TimeoutError:
        text = f"the server's response could not be read within {deadline.seconds:g} seconds"
        raise NoAnswer(text, code=TIMED_OUT) from None


class ClientRequest(msgspec.Struct):
    """A request and how to send it."""

    method: str
    params: Mapping[str, Any]
    deadline: Deadline
    progress: OnProgress | None = None
    tool: str = ""
    """The name of the tool to call; requests without one have no side effects."""
    headers: Mapping[str, str] = {}


class _Waiting(msgspec.Struct):
    """A request that is waiting for its response."""

    answer: asyncio.Future[msgspec.Raw]
    progress: OnProgress | None
    deadline: Deadline
    outer: tuple[PausableClock, ...]
    """The clocks of the call that sent the request, such as the deadline for its retries."""


class _Timer:
    """Ends overdue requests; one timer is enough, because most requests are answered in time."""

    def __init__(self, waiting: dict[Id, _Waiting]) -> None:
        self._waiting = waiting
        self._handle: asyncio.TimerHandle | None = None
        self.next = _NEVER
        """The time of the next check."""

    def watch(self, at: float) -> None:
        """Check the requests at this time or earlier."""
        if at < self.next:
            self.close()
            self._handle = asyncio.get_running_loop().call_at(at, self.check)
            self.next = at

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle, self.next = None, _NEVER

    def check(self) -> None:
        """End the overdue requests and wait for the next deadline."""
        self.close()
        now = asyncio.get_running_loop().time()
        for waiting in self._waiting.values():
            at = waiting.deadline.at
            if at is None or waiting.answer.done():
                continue
            if at > now:
                self.watch(at)
            else:
                waiting.answer.set_exception(TimeoutError())


class ClientConnection:
    """Sends requests over a transport and matches responses to them.

    *on_change* is called with changes to lists and resources; *label* names the server in the log.
    """

    def __init__(
        self,
        transport: Transport,
        handlers: UserHandlers,
        on_change: Callable[[Change], None],
        label: str,
        max_values: int,
    ) -> None:
        self.transport = transport
        self._label = label
        self.era: StatefulEra | StatelessEra = StatefulEra()
        self.facts = ServerFacts(version=LATEST_STATEFUL)
        self.lost: Exception | None = None
        """Why the connection broke."""
        self.on_lost: Callable[[Exception], None] | None = None
        self.messages = ServerMessages(self, handlers, on_change)
        self._handlers = handlers
        self._last_id = 0
        self._waiting: dict[Id, _Waiting] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._timer = _Timer(self._waiting)
        self._max_values = max_values
        self._unreadable = 0

    async def open(self) -> None:
        await self.transport.open(self, self._connection_lost)

    async def result(self, asked: ClientRequest) -> JsonObject:
        """Return the result, once the user has answered any questions from the server.

        Raises RpcError or NoAnswer.
        """
        found: JsonObject | RpcError
        try:
            try:
                found = await self.request(asked)
                if found.get("resultType") != "input_required":
                    return found
            except RpcError as error:
                if error.code != URL_ELICITATION_REQUIRED:
                    raise
                found = error
            return await InputRounds(self, asked).result(found)
        except SessionLost as lost:
            self.lost = lost
            raise

    async def request(self, asked: ClientRequest) -> JsonObject:
        """Return the result of one request; raises RpcError or NoAnswer."""
        if self.lost is not None:
            raise ConnectionLost(str(self.lost), may_have_run=False)
        method, deadline, transport = asked.method, asked.deadline, self.transport
        self._last_id = id = self._last_id + 1
        sent = self.era.params(asked.params, id if asked.progress else None)
        headers = asked.headers
        if transport.has_headers:
            headers = {**self.era.headers(method, asked.params), **headers}
        answer: asyncio.Future[msgspec.Raw] = asyncio.get_running_loop().create_future()
        frame = request_frame(id, method, sent)
        # The encoder writes NaN as null.
        if asked.tool and b"null" in frame:
            check_numbers(asked.params["arguments"])
        outgoing = Outgoing(frame, id, method, headers, answer)
        self._waiting[id] = _Waiting(answer, asked.progress, deadline, RUNNING.get())
        try:
            if transport.can_send_now and transport.send_now(outgoing):
                if deadline.at is not None and deadline.at < self._timer.next:
                    self._timer.watch(deadline.at)
                raw = await answer
            else:
                async with deadline.limit():
                    await transport.send(outgoing)
                    raw = await answer
        except TimeoutError:
            self._cancel_request(id, method, "time-out")
            what = f"the call to {asked.tool!r}" if asked.tool else method
            text = f"the server did not answer {what} within {deadline.seconds:g} seconds"
            raise NoAnswer(text, code=TIMED_OUT) from None
        except asyncio.CancelledError:
            self._cancel_request(id, method, "cancelled")
            raise
        finally:
            del self._waiting[id]
            if answer.done() and not answer.cancelled():
                answer.exception()  # Otherwise asyncio may log that it was never retrieved.
            del answer, outgoing  # The exception refers to this frame.
        deadline.received += len(raw)
        if len(raw) <= LARGE:
            return _decoded(raw, method)
        return await read_in_thread(deadline, lambda: _decoded(raw, method))

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        await self.send(notification_frame(method, params or {}), method)

    async def send(self, frame: bytes, method: str = "") -> None:
        """Send a notification or a response; raises NoAnswer."""
        await self.transport.send(Outgoing(frame, None, method, self.era.headers(method, {})))

    def receive(self, frame: bytes) -> Id | None:
        """Handle a frame from the server; return its id if it is a response."""
        if len(frame) <= LARGE:
            try:
                message = incoming_decoder.decode(frame)
            except (ValueError, RecursionError):
                pass  # It is a batch, or malformed.
            else:
                if message.method is not None:
                    self.messages.receive(message)
                    return None
                if message.result is not msgspec.UNSET:
                    return self._receive_response(message)
        return self._receive_all(messages_in(frame, self._max_values))

    async def receive_large(self, frame: bytes) -> Id | None:
        return self._receive_all(await asyncio.to_thread(messages_in, frame, self._max_values))

    def receive_cut(self, edges: bytes) -> None:
        self._receive_unreadable(cut_message(edges, f"it is larger than {MAX_BYTES} bytes"))

    def _receive_all(self, messages: list[Incoming | Unreadable]) -> Id | None:
        answered: list[Id | None] = []
        for message in messages:
            if isinstance(message, Unreadable):
                answered.append(self._receive_unreadable(message))
            elif message.method is not None:
                self.messages.receive(message)
            else:
                answered.append(self._receive_response(message))
        return next((id for id in answered if id is not None), None)

    def _receive_response(self, message: Incoming) -> Id | None:
        id, error = message.id, message.error
        waiting = None if id is None else self._waiting.get(id)
        if id is None and error is not None and len(self._waiting) == 1:
            # The server could not read the id, but only one request is waiting.
            waiting = next(iter(self._waiting.values()))
        if waiting is not None and not waiting.answer.done():
            if error is not None:
                waiting.answer.set_exception(error.as_exception())
            elif message.result is not msgspec.UNSET:
                waiting.answer.set_result(message.result)
        return id

    def _receive_unreadable(self, found: Unreadable) -> Id | None:
        """Fail a request immediately if its response is unreadable, instead of timing out."""
        self._unreadable += 1
        if self._unreadable <= _LOGGED:
            is_large = found.code == TOO_LARGE
            what = "a message that is too large" if is_large else "a line that is not a message"
            _LOGGER.warning("%s sent %s: %r", self._label, what, found.beginning)
        request = None if found.id is None else self._waiting.get(found.id)
        if request is None or request.answer.done():
            return None
        text = f"the server's response cannot be read: {found.reason}"
        request.answer.set_exception(NoAnswer(text, code=found.code))
        return found.id

    def progress_of(self, token: Id) -> OnProgress | None:
        """Return the user's progress function for a waiting request."""
        waiting = self._waiting.get(token)
        return None if waiting is None else waiting.progress

    async def ask_user(self, method: str, params: JsonObject) -> JsonObject:
        """Return the user handler's answer, pausing deadlines until then; raises RpcError."""
        if not self._handlers.asks_user(method):
            return await self._handlers.answer(method, params)
        # The answering task inherited the clocks of the code that opened the connection, not these.
        paused: set[PausableClock] = set()
        for waiting in self._waiting.values():
            paused |= {waiting.deadline, *waiting.outer}
        try:
            with clocks_paused(paused):
                return await self._handlers.answer(method, params)
        finally:
            self._timer.check()

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run *work* in the background; closing the connection cancels it."""
        return spawn(work, self._tasks)

    async def close(self) -> None:
        self._connection_lost(ConnectionLost("the connection was closed"))
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=1)
        self._timer.close()
        await self.transport.close()

    async def close_when_idle(self) -> None:
        """Close the connection after the last request, or when the task is cancelled."""
        try:
            while self._waiting:
                await asyncio.sleep(_IDLE_SECONDS)
        finally:
            await self.close()

    def _cancel_request(self, id: Id, method: str, reason: str) -> None:
        is_cancelled_by_closing = self.era.stateless and self.transport.closes_to_cancel
        if self.lost is not None or is_cancelled_by_closing or method == "initialize":
            return

        async def send() -> None:
            params = {"requestId": id, "reason": reason}
            try:
                async with asyncio.timeout(1):
                    await self.notify("notifications/cancelled", params)
            except (NoAnswer, TimeoutError):
                pass  # The connection is slow or broken; the next request will notice.

        self.spawn(send())

    def _connection_lost(self, error: Exception) -> None:
        if self.lost is None:
            self.lost = error
        if self.on_lost is not None:
            self.on_lost(error)
        if isinstance(error, SessionLost):
            return  # Each pending request gets its own error response.
        for waiting in self._waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(error)


def _decoded(raw: msgspec.Raw, method: str) -> JsonObject:
    try:
        return _decoder.decode(raw)
    except (ValueError, RecursionError) as exc:
        text = f"the result of {method} cannot be read: {exc}"
        raise NoAnswer(text, code=INVALID_RESPONSE) from None


_CHANGES: dict[str, Literal["tools", "resources", "prompts", "resource"]] = {
    "notifications/tools/list_changed": "tools",
    "notifications/resources/list_changed": "resources",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/updated": "resource",
}
_MAX_ANSWERING = 100
"""How many server requests are answered at a time; any more are dropped."""


class ServerMessages:
    """Answers the server's requests and passes notifications to the user's handlers."""

    def __init__(
        self,
        connection: ClientConnection,
        handlers: UserHandlers,
        on_change: Callable[[Change], None],
    ) -> None:
        self._connection = connection
        self._handlers = handlers
        self._on_change = on_change
        self._visits: dict[str, asyncio.Event] = {}
        """The pages that the user has been sent to, by elicitation id."""
        self._answering: dict[Id, asyncio.Task[None]] = {}
        self._has_dropped = False

    def receive(self, message: Incoming) -> None:
        method, id = message.method, message.id
        assert method is not None
        if id is None:
            try:
                params = msgspec.json.decode(message.params, type=dict[str, Any])
                self._notified(method, params)
            except Exception:
                _LOGGER.exception("a notification could not be handled")
        elif len(self._answering) < _MAX_ANSWERING and id not in self._answering:
            self._answering[id] = self._connection.spawn(self._answer(id, method, message.params))
        elif not self._has_dropped:
            self._has_dropped = True
            text = "the server sent more than %d requests at a time, or two with the same id; %s"
            _LOGGER.warning(text, _MAX_ANSWERING, "the others are dropped")

    async def _answer(self, id: Id, method: str, params: msgspec.Raw) -> None:
        try:
            await self._connection.send(await self._answer_frame(id, method, params))
        except NoAnswer as exc:
            _LOGGER.warning("an answer to %s was not sent: %s", method, exc)
        finally:
            self._answering.pop(id, None)

    async def _answer_frame(self, id: Id, method: str, params: msgspec.Raw) -> bytes:
        """Return the user handler's answer to a server request, or an error."""
        try:
            found = msgspec.json.decode(params, type=dict[str, Any])
        except (ValueError, RecursionError) as exc:
            return error_frame(id, RpcError(-32602, f"Invalid params: {exc}"))
        try:
            answer = await self._connection.ask_user(method, found)
            return result_frame(id, msgspec.json.encode(answer))
        except RpcError as error:
            return error_frame(id, error)
        except (TypeError, ValueError) as exc:
            text = f"the handler's answer is not JSON: {exc}"
            return error_frame(id, RpcError(-32603, text))
        except Exception as exc:
            # The server must not wait for an answer that never arrives.
            _LOGGER.exception("the server's request %s could not be answered", method)
            return error_frame(id, RpcError(-32603, f"the client failed: {type(exc).__name__}"))

    def _notified(self, method: str, params: JsonObject) -> None:
        if method == "notifications/progress":
            progress = self._connection.progress_of(params.get("progressToken", ""))
            if progress is not None:
                progress(Progress(params["progress"], params.get("total"), params.get("message")))
        elif method == "notifications/message" and self._handlers.on_log is not None:
            level = params.get("level", "info")
            self._handlers.on_log(Log(level, params.get("data"), params.get("logger")))
        elif method == "notifications/cancelled":
            task = self._answering.get(params.get("requestId", ""))
            if task is not None:
                task.cancel()
        elif method == "notifications/elicitation/complete":
            page = params.get("elicitationId")
            if isinstance(page, str) and page in self._visits:
                self._visits[page].set()
        elif method in _CHANGES:
            kind = _CHANGES[method]
            self._on_change(Change(kind, params.get("uri") if kind == "resource" else None))
        if self._handlers.on_notification is not None:
            self._handlers.on_notification(method, params)

    async def page_visited(self, id: str, seconds: float) -> None:
        """Wait at most *seconds* for the server to say that a page has been visited."""
        visited = self._visits.setdefault(id, asyncio.Event())
        try:
            async with asyncio.timeout(seconds):
                await visited.wait()
        except TimeoutError:
            pass  # Servers need not report it; the request is sent again anyway.
        finally:
            self._visits.pop(id, None)
