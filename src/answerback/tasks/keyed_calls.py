"""Plain calls with an idempotency key: each runs once, and a repeated call gets the stored reply.

Stored as a task record under a reserved owner, so no user can fetch it by id. It has the same
store, limits and expiry as a task, and survives a crash.
"""

from __future__ import annotations

from contextlib import suppress
from functools import partial
from typing import Any

import msgspec

from ..calls.call import Call, Handler, Outcome
from ..calls.runtime import ADMITTED
from ..core.reply import Error, Reply, failure
from ..errors import Conflict, ToolError, Unavailable, Uncertain
from .idempotency_keys import checked_key
from .service import TaskService
from .stored_reply import dump_reply
from .task_record import KEYS, TaskRecord
from .task_runner import LEASE
from .transitions import finished, given_up

_replace = msgspec.structs.replace


async def run_once(service: TaskService, call: Call, key: str, handle: Handler) -> Outcome:
    """Return the outcome of the call, or the reply to the first call with this key."""
    call.stage = "admit"
    outcome = await service.admit(call)
    if outcome is not ADMITTED:
        return await service.refuse(call, outcome)
    runner = service.runner
    try:
        record = _record(service, call, checked_key(key))
        service.remove_expired()
        kept = await _added(service, record)
        if kept.id != record.id:
            return await service.refuse(call, _repeated(kept, call))
    except ToolError as exc:
        return await service.refuse(call, Reply(error=Error.of(exc)))
    # The watch renews the claim as long as the call runs here.
    runner.keyed.add(record.worker)
    try:
        return await _run_claimed(service, call, record, handle)
    finally:
        runner.keyed.discard(record.worker)


async def _added(service: TaskService, record: TaskRecord) -> TaskRecord:
    store, runner = service.store, service.runner
    try:
        return await runner.off_loop(store.add, record, service.limits)
    except Uncertain:
        # The call does not run, so the key must stay free for its repetition.
        runner.doubt(partial(store.remove, record.id))
        raise


async def _run_claimed(
    service: TaskService, call: Call, record: TaskRecord, handle: Handler
) -> Outcome:
    """Run a call, and keep its reply for the next call with its key."""
    store, runner = service.store, service.runner
    claim: dict[str, Any] = {"worker": record.worker, "fence": record.fence}
    call.stage = "run"
    try:
        outcome = await handle(call)
    except BaseException:
        give_up = partial(given_up, **claim)
        runner.soon(store.change, record.id, give_up)
        raise
    if not isinstance(outcome, Reply) or _may_be_repeated(outcome):
        # The next call with this key runs.
        remove = partial(store.remove, record.id)
        try:
            await runner.off_loop(remove)
        except Unavailable:
            runner.doubt(remove)
        return outcome
    fits = len(dump_reply(outcome)) <= service.limits.result_bytes
    reply = outcome if fits else _TOO_LARGE
    finish = partial(finished, **claim, reply=reply, shape=call.shape)
    # The store logs its failure. The call took effect, so its reply is sent anyway.
    with suppress(ToolError):
        await runner.off_loop(store.change, record.id, finish)
    return outcome


def _record(service: TaskService, call: Call, key: str | None) -> TaskRecord:
    made = service.new_task(call, {}, None, key)
    return _replace(
        made,
        owner=KEYS + made.owner,
        # The call never runs from its record; the fingerprint identifies its arguments.
        arguments=b"{}",
        user=None,
        # A separate name: a call whose reply could not be kept gives up its claim by itself.
        worker=service.runner.new_name(),
        lease=made.created + LEASE,
        fence=1,
        attempts=1,
        idempotent=False,
    )


def _repeated(kept: TaskRecord, call: Call) -> Reply[Any]:
    if not kept.is_final:
        raise Conflict(
            "A call with this idempotency key still runs",
            retryable=True,
            retry_after=1,
            hint="repeat the call with the same key in a moment",
        )
    reply = kept.reply()
    if reply.shape is not None and call.tool is not None:
        call.shape = call.tool.shape_of_stored(reply.shape)
    return reply


def _may_be_repeated(reply: Reply[Any]) -> bool:
    """Return whether the refusal is temporary: too many calls, or a service is down.

    A call that timed out may have taken effect, so its error is kept.
    """
    error = reply.error
    return error is not None and error.row.status in (429, 503) and error.retryable is not False


_TOO_LARGE: Reply[Any] = failure(
    "This call was made, and its reply was too large to be kept for a repetition",
    code="TOO_LARGE",
    hint="read what the call changed in another way",
)
