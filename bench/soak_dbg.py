"""A long day in minutes: many calls over every wire, by clients that come, go and vanish.

It fails if the server's memory grows after the first tenth, or if a task, a file
descriptor or a thread is left when all clients have gone.

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

CALLS, SECONDS = 200_000, 300.0
CLIENTS = 24
GROWTH = 1.05
PATIENCE = 30.0
PREFIX = "io.modelcontextprotocol/"
META = {PREFIX + "protocolVersion": "2026-07-28", PREFIX + "clientCapabilities": {}}
BOTH = "application/json, text/event-stream"

Json: TypeAlias = Any
app = App("soak", version="1.0.0")


@app.tool
def add(x: int, y: int) -> int:
    """Add two numbers in a thread."""
    return x + y


@app.tool(inline=True)
def add_inline(x: int, y: int) -> int:
    """Add two numbers in place."""
    return x + y


@app.tool
async def add_async(x: int, y: int) -> int:
    """Add two numbers on the loop."""
    return x + y


@app.tool
def work(ctx: Context, steps: int) -> int:
    """Take a while, and tell of it; stop when nobody waits any more."""
    for step in range(steps):
        if ctx.cancelled:
            break
        ctx.progress(step + 1, steps)
        time.sleep(0.001)
    return steps


@app.tool
async def rest(ctx: Context, steps: int) -> int:
    """The same, on the loop."""
    for step in range(steps):
        ctx.progress(step + 1, steps)
        await asyncio.sleep(0.001)
    return steps


@app.tool
def text(size: int) -> str:
    """Give a long text back."""
    return "x" * size


@app.tool
async def ask(ctx: Context) -> str:
    """Ask the user."""
    return await ctx.elicit("Who are you?", str)


@app.tool
async def tasks() -> int:
    """How many tasks there are, this one among them."""
    print([repr(t.get_coro())[:90] + " " + str([f.f_code.co_name+":"+str(f.f_lineno) for f in t.get_stack()]) for t in asyncio.all_tasks()], file=sys.stderr, flush=True); return len(asyncio.all_tasks())


@app.resource("soak://note")
def note() -> str:
    """A note."""
    return "note"


def request(method: str, id: Json = 1, **params: Json) -> Json:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def call(name: str, id: Json = 1, **arguments: Json) -> Json:
    return request("tools/call", id, name=name, arguments=arguments)


def modern(frame: Json) -> tuple[Json, dict[str, str]]:
    """The frame as the modern era has it, and its headers."""
    frame["params"]["_meta"] = {**META, "progressToken": 1}
    headers = {"Mcp-Protocol-Version": "2026-07-28", "Mcp-Method": frame["method"]}
    if "name" in frame["params"]:
        headers["Mcp-Name"] = frame["params"]["name"]
    return frame, headers


class Line:
    """One connection to the server."""

    def __init__(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        self._reader = reader
        self._writer = writer

    async def __aenter__(self) -> Line:
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
        part: float = 1.0,
    ) -> None:
        body = b"" if frame is None else json.dumps(frame).encode()
        lines = [f"{method} {path} HTTP/1.1", "Host: 127.0.0.1", f"Accept: {BOTH}"]
        lines += ["Content-Type: application/json", f"Content-Length: {len(body)}"]
        lines += [f"{name}: {value}" for name, value in (headers or {}).items()]
        whole = "\r\n".join([*lines, "", ""]).encode() + body
        self._writer.write(whole[: int(len(whole) * part)])
        await self._writer.drain()

    async def head(self) -> tuple[int, dict[str, str]]:
        async with asyncio.timeout(PATIENCE):
            text = (await self._reader.readuntil(b"\r\n\r\n")).decode("latin-1")
        first, *fields = text.strip().split("\r\n")
        return int(first.split()[1]), {
            name.lower(): value for name, value in (field.split(": ", 1) for field in fields)
        }

    async def answer(self) -> tuple[int, dict[str, str], bytes]:
        status, headers = await self.head()
        async with asyncio.timeout(PATIENCE):
            if headers.get("transfer-encoding") == "chunked":
                return status, headers, await self._chunks()
            return (
                status,
                headers,
                await self._reader.readexactly(int(headers.get("content-length", 0))),
            )

    async def some(self) -> bytes:
        """Some of what comes."""
        async with asyncio.timeout(PATIENCE):
            return await self._reader.read(65536)

    async def _chunks(self) -> bytes:
        text = b""
        while size := int(await self._reader.readline(), 16):
            text += (await self._reader.readexactly(size + 2))[:-2]
        await self._reader.readline()
        return text

    async def expect(self, frame: Json, headers: Mapping[str, str], path: str = "/mcp") -> bytes:
        await self.send(frame, headers, path=path)
        status, _, body = await self.answer()
        if status != 200 or b'"error":' in body or b'"isError":true' in body:
            raise RuntimeError(f"{path} {frame!r:.200}: {status} {body[:300]!r}")
        return body


class Soak:
    """The clients, and what they count."""

    def __init__(self, port: int, calls: int, seconds: float) -> None:
        self.port = port
        self.done = 0
        self.most = calls
        self.until = time.monotonic() + seconds
        self.kinds: dict[str, int] = {}
        self._random = random.Random(7)

    @property
    def is_over(self) -> bool:
        return self.done >= self.most or time.monotonic() > self.until

    async def line(self) -> Line:
        return Line(*await asyncio.open_connection("127.0.0.1", self.port))

    async def client(self) -> None:
        """One after the other, until enough calls were made."""
        kinds: list[Callable[[], Awaitable[int]]] = [
            *[self.over_rest, self.in_session, self.without_session, self.in_modern] * 6,
            self.vanish_in_a_call,
            self.vanish_in_a_stream,
            self.vanish_half_said,
            self.vanish_when_asked,
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
                return call("rest", id, steps=3)
            case 2:
                return call("text", id, size=20_000)
            case odd:
                return call(("add", "add_inline", "add_async")[odd % 3], id, x=odd, y=1)

    async def over_rest(self) -> int:
        async with await self.line() as line:
            for number in range(50):
                await line.expect({"x": number, "y": 1}, {}, "/functions/add")
        return 50

    async def open_session(self, line: Line, **capabilities: Json) -> dict[str, str]:
        opening = request("initialize", protocolVersion="2025-11-25", capabilities=capabilities)
        await line.send(opening)
        _, headers, _ = await line.answer()
        return {"Mcp-Session-Id": headers["mcp-session-id"]}

    async def in_session(self) -> int:
        async with await self.line() as line:
            session = await self.open_session(line)
            first = {} if self._random.random() < 0.5 else {"Accept": "text/event-stream"}
            for number in range(40):
                await line.expect(self.some_call(number), {**session, **first})
            await line.expect(request("logging/setLevel", level="error"), session)
            if self._random.random() < 0.5:
                await line.send(None, session, method="DELETE")
                await line.head()
        return 41

    async def without_session(self) -> int:
        async with await self.line() as line:
            for number in range(40):
                await line.expect(self.some_call(number), {})
            await line.expect(request("tools/list"), {})
        return 41

    async def in_modern(self) -> int:
        async with await self.line() as line:
            for number in range(40):
                await line.expect(*modern(self.some_call(number)))
            await line.expect(*modern(request("server/discover")))
        return 41

    async def vanish_in_a_call(self) -> int:
        name = self._random.choice(["work", "rest"])
        async with await self.line() as line:
            await line.send(*modern(call(name, steps=10_000)))
            await line.some()
        async with await self.line() as line:
            session = await self.open_session(line)
            await line.send(call(name, steps=20), session)
        async with await self.line() as line:
            await line.send({"steps": 20}, path=f"/functions/{name}")
        return 3

    async def vanish_in_a_stream(self) -> int:
        async with await self.line() as line:
            wanted = {"notifications": {"toolsListChanged": True}}
            await line.send(*modern(request("subscriptions/listen", **wanted)))
            await line.some()
        async with await self.line() as line:
            session = await self.open_session(line)
        async with await self.line() as line:
            await line.send(None, session, method="GET")
            await line.some()
        return 2

    async def vanish_half_said(self) -> int:
        for part in (0.3, 0.6, 0.99):
            async with await self.line() as line:
                await line.send(call("add", x=1, y=1), part=part)
        return 3

    async def vanish_when_asked(self) -> int:
        async with await self.line() as line:
            session = await self.open_session(line, elicitation={})
        async with await self.line() as line:
            await line.send(call("ask"), session)
            await line.some()
        async with await self.line() as line:
            await line.send(None, session, method="DELETE")
            await line.head()
        return 1

    async def abandon_sessions(self) -> int:
        async with await self.line() as line:
            for _ in range(20):
                await self.open_session(line)
        return 20


async def pipe_client(soak: Soak, process: asyncio.subprocess.Process, calls: int) -> None:
    """Calls over a pipe, some of them cancelled; one in flight at a time but for those."""
    stdin, stdout = process.stdin, process.stdout
    assert stdin is not None
    assert stdout is not None
    for number in range(calls):
        if soak.is_over:
            return
        doomed = {"jsonrpc": "2.0", "method": "notifications/cancelled"}
        frames = [soak.some_call(number)]
        if number % 50 == 0:
            frames.insert(0, call("rest", f"doomed {number}", steps=10_000))
            frames.insert(1, {**doomed, "params": {"requestId": f"doomed {number}"}})
        stdin.write(b"".join(json.dumps(frame).encode() + b"\n" for frame in frames))
        async with asyncio.timeout(PATIENCE):
            while json.loads(await stdout.readline()).get("id") != number:
                pass
        soak.done += 1
        soak.kinds["stdio"] = soak.kinds.get("stdio", 0) + 1


async def open_pipe() -> asyncio.subprocess.Process:
    return await asyncio.create_subprocess_exec(
        *[sys.executable, __file__, "mcp"],
        stdin=subprocess.PIPE,
        stdout=subprocess.PIPE,
        stderr=subprocess.DEVNULL,
        limit=1 << 20,
    )


async def over_pipes(soak: Soak) -> None:
    """Processes that live shortly; every other one is killed instead of closed."""
    number = 0
    while not soak.is_over:
        number += 1
        process = await open_pipe()
        await pipe_client(soak, process, 400)
        assert process.stdin is not None
        if number % 2:
            process.stdin.write(json.dumps(call("work", steps=10_000)).encode() + b"\n")
            process.kill()
        else:
            process.stdin.close()
        async with asyncio.timeout(PATIENCE):
            await process.wait()


class Figures:
    """What the kernel says of a process, now and over time."""

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
        said = f"{self.name}: {first} kB after the first tenth, at most {later} kB later"
        return f"{said} ({(grown - 1) * 100:+.1f} %)", grown <= GROWTH


async def watch(soak: Soak, *figures: Figures) -> None:
    while not soak.is_over:
        for each in figures:
            each.sample(soak.done)
        await asyncio.sleep(0.25)


async def tasks_now(soak: Soak) -> int:
    async with await soak.line() as line:
        count: int = json.loads(await line.expect({}, {}, "/functions/tasks"))["result"]
        return count


async def at_rest(soak: Soak, server: Figures) -> dict[str, int]:
    """What is there when nobody is."""
    return {
        "tasks": await tasks_now(soak),
        "descriptors": server.descriptors,
        "threads": server.status("Threads"),
    }


async def warm_up(soak: Soak) -> None:
    """Start every thread that there may be."""

    async def one() -> None:
        async with await soak.line() as line:
            await line.expect(call("work", steps=300), {})

    await asyncio.gather(*(one() for _ in range(60)))
    await asyncio.gather(*(kind() for kind in (soak.over_rest, soak.in_session, soak.in_modern)))


async def settle(soak: Soak, server: Figures, before: dict[str, int]) -> dict[str, int]:
    """What is left; it is given some seconds to go."""
    until = time.monotonic() + PATIENCE
    while True:
        await asyncio.sleep(0.5)
        after = await at_rest(soak, server)
        if all(after[name] <= before[name] for name in before) or time.monotonic() > until:
            return after


async def run(port: int, pid: int, calls: int, seconds: float) -> bool:
    soak = Soak(port, calls, seconds)
    server = Figures("server", pid)
    await warm_up(soak)
    await asyncio.sleep(1)
    before = await at_rest(soak, server)
    lasting = await open_pipe()
    pipe = Figures("stdio", lasting.pid)
    began = time.monotonic()
    await asyncio.gather(
        watch(soak, server, pipe),
        over_pipes(soak),
        pipe_client(soak, lasting, calls),
        *(soak.client() for _ in range(CLIENTS)),
    )
    took = time.monotonic() - began
    verdicts = [each.verdict(soak.done) for each in (server, pipe)]
    assert lasting.stdin is not None
    lasting.stdin.close()
    await lasting.wait()
    after = await settle(soak, server, before)
    kinds = ", ".join(f"{name} {count}" for name, count in sorted(soak.kinds.items()))
    print(f"{soak.done} calls in {took:.0f} s: {kinds}")
    for said, _ in verdicts:
        print(said)
    print(f"at rest before: {before}")
    print(f"at rest after:  {after}")
    left = [name for name in before if after[name] > before[name]]
    if left:
        print(f"left behind: {', '.join(left)}")
    if soak.done < calls:
        print(f"the time was over before {calls} calls were made")
    return all(good for _, good in verdicts) and not left


def main(calls: int = CALLS, seconds: float = SECONDS) -> int:
    server = subprocess.Popen(
        [sys.executable, __file__, "serve", "--port", "0"],
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
        complaints = server.communicate(timeout=PATIENCE)[1].decode()
        print(f"the server ended with {server.returncode}; it said: {complaints or 'nothing'}")
        good = good and server.returncode == 0 and not complaints
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
