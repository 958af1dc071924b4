"""What was answered: each reply becomes one event, and sinks keep events.

`App(records=SQLite("audit.db"))` is all an app needs; `Records(…)` says more.
"""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .audit_decorator import audit
    from .event import Event
    from .jsonl import JSONL
    from .logging_sink import Logging
    from .otel import OpenTelemetry
    from .recorder import Records
    from .sink import Entry, Sink, Store
    from .sqlite import SQLite

__all__ = [
    "JSONL",
    "Entry",
    "Event",
    "Logging",
    "OpenTelemetry",
    "Records",
    "SQLite",
    "Sink",
    "Store",
    "audit",
]

_HOME = {
    "Entry": "sink",
    "Event": "event",
    "JSONL": "jsonl",
    "Logging": "logging_sink",
    "OpenTelemetry": "otel",
    "Records": "recorder",
    "SQLite": "sqlite",
    "Sink": "sink",
    "Store": "sink",
    "audit": "audit_decorator",
}


def __getattr__(name: str) -> Any:
    if name not in _HOME:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    from importlib import import_module

    value = getattr(import_module(f".{_HOME[name]}", __name__), name)
    globals()[name] = value
    return value
