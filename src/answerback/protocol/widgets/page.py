"""A widget's page: its HTML, completed with the bridge, and the origins that it may use."""

from __future__ import annotations

import os
import re
from collections.abc import Collection

import msgspec

from ...errors import Unavailable
from ...registry.declarations import Change, Registry
from ...tools.context import current_runtime

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


_BRIDGE = os.path.join(os.path.dirname(__file__), "bridge.js")
_DOCTYPE = "<!doctype html>"
_BEGINS = tuple(
    # A tag within a comment is skipped, because the comment matches first.
    re.compile(rf"<!--.*?-->|({tag})", re.IGNORECASE | re.DOTALL)
    for tag in (r"<head(?:\s[^>]*)?>", r"<html(?:\s[^>]*)?>", r"<!doctype[^>]*>")
)
"""The tags that a page's first script can follow, best first."""
_END_OF_SCRIPT = re.compile("</(?=script)", re.IGNORECASE)


class WidgetPage:
    """One widget's page. In development mode its file is reread each time."""

    def __init__(
        self, registry: Registry, uri: str, source: str, file: str | None, *, bridge: bool
    ) -> None:
        self._registry = registry
        self._uri = uri
        self._bridge = bridge
        self._source = source
        self._html = _completed(source, bridge=bridge)
        self.file = file
        """The page's file; None if the author gave the text."""

    def read(self) -> str:
        """Return the HTML for hosts; notify the resource's subscribers if the file has changed."""
        running = current_runtime()
        if self.file is not None and running is not None and running.development:
            try:
                source = read_html(self.file)
            except ValueError as exc:
                raise Unavailable(f"widget: {exc}") from None
            if source != self._source:
                self._source, self._html = source, _completed(source, bridge=self._bridge)
                self._registry.changes.publish(Change("resource", self._uri))
        return self._html


def read_html(file: str) -> str:
    """Return an HTML file's text; raises ValueError if it is unreadable or not HTML."""
    try:
        with open(file, encoding="utf-8-sig") as opened:
            text = opened.read()
    except OSError as exc:
        raise ValueError(f"cannot read {file!r}: {exc.strerror}") from None
    except UnicodeDecodeError:
        raise ValueError(f"{file!r} is not UTF-8; save it as UTF-8") from None
    if "<" not in text:
        raise ValueError(f"{file!r} has no HTML in it")
    return text


def check_html(html: object) -> str:
    """Return the text; raises TypeError or ValueError if it is not HTML."""
    if not isinstance(html, str):
        raise TypeError(f"html should be the text of a page, not {type(html).__name__}")
    if "<" not in html:
        hint = f"write path={html!r} for a file" if html.endswith((".html", ".htm")) else _EXAMPLE
        raise ValueError(f"html has no HTML in it; {hint}")
    try:
        html.encode()
    except UnicodeEncodeError as exc:
        raise ValueError(f"html has a character that UTF-8 does not have, at {exc.start}") from None
    return html


_EXAMPLE = "write the page, such as '<h1>Accounts</h1>'"


def _completed(source: str, *, bridge: bool) -> str:
    """Return the page with a doctype, and the bridge as its first script."""
    if _place(source, _BEGINS[-1]) is None:
        source = f"{_DOCTYPE}\n{source}"
    script = ""
    if bridge:
        with open(_BRIDGE, encoding="utf-8") as opened:
            # The HTML parser would end the script at the first `</script`, even within a string.
            code = _END_OF_SCRIPT.sub(r"<\\/", opened.read())
        # Inline, because every host's CSP allows that.
        script = f"<script>\n{code}</script>\n"
    places = (_place(source, tag) for tag in _BEGINS)
    place = next(place for place in places if place is not None)
    return source[:place] + script + source[place:]


def _place(source: str, tag: re.Pattern[str]) -> int | None:
    """Return the end of the first such tag outside comments."""
    return next((found.end() for found in tag.finditer(source) if found[1]), None)
