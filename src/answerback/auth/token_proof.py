"""The seam for tokens that are bound to a key of the client, such as DPoP (RFC 9449)."""

from __future__ import annotations

from typing import Protocol

from ..core.authentication import Credentials, User


class TokenProof(Protocol):
    """Checks with each request that the client holds the key that its token is bound to.

    `OAuth(proof=...)` takes one. Without one a bound token (with the claim `cnf`) is refused.
    """

    scheme: str
    """The scheme of the Authorization header beside Bearer, such as "DPoP"."""

    async def check(self, credentials: Credentials, token: bytes, user: User) -> None:
        """Raise Unauthorized if the proof is missing or bad.

        It is called for every request, also if the token was seen before. `user.claims["cnf"]`
        names the key. It must refuse a bound token that came with the scheme Bearer.
        """
