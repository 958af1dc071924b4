"""A program's registered client, and its requests to the issuer's token endpoint."""

from __future__ import annotations

import json
import time
from base64 import b64encode
from contextlib import suppress
from secrets import token_urlsafe
from typing import Any
from urllib.parse import quote

import msgspec

from ...core.clocks import WaitingClocks, clocks_paused
from ...errors import needs_extra
from ..faults import LoginError
from .discovery import IssuerMetadata, LoginResponse, send
from .login_settings import Login
from .token_store import Grant, RegisteredClient
from .user_consent import call_user

_USABLE = ("none", "client_secret_basic", "client_secret_post")


async def choose_client(
    login: Login,
    issuer: IssuerMetadata,
    redirect: str,
    scopes: tuple[str, ...],
    zone: int,
    clocks: WaitingClocks,
) -> RegisteredClient:
    """Return the client for an issuer; raises LoginError if there is none."""
    if login.client is not None:
        return login.client
    if login.document and issuer.client_id_metadata_document_supported:
        return RegisteredClient(login.document, auth_method="none")
    found = await login.records.registration(issuer.issuer)
    if found is not None:
        fits = found.redirect_uri == redirect and set(scopes) <= set(found.scopes)
        # A client that the user registered is used as is.
        if fits or not found.dynamic:
            return found
    if issuer.registration_endpoint:
        client = await _register(login.name, issuer, redirect, scopes, zone)
    else:
        with clocks_paused([clocks]):
            client = await _ask(login, issuer.issuer, redirect)
    await login.records.keep_registration(issuer.issuer, client)
    return client


async def _register(
    name: str, issuer: IssuerMetadata, redirect: str, scopes: tuple[str, ...], zone: int
) -> RegisteredClient:
    """Register a client (RFC 7591)."""
    supported = issuer.token_endpoint_auth_methods_supported
    wanted = next((each for each in _USABLE if supported is None or each in supported), "none")
    metadata = {
        "client_name": name,
        "redirect_uris": [redirect],
        "application_type": "native",
        "grant_types": ["authorization_code", "refresh_token"],
        "response_types": ["code"],
        "token_endpoint_auth_method": wanted,
    }
    # Some issuers grant only registered scopes; others refuse to register servers' scopes.
    scope = {"scope": " ".join(scopes)} if scopes else {}
    response = await send("POST", issuer.registration_endpoint, zone=zone, json=metadata | scope)
    if scope and response.error == "invalid_client_metadata":
        response = await send("POST", issuer.registration_endpoint, zone=zone, json=metadata)
    found = response.document
    if response.status not in (200, 201) or not isinstance(found.get("client_id"), str):
        raise LoginError(
            f"{issuer.issuer} refused to register this program: {response.reason}; register a "
            f"client there with the redirect address {redirect}, and pass its id as Login(client=…)"
        )
    secret = found.get("client_secret")
    method = found.get("token_endpoint_auth_method")
    if method is None:
        method = "client_secret_basic" if secret and supported is None else wanted
    if method not in _USABLE or (method != "none" and not secret):
        raise LoginError(f"{issuer.issuer} registered a client that must use {method!r}")
    expires = found.get("client_secret_expires_at")
    return RegisteredClient(
        found["client_id"],
        secret=secret if isinstance(secret, str) and method != "none" else None,
        issuer=issuer.issuer,
        auth_method=method,
        redirect_uri=redirect,
        scopes=scopes,
        expires=float(expires) if isinstance(expires, int | float) and expires > 0 else 0.0,
        dynamic=True,
    )


async def _ask(login: Login, issuer: str, redirect: str) -> RegisteredClient:
    if login.ask_client is not None:
        found = await call_user(login.ask_client, issuer)
        if isinstance(found, str) and found:
            found = RegisteredClient(found)
        if isinstance(found, RegisteredClient):
            return msgspec.structs.replace(found, issuer=found.issuer or issuer)
    raise LoginError(
        f"{issuer} does not register programs automatically; register a client there with the "
        f"redirect address {redirect}, and pass it: "
        "Login(client=RegisteredClient(id, secret, issuer))"
    )


_ASSERTION = "urn:ietf:params:oauth:client-assertion-type:jwt-bearer"
_ASSERTION_SECONDS = 120
_MAX_LIFETIME = 10 * 365 * 86400
_EARLY = 30.0
"""How many seconds before expiry a token is no longer used; fewer if it is short-lived."""


class TokenRefused(LoginError):
    """The issuer refused to issue a token; *error* is the error code, such as `invalid_grant`."""

    def __init__(self, response: LoginResponse, issuer: str) -> None:
        super().__init__(f"{issuer} issued no token: {response.reason}")
        self.error = response.error


