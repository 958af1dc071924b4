"""Whether `connect` connects to one server or to several. Type-checked, not run."""

from pathlib import Path
from typing import assert_type

from answerback import App, connect
from answerback.client import RemoteServer


async def connect_to_one(app: App) -> None:
    async with connect({"command": "npx", "args": ["-y", "server"], "env": {"A": "b"}}) as started:
        assert_type(started, RemoteServer)
    async with connect({"url": "https://a.example", "headers": {}}, timeout=5) as remote:
        assert_type(remote, RemoteServer)
    async with connect("npx -y server") as by_text:
        assert_type(by_text, RemoteServer)
    async with connect(["npx", "-y", "server"]) as by_words:
        assert_type(by_words, RemoteServer)
    async with connect(app) as in_memory:
        assert_type(in_memory, RemoteServer)


async def connect_to_several() -> None:
    async with connect({"mcpServers": {"a": {"url": "https://a.example"}}}) as by_dict:
        assert_type(by_dict.servers["a"], RemoteServer)
    async with connect({"servers": {}, "inputs": []}) as of_a_host:
        assert_type(of_a_host.servers["a"], RemoteServer)
    async with connect("mcp.json") as by_name:
        assert_type(by_name.servers["a"], RemoteServer)
    async with connect(Path("a/servers.json")) as by_path:
        assert_type(by_path.servers["a"], RemoteServer)
