"""The pages beside the tools: the list of functions, the OpenAPI document and health.

Both health pages show the runtime's checks. `/healthz` is 200 as long as the process answers;
`/readyz` is 503 while a check says that calls cannot be served.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TypeAlias

import msgspec

from ...calls.failures import log_internal_error
from ...calls.runtime import Runtime
from ...core.json_value import JsonObject
from ...dialects import HttpReply
from ...dialects.status_and_headers import JSON
from ...registry.declarations import Check, HealthState, Registry
from ...tools.tool import Tool

Page: TypeAlias = Callable[[Runtime, str], HttpReply]
"""Makes the response of a page; the second argument is the path that the app is mounted under."""

PUBLIC = ("/healthz", "/readyz")
"""Pages that need no credentials, even if the app authenticates."""
CONSOLE_PATHS = frozenset({"/", "/docs", "/console/about.json", "/console/frame", "/console/views"})
"""The paths of the console, where it is shown."""


def function_list(registry: Registry, *, hidden: bool = True) -> bytes:
    """Return the tools and their schemas as JSON, including those hidden from some callers."""
    tools = list(registry.tools.values())
    if not hidden and registry.hides_entries:
        from ...gates.prompts import shown_to_all

        tools = shown_to_all(tools)
    return msgspec.json.encode([_function(tool) for tool in tools])


def _functions(runtime: Runtime, root: str) -> HttpReply:
    return HttpReply(200, function_list(runtime.registry, hidden=False), JSON)


def _openapi(runtime: Runtime, root: str) -> HttpReply:
    from .openapi import document_json

    return HttpReply(200, document_json(runtime.registry, root), JSON)


def _health(runtime: Runtime, root: str) -> HttpReply:
    return HttpReply(200, _health_json(runtime.registry, "ok", _results(runtime)), JSON)


def _readiness(runtime: Runtime, root: str) -> HttpReply:
    results = _results(runtime)
    is_ready = all(result.ready for result in results.values())
    status = "ready" if is_ready else "not ready"
    body = _health_json(runtime.registry, status, results)
    return HttpReply(200 if is_ready else 503, body, JSON)


def _health_json(registry: Registry, status: str, results: Mapping[str, HealthState]) -> bytes:
    health: JsonObject = {
        "status": status,
        "name": registry.name,
        "version": registry.version,
    }
    if results:
        health["checks"] = {
            name: {"ready": result.ready, **result.details} for name, result in results.items()
        }
    return msgspec.json.encode(health)


def _results(runtime: Runtime) -> dict[str, HealthState]:
    """Return the results of the checks that apply, by name."""
    found = {name: _result(name, check) for name, check in runtime.health().items()}
    return {name: result for name, result in found.items() if result is not None}


def _result(name: str, check: Check) -> HealthState | None:
    try:
        return check()
    except Exception:  # noqa: BLE001 -- a failing check must not fail the page
        log_internal_error(f"the health check {name!r}")
        return HealthState(False, {"error": "the check failed"})


def _function(tool: Tool) -> JsonObject:
    entry: JsonObject = {"name": tool.name, "description": tool.description}
    if tool.title:
        entry["title"] = tool.title
    entry["inputSchema"] = tool.input_schema
    if tool.output_schema is not None:
        entry["outputSchema"] = tool.output_schema
    if tool.settings.widget is not None:
        entry["widget"] = tool.settings.widget
    return entry


PAGES: Mapping[str, Page] = {
    "/functions": _functions,
    "/openapi.json": _openapi,
    "/healthz": _health,
    "/readyz": _readiness,
}
