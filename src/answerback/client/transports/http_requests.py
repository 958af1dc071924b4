"""HTTP requests of the client: headers, credentials, redirects, and errors of the connection."""

from __future__ import annotations

import sys
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol
from urllib.parse import urljoin

import msgspec

from ...stopped_clocks import clocks_stopped
from ..faults import ConnectionLost, LoginError, NoAnswer
from .http_pool import HttpPool, HttpResponse, parse_url

_LOGINS = 3
"""How often a request is sent again after the server asked for credentials."""


class AuthChallenge(msgspec.Struct, frozen=True):
    """A response with the status 401 or 403: the server wants other credentials."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    sent: str = ""
    """The header `Authorization` of the request that was refused."""


class ClientAuth(Protocol):
    """Gives requests their credentials, for `connect(..., auth=...)`."""

    async def headers(self) -> Mapping[str, str]:
        """The headers of the next request."""

    async def challenged(self, challenge: AuthChallenge) -> Mapping[str, str]:
        """The headers with which the refused request is sent again; raises if there are none."""


class HttpRequests:
    """Sends requests to one URL; redirects are followed within the same origin only."""

    def __init__(
        self, url: str, headers: Mapping[str, str] | None = None, auth: ClientAuth | None = None
    ) -> None:
        self.url = url
        own = {"user-agent": f"answerback/{sys.modules['answerback'].__version__}"}
        self._headers = own | _in_lower_case(headers or {})
        self._auth = auth
        self.has_auth = auth is not None
        self._client: HttpPool | None = None
        self.credentials: Mapping[str, str] = {}
        """The headers with credentials that were sent last."""

    def open(self) -> None:
        if self._client is None:
            self._client = HttpPool()

    @asynccontextmanager
    async def stream(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None, url: str = ""
    ) -> AsyncIterator[HttpResponse]:
        """The response, whose body is still to be read; raises NoAnswer."""
        response = await self.send(method, headers, body, url)
        try:
            yield response
        finally:
            response.close()

    async def send(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None, url: str = ""
    ) -> HttpResponse:
        """The same as `stream`, for a caller that closes the response itself."""
        client = self._client
        if client is None:
            raise ConnectionLost("the connection was closed", may_have_run=False)
        url = url or self.url
        if self._auth is not None:
            self.credentials = await _credentials(self._auth.headers())
        given = self._headers | _in_lower_case(headers)
        for _ in range(_LOGINS):
            sent = given | _in_lower_case(self.credentials) if self.credentials else given
            response = await client.send(method, url, sent, body)
            status = response.status_code
            if status < 300:
                return response
            if (moved := _moved_to(response)) is not None:
                response.close()
                url = self.url = moved
            elif status in (401, 403) and self._auth is not None:
                challenge = await _challenge(response, sent.get("authorization", ""))
                with clocks_stopped():
                    self.credentials = await _credentials(self._auth.challenged(challenge))
            else:
                return response
        raise NoAnswer("the server refused every login", code="UNAUTHENTICATED", may_have_run=False)

    async def identity(self) -> str:
        """The credentials that the next request will have, for caches."""
        found = self.credentials if self._auth is None else await self._auth.headers()
        return repr(sorted(found.items()))

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


def _in_lower_case(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


async def _credentials(asked: Awaitable[Mapping[str, str]]) -> Mapping[str, str]:
    """The headers from the user's `auth`; an exception in there ends one request."""
    try:
        return await asked
    except LoginError as exc:
        raise NoAnswer(str(exc), code=exc.code, may_have_run=False) from None
    except Exception as exc:
        text = f"the login failed: {str(exc) or type(exc).__name__}"
        raise NoAnswer(text, code="UNAUTHENTICATED", may_have_run=False) from exc


async def _challenge(response: HttpResponse, sent: str) -> AuthChallenge:
    try:
        body = await response.aread()
    finally:
        response.close()
    return AuthChallenge(response.url, response.status_code, response.headers, body, sent)


def _moved_to(response: HttpResponse) -> str | None:
    """The URL of a redirect that keeps the method and stays with the same server."""
    if response.status_code not in (307, 308) or "location" not in response.headers:
        return None
    there = urljoin(response.url, response.headers["location"])
    try:
        same = parse_url(response.url).origin == parse_url(there).origin
    except ConnectionLost:
        return None
    return there if same else None


def is_event_stream(response: HttpResponse) -> bool:
    found = response.headers.get("content-type", "")
    return found.partition(";")[0].strip().lower() == "text/event-stream"
