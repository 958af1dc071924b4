"""Bearer tokens in requests (RFC 6750), issuer and resource URLs, and a cache of seen tokens."""

from __future__ import annotations

import re
import time
from collections.abc import Collection
from hashlib import sha256
from urllib.parse import parse_qsl, urlsplit

from ..core.authentication import Challenge, Credentials, Unauthorized, User

MAX_TOKEN = 16 * 1024
"""The maximum size of a token, in bytes; longer tokens are refused without being parsed."""
# The characters allowed in a `token68` (RFC 9110).
_CREDENTIALS = re.compile(rb"([A-Za-z-]+) +([A-Za-z0-9._~+/-]+=*) *")
_IN_QUERY = ("access_token", "api_key")
_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")
MAX_TOKENS = 10_000
"""The maximum number of cached tokens; beyond that, the oldest is dropped."""


def header_values(credentials: Credentials, name: bytes) -> list[bytes]:
    """Return a header's values, one for each occurrence."""
    return [value for key, value in credentials.headers if key == name]


def bearer_token(credentials: Credentials, schemes: Collection[bytes]) -> bytes | None:
    """Return the token in the `Authorization` header; None if there is no such header.

    Raises Unauthorized if there are two headers, if there is no token with one of the
    lower-case *schemes*, or if there is a token in the query, which would end up in logs.
    """
    if credentials.query:
        try:
            pairs = parse_qsl(credentials.query.decode("latin-1"), True)
        except ValueError:
            pairs = []
        if any(name.lower() in _IN_QUERY for name, _ in pairs):
            raise invalid_request("a token in the query is refused; send it in the header")
    values = header_values(credentials, b"authorization")
    if not values:
        return None
    if len(values) > 1:
        raise invalid_request("there are two Authorization headers")
    value = values[0]
    if len(value) > MAX_TOKEN:
        raise invalid_token(f"the token is longer than {MAX_TOKEN} bytes")
    found = _CREDENTIALS.fullmatch(value)
    if found is None or found[1].lower() not in schemes:
        raise invalid_token("the Authorization header should be: Bearer TOKEN")
    return found[2]


def invalid_token(reason: str) -> Unauthorized:
    """Return the error for a bad token; *reason* must not contain any part of it."""
    return Unauthorized(Challenge(error="invalid_token", description=reason))


def invalid_request(reason: str) -> Unauthorized:
    return Unauthorized(Challenge(status=400, error="invalid_request", description=reason))


def is_loopback_url(url: str) -> bool:
    """Return whether a URL's host is this machine."""
    return _LOOPBACK.fullmatch(urlsplit(url).hostname or "") is not None


def is_secure(url: str) -> bool:
    """Return whether a URL's response is safe from tampering in transit."""
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
            "http is allowed only for this machine"
        )
    if not url.isascii() or not url.isprintable() or set(url) & set(' "\\<>#?'):
        raise ValueError(f"{name}={url!r} should have no query, fragment or spaces")
    return url


def metadata_paths(url: str) -> tuple[str, ...]:
    """Return the metadata paths for the resource at *url*; the first is RFC 9728's."""
    root = "/.well-known/oauth-protected-resource"
    path = urlsplit(url).path.rstrip("/")
    last = path.rpartition("/")[2]
    return tuple(dict.fromkeys((root + path, root, f"{root}/{last}" if last else root)))


def metadata_url(url: str) -> str:
    """Return the URL of the metadata for the resource at *url* (RFC 9728)."""
    parts = urlsplit(url)
    return f"{parts.scheme}://{parts.netloc}{metadata_paths(url)[0]}"


def metadata_urls(issuer: str) -> list[str]:
    """Return the URLs of an issuer's metadata: RFC 8414's, then OpenID Connect Discovery's."""
    parts = urlsplit(issuer)
    base, path = f"{parts.scheme}://{parts.netloc}", parts.path.rstrip("/")
    places = [
        f"{base}/.well-known/oauth-authorization-server{path}",
        f"{base}/.well-known/openid-configuration{path}",
        f"{base}{path}/.well-known/openid-configuration",
    ]
    return list(dict.fromkeys(places))


class SeenTokens:
    """A cache of the users of valid tokens, each kept for a limited time.

    Tokens are looked up by SHA-256 digest, so comparisons reveal nothing about other tokens, and
    the tokens themselves are not kept in memory.
    """

    def __init__(self) -> None:
        self._users: dict[bytes, tuple[float, User]] = {}

    def find(self, digest: bytes) -> User | None:
        """Return a token's user, unless the token has expired."""
        found = self._users.get(digest)
        if found is None:
            return None
        if time.time() < found[0]:
            return found[1]
        del self._users[digest]
        return None

    def keep(self, digest: bytes, user: User, until: float) -> None:
        """Keep a token's user until *until*, or until the token expires if that is earlier."""
        if user.expires is not None:
            until = min(until, user.expires)
        if len(self._users) >= MAX_TOKENS:
            del self._users[next(iter(self._users))]
        self._users[digest] = (until, user)

    def clear(self) -> None:
        self._users.clear()


def digest_of(token: bytes) -> bytes:
    return sha256(token).digest()
