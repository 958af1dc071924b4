"""A server that answers with hostile cases: `python -m tests.attack.hostile_server stdio SEED`.

`http` in place of `stdio` writes the port to stdout and ends with its stdin. A call of the tool
`next` names the case that the following request gets, as `kind number`.
"""

from __future__ import annotations

import gzip
import json
import socket
import sys
import threading
import time
from typing import Any

from tests.attack.hostile_replies import FINE, ID, Case, case_of

INFO = {"name": "hostile", "version": "1"}
FACTS = {"protocolVersion": "2025-06-18", "capabilities": {"tools": {}}, "serverInfo": INFO}
_ENDLESS_SECONDS = 5.0
_SLOW_SECONDS = 0.05
_WITHOUT_END = ("endless", "slow", "never", "ended events")


class Conversation:
    """The requests of one client; it decides what each gets."""

    def __init__(self, seed: int) -> None:
        self._seed = seed
        self.case: Case | None = None

    def plain_answer(self, asked: dict[str, Any]) -> dict[str, Any] | None:
        """Return the answer to a request that is no part of a case."""
        method, params = asked.get("method"), asked.get("params") or {}
        if method == "initialize":
            return {"result": FACTS}
        if method == "server/discover":
            return {"error": {"code": -32601, "message": "no such method"}}
        if method == "tools/call" and params["name"] == "next":
            kind, number = params["arguments"]["case"].split()
            self.case = case_of(kind, int(number), self._seed)
            return {"result": {"content": [{"type": "text", "text": self.case.name[:200]}]}}
        return None if self.case is not None else {"result": {"content": []}}

    def messages(self, asked: dict[str, Any]) -> list[bytes]:
        assert self.case is not None
        found = self.case.build()
        if self.case.act == "schema":
            found = found[:1] if asked["method"] == "tools/list" else found[1:]
        id = json.dumps(asked["id"]).encode()
        return [message.replace(ID, id) for message in found]


def serve_stdio(seed: int) -> None:
    out, talk = sys.stdout.buffer, Conversation(seed)
    for line in sys.stdin.buffer:
        asked = json.loads(line)
        if "method" not in asked or "id" not in asked:
            continue
        if (answer := talk.plain_answer(asked)) is not None:
            out.write(json.dumps({"jsonrpc": "2.0", "id": asked["id"], **answer}).encode() + b"\n")
        elif talk.case is not None and talk.case.sending in _WITHOUT_END:
            _write_for_ever(talk.case.sending, talk.messages(asked)[0])
        else:
            # The last line answers a request whose own response has lost its id.
            for message in (*talk.messages(asked), FINE.replace(ID, b"%d" % asked["id"])):
                out.write(message.replace(b"\n", b" ") + b"\n")
        out.flush()


def _write_for_ever(sending: str, message: bytes) -> None:
    until = time.monotonic() + 1.5
    while time.monotonic() < until:
        if sending == "endless":
            sys.stdout.buffer.write((message + b"\n") * max(1, 50_000 // len(message)))
        else:
            time.sleep(_SLOW_SECONDS)
            if sending == "slow":
                sys.stdout.buffer.write(message[:1] + b"\n")
        sys.stdout.buffer.flush()


class HttpClient:
    """The requests that one connection brings."""

    def __init__(self, connection: socket.socket, talk: Conversation) -> None:
        self._connection = connection
        self._file = connection.makefile("rb")
        self._talk = talk

    def serve(self) -> None:
        while line := self._file.readline():
            headers = {}
            while header := self._file.readline().rstrip(b"\r\n"):
                name, _, value = header.partition(b": ")
                headers[name.lower()] = value
            body = self._file.read(int(headers.get(b"content-length", b"0")))
            if not line.startswith(b"POST"):
                self._get(line)
                continue
            asked = json.loads(body)
            if "method" not in asked or "id" not in asked:
                self._send(202)
            elif (answer := self._talk.plain_answer(asked)) is not None:
                message = {"jsonrpc": "2.0", "id": asked["id"], **answer}
                self._send(200, json.dumps(message).encode(), b"Mcp-Session-Id: s\r\n")
            elif not self._answer(asked):
                return

    def _get(self, line: bytes) -> None:
        """Resume a stream with an event and no pause; there is no stream of the session."""
        if line.startswith(b"GET") and self._talk.case is not None:
            body = b'id: x\nretry: 0\ndata: {"jsonrpc":"2.0","method":"x"}\n\n'
            self._send(200, body, kind=b"text/event-stream")
        else:
            self._send(405)

    def _answer(self, asked: dict[str, Any]) -> bool:
        """Answer with the case; return False to close the connection."""
        case = self._talk.case
        assert case is not None
        messages = self._talk.messages(asked)
        match case.sending:
            case "whole":
                self._send(200, messages[-1])
            case "gzip":
                packed = gzip.compress(messages[-1], 1)
                self._send(200, packed, b"Content-Encoding: gzip\r\n")
            case "chunks":
                self._begin(b"application/json")
                self._write(b"".join(b"1\r\n%c\r\n" % each for each in messages[-1]))
                self._write(b"0\r\n\r\n")
            case "events":
                events = b"".join(b"data: %b\n\n" % each for each in messages)
                self._send(200, events, kind=b"text/event-stream")
            case "ended events":
                self._send(200, b"id: e\nretry: 0\ndata:\n\n", kind=b"text/event-stream")
            case "endless":
                self._begin(b"text/event-stream")
                self._write_for_ever(b"data: %b\n\n" % messages[0], pause=0)
                return False
            case "slow" | "never":
                self._begin(b"application/json")
                piece = messages[0][:1] if case.sending == "slow" else b""
                self._write_for_ever(piece, _SLOW_SECONDS)
                return False
        return True

    def _send(
        self, status: int, body: bytes = b"", more: bytes = b"", kind: bytes = b"application/json"
    ) -> None:
        head = b"HTTP/1.1 %d X\r\nContent-Type: %b\r\nContent-Length: %d\r\n%b\r\n"
        self._write(head % (status, kind, len(body), more))
        self._write(body)

    def _begin(self, kind: bytes) -> None:
        head = b"HTTP/1.1 200 OK\r\nContent-Type: %b\r\nTransfer-Encoding: chunked\r\n\r\n"
        self._write(head % kind)

    def _write_for_ever(self, piece: bytes, pause: float) -> None:
        until = time.monotonic() + _ENDLESS_SECONDS
        while time.monotonic() < until:
            time.sleep(pause)
            if piece:
                chunk = b"%x\r\n%b\r\n" % (len(piece), piece)
                self._write(chunk * (1 if pause else max(1, 50_000 // len(chunk))))

    def _write(self, data: bytes) -> None:
        self._connection.sendall(data)


def _serve_connection(connection: socket.socket, talk: Conversation) -> None:
    try:
        HttpClient(connection, talk).serve()
    except (OSError, ValueError):
        pass  # The client closed the connection.
    finally:
        connection.close()


def serve_http(seed: int) -> None:
    listener = socket.create_server(("127.0.0.1", 0), backlog=100)
    talk = Conversation(seed)

    def accept() -> None:
        while True:
            connection, _ = listener.accept()
            connection.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
            threading.Thread(target=_serve_connection, args=(connection, talk), daemon=True).start()

    threading.Thread(target=accept, daemon=True).start()
    sys.stdout.write(f"{listener.getsockname()[1]}\n")
    sys.stdout.flush()
    sys.stdin.read()


if __name__ == "__main__":
    {"stdio": serve_stdio, "http": serve_http}[sys.argv[1]](int(sys.argv[2]))
