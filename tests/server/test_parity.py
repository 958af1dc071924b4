"""The same calls over every wire: the replies are equal."""

from __future__ import annotations

import asyncio
import json
import os
import re
import urllib.error
import urllib.request
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.conftest import Server, serving
from tests.forked import run as run_forked
from tests.protocol.recording_client import Client, over_http, over_stdio
from tests.state.hosts import started
from tests.state.postgres import Postgres
from tests.state.proxy import round_robin
from tests.state.stores import make_tables

from answerback import App, Reply
from answerback.core.shape import RESULT
from answerback.core.versions import VERSIONS
from answerback.dialects import HttpReply, read, write
from answerback.dialects import mcp as dialect
from answerback.dialects.mcp import SERVER_INFO

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
    ("entity_exists", {}, "ENTITY_EXISTS"),
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
    """An envelope as a wire sent it, and its status."""

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
        with urllib.request.urlopen(request, timeout=60) as response:
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
    done = run_forked([str(EVERYTHING), "cgi"], input=body, env={**os.environ, **request})
    done.check_returncode()
    head, envelope = done.stdout.split(b"\r\n\r\n", 1)
    status = re.search(rb"^Status: (\d+)", head, re.MULTILINE)
    return Sent(int(status.group(1)) if status else 200, envelope)


def over_command_line(app: App, _: str, name: str, arguments: dict[str, Any]) -> Sent:
    command = [str(EVERYTHING), "call", name, "--dialect", "envelope"]
    done = run_forked([*command, "--json", json.dumps(arguments)])
    envelope = done.stdout.strip() if done.returncode == 0 else _last_json(done.stderr)
    reply = read(HttpReply(200, envelope, ENVELOPE), "envelope")
    exit_status = 0 if reply.error is None else reply.error.row.exit
    assert done.returncode == exit_status
    return Sent(200 if reply.error is None else reply.error.row.status, envelope)


def _last_json(output: bytes) -> bytes:
    return [line for line in output.splitlines() if line.startswith(b"{")][-1]


def reply_in(app: App, name: str, sent: Sent) -> Reply[Any]:
    """The reply that was sent, without its reference and timestamp, which are never the same."""
    shape = app.tools[name].shape if name in app.tools else RESULT
    envelope = HttpReply(sent.status, without_references(sent.envelope), ENVELOPE)
    return with_fixed_timestamp(read(envelope, "envelope", shape, app.contract))


def without_references(text: bytes) -> bytes:
    """The text with a placeholder for each reference of a failure, which is random."""
    return re.sub(rb"[0-9a-f]{12}\b", b"REFERENCE", text)


def with_fixed_timestamp(reply: Reply[Any]) -> Reply[Any]:
    epoch = msgspec.convert("2026-01-01T00:00:00Z", type(reply.timestamp))
    return msgspec.structs.replace(reply, timestamp=epoch)


@pytest.mark.parametrize("wire", [over_rest, over_cgi, over_command_line])
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

    assert reply_in(everything, name, found) == reply_in(everything, name, expected)
    assert found.status == expected.status
    error = reply_in(everything, name, found).error
    assert (error.code if error else None) == code
    assert b"hunter2" not in found.envelope
    assert b"printed" not in found.envelope


@pytest.fixture(scope="module")
def three_workers() -> Iterator[str]:
    """The URL of a server with three processes."""
    with serving(EVERYTHING, "--workers", "3") as server:
        yield server.url


@pytest.fixture(scope="module")
def three_hosts(postgres: Postgres) -> Iterator[str]:
    """The URL of a proxy, which sends each request to the next of three hosts."""
    url = postgres.new_database()
    make_tables(url)
    with ExitStack() as stack:
        ports = [
            stack.enter_context(started(url, EVERYTHING, "serve", *flags)).port
            for flags in ([], ["--workers", "2"], ["--no-tasks"])
        ]
        yield stack.enter_context(round_robin(*ports))


@pytest.mark.parametrize("servers", ["three_workers", "three_hosts"])
@pytest.mark.parametrize(("name", "arguments", "code"), CASES)
def test_a_call_gets_the_same_reply_from_any_of_several_servers(
    everything: App,
    request: pytest.FixtureRequest,
    servers: str,
    name: str,
    arguments: dict[str, Any],
    code: str | None,
) -> None:
    expected = over_memory(everything, "", name, arguments)
    found = over_rest(everything, request.getfixturevalue(servers), name, arguments)

    assert reply_in(everything, name, found) == reply_in(everything, name, expected)
    assert found.status == expected.status


ERAS = ["2025-11-25", "2026-07-28"]


SERVERS = ["stdio", "everything_served", "three_workers", "three_hosts"]


@pytest.fixture(
    scope="module",
    params=[(servers, version) for servers in SERVERS for version in ERAS],
    ids="-".join,
)
def mcp(request: pytest.FixtureRequest) -> Iterator[Client]:
    """An initialized client of one era over one wire."""
    servers, version = request.param
    if servers == "stdio":
        opened = over_stdio(EVERYTHING, version)
    else:
        found = request.getfixturevalue(servers)
        opened = over_http(found.url if isinstance(found, Server) else found, version)
    with opened as client:
        assert "result" in client.open()
        yield client


@pytest.mark.parametrize(("name", "arguments", "code"), CASES)
def test_a_call_gets_the_same_reply_over_mcp_in_either_era(
    everything: App, mcp: Client, name: str, arguments: dict[str, Any], code: str | None
) -> None:
    response = mcp.request("tools/call", {"name": name, "arguments": arguments})

    if code == "TOOL_NOT_FOUND":
        meant = {"ad": "; did you mean 'add'?"}.get(name, "")
        assert response["error"] == {"code": -32602, "message": f"Unknown tool: {name}{meant}"}
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
    # Data and error are the same in every dialect.
    envelope = reply_in(everything, name, over_memory(everything, "", name, arguments))
    assert (found.data, found.error) == (envelope.data, envelope.error)


def read_mcp(app: App, name: str, result: bytes) -> Reply[Any]:
    """The reply in an MCP result, without its reference, timestamp and server info."""
    reply = with_fixed_timestamp(
        dialect.read(without_references(result), app.tools[name].shape, app.contract)
    )
    meta = {key: value for key, value in reply.meta.items() if key != SERVER_INFO}
    return msgspec.structs.replace(reply, meta=meta)
