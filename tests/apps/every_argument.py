"""An app whose tools take arguments of every kind, for the forms of the console."""

from __future__ import annotations

import datetime
import enum
from typing import Annotated, Any, Literal

import msgspec
from msgspec import Meta

from answerback import App

app = App("shop", title="Shop", version="1.2.3")


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Address(msgspec.Struct):
    street: str
    city: Annotated[str, Meta(min_length=2, description="The city.")] = "Bern"


class Card(msgspec.Struct, tag=True):
    number: Annotated[str, Meta(pattern="^[0-9]{4}$")]


class Invoice(msgspec.Struct, tag=True):
    days: Annotated[int, Meta(ge=1, le=60)] = 30


class Line(msgspec.Struct):
    item: str
    count: Annotated[int, Meta(ge=1)] = 1


class Folder(msgspec.Struct):
    name: str
    folders: list[Folder] = []


@app.tool(tags={"orders", "write"}, read_only=True)
def order(
    customer: Annotated[str, Meta(description="Who orders.", examples=["Ada", "Grace Hopper"])],
    lines: Annotated[list[Line], Meta(min_length=1, max_length=3)],
    address: Address,
    payment: Card | Invoice,
    colour: Colour = Colour.RED,
    day: datetime.date | None = None,
    gift: bool = False,
) -> str:
    """Place an order."""
    ordered = ", ".join(f"{line.count} {line.item}" for line in lines)
    place = f"{address.street} in {address.city}"
    paid = f"card {payment.number}" if isinstance(payment, Card) else f"in {payment.days} days"
    wish = f"{colour.value}{' as a gift' if gift else ''}{f' on {day}' if day else ''}"
    return f"{customer} ordered {ordered} to {place}, paid by {paid}, {wish}"


@app.tool(tags={"values"}, read_only=True)
def values(
    key: int | str = 5,
    ratio: Annotated[float | None, Meta(gt=0, lt=1)] = 0.5,
    size: Literal[1, 2, 3] = 2,
    anything: Any = None,
    data: bytes = b"",
) -> str:
    """Show which values were sent."""
    return f"sent: {[key, ratio, size, anything, data]}"


@app.tool(tags={"values"}, read_only=True)
def groups(
    pair: tuple[int, str] = (1, "a"),
    words: list[str] | None = None,
    days: set[Literal["mon", "tue", "wed"]] | None = None,
    stock: dict[str, int] | None = None,
    tree: Folder | None = None,
) -> str:
    """Show which lists and objects were sent."""
    names = tree and [tree.name, *(each.name for each in tree.folders)]
    return f"sent: {[pair, words, days, stock, names]}"


def hostile(**arguments: Any) -> str:
    """Show what was sent."""
    return f"sent: {sorted(arguments.items())}"


NAMES = {
    "type": "object",
    "properties": {
        "constructor": {"type": "string"},
        "it's <b>": {"type": "string", "title": "<img src=x>"},
        "words": {"type": ["string", "null"], "pattern": "(?P<word>c)"},
        "at": {"type": "string", "format": "date-time"},
    },
    "required": ["constructor"],
}
app.add_tool(hostile, description="Take <b>hostile</b> names.", input_schema=NAMES)

ENDLESS = {
    "type": "object",
    "properties": {
        "itself": {"$ref": "#/$defs/itself"},
        "elsewhere": {"$ref": "https://example.org/schema.json"},
        "all": {"$ref": "#/$defs/all"},
    },
    "required": ["itself", "all"],
    "$defs": {
        "itself": {"anyOf": [{"$ref": "#/$defs/itself"}, {"type": "integer"}]},
        "all": {"allOf": [{"$ref": "#/$defs/all"}], "type": "string"},
    },
}


@app.tool(input_schema=ENDLESS)
def endless(itself: int, all: str, elsewhere: Any = None) -> str:
    """Take arguments whose schema refers to itself."""
    return f"sent: {itself} {all} {elsewhere}"


@app.tool(read_only=True)
def ping() -> str:
    """Answer pong."""
    return "pong"


if __name__ == "__main__":
    app.run()
