"""Replies of every kind, and what only the garbage collector frees after them.

`python cycle_calls.py calls WIRE [VERSION [URL]]` makes the calls and writes what it found as JSON;
`python cycle_calls.py serve` and `mcp` are the server.
"""

from __future__ import annotations

import asyncio
import gc
import http.client
import json
import logging
import resource
import socket
import sys
from collections import Counter
from collections.abc import Awaitable, Callable, Coroutine, Iterator
from contextlib import suppress
from dataclasses import dataclass
from functools import partial
from typing import Any, TypeAlias, TypeGuard
from urllib.parse import urlsplit

from answerback import App, Context, Image, Link, NotFound, Reply, connect, success
from answerback.client import RemoteServer

REPLIES = 200
AT_ONCE = 50
app = App("cycles")


@dataclass
class Row:
    number: int
    below: list[Row]


@app.tool(inline=True)
def plain(x: int) -> int:
    return x


@app.tool
def in_thread(x: int) -> int:
    return x


@app.tool
async def on_loop(x: int, ctx: Context) -> str:
    await asyncio.sleep(0)
    return ctx.tool


@app.tool
def typed() -> Row:
    return Row(1, [Row(2, [])])


@app.tool
def untyped():  # type: ignore[no-untyped-def]
    return {"rows": [{"number": 1}]}


@app.tool
def with_text() -> Reply[Row]:
    return success("one row", Row(1, []))


@app.tool
def image() -> Image:
    return Image(b"an image", "image/png")


@app.tool
def refused() -> int:
    raise NotFound("nothing is here")


@app.tool
def failing() -> int:
    try:
        raise KeyError("a cause")
    except KeyError as exc:
        raise RuntimeError("a fault") from exc


@app.tool
async def failing_on_loop() -> int:
    raise RuntimeError("a fault")


@app.tool
def wrong_type() -> Row:
    return "not a row"  # type: ignore[return-value]


@app.tool(timeout=0.001)
async def too_slow() -> int:
    await asyncio.Event().wait()
    return 1


@app.tool
async def slow() -> int:
    """Take so long that a server begins to watch for a disconnect of the client."""
    await asyncio.sleep(0.3)
    return 1


@app.tool
async def waiting() -> int:
    await asyncio.Event().wait()
    return 1


@app.tool(budget=1_000)
def cut_list() -> list[str]:
    return ["item"] * 1_000


@app.tool(budget=1_000)
def cut_rows() -> list[Row]:
    return [Row(1, [Row(2, [])])] * 200


@app.tool(budget=1_000)
def cut_text() -> str:
    return "a line of text\n" * 500


@app.tool(budget=1_000)
def cut_page() -> Iterator[str]:
    yield from ["item"] * 300


@app.tool(budget=1_000)
def too_large() -> dict[str, int]:
    return {f"member {number}": number for number in range(200)}


@app.tool(budget=1_000)
def megabyte() -> list[str]:
    return ["x" * 1_000] * 1_000


@app.tool(inline=True)
def peak_kilobytes() -> int:
    return resource.getrusage(resource.RUSAGE_SELF).ru_maxrss


@app.tool
async def progress(ctx: Context) -> int:
    ctx.progress(1, 2, "half")
    ctx.log("half")
    return 1


@app.tool
async def question(ctx: Context) -> int:
    return await ctx.elicit("How many nights?", int)


@app.tool
async def sampling(ctx: Context) -> str:
    return (await ctx.sample("Say something")).text


@app.tool(task="optional")
async def task() -> list[str]:
    return ["done"]


@app.resource("data://all")
def all_data() -> str:
    return "all"


@app.resource("data://failing")
def failing_resource() -> str:
    raise RuntimeError("a fault")


@app.prompt
def prompt(name: str) -> str:
    return f"Hello, {name}"


@app.tool(inline=True)
def start_counting() -> int:
    gc.collect()
    gc.disable()
    return 0


@app.tool(inline=True)
def garbage() -> list[str]:
    """Return the objects of this library and of this file that only the collector frees."""
    gc.set_debug(gc.DEBUG_SAVEALL)
    gc.collect()
    gc.set_debug(0)
    found = Counter(name for each in gc.garbage if (name := name_of(each)))
    gc.garbage.clear()
    return [f"{count} {name}" for name, count in found.items()]


def name_of(thing: object) -> str:
    """Return what an object is called; empty if neither its type nor its code is ours."""
    for owner in (thing, getattr(thing, "__func__", None), type(thing)):
        module, name = getattr(owner, "__module__", None), getattr(owner, "__qualname__", None)
        if isinstance(name, str) and str(module).split(".")[0] in ("answerback", "__main__"):
            return f"{module}.{name}"
    for attribute in ("gi_code", "cr_code", "ag_code", "f_code", "tb_frame"):
        code = getattr(thing, attribute, None)
        code = getattr(code, "f_code", code)
        if code is not None and ("answerback" in code.co_filename or __file__ == code.co_filename):
            return f"{type(thing).__name__} of {code.co_qualname}"
    return ""


