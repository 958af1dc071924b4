"""The text for `--help`, `--version`, unknown commands and the console's start page."""

from __future__ import annotations

import os
import shlex
import sys
from collections.abc import Sequence
from typing import TYPE_CHECKING

import msgspec

from .. import __version__
from ..core.author_errors import did_you_mean, similar_names
from ..registry.declarations import registry_of
from ..server.http.server_options import HostSetup, ServeOptions, StartHelp
from ..types.problems import counted
from .host_config import HOSTS, config_file, name_in_hosts, stdio_command
from .program import COMMANDS, WITHOUT_TARGET, Program

if TYPE_CHECKING:
    from ..app import App


def with_start_help(
    server: ServeOptions, program: Program, target: str | None, app: App
) -> ServeOptions:
    """Return the options with the start help, if there is a console to show it.

    The help is for users of this machine, who can run the program themselves.
    """
    if not server.web.console:
        return server
    env: dict[str, str] = {}
    command = stdio_command(program, target, env)
    name = name_in_hosts(registry_of(app).name)
    quoted = shlex.quote(target) if target else ""
    home = os.path.expanduser("~")
    hosts = []
    for each, host in HOSTS.items():
        # An alias for "claude".
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
    start = StartHelp(program=program.name, target=quoted, hosts=tuple(hosts))
    web = msgspec.structs.replace(server.web, start=start)
    return msgspec.structs.replace(server, web=web)


# Examples for a program that runs its own App.
_APP_EXAMPLES = {"call": "NAME x=7", "read": "URI", "prompt": "NAME x=7", "install": "claude"}
_EXAMPLES = {
    "serve": "--port 8000",
    "call": "add x=7 y=3",
    "read": "config://app",
    "prompt": "explain x=7",
    "openapi": "> openapi.json",
}

_OTHER_WORDS = {
    "run": "write: {mcp} for stdin and stdout, or {serve} for HTTP",
    "start": "write: {serve} for HTTP, or {mcp} for stdin and stdout",
    "dev": "write: {serve} --reload, which restarts after each change",
    "inspect": "write: {list} to see the tools, or npx @modelcontextprotocol/inspector {mcp}",
    "stdio": "write: {mcp}",
    "http": "write: {serve}",
    "tools": "write: {list}",
    "init": "write: {new}",
}
"""Commands from other frameworks, and what to write instead."""

_SERVERS = """\
call, list, read and prompt also work with any MCP server: a URL, a command, or an mcp.json.
  answerback list https://example.com/mcp
  answerback call "npx -y @modelcontextprotocol/server-everything" echo message=hello
"""

_FIRST_STEPS = """\
To get started, save this as calculator.py:

    from answerback import App

    app = App("calculator")

    @app.tool
    def add(x: int, y: int) -> int:
        \"\"\"Add two numbers.\"\"\"
        return x + y

    if __name__ == "__main__":
        app.run()

Then `python calculator.py list` does the same as `answerback list calculator.py`.
"""


def help_text(program: Program) -> str:
    title = "answerback: one typed Python function, one checked reply, every wire"
    if program.app is not None:
        registry = registry_of(program.app)
        title = f"{registry.name} {registry.version}: {counted(len(registry.tools), 'tool')}"
    usage = f"usage: {program.command_line('COMMAND', 'TARGET')} [options]"
    commands = ["commands:"]
    for command, summary in COMMANDS.items():
        if program.app and command in WITHOUT_TARGET and command not in _APP_EXAMPLES:
            continue
        words = (program.app and _APP_EXAMPLES.get(command)) or _EXAMPLES.get(command, "")
        target = WITHOUT_TARGET.get(command, "calculator.py")
        example = f"{program.command_line(command, target)} {words}".rstrip()
        commands += [f"  {command:8} {summary}", f"  {'':8}   {example}"]
    more = f"Run `{program.command_line('COMMAND')} --help` for help on a command."
    parts = [title, usage, "\n".join(commands), more]
    if not program.app:
        parts += [_SERVERS.rstrip(), _FIRST_STEPS.rstrip()]
    return "\n\n".join(parts) + "\n"


def version_text(program: Program) -> str:
    if program.app is None:
        return f"answerback {__version__}\n"
    registry = registry_of(program.app)
    return f"{registry.name} {registry.version} (answerback {__version__})\n"


def unknown_command(program: Program, word: str, arguments: Sequence[str]) -> str:
    """Return the error for a word that is not a command, with a suggestion."""
    if (meant := _OTHER_WORDS.get(word)) is not None:
        target = next((each for each in arguments if not each.startswith("-")), "calculator.py")
        hint = meant.format(
            **{each: program.command_line(each, target) for each in ("mcp", "serve", "list")},
            new=f"{program.command_line('new')} my-notes",
        )
    elif similar := similar_names(word, COMMANDS, 2):
        hint = did_you_mean(similar, quoted=False)
    elif program.app is None and (".py" in word or ":" in word):
        hint = f"the command comes first: {program.command_line('list', word)}"
    else:
        hint = f"the commands are {', '.join(COMMANDS)}"
    return f"error: unknown command {word!r}; {hint}"
