"""CGI (RFC 3875): the environment and stdin are one request, stdout is its response."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping
from typing import Any, TypeAlias

from ..calls.failures import Interrupted
from ..calls.handlers import tools_handler
from ..calls.pipeline import run_without_loop
from ..calls.runners import run_in_new_loop, run_in_place
from ..dialects import HttpReply
from ..errors import AnswerbackError
from ..limits import MAX_BODY
from ..registry import Registry
from ..reply import Reply, failure
from .http.refusals import too_large
from .http.routes import Routes
from .standard_streams import Stdout

Environ: TypeAlias = Mapping[str, str]

_INTERRUPTED = 130  # A shell reports this status for SIGINT.

# Written by hand, because it is sent when our own code failed.
_INTERNAL_ERROR = HttpReply(500, b'{"error":"Internal server error"}', "application/json")
_MAX_BODY_HINT = "send less, or set ANSWERBACK_MAX_BODY to more where the server runs this"


class BadSetting(AnswerbackError):
    """A variable in the server's environment has an invalid value."""

    code = "BAD_SETTING"


class CgiRequest:
    """The request that the environment describes."""

    is_disconnected = None

    def __init__(self, environ: Environ) -> None:
        self.method = environ.get("REQUEST_METHOD") or "GET"
        # The web server has decoded the path; bytes that are not UTF-8 are made visible.
        self.path = os.fsencode(environ.get("PATH_INFO") or "/").decode("utf-8", "replace")
        self.root = environ.get("SCRIPT_NAME", "")
        self.accept = os.fsencode(environ.get("HTTP_ACCEPT", ""))
        self.content_type = os.fsencode(environ.get("CONTENT_TYPE", ""))
        self.caller = ""


def serve(load: Callable[[], Registry], environ: Environ, out: Stdout, source: int = 0) -> int:
    """Answer the one request, and return the exit status. It always writes a whole response.

    *source* is the file descriptor of the request's body.
    """
    # A client's `Proxy` header must not become the proxy of a tool's own requests (httpoxy).
    os.environ.pop("HTTP_PROXY", None)
    _tell_real_interrupts()
    status = 0
    try:
        written = answer(load(), environ, source)
    except KeyboardInterrupt:
        written, status = _INTERNAL_ERROR, _INTERRUPTED
    except BaseException as exc:  # noqa: BLE001 -- the web server expects a response
        _log(exc)
        written, status = _INTERNAL_ERROR, 1
    is_head = environ.get("REQUEST_METHOD") == "HEAD"
    out.write(_head(written) + (b"" if is_head else written.body))
    out.close()
    return status


def _tell_real_interrupts() -> None:
    """Let Ctrl-C raise Interrupted, so that it is not taken for an exception of the tool."""
    # The module behind `signal`, whose import takes a millisecond of each request.
    import _signal as signal  # type: ignore[import-not-found]  # typeshed lacks it

    def interrupt(*_: object) -> None:
        raise Interrupted

    # The web server may ignore the signal, and the author may handle it.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)


def answer(registry: Registry, environ: Environ, source: int = 0) -> HttpReply:
    """The response to the request that the environment describes."""
    request = CgiRequest(environ)
    body = _read_body(environ, source) if request.method == "POST" else b""
    handle = tools_handler(registry, run_in_place(run_in_new_loop))
    # The web server has removed the script's own path, so "/NAME" alone names a tool too.
    prefixes = dict.fromkeys((registry.contract.route, "/functions/", "/"))
    routes = Routes(
        registry, handle, wire="cgi", prefixes=tuple(sorted(prefixes, key=len, reverse=True))
    )
    return run_without_loop(routes.answer(request, body))


def _log(exc: BaseException) -> None:
    import logging

    log = logging.getLogger("answerback")
    if isinstance(exc, AnswerbackError):
        # Its message says what to change; our own traceback would not help.
        log.error("the request could not be answered: %s", exc, exc_info=exc.__cause__)
    else:
        log.error("the request could not be answered", exc_info=exc)


def _read_body(environ: Environ, source: int) -> bytes | Reply[Any]:
    """The body, or the refusal of one."""
    length = environ.get("CONTENT_LENGTH", "")
    if not length and "HTTP_TRANSFER_ENCODING" in environ:
        return _bad_request("Content-Length is missing; CGI cannot read a body without it")
    if not length:
        return b""
    if not (length.isascii() and length.isdigit()):
        return _bad_request(f"Invalid Content-Length: {length}")
    limit = _max_body(environ)
    # Python refuses to convert thousands of digits.
    size = int(length) if len(length) < 20 else limit + 1
    if size > limit:
        return too_large(limit, _MAX_BODY_HINT)
    body = _read(source, size)
    if len(body) < size:
        return _bad_request(f"Body ended after {len(body)} of {size} bytes")
    return body


def _read(source: int, size: int) -> bytes:
    """Read *size* bytes and no more: a web server need not close stdin, so EOF may not come."""
    chunks = []
    while size and (chunk := os.read(source, min(size, 1 << 20))):
        chunks.append(chunk)
        size -= len(chunk)
    return b"".join(chunks)


def _bad_request(message: str) -> Reply[Any]:
    return failure(message, code="INVALID_INPUT")


def _max_body(environ: Environ) -> int:
    setting = environ.get("ANSWERBACK_MAX_BODY") or str(MAX_BODY)
    if not (setting.isascii() and setting.isdigit()):
        raise BadSetting(f"ANSWERBACK_MAX_BODY is {setting!r}; write a number of bytes")
    return int(setting)


def _head(written: HttpReply) -> bytes:
    from http import HTTPStatus

    lines = [
        f"Status: {written.status} {HTTPStatus(written.status).phrase}",
        f"Content-Type: {written.media_type}",
        f"Content-Length: {len(written.body)}",
        *(f"{name}: {value}" for name, value in written.headers),
    ]
    return "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")
