"""Exchange: requests and their responses over one transport, and the server's own requests."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ..core.peer import Log, Progress
from ..core.stopped_clocks import RUNNING, StoppableClock, stoppable
from ..protocol.jsonrpc import (
    RpcError,
    error_frame,
    is_batch,
    notification_frame,
    parse_batch,
    request_frame,
    result_frame,
)
from ..protocol.params import Id
from ..registry.declarations import Change
from .eras import Era, StatefulEra
from .faults import INVALID_RESPONSE, TIMED_OUT, ConnectionLost, NoAnswer, SessionLost
from .frames import Incoming, Outgoing, Transport, decode_frame, malformed_response
from .user_handlers import OnProgress, UserHandlers

if TYPE_CHECKING:
    from ..core.json_value import Json, JsonObject


_LOGGER = logging.getLogger("answerback.client")
_CHANGES: dict[str, Literal["tools", "resources", "prompts", "resource"]] = {
    "notifications/tools/list_changed": "tools",
    "notifications/resources/list_changed": "resources",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/updated": "resource",
}


_MAX_ANSWERING = 100
"""How many requests of the server are answered at a time; further ones are dropped."""
_NEVER = float("inf")


_IDLE_SECONDS = 0.05
"""Seconds between two looks at the requests of an exchange that ends."""


class RequestOptions(msgspec.Struct, frozen=True):
    """How one request is sent."""

    timeout: float | None = None
    progress: OnProgress | None = None
    headers: Mapping[str, str] = {}


NO_OPTIONS = RequestOptions()


class _Waiting(msgspec.Struct):
    """A request that waits for its response."""

    answer: asyncio.Future[msgspec.Raw]
    method: str
    progress: OnProgress | None
    outer: tuple[StoppableClock, ...] = ()
    """The clocks of the call that the request belongs to, such as the deadline of its retries."""
    at: float | None = None
    """The time at which `_Timer` ends the wait; None without a time-out, or if `clock` ends it."""
    clock: asyncio.Timeout | None = None
    questions: int = 0
    """How many questions to the user are open, during which the time-out stands still."""
    stopped_at: float = 0.0
    until: float | None = None

    def stop(self, now: float) -> None:
        if self.questions == 0:
            clock, self.stopped_at = self.clock, now
            if clock is None:
                self.until, self.at = self.at, None
            elif not clock.expired() and clock.when() is not None:
                self.until = clock.when()
                clock.reschedule(None)
        self.questions += 1

    def go_on(self, now: float, timer: _Timer) -> None:
        """Let the time-out run again after an answer."""
        self.questions -= 1
        if self.questions or self.until is None:
            return
        until, self.until = self.until + now - self.stopped_at, None
        if self.clock is None:
            self.at = until
            timer.watch(until)
        elif not self.clock.expired():
            self.clock.reschedule(until)


class _Timer:
    """Ends the requests whose time is over; one timer is enough, because most are answered."""

    def __init__(self, waiting: dict[Id, _Waiting]) -> None:
        self._waiting = waiting
        self._handle: asyncio.TimerHandle | None = None
        self.next = _NEVER
        """The time at which the requests are looked at."""

    def watch(self, at: float) -> None:
        """Look at the requests at this time, or earlier."""
        if at < self.next:
            self.close()
            self._handle = asyncio.get_running_loop().call_at(at, self._look)
            self.next = at

    def close(self) -> None:
        if self._handle is not None:
            self._handle.cancel()
        self._handle, self.next = None, _NEVER

    def _look(self) -> None:
        self._handle, self.next = None, _NEVER
        now = asyncio.get_running_loop().time()
        later = _NEVER
        for waiting in self._waiting.values():
            if waiting.at is None:
                continue
            if waiting.at > now:
                later = min(later, waiting.at)
            elif not waiting.answer.done():
                waiting.answer.set_exception(TimeoutError())
        if later < _NEVER:
            self.watch(later)


class Visits:
    """The pages that the user was sent to, by the ids of the server."""

    def __init__(self) -> None:
        self._waiting: dict[Any, asyncio.Event] = {}

    async def wait(self, id: str, seconds: float) -> None:
        """Wait until the server tells that a page was visited, but not longer."""
        completed = self._waiting.setdefault(id, asyncio.Event())
        try:
            async with asyncio.timeout(seconds):
                await completed.wait()
        except TimeoutError:
            pass  # A server need not tell it; it is asked again.
        finally:
            self._waiting.pop(id, None)

    def tell(self, id: Json) -> None:
        completed = self._waiting.get(id) if isinstance(id, str) else None
        if completed is not None:
            completed.set()


class Exchange:
    """Sends requests over a transport and gives each its response.

    *on_change* gets the changes of lists and resources.
    """

    def __init__(
        self,
        transport: Transport,
        handlers: UserHandlers,
        on_change: Callable[[Change], None],
    ) -> None:
        self.era: Era = StatefulEra()
        self._transport = transport
        self._handlers = handlers
        self._on_change = on_change
        self._last_id = 0
        self._waiting: dict[Id, _Waiting] = {}
        self._tasks: set[asyncio.Task[None]] = set()
        self._answering: dict[Id, asyncio.Task[None]] = {}
        self._timer = _Timer(self._waiting)
        self._send_now = transport.send_now
        self.visits = Visits()
        self._has_dropped = False
        self.lost: Exception | None = None
        """The reason why the connection broke."""
        self.on_lost: Callable[[Exception], None] | None = None

    async def open(self) -> None:
        await self._transport.open(self.receive, self._connection_lost)

    async def request(
        self, method: str, params: Mapping[str, Any], options: RequestOptions = NO_OPTIONS
    ) -> msgspec.Raw:
        """The result of a request; raises RpcError or NoAnswer."""
        if self.lost is not None:
            raise ConnectionLost(str(self.lost), may_have_run=False)
        self._last_id = id = self._last_id + 1
        sent = self.era.params(params, id if options.progress else None)
        headers: Mapping[str, str] = options.headers
        if self._transport.has_headers:
            headers = {**self.era.headers(method, params), **headers}
        loop = asyncio.get_running_loop()
        answer: asyncio.Future[msgspec.Raw] = loop.create_future()
        outgoing = Outgoing(request_frame(id, method, sent), id, method, headers, answer)
        waiting = self._waiting[id] = _Waiting(answer, method, options.progress, RUNNING.get())
        try:
            if self._send_now is not None and self._send_now(outgoing):
                if options.timeout is not None:
                    waiting.at = at = loop.time() + options.timeout
                    if at < self._timer.next:
                        self._timer.watch(at)
                return await answer
            return await _send_and_wait(self._transport, outgoing, waiting, options.timeout)
        except TimeoutError:
            self._cancel_request(id, method, "time-out")
            text = f"the server did not answer {method} within {options.timeout:g} seconds"
            raise NoAnswer(text, code=TIMED_OUT) from None
        except asyncio.CancelledError:
            self._cancel_request(id, method, "cancelled")
            raise
        finally:
            del self._waiting[id]
            if answer.done() and not answer.cancelled():
                answer.exception()  # Otherwise asyncio may log that nobody took it.

    async def notify(self, method: str, params: Mapping[str, Any] | None = None) -> None:
        headers = self.era.headers(method, {})
        await self._transport.send(
            Outgoing(notification_frame(method, params or {}), None, method, headers)
        )

    def receive(self, frame: bytes) -> Id | None:
        """Take a frame of the server; returns the id if it is a response."""
        if frame[:1] != b"{" and is_batch(frame):
            found = [self.receive(each) for each in _batch(frame)]
            return next((id for id in found if id is not None), None)
        message = decode_frame(frame)
        if message is None:
            return _end_by_malformed(self._waiting, frame)
        if message.method is None:
            if message.error is None and message.result is msgspec.UNSET:
                return _end_by_malformed(self._waiting, frame)
            return self._receive_response(message)
        if message.id is not None:
            self._receive_request(message)
        else:
            self._receive_notification(message)
        return None

    def spawn(self, work: Coroutine[Any, Any, None]) -> asyncio.Task[None]:
        """Run *work* beside the requests; it ends at the latest when the connection is closed."""
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)
        return task

    async def close(self) -> None:
        # Cancellations that are being sent get a moment; everything else ends now.
        self._connection_lost(ConnectionLost("the connection was closed"))
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks), timeout=1)
        self._timer.close()
        await self._transport.close()

    def _receive_response(self, message: Incoming) -> Id | None:
        id, error = message.id, message.error
        waiting = None if id is None else self._waiting.get(id)
        if id is None and error is not None and len(self._waiting) == 1:
            # The server could not read the id; it can only mean the one request.
            waiting = next(iter(self._waiting.values()))
        if waiting is not None and not waiting.answer.done():
            if error is not None:
                waiting.answer.set_exception(error.as_exception())
            elif message.result is not msgspec.UNSET:
                waiting.answer.set_result(message.result)
        return id

    def _receive_request(self, message: Incoming) -> None:
        assert message.id is not None
        if len(self._answering) >= _MAX_ANSWERING:
            if not self._has_dropped:
                text = "the server sends more than %d requests at a time; the others are dropped"
                _LOGGER.warning(text, _MAX_ANSWERING)
            self._has_dropped = True
            return
        self._answering[message.id] = self.spawn(self._answer(message))

    async def _answer(self, message: Incoming) -> None:
        id, method = message.id, message.method
        assert id is not None
        assert method is not None
        try:
            frame = await _answer_frame(self, id, method, message.params)
            headers = self.era.headers("", {})
            await self._transport.send(Outgoing(frame, None, "", headers))
        except NoAnswer as exc:
            _LOGGER.warning("an answer to %s was not sent: %s", method, exc)
        finally:
            self._answering.pop(id, None)

    async def ask_user(self, method: str, params: JsonObject) -> JsonObject:
        """The answer of the user's handler. Time-outs stop meanwhile; raises RpcError."""
        if not self._handlers.asks_user(method):
            return await self._handlers.answer(method, params)
        loop = asyncio.get_running_loop()
        paused = dict(self._waiting)
        # The task of an answer has the clocks of the code that opened the connection, not these.
        stopped = {each for waiting in paused.values() for each in waiting.outer}
        for waiting in paused.values():
            waiting.stop(loop.time())
        for each in stopped:
            each.stop()
        try:
            return await self._handlers.answer(method, params)
        finally:
            for each in stopped:
                each.go_on()
            for id, waiting in paused.items():
                if id in self._waiting:
                    waiting.go_on(loop.time(), self._timer)

    def _receive_notification(self, message: Incoming) -> None:
        assert message.method is not None
        try:
            params = msgspec.json.decode(message.params, type=dict[str, Any])
            self._notified(message.method, params)
        except Exception:
            _LOGGER.exception("a notification could not be handled")

    def _notified(self, method: str, params: JsonObject) -> None:
        if method == "notifications/progress":
            waiting = self._waiting.get(params.get("progressToken", ""))
            if waiting is not None and waiting.progress is not None:
                waiting.progress(
                    Progress(params["progress"], params.get("total"), params.get("message"))
                )
        elif method == "notifications/message" and self._handlers.on_log is not None:
            level = params.get("level", "info")
            self._handlers.on_log(Log(level, params.get("data"), params.get("logger")))
        elif method == "notifications/cancelled":
            task = self._answering.get(params.get("requestId", ""))
            if task is not None:
                task.cancel()
        elif method == "notifications/elicitation/complete":
            self.visits.tell(params.get("elicitationId"))
        elif method in _CHANGES:
            kind = _CHANGES[method]
            self._on_change(Change(kind, params.get("uri") if kind == "resource" else None))
        if self._handlers.on_notification is not None:
            self._handlers.on_notification(method, params)

    def _cancel_request(self, id: Id, method: str, reason: str) -> None:
        is_cancelled_by_closing = self.era.stateless and self._transport.closes_to_cancel
        if self.lost is not None or is_cancelled_by_closing or method == "initialize":
            return

        async def send() -> None:
            params = {"requestId": id, "reason": reason}
            try:
                async with asyncio.timeout(1):
                    await self.notify("notifications/cancelled", params)
            except (NoAnswer, TimeoutError):
                pass  # The connection is slow or broken, and the next request will tell.

        self.spawn(send())

    def _connection_lost(self, error: Exception) -> None:
        if self.lost is None:
            self.lost = error
        if self.on_lost is not None:
            self.on_lost(error)
        if isinstance(error, SessionLost):
            return  # Each request gets its own response about it.
        for waiting in self._waiting.values():
            if not waiting.answer.done():
                waiting.answer.set_exception(error)