CALLS: dict[str, tuple[str, dict[str, Any]]] = {
    **{name: (name, {"x": 1}) for name in ("plain", "in_thread", "on_loop")},
    **{name: (name, {}) for name in ("typed", "untyped", "with_text", "image", "refused")},
    **{name: (name, {}) for name in ("failing", "failing_on_loop", "wrong_type", "too_slow")},
    **{name: (name, {}) for name in ("progress", "cut_list", "cut_rows", "cut_text", "cut_page")},
    "a reply that cannot be cut": ("too_large", {}),
    "invalid arguments": ("in_thread", {"x": "one", "y": 1}),
    "an unknown tool": ("unknown", {}),
}
Calls: TypeAlias = dict[str, Callable[[], Awaitable[Any]]]


def calls_over_mcp(server: RemoteServer) -> Calls:
    async def next_page() -> None:
        first = await server.call("cut_page")
        assert (await server.call("cut_page", cursor=first.data["next"])).ok

    async def whole_and_range() -> None:
        uri = next(each.uri for each in (await server.call("cut_list")).content if is_link(each))
        assert (await server.read(uri)).ok
        assert (await server.read(f"{uri}?offset=500&limit=10")).ok

    async def task_and_result() -> None:
        assert (await (await server.start_task("task")).result()).ok

    async def cancelled() -> None:
        with suppress(TimeoutError):
            await asyncio.wait_for(server.call("waiting"), 0.005)

    async def lists() -> None:
        await server.tools()
        await server.resources()
        await server.prompts()

    return calls_of_tools(server.call) | {
        "slow": lambda: server.call("slow"),
        "question": lambda: server.call("question"),
        "sampling": lambda: server.call("sampling"),
        "the next page": next_page,
        "a whole and a range": whole_and_range,
        "a task": task_and_result,
        "cancelled": cancelled,
        "a resource": lambda: server.read("data://all"),
        "a failing resource": lambda: server.read("data://failing"),
        "an unknown resource": lambda: server.read("data://none"),
        "a prompt": lambda: server.prompt("prompt", name="Ann"),
        "lists": lists,
        "ping": server.ping,
    }


def calls_of_tools(call: Callable[..., Awaitable[Any]]) -> Calls:
    return {kind: partial(call, name, **given) for kind, (name, given) in CALLS.items()}


def is_link(block: object) -> TypeGuard[Link]:
    return isinstance(block, Link)


async def found_after(calls: Calls, call: Callable[[str], Awaitable[Any]]) -> dict[str, Any]:
    """Return what is left after the calls of each kind, in the server and in this process."""
    found: dict[str, Any] = {}
    for kind, make in calls.items():
        await make()
        await call("start_counting")
        start_counting()
        for _ in range(REPLIES // AT_ONCE):
            await asyncio.gather(*(make() for _ in range(AT_ONCE)))
        found[kind] = [await call("garbage"), garbage()]
    return {kind: left for kind, left in found.items() if any(left)}


async def over_mcp(target: Any, version: str) -> dict[str, Any]:
    options: Any = {"sample": lambda _: "a text", "on_log": lambda _: None}
    elicit = lambda _: {"value": 3}  # noqa: E731
    async with connect(target, version=version, elicit=elicit, **options) as server:

        async def data_of(name: str) -> Any:
            return (await server.call(name)).data

        return await found_after(calls_over_mcp(server), data_of)


async def over_rest(url: str) -> dict[str, Any]:
    connection = http.client.HTTPConnection(urlsplit(url).netloc)
    connection.connect()
    connection.sock.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)

    async def call(name: str, **arguments: Any) -> bytes:
        headers = {"Content-Type": "application/json"}
        connection.request("POST", f"/functions/{name}", json.dumps(arguments), headers)
        return connection.getresponse().read()

    async def data_of(name: str) -> Any:
        return json.loads(await call(name))["result"]

    return await found_after(calls_of_tools(call), data_of)


async def in_memory() -> dict[str, Any]:
    async def data_of(name: str) -> Any:
        return (await app.call(name)).data

    return await found_after(calls_of_tools(app.call), data_of)


def main(wire: str, version: str = "", url: str = "") -> None:
    steps: dict[str, Callable[[], Coroutine[Any, Any, dict[str, Any]]]] = {
        "rest": lambda: over_rest(url),
        "app": in_memory,
        "memory": lambda: over_mcp(app, version),
        "http": lambda: over_mcp(f"{url}/mcp", version),
        "stdio": lambda: over_mcp([sys.executable, __file__, "mcp"], version),
    }
    sys.stdout.write(json.dumps(asyncio.run(steps[wire]())))


if __name__ == "__main__":
    # A traceback for each failure would fill the pipe.
    logging.getLogger("answerback").setLevel(logging.CRITICAL + 1)
    if sys.argv[1] == "calls":
        main(*sys.argv[2:])
    else:
        app.run()
