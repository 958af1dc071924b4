"""Runs the ported servers and the published ones, and compares their answers."""

from __future__ import annotations

import os
import subprocess
import sys
import tempfile
from collections.abc import Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client, StdioServerParameters
from tests.ported import git_calls, sqlite_calls, time_calls
from tests.ported.answers import Answer, ToolCall

ROOT = Path(__file__).parent.parent.parent
ENVIRONMENTS = ROOT / ".ported"
MAX_EXTRA = 200
"""Our errors may be this much longer than theirs; pydantic's are far longer than ours."""


@dataclass
class Server:
    name: str
    package: str
    pins: tuple[str, ...]
    calls: list[ToolCall]


SERVERS = (
    Server("time", "mcp-server-time", ("mcp-server-time==2026.10.19",), time_calls.CALLS),
    Server("git", "mcp-server-git", ("mcp-server-git==2026.10.19",), git_calls.CALLS),
    Server(
        "sqlite",
        "mcp-server-sqlite",
        ("mcp-server-sqlite==2025.4.25", "mcp==1.30.0"),
        sqlite_calls.CALLS,
    ),
)


def installed(name: str, pins: tuple[str, ...]) -> Path:
    """The folder of a published server's environment, which is made if it is not complete."""
    folder = ENVIRONMENTS / name
    ready = folder / "ready.txt"
    wanted = " ".join(pins)
    if not ready.exists() or ready.read_text() != wanted:
        subprocess.run([sys.executable, "-m", "venv", str(folder)], check=True)
        pip = [str(folder / "bin" / "python"), "-m", "pip", "install", "-q"]
        subprocess.run([*pip, "--disable-pip-version-check", *pins], check=True)
        ready.write_text(wanted)
    return folder


async def compare(server: Server) -> list[str]:
    """Return the calls that the ported server answers worse than the published one."""
    environment = installed(server.name, server.pins)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name, "theirs")
        command = command_of(server, environment, place)
        theirs = await _answers(server, command, place)
    ours = await own_answers(server)
    pairs = zip(server.calls, theirs, ours, strict=True)
    faults = [(call, _fault(call, *two)) for call, *two in pairs]
    return [f"{call.tool} {call.arguments}: {fault}" for call, fault in faults if fault]


async def own_answers(server: Server) -> list[Answer]:
    """Return the answers of the ported server."""
    command = [sys.executable, str(ROOT / f"examples/ported/{server.name}_server.py"), "mcp"]
    with tempfile.TemporaryDirectory() as name:
        return await _answers(server, command, Path(name, "ours"))


def command_of(server: Server, environment: Path, place: Path) -> list[str]:
    """Return the command line of a published server."""
    return [str(environment / "bin" / server.package), *_options(server.name, place)]


def environment_of(place: Path) -> dict[str, str]:
    """Return the environment variables of a server."""
    return dict(os.environ | {"TZ": "UTC", "DATABASE": str(place / "test.db")})


def _options(name: str, place: Path) -> list[str]:
    return {
        "time": ["--local-timezone", "UTC"],
        "git": [],
        "sqlite": ["--db-path", str(place / "test.db")],
    }[name]


def prepare(name: str, place: Path) -> None:
    """The same repository for both, with the same hashes."""
    place.mkdir()
    if name != "git":
        return
    repository = place / "repository"
    (repository / "folder").mkdir(parents=True)
    _git(repository, "init", "--quiet", "--initial-branch=main")
    for day, (file, text) in enumerate(
        (("a.txt", "one\n"), ("b.txt", "two\n"), ("a.txt", "ø\n")), 1
    ):
        (repository / file).write_text(text)
        _git(repository, "add", ".")
        _git(repository, "commit", "--quiet", "-m", f"Day {day}\n\nMore about it.", day=day)
        if day == 2:
            _git(repository, "branch", "other")
    (repository / "b.txt").write_text("two\nthree\n")


def _git(repository: Path, *arguments: str, day: int = 1) -> None:
    date = f"2024-01-0{day}T12:00:00+00:00"
    person = {"NAME": "Ada", "EMAIL": "ada@example.org", "DATE": date}
    both = {
        f"GIT_{who}_{key}": value
        for who in ("AUTHOR", "COMMITTER")
        for key, value in person.items()
    }
    subprocess.run(["git", *arguments], cwd=repository, check=True, env=os.environ | both)


async def _answers(server: Server, command: list[str], place: Path) -> list[Answer]:
    prepare(server.name, place)
    program = StdioServerParameters(command=command[0], args=command[1:], env=environment_of(place))
    async with Client(program, read_timeout_seconds=30) as client:
        return [await _answer(client, call, place) for call in server.calls]


async def _answer(client: Client, call: ToolCall, place: Path) -> Answer:
    repository = str(place / "repository")
    arguments = {key: _replaced(value, repository) for key, value in call.arguments.items()}
    result = await client.call_tool(call.tool, arguments)
    text = "\n".join(each.text for each in result.content if isinstance(each, types.TextContent))
    meta: Mapping[str, Any] = result.meta or {}
    text = text.replace(str(place), "")
    return Answer(bool(result.is_error), text, result.structured_content, dict(meta))


def _replaced(value: Any, repository: str) -> Any:
    return value.replace("REPO", repository) if isinstance(value, str) else value


def _fault(call: ToolCall, theirs: Answer, ours: Answer) -> str | None:
    """Our answer has the information of theirs, or is an error that is at least as good."""
    if call.same is not None:
        if theirs.failed or ours.failed:
            return f"failed: theirs {theirs.text!r}, ours {ours.text!r}"
        return None if call.same(theirs, ours) else f"theirs {theirs.text!r}, ours {ours.text!r}"
    if (fault := find_fault_of_error(call, ours)) is not None:
        return fault
    if len(ours.text) > len(theirs.text) + MAX_EXTRA:
        return f"ours is long: {ours.text!r}"
    return None


def find_fault_of_error(call: ToolCall, ours: Answer) -> str | None:
    """Return what is wrong with the error that a call must have, or None."""
    if not ours.is_error:
        return f"ours is no error: {ours.text!r}"
    if call.words not in ours.text:
        return f"ours lacks {call.words!r}: {ours.text!r}"
    return None if "answerback/error" in ours.meta else "ours has no code"
