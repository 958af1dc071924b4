"""`console`: opens a browser page for calling the tools of an App or of any server."""

from __future__ import annotations

import threading
import webbrowser
from collections.abc import Sequence
from typing import TYPE_CHECKING

from ..calls.runtime import runtime_on_loop
from ..client.connecting import with_options
from ..client.login.login_settings import auth_for
from ..client.targets import BadTarget, ServerEntry, make_transports, read_target
from ..registry.declarations import registry_of
from ..server.console.target_console import ConsoleTarget, TargetConsole
from ..server.http.server_options import ServeOptions
from ..server.process import keep_stderr
from ..server.uvicorn.listening import base_url, bind
from .help import with_start_help
from .program import (
    Program,
    add_server_options,
    refuse_server_options,
    require_widgets,
    write_stderr,
)
from .serve import port_number
from .server_target import chosen_servers, options_for_one
from .terminal_login import has_browser, terminal_login
from .terminal_peer import TerminalPeer

if TYPE_CHECKING:
    from argparse import Namespace

    from .program import ServerAddress

_DESCRIPTION = """\
The page can only be opened on this machine. For a server, its address contains a token: anyone who
has the address can run the server's tools as you."""
_STDIN = 0


def run(program: Program, arguments: Sequence[str]) -> int:
    parser = program.parser_with_target("console", description=_DESCRIPTION)
    text = "the page's port (default: a free one)"
    parser.add_argument("--port", type=port_number, default=0, help=text)
    text = "print the page's address without opening it"
    parser.add_argument("--no-browser", action="store_true", help=text)
    add_server_options(parser, program, timeout=False)
    options = parser.parse_args(arguments)
    server = program.find_server(options.target)
    if server is None:
        refuse_server_options(options)
    targets = [] if server is None else _targets(server, options)
    # Imported here because it needs uvicorn, which `console --help` does not.
    from ..server.uvicorn.uvicorn_server import serve, serve_targets

    if server is None:
        # As with `serve` on this machine, the console needs no token.
        app = require_widgets(program.load(options.target))
        served = ServeOptions(port=options.port, console=True)
        served = with_start_help(served, program, options.target, app)
        keep_stderr()
        listener = bind(served)
        _show(base_url(served, listener) + "/", options)
        return serve(runtime_on_loop(registry_of(app)), served, listener)
    # The servers are started when the page asks for them.
    keep_stderr()
    name = targets[0].name if len(targets) == 1 else str(server)
    application = TargetConsole(name, targets)
    served = ServeOptions(port=options.port)
    listener = bind(served)
    _show(f"{base_url(served, listener)}/#token={application.token}", options)
    write_stderr("Ctrl-C ends it.")
    serve_targets(application, listener)
    return 0


def _targets(server: ServerAddress, options: Namespace) -> list[ConsoleTarget]:
    """Return the servers that the page offers; raises WrongOption or BadTarget."""
    found = chosen_servers(server, options)
    if isinstance(found, ServerEntry):
        entry = with_options(found, options_for_one(options))
        name = options.server or entry.label
        label = str(server) if options.server else entry.label
        return [_target(name, label, entry, options, options.server or "")]
    entries = read_target(found)
    assert isinstance(entries, dict)
    targets = []
    for name, each in entries.items():
        try:
            if isinstance(each, BadTarget):
                raise each
            targets.append(_target(name, str(server), each, options, name))
        except BadTarget as exc:
            # The other servers can still be used.
            unusable = ConsoleTarget(name=name, target=str(server), member=name, error=str(exc))
            targets.append(unusable)
    return targets


def _target(
    name: str, label: str, entry: ServerEntry, options: Namespace, member: str
) -> ConsoleTarget:
    if entry.transport == "rest":
        raise BadTarget(f"{name} cannot be used: the console talks MCP to a URL, not REST")
    stderr = TerminalPeer(_STDIN).show_line if options.server_log else None
    auth = None
    if entry.url:
        given = options_for_one(options).get("auth") or terminal_login(entry.url, _STDIN)
        auth = auth_for(entry.url, entry.headers, given)
    return ConsoleTarget(
        name=name,
        target=label,
        member=member,
        transports=make_transports(entry, auth, inherit=bool(options.inherit_env), stderr=stderr),
        takes_token=bool(entry.url),
    )


def _show(url: str, options: Namespace) -> None:
    """Open the page, which waits until the server responds, and print its address."""
    can_open = not options.no_browser and has_browser()
    if can_open:
        # Use a thread, because some browsers do not return until they are closed.
        threading.Thread(target=webbrowser.open, args=(url,), daemon=True).start()
    verb = "The console is open in your browser" if can_open else "Open the console in a browser"
    write_stderr(f"{verb}:\n\n  {url}\n")
