"""An app whose tools write down each start, for clusters in which something fails.

FAULT_CLOCK moves the clock of the process by so many seconds. FAULT_LEASE is how many seconds a
claim lasts. FAULT_BOOT is the boot id that the process shows to others, as if it ran on another
machine, where its process id is one that this machine does not have.
"""

from __future__ import annotations

import asyncio
import os
import time

if moved := float(os.environ.get("FAULT_CLOCK", "0")):
    real = time.time
    # Before the imports, because some modules take the function by its name.
    time.time = lambda: real() + moved

from typing import TypedDict

from answerback.tasks import task_runner

if lease := os.environ.get("FAULT_LEASE"):
    task_runner.LEASE = float(lease)

from answerback import App, Context, Limits
from answerback.options import Task
from answerback.resilience import Limit
from answerback.tasks import task_runner as task_watch

if boot := os.environ.get("FAULT_BOOT"):
    os.getpid = lambda: 2**22 + 1
    task_watch._machine = lambda: boot  # type: ignore[assignment]

app = App("faults", limits=Limits(shutdown=5))


def note(tool: str, n: int) -> None:
    with open(os.environ["STARTS"], "a") as file:
        file.write(f"{tool} {n}\n")


@app.tool(task="required")
async def once(n: int) -> int:
    """Take effect; must never start twice."""
    note("once", n)
    await asyncio.sleep(0.3)
    return n


@app.tool(task="required", idempotent=True)
async def again(n: int) -> int:
    """May start again."""
    note("again", n)
    await asyncio.sleep(0.3)
    return n


@app.tool(task="required")
async def hold(n: int, path: str) -> int:
    """Wait until a file is there."""
    note("hold", n)
    while not os.path.exists(path):
        await asyncio.sleep(0.02)
    return n


@app.tool(task=Task(key=True))
async def pay(n: int) -> int:
    """A plain call with a key; must never start twice."""
    note("pay", n)
    return n


RATION = 400


@app.tool(limit=Limit(f"{RATION}/h"))
def rationed(n: int) -> int:
    return n


class Named(TypedDict):
    name: str


@app.tool
async def greet(ctx: Context) -> str:
    answer = await ctx.elicit("What is your name?", Named)
    return f"Hello, {answer['name']}!"


@app.tool
def add(x: int, y: int) -> int:
    return x + y


if __name__ == "__main__":
    app.run()
