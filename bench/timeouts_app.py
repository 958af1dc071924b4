"""Tools that do not end by themselves."""

from __future__ import annotations

import asyncio
import threading

from answerback import App

SECONDS = 0.5
app = App("bench")


@app.tool(read_only=True)
async def wait() -> None:
    """Wait until the call is cancelled."""
    await asyncio.Event().wait()


@app.tool(timeout=SECONDS)
async def limited() -> None:
    """Wait until the time-out of the tool."""
    await asyncio.Event().wait()


@app.tool(timeout=SECONDS)
def limited_in_thread() -> None:
    """Wait for longer than the time-out of the tool, in a thread."""
    threading.Event().wait(2 * SECONDS)


site = app.asgi()
if __name__ == "__main__":
    app.run()
