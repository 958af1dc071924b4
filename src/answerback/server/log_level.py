"""Lets the program log to stderr, as `--log-level` says."""

from __future__ import annotations

import logging


def set_up_logging(level: str | None) -> None:
    """Let every logger write to stderr from *level* up; keep the author's own handlers."""
    if level is None:
        return
    root = logging.getLogger()
    if not root.handlers:
        handler = logging.StreamHandler()
        handler.setFormatter(logging.Formatter("%(asctime)s %(levelname)s %(name)s: %(message)s"))
        root.addHandler(handler)
    root.setLevel(level.upper())
