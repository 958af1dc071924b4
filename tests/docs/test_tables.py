"""The tables of the pages match the code: codes, commands, flags, contracts and files."""

from __future__ import annotations

import re
import subprocess
import sys
import tomllib
from pathlib import Path

import pytest

from answerback.app_options import AppOptions
from answerback.cli.program import COMMANDS
from answerback.contract import PRESETS, Contract
from answerback.error_codes import BUILT_IN, CODES
from answerback.tools.tool_options import ToolOptions

ROOT = Path(__file__).parent.parent.parent
START, REFERENCE = ROOT / "docs" / "start", ROOT / "docs" / "reference"


def rows(page: Path, heading: str) -> list[list[str]]:
    """The cells of the table whose header begins with *heading*, without their backquotes."""
    table = page.read_text().partition(f"\n| {heading} |")[2].partition("\n\n")[0]
    lines = table.splitlines()[2:]
    return [[cell.strip().strip("`") for cell in line.strip("|").split(" | ")] for line in lines]


def test_the_page_on_replies_has_the_table_of_error_codes() -> None:
    shown = rows(START / "replies.md", "code")

    assert shown == [
        [
            name,
            str(code.status),
            str(code.exit),
            "–" if code.rpc is None else str(code.rpc),
            "yes" if code.retryable else "no",
        ]
        for name, code in CODES.items()
        if name in BUILT_IN
    ]


def test_the_page_on_commands_has_every_command() -> None:
    assert {row[0] for row in rows(REFERENCE / "commands.md", "command")} == set(COMMANDS)


@pytest.mark.parametrize(
    ("heading", "options"),
    [("option of a tool", ToolOptions), ("option of an app", AppOptions)],
)
def test_the_page_on_tools_has_each_option_once(heading: str, options: type) -> None:
    cells = [row[0] for row in rows(START / "tools.md", heading) if "App(" not in row[0]]
    shown = [each.partition("=")[0].strip("` ") for cell in cells for each in cell.split(", ")]

    assert sorted(shown) == sorted(options.__annotations__)


def test_the_page_on_wires_has_every_flag_of_serve() -> None:
    command = [sys.executable, str(ROOT / "examples" / "calculator.py"), "serve", "--help"]
    shown = subprocess.run(command, capture_output=True, text=True, timeout=60, check=True).stdout

    flags = set(re.findall(r"--[a-z-]+", shown)) - {"--help"}
    shown_flags = {flag for row in rows(REFERENCE / "wires.md", "flag") for flag in _flags(row[0])}
    assert shown_flags == flags


def _flags(cell: str) -> list[str]:
    return re.findall(r"--[a-z-]+", cell)


def test_the_page_on_contracts_has_every_preset_and_member() -> None:
    page = (REFERENCE / "contracts.md").read_text()

    header = next(line for line in page.splitlines() if line.startswith("| | `standard`"))
    assert re.findall(r"`(\w+)`", header) == list(PRESETS)
    body = next(line for line in page.splitlines() if line.startswith("| HTTP body"))
    assert [cell.strip() for cell in body.strip("|").split("|")[1:]] == [
        preset.http for preset in PRESETS.values()
    ]
    members = {
        name for row in rows(REFERENCE / "contracts.md", "member") for name in _words(row[0])
    }
    assert members == set(Contract.__struct_fields__) - {"name"}


def _words(cell: str) -> list[str]:
    return re.findall(r"\w+", cell)


def test_the_page_on_dependencies_explains_every_dependency() -> None:
    project = tomllib.loads((ROOT / "pyproject.toml").read_text())
    extras = project["project"]["optional-dependencies"].values()
    wanted = [*project["project"]["dependencies"], *(each for extra in extras for each in extra)]
    wanted += project["dependency-groups"]["dev"]

    names = {re.split(r"[^\w-]", each)[0] for each in wanted} - {"answerback"}
    page = (ROOT / "docs" / "contributors" / "dependencies.md").read_text()
    explained = {
        name
        for cell in re.findall(r"^\| ([\w, -]+) \|", page, re.MULTILINE)
        for name in cell.split(", ")
    }
    assert names - explained == set()


def test_every_file_of_ours_on_the_page_on_conventions_exists() -> None:
    page = (REFERENCE / "conventions.md").read_text()
    named = re.findall(r"`((?:examples|tests)/[\w/.]+|(?:[\w]+/)*[\w]+(?:\.py|/))`", page)
    # These are files of the documents themselves.
    theirs = {"services/mcp-server/app.py", "services/agent/app.py"}

    folders = (ROOT, ROOT / "src" / "answerback")
    ours = [name for name in named if name not in theirs and "kuniumi" not in name]
    assert ours
    assert [name for name in ours if not any((each / name).exists() for each in folders)] == []


def test_the_page_on_conventions_has_every_preset() -> None:
    presets = [
        re.findall(r"\w+", row[2])[0] for row in rows(REFERENCE / "conventions.md", "document")
    ]

    assert sorted(presets) == sorted(PRESETS)
