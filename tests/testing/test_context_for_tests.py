"""TestContext and a client that is bound to an app, as authors use them in their tests."""

import asyncio
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from answerback import App, Ask, Context, Declined, Depends
from answerback.testing import DisplayClient, TestContext


@dataclass
class Trip:
    city: str
    days: int


app = App("trips", contract="envelope")


@app.tool
async def plan(city: str, ctx: Context) -> str:
    ctx.progress(1, 2, "looking")
    ctx.log({"city": city}, "warning")
    trip = await ctx.elicit("How long?", Trip)
    sure = await ctx.elicit("Sure?", bool)
    poem = await ctx.sample("Write a poem")
    roots = await ctx.roots()
    return f"{trip.city} {trip.days} {sure} {poem.text} {roots[0].uri}"


@app.tool
def confirm(sure: Annotated[bool, Ask("Sure?")]) -> bool:
    return sure


@app.tool
def wait(ctx: Context) -> bool:
    return ctx.cancelled


@app.tool
def point() -> dict[str, int]:
    return {"x": 1}


ANSWERS: list[Any] = [Trip("Oslo", 3), True, "Roses are red", ["file:///home"]]


def test_the_function_itself_can_be_called_with_a_context_for_tests() -> None:
    ctx = TestContext(ANSWERS)

    result = asyncio.run(plan(city="Oslo", ctx=ctx))

    assert result == "Oslo 3 True Roses are red file:///home"
    assert ctx.progress_reports == [(1, 2, "looking")]
    assert ctx.logs == [("warning", {"city": "Oslo"})]
    assert ctx.questions == ["How long?", "Sure?", "Write a poem", "roots/list"]
    assert ctx.answers_left == 0


def test_a_call_through_the_app_takes_a_context_for_tests() -> None:
    ctx = TestContext([{"city": "Oslo", "days": 3}, *ANSWERS[1:]])

    reply = asyncio.run(app.call("plan", city="Oslo", ctx=ctx))

    assert reply.data == "Oslo 3 True Roses are red file:///home"
    assert ctx.progress_reports[0].message == "looking"
    assert ctx.questions[0] == "How long?"


def test_questions_before_the_run_are_answered_too() -> None:
    ctx = TestContext([True])

    reply = asyncio.run(app.call("confirm", ctx=ctx))

    assert reply.data is True
    assert ctx.questions == ["Sure?"]


def test_a_user_can_decline() -> None:
    with pytest.raises(Declined):
        asyncio.run(plan(city="Oslo", ctx=TestContext([Declined])))


def test_a_question_without_an_answer_fails_the_test_with_its_text() -> None:
    with pytest.raises(AssertionError, match=r"no answer to 'How long\?'"):
        asyncio.run(plan(city="Oslo", ctx=TestContext()))


def test_a_context_for_tests_can_be_cancelled() -> None:
    ctx = TestContext()
    ctx.cancel()

    assert wait(ctx) is True
    assert ctx.tool == "test"


def test_a_context_for_tests_has_the_state_the_user_and_the_headers_that_it_is_given() -> None:
    def who(ctx: Context[dict[str, str]]) -> str:
        assert ctx.request.headers is not None
        return f"{ctx.user} {ctx.state['role']} {ctx.request.headers['X-Team']}"

    ctx = TestContext(state={"role": "admin"}, user="ann", headers={"x-team": "blue"})

    assert who(ctx) == "ann admin blue"
    assert TestContext().state is TestContext().user is TestContext().request.headers is None


def test_a_tool_can_pass_its_context_to_another_tool() -> None:
    outer = App("outer")

    @outer.tool
    def step(ctx: Context) -> None:
        ctx.progress(1)

    @outer.tool
    async def all_steps(ctx: Context) -> None:
        await outer.call("step", ctx=ctx)

    ctx = TestContext()
    asyncio.run(outer.call("all_steps", ctx=ctx))

    assert ctx.progress_reports == [(1, None, None)]


def test_the_fixtures_of_the_plugin_are_a_client_and_a_context(
    answerback_client: DisplayClient, answerback_context: TestContext
) -> None:
    wait(answerback_context)
    answerback_client.process_response({"content": [{"type": "text", "text": "fine"}]})

    assert answerback_context.logs == []
    assert answerback_client.displayed_text == "fine"


def test_a_client_of_an_app_displays_replies_as_the_app_sends_them() -> None:
    client = DisplayClient(app)

    asyncio.run(client.call("point"))
    shown = client.displayed_text
    asyncio.run(client.call("point", y=1))

    assert shown == "X: 1"
    assert client.displayed_error is True
    assert client.error_code == "INVALID_ARGUMENTS"
    assert client.displayed_text.startswith("Error: ")


def test_a_client_without_an_app_cannot_call() -> None:
    with pytest.raises(AssertionError, match=r"write DisplayClient\(app\)"):
        asyncio.run(DisplayClient().call("point"))


def test_a_called_app_sees_the_user_and_the_headers_of_the_test_context() -> None:
    app = App("test")

    def get_tenant(ctx: Context) -> str:
        return "none" if ctx.request.headers is None else ctx.request.headers["x-tenant"]

    @app.tool
    def who(ctx: Context, tenant: Annotated[str, Depends(get_tenant)]) -> str:
        return f"{ctx.user} of {tenant}"

    ctx = TestContext(user="ada", headers={"X-Tenant": "blue"})

    assert asyncio.run(app.call("who", ctx=ctx)).data == "ada of blue"
