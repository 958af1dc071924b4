"""An MCP session whose requests go to any of several hosts."""

from __future__ import annotations

import json
from collections.abc import Iterator
from contextlib import contextmanager
from math import inf
from time import monotonic
from typing import Any

import httpx

VERSION = "2025-11-25"
JSON, EVENTS = "application/json", "text/event-stream"


class Session:
    """Opened at the server at *url*; later requests say where they go."""

    def __init__(self, url: str, seconds: float = 60) -> None:
        # Each request has a connection of its own, which a proxy may send to any host.
        self._client = httpx.Client(
            timeout=seconds, verify=False, limits=httpx.Limits(max_keepalive_connections=0)
        )
        self.headers = {"Accept": f"{JSON}, {EVENTS}", "MCP-Protocol-Version": VERSION}
        opened = self.post(
            url,
            "initialize",
            protocolVersion=VERSION,
            capabilities={"elicitation": {}},
            clientInfo={"name": "test", "version": "1"},
        )
        assert opened.status_code == 200, opened.text
        self.headers["Mcp-Session-Id"] = opened.headers["Mcp-Session-Id"]

    def post(self, url: str, method: str, id: int = 1, /, **params: Any) -> httpx.Response:
        return self.send(url, {"id": id, "method": method, "params": params})

    def notify(self, url: str, method: str, **params: Any) -> httpx.Response:
        return self.send(url, {"method": method, "params": params})

    def send(self, url: str, message: dict[str, Any]) -> httpx.Response:
        message = {"jsonrpc": "2.0", **message}
        return self._client.post(f"{url}/mcp", json=message, headers=self.headers)

    def call(self, url: str, tool: str, /, **arguments: Any) -> Any:
        """Call a tool; return its result's data."""
        response = self.post(url, "tools/call", name=tool, arguments=arguments)
        assert response.status_code == 200, response.text
        return frames_of(response.text)[-1]["result"].get("structuredContent", {}).get("result")

    def tools(self, url: str) -> set[str]:
        response = self.post(url, "tools/list")
        return {tool["name"] for tool in frames_of(response.text)[-1]["result"]["tools"]}

    def ping(self, url: str) -> httpx.Response:
        return self.post(url, "ping")

    def status(self, url: str) -> int:
        """The status of a ping."""
        return self.ping(url).status_code

    def end(self, url: str) -> httpx.Response:
        return self._client.delete(f"{url}/mcp", headers=self.headers)

    def close(self) -> None:
        """Close the client's connections; the session goes on."""
        self._client.close()

    @contextmanager
    def calling(self, url: str, id: int, tool: str, **arguments: Any) -> Iterator[Events]:
        """Call a tool whose response is an event stream from the start."""
        params = {"name": tool, "arguments": arguments}
        message = {"jsonrpc": "2.0", "id": id, "method": "tools/call", "params": params}
        headers = {**self.headers, "Accept": f"{EVENTS}, {JSON}"}
        with self._client.stream("POST", f"{url}/mcp", json=message, headers=headers) as response:
            yield Events(response)

    @contextmanager
    def listening(self, url: str, last_event: str | None = None) -> Iterator[Events]:
        """Open a GET stream, or resume a stream."""
        resumed = {} if last_event is None else {"Last-Event-ID": last_event}
        headers = {**self.headers, **resumed, "Accept": EVENTS}
        with self._client.stream("GET", f"{url}/mcp", headers=headers) as response:
            assert response.status_code == 200, response.read()
            yield Events(response)


class Events:
    """The events of a stream."""

    def __init__(self, response: httpx.Response) -> None:
        self._lines = response.iter_lines()
        self.last_id: str | None = None
        self.ends = inf
        """When to stop reading, by the monotonic clock: comments keep a stream open."""

    def __iter__(self) -> Iterator[Any]:
        """Yield the messages up to the end of the stream."""
        for line in self._lines:
            if monotonic() > self.ends:
                raise httpx.ReadTimeout("the stream has no end")
            name, _, value = line.partition(": ")
            if name == "id":
                self.last_id = value
            elif name == "data" and value.strip():
                yield json.loads(value)

    def next(self) -> Any:
        return next(iter(self))

    def read_id(self) -> str:
        """Read up to the first event with an id."""
        for line in self._lines:
            if line.startswith("id: "):
                return line.removeprefix("id: ")
        raise AssertionError("no event has an id")


def frames_of(text: str) -> list[Any]:
    """The messages in a response of JSON or of events."""
    if text.startswith("{"):
        return [json.loads(text)]
    data = [line.removeprefix("data: ") for line in text.splitlines() if line.startswith("data: ")]
    return [json.loads(each) for each in data if each.strip()]
