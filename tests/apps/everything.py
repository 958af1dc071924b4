"""The cases that every wire must answer alike: good returns, bad returns, failures, prints."""

import os
import subprocess
import sys
import time
from dataclasses import dataclass, field
from datetime import date
from enum import Enum
from typing import Annotated, Any, NotRequired, TypedDict

from msgspec import Meta

from answerback import (
    App,
    Audio,
    Conflict,
    Context,
    Embedded,
    Image,
    Link,
    NotFound,
    RateLimited,
    Reply,
    Text,
    ToolError,
    Unavailable,
    failure,
    success,
)

app = App("everything", version="2.1.0")

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)


class Colour(Enum):
    RED = "red"
    GREEN = "green"


@dataclass
class Point:
    x: float
    y: float


@dataclass
class Node:
    name: str
    children: list["Node"] = field(default_factory=list)


class User(TypedDict):
    name: str
    email: NotRequired[str]


@app.tool
def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


@app.tool(inline=True)
def add_inline(x: int, y: int) -> int:
    """Add two numbers in place."""
    return x + y


@app.tool
async def add_async(x: int, y: int) -> int:
    """Add two numbers on the loop."""
    return x + y


@app.tool
def greet(name: str = "world") -> str:
    """Say hello."""
    return f"Hello, {name}! ☀"


@app.tool
def shift(point: Point, by: Annotated[float, Meta(ge=0)] = 1.0) -> Point:
    """Move a point to the right."""
    return Point(point.x + by, point.y)


@app.tool
def tree(depth: Annotated[int, Meta(ge=0, le=5)]) -> Node:
    """A tree as deep as asked for."""
    return Node(f"level {depth}", [tree(depth - 1)] if depth else [])


@app.tool
def nothing() -> None:
    """Give nothing back."""


@app.tool
def empty() -> list[int]:
    """Give an empty list back."""
    return []


@app.tool
def paint(colour: Colour, on: date, tags: list[str] | None = None) -> dict[str, str]:
    """Take an enum, a date and a list."""
    return {"colour": colour.value, "on": on.isoformat(), "tags": " ".join(tags or [])}


@app.tool
def own_text() -> Reply[Point]:
    """Give text and data."""
    return success("The point is at 1, 2.", Point(1, 2))


@app.tool
def only_text() -> Reply[Any]:
    """Give text and no data."""
    return success("Just words.")


@app.tool
def failing() -> Reply[int]:
    """Give a failure back."""
    return failure("the stove is cold", code="STOVE_COLD", details={"degrees": 4}, hint="light it")


@app.tool
def blocks() -> list[Text | Link | Embedded]:
    """Give content back."""
    return [
        Text("three blocks"),
        Link("https://example.com/a", "a", description="an a", metadata={"n": 1}),
        Embedded("file:///notes.txt", text="notes", mime="text/plain"),
    ]


@app.tool
def picture() -> Image:
    """Give a picture back."""
    return Image(PIXEL, "image/png")


@app.tool
def sound() -> Audio:
    """Give a sound back."""
    return Audio(b"RIFF\x00\x00", "audio/wav")


@app.tool
def missing_city(city: str) -> str:
    """Fail with a code of its own, as not found."""
    raise NotFound(f"no city {city!r}", code="CITY_UNKNOWN", details={"city": city})


@app.tool
def conflicting() -> None:
    """Fail as a conflict."""
    raise Conflict("somebody else was faster")


@app.tool
def limited() -> None:
    """Fail as rate limited."""
    raise RateLimited("slow down", hint="wait a second")


@app.tool
def away() -> None:
    """Fail as unavailable."""
    raise Unavailable("the database is away", retryable=False)


@app.tool
def plainly() -> None:
    """Fail without a subclass."""
    raise ToolError("it did not work")


@app.tool
def unsayable_details() -> None:
    """Fail with details that cannot be sent."""
    raise ToolError("it did not work", details={"handle": object()})


@app.tool
def leak() -> int:
    """Fail with a secret in the message."""
    raise RuntimeError("cannot connect to postgres://admin:hunter2@db/prod")


@app.tool
async def leak_async() -> int:
    """Fail with a secret in the message, on the loop."""
    raise RuntimeError("cannot connect to postgres://admin:hunter2@db/prod")


@app.tool
def leave() -> int:
    """Try to end the whole program."""
    sys.exit("hunter2")


@app.tool
def wrong_shape() -> list[Point]:
    """Give back what it does not declare."""
    return [Point(1, 2), {"x": "hunter2", "y": 2}]  # type: ignore[list-item]


@app.tool
def undeclared_key() -> User:
    """Give back a key that its type does not declare."""
    user = {"name": "ada", "password": "hunter2"}
    return user  # type: ignore[return-value]


@app.tool
def unserialisable() -> dict[str, Any]:
    """Give back what JSON has no word for."""
    return {"items": [1, {"socket": object()}]}


@app.tool
def cycle() -> list[Any]:
    """Give back a list that holds itself."""
    ring: list[Any] = [1]
    ring.append(ring)
    return ring


@app.tool
def not_a_number() -> dict[str, float | None]:
    """Give back NaN where null would do."""
    return {"a": 1.5, "b": float("nan")}


@app.tool
def infinite() -> float:
    """Give back infinity."""
    return float("inf")


@app.tool
def reply_without_data() -> Reply[int]:
    """Forget the data that it declares."""
    return success("done")


@app.tool
def loud() -> str:
    """Print, in three ways, before it answers."""
    print("printed by python")  # noqa: T201 -- what is tested
    subprocess.run(["echo", "printed by a child"], check=True)
    os.write(1, b"printed on fd 1\n")
    return "quiet"


@app.tool
def large() -> str:
    """Give back five megabytes."""
    return "x" * 5_000_000


@app.tool
def context(ctx: Context, steps: int = 2) -> str:
    """Use its context."""
    for step in range(steps):
        ctx.progress(step + 1, steps)
    return ctx.tool


@app.tool
def wait_for(path: str, seconds: float = 5) -> bool:
    """Wait until a file is there."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.path.exists(path):
            return True
        time.sleep(0.005)
    return False


if __name__ == "__main__":
    app.run()