async def _send_and_wait(
    transport: Transport, outgoing: Outgoing, waiting: _Waiting, seconds: float | None
) -> msgspec.Raw:
    """Send a request whose sending may take time; raises TimeoutError."""
    async with asyncio.timeout(seconds) as timeout:
        waiting.clock = timeout
        if transport.may_log_in:
            with stoppable(timeout):
                await transport.send(outgoing)
        else:
            await transport.send(outgoing)
        return await waiting.answer


async def close_when_idle(exchange: Exchange) -> None:
    """Close the connection after the last request has ended, or when the task is cancelled."""
    try:
        while exchange._waiting:
            await asyncio.sleep(_IDLE_SECONDS)
    finally:
        await exchange.close()


def _batch(frame: bytes) -> list[bytes]:
    try:
        return parse_batch(frame)
    except RpcError:
        _LOGGER.warning("the server sent a malformed batch")
        return []


def _end_by_malformed(waiting: dict[Id, _Waiting], frame: bytes) -> Id | None:
    """A response that cannot be read ends its request at once, and not at the time-out."""
    _LOGGER.warning("the server sent a line that is no message: %.200r", frame)
    found = malformed_response(frame)
    request = None if found is None else waiting.get(found[0])
    if found is None or request is None or request.answer.done():
        return None
    text = f"the response of the server cannot be read: {found[1]}"
    request.answer.set_exception(NoAnswer(text, code=INVALID_RESPONSE))
    return found[0]


async def _answer_frame(exchange: Exchange, id: Id, method: str, params: msgspec.Raw) -> bytes:
    """The answer of the user's handler to a request of the server, or an error."""
    try:
        found = msgspec.json.decode(params, type=dict[str, Any])
    except (ValueError, RecursionError) as exc:
        return error_frame(id, RpcError(-32602, f"Invalid params: {exc}"))
    try:
        return result_frame(id, msgspec.json.encode(await exchange.ask_user(method, found)))
    except RpcError as error:
        return error_frame(id, error)
    except (TypeError, ValueError) as exc:
        return error_frame(id, RpcError(-32603, f"the answer of the handler is not JSON: {exc}"))
    except Exception as exc:
        # The server must not wait for an answer that never comes.
        _LOGGER.exception("the server's request %s could not be answered", method)
        return error_frame(id, RpcError(-32603, f"the client failed: {type(exc).__name__}"))
