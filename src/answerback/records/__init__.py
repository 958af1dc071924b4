"""Records of replies: each reply becomes one event, and sinks store the events.

Pass a sink to an app, as in `App(records=SQLite("audit.db"))`, or `Records(…)` with options. The
public names are loaded on first use.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING, Any

if TYPE_CHECKING:
    from .audit_decorator import audit
    from .event import Entry, Event, Sink, Store
    from .jsonl import JSONL, Logging
    from .otel import OpenTelemetry
    from .recorder import Records
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

_MODULES = {
    "Entry": "event",
    "Event": "event",
    "JSONL": "jsonl",
    "Logging": "jsonl",
    "OpenTelemetry": "otel",
    "Records": "recorder",
    "SQLite": "sqlite",
    "Sink": "event",
    "Store": "event",
    "audit": "audit_decorator",
}


def __getattr__(name: str) -> Any:
    if name not in _MODULES:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f".{_MODULES[name]}", __name__), name)
    globals()[name] = value
    return value
