"""MCP over HTTP, the modern era: each POST stands for itself, and hanging up cancels it."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ...mcp import params
from ...mcp.engine import log_fault
from ...mcp.mcp_peer import DEAF, Exchange
from ...mcp.messages import (
    INTERNAL_ERROR,
    Request,
    RpcError,
    error_frame,
    result_frame,
)
from ...mcp.modern import require, version_of
from ...mcp.subscriptions import Subscription
from ...versions import LATEST_LEGACY
from . import mirrored_headers as routing
from .call_watch import Vigil, Watchman
from .request import IN_JSON, Incoming
from .sse import KEEP_ALIVE, Answer, Log, write_until_gone

if TYPE_CHECKING:
    from ...app import App
    from ...mcp.engine import Engine

_STATUS = {INTERNAL_ERROR: 200, -32601: 404}
"""400 is for the rest."""


class Modern:
    def __init__(self, app: App, engine: Engine, watchman: Watchman) -> None:
        self._watchman = watchman
        self._app = app
        self._engine = engine
        self._listening: dict[Log, Subscription] = {}

    async def answer(self, request: Request, meta: params.Meta | None, incoming: Incoming) -> None:
        answer: Answer | None = None
        try:
            exchange = self._open(request, meta, incoming)
            if request.method == "subscriptions/listen":
                await self._listen(request, incoming)
                return
            if self._engine.is_quick(request):
                frame = await self._frame(request, exchange)
                await incoming.respond(200, IN_JSON, frame)
                return
            exchange.link = answer = Answer(incoming)
            last = await self._watched(request, exchange, answer, incoming)
            if last is not None:
                await answer.finish(last)
        except RpcError as error:
            status = _STATUS.get(error.code, 400)
            answer = answer or Answer(incoming)
            await answer.finish(error_frame(request.id, error), status)

    async def _watched(
        self, request: Request, exchange: Exchange, answer: Answer, incoming: Incoming
    ) -> bytes | None:
        """The answer, or None for a client that went."""
        task = asyncio.current_task()
        assert task is not None
        exchange.on_cancel = task.cancel
        vigil = Vigil(
            self._watchman,
            incoming.receive,
            silence=KEEP_ALIVE,
            on_silence=answer.begin,
            on_gone=exchange.cancel,
        )
        try:
            with vigil:
                return await self._frame(request, exchange)
        except asyncio.CancelledError:
            if not exchange.cancelled:
                raise
            await answer.abandon()
            return None

    async def _frame(self, request: Request, exchange: Exchange) -> bytes:
        try:
            return result_frame(request.id, await self._engine.answer(request, exchange))
        except RpcError:
            raise
        except Exception:  # noqa: BLE001 -- a fault of ours ends one request, not the line
            log_fault(request.method)
            raise RpcError(INTERNAL_ERROR, "Internal error") from None

    def _open(self, request: Request, said: params.Meta | None, incoming: Incoming) -> Exchange:
        """In this order: duplicates, `_meta`, header and body the same, version, parameters."""
        headers = incoming.headers
        if len(headers) != len(incoming.scope["headers"]):
            routing.refuse_duplicates(incoming.scope["headers"])
        meta, client = require(said)
        routing.check_routing(request, str(meta.version), headers)
        exchange = Exchange(request.id, version_of(meta), client, DEAF, level=meta.level)
        exchange.token = meta.token
        exchange.caller = incoming.caller
        if request.method == "tools/call":
            tool = self._app.tools.get(self._engine.tool_called(request))
            if tool is not None and tool.signature.header_params:
                routing.check_params(tool, request, headers)
        return exchange

    async def _listen(self, request: Request, incoming: Incoming) -> None:
        log = Log(asyncio.get_running_loop())
        subscription = Subscription(self._app, request.id, request.params, log.offer_or_end)
        self._listening[log] = subscription
        try:
            await write_until_gone(log, incoming)
        finally:
            subscription.end()
            del self._listening[log]

    def close(self) -> None:
        """End every subscription in good order."""
        info = self._engine.about.server_info(LATEST_LEGACY)
        for log, subscription in self._listening.items():
            log.append(subscription.last_frame(info))
            log.end()
