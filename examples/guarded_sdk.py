"""A server on the official SDK that cannot send an invalid result.

Its results are recorded in the standard log.
"""

from mcp.server.mcpserver import MCPServer

from answerback.middleware.sdk import ValidReplies
from answerback.records import Logging, Records

server = MCPServer("weather", middleware=[ValidReplies(records=Records(Logging()))])


@server.tool()
def weather(city: str) -> dict[str, str]:
    """Get the weather of a city."""
    return {"city": city, "conditions": "Cloudy"}


@server.tool()
def connect() -> str:
    """The result contains a password: INVALID_RESPONSE_FORMAT is sent instead."""
    return "connected to postgres://admin:Zk3vQ9pLw2@db.internal/main"


if __name__ == "__main__":
    server.run()
