"""OpenTelemetry spans and metrics follow the semantic conventions for MCP."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from typing import Any

import httpx
import pytest
from opentelemetry.sdk.metrics import MeterProvider
from opentelemetry.sdk.metrics.export import InMemoryMetricReader
from opentelemetry.sdk.trace import ReadableSpan, TracerProvider
from opentelemetry.sdk.trace.export import SimpleSpanProcessor
from opentelemetry.sdk.trace.export.in_memory_span_exporter import InMemorySpanExporter
from opentelemetry.trace import SpanKind, StatusCode
from tests.records.support import app_with

from answerback import App, NotFound
from answerback.records import OpenTelemetry, Records


class Telemetry:
    def __init__(self) -> None:
        self._spans = InMemorySpanExporter()
        self._metrics = InMemoryMetricReader()
        self.tracing = TracerProvider()
        self.tracing.add_span_processor(SimpleSpanProcessor(self._spans))
        self.metering = MeterProvider([self._metrics])
        self.records = Records(OpenTelemetry(self.tracing, self.metering))
        self.app = app_with(self.records)

    def spans(self) -> list[ReadableSpan]:
        self.records.close()
        return list(self._spans.get_finished_spans())

    def metrics(self) -> dict[str, Any]:
        self.records.close()
        data: Any = self._metrics.get_metrics_data()
        found = data.resource_metrics[0].scope_metrics[0].metrics
        return {metric.name: metric for metric in found}


@pytest.fixture
def telemetry() -> Iterator[Telemetry]:
    made = Telemetry()
    yield made
    made.tracing.shutdown()
    made.metering.shutdown()


def over_mcp(app: App, method: str, **params: Any) -> None:
    """Send one MCP request without a session, as version 2025-06-18 allows."""
    message = {"jsonrpc": "2.0", "id": 5, "method": method, "params": params}
    headers = {
        "Accept": "application/json, text/event-stream",
        "MCP-Protocol-Version": "2025-06-18",
    }

    async def send() -> None:
        transport = httpx.ASGITransport(app.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            response = await client.post("/mcp", content=json.dumps(message), headers=headers)
            assert response.status_code == 200

    asyncio.run(send())


def test_an_mcp_call_becomes_a_server_span(telemetry: Telemetry) -> None:
    over_mcp(telemetry.app, "tools/call", name="add", arguments={"x": 1, "y": 2})

    (span,) = telemetry.spans()
    assert span.name == "tools/call add"
    assert span.kind == SpanKind.SERVER
    assert span.status.status_code == StatusCode.UNSET
    assert dict(span.attributes or {}) == {
        "mcp.method.name": "tools/call",
        "mcp.protocol.version": "2025-06-18",
        "gen_ai.operation.name": "execute_tool",
        "gen_ai.tool.name": "add",
        "jsonrpc.request.id": "5",
        "answerback.reply.size": 1,
    }


def test_a_failed_tool_is_a_tool_error(telemetry: Telemetry) -> None:
    over_mcp(telemetry.app, "tools/call", name="fail", arguments={})

    (span,) = telemetry.spans()
    assert span.status.status_code == StatusCode.ERROR
    assert span.attributes is not None
    assert span.attributes["error.type"] == "tool_error"
    assert span.attributes["answerback.error.code"] == "TOOL_EXECUTION_ERROR"


def test_a_missing_resource_has_its_json_rpc_error_code(telemetry: Telemetry) -> None:
    @telemetry.app.resource("data://one")
    def one() -> str:
        raise NotFound("gone")

    over_mcp(telemetry.app, "resources/read", uri="data://one")

    (span,) = telemetry.spans()
    assert span.name == "resources/read"
    assert span.attributes is not None
    assert span.attributes["mcp.resource.uri"] == "data://one"
    assert span.attributes["error.type"] == "-32002"
    assert span.attributes["rpc.response.status_code"] == "-32002"


def test_the_parent_of_a_span_is_the_span_that_was_current(telemetry: Telemetry) -> None:
    tracer = telemetry.tracing.get_tracer("test")

    with tracer.start_as_current_span("outer") as outer:
        asyncio.run(telemetry.app.call("add", x=1, y=2))

    inner = next(span for span in telemetry.spans() if span.name == "execute_tool add")
    assert inner.parent is not None
    assert inner.parent.span_id == outer.get_span_context().span_id


def test_findings_are_events_of_the_span(telemetry: Telemetry) -> None:
    text = "postgres://admin:Zk3vQ9pLw2@db.internal/main"
    asyncio.run(telemetry.app.call("echo", text=text))

    (span,) = telemetry.spans()
    assert {event.name for event in span.events} == {"mcp_response_format_issue"}


def test_durations_are_measured_in_the_buckets_of_the_convention(telemetry: Telemetry) -> None:
    over_mcp(telemetry.app, "tools/call", name="add", arguments={"x": 1, "y": 2})
    asyncio.run(telemetry.app.call("add", x=1, y=2))

    found = telemetry.metrics()
    metric = found["mcp.server.operation.duration"]
    (point,) = metric.data.data_points
    assert metric.unit == "s"
    assert point.count == 1
    assert point.explicit_bounds == (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
    assert point.attributes["mcp.method.name"] == "tools/call"
    assert found["answerback.call.duration"].data.data_points[0].count == 1


def test_made_up_names_share_one_span_name_and_one_series(telemetry: Telemetry) -> None:
    async def over_rest() -> None:
        transport = httpx.ASGITransport(telemetry.app.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for number in range(3):
                assert (await client.post(f"/functions/nosuch{number}")).status_code == 404

    @telemetry.app.prompt
    def greet() -> str:
        return "hello"

    asyncio.run(over_rest())
    for number in range(3):
        over_mcp(telemetry.app, "tools/call", name=f"nosuch{number}", arguments={})
        over_mcp(telemetry.app, "prompts/get", name=f"nosuch{number}")

    spans = telemetry.spans()
    assert {span.name for span in spans} <= {"execute_tool _OTHER", "tools/call _OTHER"}
    assert {span.attributes["gen_ai.tool.name"] for span in spans if span.attributes} == {
        "nosuch0",
        "nosuch1",
        "nosuch2",
    }
    for metric in telemetry.metrics().values():
        (series,) = metric.data.data_points
        assert series.attributes["gen_ai.tool.name"] == "_OTHER"
        assert series.count == 3
