"""TaskService: creates, finds, answers and cancels tasks, for every wire.

`run_once` stores the reply to a plain call with an idempotency key in the same store.
"""

from __future__ import annotations

import asyncio
from collections import Counter
from collections.abc import Callable, Container, Coroutine, Iterator, Mapping
from contextlib import contextmanager, suppress
from functools import partial
from time import monotonic, time
from typing import Any, TypeVar, cast

import msgspec

from ..calls.call import Call, Handler, Outcome
from ..calls.runners import ON_LOOP
from ..calls.runtime import ADMITTED, Runtime
from ..core.authentication import owner_of
from ..core.event_loop import running_loop
from ..core.peer import NeedsInput
from ..core.reply import Error, Reply, failure
from ..errors import Conflict, ToolError, Unavailable, Uncertain
from ..registry.declarations import HealthState
from .task_record import (
    KEYS,
    TaskRecord,
    checked_key,
    dump_reply,
    fingerprint_of,
    new_id,
    task_user,
)
from .task_runner import LEASE, TaskRunner, TaskWatch
from .task_store import MemoryStore, TaskStore
from .transitions import answered, cancelled, claimed, finished, given_up

T = TypeVar("T")
_MAX_WAITING = 100
"""How many requests may wait for one task at the same time, in one worker."""


def task_service(runtime: Runtime) -> TaskService:
    """Return the task service of *runtime*, created on first use."""
    service = runtime.tasks
    if not isinstance(service, TaskService):
        service = runtime.tasks = TaskService(runtime)
    return service


