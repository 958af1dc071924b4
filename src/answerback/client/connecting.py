"""`connect`: opens a connection to one server or several, with or without async."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import (
    TYPE_CHECKING,
    Any,
    Generic,
    Literal,
    NoReturn,
    TypedDict,
    TypeVar,
    Unpack,
    overload,
)

import msgspec

from ..core.peer import Level, Log
from ..core.received_limits import MAX_VALUES, ReceivedLimits
from ..registry.declarations import Change, HasRegistry
from .call_options import ClientOptions
from .client_session import ClientSession
from .many_servers import ManyServers
from .remote_server import RemoteServer
from .targets import BadTarget, ServerEntry, Target, make_transports, read_target
from .user_handlers import ElicitationRequest, Roots, UserHandlers
from .version_choice import SessionPlan

if TYPE_CHECKING:
    from ..resilience import Breaker, Limit, Retry
    from .blocking import BlockingServer
    from .frames import Transport
    from .login.login_settings import Login
    from .transports.http_requests import ClientAuth

S = TypeVar("S", bound=RemoteServer | ManyServers)

_HANDLERS = frozenset(UserHandlers.__struct_fields__)


class ConnectOptions(TypedDict, total=False):
    """The options of `connect`."""

    version: str
    """The MCP version, such as "2025-11-25"; by default the newest that the server speaks."""
    timeout: float | None
    """Seconds that a request may take; 60 by default."""
    retry: Retry | None
    """How often a request is resent, if that is safe."""
    breaker: Breaker | None
    """Stops requests to a failing server."""
    limit: Limit | tuple[Limit, ...] | list[Limit] | None
    """How many requests may be sent; further ones are refused."""
    max_values: int
    """How many JSON values a message from the server may have; 1,000,000 by default."""
    connect_timeout: float
    """Seconds until the connection must be open; 30 by default."""
    transport: Literal["http", "sse", "rest"]
    """How to talk to a URL; by default Streamable HTTP, then the old HTTP+SSE."""
    headers: Mapping[str, str]
    """HTTP headers of every request."""
    auth: ClientAuth | Login | str
    """A token, a `Login`, or an object that gives the requests their credentials."""
    env: Mapping[str, str]
    """Environment variables for the child process, besides the few that every child gets."""
    inherit: bool
    """True gives the child process, or each of several, this process's whole environment."""
    cwd: str
    """The folder in which the child process starts."""
    output_schema: Literal["finding", "error"]
    """Whether data that breaks the tool's output schema is a finding (the default) or an error."""
    tap: str | os.PathLike[str] | Callable[[str, bytes], object]
    """A file for all messages, or a function that gets the direction and each message."""
    elicit: Callable[[ElicitationRequest], Any]
    """Answers a question to the user: with a dict, True, None to decline, or "cancel"."""
    elicit_url: bool
    """False if `elicit` cannot send its user to a page."""
    sample: Callable[[dict[str, Any]], Any]
    """Answers a request for a model's text, with a string or with MCP's result."""
    roots: Roots
    """The folders in which the server may work, or a function that returns them."""
    on_log: Callable[[Log], object]
    log_level: Level
    on_change: Callable[[Change], object]
    """Gets the changes to lists and to subscribed resources."""
    on_notification: Callable[[str, dict[str, Any]], object]
    """Gets the method and the parameters of every notification."""


class ConnectContext(Generic[S]):
    """The context manager that `connect` returns: `async with` or `with` opens the connection."""

    def __init__(self, make: Callable[[], S]) -> None:
        self._make = make
        self._server: S | None = None
        self._blocking: BlockingServer | None = None

    async def __aenter__(self) -> S:
        server = self._server = self._make()
        await server.open()
        return server

    async def __aexit__(self, *exc: object) -> None:
        server, self._server = self._server, None
        if server is not None:
            await server.close()

    def __enter__(self) -> BlockingServer:
        from .blocking import BlockingServer

        self._blocking = BlockingServer.opened(self._make)
        return self._blocking

    def __exit__(self, *exc: object) -> None:
        blocking, self._blocking = self._blocking, None
        if blocking is not None:
            blocking.close()

    def __await__(self) -> NoReturn:
        raise TypeError("write `async with connect(...) as server:`, not `await connect(...)`")


