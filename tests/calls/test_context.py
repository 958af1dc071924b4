"""Context: progress, logging, cancellation and questions of a running tool."""

import asyncio
import logging
import threading
from typing import Any

import pytest
from tests.serving import handlers_of, runtime_of

from answerback import App, Context, Reply
from answerback.calls.call import Call, reply_or_refusal
from answerback.core.peer import LEVELS, Abilities, Level, Log, Peer, Progress, Question
from answerback.server.memory import call


class RecordingPeer(Peer):
    """A peer that records notifications and questions, and gives the answers in turn."""

    can = Abilities(elicit=True)

    def __init__(self, *answers: Any) -> None:
        super().__init__()
        self.notifications: list[Progress | Log] = []
        self.questions: list[Question] = []
        self._answers = list(answers)

    def notify(self, note: Progress | Log) -> None:
        self.notifications.append(note)

    async def ask(self, question: Question) -> Any:
        self.questions.append(question)
        return self._answers.pop(0)


def report(ctx: Context) -> None:
    ctx.progress(1)
    ctx.progress(2, 4, "half way")
    ctx.log("words")
    ctx.log({"n": 1}, "warning", logger="mine")


async def report_async(ctx: Context) -> None:
    report(ctx)


@pytest.mark.parametrize("fn", [report, report_async])
def test_progress_and_log_of_sync_and_async_tools_reach_the_peer(fn: Any) -> None:
    app = App("test")
    app.add_tool(fn, name="report")
    peer = RecordingPeer()

    asyncio.run(call(runtime_of(app), "report", b"{}", peer))

    assert peer.notifications == [
        Progress(1),
        Progress(2, 4, "half way"),
        Log("info", "words", "report"),
        Log("warning", {"n": 1}, "mine"),
    ]


def test_the_context_has_the_tool_name_the_wire_and_the_abilities_of_the_peer() -> None:
    def who(ctx: Context) -> list[Any]:
        return [ctx.tool, ctx.wire, ctx.cancelled, ctx.can.elicit]

    app = App("test")
    app.add_tool(who)

    assert asyncio.run(app.call("who")).data == ["who", "memory", False, False]
    assert asyncio.run(call(runtime_of(app), "who", b"{}", RecordingPeer())).data == [
        "who",
        "memory",
        False,
        True,
    ]


def test_a_tool_in_a_thread_sees_that_its_call_was_cancelled() -> None:
    started, seen = threading.Event(), threading.Event()

    def work(ctx: Context) -> bool:
        started.set()
        seen.wait(60)
        return ctx.cancelled

    app = App("test")
    app.add_tool(work)
    invocation = Call("work")

    async def run() -> Reply[Any]:
        task = asyncio.create_task(handlers_of(app).tools(invocation))
        await asyncio.to_thread(started.wait, 60)
        invocation.cancelled = True
        seen.set()
        return reply_or_refusal(await task)

    assert asyncio.run(run()).data is True


def test_without_a_peer_progress_is_dropped_and_log_messages_go_to_logging(
    caplog: pytest.LogCaptureFixture,
) -> None:
    caplog.set_level(logging.INFO, "answerback.tools")
    app = App("test")
    app.add_tool(report)

    reply = asyncio.run(app.call("report"))

    assert reply.ok
    assert [(each.levelname, each.message) for each in caplog.records] == [
        ("INFO", "words"),
        ("WARNING", "{'n': 1}"),
    ]


@pytest.mark.parametrize("level", LEVELS)
def test_every_log_level_is_mapped_to_a_level_of_logging(
    level: Level, caplog: pytest.LogCaptureFixture
) -> None:
    def say(ctx: Context) -> None:
        ctx.log("words", level)

    caplog.set_level(logging.DEBUG, "answerback.tools")
    app = App("test")
    app.add_tool(say)

    assert asyncio.run(app.call("say")).ok
    assert (
        caplog.records[0].levelno
        == {
            "debug": logging.DEBUG,
            "info": logging.INFO,
            "notice": logging.INFO,
            "warning": logging.WARNING,
            "error": logging.ERROR,
            "critical": logging.CRITICAL,
            "alert": logging.ERROR,
            "emergency": logging.ERROR,
        }[level]
    )


async def ask_age(ctx: Context) -> int:
    return await ctx.elicit("How old are you?", int)


def test_an_answer_to_a_question_has_the_declared_type() -> None:
    app = App("test")
    app.add_tool(ask_age)
    peer = RecordingPeer({"action": "accept", "content": {"value": 7}})

    reply = asyncio.run(call(runtime_of(app), "ask_age", b"{}", peer))

    assert reply.data == 7
    assert peer.questions[0].message == "How old are you?"


@pytest.mark.parametrize("action", ["decline", "cancel"])
def test_a_declined_question_is_a_conflict(action: str) -> None:
    app = App("test")
    app.add_tool(ask_age)

    reply = asyncio.run(call(runtime_of(app), "ask_age", b"{}", RecordingPeer({"action": action})))

    assert reply.error is not None
    assert (reply.error.code, reply.error.row.status) == ("INPUT_DECLINED", 409)


def test_a_question_without_a_peer_is_an_error_with_the_question() -> None:
    app = App("test")
    app.add_tool(ask_age)

    reply = asyncio.run(app.call("ask_age"))

    assert reply.error is not None
    expected = (
        "This call needs something the client does not offer: elicitation. "
        "It asks: How old are you?"
    )
    assert (reply.error.code, reply.error.message) == ("INPUT_REQUIRED", expected)


async def sample_poem(ctx: Context) -> str:
    return (await ctx.sample("Write a poem", system="briefly")).text


async def count_roots(ctx: Context) -> int:
    return len(await ctx.roots())


@pytest.mark.parametrize(
    ("tool", "message", "hint"),
    [
        (sample_poem, "sampling. It asks: Write a poem", "it asks a language model"),
        (count_roots, "roots", "it asks for the directories"),
    ],
)
def test_a_client_that_cannot_be_asked_reads_why_the_call_failed(
    tool: Any, message: str, hint: str
) -> None:
    app = App("test")
    app.add_tool(tool, name="tool")

    error = asyncio.run(app.call("tool")).error

    assert error is not None
    assert error.message == f"This call needs something the client does not offer: {message}"
    assert error.hint is not None
    assert error.hint.startswith(hint)
