"""MCP to an App in this process, for testing its tools."""

from __future__ import annotations

import asyncio
from contextlib import AsyncExitStack
from functools import cache

import msgspec

from ..calls.runtime import runtime_on_loop, serving
from ..core.json_value import Json
from ..core.signing import signer_from_environment
from ..protocol.connection import SingleSession
from ..protocol.engine import Engine
from ..protocol.jsonrpc import (
    CancelledParams,
    Id,
    Request,
    Response,
    RpcError,
    error_frame,
    joined,
    parse,
    read_params,
    request_frame,
    result_frame,
)
from ..protocol.mcp_peer import McpPeer
from ..protocol.session import ServerInfo
from ..protocol.subscriptions import Subscription
from ..registry.declarations import Registry
from .frames import Lost, Outgoing, Receiver, Transport


class MemoryPeer(McpPeer):
    """The peer for an in-memory request; frames go straight to the client."""

    transport: InMemory

    def send(self, frame: bytes) -> None:
        self.transport.deliver(frame)

    async def send_request(self, method: str, params: Json) -> msgspec.Raw:
        return await self.transport.ask_client(method, params)


class InMemory(Transport):
    """The transport to an App in this process; it starts and stops the App's lifespan."""

    def __init__(self, app: Registry) -> None:
        self._app = app
        self._running: dict[Id, tuple[McpPeer, asyncio.Task[None]]] = {}
        self._questions: dict[Id, asyncio.Future[msgspec.Raw]] = {}
        self._stack = AsyncExitStack()
        self._sign = cache(lambda: signer_from_environment()[0])
        self._session = SingleSession(app, ServerInfo(app), self.deliver)

    async def open(self, receiver: Receiver, lost: Lost) -> None:
        self._receive = receiver.receive
        self._loop = asyncio.get_running_loop()
        # Connections share the threads of a runtime that is already serving the app.
        runtime = serving(self._app) or runtime_on_loop(self._app)
        self._engine = Engine(runtime, self._sign)
        lifespan = self._app.lifespan
        if lifespan is not None:
            await self._stack.enter_async_context(lifespan())

    async def send(self, outgoing: Outgoing) -> None:
        message = parse(outgoing.frame)
        if isinstance(message, Request):
            try:
                self._begin(message, outgoing.frame)
            except RpcError as error:
                self.deliver(error_frame(message.id, error))
        elif isinstance(message, Response):
            answer = self._questions.pop(message.id, None)
            if answer is None or answer.done():
                return
            if message.result is None:
                from ..tools.elicitation import Declined

                answer.set_exception(Declined("The client refused"))
            else:
                answer.set_result(message.result)
        elif message.method == "notifications/cancelled":
            id = read_params(message.params, CancelledParams).id
            found = None if id is None else self._running.pop(id, None)
            if found is not None:
                peer, task = found
                peer.cancel()
                task.cancel()

    async def close(self) -> None:
        for peer, task in list(self._running.values()):
            peer.cancel()
            task.cancel()
        tasks = [task for _, task in self._running.values()]
        if tasks:
            await asyncio.wait(tasks, timeout=1)
        self._session.close()
        if self._app.has_budgets and (session := self._session.state) is not None:
            await self._engine.runtime.stored_replies.forget_session(session.nonce.hex())
        await self._stack.aclose()

    def deliver(self, frame: bytes) -> None:
        """Pass a frame to the client; may be called from any thread."""
        try:
            is_here = asyncio.get_running_loop() is self._loop
        except RuntimeError:
            is_here = False
        if is_here:
            self._receive(frame)
        else:
            self._loop.call_soon_threadsafe(self._receive, frame)

    async def ask_client(self, method: str, params: Json) -> msgspec.Raw:
        """Send a server request to the client; raises Declined."""
        answer: asyncio.Future[msgspec.Raw] = self._loop.create_future()
        id = f"ask-{len(self._questions) + 1}-{method}"
        self._questions[id] = answer
        self.deliver(request_frame(id, method, params))
        if asyncio.get_running_loop() is self._loop:
            return await answer
        waiting = asyncio.wait_for(answer, None)
        return await asyncio.wrap_future(asyncio.run_coroutine_threadsafe(waiting, self._loop))

    def _begin(self, request: Request, text: bytes) -> None:
        peer = self._session.peer_for(request, MemoryPeer)
        if peer is None:
            self.deliver(result_frame(request.id, self._session.answer(request)))
            return
        peer.transport = self
        peer.text = text
        if request.method == "subscriptions/listen" and peer.version.stateless:
            subscription = Subscription(self._app, request.id, request.params, self.deliver)
            peer.on_cancel(subscription.end)
            self._stack.callback(subscription.end)
            # A subscription has nothing to run.
            task = self._loop.create_task(asyncio.sleep(0))
        else:
            task = self._loop.create_task(self._respond(request, peer))
        self._running[request.id] = (peer, task)

    async def _respond(self, request: Request, peer: McpPeer) -> None:
        try:
            frame = joined(await self._engine.respond(request, peer))
            if not peer.cancelled:
                self.deliver(frame)
        finally:
            self._running.pop(request.id, None)