class TaskService:
    """One runtime's task service. Without an event loop, no method waits."""

    def __init__(self, runtime: Runtime) -> None:
        self.limits = runtime.registry.limits.tasks
        self.store = cast("TaskStore", runtime.task_store or MemoryStore())
        self._runtime = runtime
        self.admit: Handler = runtime.admit
        """Runs a call's gates and checks its arguments; the outcome is ADMITTED or a refusal."""
        self.refuse = runtime.record
        """Records and returns the outcome of a call that does not run."""
        self._waiters: set[Callable[[str | None], None]] = set()
        self._waiting: Counter[str] = Counter()
        """How many requests are waiting for each task."""
        self.runner = TaskRunner(runtime, self.store, self.wake)
        self.runner.use_loop()
        changes = self.store.changes()
        if changes is not None:
            self.runner.watch = TaskWatch(
                self.store, changes, self.runner, lambda: bool(self._waiters), self.wake
            )
            runtime.checks["tasks"] = partial(_health, self.store, self.runner)

    async def create(
        self,
        call: Call,
        *,
        ttl: float | None = None,
        key: str | None = None,
        asks_later: bool = False,
    ) -> TaskRecord | Outcome:
        """Start a call as a task; return a refusal or a question if it may not run.

        *ttl* is how many seconds the client wants the task to be stored. If the idempotency *key*
        is known, its task is returned and nothing runs. With *asks_later*, the task itself asks the
        questions from its `Ask` parameters.
        """
        call.stage = "admit"
        answers = call.kept_answers = {}
        outcome = await self.admit(call)
        if outcome is not ADMITTED and not (asks_later and isinstance(outcome, NeedsInput)):
            return await self.refuse(call, outcome)
        undo_count: Callable[[], None] | None = None
        try:
            task = self.new_task(call, answers, ttl, key)
            if call.tool is not None and call.tool.policy is not None:
                undo_count = await call.tool.policy.count(call)
            stored = await self._shielded(self._start(task))
        except ToolError as exc:
            if undo_count is not None:
                undo_count()
            return await self.refuse(call, Reply(error=Error.of(exc)))
        if stored.id != task.id and undo_count is not None:
            undo_count()
        return stored

    async def get(self, id: str, owner: str) -> TaskRecord | None:
        """Return the task with this id, if it belongs to *owner*."""
        task = await self.runner.off_loop(self.store.get, id)
        return task if task is not None and task.owner == owner else None

    async def page(self, owner: str, after: str | None, count: int) -> list[TaskRecord]:
        """Return the tasks of *owner* in order of creation, after the task with the id *after*.

        Anonymous callers own no tasks; they can only use a task by its id.
        """
        if not owner:
            raise ValueError("tasks without an owner are not listed")
        return await self.runner.off_loop(self.store.page, owner, after, count)

    async def answer(self, id: str, owner: str, answers: Mapping[str, Any]) -> TaskRecord | None:
        """Pass a task the answers to its questions; None if there is no such task.

        Raises ToolError for answers that are too large.
        """
        task = await self.get(id, owner)
        if task is None:
            return None
        size, largest = len(msgspec.json.encode(answers)), self.limits.answer_bytes
        if size > largest:
            raise ToolError(f"The answers have {size} bytes, more than {largest}", code="TOO_LARGE")
        change = partial(answered, answers=answers)
        changed = await self.runner.off_loop(self.store.change, id, change)
        if changed is None:
            return await self.get(id, owner)
        self.wake(id)
        if changed.is_waiting:
            self.runner.use_loop()
            await self._fill()
        return changed

    async def cancel(self, id: str, owner: str) -> TaskRecord | None:
        """Cancel a task unless it has ended, and return it; None if there is no such task."""
        if await self.get(id, owner) is None:
            return None
        return await self._shielded(self._cancel(id)) or await self.get(id, owner)

    async def _cancel(self, id: str) -> TaskRecord | None:
        changed = await self.runner.off_loop(self.store.change, id, cancelled)
        if changed is None:
            return None
        if (run := self.runner.runs.get(id)) is not None:
            run.cancel()
        self.wake(id)
        return changed

    async def wait(
        self, id: str, owner: str, is_done: Callable[[TaskRecord], bool], seconds: float
    ) -> TaskRecord | None:
        """Return the task once it *is_done*, or after *seconds*; None if there is no such task.

        Raises Unavailable if too many requests are already waiting for this task.
        """
        await ON_LOOP
        if self._waiting[id] >= _MAX_WAITING:
            raise Unavailable("Too many requests for this task", retryable=True, retry_after=5)
        self._waiting[id] += 1
        until = monotonic() + seconds
        try:
            with self.changes((id,)) as changed:
                while True:
                    task = await self.get(id, owner)
                    left = until - monotonic()
                    if task is None or is_done(task) or left <= 0:
                        return task
                    with suppress(TimeoutError):
                        async with asyncio.timeout(left):
                            await changed.wait()
                    changed.clear()
        finally:
            self._waiting[id] -= 1
            if not self._waiting[id]:
                del self._waiting[id]

    @contextmanager
    def changes(self, ids: Container[str]) -> Iterator[asyncio.Event]:
        """Yield an event that is set when one of the tasks changes, or may have changed."""
        loop, changed = asyncio.get_running_loop(), asyncio.Event()

        def wake(id: str | None) -> None:
            if (id is None or id in ids) and not loop.is_closed():
                loop.call_soon_threadsafe(changed.set)

        self._waiters.add(wake)
        self.runner.watch_closely()
        try:
            yield changed
        finally:
            self._waiters.discard(wake)

    async def stop(self, seconds: float | None = None) -> None:
        """Start no more tasks, and let the running ones finish within the shutdown time.

        *seconds* overrides the shutdown time. Tasks that do not finish are given up; another worker
        reruns the idempotent ones.
        """
        if self._runtime.tasks is self:
            self._runtime.tasks = None
        if seconds is None:
            seconds = self._runtime.registry.limits.shutdown
        await self.runner.stop(seconds)
        if self.runner.watch is not None:
            self.runner.watch.stop()
        self.store.close()

    async def _start(self, task: TaskRecord) -> TaskRecord:
        """Record the task, then start it; if there is no free slot, it waits in the store."""
        runner = self.runner
        runner.use_loop()
        has_slot = runner.slots.take(1) == 1
        if has_slot:
            taken = claimed(task, task.created, worker=runner.new_name(), lease=LEASE)
            assert taken is not None
            task = taken
        try:
            stored = await runner.off_loop(self.store.add, task, self.limits)
        except BaseException as exc:
            runner.slots.free(int(has_slot))
            if has_slot and isinstance(exc, Uncertain):
                claim = {"worker": task.worker, "fence": task.fence}
                runner.undo_later(partial(runner.release, task.id, claim))
            raise
        if not has_slot:
            # A slot may have become free before the task was in the store.
            await self._fill()
        elif stored.id == task.id:
            runner.start(task)
        else:
            runner.slots.free(1)
        return stored

    async def _shielded(self, steps: Coroutine[Any, Any, T]) -> T:
        """Run to the end even if the client disconnects: a recorded task must be started."""
        # With a non-blocking store, the steps never wait, so nothing can cancel them.
        if not self.store.blocks or running_loop() is None:
            return await steps
        result: T = await asyncio.shield(asyncio.ensure_future(steps))
        return result

    async def _fill(self) -> None:
        """Start waiting tasks; if the store fails, the watch retries."""
        with suppress(Unavailable):
            await self.runner.off_loop(self.runner.fill)

    def new_task(
        self, call: Call, answers: Mapping[str, Any], ttl: float | None, key: str | None
    ) -> TaskRecord:
        """Return the record for an admitted call; raises InvalidInput for an unusable *key*."""
        tool = call.tool
        assert tool is not None
        now = time()
        limits = self.limits
        retention = limits.retention if ttl is None else min(max(ttl, 1.0), limits.max_retention)
        request = (call.request or call.peer).describe_request(call.wire)
        user = call.user if call.user is not None or request is None else request.user
        owner = owner_of(user)
        return TaskRecord(
            id=new_id(),
            tool=call.name,
            arguments=call.arguments,
            owner=owner,
            user=task_user(user),
            fingerprint=fingerprint_of(call.name, call.arguments),
            idempotency_key=checked_key(key),
            wire=call.wire,
            protocol=call.peer.protocol,
            caller=call.caller,
            can=call.peer.can,
            created=now,
            changed=now,
            expires=now + retention,
            answers=dict(answers),
            idempotent=bool(tool.settings.idempotent or tool.settings.read_only),
        )

    def wake(self, id: str | None) -> None:
        """Wake every request waiting for this task, or for any task if the id is None.

        The id is None if another process changed any task. May be called from any thread.
        """
        for wake in tuple(self._waiters):
            wake(id)


