"""`install`: adds the server to the configuration of a program that starts MCP servers."""

from __future__ import annotations

import json
import os
import re
import stat
import sys
from collections.abc import Sequence
from datetime import datetime
from difflib import unified_diff
from tempfile import mkstemp
from typing import TYPE_CHECKING

from ..errors import AnswerbackError
from ..records.event import folder_lock
from ..registry.declarations import registry_of
from ..server.standard_streams import Stdout, take_stdout
from .host_config import HOSTS, HostConfig, config_file
from .json_members import CannotEdit, parse, with_member
from .program import Program, add_repeatable, printable, write_stderr, write_stdout
from .stdio_command import name_in_hosts, stdio_command

if TYPE_CHECKING:
    from argparse import Namespace

    from ..app import App
    from ..core.json_value import Json, JsonObject

_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DECLINED = 1


class CannotInstall(AnswerbackError):
    """The configuration cannot be changed; nothing was written."""

    code = "CANNOT_INSTALL"


def run(program: Program, arguments: Sequence[str]) -> int:
    options = _parse(program, arguments)
    out = take_stdout()
    app = program.load(options.target)
    host = HOSTS[options.host]
    name = _server_name(options.name, app)
    env = dict(map(_variable, options.env))
    entry = host.entry(stdio_command(program, options.target, env), env)
    if options.print:
        write_stdout(out, _snippet(host, name, entry).encode())
        return 0
    file = options.config or config_file(
        options.host, sys.platform, os.environ, os.path.expanduser("~")
    )
    return _install(_Change(os.path.realpath(file), host, name, entry), out, yes=options.yes)


def _parse(program: Program, arguments: Sequence[str]) -> Namespace:
    usage = "HOST [options]" if program.app else "HOST TARGET [options]"
    parser = program.parser("install", usage)
    names = ", ".join(HOSTS)
    parser.add_argument("host", metavar="HOST", choices=HOSTS, help=f"one of {names}")
    program.add_target(parser)
    parser.add_argument("--yes", action="store_true", help="change the file without asking")
    parser.add_argument("--print", action="store_true", help="only print the JSON to add by hand")
    parser.add_argument("--name", help="the name of the server there (default: the App's name)")
    add_repeatable(parser, "--env", "K=V", "a variable for the server's environment")
    parser.add_argument(
        "--config", metavar="FILE", help="another file, such as .vscode/mcp.json of a project"
    )
    return parser.parse_args(arguments)


def _server_name(given: str | None, app: App) -> str:
    if given is None:
        return name_in_hosts(registry_of(app).name)
    if not _NAME.fullmatch(given):
        raise CannotInstall(
            f"{given!r} cannot be a server's name; use letters, digits, hyphens and underscores"
        )
    return given


def _variable(given: str) -> tuple[str, str]:
    name, equals, value = given.partition("=")
    if not equals or not name:
        raise CannotInstall(f"{given!r} is no variable; write --env NAME=VALUE")
    return name, value


def _snippet(host: HostConfig, name: str, entry: JsonObject) -> str:
    return json.dumps({host.servers: {name: entry}}, indent=2, ensure_ascii=False) + "\n"


class _Change:
    """The file as it is, and as it will be."""

    def __init__(self, file: str, host: HostConfig, name: str, entry: JsonObject) -> None:
        self.file = file
        self.host = host
        self.before = _read(file)
        try:
            found = {} if not self.before.strip("\ufeff \t\r\n") else parse(self.before)
            wanted = _merged(found, host.servers, name, entry)
            value = wanted[host.servers][name]
            same = found == wanted
            path = (host.servers, name)
            self.after = self.before if same else with_member(self.before, path, value)
            if parse(self.after) != wanted:
                raise CannotEdit("its form is not understood")
        except CannotEdit as exc:
            raise CannotInstall(
                f"{file} was not changed: {exc}. Add this by hand:\n{_snippet(host, name, entry)}"
            ) from None

    def diff(self) -> str:
        lines = unified_diff(
            self.before.splitlines(keepends=True),
            self.after.splitlines(keepends=True),
            self.file if self.before else "/dev/null",
            self.file,
        )
        return "".join(line if line.endswith("\n") else f"{line}\n" for line in lines)

    def write(self) -> str | None:
        """Replace the file in one step, and return the path of the old one's copy."""
        try:
            os.makedirs(os.path.dirname(self.file), exist_ok=True)
            # Another installation at the same time must not replace what this one writes.
            with folder_lock(self.file):
                return self._write()
        except OSError as exc:
            raise CannotInstall(f"cannot write {self.file}: {exc.strerror}") from None

    def _write(self) -> str | None:
        if _read(self.file) != self.before:
            raise CannotInstall(f"{self.file} was changed meanwhile; nothing was written")
        old = os.stat(self.file) if os.path.exists(self.file) else None
        backup = None if old is None else _back_up(self.file, self.before, old)
        try:
            _replace(self.file, self.after, old)
        except OSError:
            if backup is not None:
                os.unlink(backup)
            raise
        return backup


