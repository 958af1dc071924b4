"""Whole replies as resources: who reads them, in which ranges, and for how long."""

from __future__ import annotations

import asyncio
import json
import sys
from collections.abc import Callable, Iterator
from hashlib import sha256
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.conftest import load_app, serving
from tests.fitting.kept_app import Report, report, whole_of
from tests.records.support import MemorySink
from tests.server.processes import workers_of
from tests.serving import ServedApp
from tests.tasks.task_client import RpcFailure, TaskClient

from answerback import App, Context, Limits, connect
from answerback.auth import ApiKey, ApiKeys
from answerback.core.request_info import RequestInfo
from answerback.gates import scope
from answerback.options import ReplyLimits
from answerback.records import Records
from answerback.registry.declarations import VisibleEntry

KEPT = Path(__file__).parent / "kept_app.py"


@pytest.fixture(scope="session")
def kept_url() -> Iterator[str]:
    with serving(KEPT) as server:
        yield f"{server.url}/mcp"


@pytest.fixture(params=["memory", "stdio", "http"])
def target(request: pytest.FixtureRequest, kept_url: str) -> Any:
    """The same app over each transport."""
    match request.param:
        case "memory":
            return load_app(KEPT)
        case "stdio":
            return [sys.executable, str(KEPT), "mcp"]
    return kept_url


@pytest.fixture(params=["2025-11-25", "2026-07-28"])
def version(request: pytest.FixtureRequest) -> str:
    found: str = request.param
    return found


def _block(reply: Any) -> Any:
    assert reply.ok, reply.error
    [block] = reply.content
    return block


def test_a_whole_reply_is_read_over_every_wire_in_both_eras(target: Any, version: str) -> None:
    async def run() -> list[Any]:
        async with connect(target, version=version) as server:
            uri = whole_of(await server.call("read_rows"))
            ranges = ["", "?path=items&offset=10&limit=10", "?path=log&limit=2&unit=lines"]
            return [_block(await server.read(uri + each)) for each in ranges]

    whole, rows, lines = asyncio.run(run())

    assert (json.loads(whole.text), whole.mime) == (report(), "application/json")
    assert json.loads(rows.text) == report()["items"][10:20]
    assert (lines.text, lines.mime) == ("one\ntwo\n", "text/plain")


def test_the_ranges_of_a_list_and_a_text_are_the_whole(kept_url: str) -> None:
    async def run() -> list[list[str]]:
        async with connect(kept_url) as server:
            uri = whole_of(await server.call("read_rows"))

            async def ranges(query: str, step: int, total: int) -> list[str]:
                starts = range(0, total, step)
                uris = [f"{uri}?{query}&offset={start}&limit={step}" for start in starts]
                return [_block(await server.read(each)).text for each in uris]

            return [
                await ranges("path=items", 10, 25),
                await ranges("path=log&unit=lines", 2, 3),
                await ranges("path=log", 3, 13),
            ]

    rows, lines, characters = asyncio.run(run())

    expected = report()
    assert [len(json.loads(each)) for each in rows] == [10, 10, 5]
    assert [row for each in rows for row in json.loads(each)] == expected["items"]
    assert "".join(lines) == "".join(characters) == expected["log"]


@pytest.mark.parametrize(
    ("query", "message"),
    [
        ("path=items&offset=26", "offset=26 should be from 0 to 25: 'items' has 25 items"),
        ("path=items&offset=-1", "offset='-1' should be a whole number"),
        ("path=items&limit=0", "limit=0 should be at least 1"),
        ("path=log&offset=9&unit=lines", "offset=9 should be from 0 to 3: 'log' has 3 lines"),
        ("path=log&unit=words", "unit='words' should be 'lines' or 'characters'"),
        ("path=item", "the reply has nothing at path='item'; did you mean 'items'?"),
        (
            "path=rows",
            "the reply has nothing at path='rows'; the reply has 'items', 'log', 'total'",
        ),
        (
            "path=total&limit=1",
            "offset and limit need a list or a string, but 'total' is one value",
        ),
        ("limit=1", "offset and limit need a list or a string, but the reply is an object"),
        ("ofset=1", "a range has no 'ofset'; did you mean 'offset'?"),
    ],
)
def test_a_bad_range_says_what_is_allowed(kept_url: str, query: str, message: str) -> None:
    async def run() -> Any:
        async with connect(kept_url) as server:
            uri = whole_of(await server.call("read_rows"))
            return await server.read(f"{uri}?{query}")

    error = asyncio.run(run()).error

    assert message in "; ".join(filter(None, [error.message, error.hint]))
    assert error.code == "INVALID_INPUT"


