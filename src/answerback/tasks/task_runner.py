"""One worker's tasks: TaskRunner runs the claimed ones on an event loop, each in a slot.

TaskWatch renews the claims in a thread, and finds the tasks of workers that have died.
"""

from __future__ import annotations

import asyncio
import os
import secrets
import socket
import threading
from collections.abc import Callable, Collection, Mapping
from contextlib import suppress
from functools import lru_cache, partial
from itertools import count
from time import monotonic
from typing import Any

from ..calls.call import Call, reply_or_refusal
from ..calls.failures import log_internal_error
from ..calls.loop_thread import LoopThread
from ..calls.runtime import Runtime, runtime_for_tasks
from ..core.authentication import User
from ..core.event_loop import OffLoop, call_in_place
from ..core.json_value import Json
from ..core.peer import NO_PEER, Abilities, Log, Peer, Progress, Question, find_answer
from ..core.reply import Reply, failure
from ..errors import ToolError, Unavailable, Uncertain
from .task_record import OpenQuestion, TaskRecord, dump_reply
from .task_store import Change, Claim, TaskChanges, TaskStore
from .transitions import asked, finished, given_up, refused, released, reported

LEASE = 30.0
"""How many seconds a claim lasts; its worker renews it three times in that time."""
_FIRST_RETRY, _LAST_RETRY = 0.1, 5.0
"""How many seconds to wait before trying to write a result again."""


class Slots:
    """Counts how many more tasks this worker may run. Thread-safe."""

    def __init__(self, count: int) -> None:
        self._free = count
        self._lock = threading.Lock()

    def take(self, count: int) -> int:
        """Take up to *count* slots; return how many were taken."""
        with self._lock:
            taken = max(min(count, self._free), 0)
            self._free -= taken
            return taken

    def free(self, count: int) -> None:
        with self._lock:
            self._free += count

    def close(self) -> None:
        """Give out no more slots."""
        with self._lock:
            self._free = -1_000_000


class TaskRun:
    """A task that this worker has claimed."""

    def __init__(
        self,
        task: TaskRecord,
        loop: asyncio.AbstractEventLoop,
        report: Callable[[TaskRecord, str], None],
    ) -> None:
        self.task = task
        self.claim: dict[str, Any] = {"worker": task.worker, "fence": task.fence}
        """Proves to the store that this worker may change the task."""
        self.loop = loop
        self.peer = TaskPeer(task, partial(report, task))
        self.message: str | None = None
        """The latest progress, until it is written."""
        self.running: asyncio.Task[None] | None = None

    def cancel(self) -> None:
        """End the run, from any thread; a plain function keeps running in its own thread."""
        if not self.peer.cancelled:
            self.peer.cancel()
            if not self.loop.is_closed():
                self.loop.call_soon_threadsafe(self._cancel)

    def _cancel(self) -> None:
        if self.running is not None:
            self.running.cancel()


