"""A client that records every message of a server, in either era, over stdio or HTTP."""

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

from tests.protocol.schema_samples import sample

Json: TypeAlias = Any
TIMEOUT = 30.0
"""Seconds to wait for the server before the test fails."""
STATELESS = "2026-07-28"
PREFIX = "io.modelcontextprotocol/"
CAPABILITIES = {"elicitation": {}, "sampling": {}, "roots": {"listChanged": True}}
CLIENT = {"name": "recorder", "version": "1.0.0"}


class Received(NamedTuple):
    """A message of the server; *method* is that of the request, if it is a response."""

    message: Json
    method: str | None


class Transport(Protocol):
    """Sends messages to a server and receives its messages."""

    def exchange(self, text: bytes, version: str) -> Iterator[Json]:
        """Send a message, and yield the messages up to its response."""

    def send(self, text: bytes, version: str) -> None:
        """Send a message that gets no response."""


class StdioTransport:
    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        assert process.stdin is not None
        assert process.stdout is not None
        self._in = process.stdin
        self._out = process.stdout

    def exchange(self, text: bytes, version: str) -> Iterator[Json]:
        self.send(text, version)
        while True:
            line = self._out.readline()
            assert line, f"no response to {text[:200]!r}"
            message = json.loads(line)
            yield message
            if isinstance(message, list) or "method" not in message:
                return

    def send(self, text: bytes, version: str) -> None:
        self._in.write(text + b"\n")
        self._in.flush()

    def close_and_read(self) -> list[Json]:
        """Close stdin, and return the messages that the server still sends."""
        self._in.close()
        return [json.loads(line) for line in self._out]

    def close(self) -> None:
        self._in.close()
        self._out.close()


class HttpTransport:
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

    def open_stream(self, text: bytes, version: str) -> Iterator[Json]:
        """Open a stream of notifications; in the stateful era its first item is None."""
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

    def send(self, text: bytes, version: str) -> None:
        connection = self._connect()
        try:
            assert self._post(connection, text, version).status == 202
        finally:
            connection.close()

    def end(self) -> None:
        """End the session, if the server opened one."""
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
        return http.client.HTTPConnection(self._url.hostname, self._url.port, timeout=TIMEOUT)

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
            name = message["params"].get("name", message["params"].get("uri"))
            mirrored = {"Mcp-Method": message["method"]} | ({"Mcp-Name": name} if name else {})
        except (ValueError, LookupError, TypeError):
            mirrored = {}
        return headers | {"MCP-Protocol-Version": version} | mirrored


def _frames(response: http.client.HTTPResponse) -> Iterator[Json]:
    for line in response:
        if line.startswith(b"data:") and line[5:].strip():
            yield json.loads(line[5:])


