"""Login to one server: where to log in, the login itself, and the tokens for requests.

`ServerLogin` answers challenges with a refreshed token, a login, or a login for more scopes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from contextlib import suppress
from urllib.parse import urlsplit

import msgspec

from ...auth.bearer import is_secure
from ...core.clocks import WaitingClocks, clocks_paused
from ...core.secrets import mask_url
from ..faults import LoginError
from ..http_requests import AuthChallenge
from .discovery import (
    BearerChallenge,
    IssuerMetadata,
    ResourceMetadata,
    bearer_challenge,
    check_zone,
    find_issuer,
    find_resource,
    network_zone,
)
from .login_settings import Login
from .token_endpoint import TokenEndpoint, TokenRefused, choose_client
from .token_store import Grant, RegisteredClient
from .user_consent import Consent, LoopbackRedirect, call_user

_SECONDS = 30.0
"""How many seconds fetching all metadata for one login may take."""
_MAX_ISSUERS = 3


class ChosenIssuer(msgspec.Struct, frozen=True):
    """The issuer to log in with, chosen for one of a server's challenges."""

    server: str
    resource: ResourceMetadata
    issuer: IssuerMetadata
    zone: int
    """The server's network zone; no request may go to a closer one."""


async def choose_issuer(
    login: Login, server: str, asked: BearerChallenge, last: str
) -> ChosenIssuer:
    """Choose where to log in to a server; *last* is the last login's issuer.

    No user is involved yet, so there is a time limit, and the call's timeout also applies.
    """
    client = login.client
    named = client.issuer if client is not None and client.issuer else ""
    failure: LoginError | None = None
    try:
        async with asyncio.timeout(_SECONDS):
            zone = await network_zone(server)
            resource = await find_resource(server, asked.metadata_url, zone, named)
            for issuer in (await _allowed(login, server, resource.issuers, last))[:_MAX_ISSUERS]:
                try:
                    return ChosenIssuer(server, resource, await find_issuer(issuer, zone), zone)
                except LoginError as exc:
                    failure = failure or exc
    except TimeoutError:
        text = (
            f"cannot find out where to log in to {mask_url(server)}: its metadata and its issuer's"
        )
        raise LoginError(f"{text} did not arrive within {_SECONDS:g} seconds") from None
    assert failure is not None
    if resource.is_guess:
        text = (
            f"{mask_url(server)} does not say where to log in; if you have a key or a token for "
            "it, pass it to connect as auth=, or as --token on the command line"
        )
        raise LoginError(f"{text} ({failure})")
    raise failure


async def _allowed(
    login: Login, server: str, issuers: tuple[str, ...], last: str
) -> tuple[str, ...]:
    """Return the usable issuers, with the last one used first; a registered client has only one."""
    client = login.client
    if client is not None:
        issuer = client.issuer or await login.records.bound_issuer(server, client.id)
        if issuer is not None and issuer not in issuers:
            raise LoginError(
                f"the client {client.id!r} is registered with {issuer}, but the server names "
                f"{', '.join(issuers)}; if that is right, register a client there"
            )
        if issuer is not None:
            return (issuer,)
    return tuple(sorted(issuers, key=lambda each: each != last))


def canonical(url: str) -> str:
    """Return a server's URL as its identifier: no user, no fragment, and the host in lower case."""
    parts = urlsplit(url)
    path = "" if parts.path == "/" else parts.path
    host = parts.netloc.rpartition("@")[2].lower()
    return parts._replace(scheme=parts.scheme.lower(), netloc=host, path=path, fragment="").geturl()


async def log_in(
    login: Login, chosen: ChosenIssuer, scopes: tuple[str, ...], clocks: WaitingClocks
) -> Grant:
    """Log in for *scopes*; raises LoginError. *clocks* pause only while waiting for the user."""
    if login.grant == "client_credentials":
        assert login.client is not None
        endpoint = await _endpoint(login, chosen, login.client)
        return await endpoint.client_credentials(scopes)
    try:
        async with asyncio.timeout(login.timeout):
            async with await _redirect(login, chosen) as redirect:
                return await _log_in_user(login, chosen, scopes, redirect, clocks)
    except TimeoutError:
        text = f"nobody logged in at {chosen.issuer.issuer} within {login.timeout:g} seconds"
        if redirect.refused:
            text += f"; {redirect.refused} answers had the state of another login"
        raise LoginError(text) from None


