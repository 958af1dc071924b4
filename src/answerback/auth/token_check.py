"""Checks a new token: by its signature, or by asking the issuer. It loads joserfc."""

from __future__ import annotations

import time
from collections.abc import Callable, Mapping
from time import monotonic
from typing import Any

from ..core.authentication import CannotAuthenticate, User
from .bearer import invalid_token
from .identity_provider import IdentityProvider
from .introspection import Introspection, IntrospectionEndpoint, Introspector
from .key_set import JwtHeader, KeySet, VerificationKey, read_header, verified_claims
from .oauth import ALGORITHMS, Expectation, OAuthOptions, check_claims, refuse_other_kinds

_FOREVER = float("inf")


class TokenCheck:
    """The checks of one issuer's tokens. *forget* is called when tokens must be checked again."""

    def __init__(
        self, expected: Expectation, options: OAuthOptions, forget: Callable[[], None]
    ) -> None:
        self._expected = expected
        self._provider = IdentityProvider(expected.issuer)
        self._algorithms = frozenset(options.get("algorithms", ALGORITHMS))
        self._jwks = options.get("jwks")
        self._keys = KeySet(self._fetch_keys, options.get("refresh", 300.0))
        self._keys.on_change = forget
        lookup = options.get("introspection")
        if isinstance(lookup, Introspection):
            lookup = IntrospectionEndpoint(self._provider, lookup)
        self._introspector = None if lookup is None else Introspector(lookup)

    async def check(self, token: bytes) -> tuple[User, float]:
        """Return a token's user, and until when the token need not be checked again.

        Raises Unauthorized or CannotAuthenticate.
        """
        if self._introspector is not None:
            claims = await self._introspector.claims(token)
            refuse_other_kinds(claims, is_marked=False)
            user = check_claims(claims, self._expected, is_jwt=False)
            return user, time.time() + self._introspector.seconds
        header = read_header(token, self._algorithms)
        keys = await self._keys.keys_for(header)
        verified = _first_verified(token, keys, header)
        if verified is None and (not keys or header.kid is None):
            # The issuer may have a new key.
            keys = await self._keys.keys_after_fetch(header)
            verified = _first_verified(token, keys, header)
        if verified is None:
            raise invalid_token(
                "the signature of the token is wrong" if keys else "the token has an unknown key"
            )
        refuse_other_kinds(verified, is_marked=header.is_access_token)
        return check_claims(verified, self._expected, is_jwt=True), _FOREVER

    def trusts_seen_tokens(self) -> bool:
        """Return whether an already checked token is still valid; False once the keys are too old.

        Old keys are fetched in the background, so that a removed key is noticed.
        """
        if self._introspector is not None or monotonic() < self._keys.fresh_until:
            return True
        self._keys.refresh_in_background()
        return monotonic() < self._keys.stale_until

    async def _fetch_keys(self) -> list[Any]:
        found: Any = self._jwks
        if not isinstance(found, Mapping):
            try:
                url = found or await self._provider.endpoint("jwks_uri")
                found = await self._provider.get(url)
            except CannotAuthenticate:
                self._provider.forget_metadata()
                raise
        keys = found.get("keys")
        if not isinstance(keys, list):
            raise CannotAuthenticate("the key set of the issuer has no keys")
        return keys


def _first_verified(
    token: bytes, keys: list[VerificationKey], header: JwtHeader
) -> Mapping[str, Any] | None:
    found = (verified_claims(token, key, header) for key in keys)
    return next((claims for claims in found if claims is not None), None)
