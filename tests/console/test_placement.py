"""Where an app shows its console: at which paths, to whom, and below which prefix."""

from __future__ import annotations

import socket
import subprocess
import sys
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import httpx
import pytest
from tests.conftest import Server, serving
from tests.widgets.browser_driver import Browser, chromium

BROWSER = {"Accept": "text/html,application/xhtml+xml,application/xml;q=0.9,*/*;q=0.8"}
APP = """
from answerback import App

app = App("tools", title="Tools to place")

@app.tool(read_only=True)
def docs(text: str = "nothing") -> str:
    '''Say where the documents are.'''
    return f"documents about {text}"
"""
RUN = """
if __name__ == "__main__":
    app.run()
"""
OWN_PAGE = """
from starlette.requests import Request
from starlette.responses import PlainTextResponse, Response

@app.route("/")
async def home(request: Request) -> Response:
    return PlainTextResponse("The author's page")
"""
DIRECT = APP.replace('App("tools"', 'App("tools", contract=DIRECT').replace(
    "import App", "import App\nfrom answerback.contract import DIRECT"
)
WITH_KEYS = """
from answerback import App
from answerback.auth import ApiKeys, ApiKey

app = App("tools", title="Tools to place", auth=ApiKeys({DIGEST: "ci"}))

@app.tool(read_only=True)
def secret() -> str:
    return "the secret"
"""
MOUNTED = """
import sys
import uvicorn
from fastapi import FastAPI

main = FastAPI()
main.mount(sys.argv[1], app.asgi(console=True))
uvicorn.run(main, fd=int(sys.argv[2]), log_level="warning")
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@contextmanager
def served(folder: Path, source: str, *flags: str) -> Iterator[Server]:
    path = folder / "tools.py"
    path.write_text(source + RUN)
    with serving(path, *flags) as server:
        yield server


@contextmanager
def mounted(folder: Path, prefix: str) -> Iterator[str]:
    """An application of FastAPI with the app below *prefix*; yields its URL."""
    path = folder / "mounted.py"
    path.write_text(APP + MOUNTED)
    with socket.create_server(("127.0.0.1", 0)) as listener:
        port = listener.getsockname()[1]
        command = [sys.executable, str(path), prefix, str(listener.fileno())]
        process = subprocess.Popen(command, pass_fds=[listener.fileno()])
    try:
        # Clients that connect before the program is ready wait in the socket's queue.
        yield f"http://127.0.0.1:{port}"
    finally:
        process.terminate()
        process.wait(timeout=60)


def tools_shown(browser: Browser, url: str) -> str:
    """Open the page, and return its heading and its tools."""
    browser.open("about:blank")
    browser.open(url)
    shown = browser.until("document.querySelector('nav li') && document.body.innerText")
    assert browser.errors() == []
    return str(shown)


@pytest.mark.parametrize("path", ["/", "/docs", "/docs/"])
def test_a_browser_gets_the_page(tmp_path: Path, browser: Browser, path: str) -> None:
    with served(tmp_path, APP) as server:
        shown = tools_shown(browser, server.url + path)

    assert "Tools to place" in shown
    assert "Say where the documents are." in shown


@pytest.mark.parametrize(
    "accept",
    ["", "*/*", "application/json", "text/html, application/json", "text/html;q=0.1, */*;q=0.8"],
)
def test_programs_get_json_as_without_a_console(tmp_path: Path, accept: str) -> None:
    headers = {"Accept": accept} if accept else {}
    paths = ("/", "/docs", "/functions", "/openapi.json")

    found = []
    for flag in ("--console", "--no-console"):
        with served(tmp_path, APP, flag) as server:
            answers = [httpx.get(server.url + path, headers=headers) for path in paths]
        found.append([(each.status_code, each.text) for each in answers])

    assert found[0] == found[1]
    assert [status for status, _ in found[0]] == [404, 404, 200, 200]


def test_an_author_s_own_page_wins(tmp_path: Path) -> None:
    with served(tmp_path, APP + OWN_PAGE) as server:
        home = httpx.get(server.url, headers=BROWSER)
        docs = httpx.get(f"{server.url}/docs", headers=BROWSER)

    assert "The author's page" in home.text
    assert "answerback" in docs.text.lower()
    assert docs.headers["content-type"].startswith("text/html")


@pytest.mark.parametrize(("source", "path"), [(APP, "/functions/docs"), (DIRECT, "/docs")])
def test_a_tool_named_docs_stays_callable(tmp_path: Path, source: str, path: str) -> None:
    with served(tmp_path, source) as server:
        answer = httpx.post(server.url + path, json={"text": "Oslo"}, headers=BROWSER)

    assert answer.status_code == 200
    assert "documents about Oslo" in answer.text


@pytest.mark.parametrize("prefix", ["/tools", "/api/docs", "/apidocs"])
def test_the_page_works_mounted_in_fastapi(tmp_path: Path, browser: Browser, prefix: str) -> None:
    with mounted(tmp_path, prefix) as url:
        pages = [tools_shown(browser, f"{url}{prefix}{end}") for end in ("/", "/docs")]
        own_docs = httpx.get(f"{url}/docs", headers=BROWSER, timeout=60).text

    assert all("Say where the documents are." in each for each in pages)
    assert "swagger" in own_docs.lower(), "FastAPI keeps its own page"


def test_without_console_true_a_mounted_app_shows_no_page(tmp_path: Path) -> None:
    with served(tmp_path, APP, "--no-console") as server:
        answer = httpx.get(server.url, headers=BROWSER)

    assert answer.status_code == 404


@pytest.mark.parametrize("path", ["/tools", "/tools/", "/tools/docs", "/"])
def test_the_page_works_behind_a_root_path(tmp_path: Path, browser: Browser, path: str) -> None:
    with served(tmp_path, APP, "--root-path", "/tools") as server:
        shown = tools_shown(browser, server.url + path)

    assert "Say where the documents are." in shown


@pytest.mark.parametrize(
    "flags",
    [("--host", "0.0.0.0"), ("--allow-host", "tools.example.com")],
    ids=lambda flags: flags[0],
)
def test_clients_on_other_machines_get_the_page_only_with_console(
    tmp_path: Path, flags: tuple[str, str]
) -> None:
    with served(tmp_path, APP, *flags) as server:
        default = httpx.get(f"http://127.0.0.1:{server.port}", headers=BROWSER)
    with served(tmp_path, APP, *flags, "--console") as server:
        asked = httpx.get(f"http://127.0.0.1:{server.port}", headers=BROWSER)

    assert default.status_code == 404
    assert asked.headers["content-type"].startswith("text/html")


PROXIED = ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via", "X-Forwarded-Host"]


@pytest.mark.parametrize("header", PROXIED)
def test_clients_behind_a_proxy_get_the_page_only_with_console(tmp_path: Path, header: str) -> None:
    """A proxy on this machine often sends the upstream's address as the host."""
    passed_on = {**BROWSER, header: "for=203.0.113.9"}

    with served(tmp_path, APP) as server:
        assert "html" not in httpx.get(f"{server.url}/", headers=passed_on).headers["content-type"]
        about = httpx.get(f"{server.url}/console/about.json", headers=passed_on)
        assert about.status_code == 404
    with served(tmp_path, APP, "--console") as server:
        assert "html" in httpx.get(f"{server.url}/", headers=passed_on).headers["content-type"]
        about = httpx.get(f"{server.url}/console/about.json", headers=passed_on)
        assert about.json()["start"] is None
        assert httpx.get(f"{server.url}/console/about.json").json()["start"] is not None


def test_a_foreign_host_does_not_get_the_page(tmp_path: Path) -> None:
    with served(tmp_path, APP) as server:
        for path in ("/", "/docs", "/console/about.json"):
            answer = httpx.get(server.url + path, headers={**BROWSER, "Host": "evil.example"})
            assert answer.status_code == 421


def test_with_auth_the_page_is_public_and_the_tools_are_not(tmp_path: Path) -> None:
    from answerback.auth import ApiKeys

    new = ApiKeys.new()
    source = WITH_KEYS.replace("DIGEST", repr(new.digest))
    with served(tmp_path, source) as server:
        page = httpx.get(server.url, headers=BROWSER)
        about = httpx.get(f"{server.url}/console/about.json")
        refused = httpx.post(f"{server.url}/functions/secret", json={})
        views = httpx.post(f"{server.url}/console/views", json={})
        headers = {"Authorization": f"Bearer {new.key}"}
        called = httpx.post(f"{server.url}/functions/secret", json={}, headers=headers)

    assert page.status_code == 200
    assert about.json()["auth"] is True
    assert "secret" not in page.text + about.text
    assert (refused.status_code, views.status_code) == (401, 401)
    assert "the secret" in called.text