class TokenEndpoint(msgspec.Struct, frozen=True):
    """An issuer's token endpoint, for one client and one server."""

    issuer: IssuerMetadata
    client: RegisteredClient
    resource: str
    zone: int

    async def exchange(
        self, code: str, verifier: str, redirect: str, scopes: tuple[str, ...]
    ) -> Grant:
        """Exchange a code from the authorization endpoint for tokens."""
        form = {
            "grant_type": "authorization_code",
            "code": code,
            "redirect_uri": redirect,
            "code_verifier": verifier,
        }
        return await self._request(form, scopes)

    async def refresh(self, grant: Grant) -> Grant:
        """Exchange a refresh token for new tokens; it is kept if the issuer sends no new one."""
        form = {"grant_type": "refresh_token", "refresh_token": grant.refresh_token}
        return await self._request(form, grant.scopes, grant.refresh_token)

    async def client_credentials(self, scopes: tuple[str, ...]) -> Grant:
        """Get tokens for the client itself, without a user."""
        form = {"grant_type": "client_credentials"}
        if scopes:
            form["scope"] = " ".join(scopes)
        return await self._request(form, scopes)

    async def _request(
        self, form: dict[str, str], scopes: tuple[str, ...], refresh_token: str = ""
    ) -> Grant:
        headers, proof = client_proof(self.client, self.issuer)
        response = await send(
            "POST",
            self.issuer.token_endpoint,
            zone=self.zone,
            headers=headers,
            form={**form, "resource": self.resource, **proof},
        )
        if response.status >= 500:
            raise LoginError(f"{self.issuer.token_endpoint} failed: {response.reason}")
        if response.status >= 300 or response.error:
            raise TokenRefused(response, self.issuer.issuer)
        found = response.document
        token, kind = found.get("access_token"), found.get("token_type", "Bearer")
        if not isinstance(token, str) or not token.isascii() or not token.isprintable():
            raise LoginError(f"{self.issuer.issuer} sent no access token")
        if not isinstance(kind, str) or kind.lower() != "bearer":
            raise LoginError(f"{self.issuer.issuer} sent a token of type {kind!r}")
        granted = found.get("scope")
        more = granted.split() if isinstance(granted, str) else ()
        return Grant(
            issuer=self.issuer.issuer,
            resource=self.resource,
            client=self.client,
            access_token=token,
            refresh_token=str(found.get("refresh_token") or refresh_token),
            expires=_expiry(found.get("expires_in")),
            scopes=tuple(dict.fromkeys((*scopes, *more))),
        )


def _expiry(seconds: Any) -> float:
    """Return when a token stops being used; some issuers send the seconds as a string."""
    try:
        left = float(seconds)
    except (TypeError, ValueError):
        return 0.0
    if not 0 < left < _MAX_LIFETIME:
        return 0.0
    return time.time() + left - min(_EARLY, left / 10)


def client_proof(
    client: RegisteredClient, issuer: IssuerMetadata
) -> tuple[dict[str, str], dict[str, str]]:
    """Return the headers and form fields that authenticate a client."""
    method = client.auth_method or _method_for(client, issuer)
    match method:
        case "client_secret_basic":
            pair = f"{quote(client.id, safe='')}:{quote(client.secret or '', safe='')}"
            header = {"authorization": f"Basic {b64encode(pair.encode()).decode()}"}
            # The id is in the form as well, because the official SDK's servers look for it.
            return header, {"client_id": client.id}
        case "client_secret_post":
            return {}, {"client_id": client.id, "client_secret": client.secret or ""}
        case "private_key_jwt":
            assertion = _assertion(client, issuer.issuer)
            proof = {"client_assertion_type": _ASSERTION, "client_assertion": assertion}
            return {}, {"client_id": client.id, **proof}
        case "none":
            return {}, {"client_id": client.id}
    raise LoginError(f"{issuer.issuer} wants {method!r}, which this client does not support")


def _method_for(client: RegisteredClient, issuer: IssuerMetadata) -> str:
    if client.private_key is not None:
        return "private_key_jwt"
    if client.secret is None:
        return "none"
    supported = issuer.token_endpoint_auth_methods_supported
    # Without this member, an issuer accepts `client_secret_basic` (RFC 8414, section 2).
    if supported is None or "client_secret_basic" in supported:
        return "client_secret_basic"
    return "client_secret_post" if "client_secret_post" in supported else "none"


def _assertion(client: RegisteredClient, issuer: str) -> str:
    """Return a signed assertion of the client's identity (RFC 7523)."""
    with needs_extra("auth"):
        from joserfc import jwk, jws

    import_key: Any = jwk.import_key
    for kind in ("EC", "RSA"):
        with suppress(ValueError):
            key = import_key(client.private_key or "", kind)
            break
    else:
        raise LoginError("private_key should be an EC or RSA key in PEM format")
    now = int(time.time())
    claims = {
        "iss": client.id,
        "sub": client.id,
        "aud": issuer,
        "jti": token_urlsafe(16),
        "iat": now,
        "exp": now + _ASSERTION_SECONDS,
    }
    algorithm = "RS256" if kind == "RSA" else "ES256"
    return jws.serialize_compact({"alg": algorithm}, json.dumps(claims), key)
