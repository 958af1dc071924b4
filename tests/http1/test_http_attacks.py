"""Servers that break the rules of HTTP/1.1: each response is a failed reply, never a hang."""

from __future__ import annotations

import asyncio
import gzip
from collections.abc import AsyncIterator, Awaitable, Callable
from contextlib import asynccontextmanager
from typing import Any

import pytest
from tests.client.conftest import stream_server

from answerback import connect
from answerback.client import ConnectError

OK = b'{"ok": true}'
LIST = b"HTTP/1.1 200 OK\r\nContent-Length: 2\r\n\r\n[]"
HEAD = b"HTTP/1.1 200 OK\r\nContent-Type: application/json\r\n"
CHUNKED = HEAD + b"Transfer-Encoding: chunked\r\n\r\n"
ZIPPED = gzip.compress(OK)

Respond = Callable[[asyncio.StreamWriter], Awaitable[None]]


class RawServer:
    """Answers each POST with the bytes of *respond*, and counts connections and POSTs."""

    def __init__(self, respond: Respond) -> None:
        self.respond = respond
        self.connections = 0
        self.posts: list[bytes] = []

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self.connections += 1
        while True:
            head = await reader.readuntil(b"\r\n\r\n")
            if head.startswith(b"GET"):
                writer.write(LIST)
                continue
            length = int(head.lower().partition(b"content-length: ")[2].split(b"\r\n")[0])
            await reader.readexactly(length)
            self.posts.append(head)
            await self.respond(writer)


def sends(*pieces: bytes, close: bool = True) -> Respond:
    async def respond(writer: asyncio.StreamWriter) -> None:
        for piece in pieces:
            writer.write(piece)
            await writer.drain()
        if close:
            writer.close()

    return respond


@asynccontextmanager
async def raw_server(respond: Respond) -> AsyncIterator[tuple[RawServer, str]]:
    raw = RawServer(respond)
    async with stream_server(raw.serve) as port:
        yield raw, f"http://127.0.0.1:{port}"


def replies(respond: Respond, calls: int = 1) -> tuple[list[Any], RawServer]:
    async def run() -> tuple[list[Any], RawServer]:
        async with (
            asyncio.timeout(60),
            raw_server(respond) as (raw, url),
            connect(url, transport="rest", timeout=60) as server,
        ):
            return [await server.call("tool", x=1) for _ in range(calls)], raw

    return asyncio.run(run())


