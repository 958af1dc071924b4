"""MCP over HTTP in the stateless era: each POST is complete, and disconnecting cancels it.

Clients repeat parts of the body in headers, for proxies and gateways. A request whose headers
differ from its body is refused.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping
from typing import TYPE_CHECKING

import msgspec

from ...core.json_value import Json
from ...core.versions import V2026_07_28
from ...protocol.engine import Engine
from ...protocol.jsonrpc import (
    HEADER_MISMATCH,
    INTERNAL_ERROR,
    METHOD_NOT_FOUND,
    Meta,
    Request,
    RpcError,
    ToolCall,
    error_frame,
    read_params,
)
from ...protocol.listing import described_if_hiding, is_gated, is_visible_to
from ...protocol.mcp_request_info import NAMED_BY, decode_header
from ...protocol.session import require_meta, stateless_version
from ...protocol.subscriptions import Subscription
from ...registry.declarations import Registry
from ...tools.tool import Tool
from .in_flight import HttpPeer, InFlight
from .request import JSON_HEADERS, HttpRequest, call_at_expiry
from .sessions import VERSION_HEADER as VERSION
from .sse import EventStream, write_until_disconnected

if TYPE_CHECKING:
    from ...protocol.task_methods import TaskFeed

METHOD = b"mcp-method"
NAME = b"mcp-name"
PARAM = b"mcp-param-"
_ROUTING = (VERSION, METHOD, NAME)
_STATUS = {INTERNAL_ERROR: 200, METHOD_NOT_FOUND: 404}
"""The HTTP status for an error code; 400 for all others."""
_NUMBER = re.compile(r"-?\d{1,300}(\.\d{1,300})?([eE][+-]?\d{1,3})?", re.ASCII)


class Stateless:
    """Answers POSTs of clients from 2026-07-28 on."""

    def __init__(self, registry: Registry, engine: Engine, in_flight: InFlight) -> None:
        self._registry = registry
        self._engine = engine
        self._prefix = registry.contract.tool_prefix
        self._in_flight = in_flight
        self._subscriptions: dict[EventStream, Subscription] = {}

    async def post(self, request: Request, meta: Meta | None, http: HttpRequest) -> None:
        """Answer one request."""
        try:
            peer = self._peer_for(request, meta, http)
            if request.method == "subscriptions/listen":
                feed = await self._engine.task_feed(request.params, peer)
                await self._subscribe(request, peer, feed)
                return
        except RpcError as error:
            frame = error_frame(request.id, error)
            await http.respond(_STATUS.get(error.code, 400), JSON_HEADERS, frame)
            return
        found = await self._in_flight.run(self._engine, request, peer)
        if found is None:
            await peer.abandon()
        elif peer.error is None:
            await peer.finish(found)
        else:
            await peer.finish(found, _STATUS.get(peer.error.code, 400))

    def _peer_for(self, request: Request, found: Meta | None, http: HttpRequest) -> HttpPeer:
        """Return the peer of a request; raises RpcError.

        The checks, in this order: repeated headers, `_meta`, headers equal to the body, version.
        """
        headers = http.headers
        if len(headers) != len(http.scope["headers"]):
            names = [name for name, _ in http.scope["headers"]]
            for name in names:
                if (name in _ROUTING or name.startswith(PARAM)) and names.count(name) > 1:
                    raise _mismatch(name, "is there twice")
        meta, client = require_meta(found)
        _check_routing(request, str(meta.version), headers)
        version = stateless_version(meta)
        params = request.params
        peer = HttpPeer(request.id, version, client, http)
        if isinstance(params, ToolCall):
            tool = self._registry.tools.get(params.name.removeprefix(self._prefix))
            if tool is not None and tool.signature.header_params and is_visible_to(peer)(tool):
                _check_params(tool, params, headers)
        peer.level = meta.level
        peer.progress_token = meta.token
        peer.cancel_on_disconnect = True
        if self._registry.has_gates:
            peer.is_held = is_gated(self._registry, request, self._engine.tool_name(request))
        return peer

    async def _subscribe(self, request: Request, peer: HttpPeer, tasks: TaskFeed | None) -> None:
        stream = EventStream(asyncio.get_running_loop())
        http = peer.http
        described = described_if_hiding(self._registry, peer)
        subscription = Subscription(
            self._registry, request.id, request.params, stream.offer_or_end, described, tasks
        )
        self._subscriptions[stream] = subscription
        stop_timer = call_at_expiry(http, lambda: self._end(stream, subscription))
        try:
            await write_until_disconnected(stream, http)
        finally:
            stop_timer()
            subscription.end()
            del self._subscriptions[stream]

    def close(self) -> None:
        """End every subscription with its result."""
        for stream, subscription in self._subscriptions.items():
            self._end(stream, subscription)

    def _end(self, stream: EventStream, subscription: Subscription) -> None:
        info = self._engine.server_info.server_info(V2026_07_28)
        stream.append(subscription.last_frame(info))
        stream.end()


class _Named(msgspec.Struct):
    """The member that the name header repeats; its type is checked later."""

    name: Json = None
    uri: Json = None
    task: Json = msgspec.field(default=None, name="taskId")


def _check_routing(request: Request, version: str, headers: Mapping[bytes, bytes]) -> None:
    """Raise RpcError if a header is missing, malformed, or differs from the body."""
    params = request.params
    name: Json = None
    if isinstance(params, ToolCall):
        name = params.name
    elif (member := NAMED_BY.get(request.method)) is not None:
        named = read_params(params, _Named)
        name = {"name": named.name, "uri": named.uri, "taskId": named.task}[member]
    for header, value in ((VERSION, version), (METHOD, request.method), (NAME, name)):
        if not isinstance(value, str):
            continue  # The request has no name, or a malformed one, which is refused later.
        found = headers.get(header)
        if found is None:
            raise _mismatch(header, "is missing")
        is_equal = found.decode("latin-1") == value and value[:2] != "=?"
        if not is_equal and _decoded(header, found) != value:
            raise _mismatch(header, "does not match the body")


def _check_params(tool: Tool, params: ToolCall, headers: Mapping[bytes, bytes]) -> None:
    """Raise RpcError if a mirrored argument differs between its header and the body."""
    try:
        arguments = msgspec.json.decode(params.arguments)
    except ValueError:
        return  # The pipeline decodes the arguments later, and reports the error.
    for path, header in tool.signature.header_params.items():
        value = arguments
        for step in path:
            value = value.get(step) if isinstance(value, dict) else None
        name = PARAM + header.lower().encode()
        found = headers.get(name)
        if value is None:
            continue
        if found is None:
            raise _mismatch(name, "is missing")
        if not _is_equal(_decoded(name, found), value):
            raise _mismatch(name, "does not match the body")


def _decoded(name: bytes, value: bytes) -> str:
    """Return the value of a header; base64 in `=?base64?…?=` is decoded."""
    text = value.decode("latin-1").strip(" \t")
    if text[:2] != "=?":
        return text
    try:
        return decode_header(text)
    except ValueError:
        raise _mismatch(name, "is not base64 of UTF-8") from None


def _is_equal(text: str, value: Json) -> bool:
    if isinstance(value, bool):
        return text == ("true" if value else "false")
    if isinstance(value, int | float):
        if _NUMBER.fullmatch(text) is None:
            return False
        # A float would round a large integer, and "3.0" is an integer too.
        whole, _, rest = text.partition(".")
        is_float = rest.strip("0") or "e" in text.lower()
        return (float(text) if is_float else int(whole)) == value
    return bool(text == value)


def _mismatch(name: bytes, what: str) -> RpcError:
    return RpcError(HEADER_MISMATCH, f"Header {name.decode('latin-1')} {what}")
