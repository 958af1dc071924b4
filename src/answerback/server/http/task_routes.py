"""Tasks over REST: calls that ask for a task, a task's resource, and idempotency keys.

Below a tool's path, `/tasks/{id}` is a task, and `/tasks/{id}/result` is its reply.
"""

from __future__ import annotations

from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from ...calls.call import Call, Outcome
from ...calls.runtime import Runtime
from ...core.authentication import owner_of
from ...core.json_value import JsonObject
from ...core.peer import Abilities, NoPeer
from ...core.reply import Error, Reply, failure
from ...core.shape import RESULT
from ...dialects import HttpReply
from ...dialects.status_and_headers import JSON, RETRY_AFTER
from ...errors import INVALID_ARGUMENTS, INVALID_JSON, ToolError, Unavailable
from ...registry.declarations import Registry
from ...tasks.service import TaskService, run_once, task_service
from ...tasks.task_record import TaskRecord, checked_key, iso_time, task_members
from .routes import refuse_media, refuse_method

if TYPE_CHECKING:
    from .routes import RestRequest, Routes

MAX_WAIT = 60
"""Maximum seconds that a request waits for a task, whatever `Prefer: wait=` says."""
POLL_SECONDS = 1
TASKS = "/tasks/"
RESULT_PATH = "/result"
PREFER, APPLIED = "Prefer", "Preference-Applied"
IDEMPOTENCY_KEY = "Idempotency-Key"
_ASYNC = "respond-async"
_NO_STORE = ("Cache-Control", "no-store")
_METHODS, _RESULT_METHODS = "GET, HEAD, POST, DELETE", "GET, HEAD"


class Answers(msgspec.Struct):
    """The body that answers a task's questions, as in MCP's `tasks/update`."""

    responses: dict[str, dict[str, Any]] = msgspec.field(name="inputResponses")


class _TaskCreator(NoPeer):
    """The peer for a call that becomes a task: its questions go through the task."""

    can = Abilities(elicit=True)


_CREATOR = _TaskCreator()
_answers = msgspec.json.Decoder(Answers)


