"""Refusals that REST, CGI and MCP over HTTP share, made before there is a call."""

from __future__ import annotations

from typing import Any

from ...core.reply import Reply, failure


def refuse_method(method: str, allowed: str) -> Reply[Any] | None:
    """Return the refusal of a method that is not among *allowed*, a comma-separated list."""
    if method == allowed or method in allowed.split(", "):
        return None
    return failure(f"Method not allowed: {method}; use {allowed}", code="METHOD_NOT_ALLOWED")


def refuse_media(content_type: bytes) -> Reply[Any] | None:
    """Refuse a body that is not JSON: any web page can post a form without permission."""
    media = content_type.decode("latin-1").partition(";")[0].strip().lower()
    if not media or media == "application/json" or media.endswith("+json"):
        return None
    return failure(
        f"Unsupported media type: {media}; send JSON with Content-Type: application/json",
        code="UNSUPPORTED_MEDIA_TYPE",
    )


def refuse_encoding(encoding: bytes) -> Reply[Any] | None:
    """Return the refusal of a compressed body; *encoding* is the `Content-Encoding` header."""
    name = encoding.decode("latin-1").strip().lower()
    if name in ("", "identity"):
        return None
    return failure(
        f"Unsupported content encoding: {name}; send the body without compression",
        code="UNSUPPORTED_MEDIA_TYPE",
    )


def no_route(path: str, root: str) -> Reply[Any]:
    """Return the refusal of an unknown *path* below *root*."""
    # Newcomers try "/" first.
    where = "; see /functions and /openapi.json" if path == "/" else ""
    return failure(f"Not found: {root}{path}{where}", code="ROUTE_NOT_FOUND")


def too_large(limit: int, hint: str) -> Reply[Any]:
    return failure(f"Body larger than {limit} bytes", code="TOO_LARGE", hint=hint)
