"""API keys: each client has a secret, and the server stores only its SHA-256 digest."""

from __future__ import annotations

import re
import time
from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

import msgspec

from ..core.authentication import AppAuth, Challenge, Credentials, User, bearer_challenge
from .bearer import (
    MAX_TOKEN,
    bearer_token,
    digest_of,
    header_values,
    invalid_request,
    invalid_token,
)

_DIGEST = re.compile(r"[0-9a-f]{64}")
MIN_LENGTH = 22
"""The minimum length of a key: 128 bits in base64."""
_PREFIX = "ab_"
_ISSUER = "api-key"
_WRITE = "write ApiKeys({'DIGEST': 'NAME'}); `answerback key` makes a key and prints its digest"


class ApiKey(msgspec.Struct, frozen=True, kw_only=True):
    """The program a key belongs to: `ApiKeys({"<sha256>": ApiKey(name="ci", scopes=["x"])})`."""

    name: str
    """The subject of `ctx.user`."""
    scopes: Sequence[str] = ()
    """The key's scopes."""
    expires: float | None = None
    """When the key expires, in seconds since the epoch."""


class NewApiKey(NamedTuple):
    """A new key, and the digest to store."""

    key: str
    digest: str


class ApiKeys(AppAuth):
    """Accepts keys in `Authorization: Bearer KEY` or `X-API-Key: KEY`.

    *keys* maps each key's SHA-256 hex digest to the name of its program. Keys are looked up by
    digest, so no comparison reveals how much of a guess was right. With *anonymous*, requests
    without a key are served too; tools with gates still need one.
    """

    anonymous = False
    has_logins = False
    without_credentials = "This needs a key: send it as X-API-Key: KEY or Authorization: Bearer KEY"
    security_schemes: Mapping[str, Any] = {
        "key": {"type": "apiKey", "in": "header", "name": "X-API-Key"}
    }

    def __init__(self, keys: Mapping[str, str | ApiKey], *, anonymous: bool = False) -> None:
        self.anonymous = anonymous
        if not isinstance(keys, Mapping):
            raise TypeError(f"ApiKeys takes a dict of digests and names; {_WRITE}")
        self._users: dict[bytes, User] = {}
        for digest, given in keys.items():
            key = ApiKey(name=given) if isinstance(given, str) else given
            user = User(
                subject=key.name,
                issuer=_ISSUER,
                scopes=frozenset(key.scopes),
                client=key.name,
                expires=key.expires,
            )
            if not _DIGEST.fullmatch(digest.lower()):
                # Show neither the digest nor the name: either may be the key itself.
                text = "a key should be given as its SHA-256, 64 hexadecimal digits"
                raise ValueError(f"{text}; {_WRITE}")
            self._users[bytes.fromhex(digest)] = user

    @staticmethod
    def new() -> NewApiKey:
        """Generate a 256-bit key. Give the key to the program, and the digest to ApiKeys."""
        from secrets import token_urlsafe

        key = _PREFIX + token_urlsafe(32)
        return NewApiKey(key, digest_of(key.encode()).hex())

    async def authenticate(self, credentials: Credentials) -> User | None:
        """Return the program the key belongs to; None if there is no key. Raises Unauthorized."""
        key = bearer_token(credentials, (b"bearer",))
        others = header_values(credentials, b"x-api-key")
        if len(others) + (key is not None) > 1:
            raise invalid_request("the request has two keys")
        if others:
            key = others[0].strip(b" \t")
        if key is None:
            return None
        if not MIN_LENGTH <= len(key) <= MAX_TOKEN:
            raise invalid_token("the key is unknown")
        user = self._users.get(digest_of(key))
        if user is None:
            raise invalid_token("the key is unknown")
        if user.expires is not None and user.expires <= time.time():
            raise invalid_token("the key has expired")
        return user

    def www_authenticate(self, challenge: Challenge) -> str:
        """Return the `WWW-Authenticate` value; it names no issuer, because keys have none."""
        return bearer_challenge(challenge)

    def __repr__(self) -> str:
        return f"<ApiKeys for {len(self._users)} programs>"
