"""Authenticates each request over HTTP or CGI, before anything else."""

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
from ...registry.composition import check_auth
from .routes import PUBLIC
from .server_options import is_loopback

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
    """Why a request is refused, and the headers to refuse it with."""

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
        """Return the response to a GET request for a page, or to its CORS preflight."""
        page = self._pages.get(path)
        if page is None or page.method != "GET" or not page.for_browsers:
            return None
        if method == "OPTIONS":
            return HttpReply(204, b"", JSON, _PREFLIGHT)
        if method not in ("GET", "HEAD"):
            return None
        return HttpReply(200, page.answer(b""), JSON, _ANY_ORIGIN)

    async def identify(self, credentials: Credentials) -> User | RefusedRequest | None:
        """Return the user, None for an anonymous request, or a refusal."""
        if credentials.path in PUBLIC:
            return None
        try:
            user = await self._auth.authenticate(credentials)
            # A gate could mistake another value for a user.
            if not isinstance(user, User | None):
                raise TypeError(
                    f"authenticate() returned {type(user).__name__}; return a User, or None "
                    "if there are no credentials"
                )
        except Unauthorized as exc:
            return self._refusal(exc.challenge)
        except CannotAuthenticate:
            reply = failure("The token cannot be checked now; try again later", code="UNAVAILABLE")
            return RefusedRequest(reply, (("Retry-After", "5"),))
        except Exception:  # noqa: BLE001 -- a failing authenticator must fail only one request
            log_internal_error("authentication")
            return RefusedRequest(failure("Internal server error"), ())
        if user is None and not self._auth.anonymous:
            return self._refusal(Challenge(description=self._auth.without_credentials))
        return user

    def has_post(self, path: str) -> bool:
        """Return whether there is a page at *path* that accepts POST."""
        page = self._pages.get(path)
        return page is not None and page.method == "POST"

    def answer_post(self, path: str, body: bytes) -> Reply[Any] | bytes | None:
        """Return the JSON from a page that accepts POST, or a refusal; None if there is no page."""
        if not self.has_post(path):
            return None
        try:
            return self._pages[path].answer(body)
        except AnswerbackError as exc:
            return failure(str(exc), code=exc.code)

    def refuse_others(self, *addresses: str) -> Reply[Any] | None:
        """Return a refusal unless all *addresses* belong to this machine."""
        local = (is_loopback(address.removeprefix("::ffff:")) for address in addresses)
        if not self.loopback_only or all(local):
            return None
        return failure("Development tokens only work on this machine", code="FORBIDDEN")

    def _refusal(self, challenge: Challenge) -> RefusedRequest:
        header = ("WWW-Authenticate", self._auth.www_authenticate(challenge))
        if challenge.error is not None:
            # The description contains no part of the token.
            logger("answerback.auth").info("credentials were refused: %s", challenge.description)
        code = _CODES.get(challenge.error, "INVALID_TOKEN")
        message = challenge.description or "This needs a token"
        # A response to one client must not be cached for another.
        return RefusedRequest(
            failure(message[:1].upper() + message[1:], code=code),
            (header, ("Cache-Control", "no-store")),
        )


def authentication_step(runtime: Runtime) -> AuthenticationStep | None:
    """Return a wire's authentication step; None if it serves everyone.

    Raises ValueError if an included app authenticates more strictly.
    """
    registry = runtime.registry
    if registry.composition is not None:
        check_auth(registry, registry.apps())
    return None if runtime.auth is None else AuthenticationStep(runtime.auth)
