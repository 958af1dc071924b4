"""`python -m bench verdicts FILE…`: how many failures of other people's tools are recognised.

Each FILE is JSONL with one reply a line: `{"value" | "result": …, "failed": true | false}`. A value
is returned from a tool `-> dict` (other values: from one without a type) by FastMCP, the official
SDK and us, from a function under `wrap`, and read by `read`. A result is an MCP result, and only
`read` sees it; the others look at `isError`.
"""

from __future__ import annotations

import argparse
import asyncio
import json
import logging
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

from answerback import App, read, wrap

Fails: TypeAlias = Callable[[Any], Awaitable[bool]]
MISSES = 20


class Row(NamedTuple):
    value: Any
    failed: bool
    is_result: bool


class Held:
    """The value that the tools of every framework return next."""

    value: Any = None

    def free(self) -> Any:
        return self.value

    def typed(self) -> dict[str, Any]:
        found: dict[str, Any] = self.value
        return found


def main(arguments: list[str]) -> int:
    parser = argparse.ArgumentParser(prog="python -m bench verdicts", description=__doc__)
    parser.add_argument("files", nargs="+", type=Path, metavar="FILE")
    files = parser.parse_args(arguments).files
    rows = [row for file in files for row in rows_of(file)]
    failures = sum(row.failed for row in rows)
    print(f"{len(rows)} replies, {failures} failures, {datetime.now(UTC):%Y-%m-%d}")
    # Each of the tools' failures would be logged.
    logging.disable()
    asyncio.run(compare(rows))
    return 0


def rows_of(file: Path) -> list[Row]:
    found = [json.loads(line) for line in file.read_text().splitlines() if line.strip()]
    return [
        Row(each["value"] if "value" in each else each["result"], each["failed"], "result" in each)
        for each in found
    ]


async def compare(rows: list[Row]) -> None:
    held = Held()
    values = [row for row in rows if not row.is_result]
    results = [row for row in rows if row.is_result]
    print(f"{'':24}{'recognised':>12}{'of failures':>12}{'false alarms':>14}")
    for name, fails in _senders(held).items() if values else ():
        await _report(name, fails, values, held)
    await _report("answerback, read", _read_fails, values, held)
    await _report("the flag isError", _flag_fails, results, held)
    await _report("answerback, read results", _read_fails, results, held)


def _senders(held: Held) -> dict[str, Fails]:
    """The ways to send a value; each says whether the value left as a failure."""
    from fastmcp import Client, FastMCP
    from mcp.server.mcpserver import MCPServer

    app, fast, sdk = App("ours"), FastMCP("fast"), MCPServer("sdk")
    for function in (held.free, held.typed):
        app.add_tool(function)
        fast.tool(function)
        sdk.tool()(function)

    def name_of(value: Any) -> str:
        return "typed" if isinstance(value, dict) else "free"

    async def ours(value: Any) -> bool:
        return not (await app.call(name_of(value))).ok

    async def wrapped(value: Any) -> bool:
        return not (await wrap(held.free)())["success"]

    async def fastmcp(value: Any) -> bool:
        async with Client(fast) as client:
            found = await client.call_tool(name_of(value), raise_on_error=False)
        return bool(found.is_error)

    async def official(value: Any) -> bool:
        found = await sdk.call_tool(name_of(value), {})
        return bool(getattr(found, "is_error", False))

    return {
        "FastMCP": fastmcp,
        "official SDK": official,
        "answerback, tool": ours,
        "answerback, wrap": wrapped,
    }


async def _read_fails(value: Any) -> bool:
    # Null alone is no reply: it is sent as a result without data.
    return value is not None and not read(value).ok


async def _flag_fails(result: Any) -> bool:
    return isinstance(result, dict) and result.get("isError") is True


async def _report(name: str, fails: Fails, rows: list[Row], held: Held) -> None:
    if not rows:
        return
    missed: list[Any] = []
    alarms: list[Any] = []
    for row in rows:
        held.value = row.value
        failed = await fails(row.value)
        if failed != row.failed:
            (missed if row.failed else alarms).append(row.value)
    failures = sum(row.failed for row in rows)
    share = (failures - len(missed)) / failures if failures else 1
    print(f"{name:24}{failures - len(missed):12}{share:12.1%}{len(alarms):14}")
    if "answerback" in name:
        for kind, values in (("missed", missed), ("false alarm", alarms)):
            for value in values[:MISSES]:
                print(f"  {kind}: {json.dumps(value, ensure_ascii=False)[:160]}")
