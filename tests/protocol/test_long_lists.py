"""Long lists: one page up to 1,000 entries, then pages that the official client follows."""

from __future__ import annotations

import asyncio
import os
import sys
from pathlib import Path

import pytest
from mcp import Client, StdioServerParameters

MANY = """
from answerback import App

app = App("many")

def number(x: int) -> int:
    return x

for index in range({count}):
    app.add_tool(number, name=f"tool_{{index}}")

app.run()
"""


async def pages_of(file: Path, mode: str) -> list[list[str]]:
    target = StdioServerParameters(
        command=sys.executable, args=[str(file), "mcp"], env=dict(os.environ)
    )
    pages: list[list[str]] = []
    async with Client(target, mode=mode, read_timeout_seconds=20) as client:
        page = await client.list_tools()
        pages.append([tool.name for tool in page.tools])
        while page.next_cursor is not None:
            page = await client.list_tools(cursor=page.next_cursor)
            pages.append([tool.name for tool in page.tools])
    return pages


@pytest.mark.parametrize("mode", ["auto", "legacy"])
@pytest.mark.parametrize(
    ("count", "sizes"), [(305, [305]), (1000, [1000]), (2001, [1000] * 2 + [1])]
)
def test_the_official_client_sees_every_tool(
    tmp_path: Path, mode: str, count: int, sizes: list[int]
) -> None:
    file = tmp_path / "many.py"
    file.write_text(MANY.format(count=count))

    pages = asyncio.run(pages_of(file, mode))

    assert [len(page) for page in pages] == sizes
    assert [name for page in pages for name in page] == [f"tool_{index}" for index in range(count)]
