"""Records the replies of servers that others have written, for the tests of `read`.

Each function runs one server, calls all of its tools and returns the replies as they came.
"""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import mcp_types as types
from fastmcp import Client as FastMCPClient
from fastmcp import FastMCP
from fastmcp.utilities.types import Image as FastMCPImage
from mcp import Client, MCPError
from mcp.server.mcpserver import Image as SdkImage
from mcp.server.mcpserver import MCPServer
from pydantic import BaseModel
from tests.rules.reply_builders import PNG
from tests.rules.test_reference_servers import RecordingClient, running
from typing_extensions import TypedDict

TIMEOUT = 60.0
MESSAGES = [
    *(
        "hello",
        "",
        " ",
        "two\nlines",
        "Error: this is only an echo",
        "null",
        "5",
        '"quoted"',
        "{a}",
    ),
    *('{"city":"Oslo","temperature":5}', "[1,2,3]", '{"result":5}', "[]", "{}", "☃ 😀", "<b>x</b>"),
    *('[{"id":1},{"id":2}]', '{"a":{"b":{"c":[null,true]}}}', "data:image/png;base64,AAAA"),
    *("x" * 5000, "```json\n{}\n```", "CODE_X: y", "NaN", "[NaN]", "1e999", "\\u0000", "Traceback"),
]


class LiveReply(NamedTuple):
    name: str
    """The server, the tool and the number of the call."""
    source: Any
    """The reply as a client gets it: a JSON-RPC response, or an object of an SDK."""
    sent: dict[str, Any] | None
    """The result in JSON; None if the reply is an error of the protocol."""


def _recorded(name: str, client: RecordingClient, calls: Iterator[Any]) -> list[LiveReply]:
    replies = []
    for number, (tool, arguments) in enumerate(calls):
        response = client.call(tool, **arguments)
        replies.append(LiveReply(f"{name} {tool} {number}", response, response.get("result")))
    for method in ("tools/list", "resources/list", "no/such/method"):
        response = client.request(method, {})
        replies.append(LiveReply(f"{name} {method}", response, response.get("result")))
    return replies


def everything() -> list[LiveReply]:
    def calls() -> Iterator[Any]:
        yield from (("echo", {"message": each}) for each in MESSAGES)
        yield from (("get-sum", {"a": a, "b": b}) for a in (0, -1, 0.5, "two") for b in (1, 1e300))
        for kind in ("error", "success", "debug", "none"):
            for picture in (True, False):
                yield "get-annotated-message", {"messageType": kind, "includeImage": picture}
        yield from (("get-resource-links", {"count": count}) for count in range(12))
        for kind in ("Text", "Blob", "None"):
            for number in (1, 2, 0, -1):
                yield "get-resource-reference", {"resourceType": kind, "resourceId": number}
        for city in ("New York", "Chicago", "Los Angeles", "Oslo"):
            yield "get-structured-content", {"location": city}
        file = {"name": "a.gz", "data": "data:text/plain,hello"}
        yield from (
            ("gzip-file-as-resource", {**file, "outputType": kind})
            for kind in ("resource", "resourceLink")
        )
        yield "trigger-long-running-operation", {"duration": 0.01, "steps": 1}
        yield from ((name, {}) for name in ("get-tiny-image", "no-such-tool", "echo"))

    with running("server-everything", "stdio") as client:
        return _recorded("everything", client, calls())


def memory(folder: Path) -> list[LiveReply]:
    def calls() -> Iterator[Any]:
        for name in ("Ada", "Eve", "☃"):
            entity = {"name": name, "entityType": "person", "observations": [f"{name} wrote 42"]}
            relation = {"from": name, "to": "Ada", "relationType": "knows"}
            note = {"entityName": name, "contents": ["x", "Error: y"]}
            deletion = {"entityName": name, "observations": ["x"]}
            yield "create_entities", {"entities": [entity]}
            yield "create_entities", {"entities": [entity]}
            yield "create_relations", {"relations": [relation]}
            yield "add_observations", {"observations": [note]}
            yield "add_observations", {"observations": [{**note, "entityName": "nobody"}]}
            yield "read_graph", {}
            yield "search_nodes", {"query": name}
            yield "open_nodes", {"names": [name, "nobody"]}
            yield "delete_observations", {"deletions": [deletion]}
            yield "delete_relations", {"relations": [relation]}
            yield "create_entities", {"entities": "none"}
            yield "delete_entities", {"entityNames": [name]}
        yield "read_graph", {}
        yield "no_such_tool", {}

    with running("server-memory", MEMORY_FILE_PATH=str(folder / "memory.jsonl")) as client:
        return _recorded("memory", client, calls())


