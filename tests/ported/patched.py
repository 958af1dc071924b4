"""Patches published servers, so that they use Answerback, and compares both, call by call.

The packages come from the registry, into environments of their own in the folder `.ported`. A copy
of the server's files is patched there. Only the changed lines are kept in this repository, in
`patches/`.
"""

from __future__ import annotations

import json
import logging
import os
import re
import shutil
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field, replace
from pathlib import Path
from typing import Any

import mcp_types as types
from mcp import Client, MCPError, StdioServerParameters
from tests.ported.comparison import ENVIRONMENTS, ROOT, installed

ANSWERBACK = ROOT / "src"
PATCHES = Path(__file__).with_name("patches")
SAMPLE = Path(__file__).with_name("sample")
"""A small project, which the servers for code read."""
FIRST_TIME = 1.7e9
_CHANGING = re.compile(
    r"\d{4}-\d\d-\d\d[T ]\d\d:\d\d:\d\d(\.\d+)?|\d+\.\d+ ?(s|ms|seconds)\b|[0-9a-f]{12,}"
)
"""Times, durations and hashes of paths."""
QUIET = "import os; os.dup2(os.open('stderr.txt', os.O_CREAT | os.O_WRONLY), 2); "
_FRAMING = re.compile(
    r"Error (executing tool|calling tool|rendering prompt) \S+: |\(reference \w+\)"
    "|Error creating resource from template: |Unknown resource: "
)
"""Words around an error's message."""


@dataclass
class Published:
    """A published server, and what is done with it."""

    name: str
    package: str
    pins: tuple[str, ...]
    files: tuple[str, ...]
    """The files and folders of `site-packages` that are patched."""
    start: str
    """The Python statement that starts it."""
    calls: list[tuple[str, dict[str, Any]]]
    """Tools and their arguments; also the URIs of resources, and prompts after `prompt:`."""
    env: dict[str, str] = field(default_factory=dict)
    service: str = ""
    """A program that both servers need. It prints its port: `PORT` in *start* and *env*."""


@dataclass
class Told:
    """What the official client read: the texts, the images and the data of a result."""

    is_error: bool
    text: str
    images: list[str]
    data: Any


@dataclass
class Result:
    tools: int
    changed: int
    calls: int
    faults: list[str]


async def compare(server: Published) -> Result:
    """Patch a server, call both, and return what is worse."""
    # One of the servers prints to stdout, and the official client logs each line.
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    environment = installed(server.name, server.pins)
    folder, changed = _patch(server, environment)
    with tempfile.TemporaryDirectory() as place:
        with served(server, environment) as ready:
            theirs = await _told(ready, environment, Path(place, "theirs"), [])
        with served(server, environment) as ready:
            ours = await _told(ready, environment, Path(place, "ours"), [folder, ANSWERBACK])
    # Ours may list more: one server hides the tools of its page from clients without pages.
    faults = [f"ours has no tool {name}" for name in sorted(theirs[0] - ours[0])]
    for (tool, arguments), *both in zip(server.calls, theirs[1], ours[1], strict=True):
        if not is_as_good(*both):
            faults.append(f"{tool} {arguments}:\n    theirs {both[0]}\n    ours   {both[1]}")
    return Result(len(ours[0]), changed, len(server.calls), faults)


def _patch(server: Published, environment: Path) -> tuple[Path, int]:
    """Return the folder with the patched copy, and the number of lines that the patch replaces."""
    (packages,) = environment.glob("lib/python*/site-packages")
    folder = ENVIRONMENTS / f"{server.name}-ported"
    shutil.rmtree(folder, ignore_errors=True)
    folder.mkdir()
    for name in server.files:
        source = packages / name
        if source.is_dir():
            shutil.copytree(source, folder / name)
        else:
            shutil.copy(source, folder / name)
    patch = PATCHES / f"{server.name}.patch"
    # Inside of a repository, git would take the paths from its root.
    env = os.environ | {"GIT_CEILING_DIRECTORIES": str(ENVIRONMENTS)}
    apply = ["git", "apply", "--unidiff-zero", "--whitespace=nowarn", str(patch)]
    subprocess.run(apply, cwd=folder, env=env, check=True)
    return folder, len(re.findall(r"^-(?!--)", patch.read_text(), re.MULTILINE))


@contextmanager
def served(server: Published, environment: Path) -> Iterator[Published]:
    """Run the program that a server needs, and yield the server with that program's port."""
    if not server.service:
        yield server
        return
    command = [str(environment / "bin" / "python"), "-c", server.service]
    with subprocess.Popen(command, stdout=subprocess.PIPE, text=True) as service:
        try:
            assert service.stdout is not None
            port = service.stdout.readline().strip()
            env = {name: value.replace("PORT", port) for name, value in server.env.items()}
            yield replace(server, start=server.start.replace("PORT", port), env=env)
        finally:
            service.terminate()


