"""ServerLink: the connection to one server. It chooses the era, and opens a lost session again."""

from __future__ import annotations

import asyncio
import logging
from collections.abc import Awaitable, Callable, Coroutine, Mapping
from typing import TYPE_CHECKING, Any

import msgspec

from ..core.stopped_clocks import stoppable
from ..core.versions import LATEST_STATEFUL, VERSIONS
from ..protocol.jsonrpc import URL_ELICITATION_REQUIRED, RpcError
from ..registry.declarations import Change
from .eras import ServerFacts
from .exchange import NO_OPTIONS, Exchange, RequestOptions, close_when_idle
from .faults import (
    TIMED_OUT,
    ConnectError,
    ConnectionLost,
    HttpRefused,
    NoAnswer,
    SessionLost,
)
from .frames import Transport
from .input_rounds import InputRounds, decoded
from .opening import LinkPlan, agree, initialize_or_discover

if TYPE_CHECKING:
    from ..core.json_value import JsonObject


class Safety:
    """Whether a request may be sent a second time; by default it may."""

    known: bool | None = True
    """None if the server has to be asked."""

    async def ask(self) -> bool:
        return bool(self.known)


_SAFE = Safety()
_LOGGER = logging.getLogger("answerback.client")


class ServerLink:
    """Sends requests, and opens the connection again when it is lost."""

    def __init__(self, plan: LinkPlan, on_change: Callable[[Change], None]) -> None:
        if plan.version is not None and plan.version not in VERSIONS:
            known = ", ".join(VERSIONS)
            raise ValueError(f"version={plan.version!r} should be one of {known}")
        self.plan = plan
        self.facts = ServerFacts(version=LATEST_STATEFUL)
        self._on_change = on_change
        self.current: Exchange | None = None
        """The exchange with the server, if the connection is open."""
        self._transport: Transport | None = None
        self._make: Callable[[], Transport] | None = None
        self._opening = asyncio.Lock()
        self._closed = False
        self._tasks: set[asyncio.Task[Any]] = set()
        """Work beside the requests, which ends with the connection."""
        self.after_open: Callable[[Exchange], Awaitable[None]] | None = None

    async def open(self) -> Exchange:
        """The exchange with the server, opened if there is none; raises ConnectError."""
        async with self._opening:
            exchange = self.current
            if self._closed:
                raise ConnectError(f"the connection to {self.plan.label} was closed")
            if exchange is not None and exchange.lost is None:
                return exchange
            await self._drop()
            try:
                async with asyncio.timeout(self.plan.connect_timeout) as timeout:
                    with stoppable(timeout):
                        return await self._open_any()
            except TimeoutError:
                await self._drop()
                seconds = self.plan.connect_timeout
                text = f"{self.plan.label} did not answer within {seconds:g} seconds"
                raise ConnectError(text) from None
            except BaseException:
                await self._drop()
                raise

    async def close(self) -> None:
        self._closed = True
        await self._drop()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    async def identity(self) -> str:
        return "" if self._transport is None else await self._transport.identity()

    @property
    def receives_changes(self) -> bool:
        return self._transport is not None and self._transport.receives_changes

    async def request(
        self,
        method: str,
        params: Mapping[str, Any],
        options: RequestOptions = NO_OPTIONS,
        safety: Safety = _SAFE,
    ) -> JsonObject:
        """The result; raises RpcError or NoAnswer.

        If the connection is lost, the request is sent again once, if it certainly did not run or
        if that is safe.
        """
        loop = asyncio.get_running_loop()
        until = None if options.timeout is None else loop.time() + options.timeout
        try:
            return await self._request_once(method, params, options)
        except ConnectionLost as lost:
            if self._closed or (lost.may_have_run and safety.known is False):
                raise
            try:
                async with asyncio.timeout_at(until):
                    is_safe = await self._opens() and (not lost.may_have_run or await safety.ask())
                if not is_safe:
                    raise lost
            except (NoAnswer, TimeoutError):
                raise lost from None
        left = None if until is None else max(0.0, until - loop.time())
        again = msgspec.structs.replace(options, timeout=left)
        return await self._request_once(method, params, again)

    async def _request_once(
        self, method: str, params: Mapping[str, Any], options: RequestOptions
    ) -> JsonObject:
        exchange = self.current
        if exchange is None or exchange.lost is not None:
            exchange = await self._open_within(options.timeout)
        began = asyncio.get_running_loop().time()
        found: JsonObject | RpcError
        try:
            try:
                found = decoded(await exchange.request(method, params, options), method)
                if found.get("resultType") != "input_required":
                    return found
            except RpcError as error:
                if error.code != URL_ELICITATION_REQUIRED:
                    raise
                found = error
            return await InputRounds(exchange, options, began).result(method, params, found)
        except SessionLost as lost:
            exchange.lost = lost
            raise

    async def _open_within(self, seconds: float | None) -> Exchange:
        try:
            async with asyncio.timeout(seconds) as timeout:
                with stoppable(timeout):
                    return await self.open()
        except ConnectError as exc:
            raise NoAnswer(str(exc), may_have_run=False, details=exc.details) from None
        except TimeoutError:
            text = f"{self.plan.label} could not be reached in time"
            raise NoAnswer(text, code=TIMED_OUT, may_have_run=False) from None

    async def _opens(self) -> bool:
        try:
            await self.open()
        except ConnectError:
            return False
        return True

    def _spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        task = asyncio.get_running_loop().create_task(work)
        self._tasks.add(task)
        task.add_done_callback(self._tasks.discard)

    async def _drop(self) -> None:
        exchange, self.current = self.current, None
        self._transport = None
        if exchange is None:
            return
        if isinstance(exchange.lost, SessionLost) and not self._closed:
            # Each other request gets its own response about the lost session.
            self._spawn(close_when_idle(exchange))
        else:
            await exchange.close()

    async def _open_any(self) -> Exchange:
        """Try the transports in their order; the one that worked is used from then on."""
        makers = self.plan.transports if self._make is None else (self._make,)
        for make in makers:
            try:
                exchange = await self._open_with(make)
            except HttpRefused as exc:
                if exc.status not in (400, 404, 405, 406, 415) or make is makers[-1]:
                    raise _cannot_connect(self.plan.label, exc) from None
            except (NoAnswer, RpcError) as exc:
                raise _cannot_connect(self.plan.label, exc) from None
            else:
                self._make = make
                return exchange
        raise ConnectError(f"cannot connect to {self.plan.label}")

    def _lost(self, reason: Exception) -> None:
        """Called when the open connection breaks."""
        if isinstance(reason, SessionLost):
            # Without a session the client receives no changes until the next request.
            self._spawn(self._opens())
        elif isinstance(reason, NoAnswer):
            _log_stderr(self.plan.label, reason)

    async def _open_with(self, make: Callable[[], Transport]) -> Exchange:
        exchange = await self._start(make)
        assert self._transport is not None
        try:
            facts = await agree(exchange, self._transport, self.plan)
        except ConnectionLost as lost:
            if not lost.may_have_run or self.plan.version is not None:
                raise
            # Some older servers end when the first message is not `initialize`.
            exchange = await self._start(make)
            facts = await initialize_or_discover(exchange, self._transport, self.plan)
        self.facts = facts
        exchange.on_lost = self._lost
        if self.after_open is not None:
            await self.after_open(exchange)
        return exchange

    async def _start(self, make: Callable[[], Transport]) -> Exchange:
        await self._drop()
        transport = make()
        exchange = Exchange(transport, self.plan.handlers, self._on_change)
        self.current, self._transport = exchange, transport
        await exchange.open()
        return exchange


def _cannot_connect(label: str, reason: NoAnswer | RpcError) -> ConnectError:
    said = str(reason)
    text = said if label in said else f"cannot connect to {label}: {said}"
    if isinstance(reason, RpcError):
        return ConnectError(text)
    _log_stderr(label, reason)
    return ConnectError(text, stderr=reason.stderr)


def _log_stderr(label: str, reason: NoAnswer) -> None:
    if reason.stderr:
        from ..dialects.readable import render

        text = "%s: %s; its stderr ends with:\n%s"
        _LOGGER.warning(text, label, reason, render(reason.stderr))