def filesystem(folder: Path) -> list[LiveReply]:
    import base64

    contents = {f"{n}.txt": text.encode() for n, text in enumerate(MESSAGES)}
    contents |= {"a.png": base64.b64decode(PNG), "a.wav": b"RIFF", "a.bin": bytes(range(256))}
    for name, content in contents.items():
        (folder / name).write_bytes(content)

    def calls() -> Iterator[Any]:
        for name in contents:
            yield "read_text_file", {"path": str(folder / name)}
        for name in ("a.png", "a.wav", "a.bin", "0.txt", "missing"):
            path = str(folder / name)
            for tool in ("read_media_file", "get_file_info", "read_file", "list_directory"):
                yield tool, {"path": path}
            yield "read_text_file", {"path": path, "head": 1}
        yield "read_multiple_files", {"paths": [str(folder / "0.txt"), str(folder / "missing")]}
        yield "write_file", {"path": str(folder / "new.txt"), "content": "new"}
        edits = [{"oldText": "new", "newText": "newer"}]
        yield "edit_file", {"path": str(folder / "new.txt"), "edits": edits, "dryRun": True}
        yield "create_directory", {"path": str(folder / "sub")}
        yield "move_file", {"source": str(folder / "new.txt"), "destination": str(folder / "n")}
        for tool in ("list_directory", "list_directory_with_sizes", "directory_tree"):
            yield tool, {"path": str(folder)}
        for pattern in ("*.png", "*.none"):
            yield "search_files", {"path": str(folder), "pattern": pattern}
        yield "list_allowed_directories", {}
        yield "read_text_file", {"path": "/etc/passwd"}
        yield "read_text_file", {"path": 5}

    with running("server-filesystem", str(folder)) as client:
        return _recorded("filesystem", client, calls())


class Point(TypedDict):
    x: int
    y: int


class Weather(BaseModel):
    city: str
    temperature: float | None = None


def integer(n: int) -> int:
    return n


def number(n: int) -> float:
    return n / 2


def truth(n: int) -> bool:
    return n > 1


def nothing(n: int) -> None:
    return None


def text(n: int) -> str:
    return MESSAGES[n]


def texts(n: int) -> list[str]:
    return MESSAGES[:n]


def maybe(n: int) -> str | None:
    return None if n % 2 else "even"


def mapping(n: int) -> dict[str, int]:
    return {"result": n}


def anything(n: int) -> dict[str, Any]:
    return {"n": n, "null": None, "list": [n, {"deep": [1.5, None]}]}


def point(n: int) -> Point:
    return {"x": n, "y": -n}


def model(n: int) -> Weather:
    return Weather(city="Oslo", temperature=n)


def models(n: int) -> list[Weather]:
    return [Weather(city=str(i)) for i in range(n)]


def pair(n: int) -> tuple[int, str]:
    return (n, "x")


def undeclared(n: int):  # type: ignore[no-untyped-def]  # a tool without a return type
    return [n, "x", {"y": n}]


def fails(n: int) -> int:
    raise ValueError(f"no such number: {n}")


def _tools(picture: Any) -> list[Callable[..., Any]]:
    """The tools of both Python servers: one for each kind of return value."""

    def image(n: int) -> Any:
        return picture

    def images(n: int) -> Any:
        return ["see the picture", picture]

    return [
        *(integer, number, truth, nothing, text, texts, maybe, mapping, anything, point, model),
        *(models, pair, undeclared, image, images, fails),
    ]


Calls = Callable[[str, dict[str, Any]], Awaitable[Any]]


async def _call_all(name: str, tools: list[Callable[..., Any]], call: Calls) -> list[LiveReply]:
    arguments: list[dict[str, Any]] = [{"n": n} for n in (0, 1, 2, 9)] + [{"n": "x"}, {}]
    replies = []
    for tool in [*(each.__name__ for each in tools), "no_such_tool"]:
        for given in arguments:
            sent = None
            try:
                source = await call(tool, given)
            except MCPError as error:
                source = error
            else:
                sent = _as_json(source)
            replies.append(LiveReply(f"{name} {tool} {given}", source, sent))
    return replies


def _as_json(source: Any) -> dict[str, Any]:
    if isinstance(source, types.CallToolResult):
        return source.model_dump(mode="json", by_alias=True, exclude_none=True)
    blocks = [
        each.model_dump(mode="json", by_alias=True, exclude_none=True) for each in source.content
    ]
    sent = {"content": blocks, "isError": source.is_error}
    if source.structured_content is not None:
        sent["structuredContent"] = source.structured_content
    return sent


def official_sdk() -> list[LiveReply]:
    import base64

    tools = _tools(SdkImage(data=base64.b64decode(PNG), format="png"))
    server = MCPServer("replies")
    for tool in tools:
        server.add_tool(tool)

    async def record() -> list[LiveReply]:
        async with Client(server) as client:
            return await _call_all("sdk", tools, lambda name, given: client.call_tool(name, given))

    return asyncio.run(asyncio.wait_for(record(), TIMEOUT))


def fastmcp() -> list[LiveReply]:
    import base64

    tools = _tools(FastMCPImage(data=base64.b64decode(PNG), format="png"))
    server: FastMCP[Any] = FastMCP("replies")
    for tool in tools:
        server.tool(tool)

    async def record() -> list[LiveReply]:
        async with FastMCPClient(server) as client:
            results = await _call_all("fastmcp", tools, client.call_tool_mcp)
            return results + await _call_all(
                "fastmcp client",
                tools,
                lambda name, given: client.call_tool(name, given, raise_on_error=False),
            )

    return asyncio.run(asyncio.wait_for(record(), TIMEOUT))
