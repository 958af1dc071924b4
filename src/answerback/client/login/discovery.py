"""Finds a server's token issuer from the server's challenge and the metadata of server and issuer.

`send` refuses requests to networks that are closer to this machine than the server's.
"""

from __future__ import annotations

import asyncio
import ipaddress
import re
from collections.abc import Mapping
from typing import Any
from urllib.parse import urlencode, urljoin, urlsplit

import msgspec

from ...auth.bearer import is_loopback_url, is_secure, metadata_paths, metadata_urls
from ...core.json_value import Json
from ...core.secrets import mask_url
from ...http1.http_connection import HttpFailure
from ...http1.http_pool import BodyTooLarge, fetch, parse_url
from ..faults import LoginError


async def network_zone(url: str) -> int:
    """Return the zone of a URL's host: 0 is this machine, 1 a private network, 2 the internet."""
    host = urlsplit(url).hostname or ""
    if is_loopback_url(url):
        return 0
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None)
    except (OSError, UnicodeError):
        # A proxy may resolve the name; a direct connection will fail anyway.
        return 2
    return min((_zone_of(str(each[4][0])) for each in found), default=2)


def _zone_of(address: str) -> int:
    ip = ipaddress.ip_address(address.partition("%")[0])
    if isinstance(ip, ipaddress.IPv6Address) and ip.ipv4_mapped is not None:
        ip = ip.ipv4_mapped
    if ip.is_loopback or ip.is_unspecified:
        return 0
    return 2 if ip.is_global else 1


async def check_zone(url: str, zone: int) -> None:
    """Raise LoginError for a page without https, or in a network zone closer than *zone*."""
    if not is_secure(url):
        raise LoginError(
            f"{mask_url(url)!r} should be an https URL; http is allowed only for this machine"
        )
    if zone > 0 and await network_zone(url) < zone:
        raise LoginError(
            f"{mask_url(url)!r} is on a private network that the server is not part of"
        )


_SECONDS = 15.0
"""How many seconds a whole request may take."""
_MAX_DOCUMENT = 256 * 1024
"""The maximum size of a document, in bytes."""
_REDIRECTS = 3
_MOVED = frozenset({301, 302, 303, 307, 308})


class LoginResponse(msgspec.Struct, frozen=True):
    """A response's status and JSON object; the object is empty if there was none."""

    status: int
    document: dict[str, Any]

    @property
    def error(self) -> str:
        """The OAuth error code, such as `invalid_grant`."""
        return str(self.document.get("error") or "")

    @property
    def reason(self) -> str:
        """The OAuth error with its description, or the status."""
        text = " ".join(str(self.document.get("error_description") or "").split())[:300]
        return ": ".join(filter(None, (self.error, text))) or f"HTTP status {self.status}"


async def send(
    method: str,
    url: str,
    *,
    zone: int,
    headers: Mapping[str, str] | None = None,
    form: Mapping[str, str] | None = None,
    json: Mapping[str, Any] | None = None,
) -> LoginResponse:
    """Send one request; raises LoginError.

    *zone* is the closest network zone that the request may go to: a server on the internet must
    not make this machine send requests to addresses that only this machine can reach.
    A GET follows at most three redirects; a POST follows none, because it contains secrets.
    """
    content: bytes | None = None
    sent: dict[str, str] = {}
    if form is not None:
        content = urlencode(form).encode()
        sent["content-type"] = "application/x-www-form-urlencoded"
    elif json is not None:
        content = msgspec.json.encode(json)
        sent["content-type"] = "application/json"
    sent |= {"accept": "application/json", **(headers or {})}
    try:
        async with asyncio.timeout(_SECONDS):
            for _ in range(_REDIRECTS + 1):
                await check_zone(url, zone)
                # Proxies set in the environment do not apply to this machine.
                proxies = not is_loopback_url(url)
                found = await fetch(
                    method, url, sent, content, limit=_MAX_DOCUMENT, uses_proxies=proxies
                )
                location = found.headers.get("location", "")
                if method != "GET" or found.status not in _MOVED or not location:
                    break
                url = urljoin(url, location)
            else:
                raise LoginError(f"{mask_url(url)} redirects too many times")
    except TimeoutError:
        raise LoginError(f"{mask_url(url)} did not answer within {_SECONDS:g} seconds") from None
    except BodyTooLarge:
        raise LoginError(f"{mask_url(url)} is larger than {_MAX_DOCUMENT} bytes") from None
    except HttpFailure as exc:
        raise LoginError(f"{mask_url(url)} cannot be read: {exc}") from None
    try:
        document = msgspec.json.decode(found.body)
    except (ValueError, RecursionError):
        document = {}
    return LoginResponse(found.status, document if isinstance(document, dict) else {})


