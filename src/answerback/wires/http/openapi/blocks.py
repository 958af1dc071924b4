"""How schemas are put together, and what refers to the shared ones."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Schema = dict[str, Any]

ROOT = "#/components/schemas/"


def ref(name: str) -> Schema:
    return {"$ref": ROOT + name}


def record(properties: Schema, required: Sequence[str] | None = None) -> Schema:
    """An object with these members, all of them required unless *required* says which."""
    names = list(properties if required is None else required)
    return {"type": "object", "properties": properties, "required": names}
