"""Every message that the server sends is valid, in every version, for every example and test app.

The models of mcp-types validate each message, and so do the official JSON Schemas if they are
there: they are not part of this repository.
"""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator
from contextlib import ExitStack
from pathlib import Path
from typing import Any

import pytest
from tests.conftest import load_app, serving
from tests.protocol.message_faults import SCHEMAS, model_faults, schema_faults
from tests.protocol.official_tools import ROOT
from tests.protocol.recording_client import (
    PREFIX,
    STATELESS,
    Client,
    Received,
    over_http,
    over_stdio,
)
from tests.protocol.schema_samples import sample

from answerback.core.versions import VERSIONS

APPS = [
    *sorted(path for path in (ROOT / "examples").glob("*.py") if "= App(" in path.read_text()),
    ROOT / "tests" / "apps" / "everything.py",
    ROOT / "tests" / "apps" / "every_member.py",
]
ARGUMENTS: dict[str, Any] = {
    "wait_for": {"path": str(ROOT)},
    "get_instance": {"instanceId": "instance-1"},
    "cpu_chart": {"instanceId": "instance-1"},
    "open_instance": {"instanceId": "instance-1"},
    "weather": {"location": "Oslo"},
}
"""Arguments of tools that would fail, or wait, with the simplest arguments of their schema."""
NEVER_SENT = {-32800, -32801, -32802}
"""Codes in seed 004 that MCP does not have."""


def converse(client: Client) -> None:
    """Make the server send every kind of message."""
    capabilities = client.open()["result"]["capabilities"]
    if client.version != STATELESS:
        client.request("ping")
        client.request("logging/setLevel", {"level": "debug"})
    names = call_tools(client)
    if "change" in names:
        receive_changes(client)
    if "resources" in capabilities:
        read_resources(client)
    if "prompts" in capabilities:
        get_prompts(client)
    fail(client)


def call_tools(client: Client) -> list[str]:
    meta = {"progressToken": "how-far"}
    if client.version == STATELESS:
        meta[PREFIX + "logLevel"] = "debug"
    tools = client.pages("tools/list", "tools")
    for tool in tools:
        name = tool["name"]
        for arguments in (ARGUMENTS.get(name, sample(tool["inputSchema"])), {"no such": 1}):
            client.request("tools/call", {"name": name, "arguments": arguments}, meta=meta)
    return [tool["name"] for tool in tools]


def read_resources(client: Client) -> None:
    for resource in client.pages("resources/list", "resources"):
        client.request("resources/read", {"uri": resource["uri"]})
    for template in client.pages("resources/templates/list", "resourceTemplates"):
        uri = template["uriTemplate"]
        client.request("resources/read", {"uri": uri.replace("{", "").replace("}", "")})
        client.request("resources/read", {"uri": re.sub(r"{\w+}", "3", uri)})
        complete(client, {"type": "ref/resource", "uri": uri}, "kind")
    client.request("resources/read", {"uri": "test://missing"})


def receive_changes(client: Client) -> None:
    """Each list changes twice, and one resource once."""
    changes: dict[str, Any] = {
        f"{kind}ListChanged": True for kind in ("tools", "resources", "prompts")
    }
    changes |= {"resourceSubscriptions": ["test://text"]}
    if client.version != STATELESS:
        client.request("resources/subscribe", {"uri": "test://text"})
    client.subscribe(changes, lambda: client.request("tools/call", {"name": "change"}), 7)
    if client.version != STATELESS:
        client.request("resources/unsubscribe", {"uri": "test://text"})


def get_prompts(client: Client) -> None:
    for prompt in client.pages("prompts/list", "prompts"):
        arguments = {argument["name"]: "given:it" for argument in prompt.get("arguments", [])}
        client.request("prompts/get", {"name": prompt["name"], "arguments": arguments})
        client.request("prompts/get", {"name": prompt["name"], "arguments": {"no such": "1"}})
        for name in arguments:
            complete(client, {"type": "ref/prompt", "name": prompt["name"]}, name)
    client.request("prompts/get", {"name": "no such prompt"})
    complete(client, {"type": "ref/prompt", "name": "no such prompt"}, "a")


