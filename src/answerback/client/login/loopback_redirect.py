"""The redirect address on this machine: a small HTTP server that accepts one answer."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping
from urllib.parse import parse_qsl, urlsplit

from ..faults import LoginError

_MAX_REQUEST = 16_384
_READ_SECONDS = 5.0
_PAGE = (
    "<!doctype html><html lang=en><meta charset=utf-8><title>Login</title>"
    "<body style='font-family:sans-serif;margin:4em auto;max-width:30em'><p>{}</p></body></html>"
)
_TAKEN = "The program has got the answer. You can close this page."
_FOREIGN = "This answer does not belong to a login that is waiting."


class LoopbackRedirect:
    """Listens on 127.0.0.1 while the user logs in: `async with LoopbackRedirect(uri) as redirect`.

    Port 0 in *uri* means a free one. Only requests for the path of *uri* whose query *accepts*
    accepts are answers; others get an error page, and the wait continues.
    """

    def __init__(self, uri: str) -> None:
        parts = urlsplit(uri)
        if parts.scheme != "http" or parts.hostname not in ("127.0.0.1", "localhost", "::1"):
            raise ValueError(
                f"redirect_uri={uri!r} should be an http address of this machine, such as "
                "'http://127.0.0.1:3030/callback'"
            )
        self._host = parts.hostname
        self._netloc = "[::1]" if self._host == "::1" else self._host
        self._port = parts.port or 0
        self._path = parts.path or "/"
        self._server: asyncio.Server | None = None
        self._answer: asyncio.Future[dict[str, str]] | None = None
        self.accepts: Callable[[Mapping[str, str]], bool] = bool
        self.foreign = 0
        """How many answers from other logins arrived."""

    @property
    def uri(self) -> str:
        return f"http://{self._netloc}:{self._port}{self._path}"

    async def __aenter__(self) -> LoopbackRedirect:
        self._answer = asyncio.get_running_loop().create_future()
        host = "127.0.0.1" if self._host == "localhost" else self._host
        try:
            self._server = await asyncio.start_server(
                self._serve, host, self._port, limit=_MAX_REQUEST
            )
        except OSError as exc:
            text = f"cannot listen on {self.uri} for the end of the login: {exc.strerror}"
            raise LoginError(text) from None
        self._port = self._server.sockets[0].getsockname()[1]
        return self

    async def __aexit__(self, *exc: object) -> None:
        assert self._server is not None
        self._server.close()

    async def answer(self) -> dict[str, str]:
        """Wait for the answer: the query of the redirect address."""
        assert self._answer is not None
        return await asyncio.shield(self._answer)

    async def _serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        try:
            async with asyncio.timeout(_READ_SECONDS):
                head = await reader.readuntil(b"\r\n\r\n")
                status, text = self._take(head.partition(b"\r\n")[0].decode("latin-1"))
                writer.write(_response(status, text))
                await writer.drain()
        except (TimeoutError, OSError, asyncio.IncompleteReadError, asyncio.LimitOverrunError):
            pass
        finally:
            writer.close()

    def _take(self, line: str) -> tuple[str, str]:
        method, _, rest = line.partition(" ")
        target = urlsplit(rest.partition(" ")[0])
        if method != "GET" or target.path != self._path:
            return "404 Not Found", "There is nothing here."
        found = dict(parse_qsl(target.query))
        assert self._answer is not None
        if self._answer.done() or not self.accepts(found):
            self.foreign += not self._answer.done()
            return "400 Bad Request", _FOREIGN
        self._answer.set_result(found)
        return "200 OK", _TAKEN


def _response(status: str, text: str) -> bytes:
    body = _PAGE.format(text).encode()
    head = (
        f"HTTP/1.1 {status}\r\ncontent-type: text/html; charset=utf-8\r\n"
        f"content-length: {len(body)}\r\nconnection: close\r\ncache-control: no-store\r\n"
        "referrer-policy: no-referrer\r\n\r\n"
    )
    return head.encode() + body
