"""An app's entries over MCP: finds the entry that a request refers to, and lists them in pages.

Each version of the protocol describes entries and reports errors differently.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ..core.content import Icon
from ..core.json_value import JsonObject
from ..core.reply import Error
from ..core.shape import RESULT
from ..core.versions import Version
from ..dialects.common import is_retryable, without_none
from ..dialects.mcp_blocks import project_annotations
from ..registry.declarations import Registry, completion_key, is_hidden
from ..tools.tool import Tool
from ..tools.tool_options import ToolSettings
from .jsonrpc import (
    INTERNAL_ERROR,
    INVALID_PARAMS,
    RESOURCE_NOT_FOUND,
    Complete,
    GetPrompt,
    PageParams,
    Params,
    ReadResource,
    Reference,
    Request,
    RpcError,
    read_params,
)

if TYPE_CHECKING:
    from ..core.request_info import RequestInfo
    from ..tools.prompt import Prompt
    from ..tools.resource import Resource
    from .mcp_peer import McpPeer


def no_resource(uri: str, version: Version) -> RpcError:
    """Return the error for a URI that no resource serves."""
    return RpcError(_not_found(version), f"Resource not found: {uri}", {"uri": uri})


def _not_found(version: Version) -> int:
    return INVALID_PARAMS if version.stateless else RESOURCE_NOT_FOUND


def resource_error(error: Error, uri: str, version: Version) -> RpcError:
    """Return the JSON-RPC error for an error raised by a resource."""
    if error.row.status == 404:
        return RpcError(_not_found(version), error.message, {"uri": uri, **_members(error)})
    return entry_error(error)


def entry_error(error: Error) -> RpcError:
    """Return the JSON-RPC error for an error from a resource, a prompt or a completion."""
    is_of_caller = 400 <= error.row.status < 500
    code = INVALID_PARAMS if is_of_caller else INTERNAL_ERROR
    return RpcError(code, error.message, _members(error))


def _members(error: Error) -> JsonObject:
    more = without_none(details=error.details, hint=error.hint, kind=error.kind)
    return {"code": error.code, "retryable": is_retryable(error), **more}


_GATED = frozenset({"tools/call", "resources/read", "prompts/get", "completion/complete"})


def is_gated(registry: Registry, request: Request, tool_name: str) -> bool:
    """Return whether gates must check the request before a stream can start."""
    if not registry.has_gates or request.method not in _GATED:
        return False
    entry = entry_of(registry, request, tool_name)
    return entry is not None and entry.gates is not None


def entry_of(registry: Registry, request: Request, tool_name: str) -> Tool | None:
    """Return the entry that a request refers to; None if there is none or the request is bad."""
    try:
        match request.method:
            case "tools/call":
                return registry.tools.get(tool_name)
            case "prompts/get":
                return registry.prompts.get(read_params(request.params, GetPrompt).name)
            case "resources/read":
                return _resource(registry, read_params(request.params, ReadResource).uri)
            case "completion/complete":
                asked = read_params(request.params, Complete)
                # The gates of the prompt or resource protect its completions too.
                owner = referenced_entry(registry, asked.ref)
                if owner is not None and owner.gates is not None:
                    return owner
                return registry.completions.get(
                    completion_key(asked.ref.target, asked.argument.name)
                )
            case _:
                return None
    except RpcError:
        return None


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

    *seen* says whether the client may see a resource; a template may serve a hidden one's URI.
    """
    exact = registry.resources.get(uri)
    served = [*(() if exact is None else (exact,)), *registry.resources.values()]
    if registry.has_budgets:
        # Imported here, so that other apps do not pay for it.
        from ..calls.fitted_reply import stored_reply_resource

        served.insert(0, stored_reply_resource(registry))
    for resource in served:
        arguments = resource.arguments_for(uri)
        if arguments is not None and (seen is None or seen(resource)):
            return resource, arguments
    return None


