"""Task notifications: the part of `subscriptions/listen` that names `taskIds`."""

from __future__ import annotations

import threading
from collections.abc import Callable

from ..calls.runners import run_at_once
from ..core.authentication import owner_of
from ..core.json_value import JsonObject
from ..tasks.task_record import TaskRecord
from .jsonrpc import notification_frame
from .mcp_peer import McpPeer
from .task_methods import TaskMethods

MAX_TASKS = 100
"""Maximum tasks in one subscription; others send no notifications."""


class TaskFeed:
    """Sends a client the state of its tasks: once at first, then on each change."""

    def __init__(self, methods: TaskMethods, tasks: list[TaskRecord], peer: McpPeer) -> None:
        self.ids = tuple(task.id for task in tasks)
        self._methods = methods
        self._peer = peer
        self._owners = {task.id: task.owner for task in tasks}
        self._sent: JsonObject = {}
        # The whole of a result that is too large may be written to a disk or a database.
        self._may_block = methods.has_budgets
        self._lock = threading.Lock()

    def begin(self, send: Callable[[bytes], None], meta: JsonObject) -> Callable[[], None]:
        """Start sending; return a function that stops it."""
        service = self._methods.service

        def send_changed(changed: str | None) -> None:
            if changed is None or changed in self._owners:
                service.runner.soon(self._send_changes, send, meta, may_block=self._may_block)

        stop = service.subscribe(send_changed)
        send_changed(None)
        return stop

    def _send_changes(self, send: Callable[[bytes], None], meta: JsonObject) -> None:
        # One thread at a time, so that a task's notifications keep their order.
        with self._lock:
            for id, owner in self._owners.items():
                task = run_at_once(self._methods.service.get(id, owner))
                if task is None:
                    continue
                mark = (task.state, task.message, tuple(task.questions))
                if self._sent.get(id) != mark:
                    self._sent[id] = mark
                    shown = run_at_once(self._methods.task_json(task, self._peer))
                    send(notification_frame("notifications/tasks", {**shown, "_meta": meta}))


async def open_feed(methods: TaskMethods, ids: tuple[str, ...], peer: McpPeer) -> TaskFeed:
    """Return the feed of the tasks that belong to the client."""
    owner = owner_of(peer.describe_request("mcp").user)
    found = [await methods.service.get(id, owner) for id in dict.fromkeys(ids[:MAX_TASKS])]
    return TaskFeed(methods, [task for task in found if task is not None], peer)
