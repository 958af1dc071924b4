"""Authenticates each request over HTTP or CGI, before anything else.

Over ASGI the user goes into the scope.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ...calls.failures import log_internal_error
from ...calls.runtime import Runtime
from ...core.authentication import (
    AppAuth,
    AuthPage,
    CannotAuthenticate,
    Challenge,
    Credentials,
    Unauthorized,
    User,
)
from ...core.log import logger
from ...core.reply import Reply, failure
from ...dialects import HttpReply
from ...dialects.status_and_headers import JSON
from ...errors import AnswerbackError
from ...protocol.jsonrpc import INVALID_REQUEST, RpcError, error_frame
from ...registry.composition import check_auth
from ..asgi.request import HttpRequest, Receive, Scope, Send
from .routes import PUBLIC, Routes
from .server_options import host_name, is_loopback

_CODES = {
    None: "LOGIN_REQUIRED",
    "invalid_token": "INVALID_TOKEN",
    "insufficient_scope": "SCOPE_REQUIRED",
    "invalid_request": "INVALID_INPUT",
}
_ANY_ORIGIN = (("Access-Control-Allow-Origin", "*"),)
_PREFLIGHT = (
    *_ANY_ORIGIN,
    ("Access-Control-Allow-Methods", "GET, OPTIONS"),
    ("Access-Control-Allow-Headers", "*"),
    ("Access-Control-Max-Age", "3600"),
)


class RefusedRequest(msgspec.Struct, frozen=True):
    """Why a request is refused, and the headers of the refusal."""

    reply: Reply[Any]
    headers: tuple[tuple[str, str], ...]

    def added_to(self, written: HttpReply) -> HttpReply:
        return msgspec.structs.replace(written, headers=(*written.headers, *self.headers))


class AuthenticationStep:
    """Authenticates the requests for one registry."""

    def __init__(self, auth: AppAuth) -> None:
        self._auth = auth
        self._pages: dict[str, AuthPage] = dict(auth.pages or {})
        self.loopback_only = auth.loopback_only

    def page(self, method: str, path: str) -> HttpReply | None:
        """Return the response to a GET of a page, or to its CORS preflight."""
        page = self._pages.get(path)
        if page is None or page.method != "GET" or not page.for_browsers:
            return None
        if method == "OPTIONS":
            return HttpReply(204, b"", JSON, _PREFLIGHT)
        if method not in ("GET", "HEAD"):
            return None
        return HttpReply(200, page.answer(b""), JSON, _ANY_ORIGIN)

    async def identify(self, credentials: Credentials) -> User | RefusedRequest | None:
        """Return a request's user, None for an anonymous one, or the refusal of the request."""
        if credentials.path in PUBLIC:
            return None
        try:
            user = _checked(await self._auth.authenticate(credentials))
        except Unauthorized as exc:
            return self._refusal(exc.challenge)
        except CannotAuthenticate:
            reply = failure("The token cannot be checked now; try again later", code="UNAVAILABLE")
            return RefusedRequest(reply, (("Retry-After", "5"),))
        except Exception:  # noqa: BLE001 -- an author's authenticator ends one request only
            log_internal_error("authentication")
            return RefusedRequest(failure("Internal server error"), ())
        if user is None and not self._auth.anonymous:
            return self._refusal(Challenge(description=self._auth.without_credentials))
        return user

    def has_post(self, path: str) -> bool:
        """Return whether there is a page at *path* that takes a POST."""
        page = self._pages.get(path)
        return page is not None and page.method == "POST"

    def answer_post(self, path: str, body: bytes) -> Reply[Any] | bytes | None:
        """Return the JSON of a page that takes a POST, or the refusal; None without such a page."""
        if not self.has_post(path):
            return None
        try:
            return self._pages[path].answer(body)
        except AnswerbackError as exc:
            return failure(str(exc), code=exc.code)

    def refuse_others(self, *addresses: str) -> Reply[Any] | None:
        """Return the refusal of a request unless all *addresses* are this machine's own."""
        local = (is_loopback(address.removeprefix("::ffff:")) for address in addresses)
        if not self.loopback_only or all(local):
            return None
        return failure("The development tokens are for this machine alone", code="FORBIDDEN")

    def _refusal(self, challenge: Challenge) -> RefusedRequest:
        header = ("WWW-Authenticate", self._auth.www_authenticate(challenge))
        if challenge.error is not None:
            # Without any part of the token.
            logger("answerback.auth").info("credentials were refused: %s", challenge.description)
        code = _CODES.get(challenge.error, "INVALID_TOKEN")
        message = challenge.description or "This needs a token"
        # A response to one client must not be stored for another.
        return RefusedRequest(
            failure(message[:1].upper() + message[1:], code=code),
            (header, ("Cache-Control", "no-store")),
        )


