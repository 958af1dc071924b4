"""The app that the tests of the client connect to, over every transport."""

from __future__ import annotations

import asyncio
import os
import sys
import time
from pathlib import Path

from answerback import App, Context, NotFound, Unavailable

app = App("served", description="Tools for the tests of the client.")
RUNS = os.environ.get("SERVED_RUNS", "")
"""A file that gets a line for each run of `count` and `count_safely`."""


@app.tool
def add(x: int, y: int) -> int:
    return x + y


@app.tool
def missing() -> str:
    raise NotFound("there is no such city", details={"city": "Atlantis"})


@app.tool
async def wait(seconds: float, ctx: Context) -> str:
    """Wait, and note in the file of runs when the call is cancelled."""
    ctx.progress(0)
    try:
        await asyncio.sleep(seconds)
    except asyncio.CancelledError:
        note("cancelled")
        raise
    return "waited"


@app.tool
def crash() -> str:
    note("crash")
    sys.stderr.write("the disk is on fire\n")
    sys.stderr.flush()
    os._exit(3)


@app.tool(read_only=True)
def crash_once() -> str:
    """End the process at the first run only."""
    note("crash_once")
    if Path(RUNS).read_text().count("crash_once") == 1:
        os._exit(3)
    return "done"


@app.tool
def record() -> str:
    """Note a run; the tool is not safe to repeat."""
    note("record")
    return "recorded"


@app.tool
async def begin(ctx: Context) -> str:
    """Note a run that has no end; the tool is not safe to repeat."""
    note("begin")
    ctx.progress(0)
    await asyncio.sleep(60)
    return "ended"


@app.tool(read_only=True)
async def begin_safely(ctx: Context) -> str:
    """Note a run; only the first one has no end."""
    note("safely")
    ctx.progress(0)
    await asyncio.sleep(60 if Path(RUNS).read_text().count("safely") == 1 else 0)
    return "ended"


@app.tool
def touch(uri: str) -> str:
    app.resource_changed(uri)
    return "touched"


@app.tool
async def steps(ctx: Context) -> str:
    ctx.progress(1, 2, "half")
    ctx.log("a log line", "warning")
    ctx.progress(2, 2, "whole")
    return "done"


@app.tool
async def greet(ctx: Context) -> str:
    name = await ctx.elicit("Your name?", str)
    return f"Hello {name}"


@app.tool(read_only=True)
async def greet_in_vain(ctx: Context) -> str:
    await ctx.elicit("Your name?", str)
    raise Unavailable("no greetings today")


@app.tool
async def think(ctx: Context) -> str:
    return (await ctx.sample("Say something")).text


@app.tool
async def folders(ctx: Context) -> str:
    return " ".join(root.uri for root in await ctx.roots())


@app.tool
def grow() -> str:
    """Add a tool, so that the list of tools changes."""
    app.add_tool(lambda: "grown", name=f"grown{len(app.tools)}", description="A new tool.")
    return "grown"


@app.resource("note://{name}")
def note_text(name: str) -> str:
    return f"note {name}"


@app.prompt
def review(code: str) -> str:
    """Ask for a review."""
    return f"Review {code}"


def note(line: str) -> None:
    if RUNS:
        with open(RUNS, "a") as file:
            file.write(f"{line} {time.monotonic()}\n")


if __name__ == "__main__":
    app.run()
