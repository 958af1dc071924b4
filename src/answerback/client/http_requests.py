"""The client's HTTP requests: headers, credentials, redirects, and connection errors.

Errors about a refused request never contain the credentials that were sent.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import AsyncIterator, Awaitable, Mapping
from contextlib import asynccontextmanager
from typing import Protocol
from urllib.parse import urljoin

import msgspec

from ..core.clocks import RUNNING, clocks_paused
from ..core.secrets import MASK, secrets_in_headers, secrets_in_url, written_forms
from ..http1.http_connection import HttpFailure, HttpResponse
from ..http1.http_pool import HttpPool, parse_url
from ..protocol.jsonrpc import Id
from .client_connection import ProbeDeadline
from .faults import TOO_LARGE, ConnectionLost, HttpRefused, LoginError, NoAnswer
from .frames import Receiver, decode_frame

_MAX_LOGIN_VALUES = 32
"""How many login values are kept; a login's token changes from time to time."""
_IS_ERROR = re.compile(rb'"isError"\s*:\s*true')


class SentCredentials:
    """Keeps the credentials from the URL, from the headers of all requests, and from logins."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._fixed = [*secrets_in_url(url), *secrets_in_headers(headers)]
        self._last: Mapping[str, str] = {}
        self._logins: list[str] = []
        self._forms = _forms(self._fixed)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def keep(self, headers: Mapping[str, str]) -> None:
        """Keep a login's headers, whose names are in lower case."""
        if headers != self._last:
            self._last = headers
            self._logins = [*self._logins, *secrets_in_headers(headers)][-_MAX_LOGIN_VALUES:]
            self._forms = _forms([*self._fixed, *self._logins])

    def masked(self, body: bytes) -> bytes:
        """Return a refusal's body without the credentials."""
        for form in self._forms:
            body = body.replace(form, MASK.encode())
        return body

    def masked_text(self, text: str) -> str:
        return self.masked(text.encode(errors="replace")).decode() if self._forms else text

    def masked_frame(self, frame: bytes) -> bytes:
        """Return a frame without the credentials; a tool's result is returned unchanged."""
        if any(form in frame for form in self._forms) and not _is_success(frame):
            return self.masked(frame)
        return frame


class MaskedFrames:
    """A receiver that masks the credentials in frames before passing them on."""

    def __init__(self, receiver: Receiver, sent: SentCredentials) -> None:
        self._receiver = receiver
        self._sent = sent

    def receive(self, frame: bytes) -> Id | None:
        return self._receiver.receive(self._sent.masked_frame(frame))

    async def receive_large(self, frame: bytes) -> Id | None:
        masked = await asyncio.to_thread(self._sent.masked_frame, frame)
        return await self._receiver.receive_large(masked)

    def receive_cut(self, edges: bytes) -> None:
        self._receiver.receive_cut(self._sent.masked(edges))


class _Answer(msgspec.Struct):
    """The members that say whether a frame is a result; an error's data is not decoded."""

    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def _is_success(frame: bytes) -> bool:
    try:
        result = msgspec.json.decode(frame, type=_Answer).result
    except (ValueError, RecursionError):
        message = decode_frame(frame)
        result = msgspec.UNSET if message is None else message.result
    return bool(result) and not _IS_ERROR.search(frame)


def _forms(secrets: list[str]) -> list[bytes]:
    """Return every form in which the values may be written, longest first."""
    forms = {form for each in secrets for form in written_forms(each)}
    # One value may be part of another.
    return sorted((each.encode(errors="replace") for each in forms), key=len, reverse=True)


_MAX_REFUSAL = 64 * 1024
"""How many bytes of an error response are read."""
_MAX_QUOTED = 80
_LOGINS = 3
"""How many times a request is resent after the server asks for credentials."""


class AuthChallenge(msgspec.Struct, frozen=True):
    """A response with status 401 or 403: the server wants different credentials."""

    url: str
    status: int
    headers: Mapping[str, str]
    body: bytes
    sent: str = ""
    """The `Authorization` header of the refused request."""


class ClientAuth(Protocol):
    """Supplies credentials for requests, for `connect(..., auth=...)`."""

    async def headers(self) -> Mapping[str, str]:
        """Return the next request's headers."""

    async def challenged(self, challenge: AuthChallenge) -> Mapping[str, str]:
        """Return headers for resending the refused request; raises if there are none."""


