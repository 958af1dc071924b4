"""Many calls over every wire, by clients that connect, disconnect and abandon their sessions.

It fails if the server's memory grows after the first tenth of the calls, or if a task, a file
descriptor or a thread is left when all clients have disconnected. The calls are preceded by a
warm-up that fills the server's table of sessions, whose growth ends there.

    python -m bench.soak [CALLS] [SECONDS]
"""

from __future__ import annotations

import asyncio
import json
import os
import random
import re
import subprocess
import sys
import time
from collections.abc import Awaitable, Callable, Mapping
from pathlib import Path
from typing import Any, TypeAlias

from answerback import App, Context
from answerback.server.asgi.sessions import MAX_STATES

from .apps import add, add_async, add_inline

CALLS, SECONDS = 200_000, 300.0
CLIENTS = 24
GROWTH = 1.05
TIMEOUT = 30.0
PREFIX = "io.modelcontextprotocol/"
META = {PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": {}}
ACCEPT = "application/json, text/event-stream"

Json: TypeAlias = Any
app = App("soak", version="1.0.0")
app.add_tool(add)
app.add_tool(add_inline, inline=True)
app.add_tool(add_async)


@app.tool
def work(ctx: Context, steps: int) -> int:
    """Report progress for some milliseconds; stop if the call is cancelled."""
    for step in range(steps):
        if ctx.cancelled:
            break
        ctx.progress(step + 1, steps)
        time.sleep(0.001)
    return steps


@app.tool
async def work_async(ctx: Context, steps: int) -> int:
    """The same, on the event loop."""
    for step in range(steps):
        ctx.progress(step + 1, steps)
        await asyncio.sleep(0.001)
    return steps


@app.tool
def text(size: int) -> str:
    """Return a long text."""
    return "x" * size


@app.tool
async def ask(ctx: Context) -> str:
    """Ask the user."""
    return await ctx.elicit("Who are you?", str)


@app.tool
async def tasks() -> int:
    """The number of asyncio tasks, this one included."""
    return len(asyncio.all_tasks())


@app.resource("soak://note")
def note() -> str:
    """A note."""
    return "note"


def request(method: str, id: Json = 1, **params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def call(name: str, id: Json = 1, **arguments: Json) -> Json:
    return request("tools/call", id, name=name, arguments=arguments)


def stateless(frame: Json) -> tuple[Json, dict[str, str]]:
    """The request in the form of 2026-07-28, and its headers."""
    frame["params"]["_meta"] = {**META, "progressToken": 1}
    headers = {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": frame["method"]}
    if "name" in frame["params"]:
        headers["Mcp-Name"] = frame["params"]["name"]
    return frame, headers


class Connection:
    """One connection to the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def __aenter__(self) -> Connection:
        return self

    async def __aexit__(self, *_: object) -> None:
        self._writer.transport.abort()

    async def send(
        self,
        frame: Json,
        headers: Mapping[str, str] | None = None,
        *,
        path: str = "/mcp",
        method: str = "POST",
        fraction: float = 1.0,
    ) -> None:
        body = b"" if frame is None else json.dumps(frame).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Accept: {ACCEPT}"]
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        whole = "\r\n".join([*lines, "", ""]).encode() + body
        self._writer.write(whole[: int(len(whole) * fraction)])
        await self._writer.drain()

    async def read_head(self) -> tuple[int, dict[str, str]]:
        async with asyncio.timeout(TIMEOUT):
            text = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *fields = text.strip().split("\r\n")
        return int(first.split()[1]), {
            name.lower(): value for name, value in (field.split(": ", 1) for field in fields)
        }

    async def response(self) -> tuple[int, dict[str, str], bytes]:
        status, headers = await self.read_head()
        async with asyncio.timeout(TIMEOUT):
            if headers.get("transfer-encoding") == "chunked":
                return status, headers, await self._chunks()
            return (
                status,
                headers,
                await self._reader.readexactly(int(headers.get("content-length", 0))),
            )

    async def read_some(self) -> bytes:
        """Read the next bytes, whatever they are."""
        async with asyncio.timeout(TIMEOUT):
            return await self._reader.read(65536)

    async def _chunks(self) -> bytes:
        text = b""
        while size := int(await self._reader.readline(), 16):
            text += (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readline()
        return text

    async def expect(self, frame: Json, headers: Mapping[str, str], path: str = "/mcp") -> bytes:
        await self.send(frame, headers, path=path)
        status, _, body = await self.response()
        if status != 200 or b'"error":' in body or b'"isError":true' in body:
            raise RuntimeError(f"{path} {frame!r:.200}: {status} {body[:300]!r}")
        return body


class Soak:
    """The HTTP clients, and their counters."""

    def __init__(self, port: int, calls: int, seconds: float) -> None:
        self.port = port
        self.done = 0
        self.calls = calls
        self.start_clock(seconds)
        self.kinds: dict[str, int] = {}
        self._random = random.Random(7)

    def start_clock(self, seconds: float) -> None:
        """Make calls for *seconds* from now on; the warm-up does not count."""
        self.until = time.monotonic() + seconds

    @property
    def is_over(self) -> bool:
        return self.done >= self.calls or time.monotonic() > self.until

    async def connect(self) -> Connection:
        return Connection(*await asyncio.open_connection("127.0.0.1", self.port))

    async def client(self) -> None:
        """Behave in one way after the other, until enough calls were made."""
        kinds: list[Callable[[], Awaitable[int]]] = [
            *[self.over_rest, self.in_session, self.without_session, self.in_stateless_era] * 6,
            self.disconnect_during_a_call,
            self.disconnect_during_a_stream,
            self.disconnect_during_a_request,
            self.disconnect_when_asked,
            self.abandon_sessions,
        ]
        while not self.is_over:
            kind = self._random.choice(kinds)
            count = await kind()
            self.done += count
            self.kinds[kind.__name__] = self.kinds.get(kind.__name__, 0) + count

    def some_call(self, id: int) -> Json:
        match self._random.randrange(20):
            case 0:
                return call("work", id, steps=3)
            case 1:
                return call("work_async", id, steps=3)
            case 2:
                return call("text", id, size=20_000)
            case odd:
                return call(("add", "add_inline", "add_async")[odd % 3], id, x=odd, y=1)

    async def over_rest(self) -> int:
        async with await self.connect() as connection:
            for number in range(50):
                await connection.expect({"x": number, "y": 1}, {}, "/functions/add")
        return 50

    async def open_session(self, connection: Connection, **capabilities: Json) -> dict[str, str]:
        opening = request("initialize", protocolVersion="2025-11-25", capabilities=capabilities)
        await connection.send(opening)
        _, headers, _ = await connection.response()
        return {"Mcp-Session-Id": headers["mcp-session-id"]}

    async def in_session(self) -> int:
        async with await self.connect() as connection:
            session = await self.open_session(connection)
            first = {} if self._random.random() < 0.5 else {"Accept": "text/event-stream"}
            for number in range(40):
                await connection.expect(self.some_call(number), {**session, **first})
            await connection.expect(request("logging/setLevel", level="error"), session)
            if self._random.random() < 0.5:
                await connection.send(None, session, method="DELETE")
                await connection.read_head()
        return 41

    async def without_session(self) -> int:
        async with await self.connect() as connection:
            for number in range(40):
                await connection.expect(self.some_call(number), {})
            await connection.expect(request("tools/list"), {})
        return 41

    async def in_stateless_era(self) -> int:
        async with await self.connect() as connection:
            for number in range(40):
                await connection.expect(*stateless(self.some_call(number)))
            await connection.expect(*stateless(request("server/discover")))
        return 41

    async def disconnect_during_a_call(self) -> int:
        name = self._random.choice(["work", "work_async"])
        async with await self.connect() as connection:
            await connection.send(*stateless(call(name, steps=10_000)))
            await connection.read_some()
        async with await self.connect() as connection:
            session = await self.open_session(connection)
            await connection.send(call(name, steps=20), session)
        async with await self.connect() as connection:
            await connection.send({"steps": 20}, path=f"/functions/{name}")
        return 3

    async def disconnect_during_a_stream(self) -> int:
        async with await self.connect() as connection:
            wanted = {"notifications": {"toolsListChanged": True}}
            await connection.send(*stateless(request("subscriptions/listen", **wanted)))
            await connection.read_some()
        async with await self.connect() as connection:
            session = await self.open_session(connection)
        async with await self.connect() as connection:
            await connection.send(None, session, method="GET")
            await connection.read_some()
        return 2

    async def disconnect_during_a_request(self) -> int:
        for fraction in (0.3, 0.6, 0.99):
            async with await self.connect() as connection:
                await connection.send(call("add", x=1, y=1), fraction=fraction)
        return 3

    async def disconnect_when_asked(self) -> int:
        async with await self.connect() as connection:
            session = await self.open_session(connection, elicitation={})
        async with await self.connect() as connection:
            await connection.send(call("ask"), session)
            await connection.read_some()
        async with await self.connect() as connection:
            await connection.send(None, session, method="DELETE")
            await connection.read_head()
        return 1

    async def abandon_sessions(self) -> int:
        async with await self.connect() as connection:
            for _ in range(20):
                await self.open_session(connection)
        return 20


async def stdio_client(soak: Soak, process: asyncio.subprocess.Process, calls: int) -> None:
    """Make calls on stdio, one at a time; every fiftieth comes with one that is cancelled."""
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None
    for number in range(calls):
        if soak.is_over:
            return
        cancel = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        frames = [soak.some_call(number)]
        if number % 50 == 0:
            frames.insert(0, call("work_async", f"cancelled {number}", steps=10_000))
            frames.insert(1, {**cancel, "params": {"requestId": f"cancelled {number}"}})
        stdin.write(b"".join(json.dumps(frame).encode() + b"\n" for frame in frames))
        async with asyncio.timeout(TIMEOUT):
            while json.loads(await stdout.readline()).get("id") != number:
                pass
        soak.done += 1
        soak.kinds["stdio"] = soak.kinds.get("stdio", 0) + 1


async def start_stdio_server() -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *[sys.executable, "-m", "bench.soak", "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        limit=1 << 20,
    )


async def over_stdio(soak: Soak) -> None:
    """Start one stdio server after the other; kill every other one instead of closing its stdin."""
    number = 0
    while not soak.is_over:
        number += 1
        process = await start_stdio_server()
        await stdio_client(soak, process, 400)
        assert process.stdin is not None
        if number % 2:
            process.stdin.write(json.dumps(call("work", steps=10_000)).encode() + b"\n")
            process.kill()
        else:
            process.stdin.close()
        async with asyncio.timeout(TIMEOUT):
            await process.wait()


class ProcessFigures:
    """Memory, descriptors and threads of a process, from /proc."""

    def __init__(self, name: str, pid: int) -> None:
        self.name = name
        self._folder = Path(f"/proc/{pid}")
        self.samples: list[tuple[int, int]] = []

    def status(self, name: str) -> int:
        lines = (self._folder / "status").read_text().splitlines()
        return int(next(line.split()[1] for line in lines if line.startswith(f"{name}:")))

    @property
    def descriptors(self) -> int:
        return len(list((self._folder / "fd").iterdir()))

    def sample(self, done: int) -> None:
        self.samples.append((done, self.status("VmRSS")))

    def verdict(self, total: int) -> tuple[str, bool]:
        first = max((rss for done, rss in self.samples if done <= total / 10), default=0)
        later = max((rss for done, rss in self.samples if done > total / 10), default=0)
        grown = later / first if first else 0.0
        text = f"{self.name}: {first} kB after the first tenth, at most {later} kB later"
        return f"{text} ({(grown - 1) * 100:+.1f} %)", grown <= GROWTH


async def watch(soak: Soak, *figures: ProcessFigures) -> None:
    while not soak.is_over:
        for each in figures:
            each.sample(soak.done)
        await asyncio.sleep(0.25)


async def tasks_now(soak: Soak) -> int:
    async with await soak.connect() as connection:
        count: int = json.loads(await connection.expect({}, {}, "/functions/tasks"))["result"]
        return count


async def when_idle(soak: Soak, server: ProcessFigures) -> dict[str, int]:
    """The tasks, descriptors and threads of the server while no client is connected."""
    return {
        "tasks": await tasks_now(soak),
        "descriptors": server.descriptors,
        "threads": server.status("Threads"),
    }


async def fill_sessions(soak: Soak) -> None:
    """Change so many sessions that the server drops the oldest for each further one."""
    level = request("logging/setLevel", level="error")

    async def change(count: int) -> None:
        async with await soak.connect() as connection:
            for _ in range(count):
                await connection.expect(level, await soak.open_session(connection))

    await asyncio.gather(*(change(MAX_STATES // CLIENTS + 1) for _ in range(CLIENTS)))


async def warm_up(soak: Soak) -> None:
    """Make the server start all its threads and fill its table of sessions."""

    async def one() -> None:
        async with await soak.connect() as connection:
            await connection.expect(call("work", steps=300), {})

    await asyncio.gather(*(one() for _ in range(60)))
    await asyncio.gather(soak.over_rest(), soak.in_session(), soak.in_stateless_era())
    await fill_sessions(soak)


async def wait_until_idle(
    soak: Soak, server: ProcessFigures, before: dict[str, int]
) -> dict[str, int]:
    """The same as `when_idle`, once nothing is left or the time is over."""
    until = time.monotonic() + TIMEOUT
    while True:
        await asyncio.sleep(0.5)
        after = await when_idle(soak, server)
        if all(after[name] <= before[name] for name in before) or time.monotonic() > until:
            return after


async def run(port: int, pid: int, calls: int, seconds: float) -> bool:
    soak = Soak(port, calls, seconds)
    server = ProcessFigures("server", pid)
    await warm_up(soak)
    soak.start_clock(seconds)
    await asyncio.sleep(1)
    before = await when_idle(soak, server)
    lasting = await start_stdio_server()
    pipe = ProcessFigures("stdio", lasting.pid)
    began = time.monotonic()
    await asyncio.gather(
        watch(soak, server, pipe),
        over_stdio(soak),
        stdio_client(soak, lasting, calls),
        *(soak.client() for _ in range(CLIENTS)),
    )
    took = time.monotonic() - began
    verdicts = [each.verdict(soak.done) for each in (server, pipe)]
    assert lasting.stdin is not None
    lasting.stdin.close()
    await lasting.wait()
    after = await wait_until_idle(soak, server, before)
    kinds = ", ".join(f"{name} {count}" for name, count in sorted(soak.kinds.items()))
    print(f"{soak.done} calls in {took:.0f} s: {kinds}")
    for text, _ in verdicts:
        print(text)
    print(f"idle before: {before}")
    print(f"idle after:  {after}")
    left = [name for name in before if after[name] > before[name]]
    if left:
        print(f"left over: {', '.join(left)}")
    if soak.done < calls:
        print(f"the time was over before all {calls} calls were made")
    return all(good for _, good in verdicts) and not left


def main(calls: int = CALLS, seconds: float = SECONDS) -> int:
    server = subprocess.Popen(
        [sys.executable, "-m", "bench.soak", "serve", "--port", "0"],
        stderr=subprocess.PIPE,
        env=os.environ | {"ANSWERBACK_SECRET": "soak"},
    )
    assert server.stderr is not None
    try:
        announced = ""
        while "Ctrl-C" not in announced:
            line = server.stderr.readline().decode()
            if not line:
                raise RuntimeError(f"the server ended: {announced}")
            announced += line
        found = re.search(r"http://\S+?:(\d+)", announced)
        assert found is not None
        good = asyncio.run(run(int(found.group(1)), server.pid, calls, seconds))
        server.terminate()
        stderr = server.communicate(timeout=TIMEOUT)[1].decode()
        print(f"the server exited with {server.returncode}; stderr: {stderr or 'empty'}")
        good = good and server.returncode == 0 and not stderr
    finally:
        server.kill()
    print("good" if good else "NOT GOOD")
    return 0 if good else 1


if __name__ == "__main__":
    if sys.argv[1:2] in (["serve"], ["mcp"]):
        app.run()
    else:
        sys.exit(
            main(*(kind(text) for kind, text in zip((int, float), sys.argv[1:], strict=False)))
        )
