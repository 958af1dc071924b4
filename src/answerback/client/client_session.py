"""ClientSession: the requests to one server, over a connection that is reopened when lost.

The next request reopens a lost connection; `_may_send_again` decides what is resent.
"""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine, Mapping
from contextlib import suppress
from typing import Any, TypeVar

import msgspec

from ..core.clocks import Deadline
from ..core.event_loop import spawn
from ..core.json_value import JsonObject
from ..core.limits import LARGE, MANY_BLOCKS, ReceivedLimits
from ..core.log import logger
from ..core.reply import Reply
from ..core.versions import LATEST_STATEFUL, STATEFUL, STATELESS, V2026_07_28, VERSIONS
from ..protocol.jsonrpc import HEADER_MISMATCH, METHOD_NOT_FOUND, UNSUPPORTED_VERSION, RpcError
from ..reading.read_reply import Hints, read_with
from ..registry.declarations import Change
from .call_options import ClientOptions, reply_under_policy, under_policy
from .client_connection import ClientConnection, ClientRequest, ProbeDeadline, read_in_thread
from .faults import (
    INVALID_RESPONSE,
    TIMED_OUT,
    ConnectError,
    ConnectionLost,
    HttpRefused,
    NoAnswer,
    SessionLost,
    failed_reply,
    raised_error,
)
from .frames import ServerFacts, StatefulEra, StatelessEra, Transport, param_headers
from .remote_server import StartedTask, cancel_when_made, has_tasks, needs_task, task_result
from .results import RemoteTool, failed_call, resource_reply
from .server_lists import ClientSubscriptions, ServerLists
from .user_handlers import UserHandlers

T = TypeVar("T", bound=msgspec.Struct)
_LOGGER = logger("answerback.client")
OTHER_TRANSPORT = frozenset({400, 404, 405, 406, 415})
"""HTTP statuses from servers that do not support the transport."""
_PROBE_SECONDS = 5.0
"""Seconds to wait for `server/discover`; older servers may never answer it."""


class SessionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach a server, and how to talk to it."""

    label: str
    """The server's name in messages."""
    transports: tuple[Callable[[], Transport], ...]
    """Functions that make the transports, in the order to try them."""
    handlers: UserHandlers
    version: str | None
    """The MCP version; None for the newest one that the server speaks."""
    connect_timeout: float
    client_info: Mapping[str, Any]
    """The client's name and version, as sent to the server."""
    max_values: int
    """How many JSON values a message from the server may contain."""


async def open_connection(
    plan: SessionPlan, start: Callable[[], ClientConnection]
) -> ClientConnection:
    """Open the connection that *start* creates and negotiate a version.

    Raises ConnectError, RpcError or NoAnswer.
    """
    connection = start()
    await connection.open()
    try:
        if plan.version is not None and plan.version not in STATELESS:
            connection.facts = await _initialize(connection, plan)
        else:
            facts = await _discover(connection, plan, must=plan.version is not None)
            connection.facts = facts or await _initialize_or_discover(connection, plan)
    except ConnectionLost as lost:
        if not lost.may_have_run or plan.version is not None:
            raise
        # Some older servers exit if the first message is not `initialize`.
        await connection.close()
        connection = start()
        await connection.open()
        connection.facts = await _initialize_or_discover(connection, plan)
    return connection


async def _initialize_or_discover(connection: ClientConnection, plan: SessionPlan) -> ServerFacts:
    """Initialize; discover again if the server is stateless and was just slow to start."""
    try:
        return await _initialize(connection, plan)
    except RpcError as error:
        if error.code not in (UNSUPPORTED_VERSION, METHOD_NOT_FOUND):
            raise
    facts = await _discover(connection, plan, must=True)
    if facts is None:
        raise NoAnswer("the server does not speak any known version", may_have_run=False)
    return facts