MALFORMED = {
    "no HTTP": b"SSH-2.0-OpenSSH_9.6\r\n\r\n",
    "HTTP/2": b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
    "HTTP/3.0": b"HTTP/3.0 200 OK\r\nContent-Length: 2\r\n\r\n{}",
    "a status of two digits": b"HTTP/1.1 20 OK\r\nContent-Length: 2\r\n\r\n{}",
    "a status that is no number": b"HTTP/1.1 2x0 OK\r\nContent-Length: 2\r\n\r\n{}",
    "a header without a colon": HEAD + b"nonsense\r\nContent-Length: 2\r\n\r\n{}",
    "a header without a name": HEAD + b": x\r\nContent-Length: 2\r\n\r\n{}",
    "a space before the colon": HEAD + b"Content-Length : 2\r\n\r\n{}",
    "a folded header": HEAD + b"X-A: 1\r\n  2\r\nContent-Length: 2\r\n\r\n{}",
    "a zero byte in a header": HEAD + b"X-A: 1\0\r\nContent-Length: 2\r\n\r\n{}",
    "a lone return in a header": HEAD + b"X-A: 1\rX-B: 2\r\nContent-Length: 2\r\n\r\n{}",
    "a huge header": HEAD + b"X-A: " + b"a" * 300_000 + b"\r\nContent-Length: 2\r\n\r\n{}",
    "endless headers": HEAD + b"X-A: 1\r\n" * 100_000,
    "a length and chunks": HEAD + b"Content-Length: 2\r\nTransfer-Encoding: chunked\r\n\r\n{}",
    "two lengths": HEAD + b"Content-Length: 2\r\nContent-Length: 3\r\n\r\n{} ",
    "a negative length": HEAD + b"Content-Length: -2\r\n\r\n{}",
    "a length with a sign": HEAD + b"Content-Length: +2\r\n\r\n{}",
    "a huge length": HEAD + b"Content-Length: 99999999999\r\n\r\n{}",
    "a length of many digits": HEAD + b"Content-Length: " + b"9" * 5000 + b"\r\n\r\n{}",
    "an unknown transfer encoding": HEAD + b"Transfer-Encoding: gzip, chunked\r\n\r\n2\r\n{}\r\n",
    "chunks in HTTP/1.0": CHUNKED.replace(b"1.1", b"1.0") + b"2\r\n{}\r\n0\r\n\r\n",
    "a chunk without a size": CHUNKED + b"\r\n{}\r\n0\r\n\r\n",
    "a negative chunk": CHUNKED + b"-2\r\n{}\r\n0\r\n\r\n",
    "a chunk with 0x": CHUNKED + b"0x2\r\n{}\r\n0\r\n\r\n",
    "a huge chunk": CHUNKED + b"f" * 15 + b"\r\n{}",
    "a size of many digits": CHUNKED + b"0" * 10_000 + b"2\r\n{}\r\n0\r\n\r\n",
    "an endless size": CHUNKED + b"2;" + b"a" * 10_000,
    "a chunk longer than its size": CHUNKED + b"2\r\n{}xyz\r\n0\r\n\r\n",
    "endless trailers": CHUNKED + b"2\r\n{}\r\n0\r\n" + b"X-A: 1\r\n" * 100_000,
    "endless 100 Continue": b"HTTP/1.1 100 Continue\r\n\r\n" * 1000,
    "another protocol": b"HTTP/1.1 101 Switching Protocols\r\nUpgrade: x\r\n\r\n",
    "an unknown compression": HEAD + b"Content-Encoding: br\r\nContent-Length: 2\r\n\r\n{}",
    "broken compression": HEAD + b"Content-Encoding: gzip\r\nContent-Length: 2\r\n\r\n{}",
    "a compression that is cut off": HEAD
    + b"Content-Encoding: gzip\r\nContent-Length: 20\r\n\r\n"
    + ZIPPED[:20],
}
CUT_OFF = {
    "nothing": b"",
    "half a head": HEAD,
    "only 100 Continue": b"HTTP/1.1 100 Continue\r\n\r\n",
    "a body that is cut off": HEAD + b"Content-Length: 20\r\n\r\n{}",
    "chunks that are cut off": CHUNKED + b"2\r\n{}\r\n",
}


def failure(reply: Any, raw: RawServer) -> tuple[str, bool, int]:
    """The code of the error, `may_have_run`, and how often the call was sent."""
    return reply.error.code, reply.error.details["may_have_run"], len(raw.posts)


@pytest.mark.parametrize("attack", MALFORMED.values(), ids=MALFORMED)
def test_a_malformed_response_is_a_failed_reply_at_once(attack: bytes) -> None:
    """The server leaves the connection open, so that only the bytes can end the call."""
    [reply], raw = replies(sends(attack, close=False))

    code, *others = failure(reply, raw)
    assert code in ("UNAVAILABLE", "TOO_LARGE")
    assert others == [True, 1]


@pytest.mark.parametrize("attack", CUT_OFF.values(), ids=CUT_OFF)
def test_a_response_that_is_cut_off_is_a_failed_reply(attack: bytes) -> None:
    [reply], raw = replies(sends(attack))

    assert failure(reply, raw) == ("UNAVAILABLE", True, 1)


def test_a_small_response_that_unpacks_to_a_huge_one_is_a_failed_reply() -> None:
    bomb = gzip.compress(bytes(65 * 1024 * 1024), 1)
    length = b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(bomb)

    [reply], raw = replies(sends(HEAD + length + bomb, close=False))

    assert failure(reply, raw) == ("TOO_LARGE", True, 1)


