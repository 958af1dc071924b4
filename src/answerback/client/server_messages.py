"""ServerMessages: the requests and notifications that a server sends unasked."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from ..core.json_value import Json, JsonObject
from ..core.log import logger
from ..core.peer import Log, Progress
from ..protocol.jsonrpc import Id, RpcError, error_frame, result_frame
from ..registry.declarations import Change
from .faults import NoAnswer
from .frames import Incoming
from .user_handlers import UserHandlers

if TYPE_CHECKING:
    from .client_connection import ClientConnection

_LOGGER = logger("answerback.client")
_CHANGES: dict[str, Literal["tools", "resources", "prompts", "resource"]] = {
    "notifications/tools/list_changed": "tools",
    "notifications/resources/list_changed": "resources",
    "notifications/prompts/list_changed": "prompts",
    "notifications/resources/updated": "resource",
}
_MAX_ANSWERING = 100
"""How many of the server's requests are answered at a time; further ones are dropped."""


class PageVisits:
    """The pages that the user was sent to, by the server's ids."""

    def __init__(self) -> None:
        self._waiting: dict[Any, asyncio.Event] = {}

    async def wait(self, id: str, seconds: float) -> None:
        """Wait until the server says that a page was visited, but at most *seconds*."""
        completed = self._waiting.setdefault(id, asyncio.Event())
        try:
            async with asyncio.timeout(seconds):
                await completed.wait()
        except TimeoutError:
            pass  # A server need not say so; it is asked again.
        finally:
            self._waiting.pop(id, None)

    def complete(self, id: Json) -> None:
        """End the wait for a visited page."""
        if isinstance(id, str) and id in self._waiting:
            self._waiting[id].set()


class ServerMessages:
    """Answers the server's requests, and gives notifications to the user's handlers."""

    def __init__(
        self,
        connection: ClientConnection,
        handlers: UserHandlers,
        on_change: Callable[[Change], None],
    ) -> None:
        self.visits = PageVisits()
        self._connection = connection
        self._handlers = handlers
        self._on_change = on_change
        self._answering: dict[Id, asyncio.Task[None]] = {}
        self._has_dropped = False

    def receive(self, message: Incoming) -> None:
        method, id = message.method, message.id
        assert method is not None
        if id is None:
            try:
                params = msgspec.json.decode(message.params, type=dict[str, Any])
                self._notified(method, params)
            except Exception:
                _LOGGER.exception("a notification could not be handled")
        elif len(self._answering) < _MAX_ANSWERING and id not in self._answering:
            self._answering[id] = self._connection.spawn(self._answer(id, method, message.params))
        elif not self._has_dropped:
            self._has_dropped = True
            text = "the server sends more than %d requests at a time, or two with one id; %s"
            _LOGGER.warning(text, _MAX_ANSWERING, "the others are dropped")

    async def _answer(self, id: Id, method: str, params: msgspec.Raw) -> None:
        try:
            await self._connection.send(await self._answer_frame(id, method, params))
        except NoAnswer as exc:
            _LOGGER.warning("an answer to %s was not sent: %s", method, exc)
        finally:
            self._answering.pop(id, None)

    async def _answer_frame(self, id: Id, method: str, params: msgspec.Raw) -> bytes:
        """Return the user's handler's answer to a server's request, or an error."""
        try:
            found = msgspec.json.decode(params, type=dict[str, Any])
        except (ValueError, RecursionError) as exc:
            return error_frame(id, RpcError(-32602, f"Invalid params: {exc}"))
        try:
            answer = await self._connection.ask_user(method, found)
            return result_frame(id, msgspec.json.encode(answer))
        except RpcError as error:
            return error_frame(id, error)
        except (TypeError, ValueError) as exc:
            text = f"the answer of the handler is not JSON: {exc}"
            return error_frame(id, RpcError(-32603, text))
        except Exception as exc:
            # The server must not wait for an answer that never arrives.
            _LOGGER.exception("the server's request %s could not be answered", method)
            return error_frame(id, RpcError(-32603, f"the client failed: {type(exc).__name__}"))

    def _notified(self, method: str, params: JsonObject) -> None:
        if method == "notifications/progress":
            progress = self._connection.progress_of(params.get("progressToken", ""))
            if progress is not None:
                progress(Progress(params["progress"], params.get("total"), params.get("message")))
        elif method == "notifications/message" and self._handlers.on_log is not None:
            level = params.get("level", "info")
            self._handlers.on_log(Log(level, params.get("data"), params.get("logger")))
        elif method == "notifications/cancelled":
            task = self._answering.get(params.get("requestId", ""))
            if task is not None:
                task.cancel()
        elif method == "notifications/elicitation/complete":
            self.visits.complete(params.get("elicitationId"))
        elif method in _CHANGES:
            kind = _CHANGES[method]
            self._on_change(Change(kind, params.get("uri") if kind == "resource" else None))
        if self._handlers.on_notification is not None:
            self._handlers.on_notification(method, params)