def test_an_app_with_a_budget_declares_resources_and_lists_no_whole_reply(
    target: Any, version: str
) -> None:
    async def run() -> list[Any]:
        async with connect(target, version=version) as server:
            await server.call("read_rows")
            listed = [await server.resources(), await server.templates()]
            return [server.info.capabilities, *listed]

    capabilities, resources, templates = asyncio.run(run())

    assert "resources" in capabilities
    assert (resources, templates) == ([], [])


def test_an_app_without_a_budget_serves_no_whole_replies() -> None:
    app = ServedApp("plain")

    @app.resource("note://a")
    def note() -> str:
        return "a"

    async def steps(client: TaskClient) -> Any:
        with pytest.raises(RpcFailure) as refused:
            await client.request("resources/read", uri="answerback://replies/abc")
        return refused.value

    assert "Resource not found: answerback://replies/abc" in str(_run(app, steps))


def _key(name: str) -> str:
    return f"secret-key-of-{name}-".ljust(43, "x")


def _app_with_keys(**options: Any) -> ServedApp:
    programs = {
        "ada": ApiKey(name="ada", scopes=["pay"]),
        "unscoped-ada": ApiKey(name="ada"),
        "bob": ApiKey(name="bob"),
    }
    keys = {sha256(_key(name).encode()).hexdigest(): key for name, key in programs.items()}
    app = ServedApp("kept", auth=ApiKeys(keys, anonymous=True), **options)

    def read_rows() -> Report:
        return report()

    app.add_tool(read_rows, budget=1_000)
    return app


