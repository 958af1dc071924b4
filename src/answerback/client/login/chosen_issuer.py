"""Chooses the issuer of a server's tokens."""

from __future__ import annotations

import asyncio
from urllib.parse import urlsplit

import msgspec

from ...core.secrets import mask_url
from ..faults import LoginError
from .challenge_header import AskedLogin
from .login_settings import Login
from .network_zones import network_zone
from .server_metadata import IssuerMetadata, ResourceMetadata, find_issuer, find_resource

_SECONDS = 30.0
"""Seconds for all metadata of one login."""
_MAX_ISSUERS = 3


class ChosenIssuer(msgspec.Struct, frozen=True):
    """The issuer to log in at, found for one of a server's challenges."""

    server: str
    resource: ResourceMetadata
    issuer: IssuerMetadata
    zone: int
    """The server's network zone: no request goes to a nearer one."""


async def choose_issuer(login: Login, server: str, asked: AskedLogin, last: str) -> ChosenIssuer:
    """Choose where to log in to the server at a URL; *last* is the last login's issuer.

    Nobody is asked, so all of it has to end in time: it is bounded by the call's time-out too.
    """
    try:
        async with asyncio.timeout(_SECONDS):
            return await _choose(login, server, asked, last)
    except TimeoutError:
        text = (
            f"it is not known where to log in to {mask_url(server)}: its metadata and its issuer's"
        )
        raise LoginError(f"{text} did not arrive within {_SECONDS:g} seconds") from None


async def _choose(login: Login, server: str, asked: AskedLogin, last: str) -> ChosenIssuer:
    zone = await network_zone(server)
    client = login.choice.client
    named = client.issuer if client is not None and client.issuer else ""
    resource = await find_resource(server, asked.metadata_url, zone, named)
    failure: LoginError | None = None
    for issuer in (await _allowed(login, server, resource.issuers, last))[:_MAX_ISSUERS]:
        try:
            return ChosenIssuer(server, resource, await find_issuer(issuer, zone), zone)
        except LoginError as exc:
            failure = failure or exc
    assert failure is not None
    if resource.is_guess:
        text = (
            f"{mask_url(server)} does not say where to log in; if you have a key or a token for "
            "it, give it as auth= of connect, or as --token on the command line"
        )
        raise LoginError(f"{text} ({failure})")
    raise failure


async def _allowed(
    login: Login, server: str, issuers: tuple[str, ...], last: str
) -> tuple[str, ...]:
    """Return the issuers that may be used, the last one first; a registered client has only one."""
    client = login.choice.client
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
