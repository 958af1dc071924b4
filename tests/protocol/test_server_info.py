"""The server's description of itself: icons and website, where the protocol version has them."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from mcp import Client, StdioServerParameters

from answerback import App

SITE = """
from answerback import App, Icon

app = App(
    "site",
    icons=[Icon("https://example.com/icon.png", mime="image/png", sizes=("48x48",))],
    website_url="https://example.com",
)

@app.tool
def add(x: int, y: int) -> int:
    return x + y

app.run()
"""
ICON = {"src": "https://example.com/icon.png", "mimeType": "image/png", "sizes": ["48x48"]}


@pytest.fixture
def site(tmp_path: Path) -> Path:
    path = tmp_path / "site.py"
    path.write_text(SITE)
    return path


def server_info(site: Path, version: str) -> Any:
    client = {"name": "test", "version": "1"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    request = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
    command = [sys.executable, str(site), "mcp"]
    sent = json.dumps(request).encode() + b"\n"
    done = subprocess.run(command, input=sent, stdout=subprocess.PIPE, timeout=60)
    return json.loads(done.stdout)["result"]["serverInfo"]


def test_the_server_sends_its_icons_and_website_in_versions_that_have_them(site: Path) -> None:
    newer = server_info(site, "2025-11-25")
    older = server_info(site, "2025-06-18")

    assert newer["icons"] == [ICON]
    assert newer["websiteUrl"] == "https://example.com"
    assert older == {"name": "site", "version": "0.0.0"}


@pytest.mark.parametrize("mode", ["auto", "legacy"])
def test_the_official_client_reads_icons_and_website(site: Path, mode: str) -> None:
    async def read() -> tuple[Any, Any]:
        target = StdioServerParameters(
            command=sys.executable, args=[str(site), "mcp"], env=dict(os.environ)
        )
        async with Client(target, mode=mode, read_timeout_seconds=20) as client:
            return client.server_info, await client.call_tool("add", {"x": 1, "y": 2})

    info, result = asyncio.run(read())

    assert info.website_url == "https://example.com"
    assert [icon.src for icon in info.icons] == ["https://example.com/icon.png"]
    # Icons can be large, and are not sent with every result.
    assert "icon.png" not in result.model_dump_json()


def test_a_wrong_icon_or_website_is_refused() -> None:
    wrong: Any = ["icon.png"]

    with pytest.raises(TypeError, match="should be a list of Icon"):
        App("site", icons=wrong)
    with pytest.raises(TypeError, match="should be a URL"):
        App("site", website_url="example.com")
