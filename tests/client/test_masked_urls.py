"""Passwords and tokens in the URL or the command of a server are masked wherever it is named."""

from __future__ import annotations

import asyncio
import json
import logging
import shlex
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest

from answerback import App, connect
from answerback.client.faults import ConnectError, LoginError
from answerback.client.login.discovery import send
from answerback.client.login.server_login import canonical
from answerback.client.targets import BadTarget, read_target

SECRETS = ("s3cr", "t0ken")


def error_of(target: Any, **options: Any) -> str:
    async def run() -> None:
        async with connect(target, **{"connect_timeout": 60} | options):
            pass

    with pytest.raises((ConnectError, BadTarget, ValueError)) as raised:
        asyncio.run(run())
    return f"{raised.value} {raised.value!r}"


@pytest.mark.parametrize("transport", ["", "rest", "sse"])
@pytest.mark.parametrize(
    ("url", "shown"),
    [
        ("http://anna:s3cret@127.0.0.1:1/mcp", "http://anna:***@127.0.0.1:1/mcp"),
        ("http://anna:s3cr@s3cret@127.0.0.1:1/mcp", "http://anna:***@127.0.0.1:1/mcp"),
        ("http://t0ken@127.0.0.1:1/mcp", "http://***@127.0.0.1:1/mcp"),
        ("http://anna@b.c:s3cret@127.0.0.1:1/mcp", "http://***@127.0.0.1:1/mcp"),
        ("http://127.0.0.1:1/mcp?api_key=t0ken&x=1", "http://127.0.0.1:1/mcp?api_key=***&x=1"),
        ("http://127.0.0.1:1/mcp?x=1&access%5Ftoken=t0ken", "?x=1&access%5Ftoken=***"),
        ("http://127.0.0.1:1/@scope/mcp?mail=a@b.c", "http://127.0.0.1:1/@scope/mcp?mail=a@b.c"),
    ],
)
def test_the_error_of_a_server_that_is_not_there_shows_its_url_without_secrets(
    url: str, shown: str, transport: str
) -> None:
    text = error_of(url, **({"transport": transport} if transport else {}))

    assert shown in text
    assert not any(secret in text for secret in SECRETS)


@pytest.mark.parametrize(
    "target",
    [
        "http://anna:s3cr/et@host.invalid/mcp",
        "http://anna:s3cret@/mcp",
        "http://anna:s3cret@[::1/mcp",
        {"mcpServers": {"one": "https://anna:s3cret@host.invalid/mcp"}},
        ["no-such-command", "https://anna:s3cret@host.invalid/mcp?token=t0ken"],
        ["https://anna:s3cret@host.invalid/mcp", 1],
        ["no-such-command", "--token", "t0ken", 1],
        {"mcpServers": {"one": "no-such-command --token t0ken"}},
    ],
)
def test_the_error_of_a_malformed_target_shows_no_secret(target: Any) -> None:
    text = error_of(target)

    assert not any(secret in text for secret in SECRETS)


@pytest.mark.parametrize(
    ("words", "shown"),
    [
        (["--api-key=s3cret,s3cret"], "--api-key=***"),
        (["--token", "t0ken", "--verbose"], "--token *** --verbose"),
        (["--auth", "--token", "t0ken"], "--auth *** ***"),
        (["-e", "DB_PASSWORD=s3cr et"], "-e DB_PASSWORD=***"),
        (["--header", "Authorization: Bearer t0ken"], "--header Authorization: Bearer ***"),
        (["--config", '{"apiKey": "s3cret"}'], '--config {"apiKey": "***"}'),
        (["--db", "postgres://anna:s3cret@db/prod"], "--db postgres://anna:***@db/prod"),
        (["--tokenizer=gpt2", "-v"], "--tokenizer=gpt2 -v"),
    ],
)
def test_the_error_of_a_command_shows_it_without_secrets(words: list[str], shown: str) -> None:
    silent = [sys.executable, "-c", "import sys; sys.stdin.read()"]

    not_started = error_of(["no-such-program", *words])
    not_answered = error_of([*silent, *words], connect_timeout=0.3)

    assert f"cannot start 'no-such-program {shown}'" in not_started
    assert "did not answer within" in not_answered
    assert not any(secret in not_started + not_answered for secret in SECRETS)


def test_the_error_of_a_token_for_plain_http_shows_no_secret() -> None:
    text = error_of("http://anna:s3cret@tools.example.com/mcp?token=t0ken", auth="x")

    assert "http://anna:***@tools.example.com/mcp?token=***" in text


def test_the_error_of_a_login_shows_no_secret() -> None:
    with pytest.raises(LoginError) as raised:
        asyncio.run(send("GET", "http://anna:s3cret@tools.example.com/?token=t0ken", zone=0))

    assert "anna:***@tools.example.com/?token=***" in str(raised.value)


def test_the_identifier_of_a_server_at_its_authorization_server_has_no_password() -> None:
    assert canonical("HTTPS://anna:s3cret@Example.com/mcp") == "https://example.com/mcp"


def test_a_server_of_a_hosts_file_has_a_repr_without_secrets() -> None:
    entry = read_target(
        {"url": "https://anna:s3cret@example.com", "headers": {"X": "t0ken"}, "env": {"Y": "t0ken"}}
    )

    assert repr(entry) == "<ServerEntry https://anna:***@example.com>"


def test_several_servers_log_the_one_that_fails_without_its_secrets(
    caplog: pytest.LogCaptureFixture,
) -> None:
    servers = {
        "one": {"url": "http://anna:s3cret@127.0.0.1:1/mcp?token=t0ken"},
        "two": App("two"),
    }

    async def run() -> str:
        async with connect({"mcpServers": servers}) as server:
            return str(await server.call("one_add", x=1))

    with caplog.at_level(logging.DEBUG):
        reply = asyncio.run(run())

    assert "127.0.0.1:1" in reply + caplog.text
    assert not any(secret in reply + caplog.text for secret in SECRETS)


def test_the_command_line_shows_no_secret_of_a_url() -> None:
    url = "http://anna:s3cret@127.0.0.1:1/mcp?token=t0ken"

    done = subprocess.run(
        [sys.executable, "-m", "answerback", "list", url],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    assert "http://anna:***@127.0.0.1:1/mcp?token=***" in done.stderr
    assert "s3cret" not in done.stdout + done.stderr


_DIES = """
import json, os, sys
for line in sys.stdin:
    asked = json.loads(line)
    if asked["method"] == "tools/call":
        sys.exit("no database at t0ken")
    result = {"resultType": "complete", "ttlMs": 60000, "cacheScope": "private", "tools": []}
    result |= {"supportedVersions": ["2026-07-28"], "capabilities": {"tools": {}}}
    print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "result": result}), flush=True)
"""


@pytest.mark.parametrize("dialect", ["rest", "mcp", "envelope", "problem"])
def test_the_command_line_shows_the_stderr_of_a_dead_server_but_not_in_its_json(
    dialect: str, tmp_path: Path
) -> None:
    program = tmp_path / "server.py"
    program.write_text(_DIES)
    command = f"{shlex.quote(sys.executable)} {program} --api-key=s3cret"

    done = subprocess.run(
        [sys.executable, "-m", "answerback", "call", command, "tool", "--dialect", dialect],
        capture_output=True,
        text=True,
        timeout=30,
        check=False,
    )

    logged, _, written = done.stderr.strip().rpartition("\n")
    assert "no database at t0ken" in logged
    assert "the server process ended" in json.dumps(json.loads(written))
    assert done.returncode == 69
    assert "t0ken" not in written
    assert "s3cret" not in done.stderr
