"""Requests to the identity provider: its metadata, its keys, and introspection."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING, Any
from urllib.parse import urlsplit

import msgspec

from ..core.authentication import CannotAuthenticate
from ..errors import needs_extra
from .urls import is_loopback_url, is_secure, metadata_urls

with needs_extra("auth"):
    import httpx2

if TYPE_CHECKING:
    from ssl import SSLContext

    from ..core.json_value import JsonObject

TIMEOUT = 5.0
"""Seconds for a whole request to the identity provider."""
MAX_DOCUMENT = 512 * 1024
"""The most bytes of a document of the identity provider."""


class IdentityProvider:
    """The issuer of the tokens, as far as this server talks to it."""

    def __init__(self, issuer: str) -> None:
        self._issuer = issuer
        self._metadata: JsonObject | None = None
        self._tls: SSLContext | None = None

    async def endpoint(self, name: str) -> str:
        """A URL in the issuer's metadata, such as `jwks_uri`; raises CannotAuthenticate."""
        if self._metadata is None:
            self._metadata = await self._discover()
        url = self._metadata.get(name)
        if not isinstance(url, str) or not is_secure(url) or self._leads_here(url):
            self._metadata = None
            raise CannotAuthenticate(f"the metadata of the issuer has no usable {name}")
        return url

    def _leads_here(self, url: str) -> bool:
        """Whether an issuer elsewhere names a URL of this machine, which only we can reach."""
        return is_loopback_url(url) and not is_loopback_url(self._issuer)

    def forget_metadata(self) -> None:
        """Read the metadata again at the next use."""
        self._metadata = None

    async def get(self, url: str) -> JsonObject:
        """A JSON document; raises CannotAuthenticate."""
        return await self._request("GET", url)

    async def post(self, url: str, form: dict[str, str], login: tuple[str, str]) -> JsonObject:
        """The JSON that answers a form; raises CannotAuthenticate."""
        return await self._request("POST", url, data=form, auth=login)

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

    async def _request(self, method: str, url: str, **options: Any) -> JsonObject:
        # A scheme may be in capitals.
        if self._tls is None and urlsplit(url).scheme == "https":
            # It reads hundreds of certificates.
            self._tls = await asyncio.to_thread(httpx2.create_ssl_context)
        try:
            async with (
                asyncio.timeout(TIMEOUT),
                httpx2.AsyncClient(
                    verify=self._tls or False,
                    # A proxy of the environment is not for this machine itself.
                    trust_env=not is_loopback_url(url),
                    headers={"accept": "application/json"},
                ) as client,
                client.stream(method, url, **options) as response,
            ):
                # A redirect is not followed: it could lead anywhere.
                if response.status_code != 200:
                    raise CannotAuthenticate(f"{url} answered with {response.status_code}")
                body = b""
                async for chunk in response.aiter_bytes():
                    body += chunk
                    if len(body) > MAX_DOCUMENT:
                        raise CannotAuthenticate(f"{url} is larger than {MAX_DOCUMENT} bytes")
        except TimeoutError:
            raise CannotAuthenticate(f"{url} did not answer in {TIMEOUT:.0f} seconds") from None
        except (httpx2.HTTPError, httpx2.InvalidURL, OSError) as exc:
            raise CannotAuthenticate(f"{url} cannot be read: {type(exc).__name__}") from None
        return _document(url, body)


def _document(url: str, body: bytes) -> JsonObject:
    try:
        found = msgspec.json.decode(body)
    except (ValueError, RecursionError):
        found = None
    if not isinstance(found, dict):
        raise CannotAuthenticate(f"{url} is not a JSON object")
    return found