class TaskRoutes:
    """Answers requests about tasks."""

    def __init__(self, runtime: Runtime, writer: Routes) -> None:
        self._runtime = runtime
        self._registry = runtime.registry
        self._handlers = runtime.handlers
        self._writer = writer

    async def call(self, call: Call, request: RestRequest) -> Outcome | HttpReply:
        """Return the outcome of a call, or the response for a newly created task."""
        tool = self._registry.tools.get(call.name)
        support = "forbidden" if tool is None else tool.settings.task
        takes_key = tool is not None and tool.settings.idempotency_key
        if support == "forbidden" and not takes_key:
            return await self._handlers.tools(call)
        key = _key(request)
        try:
            checked_key(key)
        except ToolError as exc:
            return self._writer.refuse(Reply(error=Error.of(exc)), request)
        preferences = read_preferences(request.headers.get(b"prefer", b""))
        if support == "required" or (support == "optional" and _ASYNC in preferences):
            return await self._create(call, request, preferences)
        if key is not None and takes_key:
            return await run_once(self._service, call, key, self._handlers.tools)
        return await self._handlers.tools(call)

    async def answer(self, name: str, request: RestRequest, body: bytes | Reply[Any]) -> HttpReply:
        """Answer a request for a task; *name* is the path after the prefix."""
        tool, _, id = name.partition(TASKS)
        is_result = id.endswith(RESULT_PATH)
        allowed = _RESULT_METHODS if is_result else _METHODS
        refused = refuse_method(request.method, allowed)
        if refused is not None:
            return self._writer.refuse(refused, request, allow=allowed)
        try:
            task = await self._find(tool, id.removesuffix(RESULT_PATH), request)
            if is_result:
                return self._result(task, request)
            if request.method == "DELETE":
                task = await self._service.cancel(task.id, task.owner) or task
            elif request.method == "POST":
                if isinstance(body, Reply):
                    return self._writer.refuse(body, request)
                if (refused := refuse_media(request.content_type)) is not None:
                    return self._writer.refuse(refused, request)
                task = await self._answered(task, body)
        except ToolError as exc:
            return self._writer.refuse(Reply(error=Error.of(exc)), request)
        return self._shown(task, request, 200)

    @property
    def _service(self) -> TaskService:
        return task_service(self._runtime)

    async def _create(
        self, call: Call, request: RestRequest, preferences: dict[str, str]
    ) -> Outcome | HttpReply:
        call.peer = _CREATOR
        made = await self._service.create(call, key=_key(request), asks_later=True)
        if not isinstance(made, TaskRecord):
            return made
        seconds = _seconds(preferences)
        if seconds and not made.is_final:
            made = await self._waited(made, seconds)
        headers: list[tuple[str, str]] = []
        if made.is_final and seconds is not None:
            written = self._result(made, request)
            headers.append((APPLIED, f"wait={preferences['wait']}"))
        else:
            written = self._shown(made, request, 202)
            if _ASYNC in preferences:
                headers.append((APPLIED, _ASYNC))
        return msgspec.structs.replace(written, headers=(*written.headers, *headers))

    async def _find(self, tool: str, id: str, request: RestRequest) -> TaskRecord:
        owner = owner_of(request.describe_request("rest").user)
        task = await self._service.get(id, owner)
        if task is None or task.tool != tool:
            # The id may be someone else's secret, so the message does not repeat it.
            raise ToolError(
                "No such task: it never existed, has expired, or is not yours", code="NOT_FOUND"
            )
        seconds = _seconds(read_preferences(request.headers.get(b"prefer", b"")))
        if seconds and request.method == "GET" and not task.is_final:
            return await self._waited(task, seconds)
        return task

    async def _waited(self, task: TaskRecord, seconds: float) -> TaskRecord:
        """Return the task once it ends or asks a question, or after *seconds*.

        If too many requests are already waiting for it, return it immediately.
        """

        def is_done(task: TaskRecord) -> bool:
            return task.is_final or task.state == "input_required"

        with suppress(Unavailable):
            return await self._service.wait(task.id, task.owner, is_done, seconds) or task
        return task

    async def _answered(self, task: TaskRecord, body: bytes) -> TaskRecord:
        try:
            answers = _answers.decode(body).responses
        except msgspec.ValidationError as exc:
            hint = 'send {"inputResponses": {"KEY": {"action": "accept", "content": {…}}}}'
            raise ToolError(f"Invalid answers: {exc}", INVALID_ARGUMENTS, hint=hint) from None
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as exc:
            raise ToolError(f"Invalid JSON: {exc}", INVALID_JSON) from None
        if unknown := sorted(answers.keys() - task.questions.keys() - task.answers.keys()):
            keys = ", ".join(map(repr, task.questions)) or "none"
            raise ToolError(
                f"The task has no question {unknown[0][:100]!r}; its open questions: {keys}",
                code="CONFLICT",
            )
        return await self._service.answer(task.id, task.owner, answers) or task

    def _result(self, task: TaskRecord, request: RestRequest) -> HttpReply:
        """Return a finished task's reply, or an unfinished task itself with 202."""
        if not task.is_final:
            return self._shown(task, request, 202)
        reply = task.reply()
        written = self._writer.write_finished(reply, request, reply.shape or RESULT)
        return msgspec.structs.replace(written, headers=(*written.headers, _NO_STORE))

    def _shown(self, task: TaskRecord, request: RestRequest, status: int) -> HttpReply:
        path = f"{request.root}{self._registry.contract.route}{task.tool}{TASKS}{task.id}"
        headers = [_NO_STORE]
        if status == 202:
            headers.append(("Location", path))
        if task.state == "working":
            headers.append((RETRY_AFTER, str(POLL_SECONDS)))
        # The members use MCP's names.
        members: JsonObject = {**task_members(task), "tool": task.tool}
        if task.expires is not None:
            members["expiresAt"] = iso_time(task.expires)
        if task.questions:
            members["inputRequests"] = task.questions
        if task.is_final:
            members["resultUrl"] = path + RESULT_PATH
        return HttpReply(status, msgspec.json.encode(members), JSON, tuple(headers))


def read_preferences(header: bytes) -> dict[str, str]:
    """Return a `Prefer` header's preferences by name (RFC 7240); the first of each name wins."""
    found: dict[str, str] = {}
    for part in header[:1000].decode("latin-1").split(","):
        name, _, value = part.partition(";")[0].partition("=")
        found.setdefault(name.strip().lower(), value.strip().strip('"'))
    return found


def refuse_without_server(
    registry: Registry, call: Call, request: RestRequest
) -> Reply[Any] | None:
    """Return the refusal for a call that CGI cannot run: its process ends with the response."""
    tool = registry.tools.get(call.name)
    if tool is None:
        return None
    hint = "call it on a long-running server, started with `serve`"
    if tool.settings.task == "required":
        message = f"The function {call.name} runs only as a task, and CGI has no tasks"
    elif tool.settings.idempotency_key and _key(request) is not None:
        message = "CGI does not store idempotency keys, so this call could run twice"
        hint += ", or leave out Idempotency-Key"
    else:
        return None
    return failure(message, code="UNAVAILABLE", retryable=False, hint=hint)


def _key(request: RestRequest) -> str | None:
    """Return the idempotency key, which the IETF draft puts in quotation marks."""
    sent = request.headers.get(b"idempotency-key")
    if sent is None:
        return None
    key = sent.decode("latin-1").strip()
    return key[1:-1] if len(key) > 2 and key[0] == key[-1] == '"' else key


def _seconds(preferences: dict[str, str]) -> float | None:
    """Return the seconds that the client wants to wait; None if it did not say."""
    sent = preferences.get("wait", "")
    if not (sent.isascii() and sent.isdigit()):
        return None
    return float(min(int(sent[:9]), MAX_WAIT))
