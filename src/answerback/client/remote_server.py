"""RemoteServer: a connected server's tools, resources, prompts and tasks."""

from __future__ import annotations

import asyncio
import copy
import re
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, Self, TypeVar, Unpack, overload

import msgspec

from ..core.clocks import Deadline, clocks_paused
from ..core.json_value import Json, JsonObject
from ..core.limits import MAX_BLOCKS
from ..core.log import logger
from ..core.peer import Progress
from ..core.reply import Reply
from ..errors import UNKNOWN_ERROR, MalformedReply, ToolError
from ..protocol.jsonrpc import METHOD_NOT_FOUND, MISSING_CAPABILITY, TASKS, RpcError
from ..reading.read_reply import typed_reader
from ..types.json_text import ENCODER
from .call_options import CallOptions, ClientOptions
from .client_connection import ClientRequest
from .faults import INVALID_RESPONSE, TIMED_OUT, NoAnswer, failed_reply
from .frames import ServerFacts
from .results import FilledPrompt, RemotePrompt, RemoteResource, RemoteTemplate, RemoteTool
from .user_handlers import OnProgress

if TYPE_CHECKING:
    from .client_session import ClientSession
    from .many_servers import ManySessions
    from .rest_session import RestSession


S = TypeVar("S", bound="ServerMethods")
T = TypeVar("T")


class ServerMethods:
    """The methods shared by `RemoteServer` and `ManyServers`.

    `call` and `read` always return a reply. The lists, `prompt` and `complete` raise
    ToolError if they fail.
    """

    def __init__(
        self, session: ClientSession | RestSession | ManySessions, options: ClientOptions
    ) -> None:
        self._session = session
        self._options = options

    async def tools(self) -> list[RemoteTool]:
        """Return the server's tools; raises ToolError."""
        return await self._session.entries(RemoteTool, self._options)

    async def resources(self) -> list[RemoteResource]:
        """Return the server's resources; raises ToolError."""
        return await self._session.entries(RemoteResource, self._options)

    async def templates(self) -> list[RemoteTemplate]:
        """Return the server's resource templates; raises ToolError."""
        return await self._session.entries(RemoteTemplate, self._options)

    async def prompts(self) -> list[RemotePrompt]:
        """Return the server's prompts; raises ToolError."""
        return await self._session.entries(RemotePrompt, self._options)

    @overload
    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        into: type[T],
        **named: object,
    ) -> Reply[T]: ...
    @overload
    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        into: Any = None,
        **named: object,
    ) -> Reply[Any]: ...
    async def call(
        self,
        name: str,
        arguments: Mapping[str, Any] | None = None,
        /,
        *,
        into: Any = None,
        **named: object,
    ) -> Reply[Any]:
        """Call a tool: `call("add", x=1)`, or `call("add", {"x": 1})` for any argument name.

        *arguments* may contain any name, including `into`. *into* is the data's type, as in `read`.

        A failed connection or a timeout does not raise. Instead, the reply has the error code
        UNAVAILABLE or TIMED_OUT, and its `error.details` contains `may_have_run`.
        """
        given = {**(arguments or {}), **named}
        if into is None:
            return await self._session.call(name, given, self._options)
        try:
            typed = typed_reader(into)
        except TypeError as exc:
            hint = 'pass a tool argument named "into" in a mapping: call(name, {"into": …})'
            raise TypeError(f"{exc}; {hint}") from None
        return await typed.read_async(await self._session.call(name, given, self._options))

    async def start_task(
        self, name: str, arguments: Mapping[str, Any] | None = None, /, **named: object
    ) -> StartedTask:
        """Call a tool as a task without waiting; raises ToolError if the server refuses it."""
        return await self._session.start_task(name, {**(arguments or {}), **named}, self._options)

    async def read(self, uri: str) -> Reply[Any]:
        """Read a resource; its contents become embedded blocks in the reply."""
        return await self._session.read(uri, self._options)

    async def prompt(
        self, name: str, arguments: Mapping[str, object] | None = None, /, **named: object
    ) -> FilledPrompt:
        """Return a prompt's messages; raises ToolError.

        MCP arguments are strings, so any other value is sent as JSON; None is left out.
        """
        params: JsonObject = {"name": name}
        given = {**(arguments or {}), **named}
        if texts := {key: _text_of(value) for key, value in given.items() if value is not None}:
            params["arguments"] = texts
        result = await self._session.result("prompts/get", params, self._options)
        try:
            return FilledPrompt.read(result)
        except MalformedReply as exc:
            raise ToolError(f"the prompt cannot be read: {exc}", INVALID_RESPONSE) from None

    async def complete(
        self, of: str, argument: str, value: str, context: Mapping[str, str] | None = None
    ) -> list[str]:
        """Complete an argument; *of* is a prompt's name or a template's URI."""
        is_uri = "://" in of
        ref = {"type": "ref/resource", "uri": of} if is_uri else {"type": "ref/prompt", "name": of}
        params: JsonObject = {"ref": ref, "argument": {"name": argument, "value": value}}
        if context:
            params["context"] = {"arguments": dict(context)}
        result = await self._session.result("completion/complete", params, self._options)
        found = result.get("completion")
        values = found.get("values") if isinstance(found, dict) else None
        return [str(each) for each in values[:MAX_BLOCKS]] if isinstance(values, list) else []

    async def subscribe(self, uri: str) -> None:
        """Report a resource's changes to `on_change`; raises ToolError."""
        await self._session.subscribe(uri, self._options, wanted=True)

    async def unsubscribe(self, uri: str) -> None:
        """Stop reporting a resource's changes; raises ToolError."""
        await self._session.subscribe(uri, self._options, wanted=False)

    async def ping(self) -> None:
        """Return when the server answers; raises ToolError."""
        await self._session.ping(self._options)

    def options(self, **options: Unpack[CallOptions]) -> Self:
        """Return this server with new options: `server.options(timeout=2).call("add", x=1)`."""
        changed = copy.copy(self)
        changed._options = self._options.changed(options)
        return changed

    async def open(self) -> None:
        """Open the connection, as `connect` does; raises ConnectError."""
        await self._session.open()

    async def close(self) -> None:
        """Close the connection and end the child process."""
        await self._session.close()


