"""A client of tasks that calls an app in this process, in both eras of MCP."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Coroutine
from typing import Any

import httpx

from answerback import App

PREFIX = "io.modelcontextprotocol/"
TASKS = PREFIX + "tasks"
DECLARED: dict[str, Any] = {"elicitation": {}, "extensions": {TASKS: {}}}
FINAL = ("completed", "failed", "cancelled")


class RpcFailure(Exception):
    def __init__(self, error: dict[str, Any]) -> None:
        super().__init__(error["message"])
        self.code: int = error["code"]
        self.data: Any = error.get("data")


class TaskClient:
    """Sends stateless requests; *token* is sent as a bearer token."""

    def __init__(self, http: httpx.AsyncClient, token: str | None = None) -> None:
        self._http = http
        self._token = token
        self.capabilities: dict[str, Any] = DECLARED

    def of(self, token: str) -> TaskClient:
        """The client of another user."""
        return TaskClient(self._http, token)

    async def request(self, method: str, meta: dict[str, Any] | None = None, **params: Any) -> Any:
        params["_meta"] = {
            PREFIX + "protocolVersion": "2026-07-28",
            PREFIX + "clientCapabilities": self.capabilities,
            **(meta or {}),
        }
        headers = {"MCP-Protocol-Version": "2026-07-28", "Mcp-Method": method}
        if (name := params.get("name") or params.get("taskId") or params.get("uri")) is not None:
            headers["Mcp-Name"] = name
        return await self._post({"method": method, "params": params}, headers)

    async def old_request(self, method: str, version: str = "2025-11-25", **params: Any) -> Any:
        """A request of a stateful version, without a session."""
        headers = {"MCP-Protocol-Version": version}
        return await self._post({"method": method, "params": params}, headers)

    async def _post(self, message: dict[str, Any], headers: dict[str, str]) -> Any:
        if self._token is not None:
            headers["Authorization"] = f"Bearer {self._token}"
        headers["Accept"] = "application/json, text/event-stream"
        message = {"jsonrpc": "2.0", "id": 1, **message}
        response = await self._http.post("/mcp", json=message, headers=headers)
        answer = response.json()
        if "error" in answer:
            raise RpcFailure(answer["error"])
        return answer["result"]

    async def get_json(self, path: str) -> Any:
        return (await self._http.get(path)).json()

    async def call(self, name: str, /, **arguments: Any) -> Any:
        return await self.request("tools/call", name=name, arguments=arguments)

    async def create(self, name: str, /, **arguments: Any) -> str:
        """Call a tool that becomes a task; returns the id of the task."""
        result = await self.call(name, **arguments)
        assert result["resultType"] == "task", result
        id: str = result["taskId"]
        return id

    async def get(self, id: str) -> Any:
        return await self.request("tasks/get", taskId=id)

    async def until(self, id: str, *states: str, seconds: float = 60) -> Any:
        """The task, once it is in one of these states, or has ended."""
        async with asyncio.timeout(seconds):
            while (task := await self.get(id))["status"] not in (*states, *FINAL):
                await asyncio.sleep(0.005)
        return task


def run_with(app: App, steps: Callable[[TaskClient], Coroutine[Any, Any, Any]]) -> Any:
    """Run *steps* with a client of *app*; the app is started, and stopped at the end."""

    async def run() -> Any:
        asgi = app.asgi()
        transport = httpx.ASGITransport(asgi)
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            assert await asgi.start() is None
            try:
                return await steps(TaskClient(http))
            finally:
                await asgi.stop()

    return asyncio.run(asyncio.wait_for(run(), 120))
