"""The tool of mcp-use's benchmark on Answerback."""

from answerback import App

app = App("echo")


@app.tool
async def benchmark_echo(message: str) -> str:
    """Return the message."""
    return message
