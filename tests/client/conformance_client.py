"""The client that the official conformance suite runs: its last argument is the server's URL.

It uses the public API alone. The suite names the scenario in the environment.
"""

from __future__ import annotations

import asyncio
import os
import sys
from typing import Any

import msgspec

from answerback.client import ElicitationRequest, RemoteServer, connect

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
CONTEXT: dict[str, Any] = msgspec.json.decode(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
VERSION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")


def accept(request: ElicitationRequest) -> dict[str, Any]:
    """Accept every form; the client fills in the defaults, and the driver what else is required."""
    samples = {"string": "sample", "boolean": True, "integer": 1, "number": 1.5}
    fields = request.schema.get("properties", {})
    return {
        name: samples.get(fields[name].get("type"), "sample")
        for name in request.schema.get("required", ())
        if "default" not in fields[name]
    }


def sample_arguments(schema: dict[str, Any]) -> dict[str, Any]:
    samples: dict[str, Any] = {
        "string": "sample",
        "boolean": True,
        "integer": 5,
        "number": 3,
        "object": {},
        "array": [],
    }
    fields = schema.get("properties", {})
    return {
        name: field.get("default", samples.get(str(field.get("type")), "sample"))
        for name, field in fields.items()
    }


async def call_everything(server: RemoteServer) -> None:
    wanted = CONTEXT.get("toolCalls")
    tools = await server.tools()
    if wanted:
        for each in wanted:
            await server.call(each["name"], each.get("arguments"))
        return
    for tool in tools:
        arguments = sample_arguments(tool.input_schema)
        if SCENARIO == "json-schema-2020-12-preservation" and "schema" in arguments:
            arguments["schema"] = tools[0].input_schema
        await server.call(tool.name, arguments)


async def use_other_lists(server: RemoteServer) -> None:
    for resource in await server.resources():
        await server.read(resource.uri)
    for prompt in await server.prompts():
        arguments = {each["name"]: "sample" for each in prompt.arguments or ()}
        await server.prompt(prompt.name, arguments)


async def main(url: str) -> None:
    async with connect(
        url,
        version=VERSION,
        elicit=accept,
        elicit_url=False,
        sample=lambda _: "sampled",
        roots=["/"],
    ) as server:
        await call_everything(server)
        if server.info.offers("resources") or server.info.offers("prompts"):
            await use_other_lists(server)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
