"""Starting `serve`: the banner, its flags, and messages about what cannot be served."""

from __future__ import annotations

import http.client
import itertools
import re
import socket
import subprocess
import sys
import threading
from functools import partial
from pathlib import Path
from typing import Any

import pytest
from tests.server.processes import BackgroundCall

BOUND = 60.0
EVERYTHING = Path(__file__).parent.parent / "apps" / "everything.py"


def test_the_banner_lists_the_addresses(serve: Any, connect: Any, request_bytes: Any) -> None:
    with serve(EVERYTHING) as server:
        assert server.port != 0
        for path in (
            "/functions/NAME",
            "/mcp",
            "/functions",
            "/openapi.json",
            "/healthz",
            "/readyz",
        ):
            assert f"{server.url}{path}\n" in server.announced

        connection = connect(server.port)
        connection.send(request_bytes("/healthz", None, method="GET"))
        assert connection.read_response().status == 200


def test_the_banner_counts_one_tool_in_the_singular(serve: Any, tmp_path: Path) -> None:
    path = tmp_path / "one_tool.py"
    path.write_text(
        "from answerback import App\n"
        "app = App('one', version='2.0')\n"
        "app.add_tool(lambda: 1, name='one')\n"
        "app.run()\n"
    )

    with serve(path) as server:
        banner = server.announced

    assert banner.splitlines()[0] == "one 2.0: 1 tool"


def test_the_banner_of_a_server_on_all_addresses_has_a_url_that_works(
    serve: Any, connect: Any, request_bytes: Any
) -> None:
    with serve(EVERYTHING, "--host", "0.0.0.0") as server:
        assert f"POST http://127.0.0.1:{server.port}/functions/NAME\n" in server.announced
        assert "every address" in server.announced

        connection = connect(server.port)
        connection.send(request_bytes(host=server.url.removeprefix("http://")))
        assert connection.read_response().body == b'{"result":10}'


@pytest.mark.parametrize(
    ("flags", "secret", "warnings"),
    [
        ((), "", []),
        (("--host", "localhost"), "", []),
        (("--workers", "2"), "", ["MCP sessions end with this server"]),
        (("--workers", "2"), "long enough to be a secret", []),
        (("--host", "0.0.0.0"), "", ["nothing authenticates", "MCP sessions end with this server"]),
        (("--host", "0.0.0.0"), "long enough to be a secret", ["nothing authenticates"]),
    ],
)
def test_the_banner_warns_of_what_a_server_lacks(
    serve: Any,
    monkeypatch: pytest.MonkeyPatch,
    flags: tuple[str, ...],
    secret: str,
    warnings: list[str],
) -> None:
    monkeypatch.setenv("ANSWERBACK_SECRET", secret)

    with serve(EVERYTHING, *flags) as server:
        lines = [line for line in server.announced.splitlines() if line.startswith("warning: ")]

    assert len(lines) == len(warnings)
    assert all(text in line for text, line in zip(warnings, lines, strict=True))


