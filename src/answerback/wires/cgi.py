"""CGI (RFC 3875): the environment and stdin are one request, stdout is its response."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ..calls.pipeline import Call
from ..dialects import Written, write
from ..dialects.accept import choose
from ..errors import AnswerbackError
from ..reply import Reply, failure
from ..shape import RESULT
from .http.refusals import MAX_BODY, RESERVED, no_route, refuse_media, refuse_method
from .single_call import call_once
from .stdout import Stdout

if TYPE_CHECKING:
    from ..app import App

Environ: TypeAlias = Mapping[str, str]

_JSON = "application/json"
_ROUTE = "/functions/"

_INTERRUPTED = 130  # What a shell reports for SIGINT.

# Written by hand: it is sent when nothing of ours can be relied on.
_BROKEN = Written(500, b'{"error":"Internal server error"}', _JSON)


class BadSetting(AnswerbackError):
    """The server's own environment is set to what cannot be."""

    code = "BAD_SETTING"


def serve(load: Callable[[], App], environ: Environ, out: Stdout, source: int) -> int:
    """Answer the one request, and give the exit status; the response is whole in any case.

    The body is read from the file descriptor *source*.
    """
    # A client's `Proxy` header must not become the proxy of a tool's own requests (httpoxy).
    os.environ.pop("HTTP_PROXY", None)
    status = 0
    try:
        written = answer(load(), environ, source)
    except KeyboardInterrupt:
        written, status = _BROKEN, _INTERRUPTED
    except BaseException as exc:  # noqa: BLE001 -- the web server is owed a document
        _log(exc)
        written, status = _BROKEN, 1
    out.write(_head(written) + (b"" if _method(environ) == "HEAD" else written.body))
    out.close()
    return status


def _log(exc: BaseException) -> None:
    import logging

    log = logging.getLogger("answerback")
    if isinstance(exc, AnswerbackError):
        # It says what to change; where we found out tells nothing.
        log.error("the request could not be answered: %s", exc, exc_info=exc.__cause__)
    else:
        log.error("the request could not be answered", exc_info=exc)


def answer(app: App, environ: Environ, source: int) -> Written:
    path = _path(environ)
    if path in _PAGES:
        refused = refuse_method(_method(environ), "GET, HEAD")
        if refused is not None:
            return _say(app, refused, environ, allow="GET, HEAD")
        return Written(200, _PAGES[path](app, environ), _JSON)
    name = _function_at(path, app)
    if not name:
        return _say(app, no_route(path), environ)
    return _say(app, _reply(app, name, environ, source), environ, name)


def _reply(app: App, name: str, environ: Environ, source: int) -> Reply[Any]:
    refused = refuse_method(_method(environ), "POST") or refuse_media(
        environ.get("CONTENT_TYPE", "")
    )
    if refused is not None:
        return refused
    body = _read_body(environ, source)
    if isinstance(body, Reply):
        return body
    return call_once(app, Call(name, body or b"{}", wire="cgi"))


def _read_body(environ: Environ, source: int) -> bytes | Reply[Any]:
    """The body, or the reply to one that cannot be read."""
    length = environ.get("CONTENT_LENGTH", "")
    if not length and "HTTP_TRANSFER_ENCODING" in environ:
        return _bad_request("Content-Length is missing; CGI cannot read a body without it")
    if not length:
        return b""
    if not (length.isascii() and length.isdigit()):
        return _bad_request(f"Invalid Content-Length: {length}")
    limit = _max_body(environ)
    # Python refuses to read a number of thousands of digits.
    size = int(length) if len(length) < 20 else limit + 1
    if size > limit:
        return failure(
            f"Body larger than {limit} bytes",
            code="TOO_LARGE",
            hint="send less, or set ANSWERBACK_MAX_BODY to more where the server runs this",
        )
    body = _read(source, size)
    if len(body) < size:
        return _bad_request(f"Body ended after {len(body)} of {size} bytes")
    return body


def _read(source: int, size: int) -> bytes:
    """Read *size* bytes and no more: a server need not close stdin, so its end may never come."""
    parts = []
    while size and (part := os.read(source, min(size, 1 << 20))):
        parts.append(part)
        size -= len(part)
    return b"".join(parts)


def _bad_request(message: str) -> Reply[Any]:
    return failure(message, code="INVALID_INPUT")


def _max_body(environ: Environ) -> int:
    said = environ.get("ANSWERBACK_MAX_BODY") or str(MAX_BODY)
    if not (said.isascii() and said.isdigit()):
        raise BadSetting(f"ANSWERBACK_MAX_BODY is {said!r}; write a number of bytes")
    return int(said)


def _method(environ: Environ) -> str:
    return environ.get("REQUEST_METHOD") or "GET"


def _path(environ: Environ) -> str:
    """The path, which the server has decoded; bytes that are not UTF-8 are made visible."""
    return os.fsencode(environ.get("PATH_INFO") or "/").decode("utf-8", "replace")


def _function_at(path: str, app: App) -> str:
    """The function's name, or an empty string for any other path."""
    for route in (app.contract.route, _ROUTE):
        if route != "/" and path.startswith(route):
            return path[len(route) :]
    name = path.removeprefix("/")
    return "" if name.partition("/")[0] in RESERVED else name


def _say(
    app: App, reply: Reply[Any], environ: Environ, name: str = "", allow: str = "POST"
) -> Written:
    tool = app.tools.get(name)
    dialect = choose(environ.get("HTTP_ACCEPT"), app.contract, failed=not reply.ok)
    # An error has no shape, and may be that the annotations could not be read.
    shape = tool.shape if tool is not None and reply.ok else RESULT
    written = write(reply, dialect, shape, app.contract)
    if written.status != 405:
        return written
    return msgspec.structs.replace(written, headers=(*written.headers, ("Allow", allow)))


def _head(written: Written) -> bytes:
    from http import HTTPStatus

    lines = [
        f"Status: {written.status} {HTTPStatus(written.status).phrase}",
        f"Content-Type: {written.media_type}",
        f"Content-Length: {len(written.body)}",
        *(f"{name}: {value}" for name, value in written.headers),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")


def _functions(app: App, environ: Environ) -> bytes:
    from .listing import listing

    return msgspec.json.encode(listing(app))


def _openapi(app: App, environ: Environ) -> bytes:
    from .http.openapi import document_json

    return document_json(app, environ.get("SCRIPT_NAME", ""))


def _health(app: App, environ: Environ) -> bytes:
    from .listing import health

    return msgspec.json.encode(health(app))


_PAGES: Mapping[str, Callable[[App, Environ], bytes]] = {
    "/functions": _functions,
    "/openapi.json": _openapi,
    "/healthz": _health,
}