async def _discover(
    connection: ClientConnection, plan: SessionPlan, *, must: bool
) -> ServerFacts | None:
    """Ask a stateless server about itself; return None for a stateful server."""
    handlers, seconds = plan.handlers, None if must else _PROBE_SECONDS
    connection.era = StatelessEra(handlers.capabilities, plan.client_info, handlers.log_level)
    try:
        try:
            result = await _ask(connection, "server/discover", {}, seconds)
        except RpcError as error:
            # Some servers refuse the version at first, although they list it as supported.
            if V2026_07_28.name not in (_supported_versions(error) or ()):
                raise
            result = await _ask(connection, "server/discover", {}, seconds)
    except RpcError as error:
        supported = _supported_versions(error)
        if must or (supported is not None and not any(each in STATEFUL for each in supported)):
            raise
        return None
    except NoAnswer as exc:
        status = exc.status if isinstance(exc, HttpRefused) else 0
        is_legacy = exc.code in (TIMED_OUT, INVALID_RESPONSE)
        is_legacy = is_legacy or (400 <= status < 500 and status not in (401, 403))
        if must or not is_legacy:
            raise
        return None
    supported = result.get("supportedVersions")
    if not isinstance(supported, list) or V2026_07_28.name not in supported:
        return None
    return ServerFacts.of(result, V2026_07_28)


def _supported_versions(error: RpcError) -> list[Any] | None:
    """Return the versions listed in a refusal of the client's version; None if there are none."""
    found = error.data.get("supported") if isinstance(error.data, dict) else None
    is_refusal = error.code == UNSUPPORTED_VERSION
    return found if is_refusal and isinstance(found, list) else None


async def _initialize(connection: ClientConnection, plan: SessionPlan) -> ServerFacts:
    """Open a stateful session; raises RpcError or NoAnswer."""
    connection.era = StatefulEra()
    wanted = plan.version
    params: JsonObject = {
        "protocolVersion": LATEST_STATEFUL.name if wanted is None else wanted,
        "capabilities": plan.handlers.capabilities,
        "clientInfo": plan.client_info,
    }
    result = await _ask(connection, "initialize", params)
    found = result.get("protocolVersion")
    version = STATEFUL.get(str(found))
    if version is None:
        text = f"the server speaks version {found!r}; known versions are {', '.join(STATEFUL)}"
        raise RpcError(UNSUPPORTED_VERSION, text)
    facts = ServerFacts.of(result, version)
    connection.era = StatefulEra(version)
    await connection.notify("notifications/initialized")
    await connection.transport.listen()
    level = plan.handlers.log_level
    if level is not None and facts.offers("logging"):
        with suppress(RpcError):
            await _ask(connection, "logging/setLevel", {"level": level})
    return facts


async def _ask(
    connection: ClientConnection, method: str, params: JsonObject, seconds: float | None = None
) -> JsonObject:
    return await connection.request(ClientRequest(method, params, ProbeDeadline(seconds)))