async def _log_in_user(
    login: Login,
    chosen: ChosenIssuer,
    scopes: tuple[str, ...],
    redirect: LoopbackRedirect,
    clocks: WaitingClocks,
) -> Grant:
    issuer = chosen.issuer
    if issuer.authorization_endpoint:
        await check_zone(issuer.authorization_endpoint, chosen.zone)
    client = await choose_client(login, issuer, redirect.uri, scopes, chosen.zone, clocks)
    consent = Consent(
        issuer=issuer,
        client_id=client.id,
        redirect=redirect.uri,
        resource=chosen.resource.resource,
        scopes=scopes,
        assume_pkce=login.assume_pkce,
    )
    redirect.accepts = consent.is_answer
    with clocks_paused([clocks]):
        pasted = await call_user(login.open_url, consent.url)
        answer = consent.pasted(pasted) if isinstance(pasted, str) else await redirect.answer()
    code = consent.code_of(answer)
    endpoint = await _endpoint(login, chosen, client)
    try:
        return await endpoint.exchange(code, consent.verifier, redirect.uri, scopes)
    except TokenRefused as exc:
        if exc.error == "invalid_client" and client.dynamic:
            # The issuer has forgotten the registration; the next login registers again.
            await login.records.keep_registration(issuer.issuer, None)
        raise


async def _redirect(login: Login, chosen: ChosenIssuer) -> LoopbackRedirect:
    """Return the redirect address: the client's registered one if its port is free."""
    client, uri = login.client, login.redirect_uri
    if urlsplit(uri).port:
        return LoopbackRedirect(uri)
    if client is not None:
        return LoopbackRedirect(client.redirect_uri or uri)
    client = await login.records.registration(chosen.issuer.issuer)
    if client is not None and client.redirect_uri:
        with suppress(LoginError):
            async with LoopbackRedirect(client.redirect_uri):
                return LoopbackRedirect(client.redirect_uri)
    return LoopbackRedirect(uri)


async def _endpoint(login: Login, chosen: ChosenIssuer, client: RegisteredClient) -> TokenEndpoint:
    issuer = chosen.issuer
    if client.issuer is None and (client.secret or client.private_key):
        # From now on, the secret is sent only to this issuer.
        await login.records.bind_issuer(chosen.server, client.id, issuer.issuer)
    return TokenEndpoint(issuer, client, chosen.resource.resource, chosen.zone)


_STEP_UPS = 8
"""How many times the user is asked for more scopes on one connection."""
_MAX_REASON = 200
"""How much of a server's reason is shown."""
_RETRY = 30.0
"""Seconds before a failed refresh is retried, when refreshing a token before a request."""
_NO_HEADERS: Mapping[str, str] = {}


