"""The operations of the document: one for each tool and for each page."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Any

import msgspec

from ....core.json_value import Json
from ....dialects.rest import FORM
from ....dialects.status_and_headers import ERROR_CODE, ERROR_HINT, JSON, RETRY_AFTER
from ....gates.prompts import needs_login, scopes_of
from ....tools.tool import Tool
from ....types.json_text import ENCODER
from .bodies import error_schema, success_schema
from .components import has_required_arguments, object_schema
from .media import MediaTypes, with_media_ranges
from .statuses import DESCRIPTIONS, error_statuses

Schema = dict[str, Any]

BEARER = "bearer"
"""The name of the security scheme of tools that require a login."""
RESPONSES = "#/components/responses/"
HEADERS = {
    "ErrorCode": {
        "description": "A stable name for what went wrong, such as INVALID_ARGUMENTS",
        "schema": {"type": "string"},
    },
    "ErrorHint": {
        "description": "What to do about it; other characters than ASCII are written as %XX",
        "schema": {"type": "string"},
    },
    "RetryAfter": {
        "description": "The seconds after which the same call may be made again",
        "schema": {"type": "integer", "minimum": 0},
    },
}
_FUNCTIONS = {"name": "functions", "description": "The functions that can be called"}
_SERVICE = {"name": "service", "description": "The list of functions, this document, and health"}
_ERROR_HEADERS = {
    ERROR_CODE: {"$ref": "#/components/headers/ErrorCode"},
    ERROR_HINT: {"$ref": "#/components/headers/ErrorHint"},
}
_SUCCESS = "Successful execution"
_FORM_HEADER = {
    "description": "Sent if the body is not data but content blocks, or the bytes of one block",
    "schema": {"enum": ["content", "image", "audio"]},
}
_LIMIT: Schema = {
    "name": "limit",
    "in": "query",
    "description": "How many items are sent at most; a link leads to the next ones",
    "schema": {"type": "integer", "minimum": 1, "maximum": 999_999_999},
}
_LINK: Schema = {
    "description": 'The next items, as <url>; rel="next"; sent with limit if there are any',
    "schema": {"type": "string"},
}
# The `aligned` convention reads these responses in the operation itself and follows no references.
_INLINE_STATUSES = (400, 500)
# Any other error: of a tool that raises what it does not declare, of a proxy or of middleware.
_DEFAULT = {"default": {"$ref": f"{RESPONSES}Error"}}
# The statuses of requests that reach no tool.
_BEFORE_THE_CALL = (400, 413, 415)

_TEXT: Schema = {"type": "string"}
_OBJECT: Schema = {"type": "object"}
_FUNCTION = object_schema(
    {
        "name": _TEXT,
        "title": _TEXT,
        "description": _TEXT,
        "inputSchema": _OBJECT,
        "outputSchema": _OBJECT,
    },
    required=["name", "description", "inputSchema"],
)
_CHECKS: Schema = {
    "description": "The health checks by name; calls can be served if all are ready",
    "type": "object",
    "additionalProperties": object_schema({"ready": {"type": "boolean"}}),
}


def _health_schema(status: str) -> Schema:
    return object_schema(
        {"status": {"const": status}, "name": _TEXT, "version": _TEXT, "checks": _CHECKS},
        required=["status", "name", "version"],
    )


def tags_of(tools: Iterable[Tool]) -> list[Schema]:
    """Return the tags of the operations; the tools' own come first."""
    own = [tool.settings.tags for tool in tools]
    names = {tag for tags in own for tag in tags} - {_FUNCTIONS["name"], _SERVICE["name"]}
    has_untagged = any(not tags or _FUNCTIONS["name"] in tags for tags in own)
    return [
        *({"name": name} for name in sorted(names)),
        *([_FUNCTIONS] if has_untagged else []),
        _SERVICE,
    ]


def operation(tool: Tool, arguments: Schema, data: Schema | None, media: MediaTypes) -> Schema:
    """Return the operation of *tool*; *data* is the schema of its wrapped data, if declared."""
    summary = tool.title or tool.description.partition("\n")[0]
    about = {
        "operationId": f"functions.{tool.name}",
        "summary": summary,
        "description": "" if tool.description == summary else tool.description,
    }
    made: Schema = {
        **{name: text for name, text in about.items() if text},
        "tags": sorted(tool.settings.tags) or [_FUNCTIONS["name"]],
        "requestBody": _request(tool, arguments),
        "responses": _responses(tool, data, media),
        **({"security": [{BEARER: list(scopes_of(tool))}]} if needs_login(tool) else {}),
    }
    if tool.settings.task != "forbidden" or tool.settings.idempotency_key:
        _add_task(tool, made)
    if tool.is_paged or _is_list(data):
        made["parameters"] = [*made.get("parameters", ()), _LIMIT]
        made["responses"]["200"].setdefault("headers", {})["Link"] = _LINK
    return made


def _is_list(data: Schema | None) -> bool:
    """Return whether data of this wrapped schema is a list."""
    result = {} if data is None else data.get("properties", {}).get("result", {})
    return bool(result.get("type") == "array" and "prefixItems" not in result)


