"""Servers that several tests of MCP share."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from tests.conftest import serving
from tests.fuzz.http_client import ServedApp, served_app
from tests.fuzz.stdio_client import StdioClient, stdio_client
from tests.protocol.official_tools import FOR_CLIENTS


@pytest.fixture(scope="session")
def for_clients_url() -> Iterator[str]:
    with serving(FOR_CLIENTS) as server:
        yield f"{server.url}/mcp"


@pytest.fixture(scope="session")
def sessionless_url() -> Iterator[str]:
    with serving(FOR_CLIENTS, "--stateless") as server:
        yield f"{server.url}/mcp"


@pytest.fixture(scope="session")
def shared_app() -> Iterator[ServedApp]:
    """One server for all requests that it should survive."""
    with served_app() as server:
        yield server


@pytest.fixture
def served(shared_app: ServedApp) -> Iterator[ServedApp]:
    """The shared server; after the test it still serves, and has logged nothing."""
    before = shared_app.log()
    yield shared_app
    assert shared_app.still_serves()
    assert shared_app.log() == before


@pytest.fixture(scope="session")
def shared_client() -> Iterator[StdioClient]:
    """The client of one server on stdio, for all messages that it should survive."""
    with stdio_client() as client:
        yield client


@pytest.fixture
def client(shared_client: StdioClient) -> Iterator[StdioClient]:
    """The shared client in a new session; after the test its server still serves."""
    shared_client.initialize(elicitation={}, sampling={}, roots={})
    shared_client.other_messages.clear()
    yield shared_client
    assert shared_client.still_serves()
