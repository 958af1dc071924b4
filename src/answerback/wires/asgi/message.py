"""`POST /message`: one JSON-RPC request, answered in plain JSON; no handshake, no session."""

from __future__ import annotations

from ...mcp.engine import Engine
from ...mcp.jsonrpc import parse
from ...mcp.mcp_peer import DEAF, Exchange
from ...mcp.messages import Request, RpcError, error_frame, result_frame
from ...mcp.modern import meta_of
from ...mcp.session import Client
from ...versions import LATEST_LEGACY
from .http_error import HttpError, empty
from .request import IN_JSON, Incoming


async def answer_message(engine: Engine, body: bytes, incoming: Incoming) -> None:
    try:
        message = parse(body)
    except RpcError as error:
        raise HttpError(400, error) from None
    if not isinstance(message, Request):
        await empty(incoming, 202)
        return
    await incoming.respond(200, IN_JSON, await _frame(engine, message, incoming.caller))


async def _frame(engine: Engine, request: Request, caller: str) -> bytes:
    try:
        if request.method == "ping":
            return result_frame(request.id, b"{}")
        if request.method == "initialize":
            return result_frame(request.id, engine.about.initialize(request.params)[1])
        meta_of(request)
    except RpcError as error:
        return error_frame(request.id, error)
    exchange = Exchange(request.id, LATEST_LEGACY, Client(), DEAF)
    exchange.caller = caller
    return await engine.respond(request, exchange)
