"""The JSON Schema of a reply in each dialect.

The classes describe replies as they are sent. The schemas are generated from them, plus
whatever types cannot express.
"""

from __future__ import annotations

from datetime import datetime
from pathlib import Path
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

import msgspec
from msgspec import Meta

from ..contract import Dialect
from ..types.json_schema import rename_refs, schemas
from ..types.schema_references import used_definitions

Object: TypeAlias = dict[str, Any]
Pixels: TypeAlias = int
Timestamp: TypeAlias = Annotated[datetime, Meta(tz=True)]


class WireAnnotations(TypedDict, total=False):
    audience: list[Literal["user", "assistant"]]
    priority: Annotated[float, Meta(ge=0, le=1)]
    lastModified: Annotated[str, Meta(description="ISO 8601")]


class _BlockMembers(TypedDict, total=False):
    annotations: WireAnnotations
    _meta: Object


class WireText(_BlockMembers):
    type: Literal["text"]
    text: str


class WireImage(_BlockMembers):
    type: Literal["image"]
    data: bytes
    mimeType: str


class WireAudio(_BlockMembers):
    type: Literal["audio"]
    data: bytes
    mimeType: str


class ResourceLink(_BlockMembers):
    type: Literal["resource_link"]
    uri: str
    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    mimeType: NotRequired[str]


class TextBody(TypedDict):
    uri: str
    text: str
    title: NotRequired[str]
    mimeType: NotRequired[str]
    _meta: NotRequired[Object]


class BlobBody(TypedDict):
    uri: str
    blob: bytes
    title: NotRequired[str]
    mimeType: NotRequired[str]
    _meta: NotRequired[Object]


class WireResource(_BlockMembers):
    type: Literal["resource"]
    resource: TextBody | BlobBody


WireBlock: TypeAlias = WireText | WireImage | WireAudio | ResourceLink | WireResource


class Content(TypedDict):
    content: list[WireBlock]


class McpResult(TypedDict):
    content: list[WireBlock]
    structuredContent: NotRequired[Object]
    isError: NotRequired[Literal[False]]
    _meta: NotRequired[Object]


class McpError(TypedDict):
    content: list[WireBlock]
    isError: Literal[True]
    _meta: NotRequired[Object]


class _MediaMembers(_BlockMembers, total=False):
    mimeType: str
    width: Pixels
    height: Pixels
    caption: str


class EnvelopeImage(_MediaMembers):
    type: Literal["image"]
    url: str
    altText: str


class EnvelopeAudio(_MediaMembers):
    type: Literal["audio"]
    url: str
    altText: NotRequired[str]


class EnvelopeResource(_BlockMembers):
    type: Literal["resource"]
    resourceType: str
    identifier: str
    name: str
    description: NotRequired[str]
    metadata: NotRequired[Object]
    title: NotRequired[str]
    mimeType: NotRequired[str]
    embedded: NotRequired[Literal[True]]


EnvelopeBlock: TypeAlias = WireText | EnvelopeImage | EnvelopeAudio | EnvelopeResource


ErrorCode: TypeAlias = Annotated[str, Meta(description="A stable name for what went wrong")]
Retryable: TypeAlias = Annotated[bool, Meta(description="Whether the same call may work later")]
ErrorHint: TypeAlias = Annotated[str, Meta(description="What to do about it")]


class Failure(TypedDict):
    code: ErrorCode
    message: str
    details: NotRequired[Any]
    retryable: NotRequired[Retryable]
    hint: NotRequired[ErrorHint]
    kind: NotRequired[
        Annotated[str, Meta(description="The known code whose status a custom code uses")]
    ]


class Envelope(TypedDict):
    success: Literal[True]
    timestamp: Timestamp
    content: Annotated[list[EnvelopeBlock], Meta(min_length=1)]
    data: NotRequired[Any]
    meta: NotRequired[Object]


class EnvelopeError(TypedDict):
    success: Literal[False]
    timestamp: Timestamp
    content: Annotated[list[EnvelopeBlock], Meta(min_length=1)]
    error: Failure
    meta: NotRequired[Object]


class RestError(TypedDict):
    error: str


class WireProblem(TypedDict):
    type: str
    title: str
    status: int
    detail: str
    code: ErrorCode
    details: NotRequired[Any]
    retryable: NotRequired[Retryable]
    hint: NotRequired[ErrorHint]


Schema = dict[str, Any]

