"""A sink in memory, an app to record, and readers of recorded files, for the tests of records."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence
from pathlib import Path

from answerback import App
from answerback.records import Entry, Event, Records
from answerback.records.reader import StoredRecord, decode, read

TIMEOUT = 60.0


class MemorySink:
    """A sink that keeps entries in a list; a test can make it fail or hang."""

    def __init__(self) -> None:
        self.entries: list[Entry] = []
        self.failure: Exception | None = None
        self.failed = threading.Event()
        self.gate = threading.Event()
        self.gate.set()
        self.entered = threading.Event()
        self.written = threading.Event()

    def __str__(self) -> str:
        return "memory"

    def open(self) -> MemorySink:
        return self

    def newest(self) -> str:
        return self.entries[-1].hash if self.entries else ""

    def holds(self, record_hash: str) -> bool:
        return any(entry.hash == record_hash for entry in self.entries)

    def write(self, batch: Sequence[Entry]) -> None:
        self.entered.set()
        self.gate.wait(TIMEOUT)
        if self.failure is not None:
            self.failed.set()
            raise self.failure
        self.entries += batch
        self.written.set()

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


def call_add(app: App, times: int = 1) -> None:
    """Call the tool `add`, and assert that every call is answered in time."""

    async def run() -> None:
        for number in range(times):
            reply = await asyncio.wait_for(app.call("add", x=number, y=1), TIMEOUT)
            assert reply.data == number + 1

    asyncio.run(run())


def events_in(path: Path) -> list[Event]:
    records = [record for record in read(str(path)) if isinstance(record, StoredRecord)]
    return [event for event in map(decode, records) if event is not None]


def replies_in(path: Path) -> list[Event]:
    return [event for event in events_in(path) if event.is_reply]
