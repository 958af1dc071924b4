"""An app whose replies are of each sort that the console shows: the tests call its tools."""

from __future__ import annotations

import struct
import zlib
from collections.abc import Iterator
from dataclasses import dataclass
from typing import Annotated

from answerback import App, Image, NotFound, Reply, success

app = App("cities", title="Cities of the North", version="1.4.0")
POPULATION = {"Oslo": 717_710, "Bergen": 291_940, "Tromsø": 78_745}


@dataclass
class City:
    name: str
    country: str
    population: int


@app.tool(read_only=True, raises=[NotFound])
def city(name: Annotated[str, "The name of a city, such as Oslo."]) -> Reply[City]:
    """Find a city and its population.

    Names are compared without regard to case.
    """
    known = {each.casefold(): each for each in POPULATION}
    found = known.get(name.casefold())
    if found is None:
        raise NotFound(f"There is no city {name}", hint=f"try one of {', '.join(POPULATION)}")
    text = f"{found} has {POPULATION[found]:,} inhabitants."
    return success(text, City(found, "Norway", POPULATION[found]))


@app.tool(title="Visit a city")
def visit(name: str) -> dict[str, int]:
    """Count one more visit of a city."""
    VISITS[name] = VISITS.get(name, 0) + 1
    return {name: VISITS[name]}


VISITS: dict[str, int] = {}


@app.tool(read_only=True, budget=700)
def streets() -> list[str]:
    """List the streets of Oslo, which are too many for a model."""
    return [f"Street number {number} of Oslo" for number in range(60)]


@app.tool(read_only=True, budget=700)
def harbours() -> Iterator[str]:
    """List the harbours, page by page."""
    for number in range(60):
        yield f"Harbour number {number} of Norway"


@app.tool(read_only=True)
def register() -> list[str]:
    """List everybody in Oslo, without a budget."""
    return [f"Person number {number} of Oslo" for number in range(3_000)]


@app.tool(read_only=True)
def ferry() -> str:
    """Find a ferry; only the words of the reply say that there is none."""
    return "Error: no ferry today"


@app.tool(read_only=True)
def flag() -> Image:
    """Show a flag as an image."""
    return Image(_png(), "image/png", alt="a flag")


def _png() -> bytes:
    """A red picture of 60 x 40 points."""

    def chunk(kind: bytes, data: bytes) -> bytes:
        checked = kind + data
        return struct.pack(">I", len(data)) + checked + struct.pack(">I", zlib.crc32(checked))

    header = struct.pack(">IIBBBBB", 60, 40, 8, 2, 0, 0, 0)
    rows = zlib.compress((b"\0" + b"\xba\x0c\x2f" * 60) * 40)
    parts = chunk(b"IHDR", header) + chunk(b"IDAT", rows) + chunk(b"IEND", b"")
    return b"\x89PNG\r\n\x1a\n" + parts


if __name__ == "__main__":
    app.run()