class ClientSession:
    """Sends a RemoteServer's requests; it owns the connection and the server's lists."""

    def __init__(self, plan: SessionPlan, *, strict: bool) -> None:
        if plan.version is not None and plan.version not in VERSIONS:
            known = ", ".join(VERSIONS)
            raise ValueError(f"version={plan.version!r} should be one of {known}")
        self.info = ServerFacts(version=LATEST_STATEFUL)
        self.connection: ClientConnection | None = None
        self.lists = ServerLists(self)
        self.limits = ReceivedLimits(values=plan.max_values)
        self.label = plan.label
        self._plan = plan
        self._strict = strict
        on_change = plan.handlers.on_change
        self._subscriptions = ClientSubscriptions(wants_lists=on_change is not None)
        self._as_tasks: set[str] = set()
        """The tools that the server only runs as tasks."""
        self._starting: ClientConnection | None = None
        """A connection that is not open yet."""
        self.make_transport: Callable[[], Transport] | None = None
        """Makes the transport that worked."""
        self._opening = asyncio.Lock()
        self._attempt: asyncio.Task[ClientConnection] | None = None
        """The last attempt to open a connection in the background."""
        self.is_closed = False
        self._tasks: set[asyncio.Task[Any]] = set()
        """Background tasks, which end with the session."""

    async def call(self, name: str, given: JsonObject, options: ClientOptions) -> Reply[Any]:
        """Call a tool; a retry policy repeats the call only if that is safe."""
        deadline, is_safe = Deadline(options.timeout), False
        if not options.has_policy:
            return await self._call_once(name, given, options, deadline)
        if options.retry is not None:
            is_safe = await self.lists.is_safe_to_repeat(name, deadline)

        async def once(limit: Deadline) -> Reply[Any]:
            return await self._call_once(name, given, options, limit)

        # Fetching the list of tools counts towards the first attempt's time.
        return await reply_under_policy(options, once, may_repeat=is_safe, first=deadline)

    async def _call_once(
        self, name: str, given: JsonObject, options: ClientOptions, deadline: Deadline
    ) -> Reply[Any]:
        asked = _call_request(name, given, options, deadline)
        try:
            result = await self._call_result(asked)
            if "task" in result or result.get("resultType") == "task":
                result = await task_result(self, result, asked)
        except (NoAnswer, RpcError) as error:
            failed = failed_call(error, self.lists.known.get(name))
            return self.lists.marked(name, failed) if isinstance(error, RpcError) else failed
        known = self.lists.known.get(name)
        # A result has fewer blocks than bytes.
        if known is None or (deadline.received > MANY_BLOCKS and _is_large(result, deadline)):
            return await self.reply_of(name, result, deadline)
        return known.reply(result, strict=self._strict)

    async def _call_result(self, asked: ClientRequest) -> JsonObject:
        """Return a call's result, or the task if the tool only runs as a task.

        Servers refuse to run such a tool without a task, some of them with a failed result.
        """
        name, known = asked.tool, self.lists.known
        if self._runs_as_task(name):
            return await _create_task(self, asked)
        try:
            result = await self.request(asked)
        except RpcError as error:
            if not needs_task(error, self.info):
                raise
            self._as_tasks.add(name)
            return await _create_task(self, asked)
        if result.get("isError") is True and name not in known and has_tasks(self.info):
            await self.lists.schema_of(name, asked.deadline)
            if self._runs_as_task(name):
                return await _create_task(self, asked)
        return result

    def _runs_as_task(self, name: str) -> bool:
        known = self.lists.known.get(name)
        is_listed = known is not None and known.needs_task and has_tasks(self.info)
        return is_listed or name in self._as_tasks

    async def start_task(self, name: str, given: JsonObject, options: ClientOptions) -> StartedTask:
        """Call a tool as a task; raises ToolError."""
        asked = _call_request(name, given, options, Deadline(options.timeout))
        try:
            result = await _create_task(self, asked)
        except (NoAnswer, RpcError) as error:
            raise raised_error(error) from None
        return StartedTask(self, options, name, result)

    async def reply_of(self, name: str, result: JsonObject, deadline: Deadline) -> Reply[Any]:
        """Read a tool's result; fetch its output schema if it is not known."""
        known = self.lists.known.get(name)
        if known is None and "structuredContent" in result:
            known = await self.lists.schema_of(name, deadline)

        def read_it() -> Reply[Any]:
            if known is None:
                return self.lists.marked(name, read_with(result, Hints(limits=self.limits)))
            return known.reply(result, strict=self._strict)

        if not _is_large(result, deadline):
            return read_it()
        try:
            return await read_in_thread(deadline, read_it)
        except NoAnswer as error:
            return failed_call(error, known)

    async def entries(self, kind: type[T], options: ClientOptions) -> list[T]:
        """Return a complete list; raises ToolError."""

        async def once(deadline: Deadline) -> list[Any]:
            if kind is RemoteTool:
                return await self.lists.tools(deadline)
            return await self.lists.entries(kind, deadline)

        return await under_policy(options, once)

    async def result(
        self, method: str, params: Mapping[str, Any], options: ClientOptions
    ) -> JsonObject:
        """Return the result of a request without side effects; raises ToolError."""

        async def once(deadline: Deadline) -> JsonObject:
            try:
                sent = options.with_meta(params)
                return await self.request(ClientRequest(method, sent, deadline))
            except (NoAnswer, RpcError) as error:
                raise raised_error(error) from None

        return await under_policy(options, once)

    async def ping(self, options: ClientOptions) -> None:
        """Check that the server answers; raises ToolError. The stateless era has no `ping`."""
        is_stateless = self.info.version.stateless
        await self.result("server/discover" if is_stateless else "ping", {}, options)

    async def read(self, uri: str, options: ClientOptions) -> Reply[Any]:
        async def once(deadline: Deadline) -> Reply[Any]:
            params = options.with_meta({"uri": uri})
            asked = ClientRequest("resources/read", params, deadline, options.progress)
            try:
                result = await self.request(asked)
                if deadline.received <= LARGE:
                    return resource_reply(result)
                return await read_in_thread(deadline, lambda: resource_reply(result))
            except (NoAnswer, RpcError) as error:
                return failed_reply(error)

        return await reply_under_policy(options, once)

    async def subscribe(self, uri: str, options: ClientOptions, *, wanted: bool) -> None:
        """Subscribe or unsubscribe; raises ToolError."""
        self._subscriptions.change(uri, wanted=wanted)
        deadline = Deadline(options.timeout)
        try:
            connection = await self.connected(deadline)
            if connection.facts.version.stateless:
                self._subscriptions.listen(connection)
                return
            method = "resources/subscribe" if wanted else "resources/unsubscribe"
            await self.request(ClientRequest(method, {"uri": uri}, deadline))
        except (NoAnswer, RpcError) as error:
            raise raised_error(error) from None

    async def request(self, asked: ClientRequest) -> JsonObject:
        """Return the result; raises RpcError or NoAnswer.

        A request is resent at most once for each reason in `_may_send_again`.
        """
        reasons: set[type] = set()
        while True:
            connection = self.connection
            if connection is None or connection.lost is not None:
                connection = await self.connected(asked.deadline)
            known = self.lists.known.get(asked.tool)
            if known is not None and known.paths and self.info.version.stateless:
                asked.headers = param_headers(known.paths, asked.params["arguments"])
            try:
                return await connection.result(asked)
            except (ConnectionLost, RpcError) as error:
                reason = RpcError if isinstance(error, RpcError) else ConnectionLost
                if reason in reasons or not await _may_send_again(self, asked, error):
                    raise
                reasons.add(reason)
                text = "%s: %s is sent again after %.200r"
                _LOGGER.info(text, self.label, asked.method, str(error))

    async def connected(self, deadline: Deadline) -> ClientConnection:
        """Return the open connection; raises NoAnswer."""
        try:
            async with deadline.limit():
                return await self.open_shared()
        except ConnectError as exc:
            raise NoAnswer(str(exc), may_have_run=False, details=exc.details) from None
        except TimeoutError:
            text = f"{self.label} could not be reached in time"
            raise NoAnswer(text, code=TIMED_OUT, may_have_run=False) from None

    @property
    def is_opening(self) -> bool:
        return self._attempt is not None and not self._attempt.done()

    async def open_shared(self) -> ClientConnection:
        """Open the connection in the background and wait for it; raises ConnectError.

        Callers share one attempt, which continues if a caller stops waiting for it.
        """
        if self._attempt is None or self._attempt.done():
            self._attempt = spawn(self.open(), self._tasks)
            self._attempt.add_done_callback(_ignore_exception)
        return await asyncio.shield(self._attempt)

    async def open(self) -> ClientConnection:
        """Return the connection, opening one if there is none; raises ConnectError."""
        async with self._opening:
            connection = self.connection
            if self.is_closed:
                raise _was_closed(self.label)
            if connection is not None and connection.lost is None:
                return connection
            await self._drop()
            seconds = self._plan.connect_timeout
            try:
                async with Deadline(seconds).limit():
                    return await self._open_any()
            except TimeoutError:
                await self._drop()
                text = f"{self.label} did not answer within {seconds:g} seconds"
                raise ConnectError(text) from None
            except BaseException:
                await self._drop()
                if self.is_closed:
                    # Closing cancels a shared attempt, but not the callers that are waiting for it.
                    raise _was_closed(self.label) from None
                raise

    async def _open_any(self) -> ClientConnection:
        """Try the transports in order and keep the first one that works."""
        label = self.label
        makers = self._plan.transports if self.make_transport is None else (self.make_transport,)
        for make in makers:
            try:
                connection = await self._open_with(make)
            except (NoAnswer, RpcError) as exc:
                is_refused = isinstance(exc, HttpRefused) and exc.status in OTHER_TRANSPORT
                if not is_refused or make is makers[-1]:
                    raise _cannot_connect(label, exc) from None
                await self._drop()
            else:
                self.make_transport = make
                return connection
        raise ConnectError(f"cannot connect to {label}")

    async def _open_with(self, make: Callable[[], Transport]) -> ClientConnection:
        def start() -> ClientConnection:
            plan = self._plan
            self._starting = ClientConnection(
                make(), plan.handlers, self._changed, plan.label, plan.max_values
            )
            return self._starting

        connection = await open_connection(self._plan, start)
        # The lists may have changed while the server could not report it.
        self.lists.all_changed()
        await self._subscriptions.renew(connection)
        self.info = connection.facts
        connection.on_lost = self._lost
        self.connection, self._starting = connection, None
        facts, again = self.info, "" if self.make_transport is None else " again"
        itself = f"{facts.name} {facts.info.get('version', '')}".strip()
        _LOGGER.info(
            "connected%s to %s: %.200r, MCP %s", again, self.label, itself, facts.version.name
        )
        return connection

    async def close(self) -> None:
        self.is_closed = True
        await self._drop()
        for task in list(self._tasks):
            task.cancel()
        if self._tasks:
            await asyncio.wait(list(self._tasks))

    def spawn(self, work: Coroutine[Any, Any, Any]) -> None:
        """Run *work* in the background, until the session is closed."""
        spawn(work, self._tasks)

    async def _drop(self) -> None:
        starting, self._starting = self._starting, None
        connection, self.connection = self.connection, None
        if starting is not None:
            await starting.close()
        if connection is None:
            return
        if isinstance(connection.lost, SessionLost) and not self.is_closed:
            # Every other request gets its own error response for the lost session.
            self.spawn(connection.close_when_idle())
        else:
            connection.on_lost = None
            await connection.close()

    def _lost(self, reason: Exception) -> None:
        """Handle the loss of the open connection."""
        if isinstance(reason, SessionLost):
            # Without a session, the client receives no changes until the next request.
            self.spawn(self._reopen())
        elif isinstance(reason, NoAnswer):
            _LOGGER.info("lost the connection to %s: %s", self.label, reason)
            _log_stderr(self.label, reason)

    async def _reopen(self) -> None:
        with suppress(ConnectError):  # The next request tries again.
            await self.open()

    def _changed(self, change: Change) -> None:
        if change.kind != "resource":
            self.lists.changed(change.kind)
        if self._plan.handlers.on_change is not None:
            self._plan.handlers.on_change(change)


