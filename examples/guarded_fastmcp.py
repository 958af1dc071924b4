"""A FastMCP server that lets no invalid result out, and records them: `fastmcp run` it."""

from fastmcp import FastMCP

from answerback.middleware.fastmcp import ValidReplies
from answerback.records import Logging, Records

server: FastMCP = FastMCP("weather")
server.add_middleware(ValidReplies(records=Records(Logging())))


@server.tool
def weather(city: str) -> dict[str, str]:
    """Tell the weather."""
    return {"city": city, "conditions": "Cloudy"}


@server.tool
def connect() -> str:
    """This one tells a password, and is answered with INVALID_RESPONSE_FORMAT."""
    return "connected to postgres://admin:Zk3vQ9pLw2@db.internal/main"