@pytest.mark.parametrize("command", [["serve", "--port", "0"], ["mcp"]])
def test_a_short_secret_is_reported_in_one_line(
    command: list[str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("ANSWERBACK_SECRET", "short")
    program = [sys.executable, str(EVERYTHING), *command]

    done = subprocess.run(
        program, capture_output=True, text=True, timeout=BOUND, stdin=subprocess.DEVNULL
    )

    assert done.returncode != 0
    assert done.stderr == (
        "error: ANSWERBACK_SECRET holds a secret of 5 bytes; it needs at least 16, such as the "
        "output of: openssl rand -hex 32\n"
    )


@pytest.mark.parametrize("flags", [(), ("--workers", "2")])
def test_a_port_in_use_is_reported_in_one_line(flags: tuple[str, ...]) -> None:
    with socket.create_server(("127.0.0.1", 0)) as taken:
        port = str(taken.getsockname()[1])
        command = [sys.executable, str(EVERYTHING), "serve", "--port", port, *flags]
        done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND)

    assert done.returncode != 0
    assert done.stderr == (
        f"error: cannot listen on 127.0.0.1:{port}: Address already in use; try another --port\n"
    )


@pytest.mark.parametrize(
    ("flags", "message"),
    [
        (("--host", "203.0.113.1"), "try another --host"),
        (("--host", "no.such.host.invalid"), "cannot listen on no.such.host.invalid"),
        (("--allow-host", "https://tools.example.com"), "cannot be allowed as a host"),
        (("--allow-origin", "app.example.com"), "cannot be allowed as an origin"),
        (("--trust-proxy", "proxy.example.com"), "cannot be trusted as a proxy"),
    ],
)
def test_an_invalid_host_or_origin_is_reported_in_one_line(
    flags: tuple[str, ...], message: str
) -> None:
    command = [sys.executable, str(EVERYTHING), "serve", *flags]

    done = subprocess.run(command, capture_output=True, text=True, timeout=BOUND)

    assert done.returncode != 0
    assert len(done.stderr.splitlines()) == 1
    assert message in done.stderr


@pytest.mark.parametrize("missing", ["starlette", "uvicorn", "httptools"])
def test_serve_without_its_extra_says_what_to_install(missing: str) -> None:
    program = (
        "import sys\n"
        "class Hidden:\n"
        "    def find_spec(self, name, path=None, target=None):\n"
        f"        if name.partition('.')[0] == {missing!r}:\n"
        "            raise ModuleNotFoundError(f'No module named {name!r}', name=name)\n"
        "sys.meta_path.insert(0, Hidden())\n"
        "from answerback import App\n"
        "App('bare').run(['serve', '--port', '0'])\n"
    )

    done = subprocess.run(
        [sys.executable, "-c", program], capture_output=True, text=True, timeout=BOUND
    )

    assert done.returncode == 2
    assert done.stderr == (
        f"error: {missing} is not installed; run: pip install 'answerback[serve]'\n"
    )


def test_max_body_sets_the_limit_of_a_body(serve: Any, connect: Any, request_bytes: Any) -> None:
    with serve(EVERYTHING, "--max-body", "20") as server:
        connection = connect(server.port)
        connection.send(request_bytes())
        small = connection.read_response()
        connection.send(request_bytes(body=b'{"x":7,"y":3}' + b" " * 8))
        large = connection.read_response()

    assert small.status == 200
    assert (large.status, large.json) == (413, {"error": "Body larger than 20 bytes"})


BLOCKING = """
import time
from functools import partial
from pathlib import Path
from answerback import App

app = App("blocking")

def wait() -> None:
    while not Path("go-on").exists():
        time.sleep(0.01)

@app.tool
def in_thread() -> None:
    wait()

@app.tool
async def on_loop() -> None:
    wait()

app.run()
"""


def test_an_async_tool_that_blocks_the_event_loop_is_named_in_the_log(tmp_path: Path) -> None:
    (tmp_path / "blocking.py").write_text(BLOCKING)
    with subprocess.Popen(
        [sys.executable, "blocking.py", "serve", "--port", "0"],
        cwd=tmp_path,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        lines = iter(process.stderr.readline, "")
        banner = "".join(itertools.takewhile(lambda line: not line.startswith("Ctrl-C"), lines))
        found = re.search(r"127\.0\.0\.1:(\d+)", banner)
        assert found is not None

        def call(name: str) -> int:
            connection = http.client.HTTPConnection("127.0.0.1", int(found[1]), timeout=60)
            headers = {"Content-Type": "application/json"}
            connection.request("POST", f"/functions/{name}", "{}", headers)
            status = connection.getresponse().status
            connection.close()
            return status

        # The plain function runs in a thread, so it blocks nothing.
        calls = [BackgroundCall(partial(call, name)) for name in ("in_thread", "on_loop")]
        bound = threading.Timer(BOUND, process.kill)
        bound.start()
        warning = next(lines, "")
        bound.cancel()
        (tmp_path / "go-on").touch()
        for each in calls:
            each.join(60)
        process.terminate()
        process.wait(60)

    assert re.fullmatch(
        r"tool 'on_loop' has blocked the event loop for \d+\.\d s or more; "
        r"write def, or await asyncio\.to_thread\(…\) for blocking code\n",
        warning,
    )
    assert [each.result for each in calls] == [200, 200]
