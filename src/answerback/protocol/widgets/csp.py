"""CSP: the origins that a widget may use; a host blocks all others."""

from __future__ import annotations

import re
from collections.abc import Collection

import msgspec

_HOST = r"[a-z0-9]([a-z0-9-]*[a-z0-9])?(\.[a-z0-9]([a-z0-9-]*[a-z0-9])?)*"
_PORT = r"(?::(?P<port>[0-9]{1,5}))?"
_ORIGIN = re.compile(rf"https://(\*\.)?{_HOST}{_PORT}")
_SOCKET = re.compile(rf"wss://(\*\.)?{_HOST}{_PORT}")
_LOCAL = re.compile(rf"(http|ws)://(localhost|127\.0\.0\.1|\[::1\]){_PORT}")
_WITHIN = re.compile(r"(?:[a-z]+:)?(?://)?([^/?#\s@]+)(?:[/?#].*|\s*)", re.IGNORECASE | re.DOTALL)


class CSP(msgspec.Struct, frozen=True, kw_only=True):
    """The origins that a widget may use, such as `CSP(connect=["https://api.example.com"])`."""

    connect: Collection[str] = ()
    """For `fetch`, `XMLHttpRequest` and web sockets."""
    resources: Collection[str] = ()
    """For images, scripts, style sheets, fonts and media."""
    frames: Collection[str] = ()
    """For frames within the page."""
    base_uris: Collection[str] = ()
    """For the page's `<base>`."""
    redirects: Collection[str] = ()
    """For links that ChatGPT opens without asking; other hosts ignore them."""

    def __post_init__(self) -> None:
        for name, origins in msgspec.structs.asdict(self).items():
            if isinstance(origins, str) or not isinstance(origins, Collection):
                raise TypeError(f"{name}={origins!r} should be a list of origins, such as {_LIST}")
            for origin in origins:
                check_origin(origin, f"{name} of CSP", sockets=name == "connect")
            # Sorted sets, so that a server's lists are always the same.
            is_set = isinstance(origins, set | frozenset)
            msgspec.structs.force_setattr(self, name, tuple(sorted(origins) if is_set else origins))


_LIST = "['https://api.example.com']"


def check_origin(
    origin: object, what: str, *, sockets: bool = False, wildcards: bool = True
) -> None:
    """Raise TypeError or ValueError if a value is not an origin; http is only for this machine."""
    if not isinstance(origin, str):
        raise TypeError(f"{what} should be an origin such as 'https://example.com', not {origin!r}")
    is_socket = origin.startswith(("wss:", "ws:"))
    if _is_origin(origin) and (sockets or not is_socket) and (wildcards or "*" not in origin):
        return
    raise ValueError(f"{what} has {origin!r}, which is not an origin; {_hint(origin, sockets)}")


def _is_origin(text: str) -> bool:
    found = _ORIGIN.fullmatch(text) or _SOCKET.fullmatch(text) or _LOCAL.fullmatch(text)
    return found is not None and 0 < int(found["port"] or 443) < 65536


def _hint(origin: str, sockets: bool) -> str:
    """Return how to write the origin probably meant."""
    scheme = "wss" if sockets and origin.startswith(("ws:", "wss:")) else "https"
    within = _WITHIN.fullmatch(origin.lower())
    meant = f"{scheme}://{within[1]}" if within else ""
    if _is_origin(meant):
        return f"write {meant!r}"
    return "write 'https://example.com' or 'https://*.example.com'"


def ui_csp(csp: CSP) -> dict[str, list[str]]:
    """Return the `csp` of MCP Apps; the first two are always present, even if empty."""
    optional = {"frameDomains": csp.frames, "baseUriDomains": csp.base_uris}
    return _lists({"connectDomains": csp.connect, "resourceDomains": csp.resources}, optional)


def openai_csp(csp: CSP) -> dict[str, list[str]]:
    """Return ChatGPT's `openai/widgetCSP`."""
    optional = {"frame_domains": csp.frames, "redirect_domains": csp.redirects}
    return _lists({"connect_domains": csp.connect, "resource_domains": csp.resources}, optional)


def _lists(
    always: dict[str, Collection[str]], optional: dict[str, Collection[str]]
) -> dict[str, list[str]]:
    given = {name: origins for name, origins in optional.items() if origins}
    return {name: list(origins) for name, origins in (always | given).items()}