class TaskRunner:
    """Thread-safe, except for methods that need an event loop."""

    def __init__(
        self,
        runtime: Runtime,
        store: TaskStore,
        on_change: Callable[[str], None],
    ) -> None:
        self._wire_runtime = runtime
        self._store = store
        self._limits = limits = runtime.registry.limits.tasks
        self._worker = new_worker_name()
        self._claims = count(1)
        self._pending_undos: dict[Callable[[], object], float | None] = {}
        """Functions that undo writes once the store responds; each is repeated until this time."""
        self.keyed: set[str] = set()
        """The names that hold the claims of keyed calls."""
        self._on_change = on_change
        self.watch: TaskWatch | None = None
        """Follows other processes' changes; None if the store has none."""
        self.runs: dict[str, TaskRun] = {}
        """This worker's claimed tasks, by id."""
        self._size = limits.slots if runtime.task_slots is None else runtime.task_slots
        self.slots = Slots(self._size)
        self._filling = threading.Lock()
        self.off_loop: OffLoop = runtime.off_loop if store.blocks else call_in_place
        """Calls a function that uses the store."""
        self._loop: asyncio.AbstractEventLoop | None = None
        self._runtime = runtime_for_tasks(runtime, max(self._size, 1))

    def use_loop(self) -> None:
        """Run tasks on the current event loop, if there is one."""
        loop = asyncio._get_running_loop()
        if loop is not None:
            self._loop = loop

    def watch_closely(self) -> None:
        """Poll more often for other processes' changes: a task started, or a client is waiting."""
        if self.watch is not None:
            self.watch.wake()

    def new_name(self) -> str:
        """Return the name for one claim, which the watch renews while the task is running here."""
        return f"{self._worker}.{next(self._claims)}"

    @property
    def names(self) -> set[str]:
        """The names that hold this worker's claims."""
        return self.keyed | {run.task.worker for run in tuple(self.runs.values())}

    def undo_later(self, undo: Callable[[], object]) -> None:
        """Call *undo* once the store responds, such as after a write that may have taken effect."""
        self._pending_undos[undo] = None

    def run_pending_undos(self) -> None:
        """Undo the writes that may have taken effect; may block.

        This is repeated for a while, because a stalled store may still carry out such a write.
        """
        for undo, ends in tuple(self._pending_undos.items()):
            undo()
            if ends is None:
                self._pending_undos[undo] = monotonic() + LEASE / 3
            elif monotonic() > ends:
                del self._pending_undos[undo]

    def release(self, id: str, claim: dict[str, Any]) -> None:
        """Let another worker claim a task that was claimed here but not started; may block."""
        self._store.change(id, partial(released, **claim))

    def start(self, task: TaskRecord) -> None:
        """Run a claimed task, whose slot is already taken."""
        if self._loop is None or self._loop.is_closed():
            self._loop = LoopThread("answerback-tasks-loop").loop
        loop = self._loop
        run = TaskRun(task, loop, self._report)
        self.runs[task.id] = run
        if asyncio._get_running_loop() is loop:
            self._begin(run)
        else:
            loop.call_soon_threadsafe(self._begin, run)
        self.watch_closely()

    def fill(self) -> None:
        """Claim and start as many waiting tasks as there are free slots; may block."""
        registry = self._wire_runtime.registry
        lifespan = registry.lifespan
        if lifespan is not None and not lifespan.is_started:
            return
        # One thread at a time: a task added while another thread holds all the slots is claimed by
        # the next thread.
        with self._filling:
            count = self.slots.take(self._size)
            if not count:
                return
            name = self.new_name()
            claimed: list[TaskRecord] = []
            try:
                claimed = self._store.claim(name, LEASE, count, registry.tools)
            except Uncertain:
                self.undo_later(partial(self._release_all, name))
                raise
            finally:
                self.slots.free(count - len(claimed))
            for task in claimed:
                self.start(task)

    def _release_all(self, name: str) -> None:
        for claim in self._store.claims({name}):
            self.release(claim.id, {"worker": claim.worker, "fence": claim.fence})

    async def stop(self, seconds: float) -> None:
        """Claim no more tasks, wait for the running ones, then give up the rest."""
        self.slots.close()
        await self.off_loop(self._wait_for_claims)
        running = [run.running for run in self.runs.values() if run.running is not None]
        if running:
            await asyncio.wait(running, timeout=seconds)
        for run in tuple(self.runs.values()):
            give_up: Change = partial(given_up, **run.claim, is_shutdown=True)
            with suppress(Unavailable):
                await self.off_loop(self._store.change, run.task.id, give_up)
            run.cancel()
        self._runtime.close()

    def _wait_for_claims(self) -> None:
        """Wait for a thread that took its slots before they were closed."""
        with self._filling:
            pass

    def write_messages(self) -> None:
        """Write the progress reported since the last write; may block."""
        for run in tuple(self.runs.values()):
            message, run.message = run.message, None
            if message is not None:
                self._write_message(run, message)

    def _begin(self, run: TaskRun) -> None:
        run.running = run.loop.create_task(self._run(run), name=f"task {run.task.tool}")
        if run.peer.cancelled:
            run.running.cancel()

    async def _run(self, run: TaskRun) -> None:
        """Run the function on the event loop, and record its outcome."""
        try:
            change = await self._outcome(run)
            seconds = _FIRST_RETRY
            while True:
                try:
                    changed = await self.off_loop(self._store.change, run.task.id, change)
                    break
                except Unavailable:  # The function has run, so its outcome must be written.
                    await asyncio.sleep(seconds)
                    seconds = min(2 * seconds, _LAST_RETRY)
            if changed is not None:
                self._on_change(changed.id)
        except asyncio.CancelledError:
            # The canceller has recorded it, or the loop is closing and the claim will expire.
            pass
        finally:
            # A task answered in the meantime may already have another run.
            if self.runs.get(run.task.id) is run:
                del self.runs[run.task.id]
            self.slots.free(1)
            with suppress(Unavailable):
                await self.off_loop(self.fill)

    async def _outcome(self, run: TaskRun) -> Change:
        task, peer = run.task, run.peer
        call = Call(
            task.tool,
            task.arguments,
            peer,
            wire=task.wire,
            caller=task.caller,
            user=peer.user,
            stage="run",
            is_counted=True,
        )
        try:
            outcome = await self._runtime.handlers.tools(call)
        except Exception:  # noqa: BLE001 -- our bug ends one task, not the runner
            log_internal_error(f"the task of {task.tool!r}")
            return partial(refused, **run.claim, error=ToolError("Internal error"))
        if call.tool is None:
            message = f"The tool {task.tool!r} is no longer served"
            error = ToolError(message, code="TOOL_NOT_FOUND")
            return partial(refused, **run.claim, error=error)
        questions = (
            None if isinstance(outcome, Reply) else open_questions(outcome.questions, task.can)
        )
        if questions:
            return partial(asked, **run.claim, questions=questions)
        reply = reply_or_refusal(outcome)
        size, largest = len(dump_reply(reply)), self._limits.result_bytes
        if size > largest:
            reply = failure(
                f"The result has {size} bytes, more than {largest}",
                code="TOO_LARGE",
                hint="ask for less, or in parts",
            )
        return partial(finished, **run.claim, reply=reply, shape=call.shape)

    def _report(self, task: TaskRecord, message: str) -> None:
        run = self.runs.get(task.id)
        if run is None or run.task is not task:  # A thread may report after its run has ended.
            return
        if self._store.blocks:
            run.message = message  # `write_messages` will write it soon.
        else:
            self._write_message(run, message)

    def _write_message(self, run: TaskRun, message: str) -> None:
        change = partial(reported, **run.claim, message=message)
        changed = self._store.change(run.task.id, change)
        if changed is not None:
            self._on_change(changed.id)


