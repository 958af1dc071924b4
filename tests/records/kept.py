"""What tests of records share."""

from __future__ import annotations

import threading
from collections.abc import Sequence
from pathlib import Path

from answerback import App
from answerback.records import Entry, Event, Records
from answerback.records.reader import Kept, decode, read

BOUND = 20.0


class Memory:
    """A sink that keeps entries, and can be made to fail or to hang."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.failure: Exception | None = None
        self.failed = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()

    def __str__(self) -> str:
        return "memory"

    def open(self) -> Memory:
        return self

    def newest(self) -> str:
        return self.entries[-1].hash if self.entries else ""

    def holds(self, hashed: str) -> bool:
        return any(entry.hash == hashed for entry in self.entries)

    def write(self, batch: Sequence[Entry]) -> None:
        self.entered.set()
        self.gate.wait(BOUND)
        if self.failure is not None:
            self.failed.set()
            raise self.failure
        self.entries += batch

    def close(self) -> None:
        pass

    @property
    def replies(self) -> list[Event]:
        return [entry.event for entry in self.entries if entry.event.is_reply]

    @property
    def lost(self) -> int:
        return sum(entry.event.lost for entry in self.entries)


def app_with(records: Records) -> App:
    app = App("test", records=records)

    @app.tool(inline=True)
    def add(x: int, y: int) -> int:
        return x + y

    @app.tool(inline=True)
    def fail() -> int:
        raise RuntimeError("password=hunter2")

    @app.tool(inline=True)
    def echo(text: str) -> str:
        return text

    return app


def events_in(path: Path) -> list[Event]:
    events = [decode(kept) for kept in read(str(path)) if isinstance(kept, Kept)]
    return [event for event in events if event is not None]


def replies_in(path: Path) -> list[Event]:
    return [event for event in events_in(path) if event.is_reply]
