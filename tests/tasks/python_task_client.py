"""The extension of tasks for the official Python client, which leaves it to its users."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Sequence
from typing import Any, ClassVar, Literal

from mcp.client.extension import ClaimContext, ClientExtension, ResultClaim
from mcp_types import CallToolResult, Request, Result
from pydantic import Field
from tests.tasks.task_client import FINAL, TASKS


class CreatedTask(Result):
    result_type: Literal["task"] = Field(alias="resultType")
    task_id: str = Field(alias="taskId")


class _TaskRequest(Request[dict[str, Any], str]):
    name_param: ClassVar[str | None] = "taskId"


class _AnyResult(Result, extra="allow"):
    pass


class TasksExtension(ClientExtension):
    """Waits for each task; *on_task* sees each state of it, and may answer or cancel it."""

    identifier = TASKS

    def __init__(self, on_task: Callable[[TaskControl, dict[str, Any]], Awaitable[None]]) -> None:
        self._on_task = on_task

    def claims(self) -> Sequence[ResultClaim[Any]]:
        return [ResultClaim(result_type="task", model=CreatedTask, resolve=self._resolve)]

    async def _resolve(self, created: CreatedTask, context: ClaimContext) -> CallToolResult:
        control = TaskControl(context, created.task_id)
        async with asyncio.timeout(60):
            while True:
                task = await control.send("tasks/get")
                await self._on_task(control, task)
                if task["status"] in FINAL:
                    break
                await asyncio.sleep(0.01)
        text = {"content": [{"type": "text", "text": task["status"]}], "isError": True}
        return CallToolResult.model_validate(task.get("result") or text)


class TaskControl:
    """Sends the requests about one task."""

    def __init__(self, context: ClaimContext, id: str) -> None:
        self._session = context.session
        self._id = id

    async def send(self, method: str, **params: Any) -> dict[str, Any]:
        request = _TaskRequest(method=method, params={"taskId": self._id, **params})
        result = await self._session.send_request(request, _AnyResult)
        return result.model_dump(by_alias=True)
