"""WSGI middleware for Flask apps whose responses are envelopes or MCP results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from itertools import chain, islice
from typing import Any

from .checker import MAX_CHECKED_BYTES, AppResponse, CallTimer, HttpMiddleware


class ValidReplies(HttpMiddleware[Callable[..., Iterable[bytes]]]):
    """Middleware that refuses invalid replies: `app.wsgi_app = ValidReplies(app.wsgi_app)`."""

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        path = environ.get("PATH_INFO") or "/"
        if not self.applies_to(environ.get("REQUEST_METHOD", "GET"), path):
            return self.app(environ, start_response)
        timer, started = CallTimer(), _StartResponse()
        chunks = _AppBody(self.app(environ, started), started)
        status = started.code
        if not self.has_checkable_body(status, started.media_type):
            start_response(started.status, started.headers)
            return chunks
        body = chunks.read_all()
        if body is None:  # Too large to buffer: send it unchecked.
            start_response(started.status, started.headers)
            return chunks
        checked = self.check(AppResponse(path, "wsgi", status, started.media_type, body, timer))
        if checked.body is None:
            start_response(started.status, started.headers)
            return [body]
        is_refused = checked.status == 500
        status_line = "500 Internal Server Error" if is_refused else started.status
        # Headers that describe the app's body are replaced.
        about_body = ("content-type", "content-length", "content-encoding", "etag")
        headers = [
            (name, value) for name, value in started.headers if name.lower() not in about_body
        ]
        headers.append(("Content-Type", "application/json"))
        headers.append(("Content-Length", str(len(checked.body))))
        start_response(status_line, headers)
        return [checked.body]


class _StartResponse:
    """The app's `start_response`: keeps the status line, headers and `write()` data."""

    def __init__(self) -> None:
        self.status = ""
        self.headers: list[tuple[str, str]] = []
        self.written: list[bytes] = []

    def __call__(
        self, status: str, headers: list[tuple[str, str]], exc_info: object = None
    ) -> Callable[[bytes], None]:
        self.status, self.headers = status, headers
        return self.written.append

    @property
    def code(self) -> int:
        number = self.status.partition(" ")[0]
        if number.isdecimal():
            return int(number)
        found = repr(self.status) if self.status else "it did not call start_response"
        raise ValueError(f"the app must start its response with a status such as '200 OK': {found}")

    @property
    def media_type(self) -> str:
        found = (value for name, value in self.headers if name.lower() == "content-type")
        return next(found, "").lower()


class _AppBody:
    """The app's body, preceded by its `write()` data.

    A generator calls `start_response` only when its first chunk is read, so that chunk is read
    here if the status is not known yet.
    """

    def __init__(self, chunks: Iterable[bytes], started: _StartResponse) -> None:
        self._chunks = chunks
        rest = iter(chunks)
        first = [] if started.status else list(islice(rest, 1))
        self._unread: Iterator[bytes] = chain(started.written, first, rest)

    def read_all(self) -> bytes | None:
        """Return the body and close it; None if it is too large and must be iterated instead."""
        held: list[bytes] = []
        size = 0
        try:
            for chunk in self._unread:
                held.append(chunk)
                size += len(chunk)
                if size > MAX_CHECKED_BYTES:
                    self._unread = chain(held, self._unread)
                    return None
        except BaseException:
            self.close()
            raise
        self.close()
        return b"".join(held)

    def __iter__(self) -> Iterator[bytes]:
        return self._unread

    def close(self) -> None:
        close = getattr(self._chunks, "close", None)
        if close is not None:
            close()
