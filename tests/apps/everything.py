"""The cases that every wire must answer equally: valid and invalid results, failures, output."""

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
    Limits,
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

app = App("everything", version="2.1.0", limits=Limits(threads=256))

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
    """Add two numbers on the event loop."""
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
    """Return a tree of that depth."""
    return Node(f"level {depth}", [tree(depth - 1)] if depth else [])


@app.tool
def nothing() -> None:
    """Return nothing."""


@app.tool
def empty() -> list[int]:
    """Return an empty list."""
    return []


@app.tool
def paint(colour: Colour, on: date, tags: list[str] | None = None) -> dict[str, str]:
    """Take an enum, a date and a list."""
    return {"colour": colour.value, "on": on.isoformat(), "tags": " ".join(tags or [])}


@app.tool
def own_text() -> Reply[Point]:
    """Return text and data."""
    return success("The point is at 1, 2.", Point(1, 2))


@app.tool
def only_text() -> Reply[Any]:
    """Return text without data."""
    return success("Just words.")


@app.tool
def failing() -> Reply[int]:
    """Return a failure."""
    return failure("the stove is cold", code="STOVE_COLD", details={"degrees": 4}, hint="light it")


@app.tool
def blocks() -> list[Text | Link | Embedded]:
    """Return content blocks."""
    return [
        Text("three blocks"),
        Link("https://example.com/a", "a", description="an a", metadata={"n": 1}),
        Embedded("file:///notes.txt", text="notes", mime="text/plain"),
    ]


@app.tool
def picture() -> Image:
    """Return an image."""
    return Image(PIXEL, "image/png")


@app.tool
def sound() -> Audio:
    """Return audio."""
    return Audio(b"RIFF\x00\x00", "audio/wav")


@app.tool
def missing_city(city: str) -> str:
    """Fail with NotFound and a code of its own."""
    raise NotFound(f"no city {city!r}", code="CITY_UNKNOWN", details={"city": city})


class ErrorCode(Enum):
    ENTITY_EXISTS = "ENTITY_EXISTS"


@app.tool
def entity_exists() -> None:
    """Fail with a member of an Enum as the code."""
    raise ToolError("there is one", ErrorCode.ENTITY_EXISTS)


@app.tool
def conflicting() -> None:
    """Fail with Conflict."""
    raise Conflict("somebody else was faster")


@app.tool
def limited() -> None:
    """Fail with RateLimited."""
    raise RateLimited("slow down", hint="wait a second")


@app.tool
def away() -> None:
    """Fail with Unavailable."""
    raise Unavailable("the database is away", retryable=False)


@app.tool
def plainly() -> None:
    """Fail with ToolError itself."""
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
    """Fail with a secret in the message, on the event loop."""
    raise RuntimeError("cannot connect to postgres://admin:hunter2@db/prod")


@app.tool
def leave() -> int:
    """Call sys.exit."""
    sys.exit("hunter2")


@app.tool
def wrong_shape() -> list[Point]:
    """Return a list that differs from its return type."""
    return [Point(1, 2), {"x": "hunter2", "y": 2}]  # type: ignore[list-item]


@app.tool
def undeclared_key() -> User:
    """Return a key that its return type does not declare."""
    user = {"name": "ada", "password": "hunter2"}
    return user  # type: ignore[return-value]


@app.tool
def unserialisable() -> dict[str, Any]:
    """Return an object that cannot be JSON."""
    return {"items": [1, {"socket": object()}]}


@app.tool
def cycle() -> list[Any]:
    """Return a list that contains itself."""
    ring: list[Any] = [1]
    ring.append(ring)
    return ring


@app.tool
def not_a_number() -> dict[str, float | None]:
    """Return NaN where the type allows null."""
    return {"a": 1.5, "b": float("nan")}


@app.tool
def infinite() -> float:
    """Return infinity."""
    return float("inf")


@app.tool
def reply_without_data() -> Reply[int]:
    """Return a reply without the data that it declares."""
    return success("done")


@app.tool
def loud() -> str:
    """Print in three ways, then return."""
    print("printed by python")  # noqa: T201 -- what is tested
    subprocess.run(["echo", "printed by a child"], check=True)
    os.write(1, b"printed on fd 1\n")
    return "quiet"


@app.tool
def large() -> str:
    """Return five megabytes."""
    return "x" * 5_000_000


@app.tool
def context(ctx: Context, steps: int = 2) -> str:
    """Use its context."""
    for step in range(steps):
        ctx.progress(step + 1, steps)
    return ctx.tool


@app.tool
def wait_for(path: str, seconds: float = 60) -> bool:
    """Wait until a file exists."""
    until = time.monotonic() + seconds
    while time.monotonic() < until:
        if os.path.exists(path):
            return True
        time.sleep(0.005)
    return False


if __name__ == "__main__":
    app.run()
