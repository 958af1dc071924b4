"""Chooses the client of a login in the order of MCP's specification: registered before, the
application's own document, registered now, or asked of the user."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from ...core.json_value import JsonObject
from ...core.stopped_clocks import WaitingClocks
from ..faults import LoginError
from .login_records import LoginRecords, RegisteredClient
from .login_requests import send
from .server_metadata import IssuerMetadata
from .user_consent import call_user

AskClient = Callable[[str], Any]
"""Gets the issuer's URL, and returns a RegisteredClient, its id, or None; may be async."""
_USABLE = ("none", "client_secret_basic", "client_secret_post")


class ClientChoice(msgspec.Struct, frozen=True, kw_only=True):
    """The ways in which a program may get a client."""

    client: RegisteredClient | None = None
    document: str = ""
    """The https URL of the application's own metadata document, which is the client's id."""
    ask: AskClient | None = None
    name: str
    """The name that users read when they are asked to consent."""

    @property
    def label(self) -> str:
        """The client's id, if it is known before the login."""
        return self.client.id if self.client is not None else self.document


class ClientNeeds(msgspec.Struct, frozen=True):
    """The redirect address and the scopes that a client is used with."""

    redirect: str
    scopes: tuple[str, ...]

    def are_met_by(self, client: RegisteredClient) -> bool:
        """Return whether a registered client can be used; the user's own always can."""
        same = client.redirect_uri == self.redirect and set(self.scopes) <= set(client.scopes)
        return same or not client.dynamic


async def choose_client(
    choice: ClientChoice,
    issuer: IssuerMetadata,
    needs: ClientNeeds,
    records: LoginRecords,
    zone: int,
    clocks: WaitingClocks,
) -> RegisteredClient:
    """Return the client for an issuer; raises LoginError if there is none."""
    if choice.client is not None:
        return choice.client
    if choice.document and issuer.client_id_metadata_document_supported:
        return RegisteredClient(choice.document, auth_method="none")
    kept = await records.registration(issuer.issuer)
    if kept is not None and needs.are_met_by(kept):
        return kept
    if issuer.registration_endpoint:
        client = await _register(choice.name, issuer, needs, zone)
    else:
        with clocks.asking():
            client = await _ask(choice, issuer.issuer, needs.redirect)
    await records.keep_registration(issuer.issuer, client)
    return client


async def _register(
    name: str, issuer: IssuerMetadata, needs: ClientNeeds, zone: int
) -> RegisteredClient:
    """Register a client (RFC 7591)."""
    supported = issuer.token_endpoint_auth_methods_supported
    wanted = next((each for each in _USABLE if supported is None or each in supported), "none")
    metadata = {
        "client_name": name,
        "redirect_uris": [needs.redirect],
        "application_type": "native",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted,
    }
    # Some issuers grant only registered scopes; others refuse to register servers' scopes.
    scope = {"scope": " ".join(needs.scopes)} if needs.scopes else {}
    response = await send("POST", issuer.registration_endpoint, zone=zone, json=metadata | scope)
    if scope and response.error == "invalid_client_metadata":
        response = await send("POST", issuer.registration_endpoint, zone=zone, json=metadata)
    found = response.document
    if response.status not in (200, 201) or not isinstance(found.get("client_id"), str):
        raise LoginError(
            f"{issuer.issuer} does not register this program: {response.reason}; register a client "
            f"there with the redirect address {needs.redirect}, and give Login(client=…) its id"
        )
    return _registered(found, wanted, issuer, needs)


def _registered(
    found: JsonObject, wanted: str, issuer: IssuerMetadata, needs: ClientNeeds
) -> RegisteredClient:
    secret = found.get("client_secret")
    method = found.get("token_endpoint_auth_method")
    if method is None:
        undeclared = issuer.token_endpoint_auth_methods_supported is None
        method = "client_secret_basic" if secret and undeclared else wanted
    if method not in _USABLE or (method != "none" and not secret):
        raise LoginError(f"{issuer.issuer} registered a client that must use {method!r}")
    expires = found.get("client_secret_expires_at")
    return RegisteredClient(
        found["client_id"],
        secret=secret if isinstance(secret, str) and method != "none" else None,
        issuer=issuer.issuer,
        auth_method=method,
        redirect_uri=needs.redirect,
        scopes=needs.scopes,
        expires=float(expires) if isinstance(expires, int | float) and expires > 0 else 0.0,
        dynamic=True,
    )


async def _ask(choice: ClientChoice, issuer: str, redirect: str) -> RegisteredClient:
    if choice.ask is not None:
        found = await call_user(choice.ask, issuer)
        if isinstance(found, str) and found:
            found = RegisteredClient(found)
        if isinstance(found, RegisteredClient):
            return msgspec.structs.replace(found, issuer=found.issuer or issuer)
    raise LoginError(
        f"{issuer} registers no programs by itself; register a client there with the redirect "
        f"address {redirect}, and give its id: Login(client=RegisteredClient(id, secret, issuer))"
    )
