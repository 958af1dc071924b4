"""The HTTP API behind the shop's tools: `python -m bench.public.api PORT`.

It sends fixed bytes for each request, so it does not sort the products at each search, as the
original does. It supports only the part of HTTP that the clients of the tools use.
"""

from __future__ import annotations

import asyncio
import re
import sys
from typing import Any

from .catalogue import api_answer

_LENGTH = re.compile(rb"\r\ncontent-length: *(\d+)", re.IGNORECASE)


class ApiProtocol(asyncio.Protocol):
    """One connection: requests are answered in order, as soon as each is complete."""

    def connection_made(self, transport: Any) -> None:
        self._transport = transport
        self._received = b""

    def data_received(self, data: bytes) -> None:
        self._received += data
        while (end := self._received.find(b"\r\n\r\n")) >= 0:
            head = self._received[:end]
            found = _LENGTH.search(head)
            length = int(found[1]) if found else 0
            body = self._received[end + 4 : end + 4 + length]
            if len(body) < length:
                return
            self._received = self._received[end + 4 + length :]
            self._transport.write(_response(head.split(b" ", 2)[1].decode(), body))


def _response(target: str, body: bytes) -> bytes:
    answer = api_answer(target, body)
    status = b"200 OK" if answer is not None else b"404 Not Found"
    answer = answer or b"{}\n"
    head = b"HTTP/1.1 %b\r\nContent-Type: application/json\r\nContent-Length: %d\r\n\r\n"
    return head % (status, len(answer)) + answer


async def main(port: int) -> None:
    server = await asyncio.get_running_loop().create_server(ApiProtocol, "127.0.0.1", port)
    await server.serve_forever()


if __name__ == "__main__":
    import uvloop

    uvloop.run(main(int(sys.argv[1])))
