"""`connect`: opens a connection to one server or several, with or without async."""

from __future__ import annotations

import os
from collections.abc import Callable, Mapping, Sequence
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

from ..core.limits import MAX_VALUES, ReceivedLimits
from ..core.peer import Level, Log
from ..registry.declarations import Change, HasRegistry
from .call_options import ClientOptions
from .child_process import StderrOption, check_stderr, line_writer
from .client_session import ClientSession, SessionPlan
from .frames import CLIENT_INFO
from .many_servers import ONE_BREAKER, ManyServers
from .remote_server import RemoteServer, opened
from .targets import BadTarget, Entries, ServerEntry, Target, make_transports, read_target
from .user_handlers import ElicitationRequest, Roots, UserHandlers

if TYPE_CHECKING:
    from ..resilience import Breaker, Limit, Retry
    from .blocking import BlockingServer
    from .frames import Transport
    from .http_requests import ClientAuth
    from .login.login_settings import Login

    class ServerDict(TypedDict, total=False):
        """One server in a host's file; lets a type checker tell it apart from several servers."""

        command: str | Sequence[str]
        args: Sequence[str]
        env: Mapping[str, str]
        cwd: str
        url: str
        headers: Mapping[str, str]
        type: str
        transport: str

    HostFile = Literal["mcp.json", ".mcp.json", ".vscode/mcp.json", ".cursor/mcp.json"]
    """Strings that a type checker recognises as a host's file. It takes any other string for one
    server, so pass a `Path` instead."""

S = TypeVar("S", bound=RemoteServer | ManyServers)

_HANDLERS = frozenset(UserHandlers.__struct_fields__)


class ConnectOptions(TypedDict, total=False):
    """Options for `connect`."""

    version: str
    """The MCP version, such as "2025-11-25"; by default the newest one that the server speaks."""
    timeout: float | None
    """How many seconds a request may take; 60 by default."""
    retry: Retry | None
    """How many times a request is resent, if that is safe."""
    breaker: Breaker | None
    """Stops requests to a failing server."""
    limit: Limit | tuple[Limit, ...] | list[Limit] | None
    """How many requests may be sent; any more are refused."""
    max_values: int
    """How many JSON values a message from the server may contain; 1,000,000 by default."""
    connect_timeout: float
    """How many seconds opening the connection may take; 30 by default."""
    client_info: Mapping[str, Any]
    """The client's `name`, `version` and optional `title`, as sent to the server."""
    wait: float | None
    """With several servers, how many seconds to wait before going on without those that have not
    answered; 5 by default, and None waits for all."""
    transport: Literal["http", "sse", "rest"]
    """How to talk to a URL; by default Streamable HTTP, then the old HTTP+SSE."""
    headers: Mapping[str, str]
    """HTTP headers to send with every request."""
    auth: ClientAuth | Login | str
    """A token, a `Login`, or an object that supplies credentials for requests."""
    env: Mapping[str, str]
    """Environment variables for the child process, in addition to the few it inherits."""
    inherit: bool
    """Whether child processes inherit this process's whole environment; False by default."""
    cwd: str
    """The child process's working directory."""
    stderr: StderrOption
    """Where the child process's stderr goes: a file, a stream such as `sys.stderr`, or a function
    that is called with each line. By default, only the end is kept, for error details."""
    output_schema: Literal["finding", "error"]
    """Whether data that violates a tool's output schema is a finding (the default) or an error."""
    tap: str | os.PathLike[str] | Callable[[str, bytes], object]
    """A new file for all messages, or a function called with each message's direction and bytes."""
    elicit: Callable[[ElicitationRequest], Any]
    """Answers a question for the user with a dict, True, None to decline, or "cancel"."""
    elicit_url: bool
    """False if `elicit` cannot send the user to a web page."""
    sample: Callable[[dict[str, Any]], Any]
    """Answers a request for text from a model, with a string or an MCP result."""
    roots: Roots
    """The folders in which the server may work, or a function that returns them."""
    on_log: Callable[[Log], object]
    """Called with the server's log messages."""
    log_level: Level
    """The lowest log level that the server should send; by default "info" if `on_log` is given."""
    on_change: Callable[[Change], object]
    """Called with changes to lists and to subscribed resources."""
    on_notification: Callable[[str, dict[str, Any]], object]
    """Called with every notification's method and parameters."""


