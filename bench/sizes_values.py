"""The texts and records of the size benchmark, the same for every server."""

from __future__ import annotations

from typing import Any

TEXT = "Some words of a text.\n" + "x" * 42
RECORD_BYTES = 80
"""About the size of one record in JSON."""


def repeated(size: int) -> str:
    """A text of *size* bytes."""
    return TEXT * (size // len(TEXT))


def fields(number: int) -> dict[str, Any]:
    return {"id": number, "name": f"the name of record {number}", "tags": ["a", "b"], "price": 9.5}
