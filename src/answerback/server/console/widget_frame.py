"""The page in the frame of a widget, with the policy that the widget declares.

A widget's page is read over MCP, as the user, and then sent to its frame as a message. The frame
loads this page first, because a page that is written into a document keeps its response's policy.
The page is the same for every widget, so anyone may read it; it shows only what the console sends.
"""

from __future__ import annotations

from urllib.parse import parse_qs

import msgspec

from ...dialects import HttpReply
from ...errors import InvalidInput
from ...protocol.widgets.page import CSP

FRAME = "/console/frame"
_HTML = "text/html; charset=utf-8"
_PAGE = b"""<!doctype html>
<meta charset="utf-8">
<title>Widget</title>
<script>
  addEventListener("message", function show({ source, origin, data }) {
    // The origin of this sandboxed page is "null"; that of its address is the console's.
    if (source !== parent || origin !== location.origin) return;
    if (data?.method !== "ui/notifications/sandbox-resource-ready") return;
    removeEventListener("message", show);
    document.open();
    document.write(data.params.html);
    document.close();
  });
  const ready = { jsonrpc: "2.0", method: "ui/notifications/sandbox-proxy-ready", params: {} };
  // The console counts the loads: this page's own must not be lost when the widget is written.
  addEventListener("load", () => parent.postMessage(ready, location.origin), { once: true });
</script>
"""


class DeclaredCsp(msgspec.Struct, rename="camel"):
    """The `csp` of MCP Apps."""

    connect_domains: list[str] = []
    resource_domains: list[str] = []
    frame_domains: list[str] = []
    base_uri_domains: list[str] = []


def widget_frame(query: bytes) -> HttpReply:
    """Return the page; `csp` in *query* is what the widget declares. Raises InvalidInput."""
    given = parse_qs(query.decode("latin-1")).get("csp", ["{}"])[0]
    try:
        declared = msgspec.json.decode(given, type=DeclaredCsp)
        csp = CSP(
            connect=declared.connect_domains,
            resources=declared.resource_domains,
            frames=declared.frame_domains,
            base_uris=declared.base_uri_domains,
        )
    except ValueError as exc:
        raise InvalidInput(f"The console cannot enforce the widget's csp: {exc}") from exc
    headers = (
        ("Content-Security-Policy", _policy(csp)),
        ("X-Content-Type-Options", "nosniff"),
        ("Referrer-Policy", "no-referrer"),
        ("Cache-Control", "no-cache"),
    )
    return HttpReply(200, _PAGE, _HTML, headers)


def _policy(csp: CSP) -> str:
    """Return the policy that hosts of MCP Apps enforce; it does not allow this server's origin."""
    return "; ".join(
        (
            "default-src 'none'",
            _directive("script-src", "'unsafe-inline'", *csp.resources),
            _directive("style-src", "'unsafe-inline'", *csp.resources),
            _directive("img-src", "data:", *csp.resources),
            _directive("font-src", "data:", *csp.resources),
            _directive("media-src", "data:", *csp.resources),
            _directive("connect-src", *csp.connect),
            _directive("frame-src", *csp.frames),
            _directive("base-uri", *csp.base_uris),
            "form-action 'none'",
            "frame-ancestors 'self'",
            "sandbox allow-scripts",
        )
    )


def _directive(name: str, *sources: str) -> str:
    return " ".join((name, *(sources or ("'none'",))))
