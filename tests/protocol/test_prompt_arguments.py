"""The arguments of a prompt: their descriptions, and the values that are suggested for them."""

import json
import subprocess
import sys
from enum import Enum
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest

from answerback import App, connect

PROMPTS = '''
from typing import Annotated

from pydantic import Field

from answerback import App

app = App("prompts")

@app.prompt
def ask(
    a: str,
    b: Annotated[str, "in Annotated"],
    c: Annotated[str, Field(description="in a Field")],
    d: str = Field(default="x", description="in a default", alias="D"),
    e: str = "x",
) -> str:
    """Ask.

    Args:
        a: in the docstring
    """
    return a

app.run()
'''


def test_prompts_list_shows_the_descriptions_of_arguments(tmp_path: Path) -> None:
    (tmp_path / "prompts.py").write_text(PROMPTS)
    client = {"name": "test", "version": "1"}
    hello = {"protocolVersion": "2025-11-25", "capabilities": {}, "clientInfo": client}
    messages = [
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": hello},
        {"jsonrpc": "2.0", "method": "notifications/initialized"},
        {"jsonrpc": "2.0", "id": 2, "method": "prompts/list"},
    ]
    sent = b"".join(json.dumps(each).encode() + b"\n" for each in messages)
    command = [sys.executable, "prompts.py", "mcp"]

    done = subprocess.run(command, input=sent, stdout=subprocess.PIPE, timeout=60, cwd=tmp_path)

    listed = json.loads(done.stdout.splitlines()[1])["result"]["prompts"][0]["arguments"]
    assert {each["name"]: each.get("description") for each in listed} == {
        "a": "in the docstring",
        "b": "in Annotated",
        "c": "in a Field",
        "D": "in a default",
        "e": None,
    }


class Tone(Enum):
    POLITE = "polite"
    FIRM = "firm"


@pytest.mark.parametrize(
    ("annotation", "values"),
    [
        (Literal["polite", "firm"], ["polite", "firm"]),
        (Annotated[Literal["polite", "firm"], "How to write."], ["polite", "firm"]),
        (Annotated[Literal["polite", "firm"] | None, "How to write."], ["polite", "firm"]),
        (Tone | None, ["polite", "firm"]),
        (bool | None, ["true", "false"]),
        (str | None, []),
    ],
)
def test_the_values_that_an_argument_lists_are_suggested(
    annotation: Any, values: list[str]
) -> None:
    app = App("letters")

    def letter(tone: Any = None) -> str:
        return f"Write a {tone} letter"

    letter.__annotations__["tone"] = annotation
    app.prompt(letter)

    with connect(app) as server:
        assert server.complete("letter", "tone", "") == values
        assert server.complete("letter", "tone", "f") == [each for each in values if each[0] == "f"]
