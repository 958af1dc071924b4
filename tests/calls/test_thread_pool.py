"""The thread pool of `def` tools: limits, exceptions, cancellation, and forked processes."""

from __future__ import annotations

import asyncio
import os
import subprocess
import sys
import threading
import weakref
from collections.abc import Callable
from contextvars import ContextVar
from pathlib import Path
from queue import SimpleQueue
from typing import Any

import pytest

from answerback import App, Limits
from answerback.calls.thread_pool import ThreadPool
from answerback.core.peer import NeedsInput, Question

BOUND = 60.0

user: ContextVar[str] = ContextVar("user", default="nobody")


def bounded(waited: Any) -> Any:
    return asyncio.run(asyncio.wait_for(waited, BOUND))


async def run_in(pool: ThreadPool, function: Callable[..., Any], **kwargs: Any) -> Any:
    return await pool.run(function, kwargs, asyncio.get_running_loop())


def raise_exception(exc: BaseException) -> None:
    raise exc


def test_a_hundred_blocking_calls_on_forty_threads_are_all_answered() -> None:
    app = App("blocking", limits=Limits(threads=40))
    meet = threading.Barrier(20)

    @app.tool
    def wait(n: int) -> int:
        """Return once twenty calls wait, which takes twenty threads."""
        meet.wait(BOUND)
        return n

    async def call_all() -> Any:
        return await asyncio.gather(*(app.call("wait", n=n) for n in range(100)))

    replies = bounded(call_all())

    assert [reply.data for reply in replies] == list(range(100))


def test_each_call_has_a_thread_of_its_own_up_to_the_limit() -> None:
    """Each call waits for the next one, so with one thread less none would return."""
    pool = ThreadPool(8)
    turns = [threading.Event() for _ in range(9)]
    turns[8].set()

    def wait_for_next(n: int) -> bool:
        done = turns[n + 1].wait(BOUND)
        turns[n].set()
        return done

    async def chain() -> Any:
        return await asyncio.gather(*(run_in(pool, wait_for_next, n=n) for n in range(8)))

    for _ in range(50):
        for turn in turns[:8]:
            turn.clear()
        assert bounded(chain()) == [True] * 8


def test_a_thread_that_has_just_taken_a_job_does_not_count_as_free() -> None:
    """Otherwise the next job would wait until that thread has finished."""
    pool = ThreadPool(2)
    taken, go_on = threading.Event(), threading.Event()

    class SlowToTakeTheFirst(SimpleQueue[Any]):
        def get(self, block: bool = True, timeout: float | None = None) -> Any:
            job = super().get(block, timeout)
            if not taken.is_set():
                taken.set()
                go_on.wait(2 * BOUND)
            return job

    pool._jobs = SlowToTakeTheFirst()

    async def call_two() -> int:
        first = pool.run(lambda: 1, {}, asyncio.get_running_loop())
        assert await asyncio.to_thread(taken.wait, BOUND)
        second: int = await pool.run(lambda: 2, {}, asyncio.get_running_loop())
        go_on.set()
        await first
        return second

    assert bounded(call_two()) == 2


def test_no_more_threads_run_than_were_allowed() -> None:
    pool = ThreadPool(3)
    names: set[str] = set()

    def note() -> None:
        names.add(threading.current_thread().name)

    async def many() -> None:
        await asyncio.gather(*(run_in(pool, note) for _ in range(200)))

    bounded(many())

    assert 1 <= len(names) <= 3


def test_a_free_thread_is_reused() -> None:
    pool = ThreadPool(40)
    names: set[str] = set()

    async def one_by_one() -> None:
        for _ in range(20):
            await run_in(pool, lambda: names.add(threading.current_thread().name))

    bounded(one_by_one())

    # The count of unfinished calls is decremented just before the result is posted, so a second
    # thread may be started.
    assert len(names) <= 2


def test_context_variables_reach_the_thread_and_do_not_come_back() -> None:
    pool = ThreadPool(2)

    def rename() -> str:
        before = user.get()
        user.set("the thread")
        return before

    async def call() -> tuple[str, str, str]:
        user.set("ada")
        return await run_in(pool, rename), await run_in(pool, rename), user.get()

    assert bounded(call()) == ("ada", "ada", "ada")


@pytest.mark.parametrize("exc", [ValueError("no"), SystemExit(3), NeedsInput({})])
def test_an_exception_is_raised_where_the_call_is_awaited(exc: BaseException) -> None:
    with pytest.raises(type(exc)) as caught:
        bounded(run_in(ThreadPool(1), raise_exception, exc=exc))

    assert caught.value is exc


@pytest.mark.parametrize(
    "exc", [StopIteration(1), KeyboardInterrupt(), GeneratorExit(), asyncio.CancelledError()]
)
def test_an_exception_that_would_end_the_loop_becomes_a_runtime_error(exc: BaseException) -> None:
    with pytest.raises(RuntimeError) as caught:
        bounded(run_in(ThreadPool(1), raise_exception, exc=exc))

    assert caught.value.__cause__ is exc


