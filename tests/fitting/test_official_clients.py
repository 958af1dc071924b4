"""The official clients read the cut replies of published tools, and complete them."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from mcp import Client
from tests.conftest import serving
from tests.fitting.test_published_tools import NOTE, PUBLISHED, TOOLS, completed
from tests.protocol.official_tools import node_command, node_environment

READER = Path(__file__).with_name("complete_replies.mjs")


class Rest(NamedTuple):
    path: str
    unit: str
    texts: list[str]


class Received(NamedTuple):
    result: dict[str, Any]
    rests: list[Rest]


@pytest.fixture(scope="module")
def url() -> Iterator[str]:
    with serving(PUBLISHED) as server:
        yield server.url


def with_typescript(url: str, folder: Path) -> dict[str, Received]:
    done = subprocess.run(
        node_command(READER, f"{url}/mcp", *TOOLS),
        env=node_environment(folder),
        capture_output=True,
        timeout=120,
    )
    assert done.stderr.decode() == ""
    return {
        name: Received(found["result"], [Rest(**each) for each in found["rests"]])
        for name, found in json.loads(done.stdout).items()
    }


def with_python(url: str, folder: Path) -> dict[str, Received]:
    async def rest_of(
        client: Client, returned: str, total: str, unit: str, path: str, uri: str
    ) -> Rest:
        count, end = (int(number.replace(",", "")) for number in (returned, total))
        texts: list[str] = []
        for offset in range(count, end, count):
            read = await client.read_resource(uri.replace(f"offset={count}", f"offset={offset}"))
            texts.append(read.contents[0].text)  # type: ignore[union-attr]  # a text
        return Rest(path, unit, texts)

    async def main() -> dict[str, Received]:
        found: dict[str, Received] = {}
        async with Client(f"{url}/mcp") as client:
            await client.list_tools()
            for name in TOOLS:
                result = (await client.call_tool(name, {})).model_dump(mode="json", by_alias=True)
                said = "\n".join(each.get("text", "") for each in result["content"])
                rests = [await rest_of(client, *note) for note in NOTE.findall(said)]
                found[name] = Received(result, rests)
        return found

    return asyncio.run(asyncio.wait_for(main(), 120))


def whole_of(received: Received) -> Any:
    """The data, or without data the text, with what the notes lead to put back in its place."""
    data: Any = received.result.get("structuredContent")
    if data is None:
        [rest] = received.rests
        return received.result["content"][0]["text"] + "".join(rest.texts)
    data.pop("message", None)
    data = data["result"] if data.keys() == {"result"} else data
    for path, unit, texts in sorted(received.rests, key=lambda each: -len(each.path)):
        items = [item for text in texts for item in json.loads(text)] if unit == "items" else None
        data = completed(data, path, "".join(texts) if items is None else items)
    return data


@pytest.mark.parametrize("read", [with_python, with_typescript])
def test_an_official_client_completes_what_rest_and_the_command_line_send_whole(
    url: str, tmp_path: Path, read: Callable[[str, Path], dict[str, Received]]
) -> None:
    found = read(url, tmp_path)

    for name in TOOLS:
        assert found[name].rests, name
        sent = httpx.post(f"{url}/functions/{name}", json={}).json()
        expected = sent["result"] if sent.keys() == {"result"} else sent
        if sent.keys() == {"content"}:
            expected = sent["content"][0]["text"]
        assert whole_of(found[name]) == expected, name


@pytest.mark.parametrize("name", TOOLS)
def test_the_command_line_prints_all_that_rest_sends(url: str, name: str) -> None:
    command = [sys.executable, "-m", "answerback", "call", str(PUBLISHED), name]
    printed = subprocess.run(command, capture_output=True, timeout=120, check=True).stdout

    assert json.loads(printed) == httpx.post(f"{url}/functions/{name}", json={}).json()