def refuse_subscription(registry: Registry, uri: str, request: RequestInfo) -> RpcError | None:
    """Return the error if a client may not subscribe to a resource that is hidden or gated.

    Only gates that check just the user can decide here. If there are others, no client can
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
        message = "This resource does not support subscriptions, because of its gates"
        return RpcError(INVALID_PARAMS, message, {"code": "FORBIDDEN"})
    return None


def is_hidden_resource(registry: Registry, uri: str, request: RequestInfo) -> bool:
    """Return whether *uri* is a resource hidden from the client; a template may still serve it."""
    exact = registry.resources.get(uri)
    return exact is not None and is_hidden(exact, request)


def described_if_hiding(registry: Registry, peer: McpPeer) -> RequestInfo | None:
    """Return the request data that decides what is hidden; None if nothing can be hidden."""
    return peer.describe_request("mcp") if registry.hides_entries else None


def is_visible_to(peer: McpPeer) -> Callable[[Tool], bool]:
    """Return a predicate that says whether the request's client may see an entry."""
    return _is_visible_in(peer.describe_request("mcp"))


def _is_visible_in(request: RequestInfo) -> Callable[[Tool], bool]:
    return lambda entry: not is_hidden(entry, request)


PAGE_SIZE = 1000
"""Entries per page; most clients read only one page, so a smaller page would hide tools."""
CLAUDE_CODE_SIZE = "anthropic/maxResultSizeChars"
"""How many characters of a tool's result Claude Code shows; larger results go to a file."""
_MAX_CLAUDE_CODE = 500_000
TAGS = "answerback/tags"
"""The `_meta` key for an entry's tags, which clients can use to group the list."""
_Entry: TypeAlias = Callable[[Any, Version], dict[str, Any]]


def list_page(
    registry: Registry,
    method: str,
    version: Version,
    raw: Params,
    seen: Callable[[Any], bool] | None = None,
) -> JsonObject:
    """Return the result of a list method: one page, and the cursor for the next one.

    *seen* says whether the client may see an entry.
    """
    key, items, entry = LISTS[method]
    listed = items(registry) if seen is None else list(filter(seen, items(registry)))
    cursor = read_params(raw, PageParams).cursor
    start = _start(cursor) if cursor else 0
    end = start + PAGE_SIZE
    result: JsonObject = {key: [entry(item, version) for item in listed[start:end]]}
    if end < len(listed):
        from base64 import urlsafe_b64encode

        result["nextCursor"] = urlsafe_b64encode(f"from {end}".encode()).decode()
    return result


def _start(cursor: str) -> int:
    from base64 import urlsafe_b64decode

    try:
        word, number = urlsafe_b64decode(cursor.encode()).decode().split(" ")
    except ValueError:
        word, number = "", ""
    if word != "from" or not number.isascii() or not number.isdigit() or len(number) > 9:
        raise RpcError(INVALID_PARAMS, "Invalid cursor")
    return int(number)


def tool_entry(tool: Tool, version: Version) -> JsonObject:
    entry: JsonObject = {"name": tool.contract.tool_prefix + tool.name}
    if tool.description:
        entry["description"] = tool.description
    entry["inputSchema"] = tool.input_schema
    is_structured = version.structured and tool.settings.structured
    if is_structured and (schema := tool.output_schema) is not None:
        entry["outputSchema"] = _output_schema(tool, schema)
    if version.tool_annotations:
        hints: JsonObject = {**tool.settings.hints}
        # The version without `title` puts the title here.
        if tool.settings.title and not version.titles:
            hints["title"] = tool.settings.title
        if hints:
            entry["annotations"] = hints
    if version.tasks and tool.settings.task != "forbidden":
        entry["execution"] = {"taskSupport": tool.settings.task}
    if tool.settings.widget is not None:
        from .widget import missing_widget

        # The widget was removed, or never registered.
        if (message := missing_widget(tool)) is not None:
            raise RpcError(INTERNAL_ERROR, message)
    extras = _extras(tool.settings, version)
    schemes = list(tool.security_schemes) or _schemes_of_gates(tool)
    # ChatGPT reads them here, although no MCP version defines them.
    if not schemes or not version.titles:
        return entry | extras
    # Some hosts read only `_meta`.
    extras["_meta"] = {**extras.get("_meta", {}), "securitySchemes": schemes}
    return entry | {"securitySchemes": schemes} | extras


