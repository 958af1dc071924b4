"""The issuer's and this server's URLs: https, or http on this machine."""

from __future__ import annotations

import re
from urllib.parse import urlsplit

_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")


def is_loopback_url(url: str) -> bool:
    """Return whether a URL's host is this machine."""
    return _LOOPBACK.fullmatch(urlsplit(url).hostname or "") is not None


def is_secure(url: str) -> bool:
    """Return whether nobody in between can change a URL's response."""
    try:
        parts = urlsplit(url)
    except ValueError:
        return False
    if not parts.hostname or parts.username is not None:
        return False
    return parts.scheme == "https" or (parts.scheme == "http" and is_loopback_url(url))


def checked_url(name: str, url: object, example: str) -> str:
    """Return the URL; raises ValueError if it is not a URL, has a fragment, or is not https."""
    if not isinstance(url, str) or not is_secure(url):
        raise ValueError(
            f"{name}={url!r} should be an https URL, such as {example!r}; "
            "http is for this machine alone"
        )
    if not url.isascii() or not url.isprintable() or set(url) & set(' "\\<>#?'):
        raise ValueError(f"{name}={url!r} should have no query, fragment or spaces")
    return url


def metadata_paths(url: str) -> tuple[str, ...]:
    """Return the metadata's paths for the resource at *url*; the first is RFC 9728's."""
    root = "/.well-known/oauth-protected-resource"
    path = urlsplit(url).path.rstrip("/")
    last = path.rpartition("/")[2]
    return tuple(dict.fromkeys((root + path, root, f"{root}/{last}" if last else root)))


def metadata_url(url: str) -> str:
    """Return the address of that metadata."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{metadata_paths(url)[0]}"


def metadata_urls(issuer: str) -> list[str]:
    """Return the places of an issuer's metadata: RFC 8414's, then OpenID Connect Discovery's."""
    parts = urlsplit(issuer)
    base, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    places = [
        f"{base}/.well-known/oauth-authorization-server{path}",
        f"{base}/.well-known/openid-configuration{path}",
        f"{base}{path}/.well-known/openid-configuration",
    ]
    return list(dict.fromkeys(places))
