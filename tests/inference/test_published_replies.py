"""The replies of published servers, trimmed: types are inferred from them, and they fit."""

from __future__ import annotations

import subprocess
import sys
from pathlib import Path

import pytest
from tests.inference.judging import loaded, misfits, typed
from tests.inference.trimming import REPLIES
from tests.reading.live_servers import everything, filesystem, memory

from answerback.inference.inferred_types import SeenReplies, module_source
from answerback.inference.recorded_replies import RecordedReply, data_of, read_replies

FILES = sorted(REPLIES.glob("*.jsonl"))


def replies_in(file: Path) -> list[RecordedReply]:
    with file.open("rb") as recording:
        found = list(read_replies(recording, file.name))
    assert all(each.data.kind != "unreadable" for each in found)
    return found


def source_of(replies: list[RecordedReply]) -> str:
    seen = SeenReplies()
    for each in replies:
        seen.add(each)
    return module_source(seen.types())


def test_there_are_the_replies_of_eleven_published_servers() -> None:
    names = [file.stem for file in FILES]

    assert len(names) == 11


@pytest.mark.parametrize("file", FILES, ids=lambda file: str(file.stem))
def test_every_reply_of_a_published_server_fits_its_type(file: Path) -> None:
    replies = replies_in(file)

    assert typed(replies)
    assert misfits(replies, loaded(source_of(replies))) == []


@pytest.mark.slow
def test_the_types_of_published_servers_type_check(tmp_path: Path) -> None:
    for file in FILES:
        module = tmp_path / f"{file.stem.replace('-', '_')}_types.py"
        module.write_text(source_of(replies_in(file)))

    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "."]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert checked.stdout == "Success: no issues found in 11 source files\n"


@pytest.mark.slow
def test_every_reply_of_the_reference_servers_fits_its_type(
    tmp_path: Path, tmp_path_factory: pytest.TempPathFactory
) -> None:
    """Servers in TypeScript, run here: everything, memory and filesystem."""
    files = tmp_path_factory.mktemp("files").resolve()
    live = [*everything(), *memory(tmp_path), *filesystem(files)]
    replies = [
        RecordedReply(f"{server} {tool}", data_of(each.sent), each.name)
        for each in live
        for server, tool in [each.name.split()[:2]]
        if each.sent is not None and "/" not in tool
    ]

    assert len(typed(replies)) > 100
    assert misfits(replies, loaded(source_of(replies))) == []
