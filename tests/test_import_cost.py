"""Which modules are imported when: users of stdio and CGI wait for each start-up."""

import json
import os
import re
import subprocess
import sys
from collections.abc import Mapping
from importlib.util import find_spec
from pathlib import Path

import pytest

# HTTP, terminals, schemas, and the costly parts of the standard library.
HEAVY = frozenset(
    {"anyio", "attr", "httptools", "httpx", "jsonschema", "pydantic", "rich", "starlette"}
    | {"uvicorn", "uvloop", "yaml"}
    | {"asyncio", "concurrent.futures", "difflib", "email", "http", "http.client", "inspect"}
    | {"importlib.metadata", "json", "logging", "selectors", "shutil", "socket", "ssl"}
    | {"subprocess", "tempfile", "traceback", "unittest", "urllib.request", "argparse"}
)
# Modules that only some apps, or only some calls, need.
LATER = (
    frozenset(
        f"answerback.{name}"
        for name in (
            *("auth", "cli.argument_parser", "cli.target", "core.authentication"),
            *("core.request_info", "core.secrets", "core.signing", "verdicts.judge", "gates"),
            *("protocol.mcp_request_info", "protocol.task_methods", "protocol.widget", "records"),
            *("registry.composition", "registry.lifespan", "server.asgi", "tasks"),
            *("tools.dependencies", "tools.docstrings", "tools.other_frameworks", "tools.prompt"),
            *("tools.resource", "types.coerce", "types.default_check", "types.json_schema"),
            *("types.patterns", "types.schema_check"),
        )
    )
    | {"base64", "gettext", "http", "ipaddress", "locale", "signal", "struct", "urllib.parse"}
    | {"sqlite3"}
)
SHOW = "import sys; sys.stderr.write(' '.join(sys.modules))"

CALCULATOR = f"""
import atexit
atexit.register(lambda: exec({SHOW!r}))
from answerback import App

app = App("calculator")

@app.tool
def add(x: int, y: int) -> int:
    return x + y

if __name__ == "__main__":
    app.run()
"""


def run(
    *arguments: str, stdin: str = "", env: Mapping[str, str] | None = None
) -> tuple[str, set[str]]:
    """Run Python; its output, and the heavy modules that were loaded when it ended."""
    process = subprocess.run(
        [sys.executable, *arguments],
        input=stdin,
        capture_output=True,
        text=True,
        timeout=30,
        check=True,
        env={**os.environ, **(env or {})},
    )
    return process.stdout, set(process.stderr.split()) & (HEAVY | LATER)


@pytest.fixture(scope="module")
def loaded_by_msgspec() -> set[str]:
    return run("-c", f"import msgspec, datetime, functools, typing, re, contextlib; {SHOW}")[1]


@pytest.fixture
def calculator(tmp_path: Path) -> str:
    path = tmp_path / "calculator.py"
    path.write_text(CALCULATOR)
    return str(path)


def test_the_probe_reports_loaded_modules() -> None:
    assert "asyncio" in run("-c", f"import asyncio; {SHOW}")[1]


def test_every_module_that_is_loaded_later_exists() -> None:
    assert [name for name in LATER if find_spec(name) is None] == []


@pytest.mark.parametrize(
    "line",
    [
        "import answerback",
        "from answerback import App",
        "from answerback import App, Context, Image, NotFound, Reply, Text, failure, success",
    ],
)
def test_importing_answerback_loads_no_heavy_module(line: str, loaded_by_msgspec: set[str]) -> None:
    _, loaded = run("-c", f"{line}; {SHOW}")

    assert loaded - loaded_by_msgspec == set()


def test_importing_the_package_alone_does_not_load_msgspec() -> None:
    process = subprocess.run(
        [sys.executable, "-c", f"import answerback; {SHOW}"], capture_output=True, check=True
    )

    assert b" msgspec" not in process.stderr


def test_registering_a_tool_loads_no_heavy_module(
    calculator: str, loaded_by_msgspec: set[str]
) -> None:
    line = f"import runpy; runpy.run_path({calculator!r})"
    _, loaded_by_runpy = run("-c", f"import runpy; {SHOW}")

    _, loaded = run("-c", line)

    assert loaded - loaded_by_msgspec - loaded_by_runpy == set()


def test_a_call_of_a_plain_tool_loads_no_asyncio(
    calculator: str, loaded_by_msgspec: set[str]
) -> None:
    output, loaded = run(calculator, "call", "add", "x=7", "y=3")

    assert output == '{"result":10}\n'
    assert loaded - loaded_by_msgspec == set()


def test_a_cgi_request_for_a_plain_tool_loads_no_heavy_module(
    calculator: str, loaded_by_msgspec: set[str]
) -> None:
    body = '{"x": 7, "y": 3}'
    env = {
        "GATEWAY_INTERFACE": "CGI/1.1",
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/add",
        "CONTENT_LENGTH": str(len(body)),
    }

    output, loaded = run(calculator, stdin=body, env=env)

    assert output.endswith('{"result":10}')
    assert loaded - loaded_by_msgspec == set()


def test_mcp_over_stdio_loads_no_http_and_asyncio_only_for_its_loop(
    calculator: str, loaded_by_msgspec: set[str]
) -> None:
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": NAMED}
    call = {"name": "add", "arguments": {"x": 7, "y": 3}}
    lines = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "tools/list"},
        {"jsonrpc": "2.0", "id": 3, "method": "tools/call", "params": call},
    ]

    output, loaded = run(
        calculator, "mcp", stdin="".join(f"{json.dumps(line)}\n" for line in lines)
    )

    replies = {reply["id"]: reply for reply in map(json.loads, output.splitlines())}
    assert replies[3]["result"]["structuredContent"] == {"result": 10}
    asyncio = run("-c", f"import asyncio; {SHOW}")[1]
    assert loaded - loaded_by_msgspec - NEEDED_BY_LISTS - asyncio == set()


def test_mcp_over_stdio_answers_initialize_before_it_loads_what_a_call_needs(
    calculator: str, loaded_by_msgspec: set[str]
) -> None:
    client = {"protocolVersion": "2025-06-18", "capabilities": {}, "clientInfo": NAMED}
    line = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": client}

    process = subprocess.run(
        [sys.executable, "-X", "importtime", calculator, "mcp"],
        input=f"{json.dumps(line)}\n",
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
        timeout=30,
        check=True,
    )

    # Python reports each import on stderr, which is the same pipe here.
    before, response, after = re.split(r"(^{.*\n)", process.stdout, flags=re.MULTILINE)
    loaded = {each.rpartition("|")[2].strip() for each in before.splitlines()} & (HEAVY | LATER)
    assert json.loads(response)["result"]["serverInfo"]["name"] == "calculator"
    assert loaded - loaded_by_msgspec == set()
    assert "| asyncio\n" in after


NAMED = {"name": "test", "version": "1"}
# The schemas of the tools.
NEEDED_BY_LISTS = frozenset(
    f"answerback.{name}"
    for name in ("tools.docstrings", "types.json_schema", "types.json_schema", "types.json_schema")
)