_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_SCHEME = re.compile(rf"\s*,?\s*({_TOKEN})(?=\s|,|$)(?!\s*=)")
_PARAMETER = re.compile(rf'[\s,]*({_TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|({_TOKEN}))')
_TOKEN68 = re.compile(r"\s+[A-Za-z0-9._~+/-]+=*(?=\s*(?:,|$))")
"""The single value that some schemes have in place of parameters."""
_MAX_HEADER = 16_384


class BearerChallenge(msgspec.Struct, frozen=True):
    """A challenge for a bearer token; members that the server did not send are empty."""

    error: str = ""
    description: str = ""
    scopes: tuple[str, ...] = ()
    metadata_url: str = ""


def read_challenges(header: str) -> list[tuple[str, dict[str, str]]]:
    """Return each challenge's lower-case scheme and parameters, as far as they can be read."""
    found: list[tuple[str, dict[str, str]]] = []
    text, position = header[:_MAX_HEADER], 0
    while position < len(text):
        if found and (match := _PARAMETER.match(text, position)):
            value = match[3] if match[2] is None else re.sub(r"\\(.)", r"\1", match[2])
            found[-1][1].setdefault(match[1].lower(), value)
        elif match := _SCHEME.match(text, position):
            found.append((match[1].lower(), {}))
            match = _TOKEN68.match(text, match.end()) or match
        else:
            break
        position = match.end()
    return found


def bearer_challenge(header: str) -> BearerChallenge:
    """Return the first bearer challenge; an empty one if there is none."""
    for scheme, parameters in read_challenges(header):
        if scheme == "bearer":
            return BearerChallenge(
                error=parameters.get("error", ""),
                description=parameters.get("error_description", ""),
                scopes=tuple(parameters.get("scope", "").split()),
                metadata_url=parameters.get("resource_metadata", ""),
            )
    return BearerChallenge()


class ResourceMetadata(msgspec.Struct, frozen=True):
    """The server that tokens are for, and who issues them."""

    resource: str
    issuers: tuple[str, ...]
    scopes: tuple[str, ...] = ()
    """The scopes to ask for if the challenge names none."""
    is_guess: bool = False
    """True if no issuer is named anywhere and the server itself is tried instead."""


class IssuerMetadata(msgspec.Struct, frozen=True, kw_only=True):
    """An issuer's endpoints, and the parts of OAuth that it supports."""

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
    """Fetch a server's metadata; *metadata_url* is the address in its challenge.

    A server without metadata is its own issuer, as in MCP 2025-03-26, unless the client is
    registered with *issuer*.
    """
    failures = []
    parts = urlsplit(server)
    site = f"{parts.scheme}://{parts.netloc}"
    places = [site + path for path in metadata_paths(server)[:2]]
    for url in dict.fromkeys([metadata_url, *places] if metadata_url else places):
        try:
            response = await send("GET", url, zone=zone)
        except LoginError as exc:
            failures.append(str(exc))
            continue
        if response.status == 200 and response.document:
            document = response.document
            resource = document.get("resource")
            if not isinstance(resource, str) or not _covers(resource, server):
                raise LoginError(
                    f"{mask_url(url)} describes {resource!r}, not {mask_url(server)}, "
                    "so nothing is sent to its issuer"
                )
            issuers = _strings(document.get("authorization_servers"))
            if not issuers:
                raise LoginError(f"{mask_url(url)} names no authorization server")
            return ResourceMetadata(resource, issuers, _strings(document.get("scopes_supported")))
        failures.append(f"{mask_url(url)} answered with HTTP status {response.status}")
    if all("HTTP status 4" in each for each in failures):
        return ResourceMetadata(server, (issuer or site,), is_guess=not issuer)
    raise LoginError(f"cannot find out where to log in to {server}: {'; '.join(failures)}")


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
    """Fetch an issuer's metadata; raises LoginError if it is unusable or not that issuer's."""
    if not is_secure(issuer):
        raise LoginError(f"the issuer {issuer!r} should be an https URL")
    failures = []
    for url in metadata_urls(issuer):
        try:
            response = await send("GET", url, zone=zone)
        except LoginError as exc:
            failures.append(str(exc))
            continue
        document = response.document
        if response.status != 200 or not document:
            failures.append(f"{mask_url(url)} answered with HTTP status {response.status}")
            continue
        named = document.get("issuer")
        if named != issuer:
            failures.append(f"{mask_url(url)} is the metadata of {named!r}, not {issuer!r}")
            continue
        # Some issuers write null for members that they do not have.
        given = {name: value for name, value in document.items() if value is not None}
        try:
            found = msgspec.convert(given, IssuerMetadata)
        except msgspec.ValidationError as exc:
            raise LoginError(f"{mask_url(url)} cannot be used: {exc}") from None
        for name in ("authorization_endpoint", "token_endpoint", "registration_endpoint"):
            page = getattr(found, name)
            if page and not is_secure(page):
                raise LoginError(f"{mask_url(url)}: {name} {page!r} should be an https URL")
        return found
    raise LoginError(f"the issuer {issuer} has no metadata: {'; '.join(failures)}")
