"""Options for serving over HTTP, with their checks, and the help that the console shows."""

from __future__ import annotations

import re
from collections.abc import Sequence
from ipaddress import IPv4Network, IPv6Network, ip_network
from typing import TypeAlias

import msgspec

from ...contract import RESERVED_ROUTES
from ...core.limits import MAX_BODY
from ...errors import AnswerbackError

Network: TypeAlias = "IPv4Network | IPv6Network"

# The whole header must match, so that text around an allowed name is refused.
_AUTHORITY = re.compile(r"(?:\[([0-9a-f:.]+)\]|([^\s:/@,\[\]]+?)\.?)(?::\d*)?")
_LOOPBACK = re.compile(r"localhost|127(\.\d{1,3}){3}|::1")
_ROOT_PATH = re.compile(r"(/[\w.~-]+)+", re.ASCII)
_ORIGIN = re.compile(r"[a-z][a-z0-9+.-]*://[^\s/@,]+|null")
KEEP_ALIVE = 75
"""Default number of seconds that a connection stays open between requests.

nginx and AWS load balancers reuse a connection for up to 60 seconds. If the server closed it
first, a request could already be on its way, and the proxy would answer it with 502.
"""


class BadOption(AnswerbackError):
    code = "BAD_OPTION"


def is_loopback(name: str) -> bool:
    """Return whether *name* is a loopback host name or address."""
    return _LOOPBACK.fullmatch(name) is not None


def host_name(host: str) -> str:
    """Return the name in a lower-case `Host` header, without its port; empty if it is malformed."""
    found = _AUTHORITY.fullmatch(host)
    return "" if found is None else found[1] or found[2]


def _host(given: str) -> str:
    # An IPv6 address is accepted with or without brackets.
    name = given if given.count(":") > 1 and given[0] != "[" else host_name(given.lower())
    if not name:
        raise BadOption(
            f"{given!r} cannot be allowed as a host; give a name, such as tools.example.com"
        )
    return name.lower()


def _origin(given: str) -> str:
    origin = given.lower().rstrip("/")
    if origin != "*" and not _ORIGIN.fullmatch(origin):
        raise BadOption(
            f"{given!r} cannot be allowed as an origin; give a scheme and a host, "
            "such as https://app.example.com"
        )
    return origin


def networks(given: Sequence[str]) -> tuple[Network, ...]:
    """Return the networks of trusted proxies; an address is a network of one."""
    found = []
    for text in given:
        try:
            found.append(ip_network(text.strip("[]"), strict=False))
        except ValueError:
            raise BadOption(
                f"{text!r} cannot be trusted as a proxy; give an address or a network, "
                "such as 10.0.0.7 or 10.0.0.0/8"
            ) from None
    return tuple(found)


class HostSetup(msgspec.Struct, frozen=True, kw_only=True):
    """How to add the app to a program that starts MCP servers."""

    title: str
    install: str
    """The command that adds it."""
    file: str
    entry: str
    """The JSON to add to the file by hand."""
    afterwards: str
    """What the user must do before the host starts the server."""


class StartHelp(msgspec.Struct, frozen=True, kw_only=True):
    """Help for users on this machine: the program that serves the app, and how to add the app."""

    program: str
    """What to type to run the program: `python calculator.py`, or `answerback` with a target."""
    target: str
    hosts: tuple[HostSetup, ...]