class RemoteServer(ServerMethods):
    """A server that `connect` has opened a connection to.

    `call` and `read` return a failed reply if something goes wrong. The other methods raise
    a ToolError instead: TimedOut after a timeout, Unavailable if the connection failed.
    """

    _session: ClientSession | RestSession

    @property
    def info(self) -> ServerFacts:
        """The MCP version, the server's name, its capabilities and its instructions."""
        return self._session.info


async def opened(make: Callable[[], S]) -> S:
    """Create a server and open it; raises ConnectError."""
    server = make()
    try:
        await server.open()
    except BaseException:
        await server.close()
        raise
    return server


def _text_of(value: object) -> str:
    """Return the value as JSON, without the quotes if it is a string, such as a date or an enum."""
    encoded = ENCODER.encode(value)
    return msgspec.json.decode(encoded, type=str) if encoded[:1] == b'"' else encoded.decode()


_LOGGER = logger("answerback.client")
_POLL_SECONDS, _MIN_POLL, _MAX_POLL = 0.5, 0.02, 60.0
"""The default number of seconds between polls, and the bounds for an interval from the server."""
_LOOK_TIMEOUT = 30.0
_FAILURES = 5
"""How many polls in a row may fail, for example while the server restarts."""
_NUMBER = r"([0-9]{1,15}(?:\.[0-9]{1,9})?(?:e\+[0-9]{1,2})?)"
_NUMBERS = re.compile(f"{_NUMBER} of {_NUMBER}(?:: (.*))?", re.DOTALL)
"""A task message with numbers, in the format that Answerback servers use: "3 of 10: reading"."""
_FINAL = ("completed", "failed", "cancelled")


def needs_task(error: RpcError, facts: ServerFacts) -> bool:
    """Return whether the server refused to run a call because the tool only runs as a task."""
    if facts.version.stateless:
        wanted = error.data.get("requiredCapabilities") if isinstance(error.data, dict) else None
        found = wanted.get("extensions") if isinstance(wanted, dict) else None
        return error.code == MISSING_CAPABILITY and isinstance(found, dict) and TASKS in found
    return error.code == METHOD_NOT_FOUND and has_tasks(facts)


