"""A server on the official SDK that lets no invalid result out, and records them."""

from mcp.server.mcpserver import MCPServer

from answerback.middleware.sdk import ValidReplies
from answerback.records import Logging, Records

server = MCPServer("weather", middleware=[ValidReplies(records=Records(Logging()))])


@server.tool()
def weather(city: str) -> dict[str, str]:
    """Tell the weather."""
    return {"city": city, "conditions": "Cloudy"}


@server.tool()
def connect() -> str:
    """This one tells a password, and is answered with INVALID_RESPONSE_FORMAT."""
    return "connected to postgres://admin:Zk3vQ9pLw2@db.internal/main"


if __name__ == "__main__":
    server.run()
