"""Answers the commands of Redis clients: `GET` with a value, others with OK; prints its port."""

from __future__ import annotations

import asyncio
import sys


class Answers(asyncio.Protocol):
    def connection_made(self, transport: asyncio.BaseTransport) -> None:
        assert isinstance(transport, asyncio.Transport)
        self._transport = transport

    def data_received(self, data: bytes) -> None:
        """Commands are short, so that none comes in two parts."""
        lines = data.split(b"\r\n")
        while lines and lines[0].startswith(b"*"):
            # Each word has a line with its length before it.
            words = 2 * int(lines[0][1:])
            is_get = lines[2].upper() == b"GET"
            self._transport.write(b"$2\r\n10\r\n" if is_get else b"+OK\r\n")
            lines = lines[1 + words :]


async def main() -> None:
    loop = asyncio.get_running_loop()
    server = await loop.create_server(Answers, "127.0.0.1", 0)
    print(server.sockets[0].getsockname()[1], flush=True)
    await asyncio.to_thread(sys.stdin.read)
    server.close()


if __name__ == "__main__":
    asyncio.run(main())