class TaskPeer(Peer):
    """Reads answers from the task's record; progress becomes the record's message."""

    def __init__(self, task: TaskRecord, report: Callable[[str], None]) -> None:
        super().__init__()
        self.task = task
        self.id = task.id
        self._report = report
        self._questions = 0
        self._user = None if task.user is None else task.user.as_user()

    @property
    def protocol(self) -> str:
        return self.task.protocol

    @property
    def user(self) -> User | None:
        """The user who created the task."""
        return self._user

    def describe_request(self, wire: str) -> None:
        """Return None: the task outlives its request."""

    @property
    def can(self) -> Abilities:
        return self.task.can

    def notify(self, note: Progress | Log) -> None:
        if isinstance(note, Log):
            # The protocol has no log messages for tasks.
            NO_PEER.notify(note)
        elif not self.cancelled:
            # Such as "3 of 10: reading".
            done = f"{note.progress:g}"
            if note.total is not None:
                done += f" of {note.total:g}"
            self._report(f"{done}: {note.message}" if note.message else done)

    async def ask(self, question: Question) -> Json:
        """Return the answer; raises NeedsInput if there is none yet, which ends the run."""
        self._questions += 1
        return find_answer(question, self._questions, self.task.answers)


def open_questions(questions: Mapping[str, Question], can: Abilities) -> dict[str, OpenQuestion]:
    """Return the questions as a task stores them; empty if the client cannot answer one of them."""
    able = {"elicitation": can.elicit, "sampling": can.sample, "roots": can.roots}
    if not all(able[each.capability] for each in questions.values()):
        return {}
    return {key: OpenQuestion(each.method, each.params) for key, each in questions.items()}


_GAP = 0.01
"""The minimum number of seconds between polls, however many notices and wake-ups there are."""
_REPORTS, _RECONCILE = 0.2, 2.0
"""The seconds between writes of progress, and between checks for dead workers."""
_AFTER_FAILURE = 1.0
_JUMP = 5.0
"""The clock drift, in seconds, tolerated between checks for dead workers."""


