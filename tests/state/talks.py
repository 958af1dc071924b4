"""The app of sessions on several hosts: tools that ask, wait, change a resource, and are disabled.

Other servers run `application`, if the module is imported with a state in the environment.
"""

from __future__ import annotations

import asyncio
import os
from pathlib import Path
from typing import TypedDict

from answerback import App, Context

app = App("talks")


class Named(TypedDict):
    name: str


@app.tool
def pid() -> int:
    return os.getpid()


@app.tool
async def greet(ctx: Context) -> str:
    answer = await ctx.elicit("What is your name?", Named)
    return f"Hello, {answer['name']}!"


@app.tool
async def until(path: str) -> int:
    """Wait until a file is there; a cancelled call leaves another file."""
    Path(f"{path}.begun").touch()
    try:
        while not Path(path).exists():
            await asyncio.sleep(0.02)
    except asyncio.CancelledError:
        Path(f"{path}.cancelled").touch()
        raise
    return os.getpid()


@app.tool
def shout(ctx: Context) -> None:
    ctx.log("quiet", "debug")


@app.resource("note://{name}")
def note(name: str) -> str:
    return name


@app.tool
def change(name: str) -> None:
    app.resource_changed(f"note://{name}")


@app.tool
def extra() -> str:
    return "extra"


@app.tool
def set_extra(on: bool) -> None:
    (app.enable if on else app.disable)("extra")


if __name__ == "__main__":
    app.run()
elif "ANSWERBACK_STATE" in os.environ:
    application = app.asgi()
