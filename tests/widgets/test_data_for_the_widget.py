"""Data that is for the widget alone: in `_meta` and nowhere else, on every wire."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from pathlib import Path
from typing import Any, get_args

import httpx
import msgspec
import pytest
from tests.widgets.mcp_requests import VERSIONS, result

from answerback import App, Reply, success
from answerback.contract import PRESETS, Dialect

SECRET = "only the widget sees this"
PROGRAM = f"""
from answerback import App, Reply, success

app = App("bank")
app.widget("accounts", html="<h1>Accounts</h1>")

@app.tool(widget="accounts")
def accounts() -> Reply[dict[str, int]]:
    return success("One account", {{"savings": 7}}, {{"token": {SECRET!r}}})

app.run()
"""


def bank(contract: str = "standard") -> App:
    app = App("bank", contract=contract)
    app.widget("accounts", html="<h1>Accounts</h1>")

    @app.tool(widget="accounts")
    def accounts() -> Reply[dict[str, int]]:
        return success("One account", {"savings": 7}, {"token": SECRET})

    return app


def without_meta(sent: dict[str, Any]) -> str:
    """The reply as JSON, without the member that is not for the model: `meta` in envelopes."""
    rest = {name: value for name, value in sent.items() if name not in ("_meta", "meta")}
    return msgspec.json.encode(rest).decode()


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("contract", sorted(PRESETS))
def test_over_mcp_it_is_in_meta_and_nowhere_else(contract: str, version: str) -> None:
    app = bank(contract)
    params = {"name": f"{app.contract.tool_prefix}accounts", "arguments": {}}

    sent = asyncio.run(result(app, "tools/call", params, version=version))

    assert sent["_meta"]["token"] == SECRET
    assert SECRET not in without_meta(sent)


# The dialect "problem" writes errors only.
@pytest.mark.parametrize("dialect", [each for each in get_args(Dialect) if each != "problem"])
@pytest.mark.parametrize("contract", sorted(PRESETS))
def test_no_dialect_writes_it_outside_meta(contract: str, dialect: Dialect) -> None:
    app = bank(contract)

    sent = app.write(asyncio.run(app.call("accounts")), dialect)

    assert "savings" in without_meta(sent)
    assert SECRET not in without_meta(sent)


@pytest.mark.parametrize("contract", sorted(PRESETS))
def test_over_rest_it_is_in_meta_or_nowhere(contract: str) -> None:
    app = bank(contract)
    route = f"{app.contract.route.rstrip('/')}/accounts"

    async def post() -> httpx.Response:
        transport = httpx.ASGITransport(app.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as http:
            return await http.post(route, json={})

    answer = asyncio.run(post())

    assert answer.status_code == 200
    assert SECRET not in without_meta(answer.json())


@pytest.mark.parametrize("command", ["call", "cgi"])
def test_the_command_line_and_cgi_do_not_print_it(tmp_path: Path, command: str) -> None:
    file = tmp_path / "bank.py"
    file.write_text(PROGRAM)
    words = ["call", "accounts"] if command == "call" else ["cgi"]
    request = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": "/functions/accounts",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": "2",
        "SERVER_PROTOCOL": "HTTP/1.1",
        "SERVER_NAME": "localhost",
        "HTTP_HOST": "localhost",
    }
    environment = {**os.environ, **(request if command == "cgi" else {})}

    done = subprocess.run(
        [sys.executable, str(file), *words],
        input="{}",
        capture_output=True,
        text=True,
        timeout=30,
        env=environment,
    )

    assert "7" in done.stdout
    assert SECRET not in done.stdout + done.stderr
