"""Every message we send is valid, for every version, over every example and test app.

Two judges: the models of mcp-types, always; and the official JSON Schemas, which are not ours
to commit: where the folder that holds them is not there, that half cannot run, and only the
models judge.
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
from tests.mcp.judges import ROOT
from tests.mcp.samples import sample
from tests.mcp.schemas import SCHEMAS, model_faults, schema_faults
from tests.mcp.wire import PREFIX, STATELESS, Client, Heard, over_http, over_stdio

from answerback.versions import VERSIONS

APPS = [
    *sorted(path for path in (ROOT / "examples").glob("*.py") if "= App(" in path.read_text()),
    ROOT / "tests" / "apps" / "everything.py",
    ROOT / "tests" / "apps" / "rich.py",
]
ARGUMENTS: dict[str, Any] = {
    "wait_for": {"path": str(ROOT)},
    "get_instance": {"instanceId": "instance-1"},
    "cpu_chart": {"instanceId": "instance-1"},
    "open_instance": {"instanceId": "instance-1"},
    "weather": {"location": "Oslo"},
}
"""For tools that would take, or do, little with the plainest arguments there are."""
NEVER_SENT = {-32800, -32801, -32802}
"""Codes of seed 004 that are not MCP's."""


def converse(client: Client) -> None:
    """Have the server say all that it can say."""
    capabilities = client.open()["result"]["capabilities"]
    if client.version != STATELESS:
        client.ask("ping")
        client.ask("logging/setLevel", {"level": "debug"})
    names = call_tools(client)
    if "change" in names:
        hear_of_changes(client)
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
            client.ask("tools/call", {"name": name, "arguments": arguments}, meta=meta)
    return [tool["name"] for tool in tools]


def read_resources(client: Client) -> None:
    for resource in client.pages("resources/list", "resources"):
        client.ask("resources/read", {"uri": resource["uri"]})
    for template in client.pages("resources/templates/list", "resourceTemplates"):
        uri = template["uriTemplate"]
        client.ask("resources/read", {"uri": uri.replace("{", "").replace("}", "")})
        client.ask("resources/read", {"uri": re.sub(r"{\w+}", "3", uri)})
        complete(client, {"type": "ref/resource", "uri": uri}, "kind")
    client.ask("resources/read", {"uri": "rich://nowhere"})


def hear_of_changes(client: Client) -> None:
    """Each list changes twice, and one resource once."""
    wanted: dict[str, Any] = {
        f"{what}ListChanged": True for what in ("tools", "resources", "prompts")
    }
    wanted |= {"resourceSubscriptions": ["rich://text"]}
    if client.version != STATELESS:
        client.ask("resources/subscribe", {"uri": "rich://text"})
    client.listen(wanted, lambda: client.ask("tools/call", {"name": "change"}), 7)
    if client.version != STATELESS:
        client.ask("resources/unsubscribe", {"uri": "rich://text"})


def get_prompts(client: Client) -> None:
    for prompt in client.pages("prompts/list", "prompts"):
        given = {argument["name"]: "given:it" for argument in prompt.get("arguments", [])}
        client.ask("prompts/get", {"name": prompt["name"], "arguments": given})
        client.ask("prompts/get", {"name": prompt["name"], "arguments": {"no such": "1"}})
        for name in given:
            complete(client, {"type": "ref/prompt", "name": prompt["name"]}, name)
    client.ask("prompts/get", {"name": "no such prompt"})
    complete(client, {"type": "ref/prompt", "name": "no such prompt"}, "a")


def complete(client: Client, ref: Any, argument: str) -> None:
    asked = {"ref": ref, "argument": {"name": argument, "value": "t"}}
    client.ask("completion/complete", asked)


def fail(client: Client) -> None:
    client.ask("no/such/method")
    client.ask("tools/call", {"name": "no such tool"})
    client.ask("tools/call", {"name": 7})
    client.ask("tools/list", {"cursor": "no such cursor"})
    client.ask("initialize" if client.version == STATELESS else "server/discover", {"a": 1})
    for broken in (b"{", b"[]", b"7", b'{"jsonrpc":"2.0","id":1}', b'{"jsonrpc":"1.0","id":"a"}'):
        client.send(broken)
    if client.version == STATELESS:
        discover: dict[str, Any] = {"jsonrpc": "2.0", "id": 1, "method": "server/discover"}
        client.send(json.dumps(discover | {"params": {}}).encode())
        meta = {PREFIX + "protocolVersion": "1999-01-01", PREFIX + "clientCapabilities": {}}
        client.send(json.dumps(discover | {"params": {"_meta": meta}}).encode())
    else:
        client.batch(("tools/list", {}), ("ping", {}), ("no/such/method", {}))


def faults(heard: list[Heard], version: str, *, closed: bool) -> list[str]:
    found: list[str] = []
    for message, method in heard:
        if "result" in message and method is None:
            found.append(f"{version}: an answer to nothing: {message}")
            continue
        found += model_faults(message, version, method)
        if SCHEMAS.is_dir():
            found += schema_faults(message, version, method, closed=False)
            found += schema_faults(message, version, method, closed=closed)
    return sorted(set(found))


def check(client: Client, path: Path) -> None:
    # The envelope contract adds its own members to a result, which the protocol leaves open.
    closed = not load_app(path).contract.envelope_in_mcp

    found = faults(client.heard, client.version, closed=closed)
    assert not found, "\n".join(found)
    codes = {m["error"]["code"] for m, _ in client.heard if "error" in m}
    assert codes
    assert not codes & NEVER_SENT


@pytest.mark.parametrize("version", VERSIONS)
@pytest.mark.parametrize("path", APPS, ids=lambda path: path.stem)
def test_every_message_on_stdio_is_valid(path: Path, version: str) -> None:
    with over_stdio(path, version) as client:
        converse(client)

    check(client, path)


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

    check(client, path)


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
def test_the_conversation_brings_every_kind_of_message(version: str, kinds: set[str]) -> None:
    with over_stdio(ROOT / "tests" / "apps" / "rich.py", version) as client:
        converse(client)

    seen = {m.get("method", method) for m, method in client.heard if "error" not in m}
    assert seen == kinds
