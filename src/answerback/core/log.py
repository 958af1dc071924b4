"""The loggers of Answerback."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger


def logger(name: str = "answerback") -> Logger:
    """Return a logger. `logging` is loaded by the first message, which most programs never log."""
    import logging

    return logging.getLogger(name)
