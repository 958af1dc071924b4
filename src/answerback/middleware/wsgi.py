"""WSGI: for any Flask app whose responses are envelopes or MCP results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Sequence
from itertools import chain, islice
from typing import TYPE_CHECKING, Any

from .checker import Clock
from .http_checker import PAGES, Bodies, Sent

if TYPE_CHECKING:
    from ..contract import Dialect
    from ..records import Records

_PHRASES = {500: "500 Internal Server Error"}


class ValidReplies:
    """Lets no invalid reply out: `app.wsgi_app = ValidReplies(app.wsgi_app)`.

    Every response below *only* is taken for a reply, but for those below *skip*. One that
    is none is answered with status 500 in its place; errors of the framework's own pass.
    Put it inside whatever compresses.
    """

    def __init__(
        self,
        app: Callable[..., Iterable[bytes]],
        *,
        dialect: Dialect | None = None,
        records: Records | None = None,
        only: Sequence[str] = ("/",),
        skip: Sequence[str] = PAGES,
    ) -> None:
        self.app = app
        self._bodies = Bodies(dialect, records, only, skip)

    def __call__(
        self, environ: dict[str, Any], start_response: Callable[..., Any]
    ) -> Iterable[bytes]:
        path = environ.get("PATH_INFO") or "/"
        if not self._bodies.is_reply_to(environ.get("REQUEST_METHOD", "GET"), path):
            return self.app(environ, start_response)
        clock, started = Clock(), _Started()
        chunks = _Body(self.app(environ, started), started)
        status = int(started.status.split()[0])
        if not self._bodies.is_one(status, started.media_type):
            start_response(started.status, started.headers)
            return chunks
        body = _whole(chunks)
        sent = Sent(path, "wsgi", status, started.media_type, body)
        judged = self._bodies.judge(sent, clock)
        if judged.body is None:
            start_response(started.status, started.headers)
            return [body]
        phrase = _PHRASES.get(judged.status, started.status)
        start_response(phrase, _headers(started.headers, judged.body))
        return [judged.body]


class _Started:
    """What the app says before its body."""

    def __init__(self) -> None:
        self.status = ""
        self.headers: list[tuple[str, str]] = []
        self.written: list[bytes] = []

    def __call__(
        self, status: str, headers: list[tuple[str, str]], exc_info: Any = None
    ) -> Callable[[bytes], None]:
        self.status, self.headers = status, headers
        return self.written.append

    @property
    def media_type(self) -> str:
        found = (value for name, value in self.headers if name.lower() == "content-type")
        return next(found, "").lower()


class _Body:
    """The app's body, from where the app has said its status: some do so with the first part."""

    def __init__(self, chunks: Iterable[bytes], started: _Started) -> None:
        self._chunks = chunks
        self._rest = iter(chunks)
        self._first = [] if started.status else list(islice(self._rest, 1))
        self._written = started.written

    def __iter__(self) -> Iterator[bytes]:
        return chain(self._written, self._first, self._rest)

    def close(self) -> None:
        close = getattr(self._chunks, "close", None)
        if close is not None:
            close()


def _whole(chunks: _Body) -> bytes:
    try:
        return b"".join(chunks)
    finally:
        chunks.close()


def _headers(headers: list[tuple[str, str]], body: bytes) -> list[tuple[str, str]]:
    """Those of another body say nothing about this one."""
    about_body = ("content-type", "content-length", "content-encoding", "etag")
    kept = [(name, value) for name, value in headers if name.lower() not in about_body]
    return [*kept, ("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