def _schemes_of_gates(tool: Tool) -> list[Any]:
    """Return the security schemes that the gates and the app's `auth=` imply."""
    if tool.gates is None and (not tool.path or tool.path[0].auth is None):
        return []
    from ..gates.prompts import security_schemes

    return security_schemes(tool)


def _output_schema(tool: Tool, schema: JsonObject) -> JsonObject:
    """Return the data's schema; FastMCP clients unwrap `{"result": …}` if the schema says so."""
    shape = tool.returns.shape
    if tool.shape.message:
        from ..dialects.model_text import schema_with_message

        schema = schema_with_message(schema)
    is_wrapped = shape is RESULT or (shape.names == ("result",) and not shape.optional)
    return schema | {"x-fastmcp-wrap-result": True} if is_wrapped else schema


def resource_entry(resource: Resource, version: Version) -> JsonObject:
    where = "uri" if resource.template is None else "uriTemplate"
    entry: JsonObject = {where: resource.uri, "name": resource.name}
    if resource.description:
        entry["description"] = resource.description
    if resource.mime:
        entry["mimeType"] = resource.mime
    if resource.template is None and resource.size is not None:
        entry["size"] = resource.size
    if resource.annotations:
        annotations = project_annotations(resource.annotations, version)
        entry["annotations"] = msgspec.to_builtins(annotations)
    return entry | _extras(resource.settings, version)


def prompt_entry(prompt: Prompt, version: Version) -> JsonObject:
    entry: JsonObject = {"name": prompt.name}
    if prompt.description:
        entry["description"] = prompt.description
    if prompt.parameters:
        schemas = prompt.input_schema["properties"]
        entry["arguments"] = [
            {"name": each.name, "required": each.required}
            | without_none(description=schemas[each.name].get("description"))
            for each in prompt.parameters
        ]
    return entry | _extras(prompt.settings, version)


def icons_of(icons: Sequence[Icon]) -> list[JsonObject]:
    shown: list[JsonObject] = msgspec.to_builtins(icons)
    return shown


def _extras(settings: ToolSettings, version: Version) -> JsonObject:
    extras: JsonObject = {}
    if version.titles and settings.title:
        extras["title"] = settings.title
    if version.icons and settings.icons:
        extras["icons"] = icons_of(settings.icons)
    if version.titles and (meta := _meta(settings)):
        extras["_meta"] = meta
    return extras


def _meta(settings: ToolSettings) -> JsonObject:
    meta: JsonObject = {}
    if settings.tags:
        meta[TAGS] = sorted(settings.tags)
    if settings.budget is not None:
        meta[CLAUDE_CODE_SIZE] = min(settings.budget, _MAX_CLAUDE_CODE)
    return {**meta, **(settings.meta or {})}


def _resources(registry: Registry, *, are_templates: bool) -> list[Any]:
    found = registry.resources.values()
    return [each for each in found if (each.template is not None) is are_templates]


LISTS: dict[str, tuple[str, Callable[[Registry], list[Any]], _Entry]] = {
    "tools/list": ("tools", lambda registry: list(registry.tools.values()), tool_entry),
    "resources/list": ("resources", partial(_resources, are_templates=False), resource_entry),
    "resources/templates/list": (
        "resourceTemplates",
        partial(_resources, are_templates=True),
        resource_entry,
    ),
    "prompts/list": ("prompts", lambda registry: list(registry.prompts.values()), prompt_entry),
}
"""By method: the member with the list, the items, and the function that describes an item."""
