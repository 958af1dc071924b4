"""The app of `bench/tasks_app.py` on fastmcp-tasks, with its own store in memory."""

import asyncio
import sys
import time

from fastmcp import FastMCP
from fastmcp_tasks import TasksExtension  # type: ignore[import-not-found]  # optional

app = FastMCP("bench")
app.add_extension(TasksExtension(url="memory://"))
starts: list[int] = []
ended: dict[str, float] = {}


@app.tool(task=True)
async def stamp(n: int = 0) -> float:
    starts.append(n)
    return time.time()


@app.tool(task=True)
async def sleep() -> None:
    try:
        await asyncio.sleep(60)
    finally:
        ended["sleep"] = time.time()


@app.tool
def counts() -> list[int]:
    return [len(starts), len(set(starts)), int(ended.get("sleep", 0) * 1e6)]


if __name__ == "__main__":
    app.run("http", host="127.0.0.1", port=int(sys.argv[1]), show_banner=False)
