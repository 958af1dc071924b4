"""Reads HTTP/1.1 responses from bytes: only what the measured servers send."""

from __future__ import annotations

from typing import NamedTuple


class Answer(NamedTuple):
    status: int
    session: bytes
    """The session id in the headers; empty without one."""
    body: bytes


_END = b"\r\n\r\n"
_LENGTH = b"\r\ncontent-length:"
_SESSION = b"\r\nmcp-session-id:"
_CHUNKED = b"\r\ntransfer-encoding: chunked"


def read_answer(received: bytes) -> Answer | None:
    """The response in *received*; None if it is not complete."""
    end = received.find(_END)
    if end < 0:
        return None
    head = received[: end + 2]
    folded = head.lower()
    status = int(head[9:12])
    body = received[end + 4 :]
    if _CHUNKED in folded:
        if not body.endswith(b"0\r\n\r\n"):
            return None
        body = _without_chunks(body)
    elif len(body) < int(_value(_LENGTH, head, folded) or 0):
        return None
    return Answer(status, _value(_SESSION, head, folded), body)


def message_in(answer: Answer) -> bytes:
    """The JSON-RPC message of a response: its body, or the last event of its stream."""
    if answer.body[:1] == b"{":
        return answer.body
    lines = [line for line in answer.body.splitlines() if line.startswith(b"data:")]
    messages = [line[5:].strip() for line in lines if b'"jsonrpc"' in line]
    return messages[-1] if messages else b""


def _value(name: bytes, head: bytes, folded: bytes) -> bytes:
    start = folded.find(name)
    if start < 0:
        return b""
    start += len(name)
    return head[start : head.index(b"\r\n", start)].strip()


def _without_chunks(body: bytes) -> bytes:
    parts: list[bytes] = []
    while True:
        size, _, body = body.partition(b"\r\n")
        if not (length := int(size, 16)):
            return b"".join(parts)
        parts.append(body[:length])
        body = body[length + 2 :]