def _add_task(tool: Tool, made: Schema) -> None:
    """Add the parts of a tool that may run as a task, or takes an idempotency key."""
    from .task_paths import CREATED, ERROR_STATUSES, call_parameters, has_task

    responses = made["responses"]
    if has_task(tool):
        responses["202"] = CREATED
    for status in ERROR_STATUSES:
        responses.setdefault(str(status), {"$ref": f"{RESPONSES}Error{status}"})
    made["responses"] = dict(sorted(responses.items()))
    made["parameters"] = call_parameters(tool)


def paths_of_tasks(tool: Tool, called: Schema, media: MediaTypes) -> dict[str, Schema]:
    """Return the paths of a tool's tasks; *called* is the tool's operation."""
    from .task_paths import task_paths

    errors = {
        str(status): _error_response(DESCRIPTIONS[status], media)
        if status in _INLINE_STATUSES
        else {"$ref": f"{RESPONSES}Error{status}"}
        for status in (400, 404, 409, 413, 415, 500, 503)
    }
    return task_paths(tool, called, errors | _DEFAULT)


def shared_responses(media: MediaTypes) -> dict[str, Schema]:
    """Return the error responses that tools share, by name."""
    shared = {
        f"Error{status}": _with_retry_after(status, _error_response(description, media))
        for status, description in DESCRIPTIONS.items()
        if status not in _INLINE_STATUSES
    }
    # The status may be 429 or 503.
    shared["Error"] = _with_retry_after(503, _error_response("Any other error", media))
    return shared


def _responses(tool: Tool, data: Schema | None, media: MediaTypes) -> Schema:
    responses = {"200": _success(tool, data, media)}
    for status, description in error_statuses(tool).items():
        if tool.contract.always_200 and status not in _BEFORE_THE_CALL:
            continue
        if status in _INLINE_STATUSES or description != DESCRIPTIONS.get(status):
            response = _with_retry_after(status, _error_response(description, media))
            responses[str(status)] = response
        else:
            responses[str(status)] = {"$ref": f"{RESPONSES}Error{status}"}
    return responses | _DEFAULT


def page_paths(media: MediaTypes) -> dict[str, Schema]:
    """Return the paths that are not tools: the list of functions, this document, and health."""
    functions = {"type": "array", "items": _FUNCTION}
    return {
        "/functions": _page("listFunctions", "The functions", functions, media),
        "/openapi.json": _page("describeService", "This document", _OBJECT, media),
        "/healthz": _page("checkHealth", "Whether the service is up", _health_schema("ok"), media),
        "/readyz": _readiness_page(media),
    }


def _readiness_page(media: MediaTypes) -> Schema:
    summary = "Whether calls can be served"
    page = _page("checkReadiness", summary, _health_schema("ready"), media)
    not_ready = {JSON: {"schema": _health_schema("not ready")}}
    responses = page["get"]["responses"]
    responses["503"] = {"description": "They cannot", "content": not_ready}
    page["get"]["responses"] = dict(sorted(responses.items()))
    return page


def _page(operation_id: str, summary: str, schema: Schema, media: MediaTypes) -> Schema:
    content = {JSON: {"schema": schema}}
    responses = {
        "200": {"description": summary, "content": content},
        "400": _error_response(DESCRIPTIONS[400], media),
        "500": _error_response(DESCRIPTIONS[500], media),
        **_DEFAULT,
    }
    about = {"operationId": operation_id, "summary": summary, "tags": ["service"]}
    return {"get": {**about, "responses": responses}}


def _error_response(description: str, media: MediaTypes) -> Schema:
    content = {name: {"schema": error_schema(dialect)} for name, dialect in media.error.items()}
    return {"description": description, "headers": _ERROR_HEADERS, "content": content}


def _with_retry_after(status: int, response: Schema) -> Schema:
    """Return the response, with the header that limits and breakers send."""
    if status not in (429, 503):
        return response
    header = {RETRY_AFTER: {"$ref": "#/components/headers/RetryAfter"}}
    return {**response, "headers": {**response["headers"], **header}}


def _request(tool: Tool, arguments: Schema) -> Schema:
    media: Schema = {"schema": arguments}
    examples = tool.settings.examples
    if examples:
        media["examples"] = {
            f"example{number}": {"value": _example_as_json(tool, example)}
            for number, example in enumerate(examples, 1)
        }
    # An empty body means {}, so the body is required only if an argument is.
    return {"required": has_required_arguments(tool), "content": {JSON: media}}


def _example_as_json(tool: Tool, example: object) -> Json:
    try:
        return msgspec.json.decode(ENCODER.encode(example))
    except (NotImplementedError, TypeError, ValueError, RecursionError) as exc:
        raise ValueError(f"an example of tool {tool.name!r} is not JSON: {exc}") from None


def _success(tool: Tool, data: Schema | None, media: MediaTypes) -> Schema:
    blocks_only = tool.returns.blocks_only
    content: Schema = {
        name: {"schema": success_schema(dialect, data, blocks_only=blocks_only)}
        for name, dialect in media.success.items()
    }
    if tool.contract.always_200:
        either = [content[JSON]["schema"], error_schema(tool.contract.http)]
        content[JSON] = {"schema": {"anyOf": either}}
    if data is None and tool.contract.http not in ("mcp", "envelope"):
        content = with_media_ranges(tool, content)
        return {"description": _SUCCESS, "headers": {FORM: _FORM_HEADER}, "content": content}
    return {"description": _SUCCESS, "content": content}