@pytest.mark.parametrize(
    "exc",
    [
        StopIteration(),
        KeyboardInterrupt(),
        SystemExit(1),
        GeneratorExit(),
        asyncio.CancelledError(),
    ],
)
def test_a_tool_that_raises_a_base_exception_fails_and_the_next_call_is_served(
    exc: BaseException,
) -> None:
    app = App("odd")
    app.add_tool(lambda: raise_exception(exc), name="odd")
    app.add_tool(lambda: 7, name="even")

    async def both() -> tuple[Any, Any]:
        return await app.call("odd"), await app.call("even")

    odd, even = bounded(both())

    assert odd.error.code == "TOOL_EXECUTION_ERROR"
    assert even.data == 7


def test_a_question_raised_in_a_thread_reaches_the_caller() -> None:
    question = Question("elicitation/create", {"message": "Sure?"})

    with pytest.raises(NeedsInput) as caught:
        bounded(run_in(ThreadPool(1), raise_exception, exc=NeedsInput({"sure": question})))

    assert caught.value.questions == {"sure": question}


def test_a_pool_whose_threads_are_all_held_while_calls_wait_is_not_ready() -> None:
    pool = ThreadPool(1)
    pool.held_seconds = 0.0
    running, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        running.set()
        go_on.wait(BOUND)

    async def look() -> list[Any]:
        first = asyncio.ensure_future(run_in(pool, hold))
        assert await asyncio.to_thread(running.wait, BOUND)
        found = [pool.check()]
        second = asyncio.ensure_future(run_in(pool, lambda: 2))
        for _ in range(3):  # The call is on its way to the threads.
            await asyncio.sleep(0)
        found.append(pool.check())
        go_on.set()
        await asyncio.gather(first, second)
        return [*found, pool.check()]

    one_runs, one_waits, none_runs = bounded(look())

    assert one_runs.ready
    assert not one_waits.ready
    assert one_waits.details == {"limit": 1, "lost": 0, "waiting": 1}
    assert none_runs.ready


def test_a_pool_whose_threads_were_held_for_a_moment_is_ready() -> None:
    pool = ThreadPool(1)
    running, go_on = threading.Event(), threading.Event()

    def hold() -> None:
        running.set()
        go_on.wait(BOUND)

    async def look() -> Any:
        first = asyncio.ensure_future(run_in(pool, hold))
        assert await asyncio.to_thread(running.wait, BOUND)
        second = asyncio.ensure_future(run_in(pool, lambda: 2))
        for _ in range(3):  # The call is on its way to the threads.
            await asyncio.sleep(0)
        found = pool.check()
        go_on.set()
        await asyncio.gather(first, second)
        return found

    assert bounded(look()).ready


def test_a_call_cancelled_while_it_runs_frees_its_thread() -> None:
    pool = ThreadPool(1)
    running, go_on = threading.Event(), threading.Event()

    def wait() -> None:
        running.set()
        go_on.wait(BOUND)

    async def cancel_one() -> Any:
        first = asyncio.ensure_future(run_in(pool, wait))
        assert await asyncio.to_thread(running.wait, BOUND)
        first.cancel()
        with pytest.raises(asyncio.CancelledError):
            await first
        second = asyncio.ensure_future(run_in(pool, lambda: 2))
        go_on.set()
        return await second

    assert bounded(cancel_one()) == 2


def test_a_call_cancelled_while_it_waits_for_a_thread_never_runs() -> None:
    pool = ThreadPool(1)
    running, go_on = threading.Event(), threading.Event()
    seen: list[str] = []

    def wait() -> None:
        running.set()
        go_on.wait(BOUND)

    async def cancel_the_second() -> None:
        first = asyncio.ensure_future(run_in(pool, wait))
        assert await asyncio.to_thread(running.wait, BOUND)
        second = asyncio.ensure_future(run_in(pool, lambda: seen.append("second")))
        await asyncio.sleep(0)
        second.cancel()
        go_on.set()
        await first
        await run_in(pool, lambda: seen.append("third"))

    bounded(cancel_the_second())

    assert seen == ["third"]


def test_one_app_serves_one_loop_after_another() -> None:
    app = App("again")
    app.add_tool(lambda: 1, name="one")

    found = [bounded(app.call("one")).data for _ in range(5)]

    assert found == [1] * 5


def test_one_pool_serves_several_loops_at_the_same_time() -> None:
    pool = ThreadPool(4)
    totals: list[int] = []

    async def call_many(of: int) -> int:
        found = await asyncio.gather(*(run_in(pool, lambda: of) for _ in range(200)))
        return sum(found)

    loops = [
        threading.Thread(target=lambda of=of: totals.append(bounded(call_many(of))))
        for of in (1, 10, 100)
    ]
    for thread in loops:
        thread.start()
    for thread in loops:
        thread.join(BOUND)

    assert sorted(totals) == [200, 2000, 20000]