GOOD = {
    "a length": HEAD + b"Content-Length: %d\r\n\r\n" % len(OK) + OK,
    "the same length twice": HEAD + b"Content-Length: 12\r\nContent-Length: 12\r\n\r\n" + OK,
    "no length": HEAD + b"Connection: close\r\n\r\n" + OK,
    "HTTP/1.0": HEAD.replace(b"1.1", b"1.0") + b"\r\n" + OK,
    "no reason": HEAD.replace(b" OK", b"") + b"Content-Length: 12\r\n\r\n" + OK,
    "lines without a return": (HEAD + b"Content-Length: 12\n\n").replace(b"\r", b"") + OK,
    "chunks": CHUNKED + b"5\r\n" + OK[:5] + b"\r\n7;x=y\r\n" + OK[5:] + b"\r\n0\r\nX-A: 1\r\n\r\n",
    "100 Continue and 103 Early Hints first": b"HTTP/1.1 100 Continue\r\n\r\n"
    b"HTTP/1.1 103 Early Hints\r\nLink: </a>\r\n\r\n" + HEAD + b"Content-Length: 12\r\n\r\n" + OK,
    "gzip": HEAD + b"Content-Encoding: gzip\r\nContent-Length: %d\r\n\r\n" % len(ZIPPED) + ZIPPED,
}


@pytest.mark.parametrize("cut", ["whole", "bytes"])
@pytest.mark.parametrize("good", GOOD.values(), ids=GOOD)
def test_a_correct_response_is_read_however_it_arrives(good: bytes, cut: str) -> None:
    pieces = [good] if cut == "whole" else [bytes([each]) for each in good]

    [reply], _ = replies(sends(*pieces))

    assert reply.error is None
    assert reply.data == {"ok": True}


def test_calls_share_a_connection_until_the_server_closes_it() -> None:
    async def run() -> tuple[RawServer, list[int]]:
        counts = []
        async with (
            asyncio.timeout(60),
            raw_server(sends(GOOD["a length"], close=False)) as (raw, url),
            connect(url, transport="rest") as server,
        ):
            for _ in range(3):
                await server.call("tool")
            counts.append(raw.connections)
            raw.respond = sends(GOOD["a length"])
            await server.call("tool")
            assert (await server.call("tool")).ok
            counts.append(raw.connections)
        return raw, counts

    raw, counts = asyncio.run(run())

    assert counts == [1, 2]
    assert len(raw.posts) == 5


def test_bytes_after_a_response_do_not_become_the_next_response() -> None:
    answer = GOOD["a length"]

    found, raw = replies(sends(answer + answer.replace(b"true", b"fake"), close=False), 2)

    assert [reply.data for reply in found] == [{"ok": True}] * 2
    assert raw.connections == 2


def test_a_response_of_204_has_no_body_and_the_next_call_is_answered() -> None:
    none = b"HTTP/1.1 204 No Content\r\nContent-Length: 3\r\n\r\n"

    found, raw = replies(sends(none, close=False), 2)

    assert len(found) == 2
    assert raw.connections == 1


def test_a_slow_response_ends_at_the_time_out() -> None:
    async def trickle(writer: asyncio.StreamWriter) -> None:
        writer.write(HEAD)
        while not writer.is_closing():
            writer.write(b"X")
            await writer.drain()
            await asyncio.sleep(0.02)

    async def run() -> Any:
        async with (
            asyncio.timeout(60),
            raw_server(trickle) as (_, url),
            connect(url, transport="rest", timeout=0.3) as server,
        ):
            return await server.call("tool")

    reply = asyncio.run(run())

    assert reply.error.code == "TIMED_OUT"


def test_cookies_of_a_load_balancer_are_sent_back_to_it() -> None:
    answer = GOOD["a length"].replace(
        b"\r\n\r\n", b"\r\nSet-Cookie: LB=two; Path=/; HttpOnly\r\nSet-Cookie: b=1; Path=/x\r\n\r\n"
    )

    _, raw = replies(sends(answer, close=False), 2)

    assert b"cookie" not in raw.posts[0].lower()
    assert b"\r\ncookie: LB=two\r\n" in raw.posts[1]


@pytest.mark.parametrize("value", ["a\r\nX-Injected: 1", "a\nb", "a\rb", "\0", "中"])
def test_a_header_that_cannot_be_sent_is_an_error_and_nothing_is_sent(value: str) -> None:
    async def run() -> RawServer:
        async with raw_server(sends(GOOD["a length"])) as (raw, url):
            with pytest.raises(ConnectError, match="a header has"):
                await connect(url, transport="rest", headers={"x-user": value}).__aenter__()
            return raw

    raw = asyncio.run(run())

    assert raw.connections == 0
