"""Answerback's loggers."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger


def logger(name: str = "answerback") -> Logger:
    """Return a logger. The first message loads `logging`; most programs never log one."""
    import logging

    return logging.getLogger(name)
