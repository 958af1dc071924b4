"""The operations of the document: one for each tool and for each page."""

from __future__ import annotations

from collections.abc import Iterator
from typing import TYPE_CHECKING, Any

import msgspec

from ....content import Audio, Image
from ....dialects.accept import MEDIA_TYPES
from ....dialects.http_reply import ERROR_CODE, JSON
from ....dialects.rest import FORM
from ....types.json_text import ENCODER
from .bodies import error_schema, success_schema
from .components import object_schema
from .statuses import DESCRIPTIONS, error_statuses

if TYPE_CHECKING:
    from ....contract import Contract, Dialect
    from ....tools.tool import Tool

Schema = dict[str, Any]

RESPONSES = "#/components/responses/"
HEADERS = {
    "ErrorCode": {
        "description": "A stable name for what went wrong, such as INVALID_ARGUMENTS",
        "schema": {"type": "string"},
    }
}
_ERROR_HEADERS = {ERROR_CODE: {"$ref": "#/components/headers/ErrorCode"}}
_FORM_HEADER = {
    "description": "Sent if the body is not data but content blocks, or the bytes of one block",
    "schema": {"enum": ["content", "image", "audio"]},
}
# Seed 001 reads these responses in the operation itself and follows no references.
_INLINE_STATUSES = (400, 500)

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
    "additionalProperties": {
        "type": "object",
        "properties": {"ready": {"type": "boolean"}},
        "required": ["ready"],
    },
}


def _health_schema(status: str) -> Schema:
    return object_schema(
        {"status": {"const": status}, "name": _TEXT, "version": _TEXT, "checks": _CHECKS},
        required=["status", "name", "version"],
    )


def operation(tool: Tool, arguments: Schema, data: Schema | None) -> Schema:
    """The operation of *tool*; *data* is the schema of its wrapped data, if declared."""
    summary = tool.title or tool.description.partition("\n")[0]
    about = {
        "operationId": f"functions.{tool.name}",
        "summary": summary,
        "description": "" if tool.description == summary else tool.description,
    }
    return {
        **{name: text for name, text in about.items() if text},
        "tags": ["functions"],
        "requestBody": _request(tool, arguments),
        "responses": _responses(tool, data),
    }


def shared_responses(contract: Contract) -> dict[str, Schema]:
    """The error responses that tools share, by name."""
    return {
        f"Error{status}": _error_response(description, contract)
        for status, description in DESCRIPTIONS.items()
        if status not in _INLINE_STATUSES
    }


def _responses(tool: Tool, data: Schema | None) -> Schema:
    responses = {"200": _success(tool, data)}
    for status, description in error_statuses(tool).items():
        if status in _INLINE_STATUSES or description != DESCRIPTIONS.get(status):
            responses[str(status)] = _error_response(description, tool.contract)
        else:
            responses[str(status)] = {"$ref": f"{RESPONSES}Error{status}"}
    return responses


def page_paths(contract: Contract) -> dict[str, Schema]:
    """The paths that are not tools: the list of functions, this document, and health."""
    functions = {"type": "array", "items": _FUNCTION}
    return {
        "/functions": _page("listFunctions", "The functions", functions, contract),
        "/openapi.json": _page("describeService", "This document", _OBJECT, contract),
        "/healthz": _page(
            "checkHealth", "Whether the service is up", _health_schema("ok"), contract
        ),
        "/readyz": _readiness_page(contract),
    }


def _readiness_page(contract: Contract) -> Schema:
    summary = "Whether calls can be served"
    page = _page("checkReadiness", summary, _health_schema("ready"), contract)
    not_ready = {JSON: {"schema": _health_schema("not ready")}}
    page["get"]["responses"]["503"] = {"description": "They cannot", "content": not_ready}
    return page


def _page(operation_id: str, summary: str, schema: Schema, contract: Contract) -> Schema:
    content = {JSON: {"schema": schema}}
    responses = {
        "200": {"description": summary, "content": content},
        "400": _error_response(DESCRIPTIONS[400], contract),
        "500": _error_response(DESCRIPTIONS[500], contract),
    }
    about = {"operationId": operation_id, "summary": summary, "tags": ["service"]}
    return {"get": {**about, "responses": responses}}


def _error_response(description: str, contract: Contract) -> Schema:
    """An error response, in each dialect that a caller may ask for."""
    media = _media_types(contract, failed=True)
    content = {name: {"schema": error_schema(dialect)} for name, dialect in media.items()}
    return {"description": description, "headers": _ERROR_HEADERS, "content": content}


def _media_types(contract: Contract, *, failed: bool) -> dict[str, Dialect]:
    """The media types of a response and their dialects.

    The dialect `problem` is for errors only, and is never sent as plain JSON.
    """
    named = {
        media: dialect for media, dialect in MEDIA_TYPES.items() if failed or dialect != "problem"
    }
    if failed and contract.http == "problem":
        return named
    others = {media: dialect for media, dialect in named.items() if dialect != contract.http}
    return {JSON: contract.http, **others}


def _request(tool: Tool, arguments: Schema) -> Schema:
    media: Schema = {"schema": arguments}
    examples = tool.settings.examples
    if examples:
        media["examples"] = {
            f"example{number}": {"value": _example_as_json(tool, example)}
            for number, example in enumerate(examples, 1)
        }
    # An empty body means {}, so the body is required only if an argument is.
    required = any(parameter.required for parameter in tool.parameters)
    return {"required": required, "content": {JSON: media}}


def _example_as_json(tool: Tool, example: Any) -> Any:
    try:
        return msgspec.json.decode(ENCODER.encode(example))
    except (NotImplementedError, TypeError, ValueError, RecursionError) as exc:
        raise ValueError(f"an example of tool {tool.name!r} is not JSON: {exc}") from None


def _success(tool: Tool, data: Schema | None) -> Schema:
    blocks_only = tool.returns.blocks_only
    content: Schema = {
        media: {"schema": success_schema(dialect, data, blocks_only=blocks_only)}
        for media, dialect in _media_types(tool.contract, failed=False).items()
    }
    success = {"description": "Successful execution", "content": content}
    if data is not None or tool.contract.http in ("mcp", "envelope"):
        return success
    content |= {media: {} for media in _media_ranges(tool)}
    return success | {"headers": {FORM: _FORM_HEADER}}


def _media_ranges(tool: Tool) -> list[str]:
    """The media types of a body that is the bytes of a single image or audio block."""
    kinds = {Image: "image/*", Audio: "audio/*"}
    if not tool.returns.blocks_only:
        return list(kinds.values())
    declared = list(_classes_in(tool.signature.returns))
    return [
        media for block, media in kinds.items() if any(issubclass(each, block) for each in declared)
    ]


def _classes_in(annotation: Any) -> Iterator[type]:
    """The classes that an annotation names, at any depth."""
    if isinstance(annotation, type):
        yield annotation
    for inner in getattr(annotation, "__args__", ()):
        yield from _classes_in(inner)
