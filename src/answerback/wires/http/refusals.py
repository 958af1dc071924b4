"""What REST and CGI say alike about a request, before there is a call."""

from __future__ import annotations

from typing import Any

from ...reply import Reply, failure

MAX_BODY = 4 * 1024 * 1024

RESERVED = frozenset({"functions", "openapi.json", "healthz", "mcp", "message"})
"""First parts of paths that are ours; no tool may stand there."""


def refuse_method(method: str, allowed: str) -> Reply[Any] | None:
    if method == allowed or method in allowed.split(", "):
        return None
    return failure(f"Method not allowed: {method}; use {allowed}", code="METHOD_NOT_ALLOWED")


def refuse_media(content_type: str) -> Reply[Any] | None:
    """JSON or nothing: a form is what a stranger's page can post without being asked."""
    if content_type == "application/json":
        return None
    media = content_type.partition(";")[0].strip().lower()
    if not media or media == "application/json" or media.endswith("+json"):
        return None
    return failure(
        f"Unsupported media type: {media}; send JSON with Content-Type: application/json",
        code="UNSUPPORTED_MEDIA_TYPE",
    )


def no_route(path: str) -> Reply[Any]:
    # Where a newcomer looks first.
    where = "; see /functions and /openapi.json" if path == "/" else ""
    return failure(f"Not found: {path}{where}", code="ROUTE_NOT_FOUND")