def has_tasks(facts: ServerFacts) -> bool:
    """Return whether an MCP 2025-11-25 server supports tasks."""
    return facts.version.tasks and facts.offers("tasks")


def _task_in(result: JsonObject) -> JsonObject | None:
    """Return the task named in a `tools/call` result; None if there is none."""
    found = result if result.get("resultType") == "task" else result.get("task")
    is_task = isinstance(found, dict) and isinstance(found.get("taskId"), str)
    return found if is_task and "content" not in result else None


async def task_result(
    session: ClientSession, result: JsonObject, asked: ClientRequest
) -> JsonObject:
    """Return a call's result; if it names a task, wait for the task's result."""
    task = _task_in(result)
    if task is None:
        return result
    return await RemoteTask(session, task, asked.progress).wait(asked.deadline)


async def cancel_when_made(session: ClientSession, creating: asyncio.Future[JsonObject]) -> None:
    """Cancel the task that a request creates, as soon as its id is known."""
    try:
        task = _task_in(await creating)
    except (NoAnswer, RpcError):
        return
    if task is not None:
        await RemoteTask(session, task).give_up()


class StartedTask:
    """A task started by `start_task`. Only `cancel` cancels it."""

    def __init__(
        self, session: ClientSession, options: ClientOptions, tool: str, result: JsonObject
    ) -> None:
        task = _task_in(result)
        self._session = session
        self._options = options
        self._tool = tool
        self._task = None if task is None else RemoteTask(session, task, options.progress)
        self._result = result
        """The result, if the server did not create a task."""

    @property
    def id(self) -> str:
        """The task's id; empty if the server did not create a task."""
        return "" if self._task is None else str(self._task.params["taskId"])

    async def status(self) -> JsonObject:
        """Fetch the server's description of the task, including its `status`; raises ToolError."""
        if self._task is None:
            return {"status": "completed"}
        return await self._session.result("tasks/get", self._task.params, self._options)

    async def result(self) -> Reply[Any]:
        """Wait for the task's result; the handlers given to `connect` answer its questions."""
        result, deadline = self._result, Deadline(None)
        if self._task is not None:
            try:
                result = await self._task.until_end(deadline)
            except (NoAnswer, RpcError) as error:
                return failed_reply(error)
        return await self._session.reply_of(self._tool, result, deadline)

    async def cancel(self) -> None:
        """Cancel the task, unless it has ended."""
        if self._task is not None:
            await self._task.give_up()

    async def answer(self, key: str, answer: Mapping[str, Any]) -> None:
        """Answer a task's question with an MCP result (2026-07-28); raises ToolError."""
        if self._task is not None:
            answers = {**self._task.params, "inputResponses": {key: dict(answer)}}
            await self._session.result("tasks/update", answers, self._options)


async def start_task(
    server: ServerMethods, name: str, arguments: Mapping[str, Any] | None = None, /, **named: object
) -> StartedTask:
    """Same as `server.start_task`."""
    return await server.start_task(name, arguments, **named)


