"""An app whose tool keeps a whole reply, and returns where it is."""

from __future__ import annotations

import os

import msgspec

from answerback import App
from answerback.calls.call import Call
from answerback.calls.runtime import Runtime
from answerback.calls.whole_replies import owner_of_call
from answerback.tools.context import CURRENT

app = App("kept")


def report(rows: int, size: int = 10) -> bytes:
    """The whole reply: a list, a text and a number."""
    items = [{"row": row, "text": "é" * size} for row in range(rows)]
    return msgspec.json.encode({"items": items, "log": "one\ntwo\nthree", "total": rows})


async def keep(body: bytes) -> str:
    """Keep a whole reply for the caller, as the call path does."""
    call = CURRENT.get()
    assert isinstance(call, Call)
    assert isinstance(call.runtime, Runtime)
    uri = await call.runtime.wholes.keep(body, owner_of_call(call))
    assert uri is not None
    return uri


@app.tool(budget=1_000)
async def read_rows(rows: int) -> str:
    return await keep(report(rows))


@app.tool
def pid() -> int:
    return os.getpid()


if __name__ == "__main__":
    app.run()
