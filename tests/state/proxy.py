"""A round-robin proxy: each request goes to the next of several servers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import cycle

_BOUND = 30.0


class RoundRobin:
    """Sends each connection's request to the next server, and closes both after the response.

    One request for each connection: clients open a new one after `Connection: close`.
    """

    def __init__(self, ports: list[int]) -> None:
        self._ports = cycle(ports)
        self.port = 0

    async def serve(self, started: threading.Event, stopped: asyncio.Event) -> None:
        server = await asyncio.start_server(self._connect, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        started.set()
        await stopped.wait()
        server.close()

    async def _connect(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        with suppress(OSError, EOFError):
            head = await reader.readuntil(b"\r\n\r\n")
            lines = [
                line
                for line in head.removesuffix(b"\r\n\r\n").split(b"\r\n")
                if not line.lower().startswith(b"connection:")
            ]
            head = b"\r\n".join([*lines, b"Connection: close", b"", b""])
            from_server, to_server = await asyncio.open_connection("127.0.0.1", next(self._ports))
            to_server.write(head)
            sending = asyncio.ensure_future(_copy(reader, to_server))
            answering = asyncio.ensure_future(_copy(from_server, writer))
            # Whoever closes its connection first ends both.
            await asyncio.wait({sending, answering}, return_when=asyncio.FIRST_COMPLETED)
            for task, end in ((sending, to_server), (answering, writer)):
                task.cancel()
                end.close()
        writer.close()


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()


@contextmanager
def round_robin(*ports: int) -> Iterator[str]:
    """Run a proxy before the servers at these ports; yield its URL."""
    proxy, started = RoundRobin(list(ports)), threading.Event()
    loop = asyncio.new_event_loop()
    stopped = asyncio.Event()

    def run() -> None:
        loop.run_until_complete(proxy.serve(started, stopped))
        for task in asyncio.all_tasks(loop):
            task.cancel()
        loop.run_until_complete(asyncio.sleep(0))
        loop.close()

    thread = threading.Thread(target=run)
    thread.start()
    assert started.wait(_BOUND)
    try:
        yield f"http://127.0.0.1:{proxy.port}"
    finally:
        loop.call_soon_threadsafe(stopped.set)
        thread.join(_BOUND)
