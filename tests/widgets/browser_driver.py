"""Chromium for tests, and the loopback servers whose pages it opens."""

from __future__ import annotations

import json
import os
import subprocess
import threading
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import Any, NamedTuple
from urllib.parse import parse_qs, urlsplit

from tests.protocol.official_tools import MODULES, ROOT, node_command

PAGES = Path(__file__).parent / "browser"
BRIDGE = ROOT / "src" / "answerback" / "protocol" / "widgets" / "bridge.js"


class Browser:
    """One page of Chromium. *frame* is the name of a frame; without it, the page itself."""

    def __init__(self, process: subprocess.Popen[str]) -> None:
        self._process = process

    def _do(self, command: str, **parameters: Any) -> Any:
        assert self._process.stdin is not None
        assert self._process.stdout is not None
        self._process.stdin.write(json.dumps({"do": command, **parameters}) + "\n")
        self._process.stdin.flush()
        line = self._process.stdout.readline()
        assert line, "the driver of the browser ended"
        reply = json.loads(line)
        assert "error" not in reply, reply["error"]
        return reply["value"]

    def before(self, script: str) -> None:
        """Run *script* in every page that is opened from now on, before the page's own scripts."""
        self._do("before", script=script)

    def open(self, url: str) -> None:
        """Open *url*; the page is not loaded again if it is open."""
        self._do("open", url=url)

    def run(self, expression: str, frame: str = "") -> Any:
        return self._do("evaluate", expression=expression, **{"in": frame})

    def until(self, expression: str, frame: str = "") -> Any:
        """The first true value of *expression*."""
        return self._do("until", expression=expression, **{"in": frame})

    def click(self, selector: str, frame: str = "") -> None:
        self._do("click", selector=selector, **{"in": frame})

    def fill(self, selector: str, text: str, frame: str = "") -> None:
        """Write *text* into a field, in place of what it has."""
        self._do("fill", selector=selector, text=text, **{"in": frame})

    def choose(self, selector: str, option: str, frame: str = "") -> None:
        """Choose the option with the text *option*."""
        self._do("choose", selector=selector, option=option, **{"in": frame})

    def press(self, key: str) -> None:
        """Press a key, such as "Enter" or "Control+Enter", wherever the focus is."""
        self._do("press", key=key)

    def viewport(self, width: int, height: int) -> None:
        self._do("viewport", width=width, height=height)

    def scheme(self, colours: str) -> None:
        """Show the page as for a user who prefers "light" or "dark" colours."""
        self._do("scheme", colours=colours)

    def accessible(self, selector: str, frame: str = "") -> str:
        """The roles and names below *selector*, as a screen reader gets them."""
        return str(self._do("accessible", selector=selector, **{"in": frame}))

    def screenshot(self, selector: str, path: Path) -> None:
        """Write a picture of an element; without a selector, of what the window shows."""
        self._do("screenshot", selector=selector, path=str(path))

    def errors(self) -> list[str]:
        """The exceptions that no script of the page caught."""
        return list(self._do("errors"))

    def logged(self) -> list[str]:
        """The errors in the browser's log, such as what the page's policy forbids.

        That a request was answered with an error status is not among them.
        """
        return list(self._do("logged"))

    def requests(self) -> list[str]:
        """The URLs that the page asked for."""
        return list(self._do("requests"))

    def axe(self, *impacts: str) -> list[str]:
        """What axe-core finds in the page, of these impacts: each rule with its elements."""
        return [
            "\n  ".join([f"{each['impact']}: {each['rule']}", *each["elements"]])
            for each in self._do("axe")
            if each["impact"] in impacts
        ]

    def bundle(self, script: Path) -> str:
        return str(self._do("bundle", input=str(script)))


def chromium_folder() -> Path:
    """Where Chromium is unpacked, once for each version."""
    package = json.loads((MODULES / "@sparticuz" / "chromium" / "package.json").read_bytes())
    return ROOT / ".apps" / f"chromium-{package['version']}"


@contextmanager
def chromium(scale: int = 1, fonts: Path | None = None) -> Iterator[Browser]:
    """Start Chromium; with *scale* 2, its pictures have four times as many points.

    *fonts* is a fontconfig file in place of that of Chromium's package, which has one font.
    """
    with subprocess.Popen(
        node_command(PAGES / "driver.mjs"),
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        env={
            **os.environ,
            "CHROMIUM_FOLDER": str(chromium_folder()),
            "BROWSER_SCALE": str(scale),
            **({"FONTCONFIG_FILE": str(fonts)} if fonts else {}),
        },
        text=True,
    ) as process:
        yield Browser(process)


class Response(NamedTuple):
    body: bytes
    content_type: str = "text/html; charset=utf-8"
    headers: dict[str, str] = {}  # noqa: RUF012 - a default that nothing changes
    status: int = 200


Route = Callable[[BaseHTTPRequestHandler], Response]


class Loopback:
    """A server on loopback with its own origin. It remembers which paths were asked for."""

    def __init__(self, routes: dict[str, Route]) -> None:
        self.asked: list[str] = []
        asked = self.asked

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                asked.append(self.path)
                route = routes.get(urlsplit(self.path).path)
                response = Response(b"", status=404) if route is None else route(self)
                self.send_response(response.status)
                self.send_header("content-type", response.content_type)
                self.send_header("content-length", str(len(response.body)))
                for name, value in response.headers.items():
                    self.send_header(name, value)
                self.end_headers()
                self.wfile.write(response.body)

            do_POST = do_DELETE = do_GET  # noqa: N815 - names of http.server

            def log_message(self, *_: object) -> None:
                pass

        self._server = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self.url = f"http://127.0.0.1:{self._server.server_address[1]}"

    def __enter__(self) -> Loopback:
        threading.Thread(target=self._server.serve_forever, args=(0.02,), daemon=True).start()
        return self

    def __exit__(self, *_: object) -> None:
        self._server.shutdown()
        self._server.server_close()


def page(name: str, **texts: str) -> Route:
    """Serves a page of the folder `browser`, with each name in *texts* replaced."""
    html = (PAGES / name).read_text()
    for given, text in texts.items():
        html = html.replace(given, text)
    return lambda _: Response(html.encode())


def policy(csp: dict[str, list[str]]) -> str:
    """The `Content-Security-Policy` that a host makes of a declared `_meta.ui.csp`."""
    resources = " ".join(csp.get("resourceDomains", []))
    connect = " ".join(csp.get("connectDomains", [])) or "'none'"
    frames = " ".join(csp.get("frameDomains", [])) or "'none'"
    directives = [
        "default-src 'none'",
        f"script-src 'unsafe-inline' {resources}",
        f"style-src 'unsafe-inline' {resources}",
        f"img-src data: {resources}",
        f"font-src data: {resources}",
        f"connect-src {connect}",
        f"frame-src {frames}",
        "base-uri 'none'",
        "object-src 'none'",
    ]
    return "; ".join(directives)


def sandbox() -> Loopback:
    """The server of the frames for widgets; each page enforces the policy that its query asks."""
    html = (PAGES / "sandbox.html").read_bytes()

    def serve(request: BaseHTTPRequestHandler) -> Response:
        query = parse_qs(urlsplit(request.path).query)
        declared = json.loads(query["csp"][0])
        return Response(html, headers={"content-security-policy": policy(declared)})

    return Loopback({"/sandbox.html": serve})
