"""Correct replies, which several rules have as their good example."""

from __future__ import annotations

from typing import Any

ENVELOPE_SUCCESS: dict[str, Any] = {
    "success": True,
    "timestamp": "2026-01-31T12:00:00Z",
    "content": [{"type": "text", "text": "Instance 'vscode-instance-1' started successfully"}],
    "data": {"instanceId": "instance-1", "status": "running"},
}
ENVELOPE_FAILURE: dict[str, Any] = {
    "success": False,
    "timestamp": "2026-01-31T12:00:00Z",
    "content": [{"type": "text", "text": "Error: Instance 'instance-1' not found"}],
    "error": {
        "code": "INSTANCE_NOT_FOUND",
        "message": "Instance 'instance-1' not found",
        "details": {"instanceId": "instance-1"},
    },
}
MCP_TEXT: dict[str, Any] = {"content": [{"type": "text", "text": "5 °C and cloudy in Oslo"}]}
MCP_DATA: dict[str, Any] = {
    "content": [{"type": "text", "text": '{"temperature":22.5,"humidity":65}'}],
    "structuredContent": {"temperature": 22.5, "humidity": 65},
}
MCP_FAILURE: dict[str, Any] = {
    "content": [
        {"type": "text", "text": "Location 'xyz' not found. Please provide a valid city name."}
    ],
    "isError": True,
}
WEATHER_SCHEMA: dict[str, Any] = {
    "type": "object",
    "properties": {"temperature": {"type": "number"}, "humidity": {"type": "number"}},
    "required": ["temperature", "humidity"],
}
PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAF"
    "BQIAX8jx0gAAAABJRU5ErkJggg=="
)
MCP_IMAGE: dict[str, Any] = {
    "content": [{"type": "image", "data": PNG, "mimeType": "image/png"}],
}


def text_result(text: str, **members: Any) -> dict[str, Any]:
    """Return an MCP result with one text block."""
    return {"content": [{"type": "text", "text": text}], **members}


def blocks_result(*blocks: dict[str, Any], **members: Any) -> dict[str, Any]:
    """Return an MCP result with these blocks."""
    return {"content": [*blocks], **members}
