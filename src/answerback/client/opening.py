"""Opens a connection: asks for the newest version of MCP, and falls back to the stateful era."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import suppress
from typing import TYPE_CHECKING, Any

import msgspec

from ..core.versions import LATEST_STATEFUL, STATEFUL, STATELESS, V2026_07_28
from ..protocol.jsonrpc import METHOD_NOT_FOUND, UNSUPPORTED_VERSION, RpcError
from .eras import CLIENT_INFO, ServerFacts, StatefulEra, StatelessEra
from .exchange import Exchange, RequestOptions
from .faults import TIMED_OUT, HttpRefused, NoAnswer
from .frames import Transport
from .user_handlers import UserHandlers

if TYPE_CHECKING:
    from ..core.json_value import Json, JsonObject


_PROBE_SECONDS = 5.0
"""Seconds to wait for `server/discover`; older servers may not answer it at all."""


class LinkPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach a server, and how to talk to it."""

    label: str
    """The server's name in messages."""
    transports: tuple[Callable[[], Transport], ...]
    """Makes transports, to be tried one after the other."""
    handlers: UserHandlers = UserHandlers()
    version: str | None = None
    """The version of MCP; by default the newest that the server speaks."""
    timeout: float | None = 60.0
    connect_timeout: float = 30.0


async def agree(exchange: Exchange, transport: Transport, plan: LinkPlan) -> ServerFacts:
    """Agree on a version with the server; raises RpcError or NoAnswer."""
    wanted = plan.version
    if wanted is not None and wanted not in STATELESS:
        return await initialize(exchange, transport, plan)
    facts = await _discover(exchange, plan, must=wanted is not None)
    return facts or await initialize_or_discover(exchange, transport, plan)


async def initialize_or_discover(
    exchange: Exchange, transport: Transport, plan: LinkPlan
) -> ServerFacts:
    """Ask again if the server turns out to be stateless, and was only slow to start."""
    try:
        return await initialize(exchange, transport, plan)
    except RpcError as error:
        if error.code not in (UNSUPPORTED_VERSION, METHOD_NOT_FOUND):
            raise
    facts = await _discover(exchange, plan, must=True)
    if facts is None:
        raise NoAnswer("the server speaks no version that is known", may_have_run=False)
    return facts


async def _discover(exchange: Exchange, plan: LinkPlan, *, must: bool) -> ServerFacts | None:
    """Ask a stateless server about itself; None if the server is of the stateful era."""
    handlers = plan.handlers
    exchange.era = StatelessEra(handlers.capabilities, handlers.log_level)
    options = RequestOptions(timeout=None if must else _PROBE_SECONDS)
    try:
        raw = await _discover_twice(exchange, options)
        result = msgspec.json.decode(raw, type=dict[str, Any])
    except RpcError as error:
        if must or (error.code == UNSUPPORTED_VERSION and not _names_stateful(error.data)):
            raise
        return None
    except msgspec.DecodeError:
        return None
    except NoAnswer as exc:
        status = exc.status if isinstance(exc, HttpRefused) else 0
        is_legacy = exc.code == TIMED_OUT or (400 <= status < 500 and status not in (401, 403))
        if must or not is_legacy:
            raise
        return None
    supported = result.get("supportedVersions")
    if not isinstance(supported, list) or V2026_07_28.name not in supported:
        return None
    return ServerFacts.of_discover(result, V2026_07_28)


async def _discover_twice(exchange: Exchange, options: RequestOptions) -> msgspec.Raw:
    """Ask again if the server refuses a version that it names as supported."""
    try:
        return await exchange.request("server/discover", {}, options)
    except RpcError as error:
        supported = error.data.get("supported") if isinstance(error.data, dict) else None
        if error.code != UNSUPPORTED_VERSION or V2026_07_28.name not in (supported or ()):
            raise
    return await exchange.request("server/discover", {}, options)


async def initialize(exchange: Exchange, transport: Transport, plan: LinkPlan) -> ServerFacts:
    """Open a session of the stateful era; raises RpcError or NoAnswer."""
    exchange.era = StatefulEra()
    wanted = plan.version
    params = {
        "protocolVersion": LATEST_STATEFUL.name if wanted is None else wanted,
        "capabilities": plan.handlers.capabilities,
        "clientInfo": CLIENT_INFO,
    }
    result = await _initialize_result(exchange, params)
    facts = ServerFacts.of_initialize(result)
    if facts is None:
        found = result.get("protocolVersion")
        text = f"the server speaks version {found!r}; known are {', '.join(STATEFUL)}"
        raise RpcError(UNSUPPORTED_VERSION, text)
    exchange.era = StatefulEra(facts.version)
    await exchange.notify("notifications/initialized")
    await transport.listen()
    level = plan.handlers.log_level
    if level is not None and facts.offers("logging"):
        with suppress(RpcError):
            await exchange.request("logging/setLevel", {"level": level})
    return facts


async def _initialize_result(exchange: Exchange, params: JsonObject) -> JsonObject:
    raw = await exchange.request("initialize", params)
    try:
        return msgspec.json.decode(raw, type=dict[str, Any])
    except msgspec.DecodeError:
        raise NoAnswer("the result of initialize is not an object") from None


def _names_stateful(data: Json) -> bool:
    """Whether the server names a version of the stateful era, or none at all."""
    supported = data.get("supported") if isinstance(data, dict) else None
    return not isinstance(supported, list) or any(each in STATEFUL for each in supported)
