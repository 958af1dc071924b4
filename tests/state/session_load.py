"""MCP sessions in a cluster in which something fails, and what became of each."""

from __future__ import annotations

import threading
from collections import Counter
from collections.abc import Callable, Sequence
from contextlib import suppress
from time import monotonic, sleep
from typing import Any

import httpx
from tests.state.sessions import Session

_SECONDS = 90.0
"""How long one step is repeated."""
_THREADS = 4
_THINKING = 0.5
"""Seconds after which a question is answered, so that most of the time one is open."""
_KEPT = 4
"""Each session of so many goes on to the end; the others are ended by their clients."""
_REPEATED = (502, 503)
_PATIENCE = 20.0
"""Seconds for which a client waits for a server that may be cut off."""


class Sessions:
    """Clients that open sessions, call tools, answer questions, resume streams and end sessions.

    They go through the proxy, so each request goes to another server. *servers* are the
    addresses of all servers, which are asked at the end. With *may_lose_answers* a client repeats
    an answer that had no effect: it may have been lost in a crash of the database.
    """

    def __init__(self, url: str, servers: Sequence[str], *, may_lose_answers: bool = False) -> None:
        self._url = url
        self._servers = servers
        self._may_lose_answers = may_lose_answers
        self.kept: list[Session] = []
        self.ended: list[Session] = []
        self.questions: Counter[str] = Counter()
        """How many calls that asked were answered, and how many ended with their server."""
        self.resumed = 0
        """How many streams were resumed at another server."""
        self.wrong: list[str] = []
        self._stops = threading.Event()
        self._threads = [threading.Thread(target=self._work) for _ in range(_THREADS)]

    def start(self) -> None:
        for thread in self._threads:
            thread.start()

    def finish(self) -> None:
        """End the clients; then each server must know each session, and each that has ended.

        A second time nothing happens.
        """
        if self._stops.is_set():
            return
        self._stops.set()
        for thread in self._threads:
            thread.join()
        for server in self._servers:
            self._expect(self.kept, 200, server)
            self._expect(self.ended, 404, server)
        for session in (*self.kept, *self.ended):
            session.close()

    def _expect(self, sessions: list[Session], status: int, server: str) -> None:
        statuses = Counter(self._repeated(each.ping, server).status_code for each in sessions)
        if set(statuses) - {status}:
            self.wrong.append(f"{server} answers sessions by {dict(statuses)}, not by {status}")

    def _work(self) -> None:
        number = 0
        while not self._stops.is_set():
            number += 1
            try:
                self._talk(is_kept=number % _KEPT == 0)
            except Exception as exc:  # noqa: BLE001 -- it is shown with the others
                self.wrong.append(f"a session: {exc!r}")
                return

    def _talk(self, *, is_kept: bool) -> None:
        session = self._repeated(lambda: Session(self._url, _PATIENCE))
        for x in range(3):
            self._call(session, x)
        self._ask(session)
        if is_kept:
            self.kept.append(session)
            return
        # A repeated DELETE may find that the first one has ended the session.
        ended = self._repeated(lambda: session.end(self._url))
        if ended.status_code not in (204, 404):
            self.wrong.append(f"DELETE: {ended.status_code} {ended.text}")
        self.ended.append(session)
        if not _soon(lambda: self._has_ended_everywhere(session)):
            self.wrong.append("a session that was ended goes on at another server")

    def _call(self, session: Session, x: int) -> None:
        found = self._repeated(
            lambda: session.post(self._url, "tools/call", name="add", arguments={"x": x, "y": 1})
        )
        if f'"result":{x + 1}' not in found.text.replace(" ", ""):
            self.wrong.append(f"add {x}: {found.status_code} {found.text}")

    def _ask(self, session: Session) -> None:
        """Call a tool that asks, and answer the question at another server."""
        result = None
        while result is None:
            # Without an event the client cannot resume the stream, and must repeat the call.
            result = self._asked(session)
        if result.get("result", {}).get("structuredContent") == {"result": "Hello, Ada!"}:
            self.questions["answered"] += 1
        elif is_lost(result):
            self.questions["lost"] += 1
        elif "shutting down" in str(result):
            self.questions["declined"] += 1
        else:
            self.wrong.append(f"greet: {result}")

    def _asked(self, session: Session) -> dict[str, Any] | None:
        last_event: str | None = None
        question: dict[str, Any] | None = None
        ends = monotonic() + _SECONDS
        while monotonic() < ends:
            opening = (
                session.calling(self._url, 7, "greet")
                if last_event is None
                else session.listening(self._url, last_event)
            )
            self.resumed += last_event is not None
            if question is not None and self._may_lose_answers:
                self._answer(session, question)
            with suppress(httpx.HTTPError, AssertionError), opening as events:
                events.ends = monotonic() + _PATIENCE
                try:
                    for message in events:
                        if message.get("id") == 7 and "method" not in message:
                            return dict(message)
                        question = message
                        self._answer(session, message)
                finally:
                    last_event = events.last_id or last_event
            if last_event is None:
                return None
            sleep(0.1)
        raise AssertionError("a stream that was resumed has no end")

    def _answer(self, session: Session, question: dict[str, Any]) -> None:
        answer = {"action": "accept", "content": {"name": "Ada"}}
        message = {"id": question["id"], "result": answer}
        sleep(_THINKING)
        answered = self._repeated(lambda: session.send(self._url, message))
        if answered.status_code != 202:
            self.wrong.append(f"an answer: {answered.status_code} {answered.text}")

    def _has_ended_everywhere(self, session: Session) -> bool:
        return all(
            self._repeated(lambda: session.ping(self._url)).status_code == 404
            for _ in self._servers
        )

    def _repeated(self, request: Callable[..., Any], *arguments: Any) -> Any:
        """Repeat a request while servers or the database are away."""
        ends = monotonic() + _SECONDS
        while True:
            try:
                response = request(*arguments)
            except (httpx.HTTPError, AssertionError):
                if monotonic() > ends:
                    raise
            else:
                status = getattr(response, "status_code", 200)
                if status not in _REPEATED or monotonic() > ends:
                    return response
            sleep(0.1)


def is_lost(frame: dict[str, Any]) -> bool:
    """Return whether a message is the error of a call whose process has ended."""
    return bool(frame.get("error", {}).get("data", {}).get("code") == "WORKER_LOST")


def _soon(holds: Callable[[], bool]) -> bool:
    ends = monotonic() + _SECONDS
    while not holds():
        if monotonic() > ends:
            return False
        sleep(0.1)
    return True
