"""Validates messages with the official JSON Schemas and with the models of mcp-types.

The schemas allow additional members in every object, so a member that a version lacks passes.
Messages are validated with the schemas as they are, and with closed ones that refuse such members.
"""

from __future__ import annotations

import json
from functools import cache
from pathlib import Path
from typing import Any

import jsonschema_rs
import mcp_types
from mcp_types import methods
from pydantic import ValidationError

Json = Any
SCHEMAS = Path(__file__).parent.parent.parent.parent / "shared" / "mcp-schemas"
"""The official schemas. They are not part of this repository, so they may be missing."""
_RESULTS = {
    "initialize": "InitializeResult",
    "ping": "EmptyResult",
    "logging/setLevel": "EmptyResult",
    "resources/subscribe": "EmptyResult",
    "resources/unsubscribe": "EmptyResult",
    "tools/list": "ListToolsResult",
    "tools/call": "CallToolResult",
    "resources/list": "ListResourcesResult",
    "resources/templates/list": "ListResourceTemplatesResult",
    "resources/read": "ReadResourceResult",
    "prompts/list": "ListPromptsResult",
    "prompts/get": "GetPromptResult",
    "completion/complete": "CompleteResult",
    "server/discover": "DiscoverResult",
    "subscriptions/listen": "SubscriptionsListenResult",
}
_OPEN = frozenset(
    {"_meta", "inputSchema", "outputSchema", "structuredContent", "data", "requestedSchema"}
)
"""Members whose content the protocol does not define, or which are JSON Schemas themselves."""
_OPEN_KINDS = ("MetaObject", "JSONObject", "Schema", "SchemaDefinition")
_TITLED = ("TextResourceContents", "BlobResourceContents")
"""The specification shows a title in these; its schemas lack it."""


def is_error_without_id(message: Json) -> bool:
    """Whether a message is the error for a request whose id could not be read.

    The schemas of 2025-11-25 and 2026-07-28 allow the id to be missing, but not `null`. The
    older schemas require an id, and the models of mcp-types require `null`.
    """
    return "error" in message and "id" not in message


def schema_faults(message: Json, version: str, method: str | None, *, closed: bool) -> list[str]:
    """The errors that the JSON Schema of a version finds in a message."""
    if is_error_without_id(message) and version < "2025-11-25":
        message = message | {"id": 0}
    validator = _validator(version, _definition(message, version, method), closed)
    return [
        f"{version} {message.get('method') or method}: {fault.message[:300]} "
        f"at {'/'.join(map(str, fault.instance_path))}"
        for fault in validator.iter_errors(message)
    ]


def model_faults(message: Json, version: str, method: str | None) -> list[str]:
    """The errors that the models of mcp-types find in a message."""
    if is_error_without_id(message):
        message = message | {"id": None}
    try:
        if "method" in message and "id" in message:
            methods.parse_server_request(message["method"], version, message.get("params"))
        elif "method" in message:
            methods.parse_server_notification(message["method"], version, message.get("params"))
        elif "error" in message:
            mcp_types.JSONRPCError.model_validate(message)
        else:
            assert method is not None
            mcp_types.JSONRPCResponse.model_validate(message)
            methods.validate_server_result(method, version, message["result"])
    except (ValidationError, KeyError) as fault:
        return [f"{version} {message.get('method') or method}: {fault!r:.300}"]
    return []


def _definition(message: Json, version: str, method: str | None) -> str:
    """The name of the definition that a message must match."""
    if "error" in message:
        return "JSONRPCErrorResponse" if version >= "2025-11-25" else "JSONRPCError"
    if "method" in message:
        return _by_method(version).get(message["method"], f"no {message['method']} at {version}")
    assert method is not None
    if message["result"].get("resultType") == "input_required":
        return "InputRequiredResult"
    return _RESULTS[method]


@cache
def _schema(version: str) -> Json:
    return json.loads((SCHEMAS / f"{version}.json").read_text())


def _definitions(version: str) -> tuple[str, Json]:
    schema = _schema(version)
    key = "$defs" if "$defs" in schema else "definitions"
    return key, schema[key]


@cache
def _by_method(version: str) -> dict[str, str]:
    """The definition of each request and notification that a server may send."""
    _, definitions = _definitions(version)
    allowed = {
        each["$ref"].rpartition("/")[2]
        for name in ("ServerRequest", "ServerNotification")
        for each in definitions.get(name, {"anyOf": []})["anyOf"]
    }
    return {definitions[name]["properties"]["method"]["const"]: name for name in allowed}


@cache
def _validator(version: str, kind: str, closed: bool) -> Any:
    key, definitions = _definitions(version)
    if kind not in definitions:
        return jsonschema_rs.validator_for({"not": {}, "title": kind})
    if closed:
        definitions = {name: _closed(each, name) for name, each in definitions.items()}
    body: Json = {"$ref": f"#/{key}/{kind}"}
    if kind.endswith("Result"):
        frame = {
            "jsonrpc": {"const": "2.0"},
            "id": {"type": ["integer", "string"]},
            "result": body,
        }
        body = {"properties": frame, "required": list(frame), "additionalProperties": False}
    whole = {"$schema": _schema(version)["$schema"], "allOf": [body], key: definitions}
    return jsonschema_rs.validator_for(whole, validate_formats=True)


def _closed(node: Json, name: str) -> Json:
    """The schema, with no additional members in objects that list theirs."""
    if isinstance(node, list):
        return [_closed(each, "") for each in node]
    if not isinstance(node, dict) or name in _OPEN or name.endswith(_OPEN_KINDS):
        return node
    closed = {
        key: {member: _closed(each, member) for member, each in value.items()}
        if key == "properties"
        else _closed(value, "")
        for key, value in node.items()
    }
    if closed.get("properties") and closed.get("additionalProperties", {}) in ({}, True):
        closed["additionalProperties"] = False
    # Apps have this member in all versions that have `_meta` on a tool.
    if name == "Tool" and "_meta" in closed["properties"]:
        closed["properties"] = closed["properties"] | {"securitySchemes": {"type": "array"}}
    if name in _TITLED:
        closed["properties"] = closed["properties"] | {"title": {"type": "string"}}
    # These definitions leave out the members of JSON-RPC, which every message has.
    if name.endswith(("Notification", "Request")) and "properties" in closed:
        frame = {"jsonrpc": {"const": "2.0"}, "id": {"type": ["integer", "string"]}}
        closed["properties"] = frame | closed["properties"]
    return closed
