"""Introspection: asks the issuer whether each token is valid (RFC 7662, or a custom lookup)."""

from __future__ import annotations

from collections.abc import Mapping
from time import monotonic
from typing import Any, Protocol

import msgspec

from ..core.authentication import CannotAuthenticate
from ..core.log import logger
from .bearer import digest_of, invalid_token, is_secure

_MAX_REQUESTS = 32
"""The maximum number of concurrent requests; anyone can trigger one by sending a new token."""
_INACTIVE_SECONDS = 5.0
"""Seconds before the issuer is asked again about an inactive token."""
_MAX_INACTIVE = 1000


class Introspection(msgspec.Struct, frozen=True, kw_only=True):
    """How to ask the issuer about tokens: `OAuth(introspection=Introspection(...))`."""

    client_id: str
    """The client id that the issuer assigned to this server."""
    client_secret: str
    """The client secret that the issuer assigned to this server."""
    url: str | None = None
    """The endpoint; by default, the one in the issuer's metadata."""
    seconds: float = 30.0
    """How long a response is cached, and so how long a revoked token may still be accepted."""

    def __post_init__(self) -> None:
        if self.url is not None and not is_secure(self.url):
            raise ValueError(f"url={self.url!r} should be an https URL")

    def __repr__(self) -> str:
        return f"<Introspection client_id={self.client_id!r}>"


class TokenLookup(Protocol):
    """Finds out who a token belongs to, for `OAuth(introspection=...)`.

    For issuers without introspection (RFC 7662), such as Google and GitHub. The claims it
    returns are checked like an introspection response: audience, expiry and subject.
    """

    @property
    def seconds(self) -> float:
        """How long a result is cached, and so how long a revoked token may still be accepted."""

    async def claims(self, token: str) -> Mapping[str, Any] | None:
        """Return a token's claims, with at least `sub` and `aud`; None if it is not valid.

        `aud` must name the server the token was issued for. Raises CannotAuthenticate if the issuer
        does not respond.
        """


class Introspector:
    """Looks up tokens, and limits the number of lookups."""

    def __init__(self, lookup: TokenLookup) -> None:
        self._lookup = lookup
        self.seconds = lookup.seconds
        self._running = 0
        self._inactive: dict[bytes, float] = {}
        """The digests of inactive tokens, and when each one is dropped."""

    async def claims(self, token: bytes) -> Mapping[str, Any]:
        """Return a token's claims; raises Unauthorized if the issuer says that it is inactive."""
        digest = digest_of(token)
        if monotonic() < self._inactive.get(digest, 0.0):
            raise invalid_token("the token is not active")
        if self._running >= _MAX_REQUESTS:
            raise CannotAuthenticate("too many tokens are waiting for the issuer")
        self._running += 1
        try:
            found = await self._lookup.claims(token.decode("ascii"))
        except CannotAuthenticate as exc:
            logger("answerback.auth").warning("introspection failed: %s", exc)
            raise
        finally:
            self._running -= 1
        if found is None:
            if len(self._inactive) >= _MAX_INACTIVE:
                del self._inactive[next(iter(self._inactive))]
            self._inactive[digest] = monotonic() + _INACTIVE_SECONDS
            raise invalid_token("the token is not active")
        return found
