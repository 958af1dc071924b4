"""What an attacker, or a client with bad luck, would call."""

import asyncio
import os
import sys
import time
from pathlib import Path
from typing import Annotated, Any, Literal

from answerback import App, Ask, Context, Header

app = App("hostile", version="1.0.0")

PATIENCE = 20.0


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
    """Add two numbers on the loop."""
    return x + y


@app.tool
def region(
    where: Annotated[str, Header("Region")], number: Annotated[int, Header("Number")]
) -> str:
    """Take arguments that also stand in headers."""
    return f"{where} {number}"


@app.tool
def watch(notes: str, ctx: Context) -> str:
    """Write down that it began, and how it ended."""
    return _watch(Path(notes), ctx, chatty=False)


@app.tool
def chatter(notes: str, ctx: Context) -> str:
    """The same, and tell of it all the while, even when nobody listens any more."""
    return _watch(Path(notes), ctx, chatty=True)


def _watch(notes: Path, ctx: Context, *, chatty: bool) -> str:
    notes.write_text("began")
    until, step = time.monotonic() + PATIENCE, 0
    while time.monotonic() < until and not ctx.cancelled:
        step += 1
        if chatty:
            ctx.progress(step)
        time.sleep(0.002)
    if chatty:
        for more in range(1, 6):
            ctx.progress(step + more)
            ctx.log("still at it", "error")
    notes.write_text("cancelled" if ctx.cancelled else "over")
    return "done"


@app.tool
async def nap(notes: str, ctx: Context, chatty: bool = False) -> str:
    """Sleep on the loop, and write down whether somebody ended it."""
    path = Path(notes)
    path.write_text("began")
    try:
        for step in range(int(PATIENCE * 50)):
            if chatty:
                ctx.progress(step)
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        path.write_text("cancelled")
        raise
    path.write_text("over")
    return "done"


@app.tool
async def insist(notes: str) -> str:
    """Go on to the end when somebody ends it."""
    path = Path(notes)
    path.write_text("began")
    try:
        await asyncio.sleep(PATIENCE)
    except asyncio.CancelledError:
        path.write_text("cancelled")
    return "done"


@app.tool
def finish(notes: str, gate: str) -> str:
    """Go on until a file is there, whoever listens."""
    Path(notes).write_text("began")
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and not os.path.exists(gate):
        time.sleep(0.005)
    Path(notes).write_text("over")
    return "done"


@app.tool
async def wait_for(path: str) -> bool:
    """Wait, on the loop, until a file is there."""
    until = time.monotonic() + PATIENCE
    while time.monotonic() < until and not os.path.exists(path):
        await asyncio.sleep(0.005)
    return os.path.exists(path)


@app.tool
def flood(ctx: Context, count: int, size: int) -> int:
    """Tell of progress, much of it."""
    for step in range(count):
        ctx.progress(step, message="x" * size)
    return count


@app.tool
def big(size: int) -> str:
    """Give much back."""
    return "x" * size


@app.tool
async def leave_async() -> int:
    """Try to end the program from the loop."""
    sys.exit("hunter2")


@app.tool
def interrupt() -> int:
    """Raise what would end the program."""
    raise KeyboardInterrupt("hunter2")


@app.tool
async def give_up() -> int:
    """Raise what only the loop should raise."""
    raise asyncio.CancelledError("hunter2")


@app.tool
def sure(really: Annotated[bool, Ask("Really?")]) -> bool:
    """Ask before it runs."""
    return really


@app.tool
async def ask_name(ctx: Context, greeting: str = "Hello") -> str:
    """Ask while it runs."""
    return f"{greeting}, {await ctx.elicit('Who are you?', str)}!"


@app.tool
async def ask_model(ctx: Context) -> str:
    """Ask the client's model."""
    return (await ctx.sample("Say something")).text


@app.tool
async def ask_roots(ctx: Context) -> int:
    """Ask where it may work."""
    return len(await ctx.roots())


@app.tool
def change(times: int = 1) -> str:
    """Tell those who listen that something changed."""
    for _ in range(times):
        app.resource_changed("note://one")
    return "changed"


@app.resource("note://one", mime="text/plain")
def note() -> str:
    """A note."""
    return "one"


@app.resource("note://{shelf}/{number}")
def shelf(shelf: str, number: int) -> dict[str, Any]:
    """A note by its place."""
    return {"shelf": shelf, "number": number}


@app.prompt
def greet(name: str, tone: Literal["kind", "curt"] = "kind") -> str:
    """Greet somebody."""
    return f"Greet {name}, and be {tone}."


@app.prompt(name="ask_name")
async def ask_name_for_a_prompt(ctx: Context) -> str:
    """Ask what the tool of the same name asks."""
    return await ctx.elicit("Who are you?", str)


@app.completion("greet", "name")
def complete_name(value: str) -> list[str]:
    """Names that begin so."""
    return [name for name in ("ada", "alan", "grace") if name.startswith(value)]


if __name__ == "__main__":
    app.run()