def test_the_pool_still_works_after_a_call_outlived_its_loop() -> None:
    pool = ThreadPool(1)
    go_on = threading.Event()

    def wait() -> None:
        go_on.wait(BOUND)

    async def give_up() -> None:
        pool.run(wait, {}, asyncio.get_running_loop())

    bounded(give_up())
    go_on.set()

    assert bounded(run_in(pool, lambda: 3)) == 3


def test_an_idle_thread_keeps_no_reference_to_the_last_call() -> None:
    pool = ThreadPool(1)

    class Big:
        pass

    async def call() -> weakref.ref[Big]:
        big = Big()
        await run_in(pool, lambda big: big, big=big)
        return weakref.ref(big)

    async def wait_until_freed() -> bool:
        reference = await call()
        # The thread drops its references just after it has posted the result.
        while reference() is not None:
            await asyncio.sleep(0.001)
        return True

    assert bounded(wait_until_freed())


def test_a_call_fails_if_no_thread_can_be_started_and_a_later_one_is_served(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    pool = ThreadPool(2)

    def no_more(_: threading.Thread) -> None:
        raise RuntimeError("can't start new thread")

    with monkeypatch.context() as patched:
        patched.setattr(threading.Thread, "start", no_more)
        with pytest.raises(RuntimeError, match="thread"):
            bounded(run_in(pool, lambda: 1))

    assert bounded(run_in(pool, lambda: 2)) == 2


def test_a_tool_that_never_returns_blocks_neither_the_loop_nor_the_exit(tmp_path: Path) -> None:
    program = tmp_path / "stuck.py"
    program.write_text(
        "import asyncio, threading\n"
        "from answerback import App\n"
        "app = App('stuck')\n"
        "app.add_tool(lambda: threading.Event().wait(), name='stuck')\n"
        "app.add_tool(lambda: 5, name='quick')\n"
        "async def main():\n"
        "    stuck = asyncio.ensure_future(app.call('stuck'))\n"
        "    print((await app.call('quick')).data)\n"
        "asyncio.run(main())\n"
    )

    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=60
    )

    assert (done.returncode, done.stdout) == (0, "5\n")


@pytest.mark.skipif(not hasattr(os, "fork"), reason="needs fork")
def test_a_forked_child_runs_def_tools_even_if_the_parent_ran_one(tmp_path: Path) -> None:
    program = tmp_path / "forking.py"
    program.write_text(
        "import asyncio, os\n"
        "from answerback import App, Limits\n"
        "app = App('forking', limits=Limits(threads=1))\n"
        "app.add_tool(lambda: os.getpid(), name='pid')\n"
        "def call():\n"
        "    return asyncio.run(asyncio.wait_for(app.call('pid'), 60)).data\n"
        "assert call() == os.getpid()\n"
        "child = os.fork()\n"
        "answered = call() == os.getpid()\n"
        "if not child:\n"
        "    os._exit(0 if answered else 1)\n"
        "print(answered, os.waitpid(child, 0)[1])\n"
    )

    done = subprocess.run(
        [sys.executable, str(program)], capture_output=True, text=True, timeout=60
    )

    assert done.stdout == "True 0\n", done.stderr


NESTED = """
import asyncio, threading
from answerback import App, Limits

app = App("nested", limits=Limits(threads=2))
together = threading.Barrier(2)
running = []

@app.tool
def down(depth: int) -> int:
    if depth == 0:
        return 0
    return 1 + asyncio.run(app.call("down", depth=depth - 1)).data

@app.tool
def fan_out() -> int:
    async def calls():
        return await asyncio.gather(*(app.call("down", depth=2) for _ in range(5)))
    return sum(reply.data for reply in asyncio.run(calls()))

@app.tool
def count() -> int:
    running.append(1)
    together.wait(60)
    found = len(running)
    together.wait(60)
    running.pop()
    return found

async def main():
    deep = await asyncio.gather(*(app.call("down", depth=6) for _ in range(4)))
    wide = await asyncio.gather(*(app.call("fan_out") for _ in range(3)))
    counts = await asyncio.gather(*(app.call("count") for _ in range(20)))
    print([reply.data for reply in deep], [reply.data for reply in wide])
    print(max(reply.data for reply in counts))

asyncio.run(main())
"""


def test_calls_within_calls_do_not_wait_for_one_another_for_ever() -> None:
    done = subprocess.run(
        [sys.executable, "-c", NESTED], capture_output=True, text=True, timeout=BOUND
    )

    assert done.stdout == "[6, 6, 6, 6] [10, 10, 10]\n2\n"
