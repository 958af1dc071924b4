"""Signed tokens: their headers and claims, and the issuer's keys.

All requests share the keys, which are refreshed before they become too old.
"""

from __future__ import annotations

import asyncio
from base64 import urlsafe_b64decode
from collections.abc import Awaitable, Callable, Mapping
from time import monotonic
from typing import Any

import msgspec

from ..core.authentication import CannotAuthenticate
from ..core.json_value import Json
from ..core.log import logger
from ..errors import needs_extra
from .bearer import invalid_token

with needs_extra("auth"):
    from joserfc import jwk, jws
    from joserfc.errors import JoseError


_TYPES = ("at+jwt", "application/at+jwt", "jwt", "application/jwt")
_FAMILIES = {"RS": "RSA", "PS": "RSA", "ES": "EC", "Ed": "OKP"}
_MIN_RSA_BITS = 2048
_PRIVATE = frozenset({"d", "p", "q", "dp", "dq", "qi", "oth", "k", "x5u", "x5c", "x5t"})
MAX_STALE = 3600.0
"""How many seconds stale keys stay in use if they cannot be fetched again."""
RETRY = 2.0
"""Seconds to wait after a failed fetch."""
UNKNOWN_BURST = 3
UNKNOWN_SECONDS = 30.0
"""Unknown key ids trigger at most a burst of fetches, then one fetch in this many seconds."""
MAX_TRIED = 8
"""How many keys are tried for a token without a key id."""


class JwtHeader(msgspec.Struct, frozen=True):
    """The header members that are used; `jku`, `jwk`, `x5u` and `x5c` are ignored."""

    alg: str
    kid: str | None = None
    typ: str | None = None
    cty: str | None = None
    crit: Json = msgspec.UNSET
    b64: Json = msgspec.UNSET

    @property
    def is_access_token(self) -> bool:
        """Whether the type marks the token as an access token (RFC 9068)."""
        return self.typ is not None and self.typ.lower().endswith("at+jwt")


class VerificationKey(msgspec.Struct, frozen=True):
    """One of the issuer's public keys."""

    key: Any
    kid: str | None
    kind: str
    alg: str | None
    thumbprint: str


class _Registry(jws.JWSRegistry):
    # The whole token's size is already limited.
    max_header_length = 4096


def read_header(token: bytes, algorithms: frozenset[str]) -> JwtHeader:
    """Read the header; raises Unauthorized if no signature could make the token valid."""
    if token.count(b".") != 2:
        raise invalid_token("the token is malformed")
    encoded = token.partition(b".")[0]
    try:
        header = msgspec.json.decode(
            urlsafe_b64decode(encoded + b"=" * (-len(encoded) % 4)), type=JwtHeader
        )
    except (ValueError, RecursionError):
        raise invalid_token("the token is malformed") from None
    if header.alg not in algorithms:
        raise invalid_token("the token's algorithm is not allowed")
    if header.crit is not msgspec.UNSET or header.b64 is not msgspec.UNSET:
        raise invalid_token("the token needs an extension that is not supported")
    if header.cty is not None:
        raise invalid_token("the token contains another token")
    if header.typ is not None and header.typ.lower() not in _TYPES:
        raise invalid_token("the token is not an access token")
    return header


def verified_claims(
    token: bytes, key: VerificationKey, header: JwtHeader
) -> Mapping[str, Any] | None:
    """Return the claims; None if they were signed with another key."""
    registry = _Registry(algorithms=[header.alg], strict_check_header=False)
    try:
        payload = jws.deserialize_compact(token, key.key, registry=registry).payload
    except (JoseError, ValueError, TypeError, KeyError, RecursionError):
        return None
    try:
        claims = msgspec.json.decode(payload)
    except (ValueError, RecursionError):
        claims = None
    if not isinstance(claims, dict):
        raise invalid_token("the token is malformed")
    return claims


