"""Shared by the drivers: the target, the calls, and the report of the answers as JSON."""

import asyncio
import json
import os
import sys
from typing import Any

WIRE = sys.argv[1]
URL = os.environ["CLIENTS_URL"]
COMMAND: list[str] = json.loads(os.environ["CLIENTS_COMMAND"])
CALLS: list[Any] = json.loads(os.environ["CLIENTS_CALLS"])


def text_of(value: Any) -> str:
    """The text in which the runner looks for the expected words."""
    dump = getattr(value, "model_dump", None)
    if dump is not None:
        value = dump(mode="json")
    elif isinstance(value, (list, tuple)):
        return " ".join(text_of(each) for each in value)
    return value if isinstance(value, str) else json.dumps(value, ensure_ascii=False, default=repr)


async def answers(call: Any) -> None:
    """Make all calls with *call*, a coroutine function, and print the answers."""
    found = []
    for tool, arguments, _ in CALLS:
        try:
            found.append(text_of(await asyncio.wait_for(call(tool, arguments), 20)))
        except Exception as exc:  # noqa: BLE001 - each client raises an exception of its own
            found.append(f"{type(exc).__name__}: {exc}")
    sys.stdout.write("ANSWERS " + json.dumps(found) + "\n")
    sys.stdout.flush()
