"""What an App keeps of its replies, and where."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns, time
from typing import TYPE_CHECKING, Any

import msgspec

from .call_record import KEPT_BYTES, Answered, answered, event_of, reply_json
from .event import Event
from .writer import END_SECONDS, Writer

if TYPE_CHECKING:
    from ..calls.call import Call, Handler, Outcome
    from .sink import Sink


class Records:
    """Keeps an event for each reply in each of *sinks*.

    *arguments* and *content* keep those too, with what looks like a secret masked.
    *check* has the rules look at each reply. *most* events wait for a slow sink;
    what comes beyond that is lost, counted, and the count is recorded.
    """

    def __init__(
        self,
        *sinks: Sink,
        arguments: bool = False,
        content: bool = False,
        check: bool = True,
        most: int = 10_000,
    ) -> None:
        if not sinks:
            raise ValueError("Records needs a sink, such as SQLite('audit.db')")
        self._arguments = arguments
        self._content = content
        self._check = check
        self._ask: Callable[[Any, str, str], Sequence[Any]] | None = None
        self._faulty = False
        self._writers = [Writer(sink, self.event, most) for sink in sinks]
        traces = [sink.trace for sink in sinks if hasattr(sink, "trace")]
        self._trace: Callable[[], str] | None = traces[0] if traces else None

    @property
    def sinks(self) -> list[Sink]:
        return [writer.sink for writer in self._writers]

    def recorded(self, handle: Handler, kind: str) -> Handler:
        """*handle*, with each outcome recorded."""
        add = self.add
        trace = self._trace

        async def answer(call: Call) -> Outcome:
            began, clock = time(), perf_counter_ns()
            parent = "" if trace is None else trace()
            outcome: Outcome | None = None
            try:
                outcome = await handle(call)
                return outcome
            finally:
                item = answered(kind, call, began, perf_counter_ns() - clock, outcome)
                item.trace = parent
                add(item)

        return answer

    def add(self, item: Answered) -> None:
        """Leave it to be recorded; never waits for a sink."""
        weight = item.size + len(item.arguments)
        for writer in self._writers:
            writer.put(item, weight)

    def flush(self, seconds: float = END_SECONDS) -> bool:
        """Wait until all is written that was answered; False if it is not by then."""
        done = [writer.flush(seconds) for writer in self._writers]
        return all(done)

    def close(self, seconds: float = END_SECONDS) -> None:
        """Write all there is, and end; what comes afterwards begins anew."""
        for writer in self._writers:
            writer.close(seconds)

    def event(self, item: Answered, hurried: bool = False) -> Event:
        """For the thread that writes; it gives an event whatever happens.

        Where there is a hurry the rules are not asked: better that than a record lost.
        """
        try:
            unchecked = hurried and self._check and item.findings is None
            findings = () if unchecked else self._findings(item)
            kept = self._kept(item)
            if unchecked:
                kept["unchecked"] = True
            return event_of(item, findings, kept)
        except Exception:  # noqa: BLE001 -- a rule's fault must not cost the record
            self._tell_fault(item)
            return event_of(item, (), {"unchecked": True})

    def _findings(self, item: Answered) -> Any:
        if item.findings is not None:
            return item.findings
        if not self._check or item.reply is None:
            return ()
        if self._ask is None:
            # Not while an app starts, for the rules take a while to load; and not at each reply.
            from .masking import findings_in

            self._ask = findings_in
        return self._ask(item.reply, item.version, item.kind)

    def _kept(self, item: Answered) -> dict[str, Any]:
        if not (self._arguments or self._content):
            return {}
        kept: dict[str, Any] = {}
        omitted: list[str] = []
        if self._arguments:
            _keep("arguments", item.arguments, kept, omitted)
        if self._content and item.reply is not None:
            body = b"" if item.size > KEPT_BYTES else reply_json(item.reply)
            _keep("reply", body, kept, omitted)
        return {**kept, "omitted": tuple(omitted)}

    def _tell_fault(self, item: Answered) -> None:
        if not self._faulty:
            self._faulty = True
            import logging

            told = "a reply of %r could not be checked, and is recorded without that"
            logging.getLogger("answerback").exception(told, item.name)


def _keep(name: str, body: bytes, kept: dict[str, Any], omitted: list[str]) -> None:
    """All or nothing: a secret that is cut in two is no longer known for one."""
    from .masking import masked

    if not body or len(body) > KEPT_BYTES:
        omitted.append(name)
        return
    kept[name] = msgspec.Raw(masked(body))
