"""Calls, lists, questions and notifications: the same over every transport, in both eras."""

from __future__ import annotations

import asyncio
from datetime import date
from typing import Any

import pytest
from tests.client.conftest import STDIO
from tests.loop_clock import advance_clock

from answerback import App, Text, connect
from answerback.client import ElicitationRequest
from answerback.core.peer import Log, Progress


def test_a_call_returns_the_reply_and_its_data(target: Any, version: str) -> None:
    async def run() -> tuple[Any, str]:
        async with connect(target, version=version) as server:
            return await server.call("add", x=1, y=2), server.info.version.name

    reply, spoken = asyncio.run(run())

    assert reply.ok
    assert reply.data == 3
    assert reply.data_from == "structuredContent"
    assert reply.raw["structuredContent"] == {"result": 3}
    assert reply.findings == ()
    assert spoken == version


def test_an_error_of_the_tool_and_an_unknown_tool_are_failed_replies(
    target: Any, version: str
) -> None:
    async def run() -> list[Any]:
        async with connect(target, version=version) as server:
            return [await server.call("missing"), await server.call("nowhere", {"odd name": 1})]

    missing, nowhere = asyncio.run(run())

    assert (missing.error.code, missing.error.details) == ("NOT_FOUND", {"city": "Atlantis"})
    assert nowhere.error.code == "TOOL_NOT_FOUND"


def test_lists_resources_prompts_and_completions_are_read(target: Any, version: str) -> None:
    async def run() -> list[Any]:
        async with connect(target, version=version) as server:
            return [
                [tool.name for tool in await server.tools()][:2],
                [each.uri_template for each in await server.templates()],
                (await server.read("note://a")).content[0],
                (await server.prompt("review", code="x=1")).messages[0].content,
                await server.complete("review", "code", "x"),
            ]

    tools, templates, note, message, completions = asyncio.run(run())

    assert tools == ["add", "missing"]
    assert templates == ["note://{name}"]
    assert note.text == "note a"
    assert message.text == "Review x=1"
    assert completions == []


def test_the_servers_questions_are_answered_by_the_handlers(target: Any, version: str) -> None:
    asked: list[ElicitationRequest] = []

    def elicit(request: ElicitationRequest) -> dict[str, Any]:
        asked.append(request)
        return dict.fromkeys(request.schema["properties"], "Ada")

    async def sample(params: dict[str, Any]) -> str:
        return "a thought"

    async def run() -> list[Any]:
        async with connect(
            target, version=version, elicit=elicit, sample=sample, roots=["file:///tmp"]
        ) as server:
            return [await server.call(name) for name in ("greet", "think", "folders")]

    replies = asyncio.run(run())

    assert [reply.content[0].text for reply in replies] == ["Hello Ada", "a thought", "file:///tmp"]
    assert [request.message for request in asked] == ["Your name?"]


def test_a_question_without_a_handler_is_a_failed_reply(target: Any, version: str) -> None:
    async def run() -> Any:
        async with connect(target, version=version) as server:
            return await server.call("greet")

    assert not asyncio.run(run()).ok


def test_progress_and_log_messages_reach_their_handlers(target: Any, version: str) -> None:
    steps: list[Progress] = []
    logs: list[Log] = []

    async def run() -> Any:
        async with connect(target, version=version, on_log=logs.append) as server:
            return await server.options(progress=steps.append).call("steps")

    reply = asyncio.run(run())

    assert reply.ok
    assert [step.progress for step in steps] == [1, 2]
    assert [log.data for log in logs] == ["a log line"]


def test_a_changed_list_is_told_and_read_again(target: Any, version: str) -> None:
    async def run() -> tuple[int, int]:
        changed = asyncio.Event()
        async with connect(target, version=version, on_change=lambda _: changed.set()) as server:
            before = await server.tools()
            async with asyncio.timeout(60):
                while not changed.is_set():
                    # A subscription over HTTP may still be opening.
                    await server.call("grow")
                    await asyncio.wait([asyncio.ensure_future(changed.wait())], timeout=0.1)
            return len(before), len(await server.tools())

    before, after = asyncio.run(run())

    assert after > before


def test_without_async_the_same_calls_wait(target: Any) -> None:
    steps: list[Progress] = []

    with connect(target) as server:
        replies = [
            server.call("add", x=2, y=3),
            server.options(progress=steps.append).call("steps"),
        ]
        names = [tool.name for tool in server.tools()]

    assert replies[0].data == 5
    assert len(steps) == 2
    assert "greet" in names


def test_a_time_out_is_a_failed_reply_and_the_connection_goes_on(target: Any, version: str) -> None:
    async def run() -> tuple[Any, float, Any]:
        async with connect(target, version=version) as server:
            await server.call("add", x=1, y=1)
            began = asyncio.get_running_loop().time()
            reply = await server.options(timeout=0.5).call("wait", seconds=600)
            took = asyncio.get_running_loop().time() - began
            return reply, took, await server.call("add", x=1, y=1)

    reply, took, after = asyncio.run(run())

    assert (reply.error.code, reply.error.details) == ("TIMED_OUT", {"may_have_run": True})
    assert took >= 0.5
    assert after.ok


def test_time_outs_stop_while_the_user_is_asked(target: Any, version: str) -> None:
    async def elicit(request: ElicitationRequest) -> dict[str, Any]:
        advance_clock(120)
        return dict.fromkeys(request.schema["properties"], "Ada")

    async def run() -> Any:
        async with connect(target, version=version, elicit=elicit) as server:
            return await server.options(timeout=60).call("greet")

    reply = asyncio.run(run())

    assert reply.ok, reply.error


@pytest.mark.parametrize("option", ["timeuot", "on_progress"])
def test_a_misspelt_option_is_refused_at_once(option: str) -> None:
    with pytest.raises(TypeError, match=option):
        connect("python server.py", **{option: 1})  # type: ignore[call-overload] # a mistake


def test_the_form_without_async_also_works_while_an_event_loop_runs() -> None:
    """The calls wait in the thread of the loop, and the connection has a loop of its own."""

    async def run() -> Any:
        with connect(STDIO) as server:
            return server.call("add", x=2, y=3).data

    assert asyncio.run(run()) == 5


def test_values_of_prompts_are_sent_as_text() -> None:
    app = App("desk")

    @app.prompt
    def triage(id: int, due: date, urgent: bool = False, note: str = "none") -> str:
        return f"{id + 1} {due.year} {urgent} {note}"

    async def ask() -> list[object]:
        async with connect(app) as server:
            day = date(2026, 1, 31)
            found = [
                await server.prompt("triage", id=1, due=day, urgent=True, note=None),
                await server.prompt("triage", {"id": 1, "due": "2026-01-31"}, note="7"),
            ]
            return [prompt.messages[0].content for prompt in found]

    assert asyncio.run(ask()) == [
        Text("2 2026 True none"),
        Text("2 2026 False 7"),
    ]
