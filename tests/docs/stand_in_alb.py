"""A stand-in for an Application Load Balancer: it forwards HTTP/1.1, and has an idle time-out.

Like the real one it adds the client's address to `X-Forwarded-For`, keeps `Host`, reuses its
connection to the server, and answers with 502 or 504 if the server closes it or says nothing.
"""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress

Streams = tuple[asyncio.StreamReader, asyncio.StreamWriter]


class LoadBalancer:
    """Forwards to one server; *idle* is the time-out in seconds."""

    def __init__(self, target: int, idle: float) -> None:
        self._target = target
        self._idle = idle
        self._kept: Streams | None = None
        self.port = 0
        self.connections = 0
        """How many connections to the server were opened."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            with suppress(OSError, asyncio.IncompleteReadError):
                await self._forward(await reader.readuntil(b"\r\n\r\n"), reader, writer)
        finally:
            await _close(writer)

    async def _forward(
        self, head: bytes, reader: asyncio.StreamReader, writer: asyncio.StreamWriter
    ) -> None:
        body = await reader.readexactly(int(_header(head, b"content-length") or 0))
        source, target = await self._connection()
        target.write(_forwarded(head) + body)
        sent = False
        try:
            left: int | None = None
            while left is None or left > 0:
                async with asyncio.timeout(self._idle):
                    part = await source.read(65536)
                if not part:
                    raise ConnectionResetError
                if left is None and b"\r\n\r\n" in part and not _is_chunked(part):
                    left = _missing(part)
                elif left is not None:
                    left -= len(part)
                writer.write(part)
                await writer.drain()
                sent = True
                if _is_end(part):
                    break
            self._kept = source, target
        except asyncio.CancelledError:
            target.close()
            raise
        except (TimeoutError, OSError) as exc:
            await _close(target)
            if not sent:
                status = b"504" if isinstance(exc, TimeoutError) else b"502"
                writer.write(b"HTTP/1.1 " + status + b" x\r\ncontent-length: 0\r\n\r\n")

    async def close(self) -> None:
        """End all connections."""
        if self._kept is not None:
            await _close(self._kept[1])
        running = asyncio.all_tasks() - {asyncio.current_task()}
        for task in running:
            task.cancel()
        await asyncio.gather(*running, return_exceptions=True)

    async def _connection(self) -> Streams:
        kept, self._kept = self._kept, None
        # A closed connection is noticed only if that was read already.
        if kept is not None and not kept[0].at_eof():
            return kept
        if kept is not None:
            await _close(kept[1])
        self.connections += 1
        return await asyncio.open_connection("127.0.0.1", self._target)


async def _close(writer: asyncio.StreamWriter) -> None:
    writer.close()
    with suppress(OSError):
        await writer.wait_closed()


def _header(head: bytes, name: bytes) -> bytes | None:
    for line in head.split(b"\r\n")[1:]:
        key, _, value = line.partition(b":")
        if key.lower() == name:
            return value.strip()
    return None


def _forwarded(head: bytes) -> bytes:
    lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    before = _header(head, b"x-forwarded-for")
    dropped = (b"x-forwarded-for:", b"connection:")
    kept = [line for line in lines if not line.lower().startswith(dropped)]
    client = b"203.0.113.9" if before is None else before + b", 203.0.113.9"
    kept += [b"X-Forwarded-For: " + client, b"X-Forwarded-Proto: https", b"X-Forwarded-Port: 443"]
    return b"\r\n".join(kept) + b"\r\n\r\n"


def _is_chunked(part: bytes) -> bool:
    return _header(part.partition(b"\r\n\r\n")[0] + b"\r\n\r\n", b"content-length") is None


def _missing(part: bytes) -> int:
    head, _, body = part.partition(b"\r\n\r\n")
    return int(_header(head + b"\r\n\r\n", b"content-length") or 0) - len(body)


def _is_end(part: bytes) -> bool:
    """Whether a chunked response has ended."""
    return part.endswith(b"0\r\n\r\n") and (part == b"0\r\n\r\n" or b"\r\n0\r\n\r\n" in part)


@contextmanager
def balancing(target: int, idle: float) -> Iterator[LoadBalancer]:
    """A load balancer in front of the server on the port *target*."""
    balancer = LoadBalancer(target, idle)
    loop = asyncio.new_event_loop()
    server = loop.run_until_complete(asyncio.start_server(balancer.serve, "127.0.0.1", 0))
    balancer.port = server.sockets[0].getsockname()[1]
    thread = threading.Thread(target=loop.run_forever, daemon=True)
    thread.start()
    try:
        yield balancer
    finally:
        loop.call_soon_threadsafe(server.close)
        asyncio.run_coroutine_threadsafe(balancer.close(), loop).result(60)
        loop.call_soon_threadsafe(loop.stop)
        thread.join(60)
        loop.close()
