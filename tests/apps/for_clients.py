"""The app that the official clients call: one tool for each kind of result."""

import asyncio
from typing import Annotated, TypedDict

from answerback import App, Ask, Context, Image, NotFound, Reply, success

app = App("for-clients", version="3.2.1", title="For clients")

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
def count(x: int, y: int) -> Reply[Sum]:
    """Add two numbers, with a text beside the data."""
    return success("That was easy.", {"total": x + y, "terms": [x, y]})


@app.tool(read_only=True)
def squares(n: int) -> Reply[list[int]]:
    """Show squares, with a text and a picture beside the data."""
    picture = Image(PIXEL, "image/png", alt="a curve")
    return success(f"The first {n}:", [x * x for x in range(n)], content=[picture])


@app.tool(read_only=True)
def picture() -> Image:
    """Show a picture."""
    return Image(PIXEL, "image/png")


@app.tool
def fail(city: str) -> str:
    """Fail with an error of the author."""
    raise NotFound(f"no city {city!r}", code="CITY_UNKNOWN")


_confirmed: dict[str, asyncio.Event] = {}


@app.tool
async def slow(name: str, ctx: Context) -> str:
    """Report progress, and end when the client has confirmed it."""
    _confirmed[name] = asyncio.Event()
    for step in (1, 2, 3):
        ctx.progress(step, 3, f"step {step}")
        await asyncio.sleep(0)
    await asyncio.wait_for(_confirmed[name].wait(), 60)
    return "done"


@app.tool
async def confirm(name: str) -> None:
    """Confirm the progress of `slow`, which then ends."""
    _confirmed[name].set()


@app.tool
async def greet(ctx: Context) -> str:
    """Ask for a name while the tool runs."""
    answer = await ctx.elicit("What is your name?", Named)
    return f"Hello, {answer['name']}!"


@app.tool
def welcome(name: Annotated[str, Ask("Who is there?")]) -> str:
    """Ask for a name before the tool runs."""
    return f"Welcome, {name}!"


@app.resource("test://note", mime="text/plain")
def note() -> str:
    """A note."""
    return "noted"


@app.prompt
def review(what: str) -> str:
    """Ask for a review."""
    return f"Please review {what}."


if __name__ == "__main__":
    app.run()