def complete(client: Client, ref: Any, argument: str) -> None:
    params = {"ref": ref, "argument": {"name": argument, "value": "t"}}
    client.request("completion/complete", params)


def fail(client: Client) -> None:
    client.request("no/such/method")
    client.request("tools/call", {"name": "no such tool"})
    client.request("tools/call", {"name": 7})
    client.request("tools/list", {"cursor": "no such cursor"})
    client.request("initialize" if client.version == STATELESS else "server/discover", {"a": 1})
    for malformed in (
        b"{",
        b"[]",
        b"7",
        b'{"jsonrpc":"2.0","id":1}',
        b'{"jsonrpc":"1.0","id":"a"}',
    ):
        client.send_text(malformed)
    if client.version == STATELESS:
        discover: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "server/discover"}
        client.send_text(json.dumps(discover | {"params": {}}).encode())
        meta = {PREFIX + "protocolVersion": "1999-01-01", PREFIX + "clientCapabilities": {}}
        client.send_text(json.dumps(discover | {"params": {"_meta": meta}}).encode())
    else:
        client.batch(("tools/list", {}), ("ping", {}), ("no/such/method", {}))


def faults(received: list[Received], version: str, *, closed: bool) -> list[str]:
    """The errors in the messages of a server."""
    found: list[str] = []
    for message, method in received:
        if "result" in message and method is None:
            found.append(f"{version}: a response without a request: {message}")
            continue
        found += model_faults(message, version, method)
        if SCHEMAS.is_dir():
            found += schema_faults(message, version, method, closed=False)
            found += schema_faults(message, version, method, closed=closed)
    return sorted(set(found))


def faults_of(client: Client, path: Path) -> list[str]:
    """The errors in all messages that the client received from the app at *path*."""
    # The envelope contract adds its own members to a result, which the protocol allows.
    closed = not load_app(path).contract.envelope_in_mcp
    return faults(client.received, client.version, closed=closed)


def error_codes(client: Client) -> set[int]:
    return {message["error"]["code"] for message, _ in client.received if "error" in message}


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", APPS, ids=lambda path: path.stem)
def test_every_message_on_stdio_is_valid(path: Path, version: str) -> None:
    with over_stdio(path, version) as client:
        converse(client)

    assert faults_of(client, path) == []
    assert error_codes(client)
    assert not error_codes(client) & NEVER_SENT


@pytest.fixture(scope="module")
def url_of() -> Iterator[Callable[[Path], str]]:
    urls: dict[Path, str] = {}
    with ExitStack() as servers:

        def url(path: Path) -> str:
            if path not in urls:
                urls[path] = servers.enter_context(serving(path)).url
            return urls[path]

        yield url


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", APPS, ids=lambda path: path.stem)
def test_every_message_over_http_is_valid(
    url_of: Callable[[Path], str], path: Path, version: str
) -> None:
    with over_http(url_of(path), version) as client:
        converse(client)

    assert faults_of(client, path) == []
    assert error_codes(client)
    assert not error_codes(client) & NEVER_SENT


STATEFUL_ONLY = {
    "elicitation/create",
    "sampling/createMessage",
    "roots/list",
    "initialize",
    "ping",
    "logging/setLevel",
    "resources/subscribe",
    "resources/unsubscribe",
}
BOTH = {
    "notifications/message",
    "notifications/progress",
    "notifications/tools/list_changed",
    "notifications/prompts/list_changed",
    "notifications/resources/list_changed",
    "notifications/resources/updated",
    "tools/list",
    "tools/call",
    "resources/list",
    "resources/templates/list",
    "resources/read",
    "prompts/list",
    "prompts/get",
    "completion/complete",
}
STATELESS_ONLY = {"server/discover", "notifications/subscriptions/acknowledged"}


@pytest.mark.parametrize(
    ("version", "kinds"),
    [("2025-11-25", BOTH | STATEFUL_ONLY), ("2026-07-28", BOTH | STATELESS_ONLY)],
)
def test_the_validated_conversation_has_every_kind_of_message(
    version: str, kinds: set[str]
) -> None:
    with over_stdio(ROOT / "tests" / "apps" / "every_member.py", version) as client:
        converse(client)

    found = {m.get("method", method) for m, method in client.received if "error" not in m}
    assert found == kinds
