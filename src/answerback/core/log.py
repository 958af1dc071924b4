"""Answerback's loggers, and logging to stderr for `--log-level`.

`logging` is imported on first use: most programs log nothing.
"""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from logging import Logger


def logger(name: str = "answerback") -> Logger:
    """Return a logger."""
    import logging

    return logging.getLogger(name)


def set_up_logging(level: str | None) -> None:
    """Make every logger write to stderr at *level* and above; keep the author's own handlers."""
    if level is None:
        return
    import logging

    root = logging.getLogger()
    if not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        root.addHandler(handler)
    root.setLevel(level.upper())
