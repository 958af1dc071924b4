"""mcp-proxy: a server of the older HTTP transport with SSE in front of a program on stdio."""

from mcp.client.sse import sse_client
from mcp_proxy_bridge import call_over_http

call_over_http(sse_client, "/sse")
