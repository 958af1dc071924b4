"""Gets new tokens: from a user who logs in with a browser, or for the program itself."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

from ...core.stopped_clocks import WaitingClocks
from ..faults import LoginError
from .chosen_issuer import ChosenIssuer
from .client_registration import ClientNeeds, choose_client
from .login_records import Grant, RegisteredClient
from .login_settings import Login
from .loopback_redirect import LoopbackRedirect
from .network_zones import check_zone
from .token_endpoint import TokenEndpoint, TokenRefused
from .user_consent import Consent, call_user


async def log_in(
    login: Login, chosen: ChosenIssuer, scopes: tuple[str, ...], clocks: WaitingClocks
) -> Grant:
    """Log in for *scopes*; raises LoginError. *clocks* stop only while the user is asked."""
    if login.grant == "client_credentials":
        assert login.choice.client is not None
        endpoint = await _endpoint(login, chosen, login.choice.client)
        return await endpoint.client_credentials(scopes)
    try:
        async with asyncio.timeout(login.timeout):
            async with await _redirect(login, chosen) as redirect:
                return await _log_in_user(login, chosen, scopes, redirect, clocks)
    except TimeoutError:
        issuer, seconds = chosen.issuer.issuer, login.timeout
        text = f"nobody logged in at {issuer} within {seconds:g} seconds"
        if redirect.foreign:
            text += f"; {redirect.foreign} answers had the state of another login"
        raise LoginError(text) from None


async def _log_in_user(
    login: Login,
    chosen: ChosenIssuer,
    scopes: tuple[str, ...],
    redirect: LoopbackRedirect,
    clocks: WaitingClocks,
) -> Grant:
    issuer, records = chosen.issuer, login.records
    if issuer.authorization_endpoint:
        await check_zone(issuer.authorization_endpoint, chosen.zone)
    needs = ClientNeeds(redirect.uri, scopes)
    client = await choose_client(login.choice, issuer, needs, records, chosen.zone, clocks)
    consent = Consent(
        issuer=issuer,
        client_id=client.id,
        redirect=redirect.uri,
        resource=chosen.resource.resource,
        scopes=scopes,
        assume_pkce=login.assume_pkce,
    )
    redirect.accepts = consent.is_answer
    with clocks.asking():
        pasted = await call_user(login.open_url, consent.url)
        answer = consent.pasted(pasted) if isinstance(pasted, str) else await redirect.answer()
    code = consent.code_of(answer)
    endpoint = await _endpoint(login, chosen, client)
    try:
        return await endpoint.exchange(code, consent.verifier, redirect.uri, scopes)
    except TokenRefused as exc:
        if exc.error == "invalid_client" and client.dynamic:
            # The issuer has forgotten the registration; the next login makes a new one.
            await records.keep_registration(issuer.issuer, None)
        raise


async def _redirect(login: Login, chosen: ChosenIssuer) -> LoopbackRedirect:
    """Return the redirect address; the client's registered one, if it is free."""
    choice, uri = login.choice, login.redirect_uri
    if urlsplit(uri).port:
        return LoopbackRedirect(uri)
    if choice.client is not None:
        return LoopbackRedirect(choice.client.redirect_uri or uri)
    kept = await login.records.registration(chosen.issuer.issuer)
    if kept is None or not kept.redirect_uri or not await _is_free(kept.redirect_uri):
        return LoopbackRedirect(uri)
    return LoopbackRedirect(kept.redirect_uri)


async def _is_free(uri: str) -> bool:
    try:
        async with LoopbackRedirect(uri):
            return True
    except LoginError:
        return False


async def _endpoint(login: Login, chosen: ChosenIssuer, client: RegisteredClient) -> TokenEndpoint:
    issuer = chosen.issuer
    if client.issuer is None and (client.secret or client.private_key):
        # From now on, only this issuer gets the secret.
        await login.records.bind_issuer(chosen.server, client.id, issuer.issuer)
    return TokenEndpoint(issuer, client, chosen.resource.resource, chosen.zone)
