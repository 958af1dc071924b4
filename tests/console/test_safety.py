"""The console does only what its user may do: attacks by web pages and by hostile servers."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Iterator
from pathlib import Path

import httpx
import pytest
from tests.widgets.browser_driver import Browser, Loopback, Response, chromium

from .opened import INITIALIZE, Opened, opened

HOSTILE = """
import json, pathlib, sys

pathlib.Path(sys.argv[1]).touch()
SCRIPT = '<img src=x onerror="window.pwned = 1"><script>window.pwned = 1</script>'
TOOLS = [
    {"name": name, "title": SCRIPT, "description": SCRIPT + "\\n\\u202edesrever",
     "inputSchema": {"type": "object", "title": SCRIPT, "required": [SCRIPT],
                     "properties": {SCRIPT: {"type": "string", "description": SCRIPT,
                                             "default": SCRIPT, "enum": [SCRIPT]},
                                    "__proto__": {"type": "string"},
                                    "constructor": {"type": "object"}}}}
    for name in (SCRIPT, "__proto__", "javascript:window.pwned = 1", "", "a" * 5000)
]
ANSWERS = {
    "initialize": {"protocolVersion": "2025-11-25", "capabilities": {"tools": {}},
                   "instructions": SCRIPT,
                   "serverInfo": {"name": SCRIPT, "title": SCRIPT, "version": SCRIPT}},
    "tools/list": {"tools": TOOLS},
    "tools/call": {"isError": True, "content": [
        {"type": "text", "text": SCRIPT},
        {"type": "image", "data": "x", "mimeType": 'text/html"><script>window.pwned=1</script>'},
        {"type": "resource_link", "uri": "javascript:window.pwned = 1", "name": SCRIPT}],
        "structuredContent": {SCRIPT: SCRIPT}},
}
for line in sys.stdin:
    message = json.loads(line)
    if "id" not in message:
        continue
    reply = {"jsonrpc": "2.0", "id": message["id"]}
    if message.get("method") in ANSWERS:
        reply["result"] = ANSWERS[message["method"]]
    else:
        reply["error"] = {"code": -32601, "message": SCRIPT}
    print(json.dumps(reply), flush=True)
"""
"""A server whose every text is an attack; it makes a file as soon as it is started."""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture
def started(tmp_path: Path) -> Path:
    """The file that exists once the server of the console was started."""
    return tmp_path / "started"


@pytest.fixture
def console(tmp_path: Path, started: Path) -> Iterator[Opened]:
    path = tmp_path / "hostile.py"
    path.write_text(HOSTILE)
    with opened(f"{shlex.quote(sys.executable)} {path} {started}") as found:
        yield found


def test_nothing_but_the_page_is_answered_without_the_token(console: Opened, started: Path) -> None:
    message = console.message("initialize", **INITIALIZE)
    paths = ("/console/about.json", "/console/views", "/targets/0/mcp", "/nothing")

    for token in ("", "wrong", console.token[:-1], console.token + "x"):
        headers = {"X-Answerback-Console": token} if token else {}
        for path in paths:
            for method in ("GET", "POST", "DELETE", "OPTIONS"):
                answer = httpx.request(method, console.url + path, json=message, headers=headers)
                assert answer.status_code == 403, (method, path)
                assert "token" in answer.json()["error"]
    page = httpx.get(console.url, headers={"Accept": "text/html"})

    assert page.status_code == 200
    assert console.token not in page.text
    assert not started.exists()


@pytest.mark.parametrize("host", ["evil.example", "evil.example:80", "127.0.0.1.evil.example", ""])
def test_a_host_that_dns_rebinding_gives_this_address_is_refused(
    console: Opened, started: Path, host: str
) -> None:
    headers = {"Host": host, "Accept": "text/html"}

    page = console.http.get("/", headers=headers)
    answer = console.post(console.message("initialize", **INITIALIZE), Host=host)

    assert (page.status_code, answer.status_code) == (421, 421)
    assert not started.exists()


@pytest.mark.parametrize("origin", ["https://evil.example", "http://127.0.0.1:1", "null"])
def test_a_foreign_origin_is_refused_even_with_the_token(
    console: Opened, started: Path, origin: str
) -> None:
    answer = console.post(console.message("initialize", **INITIALIZE), Origin=origin)

    assert answer.status_code == 403
    assert not [name for name in answer.headers if name.startswith("access-control-")]
    assert not started.exists()


def test_a_form_is_refused_even_with_the_token(console: Opened, started: Path) -> None:
    body = json.dumps(console.message("initialize", **INITIALIZE))

    answer = console.http.post(
        "/targets/0/mcp", content=body, headers={"Content-Type": "text/plain"}
    )

    assert answer.status_code == 415
    assert not started.exists()


def test_a_web_page_can_neither_use_the_console_nor_frame_it(
    console: Opened, started: Path, browser: Browser
) -> None:
    attack = f"""<!doctype html><iframe name=framed src="{console.url}/"></iframe><script>
    const body = JSON.stringify({{jsonrpc: "2.0", id: 1, method: "initialize", params: {{}}}});
    const url = "{console.url}/targets/0/mcp";
    const kinds = [
      {{method: "POST", mode: "no-cors", body}},
      {{method: "POST", body, headers: {{"X-Answerback-Console": "guessed"}}}},
      {{method: "GET", mode: "no-cors"}},
    ];
    const tried = kinds.map((kind) => fetch(url, kind).then((answer) => answer.type, String));
    Promise.all(tried).then((found) => (window.found = found));
    </script>"""

    with Loopback({"/": lambda _: Response(attack.encode())}) as page:
        browser.open(page.url + "/")
        found = browser.until("window.found")
        framed = browser.until("document.readyState === 'complete' && window.frames.length") and (
            browser.until("location.href !== 'about:blank' && location.href", "framed")
        )

    assert found[0] == "opaque", "the page learns nothing"
    assert found[1].startswith("TypeError"), "the browser does not even send it"
    assert framed.startswith("chrome-error:"), "frame-ancestors 'none'"
    assert not started.exists()


def test_a_hostile_server_s_texts_are_shown_as_texts(console: Opened, browser: Browser) -> None:
    browser.open(console.page)

    browser.until("document.querySelectorAll('nav li').length >= 5")
    shown = browser.run("document.body.innerText")
    browser.until("document.querySelector('nav li button') && true")
    browser.click("nav li button")
    browser.until("document.querySelector('button.main, button[type=submit]') && true")

    assert "<script>window.pwned = 1</script>" in shown
    assert browser.run("window.pwned === undefined")
    assert browser.run("document.querySelectorAll('img, iframe').length") == 0
    assert browser.run("document.querySelectorAll('script').length") == 1
    assert browser.run("document.querySelectorAll('a[href^=\"javascript:\"]').length") == 0
    assert browser.errors() == []


def test_the_policy_lets_the_page_run_only_its_own_script(console: Opened) -> None:
    page = httpx.get(console.url, headers={"Accept": "text/html"})
    policy = dict(
        each.strip().partition(" ")[::2]
        for each in page.headers["Content-Security-Policy"].split(";")
    )

    assert policy["default-src"] == "'none'"
    assert policy["script-src"].startswith("'sha256-")
    assert policy["style-src"].startswith("'sha256-")
    assert policy["connect-src"] == "'self'"
    assert policy["frame-ancestors"] == policy["base-uri"] == policy["form-action"] == "'none'"
    assert "unsafe" not in str(policy)
    assert page.headers["X-Content-Type-Options"] == "nosniff"
    assert page.headers["Referrer-Policy"] == "no-referrer"
