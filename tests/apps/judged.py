"""What the official clients are shown: one tool for each thing that a client must read."""

import asyncio
from typing import Annotated, TypedDict

from answerback import App, Ask, Context, Image, NotFound

app = App("judged", version="3.2.1", title="The judged")

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


class Sum(TypedDict):
    total: int
    terms: list[int]


class Named(TypedDict):
    name: str


@app.tool(read_only=True)
def hello() -> str:
    """Say hello."""
    return "Hello, žluťoučký kůň!"


@app.tool(read_only=True)
def add(x: int, y: int) -> Sum:
    """Add two numbers."""
    return {"total": x + y, "terms": [x, y]}


@app.tool(read_only=True)
def picture() -> Image:
    """Show a picture."""
    return Image(PIXEL, "image/png")


@app.tool
def fail(city: str) -> str:
    """Fail, as an author does."""
    raise NotFound(f"no city {city!r}", code="CITY_UNKNOWN")


_heard: dict[str, asyncio.Event] = {}


@app.tool
async def slow(name: str, ctx: Context) -> str:
    """Say how far it has come, and end when the client says that it has heard."""
    _heard[name] = asyncio.Event()
    for step in (1, 2, 3):
        ctx.progress(step, 3, f"step {step}")
        await asyncio.sleep(0)
    await asyncio.wait_for(_heard[name].wait(), 10)
    return "done"


@app.tool
async def heard(name: str) -> None:
    """Let `slow` end."""
    _heard[name].set()


@app.tool
async def greet(ctx: Context) -> str:
    """Ask for a name while it runs."""
    answer = await ctx.elicit("What is your name?", Named)
    return f"Hello, {answer['name']}!"


@app.tool
def welcome(name: Annotated[str, Ask("Who is there?")]) -> str:
    """Ask for a name before it runs."""
    return f"Welcome, {name}!"


@app.resource("judged://note", mime="text/plain")
def note() -> str:
    """A note."""
    return "noted"


@app.prompt
def review(what: str) -> str:
    """Have something reviewed."""
    return f"Please review {what}."


if __name__ == "__main__":
    app.run()
