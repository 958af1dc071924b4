"""Records in the standard log."""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from .event import ISSUE, Event
from .sink import Entry

LOGGER = "answerback.records"


class Logging:
    """A line for each event; one about a reply with findings is a warning."""

    def __init__(self, logger: str = LOGGER) -> None:
        self._logger = logging.getLogger(logger)

    def __str__(self) -> str:
        return f"the log {self._logger.name!r}"

    def open(self) -> Logging:
        return self

    def newest(self) -> str:
        return ""

    def holds(self, hashed: str) -> bool:
        return True  # What went out cannot be asked for again.

    def write(self, batch: Sequence[Entry]) -> None:
        for entry in batch:
            log_event(self._logger, entry.event, entry.body)

    def close(self) -> None:
        pass


def log_event(logger: logging.Logger, event: Event, body: bytes) -> None:
    """A handler finds the whole event in the record's `event`."""
    extra = {"event": msgspec.to_builtins(event)}
    if event.event == ISSUE:
        issues = [issue.message for issue in event.findings]
        logger.warning("MCP response format issues in %s: %s", event.tool, issues, extra=extra)
    elif event.lost:
        logger.warning("%s", body.decode(), extra=extra)
    else:
        logger.info("%s", body.decode(), extra=extra)
