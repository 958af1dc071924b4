"""`answerback console TARGET`: any server on the console's page, which carries its messages."""

from __future__ import annotations

import json
import os
import signal
import sys
import threading
from collections.abc import Callable, Iterator
from pathlib import Path
from queue import Queue
from typing import Any

import pytest
from tests.client.conftest import http_server
from tests.client.test_other_servers import OldSseServer
from tests.conftest import serving
from tests.widgets.browser_driver import Browser, Loopback, Response, chromium

from .opened import INITIALIZE, Opened, events, opened, stdio_command

SERVER = """
import asyncio, os, sys
from typing import Annotated
from answerback import App, Context

app = App("tools", title="Tools of a child", version="3.1")

@app.tool
def add(a: int, b: int) -> int:
    '''Add two numbers.'''
    return a + b

@app.tool
def process() -> int:
    return os.getpid()

@app.tool
def header(ctx: Context, name: str) -> str:
    return ctx.request.headers.get(name, "")

@app.tool
async def greet(ctx: Context) -> str:
    ctx.progress(1, 2, "half way")
    form = {"type": "object", "properties": {"name": {"type": "string"}}, "required": ["name"]}
    answer = await ctx.elicit("Your name?", form)
    return f"Hello {answer['name']}"

@app.tool
async def wait(ctx: Context, file: str) -> str:
    ctx.progress(1, 2, "waiting")
    try:
        await asyncio.Event().wait()
    finally:
        open(file, "w").close()
    return ""

@app.tool
def crash() -> str:
    print("the disk is full", file=sys.stderr, flush=True)
    os._exit(7)

if __name__ == "__main__":
    app.run()
"""


@pytest.fixture(scope="module")
def browser() -> Iterator[Browser]:
    with chromium() as found:
        yield found


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("targets") / "tools.py"
    path.write_text(SERVER)
    return path


@pytest.fixture(scope="module")
def console(server: Path) -> Iterator[Opened]:
    with opened(stdio_command(server)) as found:
        yield found


@pytest.fixture(scope="module", params=["command", "url"])
def any_console(request: pytest.FixtureRequest, server: Path) -> Iterator[Opened]:
    if request.param == "command":
        with opened(stdio_command(server)) as found:
            yield found
    else:
        with serving(server) as served, opened(f"{served.url}/mcp") as found:
            yield found


def test_the_page_shows_the_tools_of_a_command(console: Opened, browser: Browser) -> None:
    browser.open(console.page)

    assert browser.until(
        "document.querySelector('nav li') && document.querySelector('h1').innerText"
    )
    assert "Tools of a child" in browser.run("document.querySelector('h1').innerText")
    assert "Add two numbers." in browser.run("document.querySelector('nav').innerText")
    assert browser.run("location.href") == f"{console.url}/", "the token stays out of the address"
    assert browser.errors() == []


def test_a_target_answers_through_its_session(any_console: Opened) -> None:
    session = any_console.initialize()

    answer = any_console.call(session, "add", a=1, b=2).json()

    assert answer["result"]["structuredContent"] == {"result": 3}


def test_each_session_of_a_command_has_a_child_process(console: Opened) -> None:
    first, second = console.initialize(), console.initialize()

    found = {
        console.call(each, "process").json()["result"]["structuredContent"]["result"]
        for each in (first, second, first)
    }

    assert len(found) == 2


def test_progress_and_questions_arrive_before_the_response(any_console: Opened) -> None:
    session = any_console.initialize()
    call = any_console.message(
        "tools/call", 5, name="greet", arguments={}, _meta={"progressToken": 5}
    )

    with any_console.http.stream(
        "POST", "/targets/0/mcp", json=call, headers={"Mcp-Session-Id": session}
    ) as response:
        received = events(response.iter_lines())
        progress, question = next(received), next(received)
        value = {"action": "accept", "content": {"name": "Ada"}}
        reply = {"jsonrpc": "2.0", "id": question["id"], "result": value}
        assert any_console.post(reply, session).status_code == 202
        (answer,) = received

    assert progress["params"]["message"] == "half way"
    assert question["method"] == "elicitation/create"
    assert answer["id"] == 5
    assert answer["result"]["structuredContent"] == {"result": "Hello Ada"}


def test_a_client_that_leaves_cancels_its_stateless_call(
    any_console: Opened, tmp_path: Path
) -> None:
    version = {"MCP-Protocol-Version": "2026-07-28"}
    meta = {
        "io.modelcontextprotocol/protocolVersion": "2026-07-28",
        "io.modelcontextprotocol/clientCapabilities": {},
        "progressToken": 2,
    }
    discover = any_console.message("server/discover", 1, _meta=meta)
    first = any_console.post(discover, **version, **{"Mcp-Method": "server/discover"})
    ended = tmp_path / "ended"
    arguments = {"file": str(ended)}
    call = any_console.message("tools/call", 2, name="wait", arguments=arguments, _meta=meta)

    session = {"Mcp-Session-Id": first.headers["Mcp-Session-Id"]}
    headers = {**session, **version, "Mcp-Method": "tools/call", "Mcp-Name": "wait"}
    with any_console.http.stream("POST", "/targets/0/mcp", json=call, headers=headers) as response:
        assert next(events(response.iter_lines()))["method"] == "notifications/progress"

    wait_until(ended.exists)


def wait_until(condition: Callable[[], object]) -> None:
    ticks = threading.Event()
    for _ in range(6000):
        if condition():
            return
        ticks.wait(0.01)
    raise AssertionError("it never became true")


