"""The interface for tokens that are bound to a client's key, such as DPoP (RFC 9449)."""

from __future__ import annotations

from typing import Protocol

from ..core.authentication import Credentials, User


class TokenProof(Protocol):
    """Checks with each request that the client holds its token's key.

    `OAuth(proof=...)` takes one. Without one a bound token (with the claim `cnf`) is refused.
    """

    scheme: str
    """The scheme of the Authorization header besides Bearer, such as "DPoP"."""

    async def check(self, credentials: Credentials, token: bytes, user: User) -> None:
        """Raise Unauthorized if the proof is missing or bad.

        It is called for every request, also if the token was seen before. `user.claims["cnf"]`
        names the key. It must refuse a bound token with the scheme Bearer.
        """
