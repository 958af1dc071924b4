"""Records as OpenTelemetry spans and metrics, following the semantic conventions for MCP."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from ..core.json_value import JsonObject
from ..core.versions import STATELESS
from ..errors import TOOL_NOT_FOUND, find_code, needs_extra
from .event import CANCELLED, ISSUE, Entry, Event, WriteOnlySink

with needs_extra("otel"):
    from opentelemetry import context, metrics, trace
    from opentelemetry.trace.propagation.tracecontext import TraceContextTextMapPropagator

_METHODS = {
    "tool": "tools/call",
    "resource": "resources/read",
    "prompt": "prompts/get",
    "completion": "completion/complete",
}
_BUCKETS = (0.01, 0.02, 0.05, 0.1, 0.2, 0.5, 1, 2, 5, 10, 30, 60, 120, 300)
_INVALID_PARAMS, _INTERNAL_ERROR, _RESOURCE_NOT_FOUND = "-32602", "-32603", "-32002"
_UNKNOWN = "_OTHER"
"""OpenTelemetry's placeholder for unknown values."""
_W3C = TraceContextTextMapPropagator()


class OpenTelemetry(WriteOnlySink):
    """A sink that creates a span and a measurement for each reply.

    *tracer_provider* creates the spans, and *meter_provider* the measurements; both default to the
    global ones. A span is created after the call, with the call's start and end times. Its parent
    is the span that was current when the call arrived.
    """

    def __init__(
        self,
        tracer_provider: trace.TracerProvider | None = None,
        meter_provider: metrics.MeterProvider | None = None,
    ) -> None:
        self._tracer = trace.get_tracer("answerback", tracer_provider=tracer_provider)
        meter = metrics.get_meter("answerback", meter_provider=meter_provider)
        self._mcp_durations = meter.create_histogram(
            "mcp.server.operation.duration",
            unit="s",
            description="The duration of MCP requests, measured by the server.",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )
        self._other_durations = meter.create_histogram(
            "answerback.call.duration",
            unit="s",
            description="The duration of calls over wires other than MCP.",
            explicit_bucket_boundaries_advisory=_BUCKETS,
        )
        self._lost = meter.create_counter(
            "answerback.records.lost",
            unit="{record}",
            description="Records that were lost.",
        )

    def __str__(self) -> str:
        return "OpenTelemetry"

    def trace(self) -> str:
        """Return the traceparent of the current span."""
        carrier: dict[str, str] = {}
        _W3C.inject(carrier)
        return carrier.get("traceparent", "")

    def write(self, batch: Sequence[Entry]) -> None:
        for entry in batch:
            event = entry.event
            if event.is_reply:
                self._record(event)
            elif event.lost:
                self._lost.add(event.lost)

    def _record(self, event: Event) -> None:
        attributes = attributes_of(event)
        started_at = int(event.time.timestamp() * 1_000_000) * 1000
        span = self._tracer.start_span(
            span_name(event),
            context=_W3C.extract({"traceparent": event.trace}, context=context.Context()),
            kind=trace.SpanKind.SERVER if event.wire == "mcp" else trace.SpanKind.INTERNAL,
            attributes=attributes | _span_attributes(event),
            start_time=started_at,
        )
        if event.failed:
            span.set_status(trace.StatusCode.ERROR)
        for issue in event.findings:
            span.add_event(ISSUE, {"rule": issue.rule, "issue": issue.message})
        span.end(end_time=started_at + event.duration_us * 1000)
        histogram = self._mcp_durations if event.wire == "mcp" else self._other_durations
        histogram.record(event.duration_us / 1e6, attributes)


def span_name(event: Event) -> str:
    """Return a name without a resource's URI: span names must have low cardinality."""
    if event.wire != "mcp":
        return f"execute_tool {_known_name(event)}"
    method = _METHODS[event.kind]
    return f"{method} {_known_name(event)}" if event.kind in ("tool", "prompt") else method


def _known_name(event: Event) -> str:
    """Return the called name; unknown names share one, because each would become a new series."""
    return _UNKNOWN if event.code == TOOL_NOT_FOUND else event.tool


def attributes_of(event: Event) -> JsonObject:
    """Return the low-cardinality attributes, shared by the span and the metric."""
    found: JsonObject = {}
    if event.wire == "mcp":
        found["mcp.method.name"] = _METHODS[event.kind]
        if event.version:
            found["mcp.protocol.version"] = event.version
    else:
        found["answerback.wire"] = event.wire
    if event.kind == "tool":
        found |= {"gen_ai.operation.name": "execute_tool", "gen_ai.tool.name": _known_name(event)}
    elif event.kind == "prompt":
        found["gen_ai.prompt.name"] = _known_name(event)
    if event.failed:
        found |= _failure(event)
    return found


def _failure(event: Event) -> dict[str, str]:
    """Return the error attributes: a tool's error is a result, any other is a JSON-RPC error."""
    if event.wire != "mcp" or event.code == CANCELLED:
        return {"error.type": event.code}
    row = find_code(event.code)
    if event.kind == "tool":
        if row.rpc is None:
            return {"error.type": "tool_error"}
        code = str(row.rpc)
    elif row.status == 404 and event.kind == "resource" and event.version not in STATELESS:
        code = _RESOURCE_NOT_FOUND
    else:
        code = _INVALID_PARAMS if 400 <= row.status < 500 else _INTERNAL_ERROR
    return {"error.type": code, "rpc.response.status_code": code}


def _span_attributes(event: Event) -> JsonObject:
    found = {
        "jsonrpc.request.id": event.request,
        "gen_ai.tool.name": event.tool if event.kind == "tool" else "",
        "mcp.resource.uri": event.tool if event.kind == "resource" else "",
        "answerback.error.code": event.code,
        "answerback.error.reference": event.reference,
        "answerback.reply.size": event.size,
        "gen_ai.tool.call.arguments": _text(event.arguments),
        "gen_ai.tool.call.result": _text(event.reply) if not event.failed else "",
    }
    return {name: value for name, value in found.items() if value != ""}


def _text(raw: object) -> str:
    """Return the JSON as a string, because span attributes cannot be objects."""
    return "" if raw is None else msgspec.json.encode(raw).decode()
