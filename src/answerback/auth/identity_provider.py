"""Requests to the identity provider: its metadata, its keys, and introspection."""

from __future__ import annotations

import asyncio
from base64 import b64encode
from collections.abc import Mapping
from ssl import SSLContext
from time import monotonic
from typing import Any, Protocol
from urllib.parse import urlencode, urlsplit

import msgspec

from ..core.authentication import CannotAuthenticate
from ..core.json_value import JsonObject
from ..core.log import logger
from ..http1.http_connection import HttpFailure
from ..http1.http_pool import BodyTooLarge, fetch, tls_context
from .bearer import digest_of, invalid_token, is_loopback_url, is_secure, metadata_urls

TIMEOUT = 5.0
"""Seconds for a whole request to the identity provider."""
MAX_DOCUMENT = 512 * 1024
"""The maximum size of the identity provider's documents, in bytes."""


class IdentityProvider:
    """The tokens' issuer, as far as this server talks to it."""

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
            # A remote issuer may not name a URL on this machine, which only we can reach.
            or (is_loopback_url(url) and not is_loopback_url(self._issuer))
        ):
            self._metadata = None
            raise CannotAuthenticate(f"the metadata of the issuer has no usable {name}")
        return url

    def forget_metadata(self) -> None:
        """Read the metadata again at the next use."""
        self._metadata = None

    async def get(self, url: str) -> JsonObject:
        """Fetch a JSON document; raises CannotAuthenticate."""
        return await self._request("GET", url)

    async def post(self, url: str, form: dict[str, str], login: tuple[str, str]) -> JsonObject:
        """Send a form, and return the JSON answer; raises CannotAuthenticate."""
        pair = b64encode(":".join(login).encode()).decode()
        headers = {
            "authorization": f"Basic {pair}",
            "content-type": "application/x-www-form-urlencoded",
        }
        return await self._request("POST", url, headers, urlencode(form).encode())

    async def _discover(self) -> JsonObject:
        failure: CannotAuthenticate | None = None
        for url in metadata_urls(self._issuer):
            try:
                found = await self.get(url)
            except CannotAuthenticate as exc:
                failure = exc
                continue
            # Otherwise one issuer could speak for another (RFC 8414, section 3.3).
            if found.get("issuer") == self._issuer:
                return found
            failure = CannotAuthenticate(f"{url} is the metadata of another issuer")
        assert failure is not None
        raise failure

    async def _request(
        self,
        method: str,
        url: str,
        headers: dict[str, str] | None = None,
        form: bytes | None = None,
    ) -> JsonObject:
        # A scheme may be in capitals.
        if self._tls is None and urlsplit(url).scheme == "https":
            # It reads hundreds of certificates.
            self._tls = await asyncio.to_thread(tls_context)
        try:
            async with asyncio.timeout(TIMEOUT):
                found = await fetch(
                    method,
                    url,
                    {"accept": "application/json", **(headers or {})},
                    form,
                    limit=MAX_DOCUMENT,
                    # The environment's proxies are not for this machine itself.
                    uses_proxies=not is_loopback_url(url),
                    tls=self._tls,
                )
        except TimeoutError:
            raise CannotAuthenticate(f"{url} did not answer in {TIMEOUT:.0f} seconds") from None
        except BodyTooLarge:
            raise CannotAuthenticate(f"{url} is larger than {MAX_DOCUMENT} bytes") from None
        except HttpFailure as exc:
            raise CannotAuthenticate(f"{url} cannot be read: {exc}") from None
        # A redirect is not followed: it could lead anywhere.
        if found.status != 200:
            raise CannotAuthenticate(f"{url} answered with {found.status}")
        try:
            document = msgspec.json.decode(found.body)
        except (ValueError, RecursionError):
            document = None
        if not isinstance(document, dict):
            raise CannotAuthenticate(f"{url} is not a JSON object")
        return document


_MAX_REQUESTS = 32
"""The maximum number of concurrent questions; anyone can cause one with a new token."""
_INACTIVE_SECONDS = 5.0
"""Seconds during which the issuer is not asked again about an inactive token."""
_MAX_INACTIVE = 1000


class Introspection(msgspec.Struct, frozen=True, kw_only=True):
    """How to ask the issuer about tokens: `OAuth(introspection=Introspection(...))`."""

    client_id: str
    """This server's id at the issuer."""
    client_secret: str
    """This server's secret at the issuer."""
    url: str | None = None
    """The endpoint; by default the one in the issuer's metadata."""
    seconds: float = 30.0
    """How long an answer is used, and so how long a revoked token may still be accepted."""

    def __post_init__(self) -> None:
        if self.url is not None and not is_secure(self.url):
            raise ValueError(f"url={self.url!r} should be an https URL")

    def __repr__(self) -> str:
        return f"<Introspection client_id={self.client_id!r}>"


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


class IntrospectionEndpoint:
    """The issuer's introspection endpoint, as a lookup."""

    def __init__(self, provider: IdentityProvider, settings: Introspection) -> None:
        self._provider = provider
        self._settings = settings
        self.seconds = settings.seconds

    async def claims(self, token: str) -> Mapping[str, Any] | None:
        settings = self._settings
        url = settings.url or await self._provider.endpoint("introspection_endpoint")
        form = {"token": token, "token_type_hint": "access_token"}
        login = (settings.client_id, settings.client_secret)
        found = await self._provider.post(url, form, login)
        return found if found.get("active") is True else None


class Introspector:
    """Asks a lookup about tokens, but not too often."""

    def __init__(self, lookup: TokenLookup) -> None:
        self._lookup = lookup
        self.seconds = lookup.seconds
        self._running = 0
        self._inactive: dict[bytes, float] = {}
        """The inactive tokens' digests, each with the time until which it is used."""

    async def claims(self, token: bytes) -> Mapping[str, Any]:
        """Return a token's claims; raises Unauthorized if the issuer says that it is inactive."""
        digest = digest_of(token)
        if monotonic() < self._inactive.get(digest, 0.0):
            raise invalid_token("the token is not active")
        if self._running >= _MAX_REQUESTS:
            raise CannotAuthenticate("too many tokens wait for the issuer")
        self._running += 1
        try:
            found = await self._lookup.claims(token.decode("ascii"))
        except CannotAuthenticate as exc:
            logger("answerback.auth").warning("introspection at the issuer: %s", exc)
            raise
        finally:
            self._running -= 1
        if found is None:
            if len(self._inactive) >= _MAX_INACTIVE:
                del self._inactive[next(iter(self._inactive))]
            self._inactive[digest] = monotonic() + _INACTIVE_SECONDS
            raise invalid_token("the token is not active")
        return found