class ConnectContext(Generic[S]):
    """The result of `connect`: `async with` or `with` opens and closes the connection.

    In a notebook, where cells cannot share a block, use `open` or `await …aopen()` instead.
    """

    def __init__(self, make: Callable[[], S]) -> None:
        self._make = make
        self._server: S | None = None
        self._blocking: BlockingServer | None = None

    async def aopen(self) -> S:
        """Open the connection; `aclose` or the server's `close` closes it. Raises ConnectError.

        Any earlier connection is closed, for example when a notebook cell is run again.
        """
        await self.aclose()
        self._server = await opened(self._make)
        return self._server

    async def aclose(self) -> None:
        """Close the connection opened by `aopen`."""
        server, self._server = self._server, None
        if server is not None:
            await server.close()

    def open(self) -> BlockingServer:
        """Open the connection without async; `close` closes it. The server's methods block."""
        from .blocking import BlockingServer

        self.close()
        self._blocking = BlockingServer.opened(self._make)
        return self._blocking

    def close(self) -> None:
        """Close the connection opened by `open`."""
        blocking, self._blocking = self._blocking, None
        if blocking is not None:
            blocking.close()

    __aenter__ = aopen

    async def __aexit__(self, *exc: object) -> None:
        await self.aclose()

    __enter__ = open

    def __exit__(self, *exc: object) -> None:
        self.close()

    def __await__(self) -> NoReturn:
        raise TypeError(
            "write `async with connect(...) as server:` or `await connect(...).aopen()`, "
            "not `await connect(...)`"
        )


@overload
def connect(
    target: ServerDict, **options: Unpack[ConnectOptions]
) -> ConnectContext[RemoteServer]: ...
@overload
def connect(  # type: ignore[overload-overlap]  # some strings are names of hosts' files
    target: Mapping[str, Any] | os.PathLike[str] | HostFile, **options: Unpack[ConnectOptions]
) -> ConnectContext[ManyServers]: ...
@overload
def connect(
    target: str | Sequence[str] | HasRegistry | ServerEntry, **options: Unpack[ConnectOptions]
) -> ConnectContext[RemoteServer]: ...
def connect(target: Target, **options: object) -> ConnectContext[Any]:
    """Connect to a server: `async with connect("python server.py") as server:`, or `with`.

    *target* is a command (a string or a list), a URL, an App in this process, or a host's dict or
    file with `mcpServers`, to connect to all of its servers. `ConnectOptions` lists the options.
    """
    unknown = options.keys() - ConnectOptions.__annotations__.keys()
    if unknown:
        raise TypeError(f"connect() has no option {', '.join(sorted(unknown))}")
    # Reject options of the wrong type before they are used.
    ClientOptions.of(options)
    match options.get("client_info", CLIENT_INFO):
        case {"name": str(), "version": str()}:
            pass
        case given:
            raise TypeError(f"client_info={given!r} should be a dict with a name and a version")
    check_stderr(options.get("stderr", ""))
    found = read_target(target)
    if isinstance(found, ServerEntry):
        entry = with_options(found, options)
        return ConnectContext(lambda: _server(entry, _with_tap(options)))
    if "transport" in options or "env" in options or "cwd" in options:
        raise BadTarget("transport, env and cwd belong to one server, not to several")
    if isinstance(options.get("auth"), str):
        raise BadTarget("a token belongs to one server; put it in the headers of its entry")
    if options.get("breaker") is not None:
        raise BadTarget(ONE_BREAKER)
    return ConnectContext(lambda: _servers(found, _with_tap(options)))


def with_options(entry: ServerEntry, options: Mapping[str, Any]) -> ServerEntry:
    """Return the entry, updated with the `connect` options that apply to a single server."""
    return msgspec.structs.replace(
        entry,
        env={**entry.env, **options.get("env", {})},
        cwd=options.get("cwd", entry.cwd),
        headers={**entry.headers, **options.get("headers", {})},
        transport=options.get("transport", entry.transport),
    )


def _servers(entries: Entries, options: Mapping[str, Any]) -> ManyServers:
    servers = {
        name: _unusable(name, entry, options)
        if isinstance(entry, BadTarget)
        else _server(entry, options, name)
        for name, entry in entries.items()
    }
    return ManyServers(servers, wait=options.get("wait", 5.0))


def _unusable(name: str, reason: BadTarget, options: Mapping[str, Any]) -> RemoteServer:
    """Return a server for an entry that cannot be understood; every request to it fails."""

    def refuse() -> NoReturn:
        raise reason

    return _remote(name, (refuse,), options)


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
        return RemoteServer(session, ClientOptions.of(options, label))
    stderr = line_writer(options["stderr"], name) if "stderr" in options else None
    inherit = options.get("inherit", False)
    makers = make_transports(entry, auth, inherit=inherit, stderr=stderr)
    if "tap" in options:
        makers = options["tap"].transports(makers, name)
    return _remote(label, makers, options)


def _with_tap(options: Mapping[str, Any]) -> Mapping[str, Any]:
    """Return the options with an open tap; raises ConnectError."""
    if "tap" not in options:
        return options
    from .tap import Tap

    return {**options, "tap": Tap(options["tap"])}


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
        client_info=dict(options.get("client_info", CLIENT_INFO)),
    )
    session = ClientSession(plan, strict=options.get("output_schema") == "error")
    return RemoteServer(session, ClientOptions.of(options, label))
