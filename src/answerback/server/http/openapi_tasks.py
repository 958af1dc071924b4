"""Tasks in the OpenAPI document: a call's headers, the 202 response, and a task's paths."""

from __future__ import annotations

from ...dialects.status_and_headers import JSON, RETRY_AFTER
from ...tasks.task_record import MAX_KEY
from ...tools.tool import Tool
from .openapi import (
    DESCRIPTIONS,
    RESPONSES,
    SCHEMAS,
    TIMESTAMP,
    MediaTypes,
    Schema,
    error_responses,
    object_schema,
)
from .task_routes import APPLIED, IDEMPOTENCY_KEY, MAX_WAIT, PREFER, RESULT_PATH, TASKS

_TEXT: Schema = {"type": "string"}
_QUESTION = object_schema({"method": _TEXT, "params": {"type": "object"}})
TASK_SCHEMAS: dict[str, Schema] = {
    "TaskStatus": object_schema(
        {
            "taskId": _TEXT,
            "tool": _TEXT,
            "status": {"enum": ["working", "input_required", "completed", "failed", "cancelled"]},
            "statusMessage": {"type": "string", "description": "The progress, or why it ended"},
            "createdAt": TIMESTAMP,
            "lastUpdatedAt": TIMESTAMP,
            "expiresAt": {**TIMESTAMP, "description": "When the task is removed"},
            "inputRequests": {
                "type": "object",
                "description": "The task's open questions, by key",
                "additionalProperties": _QUESTION,
            },
            "resultUrl": {"type": "string", "description": "Where to get the task's reply"},
        },
        required=["taskId", "tool", "status", "createdAt", "lastUpdatedAt"],
    ),
    "TaskAnswers": object_schema(
        {
            "inputResponses": {
                "type": "object",
                "description": "The answers as MCP results, by key",
                "additionalProperties": {"type": "object"},
            }
        }
    ),
}
_STATUS = {"schema": {"$ref": SCHEMAS + "TaskStatus"}}
_RETRY_AFTER = {RETRY_AFTER: {"$ref": "#/components/headers/RetryAfter"}}
_ID = {
    "name": "id",
    "in": "path",
    "required": True,
    "description": "The taskId",
    "schema": {"type": "string", "pattern": "^[A-Za-z0-9_-]+$"},
}
_WAIT = {
    "name": PREFER,
    "in": "header",
    "description": f"`wait=10` waits up to 10 seconds for the task to end; at most {MAX_WAIT}",
    "schema": _TEXT,
}
_PREFER = {
    "name": PREFER,
    "in": "header",
    "description": (
        "`respond-async` turns the call into a task, and the response is 202; with `wait=10` the"
        " response is the reply itself if the task ends within 10 seconds"
    ),
    "schema": _TEXT,
}
_KEY = {
    "name": IDEMPOTENCY_KEY,
    "in": "header",
    "description": "A call with the same key and the same body runs only once",
    "schema": {"type": "string", "pattern": f"^[!-~]{{1,{MAX_KEY}}}$"},
}
_CREATED: Schema = {
    "description": "The call became a task, or the task has not ended yet",
    "headers": {
        "Location": {"description": "The path of the task", "schema": _TEXT},
        APPLIED: {"description": "The preference that was applied", "schema": _TEXT},
        **_RETRY_AFTER,
    },
    "content": {JSON: _STATUS},
}


def add_to_call(operation: Schema, tool: Tool) -> None:
    """Add the headers and responses of tasks and idempotency keys to *tool*'s operation."""
    responses = operation["responses"]
    parameters = [_KEY]
    if tool.settings.task != "forbidden":
        responses["202"] = _CREATED
        parameters = [_PREFER, _KEY]
    for status in (409, 422, 429, 503):  # From limits and keys.
        responses.setdefault(str(status), {"$ref": f"{RESPONSES}Error{status}"})
    operation["responses"] = dict(sorted(responses.items()))
    operation["parameters"] = parameters


def task_paths(tool: Tool, called: Schema, media: MediaTypes) -> dict[str, Schema]:
    """Return the paths for *tool*'s tasks; *called* is its operation."""
    statuses = (400, 404, 409, 413, 415, 500, 503)
    errors = error_responses({status: DESCRIPTIONS[status] for status in statuses}, media)
    path = f"{tool.contract.route}{tool.name}{TASKS}{{id}}"
    shared = {"tags": called["tags"]}
    if "security" in called:
        shared["security"] = called["security"]
    shown = {"description": "The task", "headers": _RETRY_AFTER, "content": {JSON: _STATUS}}

    def about(verb: str, summary: str, success: Schema = shown) -> Schema:
        return {
            **shared,
            "operationId": f"tasks.{tool.name}.{verb}",
            "summary": summary,
            "responses": {"200": success, **errors},
        }

    answers = {"schema": {"$ref": SCHEMAS + "TaskAnswers"}}
    answered = {
        **about("answer", f"Answer the questions from a {tool.name} task"),
        "requestBody": {"required": True, "content": {JSON: answers}},
    }
    result = about("result", f"The reply from a {tool.name} task")
    result["responses"] = dict(sorted({**called["responses"], **errors, "202": _CREATED}.items()))
    return {
        path: {
            "parameters": [_ID],
            "get": {**about("get", f"A {tool.name} task"), "parameters": [_WAIT]},
            "post": answered,
            "delete": about("cancel", f"Cancel a {tool.name} task"),
        },
        path + RESULT_PATH: {"parameters": [_ID], "get": {**result, "parameters": [_WAIT]}},
    }
