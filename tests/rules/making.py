"""What the replies of both corpora are made of."""

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


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


def blocks(*content: Any, **more: Any) -> dict[str, Any]:
    return {"content": [*content], **more}


def said(words: str) -> dict[str, Any]:
    return {"type": "text", "text": words}


def image(data: str, mime: str = "image/png") -> dict[str, Any]:
    return {"type": "image", "data": data, "mimeType": mime}


def envelope(**changes: Any) -> dict[str, Any]:
    whole: dict[str, Any] = {
        "success": True,
        "timestamp": NOW,
        "content": [said("Instance started")],
    }
    return whole | changes