async def _may_send_again(
    session: ClientSession, asked: ClientRequest, error: ConnectionLost | RpcError
) -> bool:
    """Return whether a request may be resent after an error; reopen a lost connection.

    After a lost connection, it may be resent if it did not run or is safe to repeat; after
    a header mismatch, if a newly fetched list of tools names the headers.
    """
    tool, deadline = asked.tool, asked.deadline
    known = session.lists.known.get(tool)
    if isinstance(error, RpcError):
        if error.code != HEADER_MISMATCH or not tool or known is not None:
            return False
        return await session.lists.known_tool(tool, deadline) is not None
    is_harmful = known is not None and not known.tool.is_safe_to_repeat
    if session.is_closed or (error.may_have_run and is_harmful):
        return False
    try:
        async with deadline.limit():
            await session.open_shared()
            if not error.may_have_run or not tool:
                return True
            return await session.lists.is_safe_to_repeat(tool, deadline)
    except (ConnectError, TimeoutError):
        return False


def _is_large(result: JsonObject, deadline: Deadline) -> bool:
    """Return whether a result is large enough to be read in a thread."""
    blocks = result.get("content")
    return deadline.received > LARGE or (isinstance(blocks, list) and len(blocks) > MANY_BLOCKS)


def _call_request(
    name: str, given: JsonObject, options: ClientOptions, deadline: Deadline
) -> ClientRequest:
    params: Mapping[str, Any] = {"name": name, "arguments": given}
    if options.meta:
        params = options.with_meta(params)
    return ClientRequest("tools/call", params, deadline, options.progress, name)


