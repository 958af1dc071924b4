"""The interface for issuers whose opaque tokens are looked up in a way of their own."""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Protocol


class TokenLookup(Protocol):
    """Finds out whose a token is: `OAuth(introspection=...)` takes one.

    It is for issuers without introspection (RFC 7662), such as Google and GitHub. Its claims are
    checked like an introspection's answer: audience, expiry and subject.
    """

    @property
    def seconds(self) -> float:
        """How long an answer is used, and so how long a revoked token may still be accepted."""

    async def claims(self, token: str) -> Mapping[str, Any] | None:
        """Return a token's claims, with at least `sub` and `aud`; None if it is not valid.

        `aud` must say for whom the issuer made the token. Raises CannotAuthenticate if the issuer
        does not answer.
        """
