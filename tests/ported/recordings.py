"""Records the replies of the published servers, as lines `{"tool": …, "reply": …}`.

The servers, their environments and their calls are those of `make ported`.
"""

from __future__ import annotations

import json
import logging
import os
import shutil
import tempfile
from collections.abc import Iterable, Mapping
from dataclasses import dataclass
from pathlib import Path
from typing import Any

from mcp import Client, MCPError, StdioServerParameters
from tests.ported.comparison import SERVERS, Server, command_of, environment_of, installed, prepare
from tests.ported.patched import QUIET, SAMPLE, Published, decline, served
from tests.ported.published import PUBLISHED

Call = tuple[str, Mapping[str, Any]]


@dataclass
class Recorded:
    """A server's replies to the calls of tools, and their words in the server's folder."""

    name: str
    package: str
    lines: list[dict[str, Any]]


async def record_all(names: Iterable[str] = ()) -> list[Recorded]:
    """Install and run the servers, all or some, and return what they answered."""
    logging.getLogger("mcp").setLevel(logging.CRITICAL)
    wanted = set(names)
    found = [await _record_example(each) for each in SERVERS if not wanted or each.name in wanted]
    return found + [
        await _record_published(each) for each in PUBLISHED if not wanted or each.name in wanted
    ]


async def _record_example(server: Server) -> Recorded:
    environment = installed(server.name, server.pins)
    with tempfile.TemporaryDirectory() as name:
        place = Path(name, "theirs")
        prepare(server.name, place)
        command = command_of(server, environment, place)
        program = StdioServerParameters(
            command=command[0], args=command[1:], env=environment_of(place)
        )
        calls: list[Call] = [(each.tool, each.arguments) for each in server.calls]
        lines = await _ask(program, calls, {"REPO": str(place / "repository")})
    return Recorded(server.name, server.package, lines)


async def _record_published(server: Published) -> Recorded:
    environment = installed(server.name, server.pins)
    with tempfile.TemporaryDirectory() as name, served(server, environment) as ready:
        place = Path(name, "theirs")
        shutil.copytree(SAMPLE, place / "project")
        folder = str(place)
        env = {**os.environ, **ready.env, "HOME": folder, "TMPDIR": folder, "PLACE": folder}
        program = StdioServerParameters(
            command=str(environment / "bin" / "python"),
            args=["-c", QUIET + ready.start],
            env=env,
            cwd=place,
        )
        calls = [each for each in ready.calls if "://" not in each[0] and ":" not in each[0]]
        lines = await _ask(program, calls, {"PLACE": folder})
    return Recorded(server.name, server.package, lines)


async def _ask(
    program: StdioServerParameters, calls: Iterable[Call], places: Mapping[str, str]
) -> list[dict[str, Any]]:
    lines = []
    async with Client(program, read_timeout_seconds=60, elicitation_callback=decline) as client:
        for tool, arguments in calls:
            text = json.dumps(arguments)
            for word, place in places.items():
                text = text.replace(word, place)
            try:
                result = await client.call_tool(tool, json.loads(text))
            except MCPError:
                continue
            reply = result.model_dump(mode="json", by_alias=True, exclude_none=True)
            shown = json.dumps(reply)
            for word, place in places.items():
                shown = shown.replace(place, word)
            lines.append({"tool": tool, "reply": json.loads(shown)})
    return lines
