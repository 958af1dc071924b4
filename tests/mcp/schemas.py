"""Whether a message of ours is one: by the official schemas, and by the mcp-types models.

The schemas leave every object open, so that what a version does not know passes. They are
read twice: as they stand, and closed, so that nothing leaves which that version has no word for.
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
"""The official schemas: not ours to commit, so they may not be here."""
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
"""What is in them is not the protocol's, or is JSON Schema, which has more words."""
_OPEN_KINDS = ("MetaObject", "JSONObject", "Schema", "SchemaDefinition")
_TITLED = ("TextResourceContents", "BlobResourceContents")
"""The specification's pages show a title there, which its schemas forget."""


def is_error_without_id(message: Json) -> bool:
    """An answer to what had no readable id.

    The schemas of 2025-11-25 and 2026-07-28 permit it, and no `null`. The older schemas
    have no word for such an answer, and the models of mcp-types take only `null`.
    """
    return "error" in message and "id" not in message


def schema_faults(message: Json, version: str, method: str | None, *, closed: bool) -> list[str]:
    """What that version's JSON Schema has against a message."""
    if is_error_without_id(message) and version < "2025-11-25":
        message = message | {"id": 0}
    validator = _validator(version, _kind(message, version, method), closed)
    return [
        f"{version} {message.get('method') or method}: {fault.message[:300]} "
        f"at {'/'.join(map(str, fault.instance_path))}"
        for fault in validator.iter_errors(message)
    ]


def model_faults(message: Json, version: str, method: str | None) -> list[str]:
    """What the models of mcp-types have against a message."""
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


def _kind(message: Json, version: str, method: str | None) -> str:
    """The name of the definition that a message falls under."""
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
    """The schema with every object of known members closed."""
    if isinstance(node, list):
        return [_closed(each, "") for each in node]
    if not isinstance(node, dict) or name in _OPEN or name.endswith(_OPEN_KINDS):
        return node
    shut = {
        key: {member: _closed(each, member) for member, each in value.items()}
        if key == "properties"
        else _closed(value, "")
        for key, value in node.items()
    }
    if shut.get("properties") and shut.get("additionalProperties", {}) in ({}, True):
        shut["additionalProperties"] = False
    if name in _TITLED:
        shut["properties"] = shut["properties"] | {"title": {"type": "string"}}
    # These say by their methods that they are of JSON-RPC, and by its name which version.
    if name.endswith(("Notification", "Request")) and "properties" in shut:
        frame = {"jsonrpc": {"const": "2.0"}, "id": {"type": ["integer", "string"]}}
        shut["properties"] = frame | shut["properties"]
    return shut
