"""How long a quick call over stdio waits while the server decodes or refuses a large message."""

from __future__ import annotations

import json
import subprocess
import sys
import time
from collections import defaultdict
from collections.abc import Iterator
from typing import Any

from .report import Figure, worst

ATTEMPTS = 10
SMALL, LARGE = 256_000, 4_000_000
SMALL_MS, LARGE_MS = 50, 1_000
TOOLS = {"numbers": "1", "inline_numbers": "1", "points": '{"x":1,"y":2}', "tables": "[]"}
"""The tools, and an item of the list that each takes."""
WRONG = '"wrong"'


class Client:
    """Starts the server, and sends it lines of JSON."""

    def __init__(self) -> None:
        self._process = subprocess.Popen(
            [sys.executable, "bench/stdio_waiting_app.py", "mcp"],
            stdin=subprocess.PIPE,
            stdout=subprocess.PIPE,
        )

    def longest_wait(self, large: bytes) -> tuple[float, bool]:
        """The longest time of a quick call until *large* is answered, and whether that failed."""
        self._send(large)
        longest, failed, number = 0.0, None, 0
        while failed is None:
            number += 1
            began = time.perf_counter()
            self._send(_call(number, "quick", "{}"))
            while (response := self._read())["id"] != number:
                failed = bool(response["result"]["isError"])
            longest = max(longest, time.perf_counter() - began)
        return longest, failed

    def close(self) -> None:
        assert self._process.stdin is not None
        self._process.stdin.close()
        self._process.wait(60)

    def _send(self, line: bytes) -> None:
        assert self._process.stdin is not None
        self._process.stdin.write(line + b"\n")
        self._process.stdin.flush()

    def _read(self) -> Any:
        assert self._process.stdout is not None
        return json.loads(self._process.stdout.readline())


def measure() -> list[Figure]:
    groups: dict[str, list[Figure]] = defaultdict(list)
    client = Client()
    try:
        for tool, size, is_refused in _cases():
            shown = "256 KB" if size == SMALL else "4 MB"
            figure = _figure(client, tool, size, is_refused)
            groups[f"ms beside {shown} for msgspec's types over stdio"].append(figure)
    finally:
        client.close()
    return [worst(what, figures) for what, figures in groups.items()]


def _cases() -> Iterator[tuple[str, int, bool]]:
    """The tool, the size of the message, and whether it is refused."""
    for size in (SMALL, LARGE):
        for tool in TOOLS:
            yield tool, size, False
            yield tool, size, True


def _figure(client: Client, tool: str, size: int, is_refused: bool) -> Figure:
    item = TOOLS[tool]
    items = (item + ",") * (size // (len(item) + 1)) + (WRONG if is_refused else item)
    large = _call("large", tool, f'{{"x":[{items}]}}')
    limit = SMALL_MS if size == SMALL else LARGE_MS
    waits: list[float] = []
    while len(waits) < ATTEMPTS:
        seconds, failed = client.longest_wait(large)
        if failed is not is_refused:
            raise RuntimeError(f"the large call of {tool} was not answered as it should be")
        waits.append(seconds * 1e3)
        # More attempts are only needed beside other work of the machine.
        if waits[-1] < limit / 2:
            break
    what = f"`{tool}`, {'refused' if is_refused else 'valid'}"
    return Figure(what, min(waits), limit, True, f"attempts: {len(waits)}")


def _call(id: int | str, tool: str, arguments: str) -> bytes:
    params = f'{{"name":"{tool}","arguments":{arguments}}}'
    frame = f'{{"jsonrpc":"2.0","id":{json.dumps(id)},"method":"tools/call","params":{params}}}'
    return frame.encode()
