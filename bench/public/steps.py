"""What a user of a workload does: it sends requests one after another, and checks each answer."""

from __future__ import annotations

from collections.abc import Generator
from typing import NamedTuple, TypeAlias

import msgspec

from .http_answers import Answer

ACCEPT = "application/json, text/event-stream"


class WrongAnswer(Exception):
    """A server answered something else than the workload expects."""


class Send(NamedTuple):
    """Send a request. The answer is passed to the user; *name* is where its time is counted."""

    request: bytes
    name: str
    counted: bool = True


class Pause(NamedTuple):
    seconds: float


User: TypeAlias = Generator[Send | Pause, Answer, None]


class _Text(msgspec.Struct):
    type: str
    text: str


class _CallResult(msgspec.Struct):
    content: list[_Text]
    isError: bool = False  # noqa: N815 -- the member of the protocol


class _Called(msgspec.Struct):
    id: int
    result: _CallResult


class _Tool(msgspec.Struct):
    name: str
    inputSchema: msgspec.Raw  # noqa: N815 -- the member of the protocol


class _ListResult(msgspec.Struct):
    tools: list[_Tool]


class _Listed(msgspec.Struct):
    id: int
    result: _ListResult


class _Server(msgspec.Struct):
    name: str


class _InitializeResult(msgspec.Struct):
    protocolVersion: str  # noqa: N815 -- the member of the protocol
    serverInfo: _Server  # noqa: N815 -- the member of the protocol


class _Initialized(msgspec.Struct):
    id: int
    result: _InitializeResult


_called = msgspec.json.Decoder(_Called)
_listed = msgspec.json.Decoder(_Listed)
_initialized = msgspec.json.Decoder(_Initialized)


def post(port: int, message: object, headers: dict[str, str]) -> bytes:
    """An HTTP request with a JSON-RPC message."""
    body = msgspec.json.encode(message)
    return _head(
        port, "POST", {"Content-Type": "application/json", "Accept": ACCEPT, **headers}, body
    )


def delete(port: int, session: bytes) -> bytes:
    """An HTTP request that ends a session."""
    return _head(port, "DELETE", {"Mcp-Session-Id": session.decode()}, b"")


def _head(port: int, method: str, headers: dict[str, str], body: bytes) -> bytes:
    lines = [f"{method} /mcp HTTP/1.1", f"Host: 127.0.0.1:{port}"]
    lines += [f"{name}: {value}" for name, value in headers.items()]
    if body:
        lines.append(f"Content-Length: {len(body)}")
    return "\r\n".join([*lines, "", ""]).encode() + body


def check_initialized(name: str, id: int, answer: Answer, message: bytes) -> None:
    """Raise WrongAnswer unless the answer accepts the handshake."""
    try:
        found = _initialized.decode(message)
    except msgspec.DecodeError as exc:
        raise wrong(name, answer, str(exc)) from None
    expect(found.id == id, name, answer, f"the id {id}")


def check_listed(name: str, id: int, tools: set[str], answer: Answer, message: bytes) -> None:
    """Raise WrongAnswer unless the answer lists exactly *tools*."""
    try:
        found = _listed.decode(message)
    except msgspec.DecodeError as exc:
        raise wrong(name, answer, str(exc)) from None
    expect(found.id == id, name, answer, f"the id {id}")
    names = {tool.name for tool in found.result.tools}
    expect(names == tools, name, answer, f"the tools {', '.join(sorted(tools))}")


def text_of(name: str, id: int, answer: Answer, message: bytes) -> str:
    """The text of a call's result; raises WrongAnswer if the call failed."""
    try:
        found = _called.decode(message)
    except msgspec.DecodeError as exc:
        raise wrong(name, answer, str(exc)) from None
    expect(found.id == id, name, answer, f"the id {id}")
    expect(not found.result.isError, name, answer, "no error")
    expect(bool(found.result.content), name, answer, "a text")
    return found.result.content[0].text


def expect(holds: bool, name: str, answer: Answer, what: str) -> None:
    if not holds:
        raise wrong(name, answer, f"expected {what}")


def wrong(name: str, answer: Answer, why: str) -> WrongAnswer:
    """The error about an answer."""
    shown = answer.body[:300].decode(errors="replace")
    return WrongAnswer(f"{name} got a wrong answer: {why}; status {answer.status}, body {shown!r}")