def _checked(user: object) -> User | None:
    """Return the user; raises TypeError for another value that a gate could mistake for one."""
    if user is None or isinstance(user, User):
        return user
    raise TypeError(
        f"authenticate() returned {type(user).__name__}; return a User, or None without credentials"
    )


def authentication_step(runtime: Runtime) -> AuthenticationStep | None:
    """Return a wire's step; None if it serves everyone.

    Raises ValueError if an included app authenticates more strictly.
    """
    registry = runtime.registry
    if registry.composition is not None:
        check_auth(registry, registry.apps())
    return None if runtime.auth is None else AuthenticationStep(runtime.auth)


class Authenticated:
    """Authenticates the requests of an AsgiApp."""

    def __init__(
        self, step: AuthenticationStep, routes: Routes, mcp_paths: tuple[str, ...]
    ) -> None:
        self._step = step
        self._routes = routes
        self._mcp_paths = mcp_paths

    async def answer_page(self, scope: Scope, receive: Receive, send: Send) -> bool:
        """Answer a request for the metadata, which is public; return False for other requests."""
        if ".well-known" not in scope["path"]:
            return False
        request = HttpRequest(scope, receive, send)
        page = self._step.page(request.method, request.path)
        if page is not None:
            await request.respond_with(page)
        return page is not None

    async def answer(self, request: HttpRequest, body: bytes | Reply[Any]) -> HttpReply | None:
        """Return the response to a request that is refused or needs no user; None lets it proceed.

        `scope["user"]` is the user then, or None for an anonymous request.
        """
        scope = request.scope
        if self._step.loopback_only:
            named = _names(request) if self._step.has_post(request.path) else []
            refused = self._step.refuse_others(*_addresses(request), *named)
            if refused is not None:
                return self._routes.refuse(refused, request)
        if request.method == "POST" and isinstance(body, bytes):
            answered = self._step.answer_post(request.path, body)
            if isinstance(answered, Reply):
                return self._routes.refuse(answered, request)
            if answered is not None:
                return HttpReply(200, answered, JSON, (("Cache-Control", "no-store"),))
        found = await self._step.identify(
            Credentials(
                request.method, request.path, scope.get("query_string", b""), scope["headers"]
            )
        )
        if isinstance(found, RefusedRequest):
            return found.added_to(self._write(found.reply, request))
        scope["user"] = found
        return None

    def _write(self, reply: Reply[Any], request: HttpRequest) -> HttpReply:
        if request.path not in self._mcp_paths:
            return self._routes.refuse(reply, request)
        assert reply.error is not None
        error = RpcError(INVALID_REQUEST, reply.error.message, {"code": reply.error.code})
        return HttpReply(reply.error.row.status, error_frame(None, error), JSON)


def _addresses(request: HttpRequest) -> list[str]:
    """Return the addresses of both ends of the connection, and of clients behind a proxy."""
    ends = [request.scope.get(name) for name in ("server", "client")]
    named = (b"forwarded", b"x-forwarded-for", b"x-real-ip")
    headers = request.headers
    behind = [headers[name].decode("latin-1") for name in named if name in headers]
    return [end[0] if end else "" for end in ends] + behind


def _names(request: HttpRequest) -> list[str]:
    """Return the hosts that a request names; a proxy without a name counts as an empty one.

    Another host's page may be allowed to call tools, but must not get a test token.
    """
    headers = request.headers
    names = [
        headers[name].decode("latin-1").lower().rpartition("://")[2]
        for name in (b"host", b"origin", b"x-forwarded-host")
        if name in headers
    ]
    return [*map(host_name, names), *([""] if b"via" in headers else [])]


def authenticated(
    runtime: Runtime, routes: Routes, mcp_paths: tuple[str, ...]
) -> Authenticated | None:
    """Return the authentication of a wire's requests; raises ValueError, as the step does."""
    step = authentication_step(runtime)
    return None if step is None else Authenticated(step, routes, mcp_paths)
