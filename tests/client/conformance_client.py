"""The client that the official conformance suite runs: its last argument is the server's URL.

It uses the public API alone. The suite names the scenario in the environment.
"""

from __future__ import annotations

import asyncio
import os
import sys
import urllib.request
from typing import Any

import msgspec

from answerback.client import ElicitationRequest, RemoteServer, connect
from answerback.client.login import ClientCredentials, Login, RegisteredClient

SCENARIO = os.environ.get("MCP_CONFORMANCE_SCENARIO", "")
CONTEXT: dict[str, Any] = msgspec.json.decode(os.environ.get("MCP_CONFORMANCE_CONTEXT") or "{}")
DOCUMENT = "https://conformance-test.local/client-metadata.json"
"""The document that the suite knows; it is not fetched."""
VERSION = os.environ.get("MCP_CONFORMANCE_PROTOCOL_VERSION", "2025-11-25")


def visit(page: str) -> None:
    """Be the browser of a user who agrees: follow the redirects to the client's own address."""
    urllib.request.urlopen(page, timeout=60).close()


def login() -> Login:
    """The login for the scenario; the context has the credentials that the suite registered."""
    if "client_id" not in CONTEXT:
        return Login(document=DOCUMENT, name="Conformance", open_url=visit)
    client = RegisteredClient(
        CONTEXT["client_id"],
        CONTEXT.get("client_secret"),
        CONTEXT.get("issuer"),
        CONTEXT.get("private_key_pem"),
    )
    if SCENARIO.startswith("auth/client-credentials"):
        return ClientCredentials(client)
    return Login(client, open_url=visit)


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
        auth=login(),
    ) as server:
        await call_everything(server)
        if server.info.offers("resources") or server.info.offers("prompts"):
            await use_other_lists(server)


if __name__ == "__main__":
    asyncio.run(main(sys.argv[-1]))
