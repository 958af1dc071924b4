"""A round-robin proxy: each request goes to the next of several servers."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from itertools import cycle

_BOUND = 30.0


class RoundRobin:
    """Sends each request to the next server; each connection carries one request."""

    def __init__(self, ports: list[int]) -> None:
        self._ports = cycle(ports)
        self.port = 0
        self.started = threading.Event()
        self._stopped = asyncio.Event()

    async def serve(self) -> None:
        self._loop = asyncio.get_running_loop()
        server = await asyncio.start_server(self._pass_on, "127.0.0.1", 0)
        self.port = server.sockets[0].getsockname()[1]
        self.started.set()
        await self._stopped.wait()
        server.close()

    def stop(self) -> None:
        self._loop.call_soon_threadsafe(self._stopped.set)

    async def _pass_on(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        # The end of the loop cancels what still runs.
        with suppress(OSError, EOFError, asyncio.CancelledError):
            head = _closing(await reader.readuntil(b"\r\n\r\n"))
            from_server, to_server = await asyncio.open_connection("127.0.0.1", next(self._ports))
            to_server.write(head)
            sending = asyncio.ensure_future(_copy(reader, to_server))
            answering = asyncio.ensure_future(_copy(from_server, writer))
            try:
                # Whichever side closes its connection ends both.
                await asyncio.wait({sending, answering}, return_when=asyncio.FIRST_COMPLETED)
            finally:
                sending.cancel()
                answering.cancel()
                to_server.close()
        writer.close()


def _closing(head: bytes) -> bytes:
    """Return a request's head that tells the server to close the connection."""
    lines = head.removesuffix(b"\r\n\r\n").split(b"\r\n")
    kept = [line for line in lines if not line.lower().startswith(b"connection:")]
    return b"\r\n".join([*kept, b"Connection: close", b"", b""])


async def _copy(reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
    with suppress(OSError):
        while data := await reader.read(65_536):
            writer.write(data)
            await writer.drain()


@contextmanager
def round_robin(*ports: int) -> Iterator[str]:
    """Run a proxy before the servers at these ports; yield its URL."""
    proxy = RoundRobin(list(ports))
    thread = threading.Thread(target=lambda: asyncio.run(proxy.serve()))
    thread.start()
    assert proxy.started.wait(_BOUND)
    try:
        yield f"http://127.0.0.1:{proxy.port}"
    finally:
        proxy.stop()
        thread.join(_BOUND)
