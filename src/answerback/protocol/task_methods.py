"""The task methods: the 2026-07-28 extension, and the 2025-11-25 core tasks.

Loaded on the first call to a tool that can run as a task.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine
from contextlib import suppress
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from ..calls.call import Call, Handler, Outcome
from ..core.authentication import owner_of
from ..core.event_loop import spawn
from ..core.json_value import JsonObject, is_number
from ..core.peer import Question
from ..core.reply import Error, Reply
from ..core.shape import RESULT
from ..core.versions import Version
from ..dialects import mcp as dialect
from ..errors import ToolError, Unavailable
from ..tasks.task_record import TaskRecord, task_members
from .jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    METHOD_NOT_FOUND,
    MISSING_CAPABILITY,
    PREFIX,
    TASKS,
    PageParams,
    Params,
    RpcError,
    TaskId,
    TaskUpdate,
    ToolCall,
    notification_frame,
    read_params,
)
from .mcp_peer import McpPeer
from .session import ServerInfo

if TYPE_CHECKING:
    import asyncio

    from ..calls.runtime import Runtime
    from ..tasks.service import TaskService


RELATED_TASK = PREFIX + "related-task"
POLL_MS = 500
"""How many milliseconds a client should wait between polls of a task."""
_PAGE_SIZE = 100
_WAIT_SECONDS = 3600.0
_MAX_TTL = 1e15


class TaskMethods:
    """Answers the task methods, and turns calls into tasks."""

    def __init__(self, runtime: Runtime, server_info: ServerInfo) -> None:
        self._runtime = runtime
        self.registry = runtime.registry
        self._server_info = server_info
        self._methods: dict[str, Callable[[McpPeer, Params], Coroutine[Any, Any, bytes]]] = {
            "tasks/get": self._get,
            "tasks/update": self._update,
            "tasks/cancel": self._cancel,
            "tasks/result": self._result,
            "tasks/list": self._list,
        }

    @property
    def service(self) -> TaskService:
        # Imported for the first task, so that other clients need not wait for it.
        from ..tasks.service import task_service

        return task_service(self._runtime)

    async def answer(self, method: str, peer: McpPeer, raw: Params) -> bytes:
        """Return the result of a task method; raises RpcError."""
        if peer.version.stateless and not peer.client.tasks:
            raise missing_tasks(f"{method} needs the {TASKS} extension")
        try:
            return await self._methods[method](peer, raw)
        except ToolError as exc:
            # The store cannot be read or written.
            data = {"code": exc.code, "retryable": exc.retryable, "retry_after": exc.retry_after}
            raise RpcError(INTERNAL_ERROR, exc.message, data) from None

    def handler(
        self, call: Call, asked: ToolCall, peer: McpPeer
    ) -> Callable[[Call], Coroutine[Any, Any, Outcome | bytes]]:
        """Return a call's handler: one that creates a task, or the usual one; raises RpcError."""
        tool = self.registry.tools.get(call.name)
        support = "forbidden" if tool is None else tool.settings.task
        if self.registry.has_tasks and self._is_wanted(support, call.name, asked, peer):
            return partial(self._create, asked=asked, peer=peer)
        key = _key(asked)
        if key is not None and tool is not None and tool.settings.idempotency_key:
            from ..tasks.service import run_once

            run = partial(run_once, self.service, key=key, handle=self._runtime.handlers.tools)
            return run if tool.budget is None else partial(self._run_and_fit, run)
        return self._runtime.handlers.tools

    def _is_wanted(self, support: str, name: str, asked: ToolCall, peer: McpPeer) -> bool:
        """Return whether a call becomes a task; raises RpcError if that conflicts with the tool."""
        version = peer.version
        if version.stateless:
            if support == "required" and not peer.client.tasks:
                raise missing_tasks(f"Tool {name} runs only as a task")
            return support != "forbidden" and peer.client.tasks
        if not version.tasks:
            if support == "required":
                message = f"Tool {name} runs only as a task, which MCP {version.name} lacks"
                raise RpcError(METHOD_NOT_FOUND, message)
            return False  # The client is waiting for the result.
        if support == "required" and asked.task is None:
            raise RpcError(METHOD_NOT_FOUND, f"Tool {name} runs only as a task; send params.task")
        if support == "forbidden" and asked.task is not None:
            raise RpcError(METHOD_NOT_FOUND, f"Tool {name} does not run as a task")
        return asked.task is not None

    async def _create(self, call: Call, asked: ToolCall, peer: McpPeer) -> Outcome | bytes:
        ttl, key = None, _key(asked)
        if not peer.version.stateless and isinstance(asked.task, dict):
            milliseconds = asked.task.get("ttl")
            if is_number(milliseconds):
                # An integer may be too large for a float.
                ttl = min(milliseconds, _MAX_TTL) / 1000
        made = await self.service.create(call, ttl=ttl, key=key)
        if not isinstance(made, TaskRecord):
            return made
        if peer.version.stateless:
            result: JsonObject = {"resultType": "task", **_members(made, peer.version)}
        else:
            result = {"task": _members(made, peer.version)}
        return self._server_info.encode_result(result, peer.version)

    async def _get(self, peer: McpPeer, raw: Params) -> bytes:
        task = await self._find(peer, raw)
        return self._server_info.encode_result(await self.task_json(task, peer), peer.version)

    async def task_json(self, task: TaskRecord, peer: McpPeer) -> JsonObject:
        """Return a task as shown by `tasks/get` and the extension's notifications."""
        members = _members(task, peer.version)
        if not peer.version.stateless:
            return members
        if task.state == "completed":
            members["result"] = msgspec.Raw(await self._tool_result(task, peer))
        elif task.state == "failed":
            members["error"] = _rpc_error(task)
        elif task.state == "input_required":
            members["inputRequests"] = task.questions
        return members

    async def _update(self, peer: McpPeer, raw: Params) -> bytes:
        asked = read_params(raw, TaskUpdate)
        if await self.service.answer(asked.id, _owner(peer), asked.responses) is None:
            raise _unknown()
        return self._server_info.encode_result({}, peer.version)

    async def _cancel(self, peer: McpPeer, raw: Params) -> bytes:
        before = await self._find(peer, raw)
        if not peer.version.stateless and before.is_final:
            raise RpcError(INVALID_PARAMS, f"The task is already {before.state}")
        task = await self.service.cancel(before.id, before.owner) or before
        result = {} if peer.version.stateless else _members(task, peer.version)
        return self._server_info.encode_result(result, peer.version)

    async def _result(self, peer: McpPeer, raw: Params) -> bytes:
        """Wait for a task to end, and ask the client its questions in the meantime."""
        task = await self._find(peer, raw)
        asked: set[str] = set()
        while not (task.is_final or peer.cancelled):
            for key in task.questions.keys() - asked:
                asked.add(key)
                await self._ask(task, key, peer)
            found = await self.service.wait(
                task.id,
                task.owner,
                lambda task: task.is_final or bool(task.questions.keys() - asked) or peer.cancelled,
                _WAIT_SECONDS,
            )
            if found is None:
                raise _unknown()
            task = found
        if task.state != "completed":
            error = _rpc_error(task)
            raise RpcError(error["code"], error["message"], error.get("data"))
        return await self._tool_result(task, peer)

    async def _ask(self, task: TaskRecord, key: str, peer: McpPeer) -> None:
        """Ask the client a task's question, and pass the answer to the task."""
        question = task.questions[key]
        if not peer.client.can_answer(Question(question.method, question.params)):
            return  # Another client may answer it.
        related = {RELATED_TASK: {"taskId": task.id}}
        params = {**question.params, "_meta": {**question.params.get("_meta", {}), **related}}
        answer = msgspec.json.decode(await peer.send_request(question.method, params))
        await self.service.answer(task.id, task.owner, {key: answer})

    async def _list(self, peer: McpPeer, raw: Params) -> bytes:
        after = read_params(raw, PageParams).cursor
        owner = _owner(peer)
        if not owner:
            raise RpcError(METHOD_NOT_FOUND, "Method not found: tasks/list")
        if after is not None and await self.service.get(after, owner) is None:
            raise RpcError(INVALID_PARAMS, "Invalid cursor")
        tasks = await self.service.page(owner, after, _PAGE_SIZE)
        result: JsonObject = {"tasks": [_members(task, peer.version) for task in tasks]}
        if len(tasks) == _PAGE_SIZE:
            result["nextCursor"] = tasks[-1].id
        return self._server_info.encode_result(result, peer.version)

    async def _find(self, peer: McpPeer, raw: Params) -> TaskRecord:
        task = await self.service.get(read_params(raw, TaskId).id, _owner(peer))
        if task is None:
            raise _unknown()
        return task

    async def _tool_result(self, task: TaskRecord, peer: McpPeer) -> bytes:
        """Return the result of the call itself."""
        reply, version = task.reply(), peer.version
        tool = self.registry.tools.get(task.tool)
        contract = self.registry.contract if tool is None else tool.contract
        shape = reply.shape or RESULT
        if tool is not None:
            shape = tool.shape_of_stored(shape)
            if tool.budget is not None:
                # The call whose reply is being sent.
                call = Call(task.tool, task.arguments, peer, wire="mcp", caller=peer.caller)
                call.tool, call.shape, call.runtime = tool, shape, self._runtime
                reply = await self._fitted(reply, call)
        if not version.stateless:
            reply = msgspec.structs.replace(
                reply, meta={**reply.meta, RELATED_TASK: {"taskId": task.id}}
            )
        server_info = self._server_info.json if version.stateless else b""
        pieces = dialect.write_in_pieces(reply, shape, contract, version, server_info=server_info)
        return b"".join(pieces)

    async def _run_and_fit(self, run: Handler, call: Call) -> Outcome:
        outcome = await run(call)
        return await self._fitted(outcome, call) if isinstance(outcome, Reply) else outcome

    async def _fitted(self, reply: Reply[Any], call: Call) -> Reply[Any]:
        """Return a stored reply, fitted to its tool's budget."""
        from ..calls.fitted_reply import fitted_reply

        return await fitted_reply(reply, call)


