"""The same calls over every wire: the replies are equal."""

from __future__ import annotations

import asyncio
import json
import os
import re
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.conftest import Server, serving
from tests.mcp.wire import Client, over_http, over_stdio

from answerback import App, Reply
from answerback.dialects import HttpReply, read, write
from answerback.dialects import mcp as dialect
from answerback.dialects.mcp import SERVER_INFO
from answerback.shape import RESULT
from answerback.versions import VERSIONS

EVERYTHING = Path(__file__).parent.parent / "apps" / "everything.py"
ENVELOPE = "application/vnd.answerback.envelope+json"

CASES: list[tuple[str, dict[str, Any], str | None]] = [
    ("add", {"x": 7, "y": 3}, None),
    ("add", {"x": 7.0, "y": 3}, None),
    ("add_inline", {"x": 7, "y": 3}, None),
    ("add_async", {"x": 7, "y": 3}, None),
    ("greet", {}, None),
    ("greet", {"name": "žluťoučký \u0000 \u2028 kůň"}, None),
    ("shift", {"point": {"x": 1, "y": 2}}, None),
    ("tree", {"depth": 3}, None),
    ("nothing", {}, None),
    ("empty", {}, None),
    ("paint", {"colour": "red", "on": "2026-01-01", "tags": ["a", "b"]}, None),
    ("own_text", {}, None),
    ("only_text", {}, None),
    ("blocks", {}, None),
    ("picture", {}, None),
    ("sound", {}, None),
    ("undeclared_key", {}, None),
    ("loud", {}, None),
    ("large", {}, None),
    ("context", {}, None),
    ("failing", {}, "STOVE_COLD"),
    ("missing_city", {"city": "Atlantis"}, "CITY_UNKNOWN"),
    ("conflicting", {}, "CONFLICT"),
    ("limited", {}, "RATE_LIMITED"),
    ("away", {}, "UNAVAILABLE"),
    ("plainly", {}, "UNKNOWN_ERROR"),
    ("unsayable_details", {}, "UNKNOWN_ERROR"),
    ("leak", {}, "TOOL_EXECUTION_ERROR"),
    ("leak_async", {}, "TOOL_EXECUTION_ERROR"),
    ("leave", {}, "TOOL_EXECUTION_ERROR"),
    ("wrong_shape", {}, "INVALID_OUTPUT"),
    ("unserialisable", {}, "INVALID_OUTPUT"),
    ("cycle", {}, "INVALID_OUTPUT"),
    ("not_a_number", {}, "INVALID_OUTPUT"),
    ("infinite", {}, "INVALID_OUTPUT"),
    ("reply_without_data", {}, "INVALID_OUTPUT"),
    ("add", {}, "INVALID_ARGUMENTS"),
    ("add", {"x": "seven", "y": None, "z": 1}, "INVALID_ARGUMENTS"),
    ("paint", {"colour": "blue", "on": "soon", "tags": [1]}, "INVALID_ARGUMENTS"),
    ("tree", {"depth": -1}, "INVALID_ARGUMENTS"),
    ("ad", {}, "TOOL_NOT_FOUND"),
]


class Sent(msgspec.Struct):
    """What came over a wire: an envelope, and the status it was sent with."""

    status: int
    envelope: bytes


def over_memory(app: App, _: str, name: str, arguments: dict[str, Any]) -> Sent:
    reply = asyncio.run(app.call(name, **arguments))
    shape = app.tools[name].shape if name in app.tools else RESULT
    written = write(reply, "envelope", shape, app.contract)
    return Sent(written.status, written.body)


def over_rest(app: App, url: str, name: str, arguments: dict[str, Any]) -> Sent:
    request = urllib.request.Request(
        f"{url}/functions/{name}",
        json.dumps(arguments).encode(),
        {"Content-Type": "application/json", "Accept": ENVELOPE},
    )
    try:
        with urllib.request.urlopen(request, timeout=20) as response:
            return Sent(response.status, response.read())
    except urllib.error.HTTPError as error:
        with error:
            return Sent(error.code, error.read())


def over_cgi(app: App, _: str, name: str, arguments: dict[str, Any]) -> Sent:
    body = json.dumps(arguments).encode()
    request = {
        "REQUEST_METHOD": "POST",
        "PATH_INFO": f"/functions/{name}",
        "CONTENT_TYPE": "application/json",
        "CONTENT_LENGTH": str(len(body)),
        "HTTP_ACCEPT": ENVELOPE,
    }
    done = subprocess.run(
        [sys.executable, str(EVERYTHING), "cgi"],
        input=body,
        env={**os.environ, **request},
        capture_output=True,
        check=True,
        timeout=20,
    )
    head, envelope = done.stdout.split(b"\r\n\r\n", 1)
    status = re.search(rb"^Status: (\d+)", head, re.MULTILINE)
    return Sent(int(status.group(1)) if status else 200, envelope)


