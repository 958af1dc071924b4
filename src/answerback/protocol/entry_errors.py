"""The JSON-RPC errors of resources, prompts and completions, which have no `isError` result.

The message is the error's own; its code, hint and other members are in `data`.
"""

from __future__ import annotations

from ..core.json_value import JsonObject
from ..core.reply import Error
from ..core.versions import Version
from ..dialects.common import is_retryable, without_none
from .jsonrpc import INTERNAL_ERROR, INVALID_PARAMS, RESOURCE_NOT_FOUND, RpcError


def no_resource(uri: str, version: Version) -> RpcError:
    """Return the error for a URI that no resource serves."""
    return RpcError(_not_found(version), f"Resource not found: {uri}", {"uri": uri})


def _not_found(version: Version) -> int:
    return INVALID_PARAMS if version.stateless else RESOURCE_NOT_FOUND


def resource_error(error: Error, uri: str, version: Version) -> RpcError:
    """Return the JSON-RPC error for the error that a resource raised."""
    if error.row.status == 404:
        return RpcError(_not_found(version), error.message, {"uri": uri, **_members(error)})
    return entry_error(error)


def entry_error(error: Error) -> RpcError:
    """Return the JSON-RPC error for the error of a resource, a prompt or a completion."""
    is_of_caller = 400 <= error.row.status < 500
    code = INVALID_PARAMS if is_of_caller else INTERNAL_ERROR
    return RpcError(code, error.message, _members(error))


def _members(error: Error) -> JsonObject:
    """Return the error's members except the message."""
    more = without_none(details=error.details, hint=error.hint, kind=error.kind)
    return {"code": error.code, "retryable": is_retryable(error), **more}