@overload
def connect(
    target: Mapping[str, Any] | os.PathLike[str], **options: Unpack[ConnectOptions]
) -> ConnectContext[ManyServers]: ...
@overload
def connect(
    target: str | Sequence[str] | HasRegistry, **options: Unpack[ConnectOptions]
) -> ConnectContext[RemoteServer]: ...
@overload
def connect(
    *, replay: str | os.PathLike[str], **options: Unpack[ConnectOptions]
) -> ConnectContext[RemoteServer]: ...
def connect(
    target: Target | None = None, *, replay: str | os.PathLike[str] | None = None, **options: object
) -> ConnectContext[Any]:
    """Connect to a server: `async with connect("python server.py") as server:`, or `with`.

    *target* is a command (a string or a list), a URL, an App in this process, or a host's dict or
    file with `mcpServers`, which connects to all of its servers. `ConnectOptions` lists the
    options. *replay* is a file that `tap` wrote, in place of a server.
    """
    unknown = options.keys() - ConnectOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"connect() has no option {', '.join(sorted(unknown))}")
    ClientOptions.of(options)  # Raises for an option of the wrong type before it is used.
    if replay is not None:
        return ConnectContext(lambda: _replayed(Path(replay), options))
    if target is None:
        raise TypeError("connect() needs a target or replay=…")
    found = read_target(target)
    if isinstance(found, ServerEntry):
        entry = _with_options(found, options)
        return ConnectContext(lambda: _server(entry, options))
    if "transport" in options or "env" in options or "cwd" in options:
        raise BadTarget("transport, env and cwd belong to one server, not to several")
    if isinstance(options.get("auth"), str):
        raise BadTarget("a token belongs to one server; write it into the headers of its entry")
    if options.get("breaker") is not None:
        raise BadTarget("a breaker belongs to one server; each server of several fails alone")
    return ConnectContext(
        lambda: ManyServers({name: _server(each, options, name) for name, each in found.items()})
    )


def _with_options(entry: ServerEntry, options: Mapping[str, Any]) -> ServerEntry:
    return msgspec.structs.replace(
        entry,
        env={**entry.env, **options.get("env", {})},
        cwd=options.get("cwd", entry.cwd),
        headers={**entry.headers, **options.get("headers", {})},
        transport=options.get("transport", entry.transport),
    )


def _server(entry: ServerEntry, options: Mapping[str, Any], name: str = "") -> RemoteServer:
    label = f"{name} ({entry.label})" if name else entry.label
    auth = options.get("auth")
    if auth is not None and entry.url:
        from .login.login_settings import auth_for

        auth = auth_for(entry.url, entry.headers, auth)
    if entry.transport == "rest":
        from .rest_session import RestSession

        limits = ReceivedLimits(values=options.get("max_values", MAX_VALUES))
        strict = options.get("output_schema") == "error"
        session = RestSession(entry, auth, limits, strict=strict)
        return RemoteServer(session, ClientOptions.of(options))
    makers = make_transports(entry, auth, inherit=options.get("inherit", False))
    if "tap" in options:
        from .tap import tapped

        makers = tapped(makers, options["tap"])
    return _remote(label, makers, options)


def _replayed(path: Path, options: Mapping[str, Any]) -> RemoteServer:
    from .tap import Replay

    return _remote(str(path), (lambda: Replay(path),), options)


def _remote(
    label: str, makers: tuple[Callable[[], Transport], ...], options: Mapping[str, Any]
) -> RemoteServer:
    handlers = {name: value for name, value in options.items() if name in _HANDLERS}
    if "on_log" in handlers:
        handlers.setdefault("log_level", "info")
    plan = SessionPlan(
        label=label,
        transports=makers,
        handlers=UserHandlers(**handlers),
        version=options.get("version"),
        connect_timeout=options.get("connect_timeout", 30.0),
        max_values=options.get("max_values", MAX_VALUES),
    )
    session = ClientSession(plan, strict=options.get("output_schema") == "error")
    return RemoteServer(session, ClientOptions.of(options))
