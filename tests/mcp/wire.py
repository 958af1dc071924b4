"""A client that shows every message a server sends, in either era, over stdio or HTTP."""

from __future__ import annotations

import http.client
import json
import subprocess
import sys
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple, Protocol, TypeAlias
from urllib.parse import urlsplit

from tests.mcp.samples import sample

Json: TypeAlias = Any
BOUND = 30.0
"""Seconds after which what should have come will not."""
STATELESS = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
CAPABILITIES = {"elicitation": {}, "sampling": {}, "roots": {"listChanged": True}}
CLIENT = {"name": "judge", "version": "1.0.0"}


class Heard(NamedTuple):
    """A message of the server's, and the method of the request that it answers."""

    message: Json
    method: str | None


class Line(Protocol):
    """One way to a server."""

    def exchange(self, text: bytes, version: str) -> Iterator[Json]:
        """Send a message, and give what comes until it is answered."""

    def tell(self, text: bytes, version: str) -> None:
        """Send what gets no answer."""


class StdioLine:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in = process.stdin
        self._out = process.stdout

    def exchange(self, text: bytes, version: str) -> Iterator[Json]:
        self.tell(text, version)
        while True:
            line = self._out.readline()
            assert line, f"no answer to {text[:200]!r}"
            found = json.loads(line)
            yield found
            if isinstance(found, list) or "method" not in found:
                return

    def tell(self, text: bytes, version: str) -> None:
        self._in.write(text + b"\n")
        self._in.flush()

    def rest(self) -> list[Json]:
        """Hang up, and give what came after the last answer that was waited for."""
        self._in.close()
        return [json.loads(line) for line in self._out]

    def close(self) -> None:
        self._in.close()
        self._out.close()


class HttpLine:
    def __init__(self, url: str) -> None:
        self._url = urlsplit(url)
        self._session: str | None = None

    def exchange(self, text: bytes, version: str) -> Iterator[Json]:
        connection = self._connect()
        try:
            response = self._post(connection, text, version)
            self._session = response.headers.get("Mcp-Session-Id", self._session)
            if response.headers["Content-Type"] == "application/json":
                yield json.loads(response.read())
                return
            assert response.headers["Content-Type"] == "text/event-stream"
            yield from _frames(response)
        finally:
            connection.close()

    def listen(self, text: bytes, version: str) -> Iterator[Json]:
        """The stream for what is said unasked; open once its first frame, or None, has come."""
        connection = self._connect()
        try:
            if version == STATELESS:
                response = self._post(connection, text, version)
            else:
                connection.request("GET", self._url.path, headers=self._headers(b"", version))
                response = connection.getresponse()
                yield None
            assert response.headers["Content-Type"] == "text/event-stream"
            yield from _frames(response)
        finally:
            connection.close()

    def tell(self, text: bytes, version: str) -> None:
        connection = self._connect()
        try:
            assert self._post(connection, text, version).status == 202
        finally:
            connection.close()

    def end(self) -> None:
        """End the session, if there is one."""
        if self._session is None:
            return
        connection = self._connect()
        try:
            connection.request("DELETE", self._url.path, headers={"Mcp-Session-Id": self._session})
            assert connection.getresponse().status == 204
        finally:
            connection.close()

    def _connect(self) -> http.client.HTTPConnection:
        assert self._url.hostname is not None
        return http.client.HTTPConnection(self._url.hostname, self._url.port, timeout=BOUND)

    def _post(
        self, connection: http.client.HTTPConnection, text: bytes, version: str
    ) -> http.client.HTTPResponse:
        connection.request("POST", self._url.path, text, self._headers(text, version))
        return connection.getresponse()

    def _headers(self, text: bytes, version: str) -> dict[str, str]:
        headers = {
            "Content-Type": "application/json",
            "Accept": "application/json, text/event-stream",
        }
        if self._session is not None:
            headers["Mcp-Session-Id"] = self._session
        if version != STATELESS:
            return headers | ({"MCP-Protocol-Version": version} if self._session else {})
        try:
            message = json.loads(text)
            named = message["params"].get("name", message["params"].get("uri"))
            routing = {"Mcp-Method": message["method"]} | ({"Mcp-Name": named} if named else {})
        except (ValueError, LookupError, TypeError):
            routing = {}
        return headers | {"MCP-Protocol-Version": version} | routing


def _frames(response: http.client.HTTPResponse) -> Iterator[Json]:
    for line in response:
        if line.startswith(b"data:") and line[5:].strip():
            yield json.loads(line[5:])