class WebOptions(msgspec.Struct, frozen=True, kw_only=True):
    """Which requests are accepted, and what the application may do in its process."""

    max_body: int = MAX_BODY
    hosts: Sequence[str] = ()
    """The allowed hosts. On loopback, loopback names are allowed too; elsewhere, empty allows all.

    `serve` is stricter; see *only_addresses*.
    """
    origins: Sequence[str] = ()
    """The origins, such as `https://app.example.com`, whose web pages may send requests."""
    trusted_proxies: Sequence[str] = ()
    """The addresses and networks of proxies whose forwarded headers are trusted."""
    only_addresses: bool = False
    """If not on loopback and without *hosts*, accept only literal addresses and `localhost`."""
    sessions: bool = True
    """False serves MCP without sessions, even if the app enables them."""
    console: bool = False
    """Show the console to browsers."""
    only_local_console: bool = False
    """Show the console only to browsers on this machine, and not through a proxy."""
    start: StartHelp | None = None
    """Help on the console's first screen; it shows paths on this machine."""
    only_health: bool = False
    """Serve only the health pages: this process runs tasks and accepts no calls."""
    mcp: str = "/mcp"
    """The MCP path."""
    rest: bool = True
    """False serves only MCP, the health pages and the author's own pages."""
    auth: bool = True
    """False if anyone may call an app without `auth=`; this also silences the log message."""
    signals: bool = True
    """Run our signal handlers before those of another server that is running the application."""

    def __post_init__(self) -> None:
        set_field = msgspec.structs.force_setattr
        set_field(self, "hosts", tuple(map(_host, self.hosts)))
        set_field(self, "origins", tuple(map(_origin, self.origins)))
        networks(self.trusted_proxies)
        first = self.mcp[1:].partition("/")[0]
        is_taken = first != "mcp" and first in (*RESERVED_ROUTES, ".well-known", "console", "docs")
        if is_taken or not (self.mcp == "/" or _ROOT_PATH.fullmatch(self.mcp)):
            raise BadOption(
                f"{self.mcp!r} cannot be the MCP path; give '/', or a path such as '/models'"
            )
        if self.console and not self.rest:
            raise BadOption("console=True needs rest=True: the page calls the tools over REST too")


class ServeOptions(msgspec.Struct, frozen=True, kw_only=True):
    """How the server listens, and what it logs."""

    host: str = "127.0.0.1"
    port: int = 8000
    uds: str | None = None
    """The path of a unix socket to use instead of the host and port."""
    tls_cert: str | None = None
    tls_key: str | None = None
    """The certificate's key, unless the certificate file contains it."""
    root_path: str = ""
    """The path under which a proxy serves the app."""
    workers: int = 1
    keep_alive: int = KEEP_ALIVE
    """Seconds that a connection stays open between requests."""
    drain: int = 0
    """Seconds after SIGTERM that the server keeps serving but reports not ready."""
    log_level: str | None = None
    access_log: bool = False
    debug: bool = False
    """Send the text of unexpected exceptions to callers, who must be on this machine."""
    console: bool | None = None
    """Show the console to browsers; None shows it if only this machine can reach the server."""
    restarted: bool = False
    """Whether `--reload` started this process to replace another, so the banner is short."""
    web: WebOptions = WebOptions()

    def __post_init__(self) -> None:
        if self.tls_key is not None and self.tls_cert is None:
            raise BadOption("--tls-key needs --tls-cert as well")
        prefix = self.root_path.rstrip("/")
        if prefix and not _ROOT_PATH.fullmatch(prefix):
            raise BadOption(
                f"{self.root_path!r} cannot be a --root-path; give a path such as /tools"
            )
        msgspec.structs.force_setattr(self, "root_path", prefix)
        web = self.web
        given = {"--uds": self.uds, "--trust-proxy": web.trusted_proxies, "--allow-host": web.hosts}
        # With these flags, clients can be on other machines.
        open_flags = [flag for flag, value in given.items() if value]
        only_local = not open_flags and is_loopback(self.host)
        if self.console or (self.console is None and only_local):
            web = msgspec.structs.replace(
                web,
                console=True,
                only_local_console=self.console is None,
                # Users on other machines cannot run the program, and do not need its path.
                start=web.start if only_local else None,
            )
            msgspec.structs.force_setattr(self, "web", web)
        if self.debug and not only_local:
            # Anyone who controls the DNS of an allowed host could read the exceptions in a browser.
            conflict, advice = f"the host {self.host!r}", "give --host 127.0.0.1, or drop --debug"
            if open_flags:
                conflict, advice = open_flags[0], "leave out one of the two"
            raise BadOption(
                f"--debug shows exceptions to callers, so it serves only this machine and "
                f"cannot be used with {conflict}; {advice}"
            )
