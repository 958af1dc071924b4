"""Telling clients of changes: what each asked to hear, in the words of its era."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING, Any

import msgspec

from ..registry import Change
from .messages import (
    INVALID_PARAMS,
    RESOURCE_NOT_FOUND,
    Id,
    Params,
    RpcError,
    notification_frame,
    result_frame,
)
from .params import PREFIX, ReadResource, read

if TYPE_CHECKING:
    from ..app import App

SUBSCRIPTION = PREFIX + "subscriptionId"
MOST = 1000
"""Subscriptions of one session."""
_METHODS = {
    "tools": "notifications/tools/list_changed",
    "resources": "notifications/resources/list_changed",
    "prompts": "notifications/prompts/list_changed",
    "resource": "notifications/resources/updated",
}


class Filter(msgspec.Struct, omit_defaults=True):
    """What a modern client listens for."""

    tools: bool = msgspec.field(default=False, name="toolsListChanged")
    prompts: bool = msgspec.field(default=False, name="promptsListChanged")
    resources: bool = msgspec.field(default=False, name="resourcesListChanged")
    uris: tuple[str, ...] = msgspec.field(default=(), name="resourceSubscriptions")

    def wants(self, change: Change) -> bool:
        if change.what == "resource":
            return change.uri in self.uris
        return bool(getattr(self, change.what))


class Listen(msgspec.Struct):
    notifications: Filter


class Subscription:
    """One `subscriptions/listen`: acknowledged first, then whatever it asked for, until it ends."""

    def __init__(self, app: App, id: Id, raw: Params, send: Callable[[bytes], None]) -> None:
        self._meta = {SUBSCRIPTION: id}
        self._id = id
        self._send = send
        self._filter = _honoured(read(raw, Listen).notifications, app)
        # Registered before it is acknowledged, so that nothing between the two is lost;
        # what happens meanwhile waits, because the acknowledgement comes first.
        self._early: list[bytes] | None = []
        self._stop = app.changes.listen(self._hear)
        self._begin()

    def _begin(self) -> None:
        params = {"notifications": self._filter, "_meta": self._meta}
        self._send(notification_frame("notifications/subscriptions/acknowledged", params))
        early, self._early = self._early, None
        for frame in early or ():
            self._send(frame)

    def _hear(self, change: Change) -> None:
        if not self._filter.wants(change):
            return
        frame = change_frame(change, self._meta)
        if self._early is not None:
            self._early.append(frame)
        else:
            self._send(frame)

    def end(self) -> None:
        """Hear no more; may be called twice."""
        self._stop()

    def last_frame(self, server_info: dict[str, Any]) -> bytes:
        """What ends it in good order."""
        meta = {**self._meta, PREFIX + "serverInfo": server_info}
        result = {"resultType": "complete", "_meta": meta}
        return result_frame(self._id, msgspec.json.encode(result))


def subscribed_uri(app: App, raw: Params, subscribed: AbstractSet[str]) -> str:
    """The resource that a legacy client wants to hear of; raises RpcError if it may not."""
    uri = read(raw, ReadResource).uri
    if all(resource.arguments_for(uri) is None for resource in app.resources.values()):
        raise RpcError(RESOURCE_NOT_FOUND, f"Resource not found: {uri}", {"uri": uri})
    if len(subscribed) >= MOST and uri not in subscribed:
        raise RpcError(INVALID_PARAMS, f"More than {MOST} subscriptions")
    return uri


def change_frame(change: Change, meta: dict[str, Any] | None = None) -> bytes:
    params: dict[str, Any] = {} if change.uri is None else {"uri": change.uri}
    if meta is not None:
        params["_meta"] = meta
    return notification_frame(_METHODS[change.what], params)


def _honoured(asked: Filter, app: App) -> Filter:
    return Filter(
        tools=asked.tools,
        prompts=asked.prompts and bool(app.prompts),
        resources=asked.resources and bool(app.resources),
        uris=asked.uris if app.resources else (),
    )
