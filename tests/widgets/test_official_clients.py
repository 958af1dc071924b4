"""Official clients read widgets in both eras; the schemas of ext-apps accept every `_meta.ui`."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import mcp_types as types
import msgspec
import pytest
from mcp import Client, StdioServerParameters
from tests.conftest import ROOT, serving
from tests.protocol.official_tools import node_command, node_environment

APP = ROOT / "tests" / "apps" / "widgets_for_clients.py"
SCRIPT = Path(__file__).parent / "widget_client.mjs"
URI = "ui://widget/accounts.html"
HINTS = ["destructiveHint", "openWorldHint", "readOnlyHint"]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(APP) as server:
        yield f"{server.url}/mcp"


@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_package_of_mcp_apps_reads_tools_and_pages(url: str, tmp_path: Path, mode: str) -> None:
    done = subprocess.run(
        node_command(SCRIPT, mode, url),
        env=node_environment(tmp_path),
        capture_output=True,
        timeout=60,
    )

    assert done.stderr.decode() == ""
    found = msgspec.json.decode(done.stdout)
    assert found.pop("extension", None) == (None if mode == "legacy" else {})
    assert found == {
        "tools": {
            "accounts": {
                "uri": URI,
                "appOnly": False,
                "mime": True,
                "allow": "camera; microphone; geolocation; clipboard-write",
                "hints": HINTS,
            },
            "refresh": {
                "uri": "ui://widget/plain.html",
                "appOnly": True,
                "mime": True,
                "allow": "",
                "hints": HINTS,
            },
        },
        "resources": [URI, "ui://widget/plain.html"],
        "forModel": [["One account", '{"savings":7}'], {"savings": 7}],
        "forWidget": "for the widget alone",
    }


async def report(target: str | StdioServerParameters, mode: str) -> Any:
    async with Client(target, mode=mode, read_timeout_seconds=20) as client:
        tools = (await client.list_tools()).tools
        listed = (await client.list_resources()).resources[0]
        read = (await client.read_resource(URI)).contents[0]
        assert isinstance(read, types.TextResourceContents)
        assert tools[0].meta is not None
        assert listed.meta is not None
        assert read.meta is not None
        return {
            "tool": tools[0].meta["ui"],
            "hints": tools[0].annotations,
            "other": tools[2].meta,
            "listed": [listed.mime_type, listed.meta["openai/widgetCSP"]["redirect_domains"]],
            "read": [read.mime_type, read.text[:15], read.meta["ui"].get("domain")],
        }


@pytest.mark.parametrize("wire", ["stdio", "http"])
@pytest.mark.parametrize("mode", ["legacy", "2026-07-28"])
def test_the_python_client_reads_tools_and_pages(url: str, wire: str, mode: str) -> None:
    command = [sys.executable, str(APP), "mcp"]
    stdio = StdioServerParameters(command=command[0], args=command[1:], env=dict(os.environ))

    found = asyncio.run(report(url if wire == "http" else stdio, mode))

    assert found == {
        "tool": {"resourceUri": URI, "visibility": ["model", "app"]},
        "hints": types.ToolAnnotations(
            read_only_hint=True, destructive_hint=False, open_world_hint=True
        ),
        "other": None,
        "listed": ["text/html;profile=mcp-app", ["https://pay.example.com"]],
        "read": [
            "text/html;profile=mcp-app",
            "<!doctype html>",
            "c3d80a4ed901ee05b21755a88273b4a4.claudemcpcontent.com",
        ],
    }
