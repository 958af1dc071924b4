"""Every sink records every call, whichever options are set; a loss is recorded with its cause."""

from __future__ import annotations

import itertools
import json
import logging
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.trace import TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from tests.records.support import TIMEOUT, app_with, call_add, events_in

from answerback import audit
from answerback.records import JSONL, Entry, Logging, OpenTelemetry, Records, SQLite
from answerback.records.event import WriteOnlySink


class Opened(NamedTuple):
    sink: Any
    events: Callable[[], list[dict[str, Any]]]
    """Reads what the sink holds, as plain data."""


def jsonl(path: Path) -> Opened:
    return Opened(JSONL(path), lambda: lines_of(path))


def lines_of(path: Path) -> list[dict[str, Any]]:
    return [json.loads(line)["event"] for line in path.read_text().splitlines()]


def sqlite(path: Path) -> Opened:
    return Opened(SQLite(path), lambda: [vars_of(event) for event in events_in(path)])


def vars_of(event: Any) -> dict[str, Any]:
    return {name: getattr(event, name) for name in event.__struct_fields__}


def standard_log(path: Path) -> Opened:
    logger = logging.Logger(str(path))
    kept: list[Any] = []

    def keep(record: logging.LogRecord) -> bool:
        kept.append(record)
        return False

    logger.addFilter(keep)
    return Opened(Logging(logger), lambda: [record.event for record in kept])


def open_telemetry(path: Path) -> Opened:
    spans = InMemorySpanExporter()
    tracing = TracerProvider()
    tracing.add_span_processor(SimpleSpanProcessor(spans))

    def events() -> list[dict[str, Any]]:
        return [
            {
                "tool": span.attributes["gen_ai.tool.name"],
                "arguments": decoded(span.attributes.get("gen_ai.tool.call.arguments")),
                "reply": decoded(span.attributes.get("gen_ai.tool.call.result")),
            }
            for span in spans.get_finished_spans()
            if span.attributes is not None
        ]

    return Opened(OpenTelemetry(tracing, MeterProvider([])), events)


def decoded(text: Any) -> Any:
    return None if text is None else json.loads(text)


class OwnSink(WriteOnlySink):
    def __init__(self) -> None:
        self.events: list[dict[str, Any]] = []

    def write(self, batch: Sequence[Entry]) -> None:
        self.events += [json.loads(entry.body) for entry in batch]


def own(path: Path) -> Opened:
    sink = OwnSink()
    return Opened(sink, lambda: sink.events)


SINKS = [jsonl, sqlite, standard_log, open_telemetry, own]
OPTIONS = [
    dict(zip(("arguments", "content", "check"), values, strict=True))
    for values in itertools.product([False, True], repeat=3)
]


@pytest.mark.parametrize("options", OPTIONS, ids=lambda each: "-".join(k for k in each if each[k]))
@pytest.mark.parametrize("make", SINKS)
def test_a_sink_records_what_the_options_ask_for(
    make: Callable[[Path], Opened], options: dict[str, bool], tmp_path: Path
) -> None:
    opened = make(tmp_path / "audit")
    records = Records(opened.sink, **options)

    call_add(app_with(records), 2)
    assert records.flush(TIMEOUT)
    records.close()

    calls = [event for event in opened.events() if event.get("tool") == "add"]
    kept = [{"x": number, "y": 1} if options["arguments"] else None for number in range(2)]
    assert [event.get("arguments") for event in calls] == kept
    sums = [number + 1 if options["content"] else None for number in range(2)]
    assert [(event.get("reply") or {}).get("data") for event in calls] == sums


def test_two_sinks_and_an_audited_reply_of_another_server_are_logged_with_the_reply(
    tmp_path: Path,
) -> None:
    log, file = standard_log(tmp_path / "log"), jsonl(tmp_path / "audit.jsonl")
    records = Records(file.sink, log.sink, content=True)

    audit("myTool", {"success": True}, dialect="envelope", records=records)
    assert records.flush(TIMEOUT)
    records.close()

    for opened in (log, file):
        issue = next(event for event in opened.events() if event.get("tool") == "myTool")
        assert issue["event"] == "mcp_response_format_issue"
        assert issue["reply"] == {"success": True}


class FailsForTool(OwnSink):
    """A sink that cannot write the records of calls."""

    def __str__(self) -> str:
        return "the stamp"

    def write(self, batch: Sequence[Entry]) -> None:
        if any(entry.event.is_reply for entry in batch):
            raise RuntimeError("out of ink")
        super().write(batch)


def test_a_record_that_a_sink_could_not_write_is_counted_with_the_failure_as_its_reason() -> None:
    sink = FailsForTool()
    records = Records(sink)

    call_add(app_with(records))
    records.flush(0.1)
    records.close(TIMEOUT)

    lost = [event for event in sink.events if event["event"] == "records_lost"]
    assert [(e["lost"], e["why"]) for e in lost] == [(1, "the stamp: RuntimeError: out of ink")]
