"""An app with a tool whose reply is larger than its budget."""

from __future__ import annotations

import os
from typing import Any, TypedDict

from answerback import App
from answerback.core.content import Link

app = App("kept")


class Row(TypedDict):
    row: int
    text: str


class Report(TypedDict):
    items: list[Row]
    log: str
    total: int


def report(rows: int = 25) -> Report:
    items: list[Row] = [{"row": row, "text": "é" * 100} for row in range(rows)]
    return {"items": items, "log": "one\ntwo\nthree", "total": rows}


def whole_of(reply: Any) -> str:
    """The URI of the whole reply, which a cut one links to."""
    assert reply.ok, reply.error
    [uri] = [block.uri for block in reply.content if isinstance(block, Link)]
    return str(uri)


@app.tool(budget=1_000)
def read_rows(rows: int = 25) -> Report:
    return report(rows)


@app.tool
def pid() -> int:
    return os.getpid()


if __name__ == "__main__":
    app.run()
