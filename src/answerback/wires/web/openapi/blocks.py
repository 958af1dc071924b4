"""The schemas of content blocks, in MCP's form and in the envelope's."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

Schema = dict[str, Any]

ROOT = "#/components/schemas/"
MCP_BLOCK = "AnswerbackBlock"
ENVELOPE_BLOCK = "AnswerbackEnvelopeBlock"
ANNOTATIONS = "AnswerbackAnnotations"

_TEXT: Schema = {"type": "string"}
_BASE64: Schema = {"type": "string", "contentEncoding": "base64"}
_PIXELS: Schema = {"type": "integer"}
_OBJECT: Schema = {"type": "object"}


def ref(name: str) -> Schema:
    return {"$ref": ROOT + name}


def record(properties: Schema, required: Sequence[str] | None = None) -> Schema:
    """An object with these members, all of them required unless *required* says which."""
    names = list(properties if required is None else required)
    return {"type": "object", "properties": properties, "required": names}


def _block(kind: str, members: Schema, optional: Schema | None = None) -> Schema:
    common = {"annotations": ref(ANNOTATIONS), "_meta": _OBJECT}
    needed = {"type": {"const": kind}, **members}
    return record({**needed, **(optional or {}), **common}, required=list(needed))


def _mcp_block() -> Schema:
    media = {"data": _BASE64, "mimeType": _TEXT}
    body = {"uri": _TEXT, "title": _TEXT, "mimeType": _TEXT}
    text = record({**body, "text": _TEXT}, required=["uri", "text"])
    blob = record({**body, "blob": _BASE64}, required=["uri", "blob"])
    link = {"title": _TEXT, "description": _TEXT, "mimeType": _TEXT}
    return {
        "oneOf": [
            _block("text", {"text": _TEXT}),
            _block("image", media),
            _block("audio", media),
            _block("resource_link", {"uri": _TEXT, "name": _TEXT}, link),
            _block("resource", {"resource": {"oneOf": [text, blob]}}),
        ]
    }


def _envelope_block() -> Schema:
    looks = {"mimeType": _TEXT, "width": _PIXELS, "height": _PIXELS, "caption": _TEXT}
    resource = {"resourceType": _TEXT, "identifier": _TEXT, "name": _TEXT}
    more = {
        "description": _TEXT,
        "metadata": _OBJECT,
        "title": _TEXT,
        "mimeType": _TEXT,
        "embedded": {"const": True},
    }
    return {
        "oneOf": [
            _block("text", {"text": _TEXT}),
            _block("image", {"url": _TEXT, "altText": _TEXT}, looks),
            _block("audio", {"url": _TEXT}, {"altText": _TEXT, **looks}),
            _block("resource", resource, more),
        ]
    }


def _annotations() -> Schema:
    audience = {"type": "array", "items": {"enum": ["user", "assistant"]}}
    members = {
        "audience": audience,
        "priority": {"type": "number", "minimum": 0, "maximum": 1},
        "lastModified": {"type": "string", "description": "ISO 8601"},
    }
    return record(members, required=[])


BLOCKS = {
    MCP_BLOCK: _mcp_block(),
    ENVELOPE_BLOCK: _envelope_block(),
    ANNOTATIONS: _annotations(),
}