def _was_closed(label: str) -> ConnectError:
    return ConnectError(f"the connection to {label} was closed")


def _ignore_exception(attempt: asyncio.Task[ClientConnection]) -> None:
    """Mark an attempt's exception as retrieved, in case no caller is waiting for it."""
    if not attempt.cancelled():
        attempt.exception()


def _cannot_connect(label: str, reason: NoAnswer | RpcError) -> ConnectError:
    text = str(reason)
    if text.startswith("cannot connect to "):
        text = text.partition(": ")[2] or text
    if label not in text:
        text = f"cannot connect to {label}: {text}"
    if isinstance(reason, RpcError):
        return ConnectError(text)
    _log_stderr(label, reason)
    return ConnectError(text, stderr=reason.stderr)


def _log_stderr(label: str, reason: NoAnswer) -> None:
    if reason.stderr:
        from ..dialects.readable import render

        text = "%s: %s; its stderr ends with:\n%s"
        _LOGGER.warning(text, label, reason, render(reason.stderr))


async def _create_task(session: ClientSession, asked: ClientRequest) -> JsonObject:
    """Return a call's result, which may be a task; raises RpcError or NoAnswer.

    If the caller is cancelled, the task is cancelled as soon as its id is known.
    """
    asked.params = {**asked.params, "task": {}}
    creating = asyncio.ensure_future(session.request(asked))
    try:
        return await asyncio.shield(creating)
    except asyncio.CancelledError:
        session.spawn(cancel_when_made(session, creating))
        raise
