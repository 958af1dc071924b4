"""HTTP requests of the client: headers, credentials, redirects, and errors of the connection."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol
from urllib.parse import urljoin

import msgspec

from ...core.stopped_clocks import clocks_stopped
from ...http1.http_errors import HttpFailure
from ...http1.http_pool import HttpPool, parse_url
from ..faults import ConnectionLost, HttpRefused, LoginError, NoAnswer
from ..frames import Receive
from .sent_credentials import SentCredentials
from .server_response import ServerResponse, connection_lost

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
        self._headers = _in_lower_case(headers or {})
        self._auth = auth
        self.has_auth = auth is not None
        self._client: HttpPool | None = None
        self.credentials: Mapping[str, str] = {}
        """The headers with credentials that were sent last."""
        self.sent = SentCredentials(url, self._headers | _login_of(url))

    def open(self) -> None:
        if self._client is None:
            self._client = HttpPool()

    @asynccontextmanager
    async def stream(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None, url: str = ""
    ) -> AsyncIterator[ServerResponse]:
        """The response, whose body is still to be read; raises NoAnswer."""
        response = await self.send(method, headers, body, url)
        try:
            yield response
        finally:
            response.close()

    async def send(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None, url: str = ""
    ) -> ServerResponse:
        """The same as `stream`, for a caller that closes the response itself."""
        client = self._client
        if client is None:
            raise ConnectionLost("the connection was closed", may_have_run=False)
        url = url or self.url
        if self._auth is not None:
            self.credentials = await self._login(self._auth.headers())
        given = self._headers | _in_lower_case(headers)
        for _ in range(_LOGINS):
            sent = given
            if self.credentials:
                found = _in_lower_case(self.credentials)
                self.sent.keep(found)
                sent = given | found
            try:
                response = ServerResponse(await client.send(method, url, sent, body), self.sent)
            except HttpFailure as exc:
                raise connection_lost(exc, self.sent) from None
            status = response.status_code
            if status < 300:
                return response
            if (moved := _moved_to(response)) is not None:
                response.close()
                url = self.url = moved
            elif status in (401, 403) and self._auth is not None:
                challenge = await self._challenge(response, sent.get("authorization", ""))
                with clocks_stopped():
                    self.credentials = await self._login(self._auth.challenged(challenge))
            else:
                return response
        raise NoAnswer("the server refused every login", code="UNAUTHENTICATED", may_have_run=False)

    async def identity(self) -> str:
        """The credentials that the next request will have, for caches."""
        found = self.credentials if self._auth is None else await self._auth.headers()
        return repr(sorted(found.items()))

    def refusal(self, response: ServerResponse, body: bytes = b"") -> HttpRefused:
        """The error for a response without an answer; it does not show what the client sent."""
        said = _redirect(response).encode() or body
        text = self.sent.masked(said)[:1000].decode(errors="replace")
        after = response.headers.get("retry-after")
        return HttpRefused(response.status_code, text, after, _advice(response))

    def receiver(self, receive: Receive) -> Receive:
        """The function that takes frames of the server, without the client's credentials."""
        return self.sent.masking(receive) if self.sent or self.has_auth else receive

    async def _login(self, asked: Awaitable[Mapping[str, str]]) -> Mapping[str, str]:
        """The headers from the user's `auth`; an exception in there ends one request."""
        try:
            return await asked
        except LoginError as exc:
            text, code = self.sent.masked_text(str(exc)), exc.code
            raise NoAnswer(text, code=code, may_have_run=False) from None
        except Exception as exc:
            text = f"the login failed: {str(exc) or type(exc).__name__}"
            text = self.sent.masked_text(text)
            raise NoAnswer(text, code="UNAUTHENTICATED", may_have_run=False) from exc

    async def _challenge(self, response: ServerResponse, sent: str) -> AuthChallenge:
        try:
            body = self.sent.masked(await response.read_refusal())
        finally:
            response.close()
        return AuthChallenge(response.url, response.status_code, response.headers, body, sent)

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


def _in_lower_case(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _login_of(url: str) -> dict[str, str]:
    """The header for the user and the password in a URL."""
    try:
        login = parse_url(url).login
    except HttpFailure:
        return {}  # The first request raises it.
    return {"authorization": login} if login else {}


def _moved_to(response: ServerResponse) -> str | None:
    """The URL of a redirect that keeps the method and stays with the same server."""
    if response.status_code not in (307, 308) or "location" not in response.headers:
        return None
    try:
        there = urljoin(response.url, response.headers["location"])
        same = parse_url(response.url).origin == parse_url(there).origin
    except (HttpFailure, ValueError):
        return None
    return there if same else None


def _redirect(response: ServerResponse) -> str:
    """Where a redirect leads that was not followed, and why; empty for other responses."""
    if not 300 <= response.status_code < 400 or "location" not in response.headers:
        return ""
    try:
        there = parse_url(urljoin(response.url, response.headers["location"]))
    except (HttpFailure, ValueError):
        return "a redirect to something that is no URL of HTTP"
    reason = "the statuses 307 and 308 alone repeat a request elsewhere"
    if there.origin != parse_url(response.url).origin:
        reason = "credentials would be sent to another host"
    # The user and the query of a URL may be secret.
    place = f"{there.scheme}://{there.netloc}{there.target.partition('?')[0]}"
    return f"a redirect to {place[:100]}, which is not followed because {reason}"


def _advice(response: ServerResponse) -> str:
    """The URLs to try, if the one that was asked has no path and does not speak MCP."""
    where = parse_url(response.url)
    has_mcp = response.status_code not in (200, 404, 405)
    if has_mcp or where.target.partition("?")[0] != "/":
        return ""
    return (
        f"try {where.scheme}://{where.netloc}/mcp, or the transport rest if the server has no MCP"
    )


def is_event_stream(response: ServerResponse) -> bool:
    found = response.headers.get("content-type", "")
    return found.partition(";")[0].strip().lower() == "text/event-stream"
