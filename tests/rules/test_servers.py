"""The replies of well-known servers: nothing is found in them that is not rightly found."""

from __future__ import annotations

import io
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from answerback.rules.lint.linter import Hit, Linter, Options, Tally

ROOT = Path(__file__).parent.parent.parent
MODULES = Path(os.environ.get("NODE_MODULES", ROOT / "node_modules"))
PINNED_NODE = MODULES / ".bin" / "node"
# A finding that is right goes here, with the reason why it is.
FOUND_RIGHTLY: dict[str, set[str]] = {
    "server-everything": set(),
    "server-memory": set(),
    "server-filesystem": set(),
}


class Peer:
    """Speaks to a server over stdio, and records every line of the conversation."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._number = 0
        self.log = io.BytesIO()
        opening = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "tests", "version": "1"},
        }
        self.ask("initialize", opening)
        self._say({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def ask(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._number += 1
        self._say({"jsonrpc": "2.0", "id": self._number, "method": method, "params": params})
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            self.log.write(line)
            said: dict[str, Any] = json.loads(line)
            if said.get("id") == self._number and "method" not in said:
                return said
        raise AssertionError("the server ended")

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.ask("tools/call", {"name": tool, "arguments": arguments})

    def _say(self, message: dict[str, Any]) -> None:
        line = json.dumps(message).encode() + b"\n"
        self.log.write(line)
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()


class Kept:
    """A report that keeps the hits."""

    def __init__(self) -> None:
        self.hits: list[Hit] = []

    def hit(self, hit: Hit) -> None:
        self.hits.append(hit)

    def file_done(self, name: str, replies: int) -> None:
        pass

    def done(self, tally: Tally) -> None:
        pass


@contextmanager
def running(name: str, *arguments: str, **environ: str) -> Iterator[Peer]:
    script = MODULES / "@modelcontextprotocol" / name / "dist" / "index.js"
    assert script.exists(), f"@modelcontextprotocol/{name} is not installed; run: make setup"
    with subprocess.Popen(
        [str(PINNED_NODE) if PINNED_NODE.exists() else "node", str(script), *arguments],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        env=os.environ | environ,
    ) as process:
        try:
            yield Peer(process)
        finally:
            process.terminate()


def found(peer: Peer) -> tuple[set[str], int]:
    """What the rules find in the conversation, and in how many replies."""
    kept = Kept()
    linter = Linter(Options(), kept)
    linter.lint("log", io.BytesIO(peer.log.getvalue()), None, lambda _: None)
    told = {f"{hit.finding.rule} {hit.finding.pointer} {hit.finding.message}" for hit in kept.hits}
    return told, linter.tally.replies


def test_the_replies_of_the_everything_server_are_right() -> None:
    with running("server-everything", "stdio") as peer:
        tools = peer.ask("tools/list", {})["result"]["tools"]
        names = {tool["name"] for tool in tools}
        peer.call("echo", message="Error: this is only an echo of what was said")
        peer.call("get-sum", a=2, b=3)
        peer.call("get-sum", a="two")
        peer.call("get-structured-content", location="New York")
        peer.call("get-tiny-image")
        peer.call("get-annotated-message", messageType="error", includeImage=True)
        peer.call("get-resource-links", count=3)
        peer.call("get-resource-reference", resourceType="Text", resourceId=1)
        peer.call("get-resource-reference", resourceType="Blob", resourceId=2)
        peer.call("no-such-tool")

    told, replies = found(peer)

    assert {"echo", "get-sum", "get-structured-content", "get-tiny-image"} <= names
    assert replies == 11
    assert told == FOUND_RIGHTLY["server-everything"]


def test_the_replies_of_the_memory_server_are_right(tmp_path: Path) -> None:
    with running("server-memory", MEMORY_FILE_PATH=str(tmp_path / "memory.jsonl")) as peer:
        peer.ask("tools/list", {})
        ada = {"name": "Ada", "entityType": "person", "observations": ["wrote Error: 42"]}
        peer.call("create_entities", entities=[ada])
        peer.call("read_graph")
        peer.call("search_nodes", query="Ada")
        peer.call("search_nodes", query="nobody")
        peer.call("open_nodes", names=["Ada"])
        peer.call("add_observations", observations=[{"entityName": "Eve", "contents": ["x"]}])
        peer.call("delete_entities", entityNames=["Ada"])
        peer.call("create_entities", entities="none")

    told, replies = found(peer)

    assert replies == 9
    assert told == FOUND_RIGHTLY["server-memory"]


def test_the_replies_of_the_filesystem_server_are_right(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "demo", "version": "1.0.0"}')
    (tmp_path / "build.log").write_text("Error: the build failed\n")
    with running("server-filesystem", str(tmp_path)) as peer:
        peer.ask("tools/list", {})
        peer.call("list_allowed_directories")
        peer.call("list_directory", path=str(tmp_path))
        peer.call("directory_tree", path=str(tmp_path))
        peer.call("read_text_file", path=str(tmp_path / "package.json"))
        peer.call("read_text_file", path=str(tmp_path / "build.log"))
        peer.call("read_multiple_files", paths=[str(tmp_path / "build.log"), str(tmp_path / "no")])
        peer.call("write_file", path=str(tmp_path / "new.txt"), content="new")
        peer.call("get_file_info", path=str(tmp_path / "new.txt"))
        peer.call("search_files", path=str(tmp_path), pattern="*.none")
        peer.call("read_text_file", path=str(tmp_path / "missing.txt"))
        peer.call("read_text_file", path="/etc/passwd")

    told, replies = found(peer)

    assert replies == 12
    assert told == FOUND_RIGHTLY["server-filesystem"]
