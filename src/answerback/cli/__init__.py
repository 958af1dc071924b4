"""The command line."""

from .program import main, remind_to_run, run_app

__all__ = ["main", "remind_to_run", "run_app"]
