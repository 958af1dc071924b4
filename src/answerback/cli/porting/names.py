"""The names and options of FastMCP and the official SDK that have another name here."""

from __future__ import annotations

FRAMEWORKS = ("fastmcp", "mcp", "mcp_types")
"""The packages whose imports make a file a server of another framework."""

SERVERS = frozenset({"FastMCP", "MCPServer"})
NEW_NAMES = {
    "FastMCP": "App",
    "MCPServer": "App",
    "Context": "Context",
    "Image": "Image",
    "Audio": "Audio",
    "ToolError": "ToolError",
    "ResourceError": "ToolError",
    "PromptError": "ToolError",
    "NotFoundError": "NotFound",
    "get_context": "get_context",
    "Message": "Message",
    "UserMessage": "Message",
}
"""Names of theirs, and what we call them."""
MODULES_OF_RESULTS = ("mcp.types", "mcp_types")
"""Their types are accepted as results, so these imports stay."""
NOT_NEEDED = frozenset({"ToolAnnotations"})
"""Names whose import goes once nothing uses them."""

HINTS = {
    "readOnlyHint": "read_only",
    "destructiveHint": "destructive",
    "idempotentHint": "idempotent",
    "openWorldHint": "open_world",
    "read_only_hint": "read_only",
    "destructive_hint": "destructive",
    "idempotent_hint": "idempotent",
    "open_world_hint": "open_world",
    "title": "title",
}
"""The members of a tool's annotations, and the options that they became."""

RENAMED_OPTIONS = {"instructions": "description", "mime_type": "mime"}
REMOVED_OPTIONS = frozenset(
    {"host", "port", "log_level", "debug", "stateless_http", "json_response", "dependencies"}
    | {"mount_path", "sse_path", "message_path", "streamable_http_path", "list_page_size"}
    | {"on_duplicate", "on_duplicate_tools", "on_duplicate_resources", "on_duplicate_prompts"}
    | {"warn_on_duplicate_tools", "warn_on_duplicate_resources", "warn_on_duplicate_prompts"}
    | {"transport_security", "event_store", "retry_interval", "max_request_body_size"}
    | {"mask_error_details", "client_log_level", "session_idle_timeout", "max_sessions"}
)
"""Options of the server object that are given elsewhere or are not needed."""
POSITIONS = {
    "tool": ("name", "title", "description"),
    "prompt": ("name", "title", "description"),
    "resource": ("",),
}
"""The names of their decorators' positional arguments; a resource's URI has none."""
REGISTERING = ("tool", "resource", "prompt", "add_tool")

LEVELS = ("debug", "info", "notice", "warning", "error", "critical", "alert", "emergency")
CONTEXT_ATTRIBUTES = {
    "lifespan_context": "state",
    "request_id": "request.id",
    "session_id": "request.session",
    "list_roots": "roots",
    "report_progress": "progress",
    "transport": "wire",
    "close_sse_stream": "close_stream",
}
"""Members of their context, and the same of ours."""
SERVER_ATTRIBUTES = {
    "custom_route": "route",
    "http_app": "asgi",
    "streamable_http_app": "asgi",
    "sse_app": "asgi",
    "get_tools": "tools",
}
READS_ARGUMENTS = ("argparse", "click", "typer", "fire", "docopt")
"""Modules of a program that reads its command line itself."""
