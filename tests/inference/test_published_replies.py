"""The replies of published servers, trimmed: types are inferred from them, and they fit."""

from __future__ import annotations

import io
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.inference.test_generated_types import loaded
from tests.inference.trimming import REPLIES

from answerback.inference.declared_types import DeclaredType
from answerback.inference.inferring import SeenReplies
from answerback.inference.python_source import module_source
from answerback.inference.recorded_replies import RecordedReply, read_replies

FILES = sorted(REPLIES.glob("*.jsonl"))


def replies_in(file: Path) -> list[RecordedReply]:
    found = list(read_replies(str(file), io.BufferedReader(io.BytesIO())))
    assert all(isinstance(each, RecordedReply) for each in found)
    return [each for each in found if isinstance(each, RecordedReply)]


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
    types: dict[str, Any] = loaded(source_of(replies))

    typed = [each for each in replies if each.found.kind in ("data", "text")]
    misfits = [
        (each.place, problems)
        for each in typed
        if (problems := DeclaredType(types[each.tool]).problems_of(each.found))
    ]

    assert typed
    assert misfits == []


@pytest.mark.slow
def test_the_types_of_published_servers_type_check(tmp_path: Path) -> None:
    for file in FILES:
        module = tmp_path / f"{file.stem.replace('-', '_')}_types.py"
        module.write_text(source_of(replies_in(file)))

    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "."]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert checked.stdout == "Success: no issues found in 11 source files\n"
