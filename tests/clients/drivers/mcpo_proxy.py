"""mcpo: a server with one path for each tool, for clients that read OpenAPI documents."""

import asyncio
import os
import subprocess
import sys

import httpx
from driving import COMMAND, URL, WIRE, answers

port = os.environ["CLIENTS_PORT"]
stdio = ["--", *COMMAND]
http = ["--server-type", "streamable-http", "--", URL + "/mcp"]
options = ["--host", "127.0.0.1", "--port", port, *(stdio if WIRE == "stdio" else http)]
proxy = subprocess.Popen(["mcpo", *options], stdout=sys.stderr)


async def main() -> None:
    async with httpx.AsyncClient(base_url=f"http://127.0.0.1:{port}", timeout=20) as client:
        for _ in range(300):
            try:
                (await client.get("/openapi.json")).raise_for_status()
                break
            except httpx.HTTPError:
                await asyncio.sleep(0.1)

        async def call(tool: str, arguments: dict) -> dict:
            response = await client.post(f"/{tool}", json=arguments)
            if response.status_code != 200:
                return {"error": True, "text": response.text}
            body = response.json()
            if tool == "report":
                return {"text": "\n".join(body)}
            if not isinstance(body, str):
                return {"data": body}
            # A single block comes without its type: an image as a data URL, a text as it is.
            image = body.removeprefix("data:image/png;base64,")
            if image != body:
                return {"image": image}
            return {"data": {"result": body}}

        await answers(call)


try:
    asyncio.run(main())
finally:
    proxy.terminate()
    proxy.wait()