class ServerLogin:
    """Supplies tokens for requests to one server; only one login runs at a time."""

    def __init__(self, login: Login, url: str) -> None:
        self._login = login
        self._url = canonical(url)
        self._client = login.document if login.client is None else login.client.id
        """The client's id; empty if it is only known after the login."""
        self._lock = asyncio.Lock()
        self._clocks = WaitingClocks()
        self._is_loaded = False
        self._grant: Grant | None = None
        self._headers = _NO_HEADERS
        self._is_untried = False
        """Whether the token was obtained for a challenge and no request has been sent since."""
        self._came_by_refresh = False
        self._retry_at = 0.0
        self._stepped_up: set[frozenset[str]] = set()

    async def headers(self) -> Mapping[str, str]:
        """Return the next request's headers, after refreshing a token that is about to expire."""
        self._is_untried = False
        if self._is_loaded and (self._grant is None or not self._grant.is_expired):
            return self._headers
        async with self._lock:
            if not self._is_loaded:
                await self._load()
            grant = self._grant
            if grant is None or not grant.is_expired or not grant.refresh_token:
                return self._headers
            if time.monotonic() >= self._retry_at:
                self._retry_at = time.monotonic() + _RETRY
                # If it fails, the request is sent with the old token, and the server decides.
                with suppress(LoginError):
                    zone = await network_zone(self._url)
                    await self._refresh(grant, await find_issuer(grant.issuer, zone))
        return self._headers

    async def challenged(self, challenge: AuthChallenge) -> Mapping[str, str]:
        """Return headers for resending a refused request; raises LoginError."""
        asked = bearer_challenge(challenge.headers.get("www-authenticate", ""))
        if challenge.status == 403 and asked.error != "insufficient_scope":
            reason = asked.description or " ".join(challenge.body.decode(errors="replace").split())
            text = f"the server does not allow this (HTTP status 403): {reason[:_MAX_REASON]}"
            raise LoginError(text, code="FORBIDDEN")
        if not is_secure(self._url):
            text = f"{mask_url(self._url)} asks for a login, but tokens are only sent over https"
            raise LoginError(text)
        with self._clocks.waiting():
            async with self._lock:
                if self._grant is None or self._grant.header == challenge.sent:
                    await self._load()
                if self._grant is not None and self._grant.header != challenge.sent:
                    # Another request, or another process with the same store, has changed the
                    # token since the refused request was sent.
                    return self._headers
                await self._answer(asked, steps_up=challenge.status == 403)
                self._is_untried = True
                return self._headers

    async def _load(self) -> None:
        self._is_loaded = True
        if is_secure(self._url):
            self._use(await self._login.records.grant(self._url, self._client))

    def _use(self, grant: Grant | None) -> None:
        self._grant = grant
        self._headers = _NO_HEADERS if grant is None else {"authorization": grant.header}

    async def _answer(self, asked: BearerChallenge, *, steps_up: bool) -> None:
        if steps_up:
            # The user is asked only once for the same scopes, and only a few times for others.
            wanted = frozenset(asked.scopes)
            if wanted in self._stepped_up or len(self._stepped_up) >= _STEP_UPS:
                names = " ".join(asked.scopes) or "more scopes"
                text = f"the server still asks for {names} after a login that requested it"
                raise LoginError(text, code="FORBIDDEN")
            self._stepped_up.add(wanted)
        grant = self._grant
        last = "" if grant is None else grant.issuer
        chosen = await choose_issuer(self._login, self._url, asked, last)
        is_same = (
            grant is not None
            and grant.issuer == chosen.issuer.issuer
            and grant.resource == chosen.resource.resource
        )
        if is_same and not steps_up:
            assert grant is not None
            is_new = self._is_untried and not grant.is_expired
            if is_new and not self._came_by_refresh:
                reason = f": {asked.description[:_MAX_REASON]}" if asked.description else ""
                text = "the server does not accept the token from the login"
                raise LoginError(text + reason)
            if grant.refresh_token and not is_new:
                try:
                    await self._refresh(grant, chosen.issuer)
                    return
                except TokenRefused:
                    # Another process may have refreshed it; otherwise a login is needed.
                    if self._grant is not None and self._grant.header != grant.header:
                        return
        known = grant.scopes if is_same and grant is not None else ()
        scopes = self._scopes(asked, chosen, known)
        await self._keep(await log_in(self._login, chosen, scopes, self._clocks))

    def _scopes(
        self, asked: BearerChallenge, chosen: ChosenIssuer, known: tuple[str, ...]
    ) -> tuple[str, ...]:
        """Return a challenge's scopes, or else the metadata's, plus those requested before."""
        wanted = asked.scopes or chosen.resource.scopes
        scopes = dict.fromkeys((*known, *wanted, *self._login.scopes))
        scopes.pop("offline_access", None)
        is_offline = self._login.grant == "authorization_code" and (
            "offline_access" in chosen.issuer.scopes_supported
        )
        # `offline_access` alone would replace the issuer's default scopes.
        return (*scopes, "offline_access") if scopes and is_offline else tuple(scopes)

    async def _refresh(self, grant: Grant, issuer: IssuerMetadata) -> None:
        """Refresh the token; a cancelled request still waits for this to finish.

        The issuer may send a new refresh token only once, so the response must not be lost.
        """
        running = asyncio.get_running_loop().create_task(self._exchange(grant, issuer))
        try:
            await asyncio.shield(running)
        except asyncio.CancelledError:
            await asyncio.wait([running])
            if not running.cancelled():
                running.exception()
            raise

    async def _exchange(self, grant: Grant, issuer: IssuerMetadata) -> None:
        client = self._login.client
        if client is None or client.id != grant.client.id:
            client = grant.client
        endpoint = TokenEndpoint(issuer, client, grant.resource, await network_zone(self._url))
        try:
            found = await endpoint.refresh(grant)
        except TokenRefused as exc:
            await self._load()
            if self._grant is None or self._grant.header == grant.header:
                # Forget a refresh token that the issuer refuses, or a client that it does not know.
                records = self._login.records
                if exc.error == "invalid_client" and grant.client.dynamic:
                    await records.keep_registration(grant.issuer, None)
                if exc.error in ("invalid_client", "invalid_grant", "unauthorized_client"):
                    left = msgspec.structs.replace(grant, refresh_token="")
                    await records.keep_grant(self._url, self._client, left)
                    self._use(left)
            raise
        await self._keep(found, by_refresh=True)

    async def _keep(self, grant: Grant, *, by_refresh: bool = False) -> None:
        self._came_by_refresh = by_refresh
        self._retry_at = 0.0
        self._use(grant)
        client = self._login.client
        if client is not None:
            # The program's secret is not kept with its tokens.
            public = msgspec.structs.replace(client, secret=None, private_key=None)
            grant = msgspec.structs.replace(grant, client=public)
        await self._login.records.keep_grant(self._url, self._client, grant)
