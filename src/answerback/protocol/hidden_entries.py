"""Which tool, resource or prompt an MCP request is about, and whether it is hidden."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..registry.declarations import Registry, completion_key, is_hidden
from .jsonrpc import INVALID_PARAMS, RESOURCE_NOT_FOUND, Request, RpcError, read_params
from .params import Complete, GetPrompt, ReadResource, Reference

if TYPE_CHECKING:
    from ..core.request_info import RequestInfo
    from ..tools.resource import Resource
    from ..tools.tool import Tool
    from .mcp_peer import McpPeer


_GATED = frozenset({"tools/call", "resources/read", "prompts/get", "completion/complete"})


def is_gated(registry: Registry, request: Request, tool_name: str) -> bool:
    """Return whether gates decide about the request, so that no stream may begin before."""
    if not registry.has_gates or request.method not in _GATED:
        return False
    entry = entry_of(registry, request, tool_name)
    return entry is not None and entry.gates is not None


def entry_of(registry: Registry, request: Request, tool_name: str) -> Tool | None:
    """Return the entry a request is about; None if there is none or the request is malformed."""
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
    """Return the prompt or resource whose argument is completed; else the completion itself."""
    owner = referenced_entry(registry, asked.ref)
    if owner is not None and owner.gates is not None:
        return owner
    return registry.completions.get(completion_key(asked.ref.target, asked.argument.name))


def referenced_entry(registry: Registry, ref: Reference) -> Tool | None:
    """Return the prompt or the resource that a reference names."""
    entries = registry.prompts if ref.type == "ref/prompt" else registry.resources
    return entries.get(ref.target)


def _resource(
    registry: Registry, uri: str, seen: Callable[[Tool], bool] | None = None
) -> Resource | None:
    found = find_resource(registry, uri, seen)
    return None if found is None else found[0]


def find_resource(
    registry: Registry, uri: str, seen: Callable[[Tool], bool] | None
) -> tuple[Resource, bytes] | None:
    """Return the resource that serves *uri*, and its arguments.

    *seen* says whether the client may see a resource; a template may serve another's URI.
    """
    exact = registry.resources.get(uri)
    served = [*(() if exact is None else (exact,)), *registry.resources.values()]
    if registry.has_budgets:
        # Imported here, so that other apps do not pay for it.
        from ..calls.fitted_reply import whole_resource

        served.insert(0, whole_resource(registry))
    for resource in served:
        arguments = resource.arguments_for(uri)
        if arguments is not None and (seen is None or seen(resource)):
            return resource, arguments
    return None


def refuse_subscription(registry: Registry, uri: str, request: RequestInfo) -> RpcError | None:
    """Return the error for a client that wants to subscribe to a hidden or gated resource.

    Only gates that check nothing but the user can decide here. If there are others, nobody can
    subscribe.
    """
    resource = _resource(registry, uri, _is_visible_in(request))
    if resource is None:
        return RpcError(RESOURCE_NOT_FOUND, f"Resource not found: {uri}", {"uri": uri})
    if resource.gates is None:
        return None
    for gate in resource.gates.by_token:
        if (refusal := gate.refuse_user(request.user)) is not None:
            return RpcError(INVALID_PARAMS, refusal.message, {"code": refusal.code})
    if len(resource.gates.by_token) < len(resource.gates.declared):
        message = "There are no subscriptions to this resource, because its gates decide anew"
        return RpcError(INVALID_PARAMS, message, {"code": "FORBIDDEN"})
    return None


def is_hidden_resource(registry: Registry, uri: str, request: RequestInfo) -> bool:
    """Return whether *uri* is a resource hidden from the client; a template may still serve it."""
    exact = registry.resources.get(uri)
    return exact is not None and is_hidden(exact, request)


def described_if_hiding(registry: Registry, peer: McpPeer) -> RequestInfo | None:
    """Return the request's data, which decides what is hidden; None if nothing can be hidden."""
    return peer.describe_request("mcp") if registry.hides_entries else None


def is_visible_to(peer: McpPeer) -> Callable[[Tool], bool]:
    """Return a predicate: may the request's client see an entry?."""
    return _is_visible_in(peer.describe_request("mcp"))


def _is_visible_in(request: RequestInfo) -> Callable[[Tool], bool]:
    return lambda entry: not is_hidden(entry, request)