def over_the_command_line(app: App, _: str, name: str, arguments: dict[str, Any]) -> Sent:
    command = [sys.executable, str(EVERYTHING), "call", name, "--dialect", "envelope"]
    command += ["--json", json.dumps(arguments)]
    done = subprocess.run(command, capture_output=True, timeout=20)
    envelope = done.stdout.strip() if done.returncode == 0 else _last_json(done.stderr)
    reply = read(HttpReply(200, envelope, ENVELOPE), "envelope")
    exit_status = 0 if reply.error is None else reply.error.row.exit
    assert done.returncode == exit_status
    return Sent(200 if reply.error is None else reply.error.row.status, envelope)


def _last_json(output: bytes) -> bytes:
    return [line for line in output.splitlines() if line.startswith(b"{")][-1]


def said(app: App, name: str, sent: Sent) -> Reply[Any]:
    """The reply that was sent, without what differs from call to call."""
    shape = app.tools[name].shape if name in app.tools else RESULT
    envelope = HttpReply(sent.status, steady(sent.envelope), ENVELOPE)
    return timeless(read(envelope, "envelope", shape, app.contract))


def steady(text: bytes) -> bytes:
    """Without the references, each of which is given out once."""
    return re.sub(rb"[0-9a-f]{12}\b", b"REFERENCE", text)


def timeless(reply: Reply[Any]) -> Reply[Any]:
    epoch = msgspec.convert("2026-01-01T00:00:00Z", type(reply.timestamp))
    return msgspec.structs.replace(reply, timestamp=epoch)


@pytest.mark.parametrize("wire", [over_rest, over_cgi, over_the_command_line])
@pytest.mark.parametrize(("name", "arguments", "code"), CASES)
def test_a_call_gets_the_same_reply_on_every_wire(
    everything: App,
    everything_served: Any,
    wire: Callable[[App, str, str, dict[str, Any]], Sent],
    name: str,
    arguments: dict[str, Any],
    code: str | None,
) -> None:
    expected = over_memory(everything, "", name, arguments)
    found = wire(everything, everything_served.url, name, arguments)

    assert said(everything, name, found) == said(everything, name, expected)
    assert found.status == expected.status
    error = said(everything, name, found).error
    assert (error.code if error else None) == code
    assert b"hunter2" not in found.envelope
    assert b"printed" not in found.envelope


@pytest.fixture(scope="module")
def served_by_three() -> Iterator[Server]:
    with serving(EVERYTHING, "--workers", "3") as server:
        yield server


@pytest.mark.parametrize(("name", "arguments", "code"), CASES)
def test_a_call_gets_the_same_reply_from_any_of_three_workers(
    everything: App,
    served_by_three: Server,
    name: str,
    arguments: dict[str, Any],
    code: str | None,
) -> None:
    expected = over_memory(everything, "", name, arguments)
    found = over_rest(everything, served_by_three.url, name, arguments)

    assert said(everything, name, found) == said(everything, name, expected)
    assert found.status == expected.status


ERAS = ["2025-11-25", "2026-07-28"]


@pytest.fixture(
    scope="module",
    params=[(wire, version) for wire in ("stdio", "http", "workers") for version in ERAS],
    ids="-".join,
)
def mcp(
    request: pytest.FixtureRequest, everything_served: Server, served_by_three: Server
) -> Iterator[Client]:
    """A client of one era over one wire, which has come to know the server."""
    wire, version = request.param
    if wire == "stdio":
        opened = over_stdio(EVERYTHING, version)
    else:
        url = everything_served.url if wire == "http" else served_by_three.url
        opened = over_http(url, version)
    with opened as client:
        assert "result" in client.open()
        yield client


@pytest.mark.parametrize(("name", "arguments", "code"), CASES)
def test_a_call_gets_the_same_reply_over_mcp_in_either_era(
    everything: App, mcp: Client, name: str, arguments: dict[str, Any], code: str | None
) -> None:
    response = mcp.ask("tools/call", {"name": name, "arguments": arguments})

    if code == "TOOL_NOT_FOUND":
        assert response["error"] == {"code": -32602, "message": f"Unknown tool: {name}"}
        return
    sent = json.dumps(response["result"]).encode()
    assert b"hunter2" not in sent
    assert b"printed" not in sent
    found = read_mcp(everything, name, sent)
    in_memory = asyncio.run(everything.call(name, **arguments))
    shape = everything.tools[name].shape
    expected = dialect.write(in_memory, shape, everything.contract, VERSIONS[mcp.version])
    assert found == read_mcp(everything, name, expected)
    assert (found.error.code if found.error else None) == code
    # What is data and what is an error is the same in every dialect.
    envelope = said(everything, name, over_memory(everything, "", name, arguments))
    assert (found.data, found.error) == (envelope.data, envelope.error)


def read_mcp(app: App, name: str, result: bytes) -> Reply[Any]:
    """The reply that a result is, without what differs from call to call or stands for who sent."""
    reply = timeless(dialect.read(steady(result), app.tools[name].shape, app.contract))
    meta = {key: value for key, value in reply.meta.items() if key != SERVER_INFO}
    return msgspec.structs.replace(reply, meta=meta)
