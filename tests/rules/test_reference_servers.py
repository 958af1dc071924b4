"""The replies of the reference servers of MCP have no findings, except those listed here."""

from __future__ import annotations

import io
import json
import os
import subprocess
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any

from answerback.rules.lint.linter import FileFinding, Linter, LintOptions, Report

ROOT = Path(__file__).parent.parent.parent
MODULES = Path(os.environ.get("NODE_MODULES", ROOT / "node_modules"))
PINNED_NODE = MODULES / ".bin" / "node"
# Correct findings, each with the reason why it is correct.
EXPECTED_FINDINGS: dict[str, set[str]] = {
    "server-everything": set(),
    "server-memory": set(),
    "server-filesystem": set(),
}


class RecordingClient:
    """An MCP client over stdio that records every line of the conversation."""

    def __init__(self, process: subprocess.Popen[bytes]) -> None:
        self._process = process
        self._last_id = 0
        self.log = io.BytesIO()
        params = {
            "protocolVersion": "2025-11-25",
            "capabilities": {},
            "clientInfo": {"name": "tests", "version": "1"},
        }
        self.request("initialize", params)
        self._send({"jsonrpc": "2.0", "method": "notifications/initialized"})

    def request(self, method: str, params: dict[str, Any]) -> dict[str, Any]:
        self._last_id += 1
        self._send({"jsonrpc": "2.0", "id": self._last_id, "method": method, "params": params})
        assert self._process.stdout is not None
        while line := self._process.stdout.readline():
            self.log.write(line)
            message: dict[str, Any] = json.loads(line)
            if message.get("id") == self._last_id and "method" not in message:
                return message
        raise AssertionError("the server ended")

    def call(self, tool: str, **arguments: Any) -> dict[str, Any]:
        return self.request("tools/call", {"name": tool, "arguments": arguments})

    def _send(self, message: dict[str, Any]) -> None:
        line = json.dumps(message).encode() + b"\n"
        self.log.write(line)
        assert self._process.stdin is not None
        self._process.stdin.write(line)
        self._process.stdin.flush()


class CollectingReport(Report):
    """Keeps the findings in a list."""

    def __init__(self) -> None:
        self.findings: list[FileFinding] = []

    def add(self, found: FileFinding) -> None:
        self.findings.append(found)


@contextmanager
def running(name: str, *arguments: str, **environ: str) -> Iterator[RecordingClient]:
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
            yield RecordingClient(process)
        finally:
            process.terminate()


def lint(client: RecordingClient) -> tuple[set[str], int]:
    """The findings in the recorded conversation, and the number of replies in it."""
    report = CollectingReport()
    linter = Linter(LintOptions(), report)
    linter.lint("log", io.BytesIO(client.log.getvalue()), None, lambda _: None)
    findings = [each.finding for each in report.findings]
    texts = {f"{each.rule} {each.pointer} {each.message}" for each in findings}
    return texts, linter.counts.replies


def test_the_replies_of_the_everything_server_have_no_findings() -> None:
    with running("server-everything", "stdio") as client:
        tools = client.request("tools/list", {})["result"]["tools"]
        names = {tool["name"] for tool in tools}
        client.call("echo", message="Error: this is only an echo of what was said")
        client.call("get-sum", a=2, b=3)
        client.call("get-sum", a="two")
        client.call("get-structured-content", location="New York")
        client.call("get-tiny-image")
        client.call("get-annotated-message", messageType="error", includeImage=True)
        client.call("get-resource-links", count=3)
        client.call("get-resource-reference", resourceType="Text", resourceId=1)
        client.call("get-resource-reference", resourceType="Blob", resourceId=2)
        client.call("no-such-tool")

    findings, replies = lint(client)

    assert {"echo", "get-sum", "get-structured-content", "get-tiny-image"} <= names
    assert replies == 11
    assert findings == EXPECTED_FINDINGS["server-everything"]


def test_the_replies_of_the_memory_server_have_no_findings(tmp_path: Path) -> None:
    with running("server-memory", MEMORY_FILE_PATH=str(tmp_path / "memory.jsonl")) as client:
        client.request("tools/list", {})
        ada = {"name": "Ada", "entityType": "person", "observations": ["wrote Error: 42"]}
        client.call("create_entities", entities=[ada])
        client.call("read_graph")
        client.call("search_nodes", query="Ada")
        client.call("search_nodes", query="nobody")
        client.call("open_nodes", names=["Ada"])
        client.call("add_observations", observations=[{"entityName": "Eve", "contents": ["x"]}])
        client.call("delete_entities", entityNames=["Ada"])
        client.call("create_entities", entities="none")

    findings, replies = lint(client)

    assert replies == 9
    assert findings == EXPECTED_FINDINGS["server-memory"]


def test_the_replies_of_the_filesystem_server_have_no_findings(tmp_path: Path) -> None:
    (tmp_path / "package.json").write_text('{"name": "demo", "version": "1.0.0"}')
    (tmp_path / "build.log").write_text("Error: the build failed\n")
    with running("server-filesystem", str(tmp_path)) as client:
        client.request("tools/list", {})
        client.call("list_allowed_directories")
        client.call("list_directory", path=str(tmp_path))
        client.call("directory_tree", path=str(tmp_path))
        client.call("read_text_file", path=str(tmp_path / "package.json"))
        client.call("read_text_file", path=str(tmp_path / "build.log"))
        client.call(
            "read_multiple_files", paths=[str(tmp_path / "build.log"), str(tmp_path / "no")]
        )
        client.call("write_file", path=str(tmp_path / "new.txt"), content="new")
        client.call("get_file_info", path=str(tmp_path / "new.txt"))
        client.call("search_files", path=str(tmp_path), pattern="*.none")
        client.call("read_text_file", path=str(tmp_path / "missing.txt"))
        client.call("read_text_file", path="/etc/passwd")

    findings, replies = lint(client)

    assert replies == 12
    assert findings == EXPECTED_FINDINGS["server-filesystem"]