def _merged(found: Json, servers: str, name: str, entry: JsonObject) -> dict[str, JsonObject]:
    """Return the configuration with the entry; an older entry's other members stay."""
    if not isinstance(found, dict) or not isinstance(found.get(servers, {}), dict):
        raise CannotEdit("an object was expected where it has something else")
    older = found.get(servers, {}).get(name, {})
    if not isinstance(older, dict):
        raise CannotEdit(f"its entry {name!r} is no object")
    if "url" in older or "httpUrl" in older:
        raise CannotEdit(f"its entry {name!r} is a remote server; give this one another --name")
    older_env = older.get("env", {})
    if not isinstance(older_env, dict):
        raise CannotEdit(f"its entry {name!r} has an 'env' that is no object")
    env = {**older_env, **entry.get("env", {})}
    newer = {**older, **entry} | ({"env": env} if env else {})
    return {**found, servers: {**found.get(servers, {}), name: newer}}


def _install(change: _Change, out: Stdout, *, yes: bool) -> int:
    if change.after == change.before:
        write_stdout(out, f"{change.file} has this server already\n".encode())
        return 0
    write_stdout(out, printable(change.diff()).encode())
    if not yes and not _is_agreed(change.file):
        write_stderr("nothing was changed")
        return _DECLINED
    backup = change.write()
    kept = f" The file as it was before: {backup}" if backup else ""
    text = f"{change.file} is written.{kept}\nNext: {change.host.afterwards}.\n"
    write_stdout(out, printable(text).encode())
    return 0


def _is_agreed(file: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise CannotInstall("stdin is not a terminal, so nobody can be asked; give --yes")
    sys.stderr.write(printable(f"Change {file}? [y/N] "))
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _read(file: str) -> str:
    try:
        # Reading a pipe would wait for ever, and a device would be replaced by a file.
        if not stat.S_ISREG(os.stat(file).st_mode):
            raise CannotInstall(f"{file} is not a regular file")
        with open(file, encoding="utf-8", newline="") as opened:
            return opened.read()
    except FileNotFoundError:
        return ""
    except (OSError, UnicodeDecodeError) as exc:
        reason = getattr(exc, "strerror", None) or "it is not UTF-8"
        raise CannotInstall(f"cannot read {file}: {reason}") from None


def _back_up(file: str, text: str, old: os.stat_result) -> str:
    """Write *text* beside the file, under an unused name."""
    stem = f"{file}.{datetime.now():%Y%m%d-%H%M%S}"
    for number in range(100):
        backup = f"{stem}-{number}.bak" if number else f"{stem}.bak"
        try:
            descriptor = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            continue
        _write_whole(descriptor, backup, text, old)
        return backup
    raise CannotInstall(f"there are too many copies beside {file}; nothing was written")


def _replace(file: str, text: str, old: os.stat_result | None) -> None:
    descriptor, written = mkstemp(dir=os.path.dirname(file))
    _write_whole(descriptor, written, text, old)
    try:
        if old is not None:
            os.chmod(written, stat.S_IMODE(old.st_mode))
        os.replace(written, file)
    except OSError:
        os.unlink(written)
        raise


def _write_whole(descriptor: int, path: str, text: str, old: os.stat_result | None) -> None:
    """Write a new file, which gets the owner of the *old* one; remove it if that fails."""
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as opened:
            opened.write(text)
        if old is not None and old.st_uid != os.stat(path).st_uid:
            os.chown(path, old.st_uid, old.st_gid)
    except OSError:
        os.unlink(path)
        raise
