"""The users of mcp-use's benchmark: each calls `benchmark_echo` nine times for one `tools/list`.

Clients of 2025-06-18 open a session first, and keep it; clients of 2026-07-28 need none.
"""

from __future__ import annotations

from typing import Any

from .contenders import OLD
from .http_answers import message_in
from .steps import Send, User, check_initialized, check_listed, expect, post, text_of

CALLS = 9
TOOL = "benchmark_echo"
_VERSION_KEY = "io.modelcontextprotocol/protocolVersion"
_INFO_KEY = "io.modelcontextprotocol/clientInfo"
_CAPABILITIES_KEY = "io.modelcontextprotocol/clientCapabilities"
_CLIENT = {"name": "bench", "version": "1.0"}


def echo_user(port: int, number: int, version: str) -> User:
    """Send the requests of one user."""
    headers, meta = yield from (_opened(port) if version == OLD else _without_session(version))
    message = f"hello from user {number}"
    # Two requests of one connection in flight never share an id, because one follows the other.
    listing = _request(1, "tools/list", meta)
    calling = _request(2, "tools/call", {"name": TOOL, "arguments": {"message": message}, **meta})
    if version == OLD:
        lists, calls = post(port, listing, headers), post(port, calling, headers)
    else:
        lists = post(port, listing, {**headers, "Mcp-Method": "tools/list"})
        calls = post(port, calling, {**headers, "Mcp-Method": "tools/call", "Mcp-Name": TOOL})
    while True:
        answer = yield Send(lists, "tools/list")
        check_listed("tools/list", 1, {TOOL}, answer, message_in(answer))
        for _ in range(CALLS):
            answer = yield Send(calls, TOOL)
            text = text_of(TOOL, 2, answer, message_in(answer))
            expect(text == message, TOOL, answer, f"the text {message!r}")


def _opened(port: int) -> Any:
    """Open a session, and return the headers and the `_meta` of the requests in it."""
    params = {"protocolVersion": OLD, "capabilities": {}, "clientInfo": _CLIENT}
    opened = yield Send(post(port, _request(0, "initialize", params), {}), "initialize")
    check_initialized("initialize", 0, opened, message_in(opened))
    headers = {"MCP-Protocol-Version": OLD}
    if opened.session:
        headers["Mcp-Session-Id"] = opened.session.decode()
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    noted = yield Send(post(port, note, headers), "initialized", counted=False)
    expect(noted.status in (200, 202, 204), "initialized", noted, "the status 202")
    return headers, {}


def _without_session(version: str) -> Any:
    """The headers and the `_meta` of requests that are complete in themselves."""
    yield from ()
    meta = {_VERSION_KEY: version, _INFO_KEY: _CLIENT, _CAPABILITIES_KEY: {}}
    return {"MCP-Protocol-Version": version}, {"_meta": meta}


def _request(id: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}
