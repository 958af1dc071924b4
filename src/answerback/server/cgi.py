"""CGI (RFC 3875): reads one request from the environment and stdin, and responds on stdout."""

from __future__ import annotations

import _signal as signal  # type: ignore[import-not-found]  # Not in typeshed; `signal` is slow.
import os
import sys
from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import TYPE_CHECKING, Any, TypeAlias

from ..calls.runners import run_without_loop
from ..calls.runtime import Runtime, runtime_for_one_call
from ..core.limits import MAX_BODY
from ..core.log import logger
from ..core.reply import Reply, failure
from ..dialects import HttpReply
from ..errors import AnswerbackError, Interrupted
from ..registry.declarations import HasRegistry, Registry, registry_of
from .http.routes import Routes, refuse_encoding, too_large
from .process import Stdout

if TYPE_CHECKING:
    from ..core.authentication import User
    from ..core.request_info import RequestInfo

Environ: TypeAlias = Mapping[str, str]

_INTERRUPTED = 130  # A shell reports this status for SIGINT.
_MAX_DISCARDED = 64 * 1024 * 1024
"""Maximum number of bytes to read from a refused body, beyond the body limit."""
_DISCARD_TIMEOUT = 5.0
"""Seconds to wait for the next bytes of a refused body."""

# Hard-coded, because it is sent when our own code has failed.
_INTERNAL_ERROR = HttpReply(500, b'{"error":"Internal server error"}', "application/json")
_NO_LENGTH = "The request has a body, but CONTENT_LENGTH is not set"
_LENGTH_HINT = "set CONTENT_LENGTH to the number of bytes in the body"
_MAX_BODY_HINT = "send less, or raise ANSWERBACK_MAX_BODY in the web server's environment"


class BadSetting(AnswerbackError):
    """A variable in the server's environment has an invalid value."""

    code = "BAD_SETTING"


class CgiRequest:
    """The request described by the environment."""

    is_disconnected = None

    def __init__(self, environ: Environ) -> None:
        self.method = _text(environ, "REQUEST_METHOD") or "GET"
        # The web server has already decoded the path.
        path = _text(environ, "PATH_INFO") or "/"
        self.path = path[:-1] if path.endswith("/") and len(path) > 1 else path
        self.root = _text(environ, "SCRIPT_NAME")
        self.accept = os.fsencode(environ.get("HTTP_ACCEPT", ""))
        self.content_type = os.fsencode(environ.get("CONTENT_TYPE", ""))
        self.query = os.fsencode(environ.get("QUERY_STRING", ""))
        self.caller = ""
        self.user: User | None = None
        self.has_auth = False
        self._environ = environ

    @property
    def headers(self) -> Mapping[bytes, bytes]:
        return dict(_headers(self._environ))

    def describe_request(self, wire: str) -> RequestInfo:
        """Return the request's data for `ctx.request`."""
        from .cgi_request_info import CgiRequestInfo

        info = CgiRequestInfo(wire, self._environ)
        info.authenticated, info.has_auth = self.user, self.has_auth
        return info


class RequestBody:
    """The request body, read from the file descriptor *source*."""

    def __init__(self, environ: Environ, source: int) -> None:
        self._environ = environ
        self._source = source
        self._length = _text(environ, "CONTENT_LENGTH")
        self._read = 0
        """The number of bytes read so far."""

    def read(self) -> bytes | Reply[Any]:
        """Return the body, or a refusal."""
        length = self._length
        if "HTTP_CONTENT_ENCODING" in self._environ:
            refused = refuse_encoding(os.fsencode(self._environ["HTTP_CONTENT_ENCODING"]))
            if refused is not None:
                return refused
        if self._is_without_length:
            return _bad_request("Content-Length is missing; CGI cannot read a body without it")
        if not length:
            return _bad_request(_NO_LENGTH, _LENGTH_HINT) if self._has_body() else b""
        if not _is_number(length):
            return _bad_request(f"Invalid Content-Length: {length}")
        setting = self._environ.get("ANSWERBACK_MAX_BODY") or str(MAX_BODY)
        if not _is_number(setting):
            raise BadSetting(f"ANSWERBACK_MAX_BODY is {setting!r}; set it to a number of bytes")
        limit = _int(setting)
        size = _int(length)
        if size > limit:
            return too_large(limit, _MAX_BODY_HINT)
        chunks = []
        # Do not read to EOF, which may never come: a web server need not close stdin.
        while chunk := os.read(self._source, min(size - self._read, 1 << 20)):
            chunks.append(chunk)
            self._read += len(chunk)
        if self._read < size:
            return _bad_request(f"Body ended after {self._read} of {size} bytes")
        return b"".join(chunks)

    def _has_body(self) -> bool:
        """Return whether stdin has data although no length is set, as when run from a shell.

        Does not block: a web server need not close stdin for a request without a body.
        """
        import select

        try:
            is_ready = bool(select.select([self._source], [], [], 0)[0])
            return is_ready and not os.isatty(self._source) and bool(os.read(self._source, 1))
        except (OSError, ValueError):
            return False

    def discard_rest(self) -> None:
        """Read the rest of a refused body, up to a limit.

        Apache's mod_cgid and fcgiwrap write the whole body before they read the response. If the
        program exits before that, they drop its response.
        """
        rest = _MAX_DISCARDED + MAX_BODY
        if not self._is_without_length:
            rest = min(rest, _int(self._length) - self._read) if _is_number(self._length) else 0
        if rest <= 0:
            return
        import select

        with suppress(OSError):
            while rest > 0 and select.select([self._source], [], [], _DISCARD_TIMEOUT)[0]:
                chunk = os.read(self._source, min(rest, 1 << 16))
                if not chunk:
                    return
                rest -= len(chunk)

    @property
    def _is_without_length(self) -> bool:
        """Whether the body is chunked. It ends at EOF, but only if the web server closes stdin."""
        return not self._length and "HTTP_TRANSFER_ENCODING" in self._environ


