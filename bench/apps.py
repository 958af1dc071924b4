"""The tools that are measured."""

from __future__ import annotations

from dataclasses import dataclass

from answerback import App

app = App("bench")


@app.tool
def add(x: int, y: int) -> int:
    """Add two numbers, in a thread as any plain function."""
    return x + y


@app.tool(inline=True)
def add_inline(x: int, y: int) -> int:
    """Add two numbers in place."""
    return x + y


@app.tool
async def add_async(x: int, y: int) -> int:
    """Add two numbers on the loop."""
    return x + y


@dataclass
class Weather:
    temperature: float
    conditions: str
    humidity: int


@app.tool
async def weather(x: int, y: int) -> Weather:
    """Tell seed 004's structured weather of a place."""
    return Weather(22.5, "Partly cloudy", 65)


if __name__ == "__main__":
    app.run()
