"""The app of several hosts: tasks that report, ask, and say which process ran them."""

from __future__ import annotations

import asyncio
import os
from pathlib import Path

from answerback import App, Context, Unavailable
from answerback.options import Task
from answerback.resilience import Breaker, Limit

app = App("jobs")


@app.tool(task="optional", idempotent=True)
async def job(steps: int, ctx: Context) -> int:
    """Report each step, and return the process that ran the job."""
    for step in range(steps):
        ctx.progress(step, steps)
        await asyncio.sleep(0.05)
    return os.getpid()


@app.tool(task="optional")
async def until(path: str) -> str:
    """Wait until a file is there."""
    Path(f"{path}.begun").touch()
    while not Path(path).exists():
        await asyncio.sleep(0.02)
    return "done"


@app.tool
def add(x: int, y: int) -> int:
    return x + y


@app.tool(task=Task(key=True))
def pid(n: int) -> int:
    return os.getpid()


@app.tool(task="optional", limit=Limit("3/h"))
def rare() -> None:
    return


@app.tool(breaker=Breaker("bank", failures=1, reset=3600))
def pay(succeed: bool) -> None:
    if not succeed:
        raise ConnectionRefusedError


@app.tool(task=Task(key=True))
async def down(path: str) -> str:
    """Refuse the first call, once a file is there; answer the second."""
    begun = Path(f"{path}.begun")
    if begun.exists():
        return "done"
    begun.touch()
    while not Path(path).exists():
        await asyncio.sleep(0.02)
    raise Unavailable("The service is down", retryable=True)


if __name__ == "__main__":
    app.run()