def serve(load: Callable[[], HasRegistry], environ: Environ, out: Stdout, source: int = 0) -> int:
    """Answer the request, and return the exit status. Always writes a complete response.

    *source* is the file descriptor of the request's body.
    """
    # A client's `Proxy` header must not become the proxy for a tool's own requests (httpoxy).
    os.environ.pop("HTTP_PROXY", None)
    body = RequestBody(environ, source)

    def interrupt(*_: object) -> None:
        raise Interrupted

    # Interrupted keeps Ctrl-C from being mistaken for an exception in the tool. If the web server
    # ignores the signal, or the author handles it, leave the handler alone.
    if signal.getsignal(signal.SIGINT) is signal.default_int_handler:
        signal.signal(signal.SIGINT, interrupt)
    status = 0
    try:
        written = answer(registry_of(load()), environ, body)
    except KeyboardInterrupt:
        written, status = _INTERNAL_ERROR, _INTERRUPTED
    except BaseException as exc:  # The web server expects a response, whatever failed.
        log = logger()
        if isinstance(exc, AnswerbackError):
            # Its message says what to change; our own traceback would not help.
            log.error("the request could not be answered: %s", exc, exc_info=exc.__cause__)
        else:
            log.error("the request could not be answered", exc_info=exc)
        written, status = _INTERNAL_ERROR, 1
    body.discard_rest()
    phrase = "OK"
    if written.status != 200:
        # Imported here, to save successful requests a millisecond.
        from http import HTTPStatus

        phrase = HTTPStatus(written.status).phrase
    lines = [
        f"Status: {written.status} {phrase}",
        f"Content-Type: {written.media_type}",
        f"Content-Length: {len(written.body)}",
        *(f"{name}: {value}" for name, value in written.headers),
    ]
    head = "\r\n".join([*lines, "", ""]).encode("latin-1", "replace")
    is_head = environ.get("REQUEST_METHOD") == "HEAD"
    out.write(head + (b"" if is_head else written.body))
    out.close()
    return status


def answer(registry: Registry, environ: Environ, body: RequestBody) -> HttpReply:
    """Return the response to the request described by the environment."""
    request = CgiRequest(environ)
    content = body.read() if request.method == "POST" else b""
    # The web server has removed the script's own path, so "/NAME" names a tool too.
    prefixes = dict.fromkeys((registry.contract.route, "/functions/", "/"))
    longest_first = tuple(sorted(prefixes, key=len, reverse=True))
    runtime = runtime_for_one_call(registry)
    routes = Routes(runtime, wire="cgi", prefixes=longest_first, has_tasks=False)
    if runtime.auth is not None or registry.composition is not None:
        refused = _authenticate(runtime, request, environ, routes)
        if refused is not None:
            return refused
    return run_without_loop(routes.answer(request, content))


def _authenticate(
    runtime: Runtime, request: CgiRequest, environ: Environ, routes: Routes
) -> HttpReply | None:
    """Return a refusal or a page; None lets the request proceed."""
    from .http.authentication_step import RefusedRequest, authentication_step

    step = authentication_step(runtime)
    if step is None:
        return None
    page = step.page(request.method, request.path)
    if page is not None:
        return page
    refused = step.refuse_others(environ.get("REMOTE_ADDR", ""))
    if refused is not None:
        return routes.refuse(refused, request)
    # Fetching an issuer's keys needs an event loop.
    import asyncio

    from ..core.authentication import Credentials

    credentials = Credentials(request.method, request.path, request.query, _headers(environ))
    found = asyncio.run(step.identify(credentials))
    if isinstance(found, RefusedRequest):
        return found.added_to(routes.refuse(found.reply, request))
    request.user, request.has_auth = found, True
    return None


def _headers(environ: Environ) -> list[tuple[bytes, bytes]]:
    return [
        (name.removeprefix("HTTP_").replace("_", "-").lower().encode(), os.fsencode(value))
        for name, value in environ.items()
        if name.startswith("HTTP_")
    ]


def _bad_request(message: str, hint: str | None = None) -> Reply[Any]:
    return failure(message, code="INVALID_INPUT", hint=hint)


def _text(environ: Environ, name: str) -> str:
    """Return a variable as text; invalid UTF-8 is replaced."""
    return os.fsencode(environ.get(name, "")).decode("utf-8", "replace")


def _is_number(text: str) -> bool:
    return text.isascii() and text.isdigit()


def _int(digits: str) -> int:
    # Python refuses to convert thousands of digits.
    return int(digits) if len(digits) < 20 else sys.maxsize
