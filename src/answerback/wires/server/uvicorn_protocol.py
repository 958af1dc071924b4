"""uvicorn's HTTP/1.1, with what it leaves open closed.

- One who offers an upgrade, as every Java client does with `Upgrade: h2c`, is answered as if
  he had not; uvicorn drops the body (its issue 2722).
- A request's head has an end, and so has what may follow its body, so that neither can fill
  the memory; and what follows is no head.
- A request that stops half way is waited for, but not for ever; nor is one that never begins.
- Of requests sent at once, each is answered in its turn, whatever is wrong with the last one;
  and if the caller goes, the one whose turn it is hears of it.
- What is no HTTP is answered in JSON, like everything else.
- An application of ours has a short way to read and to answer: the scope has it.
"""

from __future__ import annotations

import asyncio
from typing import Any

from ...errors import needs_extra
from ..asgi.request import FAST_PATH

with needs_extra("serve"):
    import httptools
    from uvicorn.protocols.http.httptools_impl import HttpToolsProtocol, RequestResponseCycle

_LARGEST_HEAD = 64 * 1024
_LAST_PATIENCE = 2.0
_REFUSAL = (
    b"HTTP/1.1 %b\r\ncontent-type: application/json\r\n"
    b"x-error-code: INVALID_INPUT\r\nconnection: close\r\ncontent-length: %d\r\n\r\n%b"
)


