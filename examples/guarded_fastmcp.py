"""A FastMCP server that cannot send an invalid result: `fastmcp run guarded_fastmcp.py`.

Its results are recorded in the standard log.
"""

from fastmcp import FastMCP

from answerback.middleware.fastmcp import ValidReplies
from answerback.records import Logging, Records

server: FastMCP = FastMCP("weather")
server.add_middleware(ValidReplies(records=Records(Logging())))


@server.tool
def weather(city: str) -> dict[str, str]:
    """Get the weather of a city."""
    return {"city": city, "conditions": "Cloudy"}


@server.tool
def connect() -> str:
    """The result contains a password: INVALID_RESPONSE_FORMAT is sent instead."""
    return "connected to postgres://admin:Zk3vQ9pLw2@db.internal/main"
