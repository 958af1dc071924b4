"""How long a quick call over HTTP waits while the server decodes or refuses a large body."""

from __future__ import annotations

import http.client
import re
import subprocess
import sys
import threading
import time
from collections import defaultdict
from collections.abc import Iterator
from contextlib import contextmanager
from typing import NamedTuple

from .report import Figure, worst

ATTEMPTS = 10
SMALL, LARGE = 256_000, 4_000_000
NATIVE_MS, PYDANTIC_MS, LARGE_MS = 50, 250, 1_000
WRONG = '"wrong"'
# As many values as pydantic's types may have, in four megabytes.
LONG_MODEL = f'{{"a":1,"b":"{"x" * 46}"}}'
HEADERS = {"Content-Type": "application/json"}


class Case(NamedTuple):
    """A tool, one item of the list that it takes, the size of the body, and the limit in ms."""

    tool: str
    item: str
    size: int
    limit: int


CASES = [
    *(
        Case(tool, item, size, limit)
        for size, limit in ((SMALL, NATIVE_MS), (LARGE, LARGE_MS))
        for tool, item in {
            "numbers": "1",
            "tables": "[]",
            "points": '{"x":1,"y":2}',
            "figures": "{}",
        }.items()
    ),
    Case("models", "{}", SMALL, PYDANTIC_MS),
    Case("model_batch", "{}", SMALL, PYDANTIC_MS),
    Case("models", LONG_MODEL, LARGE, LARGE_MS),
    Case("model_batch", LONG_MODEL, LARGE, LARGE_MS),
]


def measure() -> list[Figure]:
    groups: dict[str, list[Figure]] = defaultdict(list)
    with serving() as port:
        for case in CASES:
            types = "pydantic" if case.tool.startswith("model") else "msgspec"
            for last, status in ((case.item, 200), (WRONG, 400)):
                figure = _figure(port, case, last, status)
                groups[f"ms beside {_size(case)} for {types}'s types over HTTP"].append(figure)
    return [worst(what, figures) for what, figures in groups.items()]


@contextmanager
def serving() -> Iterator[int]:
    """Serve the app with the settings of `serve`, and give its port."""
    command = [sys.executable, "bench/waiting_app.py", "serve", "--port", "0"]
    server = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    assert server.stderr is not None
    try:
        found = None
        while found is None:
            found = re.search(r"http://127\.0\.0\.1:(\d+)", server.stderr.readline())
        yield int(found[1])
    finally:
        server.terminate()
        server.communicate(timeout=60)


def _figure(port: int, case: Case, last: str, status: int) -> Figure:
    waits: list[float] = []
    while len(waits) < ATTEMPTS:
        waits.append(_longest_wait(port, case.tool, _body(case, last), status) * 1e3)
        # More attempts are only needed beside other work of the machine.
        if waits[-1] < case.limit / 2:
            break
    outcome = "valid" if status == 200 else "refused"
    detail = f"attempts: {len(waits)}"
    return Figure(f"`{case.tool}`, {outcome}", min(waits), case.limit, True, detail)


def _size(case: Case) -> str:
    return "256 KB" if case.size == SMALL else "4 MB"


def _body(case: Case, last: str) -> bytes:
    items = f"{(case.item + ',') * (case.size // (len(case.item) + 1))}{last}"
    value = f'{{"models":[{items}]}}' if case.tool == "model_batch" else f"[{items}]"
    return f'{{"x":{value}}}'.encode()


def _longest_wait(port: int, tool: str, body: bytes, status: int) -> float:
    """The longest time that a quick call took until the large one was answered."""
    statuses: list[int] = []
    large = threading.Thread(target=lambda: statuses.append(_post(port, tool, body)))
    quick = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    quick.connect()
    large.start()
    longest = 0.0
    while large.is_alive():
        began = time.perf_counter()
        quick.request("POST", "/functions/quick", b"{}", HEADERS)
        quick.getresponse().read()
        longest = max(longest, time.perf_counter() - began)
    quick.close()
    if statuses != [status]:
        raise RuntimeError(f"the large call of {tool} was answered with {statuses}")
    return longest


def _post(port: int, tool: str, body: bytes) -> int:
    connection = http.client.HTTPConnection("127.0.0.1", port, timeout=60)
    try:
        connection.request("POST", f"/functions/{tool}", body, HEADERS)
        response = connection.getresponse()
        response.read()
        return response.status
    finally:
        connection.close()
