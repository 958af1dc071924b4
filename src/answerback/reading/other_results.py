"""Reads results that are not tool results: resource contents, tasks, and MCP's first form.

A tool's own data can look the same, so `read` asks here last.
"""

from __future__ import annotations

from typing import Any

import msgspec

from ..core.reply import Error, Reply
from ..dialects.common import author_meta
from ..dialects.mcp_blocks import read_block
from ..error_codes import UNKNOWN_ERROR, UNKNOWN_TEXT
from ..errors import MalformedReply
from .foreign_errors import json_rpc_error, task_error


def other_result(found: Any) -> Reply[Any] | None:
    """Return the reply for a resource or for a task without a result; None for any other value."""
    match found:
        case {"contents": [_, *_] as items} if all(map(_is_resource, items)):
            return _resource_contents(items, found.get("_meta"))
        case {"taskId": str(), "status": str(status), "createdAt": str()}:
            task = {name: each for name, each in found.items() if name != "_meta"}
            error = _error_of_task(task, status)
            return None if error is None else Reply(error=error)
    return None


def inner_result(found: Any) -> Any:
    """Return the result in a completed task or in `toolResult`, else UNSET."""
    match found:
        case {"toolResult": inner} if found.keys() <= {"toolResult", "_meta"}:
            return inner
        case {"taskId": str(), "status": "completed", "createdAt": str(), "result": dict(inner)}:
            return inner
    return msgspec.UNSET


def _resource_contents(items: list[Any], meta: Any) -> Reply[Any] | None:
    try:
        blocks = [read_block({"type": "resource", "resource": item}) for item in items]
    except MalformedReply:
        return None
    return Reply(content=tuple(blocks), meta=author_meta(meta))


def _is_resource(item: Any) -> bool:
    match item:
        case {"uri": str(), "text": str()} | {"uri": str(), "blob": str()}:
            return True
    return False


def _error_of_task(task: dict[str, Any], status: str) -> Error | None:
    match status:
        case "working" | "input_required":
            return task_error(task)
        case "cancelled":
            return Error("CANCELLED", f"the task {task['taskId'][:60]!r} was cancelled", task)
        case "failed":
            if isinstance(task.get("error"), dict):
                return json_rpc_error(task["error"])
            said = task.get("statusMessage")
            return Error(UNKNOWN_ERROR, said if isinstance(said, str) else UNKNOWN_TEXT, task)
    return None
