"""The descriptions of a prompt's arguments, wherever the author wrote them."""

import json
import subprocess
import sys
from pathlib import Path

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