class HttpRequests:
    """Sends requests to one URL; redirects are followed only within the same origin."""

    def __init__(self, url: str, headers: Mapping[str, str], auth: ClientAuth | None) -> None:
        self.url = url
        self._headers = _in_lower_case(headers)
        self._auth = auth
        self._client: HttpPool | None = None
        self._credentials: Mapping[str, str] = {}
        """The last headers with credentials."""
        try:
            login = parse_url(url).login
        except HttpFailure:
            login = ""  # The first request will raise the error.
        known = {"authorization": login} if login else {}
        self.sent = SentCredentials(url, self._headers | known)

    def open(self) -> None:
        if self._client is None:
            self._client = HttpPool()

    @asynccontextmanager
    async def stream(
        self, method: str, headers: Mapping[str, str], body: bytes | None = None, url: str = ""
    ) -> AsyncIterator[HttpResponse]:
        """Yield the response before its body has been read.

        Raises NoAnswer, including while the body is being read.
        """
        response: HttpResponse | None = None
        try:
            response = await self._send(method, headers, body, url or self.url)
            yield response
        except HttpFailure as exc:
            text = str(exc)
            if exc.is_too_large:
                raise NoAnswer(text, code=TOO_LARGE) from None
            if exc.quoted:
                # The response may repeat the credentials.
                text += f": {self.sent.masked_text(exc.quoted)[:_MAX_QUOTED]!r}"
            raise ConnectionLost(text, may_have_run=exc.may_have_run) from None
        finally:
            if response is not None:
                response.close()

    async def _send(
        self, method: str, headers: Mapping[str, str], body: bytes | None, url: str
    ) -> HttpResponse:
        client = self._client
        if client is None:
            raise ConnectionLost("the connection was closed", may_have_run=False)
        if self._auth is not None:
            self._credentials = await self._login(self._auth.headers())
        given = self._headers | _in_lower_case(headers)
        for _ in range(_LOGINS):
            sent = given
            if self._credentials:
                found = _in_lower_case(self._credentials)
                self.sent.keep(found)
                sent = given | found
            response = await client.send(method, url, sent, body)
            status = response.status_code
            if status < 300:
                return response
            if (moved := _moved_to(response)) is not None:
                response.close()
                url = self.url = moved
            elif status in (401, 403) and self._auth is not None:
                try:
                    refused = await self.refusal_body(response)
                finally:
                    response.close()
                challenge = AuthChallenge(
                    response.url, status, response.headers, refused, sent.get("authorization", "")
                )
                # These clocks only check whether the server answers at all.
                probes = [clock for clock in RUNNING.get() if isinstance(clock, ProbeDeadline)]
                with clocks_paused(probes):
                    self._credentials = await self._login(self._auth.challenged(challenge))
            else:
                return response
        raise NoAnswer("the server refused every login", code="UNAUTHENTICATED", may_have_run=False)

    async def identity(self) -> str:
        """Return the next request's credentials, for caches."""
        found = self._credentials if self._auth is None else await self._auth.headers()
        return repr(sorted(found.items()))

    async def refusal_body(self, response: HttpResponse) -> bytes:
        """Return the beginning of an error response's body, without credentials."""
        return self.sent.masked(await response.read_up_to(_MAX_REFUSAL))

    def refusal(self, response: HttpResponse, body: bytes = b"") -> HttpRefused:
        """Return the error for a response without a result, with the credentials masked."""
        shown = _redirect(response).encode() or body
        text = self.sent.masked(shown)[:1000].decode(errors="replace")
        where, advice = parse_url(response.url), ""
        has_mcp = response.status_code not in (200, 404, 405)
        if not has_mcp and not where.target.partition("?")[0].endswith("/mcp"):
            mcp = f"{where.scheme}://{where.netloc}/mcp"
            advice = f"try {mcp}, or the rest transport if the server does not speak MCP"
        after = response.headers.get("retry-after")
        return HttpRefused(response.status_code, text, after, advice)

    def receiver(self, receiver: Receiver) -> Receiver:
        """Return a receiver that masks the client's credentials in the server's frames."""
        has_credentials = self.sent or self._auth is not None
        return MaskedFrames(receiver, self.sent) if has_credentials else receiver

    async def _login(self, asked: Awaitable[Mapping[str, str]]) -> Mapping[str, str]:
        """Return the headers from the user's `auth`; if it raises, only this request fails."""
        try:
            return await asked
        except LoginError as exc:
            text, code = self.sent.masked_text(str(exc)), exc.code
            raise NoAnswer(text, code=code, may_have_run=False) from None
        except Exception as exc:
            text = self.sent.masked_text(f"the login failed: {str(exc) or type(exc).__name__}")
            raise NoAnswer(text, code="UNAUTHENTICATED", may_have_run=False) from exc

    async def close(self) -> None:
        client, self._client = self._client, None
        if client is not None:
            client.close()


def _in_lower_case(headers: Mapping[str, str]) -> dict[str, str]:
    return {name.lower(): value for name, value in headers.items()}


def _moved_to(response: HttpResponse) -> str | None:
    """Return the URL of a redirect that keeps the method and stays on the same server."""
    if response.status_code not in (307, 308) or "location" not in response.headers:
        return None
    try:
        there = urljoin(response.url, response.headers["location"])
        same = parse_url(response.url).origin == parse_url(there).origin
    except (HttpFailure, ValueError):
        return None
    return there if same else None


def _redirect(response: HttpResponse) -> str:
    """Say where a redirect leads and why it is not followed; empty for other responses."""
    if not 300 <= response.status_code < 400 or "location" not in response.headers:
        return ""
    try:
        there = parse_url(urljoin(response.url, response.headers["location"]))
    except (HttpFailure, ValueError):
        return "a redirect to something that is not an HTTP URL"
    reason = "only statuses 307 and 308 allow a request to be repeated elsewhere"
    if there.origin != parse_url(response.url).origin:
        reason = "credentials would be sent to another host"
    # A URL's user and query may be secret.
    place = f"{there.scheme}://{there.netloc}{there.target.partition('?')[0]}"
    return f"a redirect to {place[:100]}, which is not followed because {reason}"
