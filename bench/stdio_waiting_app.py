"""Tools that take large arguments over stdio, and a quick one beside them."""

from __future__ import annotations

from dataclasses import dataclass

from answerback import App

app = App("bench")


@dataclass
class Point:
    x: int
    y: int


@app.tool(inline=True)
def quick() -> int:
    """Return at once."""
    return 1


@app.tool
def numbers(x: list[int]) -> int:
    """Count numbers."""
    return len(x)


@app.tool(inline=True)
def inline_numbers(x: list[int]) -> int:
    """Count numbers without a thread."""
    return len(x)


@app.tool
def points(x: list[Point]) -> int:
    """Count records."""
    return len(x)


@app.tool
def tables(x: list[list[int]]) -> int:
    """Count tables."""
    return len(x)


app.run()