class Client:
    """Speaks one version; answers what it is asked, and keeps all that it hears."""

    def __init__(self, line: Line, version: str, capabilities: Json = CAPABILITIES) -> None:
        self.line = line
        self.version = version
        self.heard: list[Heard] = []
        self._capabilities = capabilities
        self._last = 0

    def open(self) -> Json:
        if self.version == STATELESS:
            return self.ask("server/discover")
        greeting = {"protocolVersion": self.version, "clientInfo": CLIENT}
        found = self.ask("initialize", greeting | {"capabilities": self._capabilities})
        self.tell({"method": "notifications/initialized"})
        return found

    def ask(self, method: str, params: Json = None, *, meta: Json = None) -> Json:
        """The response, after as many rounds as the server wants to ask."""
        params = dict(params or {})
        while True:
            response = self._once(method, params, meta or {})
            result = response.get("result", {})
            if result.get("resultType") != "input_required":
                return response
            asked = result.get("inputRequests", {})
            params["inputResponses"] = {key: answer(each) for key, each in asked.items()}
            params["requestState"] = result["requestState"]

    @property
    def last_id(self) -> int:
        return self._last

    def start(self, method: str, params: Json, *, meta: Json) -> Iterator[Json]:
        """What comes for a request that is not waited for."""
        return self.line.exchange(self._request(method, params, meta), self.version)

    def send(self, text: bytes) -> Json:
        """The answer to a text that need not be a message at all."""
        response = None
        for message in self.line.exchange(text, self.version):
            for each in message if isinstance(message, list) else [message]:
                self.heard.append(Heard(each, None))
                response = each
        return response

    def batch(self, *requests: tuple[str, Json]) -> Json:
        """The answers to several requests in one message."""
        methods: dict[int, str] = {}
        messages = []
        for method, params in requests:
            self._last += 1
            methods[self._last] = method
            message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
            messages.append(message)
        (found,) = self.line.exchange(json.dumps(messages).encode(), self.version)
        for each in found if isinstance(found, list) else [found]:
            self.heard.append(Heard(each, methods.get(each.get("id"))))
        return found

    def tell(self, message: Json) -> None:
        self.line.tell(json.dumps({"jsonrpc": "2.0", **message}).encode(), self.version)

    def listen(self, wanted: Json, provoke: Callable[[], object], count: int) -> None:
        """Hear so many notifications of what *provoke* changes, on a stream if there are any."""
        text = self._request("subscriptions/listen", {"notifications": wanted}, {})
        if isinstance(self.line, HttpLine):
            stream = self.line.listen(text, self.version)
            opened = next(stream)
            provoke()
            frames = [next(stream) for _ in range(count)]
            self.heard += [Heard(frame, None) for frame in [opened, *frames] if frame is not None]
            assert all("method" in frame for frame in frames)
            return
        if self.version == STATELESS:
            self.line.tell(text, self.version)
        before = len(self.heard)
        provoke()
        told = [message for message, _ in self.heard[before:] if "method" in message]
        assert len(told) == count + (self.version == STATELESS)

    def pages(self, method: str, key: str) -> list[Json]:
        """All items of a list, page by page."""
        found: list[Json] = []
        cursor: Json = {}
        while True:
            result = self.ask(method, cursor)["result"]
            found += result[key]
            if "nextCursor" not in result:
                return found
            cursor = {"cursor": result["nextCursor"]}

    def _request(self, method: str, params: Json, meta: Json) -> bytes:
        self._last += 1
        if self.version == STATELESS:
            meta = meta | {
                PREFIX + "protocolVersion": STATELESS,
                PREFIX + "clientCapabilities": self._capabilities,
                PREFIX + "clientInfo": CLIENT,
            }
        params = params | ({"_meta": meta} if meta else {})
        message = {"jsonrpc": "2.0", "id": self._last, "method": method, "params": params}
        return json.dumps(message).encode()

    def _once(self, method: str, params: Json, meta: Json) -> Json:
        text = self._request(method, params, meta)
        for found in self.line.exchange(text, self.version):
            answered = "method" not in found
            self.heard.append(Heard(found, method if answered else None))
            if answered:
                assert found.get("id", self._last) == self._last
                return found
            if "id" in found:
                self.tell({"id": found["id"], "result": answer(found)})
        raise AssertionError(f"no answer to {method}")


def answer(asked: Json) -> Json:
    """What a helpful user, model or client says."""
    match asked["method"]:
        case "elicitation/create":
            content = sample(asked["params"]["requestedSchema"])
            return {"action": "accept", "content": content}
        case "sampling/createMessage":
            said = {"type": "text", "text": "Paris"}
            return {"role": "assistant", "content": said, "model": "m", "stopReason": "endTurn"}
        case _:
            return {"roots": [{"uri": "file:///home", "name": "home"}]}


@contextmanager
def over_stdio(path: Path, version: str) -> Iterator[Client]:
    """A client of *path*, which keeps whatever comes until the server ends."""
    process = subprocess.Popen(
        [sys.executable, str(path), "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    watchdog = threading.Timer(2 * BOUND, process.kill)
    watchdog.start()
    line = StdioLine(process)
    client = Client(line, version)
    try:
        yield client
        client.heard += [Heard(message, None) for message in line.rest()]
        assert process.wait(BOUND) == 0
    finally:
        watchdog.cancel()
        process.kill()
        line.close()
        process.wait()


@contextmanager
def over_http(url: str, version: str) -> Iterator[Client]:
    line = HttpLine(f"{url}/mcp")
    yield Client(line, version)
    line.end()
