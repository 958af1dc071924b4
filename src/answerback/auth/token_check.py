"""Checks new tokens, by signature or by asking the issuer. Imports joserfc."""

from __future__ import annotations

import asyncio
import time
from base64 import b64encode
from collections.abc import Callable, Mapping
from ssl import SSLContext
from time import monotonic
from typing import Any
from urllib.parse import urlencode, urlsplit

import msgspec

from ..core.authentication import CannotAuthenticate, User
from ..core.json_value import JsonObject
from ..http1.http_connection import HttpFailure
from ..http1.http_pool import BodyTooLarge, fetch, tls_context
from .bearer import invalid_token, is_loopback_url, is_secure, metadata_urls
from .introspection import Introspection, Introspector
from .key_set import JwtHeader, KeySet, VerificationKey, read_header, verified_claims
from .oauth import ALGORITHMS, Expectation, OAuthOptions, check_claims, refuse_other_kinds

TIMEOUT = 5.0
"""How many seconds a request to the identity provider may take, including its response."""
MAX_DOCUMENT = 512 * 1024
"""The maximum size of the identity provider's documents, in bytes."""
_FOREVER = float("inf")


class IdentityProvider:
    """The token issuer, and this server's requests to it."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        self._metadata: JsonObject | None = None
        self._tls: SSLContext | None = None

    async def endpoint(self, name: str) -> str:
        """Return a URL in the issuer's metadata, such as `jwks_uri`; raises CannotAuthenticate."""
        if self._metadata is None:
            self._metadata = await self._discover()
        url = self._metadata.get(name)
        if (
            not isinstance(url, str)
            or not is_secure(url)
            # A remote issuer must not name a URL on this machine, which only we can reach.
            or (is_loopback_url(url) and not is_loopback_url(self._issuer))
        ):
            self._metadata = None
            raise CannotAuthenticate(f"the issuer's metadata has no usable {name}")
        return url

    def forget_metadata(self) -> None:
        """Fetch the metadata again the next time it is needed."""
        self._metadata = None

    async def _discover(self) -> JsonObject:
        failure: CannotAuthenticate | None = None
        for url in metadata_urls(self._issuer):
            try:
                found = await self.fetch(url)
            except CannotAuthenticate as exc:
                failure = exc
                continue
            # Otherwise one issuer could speak for another (RFC 8414, section 3.3).
            if found.get("issuer") == self._issuer:
                return found
            failure = CannotAuthenticate(f"{url} is another issuer's metadata")
        assert failure is not None
        raise failure

    async def fetch(
        self, url: str, headers: Mapping[str, str] | None = None, form: bytes | None = None
    ) -> JsonObject:
        """Fetch a JSON document, with POST if there is a form; raises CannotAuthenticate."""
        # The scheme may be upper-case.
        if self._tls is None and urlsplit(url).scheme == "https":
            # This loads hundreds of certificates.
            self._tls = await asyncio.to_thread(tls_context)
        try:
            async with asyncio.timeout(TIMEOUT):
                found = await fetch(
                    "GET" if form is None else "POST",
                    url,
                    {"accept": "application/json", **(headers or {})},
                    form,
                    limit=MAX_DOCUMENT,
                    # Proxies from the environment do not apply to this machine.
                    uses_proxies=not is_loopback_url(url),
                    tls=self._tls,
                )
        except TimeoutError:
            raise CannotAuthenticate(f"{url} did not answer in {TIMEOUT:.0f} seconds") from None
        except BodyTooLarge:
            raise CannotAuthenticate(f"{url} is larger than {MAX_DOCUMENT} bytes") from None
        except HttpFailure as exc:
            raise CannotAuthenticate(f"{url} cannot be read: {exc}") from None
        # Redirects are not followed, because they could lead anywhere.
        if found.status != 200:
            raise CannotAuthenticate(f"{url} answered with {found.status}")
        try:
            document = msgspec.json.decode(found.body)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise CannotAuthenticate(f"{url} is not a JSON object")
        return document


class _IntrospectionEndpoint:
    """The issuer's introspection endpoint (RFC 7662), as a lookup."""

    def __init__(self, provider: IdentityProvider, settings: Introspection) -> None:
        self._provider = provider
        self._settings = settings
        self.seconds = settings.seconds

    async def claims(self, token: str) -> Mapping[str, Any] | None:
        settings = self._settings
        url = settings.url or await self._provider.endpoint("introspection_endpoint")
        login = b64encode(f"{settings.client_id}:{settings.client_secret}".encode()).decode()
        headers = {
            "authorization": f"Basic {login}",
            "content-type": "application/x-www-form-urlencoded",
        }
        form = urlencode({"token": token, "token_type_hint": "access_token"}).encode()
        found = await self._provider.fetch(url, headers, form)
        return found if found.get("active") is True else None


class TokenCheck:
    """Checks one issuer's tokens. *forget* is called when tokens must be checked again."""

    def __init__(
        self, expected: Expectation, options: OAuthOptions, forget: Callable[[], None]
    ) -> None:
        self._expected = expected
        self._provider = IdentityProvider(expected.issuer)
        self._algorithms = frozenset(options.get("algorithms", ALGORITHMS))
        self._jwks = options.get("jwks")
        self._keys = KeySet(self._fetch_keys, options.get("refresh", 300.0), forget)
        lookup = options.get("introspection")
        if isinstance(lookup, Introspection):
            lookup = _IntrospectionEndpoint(self._provider, lookup)
        self._introspector = None if lookup is None else Introspector(lookup)

    async def check(self, token: bytes) -> tuple[User, float]:
        """Return a token's user, and the time when the token must be checked again.

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
                "the token's signature is wrong" if keys else "the token's signing key is unknown"
            )
        refuse_other_kinds(verified, is_marked=header.is_access_token)
        return check_claims(verified, self._expected, is_jwt=True), _FOREVER

    def trusts_seen_tokens(self) -> bool:
        """Return whether an already checked token is still valid; False once the keys are too old.

        Old keys are refreshed in the background, so that a removed key is noticed.
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
                found = await self._provider.fetch(url)
            except CannotAuthenticate:
                self._provider.forget_metadata()
                raise
        keys = found.get("keys")
        if not isinstance(keys, list):
            raise CannotAuthenticate("the issuer's key set has no keys")
        return keys


def _first_verified(
    token: bytes, keys: list[VerificationKey], header: JwtHeader
) -> Mapping[str, Any] | None:
    found = (verified_claims(token, key, header) for key in keys)
    return next((claims for claims in found if claims is not None), None)
