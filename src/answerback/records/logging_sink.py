"""Records in the standard log.

A separate module, because it imports logging, which other sinks do not need.
"""

from __future__ import annotations

import logging
from collections.abc import Sequence

import msgspec

from .event import ISSUE, Event
from .sink import Entry, WriteOnlySink

LOGGER = "answerback.records"


class Logging(WriteOnlySink):
    """A sink that logs a line for each event; for a reply with findings, a warning.

    *logger* is a logger or its name.
    """

    def __init__(self, logger: str | logging.Logger = LOGGER) -> None:
        self._logger = logging.getLogger(logger) if isinstance(logger, str) else logger

    def __str__(self) -> str:
        return f"the log {self._logger.name!r}"

    def write(self, batch: Sequence[Entry]) -> None:
        for entry in batch:
            log_event(self._logger, entry.event, entry.body)


def log_event(logger: logging.Logger, event: Event, body: bytes) -> None:
    """Log *event*; the log record has the whole event in its attribute `event`."""
    extra = {"event": msgspec.to_builtins(event)}
    if event.event == ISSUE:
        issues = [issue.message for issue in event.findings]
        logger.warning("MCP response format issues in %s: %s", event.tool, issues, extra=extra)
    elif event.lost:
        logger.warning("%s", body.decode(), extra=extra)
    else:
        logger.info("%s", body.decode(), extra=extra)
