"""`get_context()`: the Context of the running call, where no parameter has it."""

import asyncio
import threading

import pytest

from answerback import App, Context, connect, get_context
from answerback.testing import TestContext


def note(text: str) -> str:
    """A helper that has no parameter for the context."""
    ctx = get_context()
    ctx.log(text)
    return f"{ctx.tool} over {ctx.wire}"


async def note_later(text: str) -> str:
    await asyncio.to_thread(note, text)
    await asyncio.create_task(asyncio.sleep(0))
    return note(text)


def serving() -> App:
    app = App("helpers")

    @app.tool
    def plain() -> str:
        return note("from a thread")

    @app.tool(inline=True)
    def inline() -> str:
        return note("in place")

    @app.tool
    async def later() -> str:
        return await note_later("on the loop")

    @app.tool
    async def outer() -> list[str]:
        inner = await app.call("plain")
        assert isinstance(inner.data, str)
        return [inner.data, note("outer")]

    @app.resource("notes://all")
    def notes() -> str:
        return note("resource")

    @app.prompt
    def ask() -> str:
        return note("prompt")

    return app


@pytest.mark.parametrize("name", ["plain", "inline", "later"])
def test_a_helper_of_a_tool_gets_the_context_of_its_call(name: str) -> None:
    app, ctx = serving(), TestContext()

    reply = asyncio.run(app.call(name, ctx=ctx))

    assert reply.data == f"{name} over memory"
    assert ctx.logs


def test_a_tool_that_another_one_calls_has_a_context_of_its_own() -> None:
    reply = asyncio.run(serving().call("outer"))

    assert reply.data == ["plain over memory", "outer over memory"]


def test_a_helper_of_a_resource_or_a_prompt_gets_the_context() -> None:
    async def read() -> tuple[object, object]:
        async with connect(serving()) as server:
            filled = await server.prompt("ask")
            return (await server.read("notes://all")).content, filled.messages

    content, messages = asyncio.run(read())

    assert "notes://all over mcp" in str(content)
    assert "ask over mcp" in str(messages)


def test_calls_at_the_same_time_have_their_own_contexts() -> None:
    app = App("crowd")
    met = asyncio.Barrier(3)

    @app.tool
    async def meet(name: str, ctx: Context) -> bool:
        await met.wait()
        return get_context().cancelled is ctx.cancelled and get_context()._call is ctx._call

    async def call_all() -> list[object]:
        replies = await asyncio.gather(*(app.call("meet", name=name) for name in "abc"))
        return [reply.data for reply in replies]

    assert asyncio.run(call_all()) == [True, True, True]


def test_outside_of_a_call_an_error_says_where_it_can_be_used() -> None:
    with pytest.raises(
        RuntimeError, match="needs a running call; call it in a tool, resource or prompt"
    ):
        get_context()


def test_a_thread_of_the_author_s_own_does_not_know_the_call() -> None:
    app = App("threads")
    raised: list[str] = []

    def work() -> None:
        try:
            get_context()
        except RuntimeError as exc:
            raised.append(str(exc))

    @app.tool
    def start() -> None:
        thread = threading.Thread(target=work)
        thread.start()
        thread.join()

    assert asyncio.run(app.call("start")).ok
    assert "start it with contextvars.copy_context().run, or with asyncio.to_thread" in raised[0]


def test_log_and_progress_work_with_and_without_await() -> None:
    app, ctx = App("talk"), TestContext()

    @app.tool
    async def talk(ctx: Context) -> None:
        ctx.log("one")
        await ctx.log("two")
        ctx.progress(1, 2)
        await ctx.progress(2, 2)

    reply = asyncio.run(app.call("talk", ctx=ctx))

    assert reply.ok
    assert [each.data for each in ctx.logs] == ["one", "two"]
    assert len(ctx.progress_reports) == 2