def test_a_child_that_ends_says_why_and_is_started_again(console: Opened) -> None:
    session = console.initialize()

    answer = console.call(session, "crash")
    later = console.call(session, "add", a=1, b=2)

    assert answer.status_code == 502
    error = answer.json()["error"]
    assert "exit status 7" in error["message"]
    assert "the disk is full" in error["data"]["stderr"]
    assert later.status_code == 404, "a client then opens another session"
    assert console.call(console.initialize(), "add", a=1, b=2).status_code == 200


def test_a_closed_session_ends_its_child(console: Opened) -> None:
    session = console.initialize()
    process = console.call(session, "process").json()["result"]["structuredContent"]["result"]

    closed = console.http.delete("/targets/0/mcp", headers={"Mcp-Session-Id": session})

    assert closed.status_code == 204
    wait_until(lambda: not is_alive(process))


def is_alive(process: int) -> bool:
    try:
        os.kill(process, 0)
    except ProcessLookupError:
        return False
    return True


def test_ctrl_c_ends_the_children(server: Path) -> None:
    with opened(stdio_command(server)) as console:
        session = console.initialize()
        child = console.call(session, "process").json()["result"]["structuredContent"]["result"]

        console.process.send_signal(signal.SIGINT)
        status = console.process.wait(timeout=60)

    assert status == 130
    assert not is_alive(child)


def test_a_url_gets_the_user_s_token_and_mcp_s_headers(server: Path) -> None:
    with serving(server) as served, opened(f"{served.url}/mcp") as console:
        session = console.initialize(Authorization="Bearer from-the-page")
        message = console.message(
            "tools/call", 2, name="header", arguments={"name": "authorization"}
        )
        answer = console.post(message, session, Authorization="Bearer from-the-page")
        about = console.http.get("/console/about.json").json()

    assert answer.json()["result"]["structuredContent"] == {"result": "Bearer from-the-page"}
    assert about["auth"] is True
    assert about["servers"][0]["target"] == f"{served.url}/mcp"


@pytest.mark.parametrize("flags", [(), ("--transport", "sse")], ids=["found out", "named"])
def test_a_url_may_have_only_the_old_transport(flags: tuple[str, ...]) -> None:
    class Handler(OldSseServer):
        streams: Queue[dict[str, Any]] = Queue()

    with http_server(Handler) as url, opened(f"{url}/sse", *flags) as console:
        answer = console.call(console.initialize(), "greet").json()
        Handler.streams.put(None)  # type: ignore[arg-type] # ends the stream

    assert answer["result"]["content"] == [{"type": "text", "text": "greet"}]


def test_a_url_s_refusal_keeps_its_status() -> None:
    refusing = Loopback({"/mcp": lambda _: Response(b"no entry", "text/plain", status=418)})
    with refusing as page, opened(f"{page.url}/mcp") as console:
        answer = console.post(console.message("initialize", **INITIALIZE))

    assert answer.status_code == 418
    assert "no entry" in answer.json()["error"]["message"]


def test_a_command_that_cannot_be_started_is_named() -> None:
    with opened("/no/such/program --flag") as broken:
        answer = broken.post(broken.message("initialize", **INITIALIZE))

    assert answer.status_code == 502
    assert "cannot start '/no/such/program --flag'" in answer.json()["error"]["message"]


def test_the_start_token_is_not_sent_to_a_url(server: Path) -> None:
    with serving(server) as served, opened(f"{served.url}/mcp") as console:
        answer = console.call(console.initialize(), "header", name="x-answerback-console")

    assert answer.json()["result"]["structuredContent"] == {"result": ""}


def test_a_person_chooses_among_the_servers_of_a_file(
    server: Path, tmp_path: Path, browser: Browser
) -> None:
    broken = [sys.executable, "-c", "import sys; sys.exit('no such licence')"]
    servers = {
        "good": {"command": sys.executable, "args": ["-m", "answerback", "mcp", str(server)]},
        "broken": {"command": broken[0], "args": broken[1:]},
        "odd": {"url": "${MISSING_VARIABLE}"},
    }
    (tmp_path / "mcp.json").write_text(json.dumps({"mcpServers": servers}))

    with opened("mcp.json", cwd=tmp_path) as console:
        browser.open(console.page)
        browser.until("document.querySelector('nav li')")
        names = browser.run(
            "[...document.querySelectorAll('header option')].map((each) => each.text)"
        )
        choose(browser, 1)
        broken_text = browser.until("document.querySelector('[role=alert]')?.innerText")
        choose(browser, 2)
        odd_text = browser.until(
            "document.querySelector('[role=alert]')?.innerText.includes('odd') && "
            "document.querySelector('[role=alert]').innerText"
        )
        choose(browser, 0)
        browser.until("document.querySelector('nav li')")

    assert names == ["good", "broken", "odd"]
    assert "no such licence" in broken_text
    assert "MISSING_VARIABLE" in odd_text


def choose(browser: Browser, number: int) -> None:
    browser.run(
        "(() => { const select = document.querySelector('header select');"
        f"select.value = '{number}';"
        "select.dispatchEvent(new Event('change', { bubbles: true })); })()"
    )


def test_an_app_is_served_with_its_console_and_without_a_token(server: Path) -> None:
    with opened(server) as console:
        page = console.http.get("/", headers={"Accept": "text/html"})
        called = console.http.post("/functions/add", json={"a": 1, "b": 2})

    assert console.token == ""
    assert page.headers["content-type"].startswith("text/html")
    assert called.json() == {"result": 3}
