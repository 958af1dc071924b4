"""Shared by the drivers: the server, the tools, and the report of what a model would see."""

import asyncio
import json
import os
import sys
from typing import Any

COMMAND: list[str] = json.loads(os.environ["MATRIX_COMMAND"])
TOOLS: list[str] = json.loads(os.environ["MATRIX_TOOLS"])
ERROR = "FLAG:failed "


def as_text(value: Any) -> str:
    """The value as it stands in the request to a model."""
    if isinstance(value, str):
        return value
    return json.dumps(value, default=_plain, ensure_ascii=False)


def _plain(value: Any) -> Any:
    dump = getattr(value, "model_dump", None)
    return dump(mode="json", by_alias=True, exclude_none=True) if dump else repr(value)


async def report(see: Any) -> None:
    """Call each tool with *see*, which returns what the model sees, and print it all."""
    found = {}
    for tool in TOOLS:
        try:
            found[tool] = as_text(await asyncio.wait_for(see(tool), 30))
        except Exception as exc:  # noqa: BLE001 - each framework raises an exception of its own
            found[tool] = f"RAISED {type(exc).__name__}: {exc}"
    sys.stdout.write("\nSEEN " + json.dumps(found) + "\n")
    sys.stdout.flush()
