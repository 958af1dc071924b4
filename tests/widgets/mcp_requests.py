"""Sends MCP requests to an app over HTTP in memory, in either era."""

from __future__ import annotations

from typing import Any

import httpx

from answerback import App
from answerback.server.asgi.application import AsgiApp

PREFIX = "io.modelcontextprotocol/"
STATEFUL = ("2024-11-05", "2025-03-26", "2025-06-18", "2025-11-25")
STATELESS = "2026-07-28"
VERSIONS = (*STATEFUL, STATELESS)
WITH_META = ("2025-06-18", "2025-11-25", STATELESS)
"""The versions that have `_meta` on tools, resources and their contents."""


async def ask(
    app: App,
    method: str,
    params: dict[str, Any] | None = None,
    *,
    version: str = STATELESS,
    client: str = "test",
    agent: str = "python",
    headers: dict[str, str] | None = None,
    served: AsgiApp | None = None,
) -> Any:
    """The whole response of one request; a stateful client opens a session before it."""
    sent = {"accept": "application/json, text/event-stream", "user-agent": agent, **(headers or {})}
    transport = httpx.ASGITransport(served or app.asgi())
    async with httpx.AsyncClient(
        transport=transport, base_url="http://127.0.0.1", headers=sent, timeout=60
    ) as http:
        body: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": method}
        body["params"] = dict(params or {})
        if version != STATELESS:
            http.headers.update(await open_session(http, version, client))
            return (await http.post("/mcp", json=body)).json()
        body["params"]["_meta"] = {
            PREFIX + "protocolVersion": version,
            PREFIX + "clientCapabilities": {},
            PREFIX + "clientInfo": {"name": client, "version": "1"},
        }
        http.headers.update({"mcp-protocol-version": version, "mcp-method": method})
        name = body["params"].get("name") or body["params"].get("uri")
        if name:
            http.headers["mcp-name"] = name
        return (await http.post("/mcp", json=body)).json()


async def open_session(http: httpx.AsyncClient, version: str, client: str) -> dict[str, str]:
    """The headers of a session."""
    hello = {
        "protocolVersion": version,
        "capabilities": {},
        "clientInfo": {"name": client, "version": "1"},
    }
    body: dict[str, Any] = {"jsonrpc": "2.0", "id": 0, "method": "initialize", "params": hello}
    answer = await http.post("/mcp", json=body)
    session = {"mcp-session-id": answer.headers["mcp-session-id"]}
    return session | {"mcp-protocol-version": version}


async def result(app: App, method: str, params: dict[str, Any] | None = None, **how: Any) -> Any:
    """The result of a request that succeeds."""
    return (await ask(app, method, params, **how))["result"]


async def tool(app: App, name: str, **how: Any) -> Any:
    """The entry of a tool in `tools/list`."""
    tools = (await result(app, "tools/list", **how))["tools"]
    return next(each for each in tools if each["name"] == name)


async def widget(app: App, name: str, **how: Any) -> Any:
    """The entry of a widget in `resources/list`."""
    resources = (await result(app, "resources/list", **how))["resources"]
    return next(each for each in resources if each["uri"] == uri_of(name))


async def content(app: App, name: str, **how: Any) -> Any:
    """The content of a widget in `resources/read`."""
    read = await result(app, "resources/read", {"uri": uri_of(name)}, **how)
    return read["contents"][0]


def uri_of(name: str) -> str:
    return f"ui://widget/{name}.html"
