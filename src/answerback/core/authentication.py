"""A call's user, the login challenge for a client, and the interface of authenticators.

The authenticators are in `answerback.auth`. The gates and the wires need only this module.
"""

from __future__ import annotations

import re
from abc import abstractmethod
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from types import MappingProxyType
from typing import Any, Literal, Protocol, cast

import msgspec

from ..errors import AnswerbackError


class User(msgspec.Struct, frozen=True, kw_only=True, eq=False, dict=True):
    """An authenticated user; `ctx.user` is one if the app has `auth=`.

    `repr` shows neither the claims nor the subject, because they may be secret.
    """

    subject: str
    """The issuer's id for the user, or the name of the program that holds the key."""
    issuer: str = ""
    """Who issued the token."""
    scopes: frozenset[str] = frozenset()
    """The scopes of the token or key."""
    client: str | None = None
    """The id of the program that the user logged in with."""
    claims: Mapping[str, Any] = {}
    """All the token's claims."""
    expires: float | None = None
    """When the token expires, in seconds since 1970; None if it does not expire."""

    @cached_property
    def key(self) -> bytes:
        """A digest of the issuer and subject, the same for all of a user's tokens."""
        return _digest(self)[:8]

    def __repr__(self) -> str:
        return f"<User {self.key.hex()} scopes={sorted(self.scopes)}>"


def owner_of(user: object) -> str:
    """Return the owner name for a user's tasks and replies; empty if *user* is not a `User`."""
    return _digest(user)[:16].hex() if isinstance(user, User) else ""


def _digest(user: User) -> bytes:
    from hashlib import sha256

    return sha256(f"{user.issuer}\0{user.subject}".encode("utf-8", "replace")).digest()


class Challenge(msgspec.Struct, frozen=True, kw_only=True):
    """Why a client must log in (401), or must log in with more scopes (403).

    A request with credentials in two places, or in the wrong place, is answered with 400.
    """

    status: Literal[400, 401, 403] = 401
    """The HTTP status of the response."""
    error: str | None = None
    """"invalid_token", "insufficient_scope" or "invalid_request"; None if no token was sent."""
    description: str = ""
    """A human-readable description of the problem."""
    scopes: tuple[str, ...] = ()
    """All the scopes that the request needs."""


class UsedTokens(Protocol):
    """Remembers used tokens, for example in a database that several machines share."""

    def add(self, token: bytes, expires: int) -> bool:
        """Remember *token* until *expires*, in seconds since 1970; return False if already known.

        Of two simultaneous calls with the same token, only one may return True.
        """


class Unauthorized(AnswerbackError):
    """A request's credentials are bad, or missing although the app requires them.

    *challenge* is sent to the client.
    """

    code = "INVALID_TOKEN"

    def __init__(self, challenge: Challenge) -> None:
        super().__init__(challenge.description)
        self.challenge = challenge


class CannotAuthenticate(AnswerbackError):
    """The credentials cannot be checked: the identity provider is not answering."""

    code = "UNAVAILABLE"


class AuthPage(msgspec.Struct, frozen=True, kw_only=True):
    """A page that is served for the authenticator and needs no credentials."""

    answer: Callable[[bytes], bytes]
    """Returns JSON for the request's body; if it raises an AnswerbackError, the error is sent."""
    method: Literal["GET", "POST"] = "GET"
    for_browsers: bool = False
    """Whether web pages from any origin may read it."""


class Credentials(msgspec.Struct, frozen=True):
    """The parts of an HTTP request that can hold credentials."""

    method: str
    """The request's method."""
    path: str
    """The request's path."""
    query: bytes
    """The query string."""
    headers: Sequence[tuple[bytes, bytes]]
    """The names are in lower case and may be repeated."""

    def __repr__(self) -> str:
        return f"<Credentials {self.method} {self.path}>"


class Authenticator(Protocol):
    """The members your own class must have to authenticate HTTP requests.

    It may also have the other members of `AppAuth`, such as `pages`.
    """

    @property
    def anonymous(self) -> bool:
        """Whether requests without credentials are served."""

    @abstractmethod
    async def authenticate(self, credentials: Credentials) -> User | None:
        """Return the user; None if there are no credentials.

        Raises Unauthorized if they are bad, and CannotAuthenticate if they cannot be checked.
        """

    @abstractmethod
    def www_authenticate(self, challenge: Challenge) -> str:
        """Return the value of the `WWW-Authenticate` header for a challenge."""


