"""uvicorn's HTTP/1.1, with what it leaves open closed.

- One who offers an upgrade, as every Java client does with `Upgrade: h2c`, is answered as if
  he had not; uvicorn drops the body (its issue 2722).
- A request's head has an end, so that it cannot fill the memory.
- What is no HTTP is answered in JSON, like everything else.
- An application of ours has a short way to read and to answer: the scope has it.
"""

from __future__ import annotations

from typing import Any

from ...errors import needs_extra
from .incoming import DIRECT

with needs_extra("serve"):
    import httptools
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

_LARGEST_HEAD = 64 * 1024
_REFUSAL = (
    b"HTTP/1.1 400 Bad Request\r\ncontent-type: application/json\r\n"
    b"x-error-code: INVALID_INPUT\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b"
)


class Protocol(HttpToolsProtocol):
    _head = 0

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        try:
            self._feed(data)
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request")
            return
        # A scope without a method is of a request whose head is not whole yet.
        scope: Any = self.scope
        if scope is None or "method" in scope:
            self._head = 0
            return
        self._head += len(data)
        if self._head > _LARGEST_HEAD:
            self.send_400_response("Headers too large")

    def _feed(self, data: bytes) -> None:
        while True:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as offer:
                if self.scope["method"] == "CONNECT":
                    return
                data = self._head_without_offer() + data[offer.args[0] :]
                self.parser = httptools.HttpRequestParser(self)
            else:
                return

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        # One who offers an upgrade has no cycle of his own yet.
        cycle, scope = self.cycle, self.scope  # type: Any, Any
        if cycle is not None and cycle.scope is scope:
            scope[DIRECT] = _Direct(cycle)

    def _should_upgrade(self) -> bool:
        """Whether uvicorn waits with the request: until it is fed again without the offer."""
        return self.scope["method"] != "CONNECT"

    def _head_without_offer(self) -> bytes:
        lines = [b"%b %b HTTP/1.1" % (self.scope["method"].encode(), self.url)]
        lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def send_400_response(self, msg: str) -> None:
        body = b'{"error":"%b"}' % msg.encode()
        self.transport.write(_REFUSAL % (len(body), body))
        self.transport.close()


class _Direct:
    """What `RequestResponseCycle` does in several steps, for an answer that is whole."""

    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle

    def body(self) -> bytes | None:
        cycle = self._cycle
        return None if cycle.more_body or cycle.disconnected else bytes(cycle.body)

    def answer(self, head: bytes, body: bytes) -> bool:
        cycle = self._cycle
        if cycle.flow.write_paused or cycle.access_log or cycle.scope["method"] == "HEAD":
            return False
        if cycle.disconnected:
            return True
        cycle.response_started = True
        cycle.waiting_for_100_continue = False
        lines = [head]
        lines += [b"%b: %b\r\n" % header for header in cycle.default_headers]
        if not cycle.keep_alive:
            lines.append(b"connection: close\r\n")
        lines.append(b"content-length: %d\r\n\r\n" % len(body))
        lines.append(body)
        cycle.transport.write(b"".join(lines))
        cycle.response_complete = True
        cycle.message_event.set()
        if not cycle.keep_alive:
            cycle.transport.close()
        cycle.on_response()
        return True
