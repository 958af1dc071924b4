"""The app that the clients of others call: each kind of argument and result, and each failure."""

from __future__ import annotations

import base64
import time
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, Literal

from pydantic import BaseModel

from answerback import App, Ask, Context, Image, Link, NotFound, Reply, Text, success

app = App("clients", version="1.2.3", title="For the clients of others")

PIXEL = bytes.fromhex(
    "89504e470d0a1a0a0000000d4948445200000001000000010806000000"
    "1f15c4890000000d49444154789c6360606060000000050001a5f645400000000049454e44ae426082"
)
PIXEL_BASE64 = base64.b64encode(PIXEL).decode()
REPORT = "https://example.com/report"


@dataclass
class Product:
    sku: str
    price: float
    tags: list[str]


class Address(BaseModel):
    street: str
    city: str = "Oslo"


class Customer(BaseModel):
    name: str
    home: Address


@app.tool(read_only=True)
def nothing() -> None:
    """Do nothing."""


@app.tool(read_only=True)
def hello() -> str:
    """Say hello."""
    return "Hello, žluťoučký kůň!"


@app.tool(read_only=True)
def add(x: int, y: int = 3) -> int:
    """Add two numbers."""
    return x + y


@app.tool
def stats(values: list[float]) -> dict[str, float]:
    """Compute the sum and the mean of numbers."""
    return {"sum": sum(values), "mean": sum(values) / len(values)}


@app.tool
def product(sku: str) -> Product:
    """Look up a product."""
    if sku == "none":
        details = {"near": ["A1", "A2"]}
        raise NotFound("no product none", code="SKU_UNKNOWN", details=details, hint="try A1")
    return Product(sku, 9.5, ["new"])


@app.tool
def products(count: int) -> list[Product]:
    """List products."""
    return [Product(f"A{number}", number, []) for number in range(count)]


@app.tool
def customer(who: Customer) -> Customer:
    """Return a customer."""
    return who


@app.tool
def maybe(value: str | None = None) -> str | None:
    """Return a text or nothing."""
    return value


@app.tool
def paint(colour: Literal["red", "green"], on: date) -> str:
    """Paint on a day."""
    return f"{colour} {on}"


@app.tool
def divide(number: int, by: int) -> tuple[int, int]:
    """Divide with a remainder."""
    return divmod(number, by)


@app.tool
def anything(value: Any) -> Any:
    """Return the value."""
    return value


@app.tool
def both() -> Reply[int]:
    """Return a text beside the data."""
    return success("There are seven.", 7)


@app.tool
def picture() -> Image:
    """Return a picture."""
    return Image(PIXEL, "image/png")


@app.tool
def report() -> list[Text | Link]:
    """Return a text and a link."""
    return [Text("See the report."), Link(REPORT, "report")]


@app.tool
def broken() -> int:
    """Fail with an exception that no caller may see."""
    raise RuntimeError("the password is hunter2")


@app.tool(timeout=0.05)
def too_slow() -> str:
    """Take longer than its time-out."""
    time.sleep(0.3)
    return "late"


@app.tool
def wipe(folder: str, sure: Annotated[bool, Ask("Delete everything in it?")]) -> str:
    """Ask before it deletes."""
    return f"{folder} deleted" if sure else "kept"


@app.tool
def steps(ctx: Context, count: int = 3) -> int:
    """Report progress and log messages."""
    for step in range(count):
        ctx.progress(step + 1, count)
        ctx.log(f"step {step + 1}")
    return count


@app.resource("shop://hours", mime="text/plain")
def hours() -> str:
    """The opening hours."""
    return "9 to 5"


@app.prompt
def review(what: str) -> str:
    """Ask for a review."""
    return f"Please review {what}."


if __name__ == "__main__":
    app.run()
