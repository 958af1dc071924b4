"""Tasks and calls for a cluster in which something fails, and what became of each."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx

FINAL = ("completed", "failed", "cancelled")
TOOLS = ("once", "pay", "again", "add")
_SECONDS = 90.0
"""How long one call is repeated, or one task is waited for."""
_REPEATED = (409, 429, 502, 503)
"""The answers after which a call is repeated with the same key."""


class Load:
    """Sends numbered calls to a cluster, each until it is acknowledged; any thread may use it.

    Half of them create tasks. All but the calls of `add` have a key.
    """

    def __init__(self, url: str, starts: Path) -> None:
        self._client = httpx.Client(
            base_url=url,
            timeout=10,
            # The proxy sends each connection to another server.
            limits=httpx.Limits(max_keepalive_connections=0),
        )
        self._starts = starts
        self.tasks: dict[int, str] = {}
        """The paths of the acknowledged tasks, by number."""
        self.states: dict[int, str] = {}
        """The tasks' final states, by number."""
        self.calls: Counter[str] = Counter()
        """How many plain calls had a result, and how many were lost with their server."""
        self.refused = 0
        """How many requests got 503, because the database was away."""
        self.again = 0
        """How many tasks started more than once."""
        self.wrong: list[str] = []
        self._is_broken = False
        self._acknowledged = 0
        self._changed = threading.Condition()

    def send(self, numbers: Iterable[int], meanwhile: Callable[[], object] | None = None) -> None:
        """Send these calls, four at a time, and do something meanwhile."""
        with ThreadPoolExecutor(5) as threads:
            fault = None if meanwhile is None else threads.submit(self._strike, meanwhile)
            sent = threads.map(self._send, numbers)
            if fault is not None:
                fault.result()
            list(sent)

    def wait_for(self, count: int) -> None:
        """Wait until so many calls are acknowledged."""
        with self._changed:
            assert self._changed.wait_for(lambda: self._acknowledged >= count, _SECONDS)

    def _strike(self, fault: Callable[[], object]) -> None:
        try:
            fault()
        except BaseException:
            self._is_broken = True
            raise

    def finish(self) -> None:
        """Wait until each task has ended, and look at how; a second time nothing happens."""
        if self.states:
            return
        with ThreadPoolExecutor(4) as threads:
            outcomes = list(threads.map(self._ended, self.tasks.values()))
        starts = Counter(self._starts.read_text().splitlines())
        for n, outcome in zip(self.tasks, outcomes, strict=True):
            self.states[n] = outcome["status"]
            self._check(n, outcome, starts[f"{TOOLS[n % 4]} {n}"])
        self.again = sum(count > 1 for count in starts.values())
        for line, count in starts.items():
            if count > 1 and not line.startswith("again"):
                self.wrong.append(f"{line} started {count} times")
        self._client.close()

    def _check(self, n: int, outcome: dict[str, Any], starts: int) -> None:
        if outcome["status"] == "completed":
            is_right = starts > 0 and outcome["result"] == {"result": n}
        else:
            # Only a tool that is not idempotent may fail, and only because its worker was lost.
            lost = "may have taken effect" in str(outcome)
            is_right = outcome["status"] == "failed" and lost and TOOLS[n % 4] == "once"
        if not is_right:
            self.wrong.append(f"{TOOLS[n % 4]} {n}: {outcome}, {starts} starts")

    def _send(self, n: int) -> None:
        self._send_one(n)
        with self._changed:
            self._acknowledged += 1
            self._changed.notify_all()

    def _send_one(self, n: int) -> None:
        tool = TOOLS[n % 4]
        arguments = {"x": n, "y": 0} if tool == "add" else {"n": n}
        headers = {} if tool == "add" else {"Idempotency-Key": f"{tool}-{n}"}
        response = self._repeated(
            lambda: self._client.post(f"/functions/{tool}", json=arguments, headers=headers)
        )
        if response.status_code == 202:
            self.tasks[n] = str(httpx.URL(response.headers["Location"]).path)
        elif response.status_code == 200 and response.json() == {"result": n}:
            self.calls["answered"] += 1
        elif tool == "pay" and "may have taken effect" in response.text:
            self.calls["lost"] += 1
        else:
            self.wrong.append(f"{tool} {n}: {response.status_code} {response.text}")

    def _ended(self, path: str) -> dict[str, Any]:
        ends = monotonic() + _SECONDS
        while True:
            found: dict[str, Any] = self._repeated(lambda: self._client.get(path)).json()
            if found.get("status") in FINAL:
                break
            if monotonic() > ends:
                return {"status": "lost", "last": found}
            sleep(0.1)
        if found["status"] == "completed":
            found["result"] = self._repeated(lambda: self._client.get(f"{path}/result")).json()
        return found

    def _repeated(self, request: Callable[[], httpx.Response]) -> httpx.Response:
        """Repeat a request while servers or the database are away."""
        ends = monotonic() + _SECONDS
        while True:
            try:
                response = request()
            except httpx.HTTPError:
                assert monotonic() < ends, "no server answers"
            else:
                assert not self._is_broken, "the fault could not be made"
                self.refused += response.status_code == 503
                if response.status_code not in _REPEATED or monotonic() > ends:
                    return response
            sleep(0.1)
