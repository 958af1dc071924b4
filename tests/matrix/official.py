"""The server of the matrix on the official SDK, as its documentation writes tools."""

from __future__ import annotations

import base64
from typing import Any

from mcp.server import MCPServer
from mcp.server.mcpserver.exceptions import ToolError
from mcp_types import (
    AudioContent,
    CallToolResult,
    EmbeddedResource,
    ImageContent,
    ResourceLink,
    TextContent,
    TextResourceContents,
)
from tests.matrix import parts

server = MCPServer("matrix")
WEATHER: dict[str, Any] = {"city": "Oslo", parts.DATA: 78}


def _text() -> TextContent:
    return TextContent(type="text", text=parts.TEXT)


def _image() -> ImageContent:
    data = base64.b64encode(parts.PNG).decode()
    return ImageContent(type="image", data=data, mime_type="image/png")


@server.tool()
def text() -> str:
    return parts.TEXT


@server.tool()
def data() -> dict[str, str | int]:
    return WEATHER


@server.tool()
def items() -> list[dict[str, str]]:
    return [{"city": parts.ITEM}]


@server.tool()
def both() -> CallToolResult:
    return CallToolResult(content=[_text()], structured_content=WEATHER)


@server.tool()
def failed() -> str:
    raise ToolError(parts.MESSAGE)


@server.tool()
def failed_with_details() -> CallToolResult:
    text = TextContent(type="text", text=parts.MESSAGE)
    details = {"near": [parts.DETAIL], "hint": parts.HINT}
    return CallToolResult(content=[text], structured_content=details, is_error=True)


@server.tool()
def crashed() -> str:
    raise RuntimeError(f"the password is {parts.SECRET}")


@server.tool()
def image() -> ImageContent:
    return _image()


@server.tool()
def image_and_data() -> CallToolResult:
    return CallToolResult(content=[_image()], structured_content=WEATHER)


@server.tool()
def audio() -> AudioContent:
    data = base64.b64encode(parts.WAV).decode()
    return AudioContent(type="audio", data=data, mime_type="audio/wav")


@server.tool()
def link() -> list[TextContent | ResourceLink]:
    return [_text(), ResourceLink(type="resource_link", uri=parts.LINK, name="report")]


@server.tool()
def embedded() -> EmbeddedResource:
    contents = TextResourceContents(uri="file:///sky.txt", text=parts.TEXT, mime_type="text/plain")
    return EmbeddedResource(type="resource", resource=contents)


@server.tool()
def empty() -> None:
    """Return nothing."""


@server.tool()
def large() -> list[dict[str, str]]:
    return [{"name": f"row-{number}-end"} for number in range(2000)]


@server.tool()
def widget() -> CallToolResult:
    meta: dict[str, Any] = {"example.com/page": parts.META}
    text = TextContent(type="text", text=str(WEATHER))
    return CallToolResult(content=[text], structured_content=WEATHER, _meta=meta)


if __name__ == "__main__":
    server.run("stdio")
