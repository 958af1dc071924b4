"""Which tool, resource or prompt an MCP request is about, and whether its gates hide it."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..registry import completion_key
from .jsonrpc import INVALID_PARAMS, RESOURCE_NOT_FOUND, Request, RpcError, read_params
from .params import Complete, GetPrompt, ReadResource, Reference

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..registry import Registry
    from ..tools.tool import Tool
    from .mcp_peer import McpPeer


_GATED = frozenset({"tools/call", "resources/read", "prompts/get", "completion/complete"})


def is_gated(registry: Registry, request: Request, tool_name: str) -> bool:
    """Whether gates decide about the request, so that no stream may begin before they have."""
    if not registry.has_gates or request.method not in _GATED:
        return False
    entry = entry_of(registry, request, tool_name)
    return entry is not None and entry.gates is not None


def entry_of(registry: Registry, request: Request, tool_name: str) -> Tool | None:
    """The entry that the request is about; None if there is none, or the request is malformed."""
    try:
        match request.method:
            case "tools/call":
                return registry.tools.get(tool_name)
            case "prompts/get":
                return registry.prompts.get(read_params(request.params, GetPrompt).name)
            case "resources/read":
                return _resource(registry, read_params(request.params, ReadResource).uri)
            case "completion/complete":
                return _completed(registry, read_params(request.params, Complete))
            case _:
                return None
    except RpcError:
        return None


def _completed(registry: Registry, asked: Complete) -> Tool | None:
    """The prompt or the resource whose argument is completed; else the completion itself."""
    owner = referenced_entry(registry, asked.ref)
    if owner is not None and owner.gates is not None:
        return owner
    return registry.completions.get(completion_key(asked.ref.target, asked.argument.name))


def referenced_entry(registry: Registry, ref: Reference) -> Tool | None:
    """The prompt or the resource that a reference names."""
    found: Tool | None
    if ref.type == "ref/prompt":
        found = registry.prompts.get(ref.target)
    else:
        found = registry.resources.get(ref.target)
    return found


def _resource(registry: Registry, uri: str) -> Tool | None:
    exact = registry.resources.get(uri)
    if exact is not None:
        return exact
    served = registry.resources.values()
    return next((each for each in served if each.arguments_for(uri) is not None), None)


def refuse_subscription(registry: Registry, uri: str, user: Any) -> RpcError | None:
    """The error for *user* who wants to learn of the changes of a resource with gates.

    Only the gates that look at the user alone can decide here. If there are others, nobody can
    subscribe.
    """
    resource = _resource(registry, uri)
    if resource is None or resource.gates is None:
        return None
    if resource.gates.hide_from(user):
        return RpcError(RESOURCE_NOT_FOUND, f"Resource not found: {uri}", {"uri": uri})
    for gate in resource.gates.by_token:
        if (refusal := gate.refuse_user(user)) is not None:
            return RpcError(INVALID_PARAMS, refusal.message, {"code": refusal.code})
    if len(resource.gates.by_token) < len(resource.gates.given):
        message = "There are no subscriptions to this resource, because its gates decide anew"
        return RpcError(INVALID_PARAMS, message, {"code": "FORBIDDEN"})
    return None


def is_visible_to(peer: McpPeer) -> Callable[[Tool], bool]:
    """Tells of which entries the client of a request may know."""
    user = peer.describe_request("mcp").user

    def is_visible(entry: Tool) -> bool:
        return entry.gates is None or not entry.gates.hide_from(user)

    return is_visible
