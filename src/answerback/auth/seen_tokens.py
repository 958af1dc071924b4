"""The already checked tokens, by their digests."""

from __future__ import annotations

import time
from hashlib import sha256

from ..core.authentication import User

MAX_TOKENS = 10_000
"""How many tokens are kept; beyond that, the oldest is dropped."""


class SeenTokens:
    """The users of valid tokens, each until a time.

    A token is found by its SHA-256, so that comparing it reveals nothing about other tokens, and
    the token itself does not stay in memory.
    """

    def __init__(self) -> None:
        self._users: dict[bytes, tuple[float, User]] = {}

    def find(self, digest: bytes) -> User | None:
        """Return a token's user, unless the token has expired since."""
        found = self._users.get(digest)
        if found is None:
            return None
        if time.time() < found[0]:
            return found[1]
        del self._users[digest]
        return None

    def keep(self, digest: bytes, user: User, until: float) -> None:
        """Keep a token until a time, but not longer than it is valid."""
        if user.expires is not None:
            until = min(until, user.expires)
        if len(self._users) >= MAX_TOKENS:
            del self._users[next(iter(self._users))]
        self._users[digest] = (until, user)

    def clear(self) -> None:
        self._users.clear()


def digest_of(token: bytes) -> bytes:
    return sha256(token).digest()
