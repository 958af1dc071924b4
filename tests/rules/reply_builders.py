"""Builders of replies for the corpora of good and bad replies."""

from __future__ import annotations

from typing import Any

PNG = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8DwHwAF"
    "BQIAX8jx0gAAAABJRU5ErkJggg=="
)
USER = {
    "type": "object",
    "properties": {"id": {"type": "integer"}, "name": {"type": "string"}},
    "required": ["id", "name"],
}
NOW = "2026-01-31T12:00:00Z"


def text_result(text: str, **members: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": text}], **members}


def blocks_result(*blocks: Any, **members: Any) -> dict[str, Any]:
    return {"content": [*blocks], **members}


def text_block(text: str) -> dict[str, Any]:
    return {"type": "text", "text": text}


def image_block(data: str, mime: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": mime}


def envelope(**changes: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "success": True,
        "timestamp": NOW,
        "content": [text_block("Instance started")],
    }
    return whole | changes