def _run(app: App, steps: Callable[[TaskClient], Any]) -> Any:
    async def run() -> Any:
        transport = httpx.ASGITransport(app.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as http:
            return await steps(TaskClient(http))

    return asyncio.run(run())


async def _refused(client: TaskClient, uri: str) -> RpcFailure:
    with pytest.raises(RpcFailure) as refused:
        await client.request("resources/read", uri=uri)
    return refused.value


async def _kept(client: TaskClient, tool: str = "read_rows") -> str:
    return _linked(await client.call(tool))


def _linked(result: dict[str, Any]) -> str:
    [uri] = [block["uri"] for block in result["content"] if block["type"] == "resource_link"]
    return str(uri)


def test_only_its_user_reads_a_whole_reply_and_for_others_it_does_not_exist() -> None:
    async def steps(client: TaskClient) -> list[Any]:
        ada, bob = client.of(_key("ada")), client.of(_key("bob"))
        uri = await _kept(ada)
        unknown = "answerback://replies/" + "x" * 27
        read = await ada.request("resources/read", uri=uri)
        errors = [await _refused(each, uri) for each in (bob, client)]
        absent = await _refused(bob, unknown)
        told = {(str(each).replace(uri, unknown), each.code) for each in [*errors, absent]}
        return [read["contents"][0]["text"], told, absent.data["hint"]]

    text, told, hint = _run(_app_with_keys(), steps)

    assert json.loads(text) == report()
    [(message, code)] = told
    assert message.startswith("Resource not found: answerback://replies/xxx")
    assert code == -32602
    assert "call the tool again" in hint


def test_without_a_user_who_knows_the_id_reads_the_whole_reply() -> None:
    async def steps(client: TaskClient) -> Any:
        uri = await _kept(client)
        return await client.of(_key("bob")).request("resources/read", uri=uri)

    [content] = _run(_app_with_keys(), steps)["contents"]
    assert json.loads(content["text"]) == report()


@pytest.mark.parametrize("closed_part", ["app", "included app", "tool"])
def test_the_gates_of_the_tool_and_its_apps_decide_about_the_whole_reply_too(
    closed_part: str,
) -> None:
    closed: list[str] = []

    def gate(part: str) -> Callable[[Context], bool]:
        def is_open(ctx: Context) -> bool:
            return part not in closed

        return is_open

    app = _app_with_keys(requires=[gate("app")])
    included = App("included", requires=[gate("included app")])

    @included.tool(budget=1_000, requires=[scope("pay"), gate("tool")])
    def pay() -> Report:
        return report()

    app.include(included, prefix="in_")

    async def steps(client: TaskClient) -> list[str]:
        ada, unscoped = client.of(_key("ada")), client.of(_key("unscoped-ada"))
        uri = await _kept(ada, "in_pay")
        await ada.request("resources/read", uri=uri)
        refused = str(await _refused(unscoped, uri))
        closed.append(closed_part)
        return [refused, str(await _refused(ada, uri))]

    fewer, after = _run(app, steps)

    assert "pay" in fewer
    assert after == "This is not allowed"


def test_who_no_longer_sees_the_tool_does_not_see_its_whole_reply() -> None:
    app, shown = _app_with_keys(), ["read_rows"]

    @app.visible
    def visible(entry: VisibleEntry, request: RequestInfo) -> bool:
        return entry.name in shown

    async def steps(client: TaskClient) -> list[Any]:
        uri = await _kept(client)
        read = await client.request("resources/read", uri=uri)
        shown.clear()
        return [len(read["contents"]), str(await _refused(client, uri))]

    contents, refused = _run(app, steps)

    assert contents == 1
    assert refused.startswith("Resource not found")


def test_a_whole_reply_of_a_tool_that_is_no_longer_served_is_not_found() -> None:
    app = _app_with_keys()

    async def steps(client: TaskClient) -> str:
        uri = await _kept(client)
        app.disable("read_rows")
        return str(await _refused(client, uri))

    assert _run(app, steps).startswith("Resource not found")


def test_a_task_s_result_leads_to_one_whole_reply_however_often_it_is_read() -> None:
    app = _app_with_keys()

    @app.tool(budget=1_000, task="required")
    def slow() -> Report:
        return report()

    async def steps(client: TaskClient) -> list[Any]:
        task = await client.create("slow")
        results = [(await client.until(task))["result"], (await client.get(task))["result"]]
        uris = [_linked(each) for each in results]
        read = await client.request("resources/read", uri=uris[0])
        return [uris, json.loads(read["contents"][0]["text"])]

    uris, whole = _run(app, steps)

    assert uris[0] == uris[1]
    assert whole == report()


def test_reading_a_whole_reply_is_recorded_as_a_resource() -> None:
    sink = MemorySink()
    records = Records(sink)

    async def steps(client: TaskClient) -> None:
        await client.request("resources/read", uri=await _kept(client))

    _run(_app_with_keys(records=records), steps)
    records.flush()

    assert [event.kind for event in sink.replies] == ["tool", "resource"]


def test_a_whole_reply_is_gone_after_its_time() -> None:
    async def steps(client: TaskClient) -> str:
        return str(await _refused(client, await _kept(client)))

    app = _app_with_keys(limits=Limits(replies=ReplyLimits(retention=1e-9)))
    assert _run(app, steps).startswith("Resource not found")


@pytest.mark.parametrize("wire", ["memory", "http"])
def test_a_whole_reply_is_gone_with_its_session(wire: str, version: str, kept_url: str) -> None:
    """Without sessions, in the later version, it stays for its time."""
    target: Any = load_app(KEPT) if wire == "memory" else kept_url

    async def run() -> list[bool]:
        async with connect(target) as other:
            async with connect(target, version=version) as server:
                uri = whole_of(await server.call("read_rows"))
                during = await other.read(uri)
            return [during.ok, (await other.read(uri)).ok]

    assert asyncio.run(run()) == [True, version == "2026-07-28"]


@pytest.mark.skipif(sys.platform != "linux", reason="counts processes in /proc")
def test_every_worker_reads_a_whole_reply_and_ends_it_with_its_session(version: str) -> None:
    async def read_by_all(url: str, uri: str, workers: set[int]) -> set[bool]:
        """Read in new connections, until each worker has had one."""
        read: set[bool] = set()
        seen: set[int] = set()
        while seen != workers:
            async with connect(url) as server:
                seen.add((await server.call("pid")).data)
                read.add((await server.read(uri)).ok)
        return read

    async def run(url: str, workers: set[int]) -> list[set[bool]]:
        async with connect(url, version=version) as server:
            uri = whole_of(await server.call("read_rows"))
            during = await read_by_all(url, uri, workers)
        return [during, await read_by_all(url, uri, workers)]

    with serving(KEPT, "--workers", "2") as server:
        found = asyncio.run(run(f"{server.url}/mcp", workers_of(server)))

    assert found == [{True}, {version == "2026-07-28"}]
