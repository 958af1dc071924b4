"""HTTP requests of the client: headers, credentials, redirects, and errors of the connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from typing import Any, Protocol

import msgspec

from ...errors import needs_extra
from ...stopped_clocks import clocks_stopped
from ..faults import ConnectionLost, LoginError, NoAnswer
from ..frames import MAX_FRAME

with needs_extra("client"):
    import httpx2

_CONNECT_SECONDS = 10.0
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
        self._headers = dict(headers or {})
        self._auth = auth
        self.has_auth = auth is not None
        self._client: Any = None
        self.credentials: Mapping[str, str] = {}
        """The headers with credentials that were sent last."""

    def open(self) -> None:
        if self._client is None:
            self._client = httpx2.AsyncClient(
                headers=self._headers,
                timeout=httpx2.Timeout(None, connect=_CONNECT_SECONDS),
                limits=httpx2.Limits(max_connections=None, max_keepalive_connections=20),
                # Loading the certificates takes long, and plain HTTP needs none.
                verify=not self.url.startswith("http://"),
            )

    @asynccontextmanager
    async def stream(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None, url: str = ""
    ) -> AsyncIterator[Any]:
        """The response, whose body is still to be read; raises NoAnswer."""
        began = False
        if self._client is None:
            raise ConnectionLost("the connection was closed", may_have_run=False)
        try:
            response = await self._send(method, headers, body, url or self.url)
            began = True
            try:
                yield response
            finally:
                await response.aclose()
        except (httpx2.ConnectError, httpx2.ConnectTimeout, httpx2.UnsupportedProtocol) as exc:
            text = f"cannot connect to {url or self.url}: {_reason(exc)}"
            raise ConnectionLost(text, may_have_run=False) from None
        except (httpx2.HTTPError, httpx2.InvalidURL) as exc:
            what = "the response broke off" if began else "the connection broke"
            raise ConnectionLost(f"{what}: {_reason(exc)}") from None

    async def identity(self) -> str:
        """The credentials that the next request will have, for caches."""
        found = self.credentials if self._auth is None else await self._auth.headers()
        return repr(sorted(found.items()))

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            await client.aclose()

    async def _send(
        self, method: str, headers: Mapping[str, str], body: bytes | None, url: str
    ) -> Any:
        if self._auth is not None:
            self.credentials = await _credentials(self._auth.headers())
        for _ in range(_LOGINS):
            request = self._client.build_request(
                method, url, content=body, headers={**headers, **self.credentials}
            )
            response = await self._client.send(request, stream=True)
            if (moved := _moved_to(response)) is not None:
                await response.aclose()
                url = self.url = moved
            elif response.status_code in (401, 403) and self._auth is not None:
                challenge = await _challenge(response)
                with clocks_stopped():
                    self.credentials = await _credentials(self._auth.challenged(challenge))
            else:
                return response
        raise NoAnswer("the server refused every login", code="UNAUTHENTICATED", may_have_run=False)


async def _credentials(asked: Awaitable[Mapping[str, str]]) -> Mapping[str, str]:
    """The headers from the user's `auth`; an exception in there ends one request."""
    try:
        return await asked
    except LoginError as exc:
        raise NoAnswer(str(exc), code=exc.code, may_have_run=False) from None
    except Exception as exc:
        text = f"the login failed: {_reason(exc)}"
        raise NoAnswer(text, code="UNAUTHENTICATED", may_have_run=False) from exc


def _reason(exc: Exception) -> str:
    return str(exc) or type(exc).__name__


async def _challenge(response: Any) -> AuthChallenge:
    try:
        body = await response.aread()
    finally:
        await response.aclose()
    sent = response.request.headers.get("authorization", "")
    headers = dict(response.headers)
    return AuthChallenge(str(response.url), response.status_code, headers, body, sent)


def _moved_to(response: Any) -> str | None:
    """The URL of a redirect that keeps the method and stays with the same server."""
    if response.status_code not in (307, 308) or "location" not in response.headers:
        return None
    here = response.url
    there = here.join(response.headers["location"])
    same = (here.scheme, here.host, here.port) == (there.scheme, there.host, there.port)
    return str(there) if same else None


def is_event_stream(response: Any) -> bool:
    found: str = response.headers.get("content-type", "")
    return found.partition(";")[0].strip().lower() == "text/event-stream"


def event_stream(response: Any) -> Any:
    """The events of a response."""
    return httpx2.EventSource(response, max_event_size=MAX_FRAME)
