"""Texts and records of a given size: over stdio, and as an ASGI application."""

from __future__ import annotations

from dataclasses import dataclass

from answerback import App
from bench.sizes_values import RECORD_BYTES, TEXT, fields

app = App("bench")


@dataclass
class Record:
    id: int
    name: str
    tags: list[str]
    price: float


@app.tool
def text(size: int) -> str:
    """Return a text of *size* bytes."""
    return TEXT * (size // len(TEXT))


@app.tool
def records(size: int) -> list[Record]:
    """Return records of about *size* bytes."""
    return [Record(**fields(number)) for number in range(size // RECORD_BYTES)]


site = app.asgi()