def _health(store: TaskStore, runner: TaskRunner) -> HealthState:
    """Report the server as ready: plain calls are served even while the task file is failing."""
    return HealthState(True, {"failing": store.is_failing, "running": len(runner.runs)})


async def run_once(service: TaskService, call: Call, key: str, handle: Handler) -> Outcome:
    """Return the outcome of the call, or the reply to the first call with this key."""
    call.stage = "admit"
    outcome = await service.admit(call)
    if outcome is not ADMITTED:
        return await service.refuse(call, outcome)
    store, runner = service.store, service.runner
    try:
        record = _claimed_record(service, call, key)
        try:
            stored = await runner.off_loop(store.add, record, service.limits)
        except Uncertain:
            # The call does not run, so the key must stay free for a repeated call.
            runner.undo_later(partial(store.remove, record.id))
            raise
        if stored.id != record.id:
            if not stored.is_final:
                raise Conflict(
                    "A call with this idempotency key is still running",
                    retryable=True,
                    retry_after=1,
                    hint="repeat the call with the same key in a moment",
                )
            reply = stored.reply()
            if reply.shape is not None and call.tool is not None:
                call.shape = call.tool.shape_of_stored(reply.shape)
            return await service.refuse(call, reply)
    except ToolError as exc:
        return await service.refuse(call, Reply(error=Error.of(exc)))
    # The watch renews the claim as long as the call is running here.
    runner.keyed.add(record.worker)
    try:
        return await _run_claimed(service, call, record, handle)
    finally:
        runner.keyed.discard(record.worker)


async def _run_claimed(
    service: TaskService, call: Call, record: TaskRecord, handle: Handler
) -> Outcome:
    """Run a call, and store its reply for the next call with its key."""
    store, runner = service.store, service.runner
    claim: dict[str, Any] = {"worker": record.worker, "fence": record.fence}
    call.stage = "run"
    try:
        outcome = await handle(call)
    except BaseException:
        with suppress(Unavailable):
            await runner.off_loop(store.change, record.id, partial(given_up, **claim))
        raise
    if not isinstance(outcome, Reply) or _may_be_repeated(outcome):
        # The next call with this key will run.
        remove = partial(store.remove, record.id)
        try:
            await runner.off_loop(remove)
        except Unavailable:
            runner.undo_later(remove)
        return outcome
    fits = len(dump_reply(outcome)) <= service.limits.result_bytes
    reply = outcome if fits else _TOO_LARGE
    finish = partial(finished, **claim, reply=reply, shape=call.shape)
    # The store logs its failure. The call took effect, so its reply is sent anyway.
    with suppress(ToolError):
        await runner.off_loop(store.change, record.id, finish)
    return outcome


def _claimed_record(service: TaskService, call: Call, key: str) -> TaskRecord:
    made = service.new_task(call, {}, None, key)
    return msgspec.structs.replace(
        made,
        owner=KEYS + made.owner,
        # The call never runs from its record; the fingerprint identifies its arguments.
        arguments=b"{}",
        user=None,
        # A separate name, so that the claim expires if the call's reply cannot be stored.
        worker=service.runner.new_name(),
        lease=made.created + LEASE,
        fence=1,
        attempts=1,
        idempotent=False,
    )


def _may_be_repeated(reply: Reply[Any]) -> bool:
    """Return whether the refusal is temporary: too many calls, or a service that is down.

    A call that timed out may have taken effect, so its error is stored.
    """
    error = reply.error
    return error is not None and error.row.status in (429, 503) and error.retryable is not False


_TOO_LARGE: Reply[Any] = failure(
    "The call was made, but its reply was too large to store for repeated calls",
    code="TOO_LARGE",
    hint="check by other means what the call changed",
)