def missing_tasks(message: str) -> RpcError:
    """Return the error for a client that did not declare the extension."""
    data: JsonObject = {"requiredCapabilities": {"extensions": {TASKS: {}}}}
    return RpcError(MISSING_CAPABILITY, message, data)


def _owner(peer: McpPeer) -> str:
    return owner_of(peer.describe_request("mcp").user)


def _key(asked: ToolCall) -> str | None:
    meta = asked.meta
    return None if isinstance(meta, msgspec.UnsetType) else meta.idempotency_key


def _unknown() -> RpcError:
    # The id may be someone else's secret, so it is not repeated.
    return RpcError(INVALID_PARAMS, "Unknown task: it never existed, has expired, or is not yours")


def _members(task: TaskRecord, version: Version) -> JsonObject:
    ttl = None if task.ttl is None else int(task.ttl * 1000)
    suffix = "Ms" if version.stateless else ""
    return task_members(task) | {"ttl" + suffix: ttl, "pollInterval" + suffix: POLL_MS}


def _rpc_error(task: TaskRecord) -> JsonObject:
    error = task.reply().error or Error("UNKNOWN_ERROR", "Unknown error")
    data: JsonObject = {"code": error.code, "details": error.details, "hint": error.hint}
    return {
        "code": error.row.rpc or INTERNAL_ERROR,
        "message": error.message,
        "data": {name: value for name, value in data.items() if value is not None},
    }