async def _told(
    server: Published, environment: Path, place: Path, path: list[Path]
) -> tuple[set[str], list[Told]]:
    shutil.copytree(SAMPLE, place / "project")
    env = os.environ | server.env | {"PYTHONPATH": os.pathsep.join(map(str, path))}
    env |= {
        "HOME": str(place),
        "TMPDIR": str(place),
        "PLACE": str(place),
        "PYTHONDONTWRITEBYTECODE": "1",
    }
    command = str(environment / "bin" / "python")
    program = StdioServerParameters(
        command=command, args=["-c", QUIET + server.start], env=dict(env), cwd=place
    )
    try:
        async with Client(program, read_timeout_seconds=60, elicitation_callback=decline) as client:
            tools = {tool.name for tool in (await client.list_tools()).tools}
            return tools, [await _tell(client, *call, place) for call in server.calls]
    except Exception:
        sys.stderr.write((place / "stderr.txt").read_text()[-2000:])
        raise


async def decline(context: object, params: object) -> types.ElicitResult:
    return types.ElicitResult(action="decline")


async def _tell(client: Client, tool: str, arguments: dict[str, Any], place: Path) -> Told:
    filled = json.loads(json.dumps(arguments).replace("PLACE", str(place)))
    try:
        if "://" in tool:
            contents = (await client.read_resource(tool)).contents
            return Told(False, json.dumps([each.model_dump() for each in contents]), [], None)
        if tool.startswith("prompt:"):
            messages = (await client.get_prompt(tool.removeprefix("prompt:"), filled)).messages
            return Told(False, json.dumps([each.model_dump() for each in messages]), [], None)
        result = await client.call_tool(tool, filled)
    except MCPError as exc:
        return Told(True, _plain(str(exc), place), [], None)
    texts = [each.text for each in result.content if isinstance(each, types.TextContent)]
    images = [each.data for each in result.content if isinstance(each, types.ImageContent)]
    text = _plain("\n".join(texts), place)
    data = json.dumps(result.structured_content).replace(str(place), "PLACE")
    return Told(bool(result.is_error), text, images, json.loads(data))


def _plain(text: str, place: Path) -> str:
    return _FRAMING.sub("", text.replace(str(place), "PLACE")).strip()


def is_as_good(theirs: Told, ours: Told) -> bool:
    """Whether our answer has the same information, or is an error that is as useful."""
    if theirs.is_error or says_failure(theirs.text):
        is_useful = "failed unexpectedly" not in ours.text and "Invalid output" not in ours.text
        return is_useful and (
            "Invalid arguments" in ours.text
            # Pydantic's words, about arguments or about the result.
            or "validation error for" in theirs.text
            or _words(_error_in(theirs.text)) <= _words(ours.text)
            or _value(theirs) == _value(ours)
        )
    if ours.is_error:
        return False
    return theirs.images == ours.images and _value(theirs) == _value(ours)


def says_failure(text: str) -> bool:
    """Some servers say in their text alone that a call failed."""
    value = _json(text)
    if isinstance(value, dict):
        return "error" in value or value.get("success") is False
    return bool(re.match(r"(error|failed|.* failed:|.*does not exist)", text, re.IGNORECASE))


def _error_in(text: str) -> str:
    """The message of a failure, which may be a member of an object."""
    value = _json(text)
    if isinstance(value, dict) and isinstance(value.get("error"), str):
        return str(value["error"])
    return text


def _words(text: str) -> set[str]:
    return set(re.findall(r"[\w./-]{3,}", text))


def _value(told: Told) -> str:
    """The information of an answer: its data, the JSON in its text, or its text; as one text."""
    value = _json(told.text) if told.data is None else told.data
    while isinstance(value, dict) and value.keys() == {"result"}:
        value = value["result"]
        value = _json(value) if isinstance(value, str) else value
    return _comparable(value)


def _comparable(value: Any) -> str:
    """The value as a text, without times; the order of files in a folder may differ."""
    match value:
        case dict():
            members = {str(key): _comparable(each) for key, each in value.items()}
            return json.dumps(members, sort_keys=True)
        case list():
            return json.dumps(sorted(map(_comparable, value)))
        case bool() | None:
            return str(value)
        case int() | float():
            return "time" if value > FIRST_TIME else str(value)
    return _CHANGING.sub("…", str(value).strip())


def _json(text: str) -> Any:
    try:
        return json.loads(text)
    except ValueError:
        pass
    # The SDK sends one text for each item of a list.
    lines = text.splitlines()
    try:
        return [json.loads(line) for line in lines] if len(lines) > 1 else text
    except ValueError:
        return text


def row(server: Published, result: Result) -> str:
    """A line of the table."""
    good = result.calls - len(result.faults)
    return f"{server.package:34} {result.tools:5} {result.changed:13} {result.calls:6} {good:8}"


HEAD = f"{'server':34} tools  changed lines  calls  as good"
