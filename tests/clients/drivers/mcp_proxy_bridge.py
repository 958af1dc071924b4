"""mcp-proxy: a program on stdio in front of a server over HTTP, and the other way round."""

import asyncio
import os
import subprocess
import sys
from typing import Any

from driving import COMMAND, URL, WIRE
from mcp import StdioServerParameters
from mcp.client.stdio import stdio_client
from mcp.client.streamable_http import streamablehttp_client
from mcp_1 import call_all


def call_over_stdio() -> None:
    args = ["-m", "mcp_proxy", "--transport", "streamablehttp", URL + "/mcp"]
    asyncio.run(call_all(stdio_client(StdioServerParameters(command=sys.executable, args=args))))


def call_over_http(connect: Any = streamablehttp_client, path: str = "/mcp") -> None:
    port = os.environ["CLIENTS_PORT"]
    command = [sys.executable, "-m", "mcp_proxy", "--port", port, "--", *COMMAND]
    proxy = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert proxy.stderr is not None
        any("Uvicorn running" in line for line in proxy.stderr)
        asyncio.run(call_all(connect(f"http://127.0.0.1:{port}{path}")))
    finally:
        proxy.terminate()
        proxy.wait()


if __name__ == "__main__":
    if WIRE == "stdio":
        call_over_http()
    else:
        call_over_stdio()