MAX_TASKS = 100
"""The maximum number of tasks in one subscription; further tasks send no notifications."""


class TaskFeed:
    """Sends a client the state of its tasks: once at the start, then on each change."""

    def __init__(self, methods: TaskMethods, tasks: list[TaskRecord], peer: McpPeer) -> None:
        self.ids = tuple(task.id for task in tasks)
        self._methods = methods
        self._peer = peer
        self._owners = {task.id: task.owner for task in tasks}
        self._sent: JsonObject = {}
        self._sending: set[asyncio.Task[None]] = set()

    def begin(self, send: Callable[[bytes], None], meta: JsonObject) -> Callable[[], object]:
        """Start sending; return a function that stops it."""
        return spawn(self._send_changes(send, meta), self._sending).cancel

    async def _send_changes(self, send: Callable[[bytes], None], meta: JsonObject) -> None:
        service = self._methods.service
        with service.changes(self._owners) as changed:
            while True:
                changed.clear()
                with suppress(Unavailable):  # Already logged; the next change tries again.
                    for id, owner in self._owners.items():
                        task = await service.get(id, owner)
                        mark = task and (task.state, task.message, tuple(task.questions))
                        if task is not None and self._sent.get(id) != mark:
                            self._sent[id] = mark
                            shown = await self._methods.task_json(task, self._peer)
                            params = {**shown, "_meta": meta}
                            send(notification_frame("notifications/tasks", params))
                await changed.wait()


async def open_feed(methods: TaskMethods, ids: tuple[str, ...], peer: McpPeer) -> TaskFeed:
    """Return a feed of the tasks that belong to the client."""
    owner = _owner(peer)
    found = [await methods.service.get(id, owner) for id in dict.fromkeys(ids[:MAX_TASKS])]
    return TaskFeed(methods, [task for task in found if task is not None], peer)
