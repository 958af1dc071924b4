"""Passwords and tokens in the URL of a server are masked in errors, labels, logs and reprs."""

from __future__ import annotations

import asyncio
import logging
import subprocess
import sys
from typing import Any

import pytest

from answerback import App, connect
from answerback.client.faults import ConnectError, LoginError
from answerback.client.login.login_place import canonical
from answerback.client.login.login_requests import send
from answerback.client.targets import BadTarget, read_target

SECRETS = ("s3cr", "t0ken")


def error_of(target: Any, **options: Any) -> str:
    async def run() -> None:
        async with connect(target, connect_timeout=60, **options):
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
    ],
)
def test_the_error_of_a_malformed_target_shows_no_secret(target: Any) -> None:
    text = error_of(target)

    assert not any(secret in text for secret in SECRETS)


def test_the_error_of_a_token_for_plain_http_shows_no_secret() -> None:
    text = error_of("http://anna:s3cret@tools.example.com/mcp?token=t0ken", auth="x")

    assert "http://anna:***@tools.example.com/mcp?token=***" in text


def test_the_error_of_a_login_shows_no_secret() -> None:
    with pytest.raises(LoginError) as raised:
        asyncio.run(send("GET", "http://anna:s3cret@tools.example.com/?token=t0ken", near=0))

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
