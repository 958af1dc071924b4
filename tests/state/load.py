"""Tasks and calls for a cluster in which something fails, and what became of each."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Iterable, Sequence
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path
from time import monotonic, sleep
from typing import Any

import httpx
from tests.state.cluster import FINAL

TOOLS = ("once", "pay", "again", "add")
"""The tools that are called in turn: half of the calls make tasks."""
MANY_CALLS = ("once", "again", *("add", "pay") * 6, *("add", "rationed") * 4)
"""The same with ten times as many calls as tasks."""
_KEYED = ("once", "again", "pay")
_SECONDS = 90.0
"""How long one call is repeated, or one task is waited for."""
_REPEATED = (409, 429, 502, 503)
"""The answers after which a call is repeated with the same key."""


class Load:
    """Sends numbered calls to a cluster, each until it is acknowledged; any thread may use it.

    The calls that could do harm if they ran twice have a key.
    """

    def __init__(self, url: str, starts: Path, tools: Sequence[str] = TOOLS) -> None:
        self._client = httpx.Client(
            base_url=url,
            timeout=10,
            # The proxy sends each connection to another server.
            limits=httpx.Limits(max_keepalive_connections=0),
        )
        self._starts = starts
        self._tools = tools
        self.tasks: dict[int, str] = {}
        """The paths of the acknowledged tasks, by number."""
        self.states: dict[int, str] = {}
        """The tasks' final states, by number."""
        self.calls: Counter[str] = Counter()
        """How many plain calls had a result, were lost with their server, or were over a limit."""
        self.away = 0
        """How many requests got 503, because the database was away."""
        self.again = 0
        """How many tasks started more than once."""
        self.wrong: list[str] = []
        self._broken: str | None = None
        """Why no more calls are sent."""
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
            self.give_up("the fault could not be made")
            raise

    def give_up(self, reason: str) -> None:
        """Let all calls and tasks fail that have no answer yet."""
        self._broken = reason

    def finish(self) -> None:
        """Wait until each task has ended, and look at how; a second time nothing happens."""
        if self.states:
            return
        with ThreadPoolExecutor(4) as threads:
            outcomes = list(threads.map(self._ended, self.tasks.values()))
        starts = Counter(self._starts.read_text().splitlines())
        for n, outcome in zip(self.tasks, outcomes, strict=True):
            self.states[n] = outcome["status"]
            self._check(n, outcome, starts[f"{self._tool(n)} {n}"])
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
            is_right = outcome["status"] == "failed" and lost and self._tool(n) == "once"
        if not is_right:
            self.wrong.append(f"{self._tool(n)} {n}: {outcome}, {starts} starts")

    def _tool(self, n: int) -> str:
        return self._tools[n % len(self._tools)]

    def _send(self, n: int) -> None:
        outcome = self._send_one(n)
        with self._changed:
            if outcome is not None:
                self.calls[outcome] += 1
            self._acknowledged += 1
            self._changed.notify_all()

    def _send_one(self, n: int) -> str | None:
        """Send one call; return what became of it, unless it has made a task."""
        tool = self._tool(n)
        arguments = {"x": n, "y": 0} if tool == "add" else {"n": n}
        headers = {"Idempotency-Key": f"{tool}-{n}"} if tool in _KEYED else {}
        response = self._repeated(
            lambda: self._client.post(f"/functions/{tool}", json=arguments, headers=headers),
            may_be_refused=tool == "rationed",
        )
        if response.status_code == 202:
            self.tasks[n] = str(httpx.URL(response.headers["Location"]).path)
            return None
        if response.status_code == 200 and response.json() == {"result": n}:
            return "passed" if tool == "rationed" else "answered"
        if response.status_code == 429:
            return "refused"
        if tool == "pay" and "may have taken effect" in response.text:
            return "lost"
        self.wrong.append(f"{tool} {n}: {response.status_code} {response.text}")
        return "wrong"

    def _note_refusal(self, response: httpx.Response) -> None:
        """Count an answer without the database, which plain calls do not need."""
        if response.status_code != 503:
            return
        self.away += 1
        path = response.request.url.path
        needs_it = not path.endswith(("/add", "/rationed"))
        if "Retry-After" not in response.headers or ("database" in response.text and not needs_it):
            self.wrong.append(f"{path}: {response.status_code} {response.text}")

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

    def _repeated(
        self, request: Callable[[], httpx.Response], *, may_be_refused: bool = False
    ) -> httpx.Response:
        """Repeat a request while servers or the database are away, or a queue is full."""
        ends = monotonic() + _SECONDS
        while True:
            assert self._broken is None, self._broken
            try:
                response = request()
            except httpx.HTTPError:
                assert monotonic() < ends, "no server answers"
            else:
                self._note_refusal(response)
                is_refused = may_be_refused and response.status_code == 429
                if is_refused or response.status_code not in _REPEATED or monotonic() > ends:
                    return response
            sleep(0.1)
