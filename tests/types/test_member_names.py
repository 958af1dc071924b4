"""Records may have members whose names are not ASCII, or not identifiers."""

import asyncio
import subprocess
import sys
from typing import TypedDict
from uuid import UUID

from answerback import App

BEYOND_ASCII = """
import asyncio, json
from dataclasses import dataclass
from typing import TypedDict
from answerback import App

Size = TypedDict("Size", {"".join(["gr", "öße"]): int})
app = App("sizes")

@dataclass
class Width:
    breite_ä: int

@app.tool
def measure() -> Size:
    return json.loads(r'{"gr\\u00f6\\u00dfe": 7}')

@app.tool
def double(size: Size, width: Width) -> int:
    return 2 * size["größe"] + width.breite_ä

sent = json.loads(r'{"size": {"gr\\u00f6\\u00dfe": 7}, "width": {"breite_\\u00e4": 1}}')
print(asyncio.run(app.call("measure")).ok, asyncio.run(app.call("double", **sent)).data)
"""

Headers = TypedDict("Headers", {"content-type": str, "request id": UUID})


def test_members_may_have_names_beyond_ascii() -> None:
    """In a new process: msgspec only finds such a name once something has encoded it."""
    command = [sys.executable, "-c", BEYOND_ASCII]

    run = subprocess.run(command, capture_output=True, text=True, check=True)

    assert run.stdout == "True 15\n"


def test_a_typeddict_may_have_names_that_are_not_identifiers() -> None:
    app = App("x")

    @app.tool
    def kind(sent: Headers) -> str:
        return f"{sent['content-type']} {sent['request id'].version}"

    given = {"content-type": "text/plain", "request id": "7d444840-9dc0-41d1-b245-5ffdce74fad2"}
    reply = asyncio.run(app.call("kind", sent=given))

    assert reply.data == "text/plain 4"
