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


def no_route(path: str, root: str, *, mcp: str = "", has_pages: bool = False) -> Reply[Any]:
    """Return the refusal of an unknown *path* below *root*; *mcp* is the path of MCP, if any."""
    parts = [f"Not found: {root}{path}"]
    # Newcomers try "/" first, and a client of an app mounted at /mcp is sent to its "/".
    if mcp and path in ("/", "/mcp"):
        parts.append(f"MCP is at {root}{mcp}")
    if path == "/" and has_pages:
        parts.append(f"see {root}/functions and {root}/openapi.json")
    return failure("; ".join(parts), code="ROUTE_NOT_FOUND")


def too_large(limit: int, hint: str) -> Reply[Any]:
    return failure(f"Body larger than {limit} bytes", code="TOO_LARGE", hint=hint)
