"""A page with two hosts for the widget of a served app: MCP Apps, and one like ChatGPT."""

from __future__ import annotations

import json
import os
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler
from typing import Any, NamedTuple
from unittest.mock import patch

import httpx
from tests.conftest import ROOT, serving
from tests.widgets.browser_driver import PAGES, Browser, Loopback, Response, Route, page

WIDGETS = ROOT / "tests" / "apps" / "widgets.py"
FORWARDED = ("accept", "content-type", "mcp-protocol-version", "mcp-method", "mcp-name")


class Hosts(NamedTuple):
    """The page, and two origins that widgets may try to reach."""

    browser: Browser
    url: str
    sandbox: str
    declared: Loopback
    undeclared: Loopback

    def show(self, host: str, owner: str = "Ada", **config: Any) -> None:
        """Call the tool and show its widget in *host*, `AppsHost` or `ChatGpt`."""
        self.browser.open(self.url)
        given = {"sandbox": self.sandbox, "tool": "accounts", "args": {"owner": owner}, **config}
        self.browser.run(f"openIn{host}({json.dumps(given)})")


@contextmanager
def two_hosts(browser: Browser, sandbox: str) -> Iterator[Hosts]:
    script = browser.bundle(PAGES / "hosts.js").encode()
    routes: dict[str, Route] = {
        "/hosts.html": page("hosts.html"),
        "/hosts.js": lambda _: Response(script, "text/javascript; charset=utf-8"),
    }
    with (
        _readable() as declared,
        _readable() as undeclared,
        patch.dict(os.environ, {"DECLARED": declared.url}),
        serving(WIDGETS) as server,
        httpx.Client(base_url=server.url) as http,
        Loopback({**routes, "/mcp": forward_to(http)}) as pages,
    ):
        yield Hosts(browser, f"{pages.url}/hosts.html", sandbox, declared, undeclared)


def _readable() -> Loopback:
    """A server whose answers every page may read; only a CSP can keep a page from it."""
    open_to_all = {"access-control-allow-origin": "*"}
    return Loopback({"/": lambda _: Response(b"reached", "text/plain", open_to_all)})


def forward_to(http: httpx.Client) -> Route:
    """Passes MCP requests on: a host is a client of the server, its page is not."""

    def forward(request: BaseHTTPRequestHandler) -> Response:
        headers = {name: request.headers[name] for name in FORWARDED if name in request.headers}
        body = request.rfile.read(int(request.headers.get("content-length", 0)))
        got = http.request(request.command, "/mcp", content=body, headers=headers)
        return Response(got.content, got.headers.get("content-type", ""), {}, got.status_code)

    return forward
