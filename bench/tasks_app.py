"""The app of `bench/tasks.py`: tools that run as tasks and note when they start and end."""

import asyncio
import time

from answerback import App
from answerback.core.limits import Limits, TaskLimits
from answerback.registry.declarations import registry_of
from answerback.resilience import Limit

app = App("bench")
registry_of(app).limits = Limits(tasks=TaskLimits(queue=20_000, retention=3600))
starts: list[int] = []
ended: dict[str, float] = {}


@app.tool(task="optional")
async def stamp(n: int = 0) -> float:
    """The time at which the function started."""
    starts.append(n)
    return time.time()


@app.tool(task="optional")
async def sleep() -> None:
    """Run until it is cancelled."""
    try:
        await asyncio.sleep(60)
    finally:
        ended["sleep"] = time.time()


@app.tool(inline=True)
def plain(n: int) -> int:
    """Need nothing of the state."""
    return n


@app.tool(inline=True, limit=Limit("1000000000/s"))
def limited(n: int) -> int:
    """Count by a limit that all processes share."""
    return n


@app.tool
def counts() -> list[int]:
    """How many tasks started, how many different ones, and the latest end in microseconds."""
    return [len(starts), len(set(starts)), int(ended.get("sleep", 0) * 1e6)]


if __name__ == "__main__":
    app.run()