_DRAFT = "https://json-schema.org/draft/2020-12/schema"
_TYPES = (Content, McpResult, McpError, Envelope, EnvelopeError, Failure, RestError, WireProblem)
# Classes with different names in the published schemas.
_SCHEMA_NAMES = {
    "WireAnnotations": "Annotations",
    "WireText": "Text",
    "WireImage": "Image",
    "WireAudio": "Audio",
    "WireResource": "Resource",
    "WireProblem": "Problem",
}
_SCHEMAS_OF_DIALECT: dict[Dialect, tuple[str, ...]] = {
    "mcp": ("McpResult", "McpError"),
    "envelope": ("Envelope", "EnvelopeError"),
    "rest": ("RestError", "Content"),
    "problem": ("Problem",),
}
_REST_DATA: Schema = {
    "description": "The tool's data, as in its output schema; a failure has only an `error` member",
    "type": "object",
    "not": {"required": ["error"], "maxProperties": 1},
}
_REST_DESCRIPTION = (
    "A success is the tool's data, which may be any JSON object: its output schema says which, and "
    'OpenAPI shows it. A failure is exactly {"error": "message"}; its code is in X-Error-Code.'
)

_RETRY_AFTER: Schema = {
    "type": "number",
    "minimum": 0,
    "description": "How many seconds to wait before making the same call again",
}
_REFERENCE: Schema = {
    "type": "string",
    "description": "The reference for finding the full error in the server's log",
}
_PROBLEMS: Schema = {
    "type": "array",
    "description": "One entry for each wrong argument",
    "items": {
        "type": "object",
        "properties": {"path": {"type": "string"}, "message": {"type": "string"}},
        "required": ["path", "message"],
    },
}
_QUESTIONS: Schema = {
    "type": "array",
    "description": "The MCP requests that a client would be sent",
    "items": {
        "type": "object",
        "properties": {"method": {"type": "string"}, "params": {"type": "object"}},
        "required": ["method", "params"],
    },
}
_LIMIT: Schema = {"type": "string", "description": "The limit, such as 10/s"}
DETAILS: dict[str, Schema] = {
    "INVALID_ARGUMENTS": {"problems": _PROBLEMS},
    "RATE_LIMITED": {"limit": _LIMIT, "retry_after": _RETRY_AFTER},
    "UNAVAILABLE": {"retry_after": _RETRY_AFTER, "reference": _REFERENCE},
    "TIMED_OUT": {"retry_after": _RETRY_AFTER, "reference": _REFERENCE},
    "INPUT_REQUIRED": {"questions": _QUESTIONS},
    "TOOL_EXECUTION_ERROR": {"reference": _REFERENCE},
    "INVALID_OUTPUT": {"reference": _REFERENCE},
}
"""The members of an error's details, by error code. An author's own errors may have others."""


def wire_schemas(ref_template: str = "#/$defs/{name}") -> dict[str, Schema]:
    """Return the schemas of all wire types by name; *ref_template* is the format for references."""
    _, rendered = schemas(_TYPES, ref_template)
    refs = {
        ref_template.format(name=name): ref_template.format(name=published)
        for name, published in _SCHEMA_NAMES.items()
    }
    found: dict[str, Schema] = {
        _SCHEMA_NAMES.get(name, name): rename_refs(schema, refs)
        for name, schema in rendered.items()
    }
    # Types cannot express these: a success has no error, and a problem's type is a URI. Some
    # OpenAPI client generators reject the schema `false`, which means the same as this one.
    found["Envelope"]["properties"]["error"] = {"not": {}}
    found["Problem"]["properties"]["type"]["format"] = "uri-reference"
    for name in ("Failure", "Problem"):
        # The code decides which members the details have.
        found[name]["allOf"] = [
            {
                "if": {"properties": {"code": {"const": code}}, "required": ["code"]},
                "then": {"properties": {"details": {"properties": members}}},
            }
            for code, members in DETAILS.items()
        ]
    return found


def dialect_schema(dialect: Dialect) -> Schema:
    """Return the schema of a reply in *dialect*, a success or a failure."""
    found = wire_schemas()
    names = _SCHEMAS_OF_DIALECT[dialect]
    options: list[Schema] = [{"$ref": f"#/$defs/{name}"} for name in names]
    schema: Schema = {"$schema": _DRAFT, "title": f"A reply in the {dialect} dialect"}
    if dialect == "rest":
        schema["description"] = _REST_DESCRIPTION
        options.append(_REST_DATA)
        found["RestError"]["additionalProperties"] = False
    definitions = used_definitions(options, found, "#/$defs/")
    return schema | {"anyOf": options, "$defs": definitions}


def convention_schema() -> Schema:
    """Return the envelope's schema, verbatim from its convention."""
    schema: Schema = msgspec.json.decode(
        Path(__file__).with_name("envelope.convention.json").read_bytes()
    )
    return schema
