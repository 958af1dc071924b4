"""mcp-proxy: a program on stdio in front of a server over HTTP, and the other way round."""

import asyncio
import socket
import subprocess
import sys

from driving import COMMAND, URL, WIRE, answers, of_result
from mcp import Client, StdioServerParameters

PROXY = [sys.executable, "-m", "mcp_proxy"]


async def call_all(target: object) -> None:
    async with Client(target) as client:  # type: ignore[arg-type] # one of two forms
        await client.list_tools()

        async def call(tool: str, arguments: dict) -> dict:
            return of_result(await client.call_tool(tool, arguments))

        await answers(call)


def main() -> None:
    if WIRE == "http":
        args = [*PROXY[1:], "--transport", "streamablehttp", URL + "/mcp"]
        asyncio.run(call_all(StdioServerParameters(command=PROXY[0], args=args)))
        return
    with socket.socket() as free:
        free.bind(("127.0.0.1", 0))
        port = free.getsockname()[1]
    command = [*PROXY, "--port", str(port), "--", *COMMAND]
    proxy = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
    try:
        assert proxy.stderr is not None
        for line in proxy.stderr:
            if "Uvicorn running" in line:
                break
        asyncio.run(call_all(f"http://127.0.0.1:{port}/mcp"))
    finally:
        proxy.terminate()
        proxy.wait()


main()