class RemoteTask:
    """A server's task, from its creation to its result."""

    def __init__(
        self, session: ClientSession, task: JsonObject, progress: OnProgress | None = None
    ) -> None:
        self._session = session
        self._progress = progress
        self._steps = 0
        self._last_message: Json = None
        self.params = {"taskId": task["taskId"]}
        self._answered: set[str] = set()
        self._pause = _MIN_POLL
        self.shown = task
        """The task as the server last described it."""
        self._received = 0
        """The size of the last result, in bytes."""

    async def wait(self, deadline: Deadline) -> JsonObject:
        """Wait for the call's result; raises RpcError or NoAnswer.

        The task is cancelled when its time is up, or when its caller is cancelled.
        """
        try:
            async with deadline.limit():
                return await self.until_end(deadline)
        except TimeoutError:
            await self.give_up()
            text = f"the task did not end within {deadline.seconds:g} seconds, and was cancelled"
            raise NoAnswer(text, code=TIMED_OUT, details=self.params) from None
        except asyncio.CancelledError:
            # Cancel it in the background, because this coroutine must end now.
            self._session.spawn(self.give_up())
            raise

    async def until_end(self, deadline: Deadline) -> JsonObject:
        """Wait for the result, adding its size to *deadline*; raises RpcError or NoAnswer."""
        is_stateless = self._session.info.version.stateless
        while (status := self.shown.get("status")) not in _FINAL:
            self._report_progress()
            if status == "input_required":
                if not is_stateless:
                    break  # The server asks its questions while the result is being requested.
                if await self._answer():
                    continue
            await asyncio.sleep(self._next_pause())
            await self._look()
        result = self.shown.get("result")
        if not is_stateless:
            result = await self._request("tasks/result", None)
        deadline.received += self._received
        if isinstance(result, dict) and (status == "completed" or not is_stateless):
            return result
        if status == "completed":
            raise NoAnswer("the task ended without a result", code=INVALID_RESPONSE)
        match self.shown.get("error"):
            case {"code": int(number), "message": str(message), **rest}:
                raise RpcError(number, message, rest.get("data"))
        reason = self.shown.get("statusMessage") or f"the task was {status}"
        code = "CANCELLED" if status == "cancelled" else UNKNOWN_ERROR
        raise NoAnswer(str(reason), code=code, details=self.params, retryable=False)

    def _report_progress(self) -> None:
        """Pass each new message to the user's progress function; count those without numbers."""
        text = self.shown.get("statusMessage")
        if self._progress is None or not text or text == self._last_message:
            return
        self._last_message = text
        self._steps += 1
        try:
            if found := _NUMBERS.fullmatch(str(text)):
                done, total, message = found.groups()
                self._progress(Progress(float(done), float(total), message))
            else:
                self._progress(Progress(self._steps, None, str(text)))
        except Exception:
            _LOGGER.exception("the progress function failed")

    async def _look(self) -> None:
        for attempt in range(1, _FAILURES + 1):
            try:
                self.shown = await self._request("tasks/get", _LOOK_TIMEOUT)
                return
            except NoAnswer:
                if attempt == _FAILURES:
                    raise
                await asyncio.sleep(self._next_pause())

    async def _answer(self) -> bool:
        """Answer the task's new questions; return False if there are none."""
        found = self.shown.get("inputRequests")
        questions = found if isinstance(found, dict) else {}
        new = {key: each for key, each in questions.items() if key not in self._answered}
        connection = await self._session.connected(Deadline(_LOOK_TIMEOUT))
        for key, each in new.items():
            self._answered.add(key)
            asked = each if isinstance(each, dict) else {}
            params = asked.get("params")
            method = str(asked.get("method"))
            try:
                with clocks_paused():
                    answer = await connection.ask_user(
                        method, params if isinstance(params, dict) else {}
                    )
            except RpcError as error:
                await self.give_up()
                text = f"the task sent {method}, which could not be answered: {error}"
                raise NoAnswer(text, code="INPUT_REQUIRED", details={"questions": found}) from None
            answers = {**self.params, "inputResponses": {key: answer}}
            deadline = Deadline(_LOOK_TIMEOUT)
            await self._session.request(ClientRequest("tasks/update", answers, deadline))
        if new:
            await self._look()
        return bool(new)

    async def _request(self, method: str, timeout: float | None) -> JsonObject:
        deadline = Deadline(timeout)
        result = await self._session.request(ClientRequest(method, self.params, deadline))
        self._received = deadline.received
        return result

    async def give_up(self) -> None:
        """Cancel the task if the server can be reached."""
        # A task that cannot be cancelled has ended, or will expire.
        with suppress(NoAnswer, RpcError):
            await self._request("tasks/cancel", 1.0)

    def _next_pause(self) -> float:
        """Return the next pause: short at first, since many tasks are quick, then the server's."""
        named = self.shown.get("pollIntervalMs", self.shown.get("pollInterval"))
        is_number = isinstance(named, int | float) and named == named
        wanted = float(named) / 1000 if is_number and named is not None else _POLL_SECONDS
        pause = min(self._pause, max(wanted, _MIN_POLL), _MAX_POLL)
        self._pause = self._pause * 2
        return pause
