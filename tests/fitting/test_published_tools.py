"""Twelve tools of published servers: what is sent is valid and true, and the rest can be read."""

from __future__ import annotations

import asyncio
import re
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.conftest import load_app
from tests.fitting.kept_replies import difference, said

from answerback import App, Reply, Text, connect, validate
from answerback.core.versions import LATEST_STATEFUL
from answerback.protocol.listing import tool_entry
from answerback.registry.declarations import registry_of

PUBLISHED = Path(__file__).parent / "published_app.py"
TOOLS = (
    *("git_log", "fetch", "read_query", "search_code_advanced", "find_text"),
    *("get_document_outline", "extract_presentation_text", "get_forecast", "execute_range_query"),
    *("directory_tree", "list_issues", "conversations_history"),
)
NOTE = re.compile(
    r'Showing ([\d,]+) of ([\d,]+) (items|lines|characters)(?: of "(.+)")?\. The rest: (\S+)'
)


@pytest.fixture(scope="module")
def app() -> App:
    return load_app(PUBLISHED)


async def whole_and_sent(app: App, name: str) -> tuple[Any, Reply[Any], list[Any]]:
    """All data of a tool, the reply that is sent over MCP, and what each note leads to."""
    reply = await app.call(name)
    whole = msgspec.json.decode(reply.encoded) if reply.encoded else said(reply)
    async with connect(app) as server:
        sent = await server.call(name)
        rests = [await rest_of(server, *found) for found in NOTE.findall(said(sent))]
    return whole, sent, rests


async def rest_of(server: Any, returned: str, total: str, unit: str, path: str, uri: str) -> Any:
    """Everything that follows a cut, read in as many ranges as it takes."""
    count, end = (int(number.replace(",", "")) for number in (returned, total))
    pieces: list[Any] = []
    for offset in range(count, end, count):
        [block] = (await server.read(uri.replace(f"offset={count}", f"offset={offset}"))).content
        pieces += msgspec.json.decode(block.text) if unit == "items" else [block.text]
    return path, pieces if unit == "items" else "".join(pieces)


def completed(data: Any, path: str, rest: Any) -> Any:
    """The data with what follows a cut put back in its place."""
    if not path:
        return data + rest
    step, _, below = path.partition(".")
    place: Any = int(step) if isinstance(data, list) else step
    data[place] = completed(data[place], below, rest)
    return data


@pytest.mark.parametrize("name", TOOLS)
def test_a_large_reply_of_a_published_tool_is_cut_and_can_be_completed(app: App, name: str) -> None:
    whole, sent, rests = asyncio.run(whole_and_sent(app, name))

    assert sent.ok
    assert sent.cuts
    texts = sum(len(block.text) for block in sent.content if isinstance(block, Text))
    structured = msgspec.json.encode(sent.raw.get("structuredContent")).decode()
    assert 10_000 < max(texts, len(structured)) <= 20_000
    schema = tool_entry(registry_of(app).tools[name], LATEST_STATEFUL).get("outputSchema")
    assert [each for each in validate(sent.raw, "mcp", schema) if each.severity == "error"] == []
    assert len(rests) == len(sent.cuts)
    if not sent.has_data:
        [block] = [each for each in sent.content if isinstance(each, Text)][:1]
        assert [(block.text + rest) for _, rest in rests] == [whole]
        return
    assert sorted(difference(whole, sent.data, sent.cuts), key=str) == sorted(sent.cuts, key=str)
    found = sent.data
    # What was cut inside an item that stays is put back before the items that follow it.
    for path, rest in sorted(rests, key=lambda each: -len(each[0])):
        found = completed(found, path, rest)
    assert found == whole
