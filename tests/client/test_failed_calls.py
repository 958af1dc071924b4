"""A call without an answer: its reply says that it may have run, also to a model."""

from __future__ import annotations

import asyncio
from typing import Any

from tests.client.canned_server import command
from tests.client.conftest import SERVED
from tests.conftest import load_app, serving

from answerback import Reply, connect
from answerback.models import to_openai

HINT = "it may have taken effect; check before you repeat it"


def late_reply(target: Any, **options: Any) -> Reply[Any]:
    async def run() -> Reply[Any]:
        async with connect(target, **options) as server:
            late: Reply[Any] = await server.options(timeout=0.2).call("wait", seconds=2)
            return late

    return asyncio.run(run())


def test_a_call_that_is_late_says_that_it_may_have_run_and_names_its_tool(version: str) -> None:
    reply = late_reply(load_app(SERVED), version=version)

    assert reply.error is not None
    assert reply.error.details["may_have_run"] is True
    assert reply.error.hint == HINT
    assert reply.for_model().endswith(f"\nHint: {HINT}")
    assert "'wait'" in reply.for_model()
    assert "tools/call" not in reply.for_model()


def test_a_late_call_over_rest_says_that_it_may_have_run() -> None:
    with serving(SERVED) as server:
        reply = late_reply(server.url, transport="rest")

    assert reply.error is not None
    assert (reply.error.code, reply.error.hint) == ("TIMED_OUT", HINT)
    assert "'wait'" in reply.error.message


def test_a_call_whose_server_ends_says_that_it_may_have_run() -> None:
    with connect(command()) as server:
        reply = server.call("act")

    text = to_openai([]).message("1", reply)["content"]
    assert text.endswith(f"\nHint: {HINT}")


def test_a_call_that_did_not_run_or_changes_nothing_has_no_such_hint() -> None:
    tool = {"name": "act", "annotations": {"readOnlyHint": True}}

    async def run() -> list[Reply[Any]]:
        async with connect(command([tool])) as server:
            await server.tools()
            found = [await server.call("act"), await server.read("note://x")]
        return [*found, await server.call("other")]

    replies = asyncio.run(run())

    assert [reply.ok for reply in replies] == [False] * 3
    assert HINT not in "".join(reply.for_model() for reply in replies)