class TaskWatch:
    """*is_waiting* says whether a client is waiting for a task; *wake* makes it check the task."""

    def __init__(
        self,
        store: TaskStore,
        changes: TaskChanges,
        runner: TaskRunner,
        is_waiting: Callable[[], bool],
        wake: Callable[[str | None], None],
    ) -> None:
        self._store = store
        self._changes = changes
        self._runner = runner
        self._is_waiting = is_waiting
        self._wake = wake
        self._next_step = 0.0
        self._clocks: tuple[float, float] | None = None
        self._leases_count_from = 0.0
        self._every = {
            self._reconcile: _RECONCILE,
            self._renew: LEASE / 3,
            self._runner.write_messages: _REPORTS,
        }
        self._due = dict.fromkeys(self._every, 0.0)
        self._stopped = threading.Event()
        name = "answerback-tasks-watch"
        threading.Thread(target=self._work, name=name, daemon=True).start()

    def stop(self) -> None:
        self._stopped.set()

    def wake(self) -> None:
        """Poll more often from now on: a task is running here, or a client is waiting."""
        self._changes.wake()

    def _work(self) -> None:
        seconds = 0.0
        while not self._stopped.wait(seconds):
            try:
                self._take_steps()
                is_busy = bool(self._runner.runs) or self._is_waiting()
                limit = _REPORTS if is_busy else _RECONCILE
                changed = self._changes.wait(limit, is_urgent=is_busy)
                if changed is None or changed:
                    self._catch_up(changed)
                seconds = _GAP
            except Unavailable:
                seconds = _AFTER_FAILURE  # Already logged.
            except Exception:  # noqa: BLE001 -- this worker's tasks need the watch
                log_internal_error("maintaining tasks")
                seconds = _AFTER_FAILURE

    def _take_steps(self) -> None:
        now = monotonic()
        if not self._runner.runs and now < self._next_step:
            return
        for step, due in self._due.items():
            if now >= due:
                step()
                self._due[step] = now + self._every[step]
        # A worker without tasks has nothing to renew or write.
        self._next_step = self._due[self._reconcile]

    def _catch_up(self, changed: Collection[str] | None) -> None:
        """Act on another process's changes, such as a cancelled task or one waiting for a worker.

        None means that any task may have changed.
        """
        # Read before querying the store, because tasks claimed later are not in the result.
        runs = tuple(self._runner.runs.values())
        held = set()
        if runs:
            held = {(claim.id, claim.fence) for claim in self._store.claims(self._runner.names)}
        for run in runs:
            if (run.task.id, run.task.fence) not in held:
                run.cancel()
        self._runner.fill()
        for id in (None,) if changed is None else changed:
            self._wake(id)

    def _renew(self) -> None:
        names = self._runner.names
        if names:
            self._store.renew(names, LEASE)

    def _reconcile(self) -> None:
        if self._store.is_failing:
            self._store.try_to_write()
        self._runner.run_pending_undos()
        self._store.remove_expired()
        now = self._store.now()
        # Give workers time to renew their claims after a clock jump or a store outage, and at
        # startup, because the store may have been unavailable until then.
        ticks = monotonic()
        before, self._clocks = self._clocks, (now, ticks)
        then, ticks_then = before or (now, ticks)
        paused = ticks - ticks_then
        if before is None or abs(now - then - paused) > _JUMP or paused > LEASE / 3:
            self._leases_count_from = ticks + LEASE / 2
            self._renew()
        leases_count = monotonic() >= self._leases_count_from
        own = self._runner.names
        for claim in self._store.claims():
            if claim.worker not in own and is_lost(claim, now if leases_count else 0):
                change = partial(given_up, worker=claim.worker, fence=claim.fence)
                if self._store.change(claim.id, change) is not None:
                    self._wake(claim.id)
        self._runner.fill()


def new_worker_name() -> str:
    """Return a unique worker name that lets other workers see whether this one is alive."""
    return f"{os.getpid()}/{_machine()}/{secrets.token_hex(6)}"


def is_lost(claim: Claim, now: float) -> bool:
    """Return whether the worker is dead, or has stopped renewing its claim."""
    if claim.lease < now:
        return True
    pid, _, rest = claim.worker.partition("/")
    if rest.rpartition("/")[0] != _machine():
        return False  # It is on another machine or in another container, so its lease decides.
    try:
        os.kill(int(pid), 0)
    except ProcessLookupError:
        return True
    except (PermissionError, ValueError, OverflowError):
        pass  # It is alive, or its name is not one of ours.
    return False


@lru_cache(1)
def _machine() -> str:
    """Return an id for this machine and process id namespace; each container has its own.

    The namespace's number is the same on most machines, so the machine's boot id is needed too.
    """
    try:
        with open("/proc/sys/kernel/random/boot_id", encoding="ascii") as file:
            boot = file.read().strip()
        return f"{boot}:{os.readlink('/proc/self/ns/pid').strip('pid:[]')}"
    except OSError:
        return socket.gethostname()
