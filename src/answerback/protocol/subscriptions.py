"""Subscriptions: notifies clients of changes to lists and resources, in both eras."""

from __future__ import annotations

from collections.abc import Callable
from collections.abc import Set as AbstractSet
from typing import TYPE_CHECKING

import msgspec

from ..dialects.mcp import SERVER_INFO
from ..registry.declarations import Change, Registry
from .jsonrpc import (
    INVALID_PARAMS,
    PREFIX,
    RESOURCE_NOT_FOUND,
    Id,
    Params,
    ReadResource,
    RpcError,
    notification_frame,
    read_params,
    result_frame,
)
from .listing import is_hidden_resource, refuse_subscription

if TYPE_CHECKING:
    from ..core.json_value import JsonObject
    from ..core.request_info import RequestInfo
    from .task_methods import TaskFeed

SUBSCRIPTION = PREFIX + "subscriptionId"
MAX_SUBSCRIPTIONS = 1000
"""The maximum number of resources in one session or one stateless subscription."""
_METHODS = {
    "tools": "notifications/tools/list_changed",
    "resources": "notifications/resources/list_changed",
    "prompts": "notifications/prompts/list_changed",
    "resource": "notifications/resources/updated",
}


class Filter(msgspec.Struct, omit_defaults=True):
    """The changes that a stateless client subscribes to."""

    tools: bool = msgspec.field(default=False, name="toolsListChanged")
    prompts: bool = msgspec.field(default=False, name="promptsListChanged")
    resources: bool = msgspec.field(default=False, name="resourcesListChanged")
    uris: tuple[str, ...] = msgspec.field(default=(), name="resourceSubscriptions")
    tasks: tuple[str, ...] = msgspec.field(default=(), name="taskIds")

    def wants(self, change: Change) -> bool:
        if change.kind == "resource":
            return change.uri in self.uris
        lists = {"tools": self.tools, "prompts": self.prompts, "resources": self.resources}
        return lists[change.kind]


class Listen(msgspec.Struct):
    notifications: Filter


class Subscription:
    """One `subscriptions/listen`: an acknowledgement, then notifications until it ends."""

    def __init__(
        self,
        registry: Registry,
        id: Id,
        raw: Params,
        send: Callable[[bytes], None],
        request: RequestInfo | None = None,
        tasks: TaskFeed | None = None,
    ) -> None:
        self._meta = {SUBSCRIPTION: id}
        self._id = id
        self._send = send
        self._filter = _supported(read_params(raw, Listen).notifications, registry, request)
        if tasks is not None:
            self._filter.tasks = tasks.ids
        self._silent = frozenset(
            uri
            for uri in self._filter.uris
            if request is not None and is_hidden_resource(registry, uri, request)
        )
        """The hidden resources whose URIs only a template serves to this client."""
        # Subscribe before the acknowledgement, so that no change is lost between the two.
        # Changes are queued until then, because the acknowledgement must be sent first.
        self._early: list[bytes] | None = []
        self._unsubscribe = registry.changes.subscribe(self._on_change)
        params = {"notifications": self._filter, "_meta": self._meta}
        self._send(notification_frame("notifications/subscriptions/acknowledged", params))
        early, self._early = self._early, None
        for frame in early or ():
            self._send(frame)
        self._end_tasks = None if tasks is None else tasks.begin(send, self._meta)

    def _on_change(self, change: Change) -> None:
        if not self._filter.wants(change) or change.uri in self._silent:
            return
        frame = change_frame(change, self._meta)
        if self._early is not None:
            self._early.append(frame)
        else:
            self._send(frame)

    def end(self) -> None:
        """Unsubscribe; may be called more than once."""
        self._unsubscribe()
        if self._end_tasks is not None:
            self._end_tasks()

    def last_frame(self, server_info: JsonObject) -> bytes:
        """Return the result that ends the subscription."""
        meta = {**self._meta, SERVER_INFO: server_info}
        result = {"resultType": "complete", "_meta": meta}
        return result_frame(self._id, msgspec.json.encode(result))


def subscribed_uri(
    registry: Registry, raw: Params, subscribed: AbstractSet[str], request: RequestInfo | None
) -> str:
    """Return the URI that a stateful client subscribes to; raises RpcError if that is not allowed.

    *request* is None if nothing can be hidden. The URI is empty, which matches no resource, if the
    resource must stay hidden.
    """
    uri = read_params(raw, ReadResource).uri
    if request is not None and (refused := refuse_subscription(registry, uri, request)) is not None:
        raise refused
    if not _is_served(registry, uri):
        raise RpcError(RESOURCE_NOT_FOUND, f"Resource not found: {uri}", {"uri": uri})
    if len(subscribed) >= MAX_SUBSCRIPTIONS and uri not in subscribed:
        raise _too_many()
    return "" if request is not None and is_hidden_resource(registry, uri, request) else uri


def change_frame(change: Change, meta: JsonObject | None = None) -> bytes:
    params: JsonObject = {} if change.uri is None else {"uri": change.uri}
    if meta is not None:
        params["_meta"] = meta
    return notification_frame(_METHODS[change.kind], params)


def _supported(asked: Filter, registry: Registry, request: RequestInfo | None) -> Filter:
    """Return the part of a filter that the server supports, for the acknowledgement.

    It excludes unknown resources and those hidden from the client.
    """
    if len(asked.uris) > MAX_SUBSCRIPTIONS:
        raise _too_many()
    return Filter(
        tools=asked.tools,
        prompts=asked.prompts and bool(registry.prompts),
        resources=asked.resources and bool(registry.resources),
        uris=tuple(
            uri
            for uri in asked.uris
            if _is_served(registry, uri)
            and not (request is not None and refuse_subscription(registry, uri, request))
        ),
    )


def _is_served(registry: Registry, uri: str) -> bool:
    served = registry.resources.values()
    return any(resource.arguments_for(uri) is not None for resource in served)


def _too_many() -> RpcError:
    return RpcError(INVALID_PARAMS, f"More than {MAX_SUBSCRIPTIONS} subscriptions")
