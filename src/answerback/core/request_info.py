"""RequestInfo: what a tool can find out about the request that called it.

Each wire has a subclass that reads each member lazily, so calls that do not use it pay nothing.
A member is None on a wire that does not have it.
"""

from __future__ import annotations

import re
from collections.abc import Iterable, Iterator, Mapping
from functools import cached_property
from typing import Any, Literal, TypeAlias, get_args

import msgspec

from .json_value import Json


class Location(msgspec.Struct, frozen=True):
    """The user's rough location."""

    city: str | None = None
    """The city's name."""
    region: str | None = None
    """The region's name or code."""
    country: str | None = None
    """The country's name or code."""
    timezone: str | None = None
    """The time zone, such as "Europe/Oslo"."""
    latitude: float | None = None
    """Degrees, from -90 to 90."""
    longitude: float | None = None
    """Degrees, from -180 to 180."""


class ClientHints(msgspec.Struct, frozen=True):
    """A request's hints. A member is None if the client did not send it or its value is invalid."""

    locale: str | None = None
    """The user's language, such as "en-GB"."""
    user_agent: str | None = None
    """The user's client, as a user agent string."""
    location: Location | None = None
    """Roughly where the user is."""
    subject: str | None = None
    """An anonymous id for the user, for rate limits."""
    session: str | None = None
    """An id for the conversation, to link its calls."""
    organization: str | None = None
    """An anonymous id for the user's organization."""
    widget_session: str | None = None
    """An id for the widget on the page, to link its calls."""


def _location(found: Json) -> Location | None:
    if not isinstance(found, Mapping):
        return None
    location = Location(
        city=_text(found.get("city")),
        region=_text(found.get("region")),
        country=_text(found.get("country")),
        timezone=_text(found.get("timezone")),
        latitude=_degrees(found.get("latitude"), 90),
        longitude=_degrees(found.get("longitude"), 180),
    )
    return None if location == Location() else location


def _text(value: Json) -> str | None:
    return value if isinstance(value, str) and value else None


def _degrees(value: Json, limit: int) -> float | None:
    """Return an angle within *limit*; some clients send text instead of a number."""
    try:
        degrees = float(value) if isinstance(value, str | int | float) else limit + 1
    except (ValueError, OverflowError):
        return None
    is_angle = not isinstance(value, bool) and -limit <= degrees <= limit
    return degrees if is_angle else None


class ClientInfo(msgspec.Struct, frozen=True):
    """The client program, as it identifies itself; not verified."""

    name: str
    version: str = ""


class RequestHeaders(Mapping[str, str]):
    """An HTTP request's headers; their names are case-insensitive.

    The values of a repeated header are joined with a comma. `repr` shows only the names, because
    a value may be a secret.
    """

    __slots__ = ("_values",)

    def __init__(self, pairs: Iterable[tuple[str, str]]) -> None:
        values: dict[str, str] = {}
        for name, value in pairs:
            name = name.lower()
            values[name] = f"{values[name]}, {value}" if name in values else value
        self._values = values

    def __getitem__(self, name: str) -> str:
        return self._values[name.lower()]

    def __contains__(self, name: object) -> bool:
        return isinstance(name, str) and name.lower() in self._values

    def __iter__(self) -> Iterator[str]:
        return iter(self._values)

    def __len__(self) -> int:
        return len(self._values)

    def __repr__(self) -> str:
        return f"<RequestHeaders {', '.join(self._values)}>"


class RequestInfo:
    """A call's request."""

    def __init__(self, wire: str, source: object = None) -> None:
        self.wire = wire
        """"mcp", "rest", "cgi", "call" or "memory"."""
        self._source = source

    @cached_property
    def headers(self) -> RequestHeaders | None:
        """The headers, if the wire uses HTTP."""
        return None

    @property
    def address(self) -> str | None:
        """The client's address; behind a trusted proxy, the address that the proxy saw."""
        return None

    @property
    def id(self) -> int | str | None:
        """The MCP request's id."""
        return None

    @property
    def protocol(self) -> str | None:
        """The MCP version, such as "2025-11-25"."""
        return None

    @cached_property
    def client(self) -> ClientInfo | None:
        """The MCP client's name and version."""
        return None

    @cached_property
    def session(self) -> str | None:
        """The same for every request in an MCP session, but not the session id itself."""
        return None

    @cached_property
    def meta(self) -> Mapping[str, Any] | None:
        """The MCP request's `_meta`."""
        return None

    @cached_property
    def hints(self) -> ClientHints:
        """The locale, user agent and location that ChatGPT sends in `_meta`; not verified."""
        meta = self.meta
        if not meta:
            return ClientHints()
        return ClientHints(
            # Older clients send the locale under the second key.
            locale=_text(meta.get("openai/locale")) or _text(meta.get("webplus/i18n")),
            user_agent=_text(meta.get("openai/userAgent")),
            location=_location(meta.get("openai/userLocation")),
            subject=_text(meta.get("openai/subject")),
            session=_text(meta.get("openai/session")),
            organization=_text(meta.get("openai/organization")),
            widget_session=_text(meta.get("openai/widgetSessionId")),
        )

    @property
    def user(self) -> Any:
        """The user authenticated by the server or its middleware."""
        return None


HostName: TypeAlias = Literal["claude", "chatgpt", "other"]
HOST_NAMES: tuple[HostName, ...] = get_args(HostName)
_WORDS: tuple[tuple[HostName, tuple[str, ...]], ...] = (
    ("claude", ("claude",)),
    ("chatgpt", ("chatgpt", "openai-mcp")),
)
"""Words that identify a host in a `User-Agent` or a client's name."""
_ENDPOINT = re.compile(
    r"(https://[A-Za-z0-9.-]+|http://(localhost|127\.0\.0\.1|\[::1\]))(:[0-9]{1,5})?/[^\s#]*"
)
_CLAUDE_SUFFIX = ".claudemcpcontent.com"
LOGS_IN_BY_RESULT: tuple[HostName, ...] = ("chatgpt",)
"""The hosts that use `mcp/www_authenticate` in a result to log in."""


def detect_host(user_agent: str | None, client: str | None) -> HostName:
    """Return the host named in the `User-Agent`, or else the one the client's name suggests."""
    for text in (user_agent, client):
        folded = (text or "").lower()
        for host, words in _WORDS:
            if any(word in folded for word in words):
                return host
    return "other"


def is_endpoint(url: str) -> bool:
    """Return whether *url* is a full endpoint URL: https or local http, with a path."""
    return bool(_ENDPOINT.fullmatch(url))


def page_domain(url: str, request: RequestInfo | None, host: HostName | None) -> str | None:
    """Return the page's domain in Claude; None in other hosts, or if the endpoint is unknown.

    *url* is the MCP endpoint's exact URL.
    """
    if not url:
        return None
    if host is None:
        headers = None if request is None else request.headers
        if request is None or headers is None:
            return None  # A stdio server has no URL that Claude could know.
        client = request.client
        host = detect_host(headers.get("user-agent"), client.name if client else None)
    if host != "claude":
        return None
    from hashlib import sha256

    return sha256(url.encode()).hexdigest()[:32] + _CLAUDE_SUFFIX
