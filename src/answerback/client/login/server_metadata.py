"""Finds out where to log in: the metadata of the server (RFC 9728) and its issuer (RFC 8414,
OpenID Connect Discovery), in the order of MCP's specification."""

from __future__ import annotations

from urllib.parse import urlsplit

import msgspec

from ...auth.bearer import is_secure, metadata_paths, metadata_urls
from ...core.json_value import Json, JsonObject
from ...core.secrets import mask_url
from ...http1.http_connection import HttpFailure
from ...http1.http_pool import parse_url
from ..faults import LoginError
from .login_requests import send


class ResourceMetadata(msgspec.Struct, frozen=True):
    """The server that tokens are for, and who issues them."""

    resource: str
    issuers: tuple[str, ...]
    scopes: tuple[str, ...] = ()
    """The scopes to ask for if the challenge names none."""
    is_guess: bool = False
    """Whether nothing says who issues tokens, and the server itself is tried."""


class IssuerMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """An issuer's pages, and the parts of OAuth that it supports."""

    issuer: str
    authorization_endpoint: str = ""
    token_endpoint: str
    registration_endpoint: str = ""
    scopes_supported: tuple[str, ...] = ()
    code_challenge_methods_supported: tuple[str, ...] = ()
    token_endpoint_auth_methods_supported: tuple[str, ...] | None = None
    authorization_response_iss_parameter_supported: bool = False
    client_id_metadata_document_supported: bool = False


async def find_resource(
    server: str, metadata_url: str, zone: int, issuer: str = ""
) -> ResourceMetadata:
    """Fetch the metadata of the server at a URL; *metadata_url* is the address in its challenge.

    A server without metadata is its own issuer, as in MCP 2025-03-26, unless the client is
    registered with *issuer*.
    """
    failures = []
    for url in _places(server, metadata_url):
        try:
            response = await send("GET", url, zone=zone)
        except LoginError as exc:
            failures.append(str(exc))
            continue
        if response.status == 200 and response.document:
            return _resource(response.document, server, url)
        failures.append(f"{mask_url(url)} answered with HTTP status {response.status}")
    if all("HTTP status 4" in each for each in failures):
        parts = urlsplit(server)
        own = f"{parts.scheme}://{parts.netloc}"
        return ResourceMetadata(server, (issuer or own,), is_guess=not issuer)
    raise LoginError(f"it is not known where to log in to {server}: {'; '.join(failures)}")


def _places(server: str, metadata_url: str) -> list[str]:
    parts = urlsplit(server)
    own = [f"{parts.scheme}://{parts.netloc}{path}" for path in metadata_paths(server)[:2]]
    return list(dict.fromkeys([metadata_url, *own] if metadata_url else own))


def _resource(document: JsonObject, server: str, url: str) -> ResourceMetadata:
    resource = document.get("resource")
    if not isinstance(resource, str) or not _covers(resource, server):
        raise LoginError(
            f"{mask_url(url)} is the metadata of {resource!r}, not of {mask_url(server)}: the "
            "server is not the one that its metadata names, so nothing is sent to its issuer"
        )
    issuers = _strings(document.get("authorization_servers"))
    if not issuers:
        raise LoginError(f"{mask_url(url)} names no authorization server")
    return ResourceMetadata(resource, issuers, _strings(document.get("scopes_supported")))


def _covers(resource: str, server: str) -> bool:
    """Return whether a resource is the server, or the part of its site that contains it."""
    try:
        mine, named = urlsplit(server), urlsplit(resource)
        same = parse_url(server).origin == parse_url(resource).origin
    except (ValueError, HttpFailure):
        return False
    path = named.path.rstrip("/")
    inside = mine.path.rstrip("/") == path or mine.path.startswith(f"{path}/")
    return same and inside and not named.fragment and named.query in ("", mine.query)


def _strings(value: Json) -> tuple[str, ...]:
    return tuple(each for each in value if isinstance(each, str)) if isinstance(value, list) else ()


async def find_issuer(issuer: str, zone: int) -> IssuerMetadata:
    """Fetch an issuer's metadata; raises LoginError if they are another's, or unusable."""
    if not is_secure(issuer):
        raise LoginError(f"the issuer {issuer!r} should be an https URL")
    failures = []
    for url in metadata_urls(issuer):
        try:
            response = await send("GET", url, zone=zone)
        except LoginError as exc:
            failures.append(str(exc))
            continue
        if response.status != 200 or not response.document:
            failures.append(f"{mask_url(url)} answered with HTTP status {response.status}")
        elif response.document.get("issuer") != issuer:
            named = response.document.get("issuer")
            failures.append(f"{mask_url(url)} is the metadata of {named!r}, not of {issuer!r}")
        else:
            return _issuer(response.document, url)
    raise LoginError(f"the issuer {issuer} has no metadata: {'; '.join(failures)}")


def _issuer(document: JsonObject, url: str) -> IssuerMetadata:
    # Unusable members are left out, because nobody else needs them.
    kept = {name: value for name, value in document.items() if value is not None}
    try:
        found = msgspec.convert(kept, IssuerMetadata)
    except msgspec.ValidationError as exc:
        raise LoginError(f"{mask_url(url)} cannot be used: {exc}") from None
    pages = {
        "authorization_endpoint": found.authorization_endpoint,
        "token_endpoint": found.token_endpoint,
        "registration_endpoint": found.registration_endpoint,
    }
    for name, page in pages.items():
        if page and not is_secure(page):
            raise LoginError(f"{mask_url(url)}: {name} {page!r} should be an https URL")
    return found
