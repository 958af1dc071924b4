"""Tools for hostile or unlucky clients: slow, cancelled, asking, exiting."""

import asyncio
import builtins
import os
import sys
import time
from pathlib import Path
from typing import Annotated, Any, Literal

from answerback import App, Ask, Context, Header

app = App("hostile", version="1.0.0")

MAX_SECONDS = 60.0
"""A tool that waits gives up after this time."""


@app.tool(inline=True)
def add(x: int, y: int) -> int:
    """Add two numbers in place."""
    return x + y


@app.tool
def add_in_thread(x: int, y: int) -> int:
    """Add two numbers in a thread."""
    return x + y


@app.tool
async def add_async(x: int, y: int) -> int:
    """Add two numbers on the event loop."""
    return x + y


@app.tool
def region(
    where: Annotated[str, Header("Region")], number: Annotated[int, Header("Number")]
) -> str:
    """Return arguments that headers mirror."""
    return f"{where} {number}"


@app.tool
def poll_cancelled(state_file: str, ctx: Context) -> str:
    """Run until the call is cancelled, and write to a file whether it was."""
    return _poll(Path(state_file), ctx, progress=False)


@app.tool
def report_progress(state_file: str, ctx: Context) -> str:
    """The same with progress and log messages, some of them after the cancellation."""
    return _poll(Path(state_file), ctx, progress=True)


def _poll(state: Path, ctx: Context, *, progress: bool) -> str:
    state.write_text("began")
    until, step = time.monotonic() + MAX_SECONDS, 0
    while time.monotonic() < until and not ctx.cancelled:
        step += 1
        if progress:
            ctx.progress(step)
        time.sleep(0.002)
    if progress:
        for more in range(1, 6):
            ctx.progress(step + more)
            ctx.log("still running", "error")
    state.write_text("cancelled" if ctx.cancelled else "ended")
    return "done"


@app.tool
async def sleep_async(state_file: str, ctx: Context, progress: bool = False) -> str:
    """Sleep on the event loop, and write to a file whether the call was cancelled."""
    state = Path(state_file)
    state.write_text("began")
    try:
        for step in range(int(MAX_SECONDS * 50)):
            if progress:
                ctx.progress(step)
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        state.write_text("cancelled")
        raise
    state.write_text("ended")
    return "done"


@app.tool
async def ignore_cancellation(state_file: str) -> str:
    """Return a result although the call was cancelled."""
    state = Path(state_file)
    state.write_text("began")
    try:
        await asyncio.sleep(MAX_SECONDS)
    except asyncio.CancelledError:
        state.write_text("cancelled")
    return "done"


@app.tool
def wait_for_file(state_file: str, until_file: str, ctx: Context) -> str:
    """Run until *until_file* exists, and write to a file whether the call was cancelled."""
    Path(state_file).write_text("began")
    until = time.monotonic() + MAX_SECONDS
    while time.monotonic() < until and not os.path.exists(until_file):
        time.sleep(0.005)
    Path(state_file).write_text("cancelled" if ctx.cancelled else "ended")
    return "done"


@app.tool
async def wait_for(path: str) -> bool:
    """Wait on the event loop until a file exists."""
    until = time.monotonic() + MAX_SECONDS
    while time.monotonic() < until and not os.path.exists(path):
        await asyncio.sleep(0.005)
    return os.path.exists(path)


@app.tool
def flood(ctx: Context, count: int, size: int) -> int:
    """Send many progress notifications, until the client has disconnected."""
    for step in range(count):
        if ctx.cancelled:
            break
        ctx.progress(step, message="x" * size)
    return count


@app.tool
def long_text(size: int) -> str:
    """Return a long text."""
    return "x" * size


@app.tool
async def exit_async() -> int:
    """Call sys.exit on the event loop."""
    sys.exit("hunter2")


@app.tool
def raise_interrupt() -> int:
    """Raise KeyboardInterrupt."""
    raise KeyboardInterrupt("hunter2")


@app.tool(inline=True)
def raise_inline(kind: str) -> int:
    """Raise an exception that usually ends more than a call."""
    raise getattr(builtins, kind, asyncio.CancelledError)("hunter2")


@app.tool
async def raise_async(kind: str) -> int:
    """Raise an exception that usually ends more than a call, on the event loop."""
    await asyncio.sleep(0)
    raise getattr(builtins, kind, asyncio.CancelledError)("hunter2")


@app.tool
async def raise_cancelled() -> int:
    """Raise CancelledError although nothing cancelled the call."""
    raise asyncio.CancelledError("hunter2")


@app.tool
def ask_before(really: Annotated[bool, Ask("Really?")]) -> bool:
    """Ask the user before the tool runs."""
    return really


@app.tool
async def ask_name(ctx: Context, greeting: str = "Hello") -> str:
    """Ask the user while the tool runs."""
    return f"{greeting}, {await ctx.elicit('Who are you?', str)}!"


@app.tool
async def ask_model(ctx: Context) -> str:
    """Ask the client's model."""
    return (await ctx.sample("Say something")).text


@app.tool
async def ask_roots(ctx: Context) -> int:
    """Ask the client for its roots."""
    return len(await ctx.roots())


@app.tool
def change_resource(times: int = 1) -> str:
    """Notify subscribers that `note://one` changed."""
    for _ in range(times):
        app.resource_changed("note://one")
    return "changed"


@app.resource("note://one", mime="text/plain")
def note() -> str:
    """A note."""
    return "one"


@app.resource("note://{shelf}/{number}")
def shelf(shelf: str, number: int) -> dict[str, Any]:
    """A note by its shelf and number."""
    return {"shelf": shelf, "number": number}


@app.prompt
def greet(name: str, tone: Literal["kind", "curt"] = "kind") -> str:
    """Greet a person."""
    return f"Greet {name}, and be {tone}."


@app.prompt(name="ask_name")
async def ask_name_for_a_prompt(ctx: Context) -> str:
    """Ask the same question as the tool of this name."""
    return await ctx.elicit("Who are you?", str)


@app.completion("greet", "name")
def complete_name(value: str) -> list[str]:
    """The names that begin with *value*."""
    return [name for name in ("ada", "alan", "grace") if name.startswith(value)]


if __name__ == "__main__":
    app.run()
