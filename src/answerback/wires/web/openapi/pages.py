"""The operations that are no tool's: the list of functions, this document, and health."""

from __future__ import annotations

from typing import Any

from .blocks import record

Schema = dict[str, Any]

_TEXT: Schema = {"type": "string"}
_OBJECT: Schema = {"type": "object"}
_FUNCTION = record(
    {
        "name": _TEXT,
        "title": _TEXT,
        "description": _TEXT,
        "inputSchema": _OBJECT,
        "outputSchema": _OBJECT,
    },
    required=["name", "description", "inputSchema"],
)
_HEALTH = record({"status": {"const": "ok"}, "name": _TEXT, "version": _TEXT})


def page_paths() -> dict[str, Schema]:
    return {
        "/functions": _page(
            "listFunctions", "The functions", {"type": "array", "items": _FUNCTION}
        ),
        "/openapi.json": _page("describeService", "This document", _OBJECT),
        "/healthz": _page("checkHealth", "Whether the service is up", _HEALTH),
    }


def _page(operation_id: str, summary: str, schema: Schema) -> Schema:
    content = {"application/json": {"schema": schema}}
    responses = {"200": {"description": summary, "content": content}}
    about = {"operationId": operation_id, "summary": summary, "tags": ["service"]}
    return {"get": {**about, "responses": responses}}
