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
from mcp_types import Icon as SdkIcon

from answerback import App, Icon, connect

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


def test_the_sdk_s_icon_of_an_app_is_sent_like_ours(site: Path) -> None:
    text = SITE.replace("import App, Icon", "import App\nfrom mcp_types import Icon")
    site.write_text(text.replace('Icon("https', 'Icon(src="https').replace("mime=", "mime_type="))

    assert server_info(site, "2025-11-25")["icons"] == [ICON]


def test_the_sdk_s_icon_of_a_tool_is_sent_like_ours() -> None:
    app = App("site")
    icons: Any = [SdkIcon(src="https://example.com/icon.png", mime_type="image/png")]

    @app.tool(icons=icons)
    def add(x: int, y: int) -> int:
        return x + y

    async def read() -> Any:
        async with connect(app) as server:
            return (await server.tools())[0].icons

    assert asyncio.run(read()) == [{"src": ICON["src"], "mimeType": "image/png"}]


def test_the_message_about_a_wrong_icon_is_short_and_shows_a_right_one() -> None:
    wrong: Any = Icon(f"data:image/png;base64,{'A' * 1_000}")

    with pytest.raises(TypeError, match=r"such as \[Icon\('https://") as caught:
        App("site", icons=wrong)

    assert len(str(caught.value)) < 200


def test_an_icon_s_mcp_name_for_the_media_type_has_a_hint() -> None:
    wrong: Any = {"mimeType": "image/png"}

    with pytest.raises(TypeError, match="Icon has no argument 'mimeType'; write mime="):
        Icon("https://example.com/icon.png", **wrong)


def responses(tmp_path: Path, version: str, *methods: str) -> list[Any]:
    """The responses of a server with one tool, whose title is "Add"."""
    program = tmp_path / "titled.py"
    program.write_text(SITE.replace("@app.tool", "@app.tool(title='Add', read_only=True)"))
    client = {"name": "test", "version": "1"}
    params = {"protocolVersion": version, "capabilities": {}, "clientInfo": client}
    requests = [("initialize", params), *((method, {}) for method in methods)]
    sent = b"".join(
        json.dumps({"jsonrpc": "2.0", "id": id, "method": method, "params": params}).encode()
        + b"\n"
        for id, (method, params) in enumerate(requests)
    )
    command = [sys.executable, str(program), "mcp"]
    done = subprocess.run(command, input=sent, stdout=subprocess.PIPE, timeout=60)
    found = [json.loads(line) for line in done.stdout.splitlines()]
    return [each["result"] for each in sorted(found, key=lambda each: int(each["id"]))[1:]]


@pytest.mark.parametrize(
    ("version", "members"),
    [
        ("2025-11-25", {"annotations": {"readOnlyHint": True}, "title": "Add"}),
        ("2025-03-26", {"annotations": {"readOnlyHint": True, "title": "Add"}}),
        ("2024-11-05", {}),
    ],
)
def test_a_tool_s_title_is_where_the_client_s_version_has_it(
    tmp_path: Path, version: str, members: dict[str, Any]
) -> None:
    (listed,) = responses(tmp_path, version, "tools/list")

    (tool,) = listed["tools"]
    assert {name: tool[name] for name in ("annotations", "title") if name in tool} == members


@pytest.mark.parametrize("version", ["2024-11-05", "2025-11-25"])
def test_lists_without_entries_are_empty(tmp_path: Path, version: str) -> None:
    methods = ("prompts/list", "resources/list", "resources/templates/list")

    found = responses(tmp_path, version, *methods)

    assert found == [{"prompts": []}, {"resources": []}, {"resourceTemplates": []}]
