"""Help on the console's first screen: a program's commands, and its entry for each host."""

from __future__ import annotations

import os
import shlex
import sys
from typing import TYPE_CHECKING

import msgspec

from ..registry.declarations import registry_of
from ..server.http.server_options import HostSetup, ServeOptions, StartHelp
from .host_config import HOSTS, config_file
from .stdio_command import name_in_hosts, stdio_command

if TYPE_CHECKING:
    from ..app import App
    from .program import Program


def with_start_help(
    server: ServeOptions, program: Program, target: str | None, app: App
) -> ServeOptions:
    """Return the options with the help, if there is a console that shows it."""
    if not server.web.console:
        return server
    web = msgspec.structs.replace(server.web, start=start_help(program, target, app))
    return msgspec.structs.replace(server, web=web)


def start_help(program: Program, target: str | None, app: App) -> StartHelp:
    """Return the help for users of this machine, who can run the program themselves."""
    env: dict[str, str] = {}
    command = stdio_command(program, target, env)
    name = name_in_hosts(registry_of(app).name)
    quoted = shlex.quote(target) if target else ""
    home = os.path.expanduser("~")
    hosts = []
    for each, host in HOSTS.items():
        # The other name of "claude".
        if each == "claude-desktop":
            continue
        file = config_file(each, sys.platform, os.environ, home)
        entry = {host.servers: {name: host.entry(command, env)}}
        hosts.append(
            HostSetup(
                title=host.title,
                install=f"{program.name} install {each} {quoted}".rstrip(),
                file=file.replace(home, "~", 1) if file.startswith(home) else file,
                entry=msgspec.json.format(msgspec.json.encode(entry), indent=2).decode(),
                afterwards=host.afterwards,
            )
        )
    return StartHelp(program=program.name, target=quoted, hosts=tuple(hosts))
