"""Records: makes an event from each of an App's calls, and gives it to the sinks' writers."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from time import perf_counter_ns, time
from typing import TYPE_CHECKING, Any

from ..calls.call import Call, Handler, Outcome
from ..core.log import logger
from ..registry.declarations import HealthState
from .call_record import CallRecord, make_call_record, make_event
from .event import Event
from .recorded_bodies import kept_bodies
from .sink import Sink
from .writer import CLOSE_SECONDS, Writer

if TYPE_CHECKING:
    from ..rules.finding import Finding
    from ..tools.tool import Tool


class Records:
    """A recorder that writes an event for each reply.

    *sinks* are where it writes, such as `SQLite("audit.db")`. *arguments* also records the
    arguments, with secrets masked. *content* also records the reply, with secrets masked. *check*
    runs the rules on each reply. At most *max_waiting* events wait for a slow sink; further events
    are lost, and their number is recorded.
    """

    def __init__(
        self,
        *sinks: Sink,
        arguments: bool = False,
        content: bool = False,
        check: bool = True,
        max_waiting: int = 10_000,
    ) -> None:
        if not sinks:
            raise ValueError("Records needs a sink, such as SQLite('audit.db')")
        self._arguments = arguments
        self._content = content
        self._check = check
        self._findings_in: Callable[[Any, str, str, Tool | None], Sequence[Any]] | None = None
        self._check_failure_logged = False
        self._writers = [Writer(sink, self.make_event, max_waiting) for sink in sinks]
        traces = [sink.trace for sink in sinks if hasattr(sink, "trace")]
        self._traceparent: Callable[[], str] | None = traces[0] if traces else None

    @property
    def sinks(self) -> list[Sink]:
        return [writer.sink for writer in self._writers]

    def recorded(self, handle: Handler, kind: str) -> Handler:
        """Return a handler that records each outcome of *handle*."""
        add = self.add
        traceparent = self._traceparent

        async def handle_and_record(call: Call) -> Outcome:
            started_at, clock = time(), perf_counter_ns()
            parent = "" if traceparent is None else traceparent()
            outcome: Outcome | None = None
            try:
                outcome = await handle(call)
                return outcome
            finally:
                duration_ns = perf_counter_ns() - clock
                record = make_call_record(kind, call, started_at, duration_ns, outcome)
                record.trace = parent
                add(record)
                if call.wire == "memory":
                    for writer in self._writers:
                        writer.yield_to_writer()

        return handle_and_record

    def add(self, record: CallRecord) -> None:
        """Queue the record for every sink; never wait for a sink."""
        size = record.size + len(record.arguments)
        for writer in self._writers:
            writer.put(record, size)

    def flush(self, seconds: float = CLOSE_SECONDS) -> bool:
        """Wait until all queued records are written; return False after a time-out."""
        done = [writer.flush(seconds) for writer in self._writers]
        return all(done)

    def close(self, seconds: float = CLOSE_SECONDS) -> None:
        """Write all queued records and end the chains; later records start new chains."""
        for writer in self._writers:
            writer.close(seconds)

    def check(self) -> HealthState:
        """Return the records' health. Calls are served even while records cannot be written."""
        details: dict[str, bool | int | str] = {
            "failing": any(writer.is_failing for writer in self._writers),
            "waiting": sum(writer.waiting for writer in self._writers),
        }
        return HealthState(details=details)

    def make_event(self, record: CallRecord, queue_is_filling: bool = False) -> Event:
        """Return the event for *record*; the writer thread calls this, and it never raises.

        If the queue is filling up, the rules do not run: a record without findings is better than
        a lost one.
        """
        try:
            unchecked = queue_is_filling and self._check and record.findings is None
            findings = () if unchecked else self._findings(record)
            kept = kept_bodies(record, arguments=self._arguments, content=self._content)
            if unchecked:
                kept["unchecked"] = True
            return make_event(record, findings, kept)
        except Exception:  # noqa: BLE001 -- a bug in a rule must not cost the record
            if not self._check_failure_logged:
                self._check_failure_logged = True
                message = "a reply of %r could not be checked; it is recorded without findings"
                logger().exception(message, record.name)
            return make_event(record, (), {"unchecked": True})

    def _findings(self, record: CallRecord) -> Sequence[Finding]:
        if record.findings is not None:
            return record.findings
        if not self._check or record.reply is None:
            return ()
        if self._findings_in is None:
            # Imported at the first reply, because the rules are slow to load; and kept, because an
            # import statement for each reply would cost time.
            from .reply_findings import findings_in

            self._findings_in = findings_in
        return self._findings_in(record.reply, record.version, record.kind, record.tool)
