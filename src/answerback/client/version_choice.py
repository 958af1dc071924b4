"""Opens a connection: asks for the newest MCP version, and falls back to the stateful era."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from contextlib import suppress
from typing import Any

import msgspec

from ..core.json_value import Json, JsonObject
from ..core.limits import MAX_VALUES
from ..core.versions import LATEST_STATEFUL, STATEFUL, STATELESS, V2026_07_28
from ..protocol.jsonrpc import METHOD_NOT_FOUND, UNSUPPORTED_VERSION, RpcError
from .client_connection import ClientConnection, ClientRequest, ProbeDeadline
from .faults import INVALID_RESPONSE, TIMED_OUT, ConnectionLost, HttpRefused, NoAnswer
from .frames import Transport
from .request_params import ServerFacts, StatefulEra, StatelessEra
from .user_handlers import UserHandlers

_PROBE_SECONDS = 5.0
"""Seconds to wait for `server/discover`; older servers may never answer it."""


class SessionPlan(msgspec.Struct, frozen=True, kw_only=True):
    """How to reach a server, and how to talk to it."""

    label: str
    """The server's name in messages."""
    transports: tuple[Callable[[], Transport], ...]
    """Functions that make the transports, in the order in which to try them."""
    handlers: UserHandlers = UserHandlers()
    version: str | None = None
    """The MCP version; by default the newest that the server speaks."""
    connect_timeout: float = 30.0
    client_info: Mapping[str, Any]
    """The name and version that the client tells the server."""
    max_values: int = MAX_VALUES
    """How many JSON values a message from the server may have."""


async def open_connection(
    plan: SessionPlan, start: Callable[[], ClientConnection]
) -> ClientConnection:
    """Open the connection that *start* makes, and agree on a version.

    Raises ConnectError, RpcError or NoAnswer.
    """
    connection = start()
    await connection.open()
    try:
        connection.facts = await _agree(connection, plan)
    except ConnectionLost as lost:
        if not lost.may_have_run or plan.version is not None:
            raise
        # Some older servers end when the first message is not `initialize`.
        await connection.close()
        connection = start()
        await connection.open()
        connection.facts = await _initialize_or_discover(connection, plan)
    return connection


async def _agree(connection: ClientConnection, plan: SessionPlan) -> ServerFacts:
    wanted = plan.version
    if wanted is not None and wanted not in STATELESS:
        return await _initialize(connection, plan)
    facts = await _discover(connection, plan, must=wanted is not None)
    return facts or await _initialize_or_discover(connection, plan)


async def _initialize_or_discover(connection: ClientConnection, plan: SessionPlan) -> ServerFacts:
    """Initialize; discover again if the server is stateless and was only slow to start."""
    try:
        return await _initialize(connection, plan)
    except RpcError as error:
        if error.code not in (UNSUPPORTED_VERSION, METHOD_NOT_FOUND):
            raise
    facts = await _discover(connection, plan, must=True)
    if facts is None:
        raise NoAnswer("the server speaks no version that is known", may_have_run=False)
    return facts


async def _discover(
    connection: ClientConnection, plan: SessionPlan, *, must: bool
) -> ServerFacts | None:
    """Ask a stateless server about itself; return None for a stateful server."""
    handlers = plan.handlers
    connection.era = StatelessEra(handlers.capabilities, plan.client_info, handlers.log_level)
    try:
        result = await _discover_twice(connection, None if must else _PROBE_SECONDS)
    except RpcError as error:
        if must or (error.code == UNSUPPORTED_VERSION and not _names_stateful(error.data)):
            raise
        return None
    except NoAnswer as exc:
        status = exc.status if isinstance(exc, HttpRefused) else 0
        is_legacy = exc.code in (TIMED_OUT, INVALID_RESPONSE)
        is_legacy = is_legacy or (400 <= status < 500 and status not in (401, 403))
        if must or not is_legacy:
            raise
        return None
    supported = result.get("supportedVersions")
    if not isinstance(supported, list) or V2026_07_28.name not in supported:
        return None
    return ServerFacts.of(result, V2026_07_28)


async def _discover_twice(connection: ClientConnection, seconds: float | None) -> JsonObject:
    """Ask, and ask again if the server refuses a version that it names as supported."""
    try:
        return await _ask(connection, "server/discover", {}, seconds)
    except RpcError as error:
        supported = error.data.get("supported") if isinstance(error.data, dict) else None
        if error.code != UNSUPPORTED_VERSION or V2026_07_28.name not in (supported or ()):
            raise
    return await _ask(connection, "server/discover", {}, seconds)


async def _initialize(connection: ClientConnection, plan: SessionPlan) -> ServerFacts:
    """Open a session of the stateful era; raises RpcError or NoAnswer."""
    connection.era = StatefulEra()
    wanted = plan.version
    params: JsonObject = {
        "protocolVersion": LATEST_STATEFUL.name if wanted is None else wanted,
        "capabilities": plan.handlers.capabilities,
        "clientInfo": plan.client_info,
    }
    result = await _ask(connection, "initialize", params)
    found = result.get("protocolVersion")
    version = STATEFUL.get(str(found))
    if version is None:
        text = f"the server speaks version {found!r}; known are {', '.join(STATEFUL)}"
        raise RpcError(UNSUPPORTED_VERSION, text)
    facts = ServerFacts.of(result, version)
    connection.era = StatefulEra(version)
    await connection.notify("notifications/initialized")
    await connection.transport.listen()
    level = plan.handlers.log_level
    if level is not None and facts.offers("logging"):
        with suppress(RpcError):
            await _ask(connection, "logging/setLevel", {"level": level})
    return facts


async def _ask(
    connection: ClientConnection, method: str, params: JsonObject, seconds: float | None = None
) -> JsonObject:
    return await connection.request(ClientRequest(method, params, ProbeDeadline(seconds)))


def _names_stateful(data: Json) -> bool:
    """Return whether the server names a stateful version, or none at all."""
    supported = data.get("supported") if isinstance(data, dict) else None
    return not isinstance(supported, list) or any(each in STATEFUL for each in supported)