def _read_key(document: Json) -> VerificationKey | None:
    """Return a key from a key set; None if it cannot verify signatures."""
    if not isinstance(document, dict) or document.get("use", "sig") != "sig":
        return None
    kind, kid, alg = (document.get(name) for name in ("kty", "kid", "alg"))
    # A secret in a public key set would let anyone sign.
    if not isinstance(kind, str) or kind not in _FAMILIES.values():
        return None
    public = {name: value for name, value in document.items() if name not in _PRIVATE}
    try:
        key = jwk.import_key(public)
        if kind == "RSA" and key.public_key.key_size < _MIN_RSA_BITS:  # type: ignore[union-attr]  # an RSA key
            return None
        thumbprint = key.thumbprint()
    except (JoseError, ValueError, TypeError, KeyError):
        return None
    return VerificationKey(
        key,
        kid if isinstance(kid, str) else None,
        kind,
        alg if isinstance(alg, str) else None,
        thumbprint,
    )


class KeySet:
    """An issuer's keys. *fetch* returns the key set; only one fetch runs at a time.

    *seconds* is the time after which keys are fetched again. *on_change* is called when a key has
    been removed or replaced.
    """

    def __init__(
        self,
        fetch: Callable[[], Awaitable[list[Any]]],
        seconds: float,
        on_change: Callable[[], None],
    ) -> None:
        self._fetch = fetch
        self._seconds = seconds
        self._on_change = on_change
        self._keys: list[VerificationKey] = []
        self.fresh_until = 0.0
        self.stale_until = 0.0
        self._retry_at = 0.0
        self._failure = ""
        self._fetches_left = float(UNKNOWN_BURST)
        self._counted_at = monotonic()
        self._fetching: asyncio.Task[None] | None = None

    async def keys_for(self, header: JwtHeader) -> list[VerificationKey]:
        """Return the keys that may match a token; raises CannotAuthenticate if there are none yet.

        Old keys are used while new ones are fetched.
        """
        now = monotonic()
        if now >= self.stale_until:
            await self._refresh()
            if monotonic() >= self.stale_until:
                raise CannotAuthenticate(self._failure)
        elif now >= self.fresh_until:
            self.refresh_in_background()
        return self._fitting(header)

    async def keys_after_fetch(self, header: JwtHeader) -> list[VerificationKey]:
        """Fetch the keys again for a token that no known key signed; return those that may match.

        Anyone can send such tokens, so the number of fetches is limited.
        """
        now = monotonic()
        earned = (now - self._counted_at) / UNKNOWN_SECONDS
        self._fetches_left = min(UNKNOWN_BURST, self._fetches_left + earned)
        self._counted_at = now
        running = self._running()
        if running is None and self._fetches_left < 1:
            return []
        if running is None:
            self._fetches_left -= 1
        await self._refresh()
        return self._fitting(header)

    def refresh_in_background(self) -> None:
        if self._running() is None and monotonic() >= self._retry_at:
            self._start()

    def _running(self) -> asyncio.Task[None] | None:
        task = self._fetching
        if task is None or task.done() or task.get_loop() is not asyncio.get_running_loop():
            return None
        return task

    def _start(self) -> asyncio.Task[None]:
        self._fetching = asyncio.get_running_loop().create_task(self._fetch_keys())
        return self._fetching

    async def _refresh(self) -> None:
        """Wait for the fetch in progress, or start a new one and wait for it."""
        task = self._running()
        if task is None:
            if monotonic() < self._retry_at:
                return
            task = self._start()
        # A request that ends early must not cancel a fetch that others are waiting for.
        await asyncio.shield(task)

    async def _fetch_keys(self) -> None:
        try:
            found = [_read_key(each) for each in await self._fetch()]
            keys = [key for key in found if key is not None]
            if not keys:
                raise CannotAuthenticate("the issuer's key set has no usable key")
        except CannotAuthenticate as exc:
            self._failure = str(exc)
            self._retry_at = monotonic() + RETRY
            logger("answerback.auth").warning("cannot get the issuer's keys: %s", exc)
            return
        removed = {key.thumbprint for key in self._keys} - {key.thumbprint for key in keys}
        self._keys = keys
        self.fresh_until = monotonic() + self._seconds
        self.stale_until = self.fresh_until + MAX_STALE
        if removed:
            self._on_change()

    def _fitting(self, header: JwtHeader) -> list[VerificationKey]:
        """Return the keys that may have signed a token with this header."""
        kind = _FAMILIES[header.alg[:2]]
        found = [
            key
            for key in self._keys
            if key.kind == kind
            and (header.kid is None or key.kid == header.kid)
            and key.alg in (None, header.alg)
        ]
        return found[:MAX_TRIED]
