"""The operations that are no tool's: the list of functions, this document, and health."""

from __future__ import annotations

from typing import Any

from ....contract import Contract
from .blocks import record
from .operations import error_response
from .statuses import WORDS

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


def page_paths(contract: Contract) -> dict[str, Schema]:
    functions = {"type": "array", "items": _FUNCTION}
    return {
        "/functions": _page("listFunctions", "The functions", functions, contract),
        "/openapi.json": _page("describeService", "This document", _OBJECT, contract),
        "/healthz": _page("checkHealth", "Whether the service is up", _HEALTH, contract),
    }


def _page(operation_id: str, summary: str, schema: Schema, contract: Contract) -> Schema:
    content = {"application/json": {"schema": schema}}
    responses = {
        "200": {"description": summary, "content": content},
        "400": error_response(WORDS[400], contract),
        "500": error_response(WORDS[500], contract),
    }
    about = {"operationId": operation_id, "summary": summary, "tags": ["service"]}
    return {"get": {**about, "responses": responses}}
