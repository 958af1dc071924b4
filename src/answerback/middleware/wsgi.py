"""WSGI: for any Flask app whose responses are envelopes or MCP results."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Sequence
from typing import TYPE_CHECKING, Any

from .bodies import PAGES, Bodies
from .replies import Clock

if TYPE_CHECKING:
    from ..contract import Dialect
    from ..records import Records

_PHRASES = {500: "500 Internal Server Error"}


class ValidReplies:
    """Lets no invalid reply out: `app.wsgi_app = ValidReplies(app.wsgi_app)`.

    Every response below *only* is taken for a reply, but for those below *skip*. One that
    is none is answered with status 500 in its place. Put it inside whatever compresses.
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
        chunks = self.app(environ, started)
        status = int(started.status.split()[0])
        if not self._bodies.is_one(status, started.media_type):
            start_response(started.status, started.headers)
            return chunks
        body = _whole(chunks)
        judged = self._bodies.judge(path, "wsgi", status, body, clock)
        if judged.body is None:
            start_response(started.status, started.headers)
            return [body]
        phrase = _PHRASES.get(judged.status, started.status)
        start_response(phrase, _headers(started.headers, judged.body))
        return [judged.body]


class _Started:
    """What the app says before its body."""

    def __init__(self) -> None:
        self.status = "500 Internal Server Error"
        self.headers: list[tuple[str, str]] = []

    def __call__(self, status: str, headers: list[tuple[str, str]], exc_info: Any = None) -> None:
        self.status, self.headers = status, headers

    @property
    def media_type(self) -> str:
        found = (value for name, value in self.headers if name.lower() == "content-type")
        return next(found, "").lower()


def _whole(chunks: Iterable[bytes]) -> bytes:
    try:
        return b"".join(chunks)
    finally:
        close = getattr(chunks, "close", None)
        if close is not None:
            close()


def _headers(headers: list[tuple[str, str]], body: bytes) -> list[tuple[str, str]]:
    """Those of another body say nothing about this one."""
    about_body = ("content-type", "content-length", "content-encoding", "etag")
    kept = [(name, value) for name, value in headers if name.lower() not in about_body]
    return [*kept, ("Content-Type", "application/json"), ("Content-Length", str(len(body)))]