class UvicornProtocol(HttpToolsProtocol):
    patience = 30.0
    """Seconds for a head to come whole, and between two pieces of a body."""
    _head = 0
    """The bytes of a head that is not whole yet, or of what follows the last piece of a body."""
    _begun: Any = None
    """The scope of the request whose head is not whole yet."""
    _turn: Any = None
    """The cycle that is answered now or was last; `cycle` is that of what was read last."""
    _waiting: asyncio.TimerHandle | None = None

    def connection_made(self, transport: Any) -> None:
        super().connection_made(transport)
        self._wait()

    def connection_lost(self, exc: Exception | None) -> None:
        self._stop_waiting()
        if self._is_behind:
            # uvicorn tells only the last one that the caller has gone.
            self._turn.disconnected = True
            self._turn.message_event.set()
        super().connection_lost(exc)

    def shutdown(self) -> None:
        # One who is still sending may finish; one who has stopped does not hold up the end.
        self.patience = min(self.patience, _LAST_PATIENCE)
        if self._waiting is not None:
            self._wait()
        super().shutdown()

    def data_received(self, data: bytes) -> None:
        self._unset_keepalive_if_required()
        last: Any = self.cycle
        between = last is None or not last.more_body
        had = 0 if between else len(last.body)
        try:
            try:
                self.parser.feed_data(data)
            except httptools.HttpParserUpgrade as offer:
                self._feed_without_offers(data, offer)
        except httptools.HttpParserError:
            self.send_400_response("Invalid HTTP request")
            return
        scope, cycle = self.scope, self.cycle  # type: Any, Any
        # A scope without a method is of a request whose head is not whole yet.
        if scope is not None and "method" not in scope:
            # In a piece that has something else in it, nobody knows how much is the head's.
            alone = scope is self._begun or (between and cycle is last)
            self._head = self._head + len(data) if alone else 1
            self._begun = scope
            if self._waiting is None:
                self._wait()
        elif cycle is None or cycle.more_body or cycle.response_complete:
            # Nothing new, or a body that goes on; of one that is answered already all is dropped.
            went_on = cycle is not last or between or cycle.response_complete
            self._head = 0 if went_on or len(cycle.body) > had else self._head + len(data)
            self._wait()
        else:
            self._head = 0
            if self._waiting is not None:
                self._stop_waiting()
            return
        if self._head > _LARGEST_HEAD:
            self.send_400_response("Headers too large")

    def _start_asgi_task(self, cycle: RequestResponseCycle, app: Any) -> None:
        self._turn = cycle
        if self._waiting is not None:
            # Until it was its turn, nothing more was read of it.
            self._wait()
        # As uvicorn does it, but for an option that is not set here.
        task = self.loop.create_task(cycle.run_asgi(app))
        self.tasks.add(task)
        task.add_done_callback(self.tasks.discard)

    @property
    def _is_behind(self) -> bool:
        """Whether an answer is under way to something else than what was read last."""
        turn = self._turn
        return turn is not None and turn is not self.cycle and not turn.response_complete

    def _wait(self) -> None:
        self._stop_waiting()
        self._waiting = self.loop.call_later(self.patience, self._give_up)

    def _stop_waiting(self) -> None:
        if self._waiting is not None:
            self._waiting.cancel()
            self._waiting = None

    def _give_up(self) -> None:
        """Hang up on one who does not go on; not in the middle of an answer to him."""
        cycle: Any = self.cycle
        answering = cycle is not None and not cycle.response_complete
        if self._is_behind or (answering and (cycle.response_started or not cycle.more_body)):
            self._wait()
        elif self._head or answering:
            self._refuse(b"408 Request Timeout", "The request did not arrive in time")
        else:
            self.transport.close()

    def _feed_without_offers(self, data: bytes, offer: Exception | None) -> None:
        while offer is not None and self.scope["method"] != "CONNECT":
            data = self._head_without_offer() + data[offer.args[0] :]
            self.parser = httptools.HttpRequestParser(self)
            try:
                self.parser.feed_data(data)
                offer = None
            except httptools.HttpParserUpgrade as another:
                offer = another

    def on_headers_complete(self) -> None:
        super().on_headers_complete()
        # One who offers an upgrade has no cycle of his own yet.
        cycle, scope = self.cycle, self.scope  # type: Any, Any
        if cycle is not None and cycle.scope is scope:
            scope[FAST_PATH] = _FastPath(cycle)
            if not self.parser.should_keep_alive():
                cycle.keep_alive = False  # Before 0.53 uvicorn looks at this only as it answers.
            # What comes after a body in the form of headers is none of the request's.
            self.headers = []

    def _should_upgrade(self) -> bool:
        """Whether uvicorn waits with the request: until it is fed again without the offer."""
        return self.scope["method"] != "CONNECT"

    def _head_without_offer(self) -> bytes:
        scope = self.scope
        version = scope["http_version"].encode()
        lines = [b"%b %b HTTP/%b" % (scope["method"].encode(), self.url, version)]
        lines += [b"%b: %b" % header for header in self.headers if header[0] != b"upgrade"]
        return b"\r\n".join([*lines, b"", b""])

    def send_400_response(self, msg: str) -> None:
        self._refuse(b"400 Bad Request", msg)

    def _refuse(self, status: bytes, message: str) -> None:
        self._stop_waiting()
        cycle: Any = self.cycle
        if self._is_behind and cycle.more_body:
            # It is not whole and never will be; it was the last to queue up.
            self.pipeline.popleft()
            cycle = self.cycle = self.pipeline[0][0] if self.pipeline else self._turn
        if cycle is not None and not (cycle.response_complete or cycle.more_body):
            # What came before this is still answered; then the line is closed.
            cycle.keep_alive = False
            self.flow.pause_reading()
            return
        body = b'{"error":"%b"}' % message.encode()
        self.transport.write(_REFUSAL % (status, len(body), body))
        self.transport.close()


class _FastPath:
    """What `RequestResponseCycle` does in several steps, for an answer that is whole."""

    __slots__ = ("_cycle",)

    def __init__(self, cycle: RequestResponseCycle) -> None:
        self._cycle = cycle

    def body(self) -> bytes | None:
        cycle = self._cycle
        if cycle.more_body or cycle.disconnected:
            return None
        body = bytes(cycle.body)
        cycle.body = bytearray()  # One of it is enough for as long as the call takes.
        return body

    def is_disconnected(self) -> bool:
        return self._cycle.disconnected

    def respond(self, head: bytes, body: bytes) -> bool:
        cycle = self._cycle
        if cycle.flow.write_paused or cycle.access_log or cycle.scope["method"] == "HEAD":
            return False
        cycle.response_started = True
        cycle.waiting_for_100_continue = False
        if cycle.disconnected or cycle.transport.is_closing():
            cycle.response_complete = True
            return True
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
