"""Texts and records of a given size: over stdio, and as an ASGI application."""

from __future__ import annotations

from dataclasses import dataclass

from answerback import App
from bench.sizes_values import RECORD_BYTES, fields, repeated

app = App("bench")


@dataclass
class Record:
    id: int
    name: str
    tags: list[str]
    price: float


@dataclass
class Note:
    id: int
    text: str


@app.tool
def text(size: int) -> str:
    """Return a text of *size* bytes."""
    return repeated(size)


@app.tool
def note(size: int) -> Note:
    """Return a record with a text of *size* bytes."""
    return Note(1, repeated(size))


@app.tool
def length(text: str) -> int:
    """Return the length of *text*."""
    return len(text)


@app.tool
def records(size: int) -> list[Record]:
    """Return records of about *size* bytes."""
    return [Record(**fields(number)) for number in range(size // RECORD_BYTES)]


@app.tool(budget=20_000)
def cut_records(size: int) -> list[Record]:
    """Return as many records, of which some are sent; the rest is kept."""
    return records(size)


site = app.asgi()