class Client:
    """A client of one version; it answers questions and records every message it receives."""

    def __init__(
        self, transport: Transport, version: str, capabilities: Json = CAPABILITIES
    ) -> None:
        self.transport = transport
        self.version = version
        self.received: list[Received] = []
        self._capabilities = capabilities
        self._last_id = 0

    def open(self) -> Json:
        """Initialize a session, or discover the server in the stateless era."""
        if self.version == STATELESS:
            return self.request("server/discover")
        params = {"protocolVersion": self.version, "clientInfo": CLIENT}
        response = self.request("initialize", params | {"capabilities": self._capabilities})
        self.notify({"method": "notifications/initialized"})
        return response

    def request(self, method: str, params: Json = None, *, meta: Json = None) -> Json:
        """Send a request, answer the questions of the server, and return the response."""
        params = dict(params or {})
        while True:
            response = self._request_once(method, params, meta or {})
            result = response.get("result", {})
            if result.get("resultType") != "input_required":
                return response
            questions = result.get("inputRequests", {})
            params["inputResponses"] = {key: answer_to(each) for key, each in questions.items()}
            params["requestState"] = result["requestState"]

    @property
    def last_id(self) -> int:
        return self._last_id

    def start(self, method: str, params: Json, *, meta: Json) -> Iterator[Json]:
        """Send a request, and return its messages to be read one by one."""
        return self.transport.exchange(self._request_text(method, params, meta), self.version)

    def send_text(self, text: bytes) -> Json:
        """Send any text, and return the last message that the server sends for it."""
        response = None
        for message in self.transport.exchange(text, self.version):
            for each in message if isinstance(message, list) else [message]:
                self.received.append(Received(each, None))
                response = each
        return response

    def batch(self, *requests: tuple[str, Json]) -> Json:
        """Send several requests as a batch, and return the responses."""
        methods: dict[int, str] = {}
        messages = []
        for method, params in requests:
            self._last_id += 1
            methods[self._last_id] = method
            message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
            messages.append(message)
        (responses,) = self.transport.exchange(json.dumps(messages).encode(), self.version)
        for each in responses if isinstance(responses, list) else [responses]:
            self.received.append(Received(each, methods.get(each.get("id"))))
        return responses

    def notify(self, message: Json) -> None:
        """Send a notification, or a response to the server's request."""
        self.transport.send(json.dumps({"jsonrpc": "2.0", **message}).encode(), self.version)

    def subscribe(self, changes: Json, provoke: Callable[[], object], count: int) -> None:
        """Receive *count* notifications of the changes that *provoke* makes."""
        text = self._request_text("subscriptions/listen", {"notifications": changes}, {})
        if isinstance(self.transport, HttpTransport):
            stream = self.transport.open_stream(text, self.version)
            opened = next(stream)
            provoke()
            frames = [next(stream) for _ in range(count)]
            self.received += [
                Received(frame, None) for frame in [opened, *frames] if frame is not None
            ]
            assert all("method" in frame for frame in frames)
            return
        if self.version == STATELESS:
            self.transport.send(text, self.version)
        before = len(self.received)
        provoke()
        notifications = [each for each, _ in self.received[before:] if "method" in each]
        assert len(notifications) == count + (self.version == STATELESS)

    def pages(self, method: str, key: str) -> list[Json]:
        """All items of a list method, of all its pages."""
        items: list[Json] = []
        cursor: Json = {}
        while True:
            result = self.request(method, cursor)["result"]
            items += result[key]
            if "nextCursor" not in result:
                return items
            cursor = {"cursor": result["nextCursor"]}

    def _request_text(self, method: str, params: Json, meta: Json) -> bytes:
        self._last_id += 1
        if self.version == STATELESS:
            meta = meta | {
                PREFIX + "protocolVersion": STATELESS,
                PREFIX + "clientCapabilities": self._capabilities,
                PREFIX + "clientInfo": CLIENT,
            }
        params = params | ({"_meta": meta} if meta else {})
        message = {"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params}
        return json.dumps(message).encode()

    def _request_once(self, method: str, params: Json, meta: Json) -> Json:
        text = self._request_text(method, params, meta)
        for message in self.transport.exchange(text, self.version):
            is_response = "method" not in message
            self.received.append(Received(message, method if is_response else None))
            if is_response:
                assert message.get("id", self._last_id) == self._last_id
                return message
            if "id" in message:
                self.notify({"id": message["id"], "result": answer_to(message)})
        raise AssertionError(f"no response to {method}")


def answer_to(question: Json) -> Json:
    """The answer of a user who accepts, of a model, or of a client with one root."""
    match question["method"]:
        case "elicitation/create":
            content = sample(question["params"]["requestedSchema"])
            return {"action": "accept", "content": content}
        case "sampling/createMessage":
            block = {"type": "text", "text": "Paris"}
            return {"role": "assistant", "content": block, "model": "m", "stopReason": "endTurn"}
        case _:
            return {"roots": [{"uri": "file:///home", "name": "home"}]}


@contextmanager
def over_stdio(path: Path, version: str) -> Iterator[Client]:
    """A client of the app at *path*, which records messages until the server ends."""
    process = subprocess.Popen(
        [sys.executable, str(path), "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
    )
    watchdog = threading.Timer(2 * TIMEOUT, process.kill)
    watchdog.start()
    transport = StdioTransport(process)
    client = Client(transport, version)
    try:
        yield client
        client.received += [Received(message, None) for message in transport.close_and_read()]
        assert process.wait(TIMEOUT) == 0
    finally:
        watchdog.cancel()
        process.kill()
        transport.close()
        process.wait()


@contextmanager
def over_http(url: str, version: str) -> Iterator[Client]:
    """A client of the server at *url*, which ends its session at the end."""
    transport = HttpTransport(f"{url}/mcp")
    yield Client(transport, version)
    transport.end()
