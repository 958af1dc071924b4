"""The official TypeScript servers for files and for memory are called by our client."""

from __future__ import annotations

from pathlib import Path

from tests.protocol.official_tools import MODULES, node_command

from answerback import connect


def server_command(name: str, *arguments: str) -> list[str]:
    script = MODULES / "@modelcontextprotocol" / name / "dist" / "index.js"
    return node_command(script, *arguments)


def test_the_memory_server_keeps_what_our_client_tells_it(tmp_path: Path) -> None:
    file = tmp_path / "memory.jsonl"
    ada = {"name": "Ada", "entityType": "person", "observations": ["wrote programs"]}

    with connect(server_command("server-memory"), env={"MEMORY_FILE_PATH": str(file)}) as server:
        created = server.call("create_entities", entities=[ada])
        found = server.call("search_nodes", query="programs")
        wrong = server.call("create_entities", entities="Ada")

    assert created.data == {"entities": [ada]}
    assert found.data == {"entities": [ada], "relations": []}
    assert wrong.error is not None
    assert "Ada" in file.read_text()


def test_the_file_server_reads_writes_and_refuses(tmp_path: Path) -> None:
    folder = tmp_path.resolve()
    file = folder / "note.txt"

    with connect(server_command("server-filesystem", str(folder)), roots=[folder]) as server:
        written = server.call("write_file", path=str(file), content="bread")
        read = server.call("read_text_file", path=str(file))
        refused = server.call("read_text_file", path="/etc/hostname")

    assert written.ok, written.error
    assert file.read_text() == "bread"
    assert read.data == {"content": "bread"}
    assert refused.error is not None
    assert "outside allowed directories" in refused.error.message
