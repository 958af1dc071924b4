"""Which networks a login may reach: a server must not lead it into a nearer one than its own."""

from __future__ import annotations

import asyncio
import ipaddress
from urllib.parse import urlsplit

from ...auth.bearer import is_loopback_url, is_secure
from ...core.secrets import mask_url
from ..faults import LoginError


async def network_zone(url: str) -> int:
    """Return the zone of a URL's host: 0 is this machine, 1 a private network, 2 the internet."""
    host = urlsplit(url).hostname or ""
    if is_loopback_url(url):
        return 0
    try:
        found = await asyncio.get_running_loop().getaddrinfo(host, None)
    except (OSError, UnicodeError):
        # A proxy may know the name; a direct connection will fail anyway.
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
    """Raise LoginError for a page without https, or in a nearer network zone than *zone*."""
    if not is_secure(url):
        raise LoginError(
            f"{mask_url(url)!r} should be an https URL; http is for this machine alone"
        )
    if zone > 0 and await network_zone(url) < zone:
        raise LoginError(
            f"{mask_url(url)!r} leads into a private network, which the server is not part of"
        )