class AppAuth(Authenticator):
    """An app's authenticator, and how its clients log in.

    `OAuth` and `ApiKeys` are subclasses. An author's own class is adapted to this one.
    """

    url: str = ""
    """The MCP endpoint's URL, if it is known."""
    issuer: str = ""
    """The issuer of the tokens; empty if there is none."""
    scopes: tuple[str, ...] = ()
    """The scopes that every token must have."""
    security_schemes: Mapping[str, Any] = MappingProxyType({})
    """Security schemes in the OpenAPI document, in addition to the bearer token."""
    loopback_only: bool = False
    """Whether only clients on this machine are served."""
    has_own_url: bool = True
    """Whether the author set the URL; if not, `serve` sets it."""
    has_logins: bool = True
    """Whether users log in; if not, programs have keys."""
    without_credentials: str = "This needs a token: send it as Authorization: Bearer TOKEN"
    """The message for a client that sent no credentials."""

    @property
    def anonymous(self) -> bool:
        return False

    def asked_scopes(self, scopes: Sequence[str]) -> tuple[str, ...]:
        """Return the names that clients use to ask the issuer for these scopes."""
        return tuple(scopes)

    @property
    def pages(self) -> Mapping[str, AuthPage] | None:
        """The pages by path; None if clients cannot find out where to log in."""
        return None


_MEMBERS = (
    *("url", "issuer", "scopes", "security_schemes", "loopback_only", "has_own_url"),
    *("has_logins", "without_credentials"),
)


class _AuthorsAuth(AppAuth):
    """An author's own authenticator, which may lack some members of AppAuth."""

    def __init__(self, given: Authenticator) -> None:
        self._given = given
        for name in _MEMBERS:
            if hasattr(given, name):
                setattr(self, name, getattr(given, name))

    @property
    def anonymous(self) -> bool:
        return bool(self._given.anonymous)

    @property
    def pages(self) -> Mapping[str, AuthPage] | None:
        found: Mapping[str, AuthPage] | None = getattr(self._given, "pages", None)
        return found

    async def authenticate(self, credentials: Credentials) -> User | None:
        return await self._given.authenticate(credentials)

    def www_authenticate(self, challenge: Challenge) -> str:
        return self._given.www_authenticate(challenge)

    def __repr__(self) -> str:
        return repr(self._given)


def checked_authenticator(given: object) -> AppAuth:
    """Return *given* as an `AppAuth`; the TypeError for a wrong value must not show it."""
    name = type(given).__name__
    if isinstance(given, type):
        raise TypeError(f"auth is the class {given.__name__} itself; write {given.__name__}(…)")
    if isinstance(given, list | tuple):
        raise TypeError(
            f"auth takes one object, not a {name}; write a class whose authenticate() tries each "
            "in turn"
        )
    methods = ("authenticate", "www_authenticate")
    if not all(callable(getattr(given, each, None)) for each in methods):
        raise TypeError(
            f"auth=<{name}> cannot authenticate requests; write OAuth(issuer=…, url=…) or "
            "ApiKeys({…}) from answerback.auth"
        )
    return given if isinstance(given, AppAuth) else _AuthorsAuth(cast("Authenticator", given))


def bearer_challenge(challenge: Challenge, **more: str) -> str:
    """Return the value of `WWW-Authenticate` (RFC 6750); *more* holds extra parameters."""
    parameters = {
        "error": challenge.error or "",
        "error_description": challenge.description if challenge.error else "",
        **more,
        "scope": " ".join(challenge.scopes),
    }
    written = [f'{name}="{quotable(value)}"' for name, value in parameters.items() if value]
    return f"Bearer {', '.join(written)}" if written else "Bearer"


def is_scope_text(text: str) -> bool:
    """Return whether RFC 6749 allows all the characters: no space, quotation mark or backslash."""
    return all("!" <= char <= "~" and char not in '"\\' for char in text)


def quotable(text: str) -> str:
    """Return the text without the characters that RFC 6750 forbids between quotation marks."""
    return re.sub(r"[^ !#-\[\]-~]", " ", text.replace('"', "'"))
