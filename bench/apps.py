"""The tools that the benchmarks call."""

from __future__ import annotations

from dataclasses import dataclass

from answerback import App

app = App("bench")


@app.tool
def add(x: int, y: int) -> int:
    """Add two numbers in a thread."""
    return x + y


@app.tool(inline=True)
def add_inline(x: int, y: int) -> int:
    """Add two numbers on the event loop, without a thread."""
    return x + y


@app.tool
async def add_async(x: int, y: int) -> int:
    """Add two numbers in a coroutine."""
    return x + y


@dataclass
class Weather:
    temperature: float
    conditions: str
    humidity: int


@app.tool
async def weather(x: int, y: int) -> Weather:
    """Return an object of three members."""
    return Weather(22.5, "Partly cloudy", 65)


if __name__ == "__main__":
    app.run()
