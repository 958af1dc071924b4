"""`install`: adds the server to the configuration of a program that starts MCP servers.

The file may contain comments. It is edited as text, so that only the server's entry changes.
"""

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
from typing import TYPE_CHECKING, NamedTuple

from ..core.json_value import Json
from ..errors import AnswerbackError
from ..records.event import folder_lock
from ..registry.declarations import registry_of
from ..rules.lint.rewriting import Element, elements
from ..server.process import take_stdout
from .host_config import HOSTS, HostConfig, config_file, name_in_hosts, stdio_command
from .program import Program, add_repeatable, printable, write_stderr, write_stdout

if TYPE_CHECKING:
    from argparse import Namespace

    from ..core.json_value import JsonObject


_NAME = re.compile(r"[A-Za-z0-9_-]{1,64}")
_DECLINED = 1
_STRING = rb'"(?:[^"\\\n]|\\.)*"'
_COMMENT = re.compile(_STRING + rb"|//[^\n]*|/\*.*?\*/|\A\xef\xbb\xbf", re.DOTALL)
_LAST_COMMA = re.compile(_STRING + rb"|,(?=\s*[}\]])")


class CannotInstall(AnswerbackError):
    """The configuration cannot be changed; nothing was written."""

    code = "CANNOT_INSTALL"


def run(program: Program, arguments: Sequence[str]) -> int:
    options = _parse(program, arguments)
    out = take_stdout()
    app = program.load(options.target)
    host = HOSTS[options.host]
    name = options.name
    if name is None:
        name = name_in_hosts(registry_of(app).name)
    elif not _NAME.fullmatch(name):
        raise CannotInstall(
            f"{name!r} cannot be a server's name; use letters, digits, hyphens and underscores"
        )
    env = {}
    for given in options.env:
        variable, equals, value = given.partition("=")
        if not equals or not variable:
            raise CannotInstall(f"{given!r} is not a variable; write --env NAME=VALUE")
        env[variable] = value
    entry = host.entry(stdio_command(program, options.target, env), env)
    if options.print:
        write_stdout(out, _snippet(host, name, entry).encode())
        return 0
    file = options.config or config_file(
        options.host, sys.platform, os.environ, os.path.expanduser("~")
    )
    change = _Change(os.path.realpath(file), host, name, entry)
    if change.after == change.before:
        write_stdout(out, f"{change.file} already has this server\n".encode())
        return 0
    write_stdout(out, printable(change.diff()).encode())
    if not options.yes and not _confirm(change.file):
        write_stderr("nothing was changed")
        return _DECLINED
    backup = change.write()
    kept = f" The old file was copied to {backup}" if backup else ""
    text = f"{change.file} was written.{kept}\nNext: {host.afterwards}.\n"
    write_stdout(out, printable(text).encode())
    return 0


def _parse(program: Program, arguments: Sequence[str]) -> Namespace:
    usage = "HOST [options]" if program.app else "HOST TARGET [options]"
    parser = program.parser("install", usage)
    names = ", ".join(HOSTS)
    parser.add_argument("host", metavar="HOST", choices=HOSTS, help=f"one of {names}")
    program.add_target(parser)
    parser.add_argument("--yes", action="store_true", help="change the file without asking")
    parser.add_argument("--print", action="store_true", help="only print the JSON to add by hand")
    parser.add_argument("--name", help="the server's name in the file (default: the App's name)")
    add_repeatable(parser, "--env", "K=V", "an environment variable for the server")
    text = "another file, such as a project's .vscode/mcp.json"
    parser.add_argument("--config", metavar="FILE", help=text)
    return parser.parse_args(arguments)


def _snippet(host: HostConfig, name: str, entry: JsonObject) -> str:
    return json.dumps({host.servers: {name: entry}}, indent=2, ensure_ascii=False) + "\n"


class _Change:
    """The file before and after the change."""

    def __init__(self, file: str, host: HostConfig, name: str, entry: JsonObject) -> None:
        self.file = file
        self.before = _read(file)
        try:
            found = parse(self.before) if self.before.strip("\ufeff \t\r\n") else {}
            wanted = _merged(found, host.servers, name, entry)
            self.after = self.before
            if found != wanted:
                value = wanted[host.servers][name]
                self.after = with_member(self.before, (host.servers, name), value)
            if parse(self.after) != wanted:
                raise CannotEdit("its format is not supported")
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
        """Replace the file atomically, and return the path of the backup."""
        try:
            os.makedirs(os.path.dirname(self.file), exist_ok=True)
            # A concurrent installation must not overwrite this one's changes.
            with folder_lock(self.file):
                if _read(self.file) != self.before:
                    raise CannotInstall(f"{self.file} changed in the meantime; nothing was written")
                old = os.stat(self.file) if os.path.exists(self.file) else None
                backup = None if old is None else _back_up(self.file, self.before, old)
                try:
                    _replace(self.file, self.after, old)
                except OSError:
                    if backup is not None:
                        os.unlink(backup)
                    raise
                return backup
        except OSError as exc:
            raise CannotInstall(f"cannot write {self.file}: {exc.strerror}") from None


def _merged(found: Json, servers: str, name: str, entry: JsonObject) -> dict[str, JsonObject]:
    """Return the configuration with the entry; an existing entry's other members are kept."""
    if not isinstance(found, dict) or not isinstance(found.get(servers, {}), dict):
        raise CannotEdit("expected an object, found something else")
    older = found.get(servers, {}).get(name, {})
    if not isinstance(older, dict):
        raise CannotEdit(f"its entry {name!r} is not an object")
    if "url" in older or "httpUrl" in older:
        raise CannotEdit(f"its entry {name!r} is a remote server; give this one another --name")
    older_env = older.get("env", {})
    if not isinstance(older_env, dict):
        raise CannotEdit(f"its entry {name!r} has an 'env' that is not an object")
    env = {**older_env, **entry.get("env", {})}
    newer = {**older, **entry} | ({"env": env} if env else {})
    return {**found, servers: {**found.get(servers, {}), name: newer}}


def _confirm(file: str) -> bool:
    if sys.stdin is None or not sys.stdin.isatty():
        raise CannotInstall("cannot ask for confirmation: stdin is not a terminal; pass --yes")
    sys.stderr.write(printable(f"Change {file}? [y/N] "))
    sys.stderr.flush()
    return sys.stdin.readline().strip().lower() in ("y", "yes")


def _read(file: str) -> str:
    try:
        # Reading a pipe would block forever, and a device would be replaced with a file.
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
    """Write *text* next to the file, under an unused name."""
    stem = f"{file}.{datetime.now():%Y%m%d-%H%M%S}"
    for number in range(100):
        backup = f"{stem}-{number}.bak" if number else f"{stem}.bak"
        try:
            descriptor = os.open(backup, os.O_WRONLY | os.O_CREAT | os.O_EXCL, 0o600)
        except FileExistsError:
            continue
        _write_new(descriptor, backup, text, old)
        return backup
    raise CannotInstall(f"there are too many copies next to {file}; nothing was written")


def _replace(file: str, text: str, old: os.stat_result | None) -> None:
    descriptor, written = mkstemp(dir=os.path.dirname(file))
    _write_new(descriptor, written, text, old)
    try:
        if old is not None:
            os.chmod(written, stat.S_IMODE(old.st_mode))
        os.replace(written, file)
    except OSError:
        os.unlink(written)
        raise


def _write_new(descriptor: int, path: str, text: str, old: os.stat_result | None) -> None:
    """Write a new file with the *old* one's owner; remove it if that fails."""
    try:
        with open(descriptor, "w", encoding="utf-8", newline="") as opened:
            opened.write(text)
        if old is not None and old.st_uid != os.stat(path).st_uid:
            os.chown(path, old.st_uid, old.st_gid)
    except OSError:
        os.unlink(path)
        raise


class CannotEdit(ValueError):
    """The text is not JSON, or something that must be an object is not one."""


class _Object(NamedTuple):
    """An object in JSON text, from its opening brace to just after its closing one."""

    start: int
    end: int
    members: dict[str | int, Element]


def parse(text: str) -> Json:
    """Read JSON with comments; raises CannotEdit."""
    try:
        return json.loads(_plain(_without_comments(text.encode())), object_pairs_hook=_members_once)
    except json.JSONDecodeError as exc:
        raise CannotEdit(f"it is not JSON (line {exc.lineno}: {exc.msg})") from None
    except CannotEdit:  # Also a ValueError.
        raise
    except RecursionError:
        raise CannotEdit("it is nested too deeply") from None
    except ValueError:
        raise CannotEdit("it has a number that is too long") from None


def _members_once(pairs: list[tuple[str, Json]]) -> Json:
    names = [name for name, _ in pairs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise CannotEdit(f"it has a duplicate key {twice[0]!r}")
    return dict(pairs)


def with_member(text: str, path: tuple[str, str], value: Json) -> str:
    """Return the text with *path* (`("servers", "notes")`) set to *value*; raises CannotEdit."""
    if not text.strip("\ufeff \t\r\n"):
        return json.dumps({path[0]: {path[1]: value}}, indent=2, ensure_ascii=False) + "\n"
    raw = text.encode()
    plain = _plain(_without_comments(raw))
    outer = _object_at(plain, len(plain) - len(plain.lstrip()), len(plain.rstrip()))
    holder = outer.members.get(path[0])
    if holder is None:
        return _added(raw, outer, path[0], {path[1]: value}).decode()
    inner = _object_at(plain, outer.start + holder.value, outer.start + holder.end)
    member = inner.members.get(path[1])
    if member is None:
        return _added(raw, inner, path[1], value).decode()
    start, end = inner.start + member.value, inner.start + member.end
    if plain[start:end] != raw[start:end]:
        raise CannotEdit(f"the entry {path[1]!r} has comments, which would be lost")
    written = _written(raw, value, _indent_at(raw, inner.start + member.start))
    return (raw[:start] + written + raw[end:]).decode()


def _added(raw: bytes, place: _Object, name: str, value: Json) -> bytes:
    """Return the text with a new member at the end of an object."""
    closing = place.end - 1
    outer_indent = _indent_at(raw, place.start)
    body = raw[place.start + 1 : closing]
    indent = outer_indent + _unit(raw)
    if place.members:
        last = list(place.members.values())[-1]
        own = _indent_at(raw, place.start + last.start)
        # Equal indentation means that the object is on one line.
        indent = indent if own == outer_indent else own
        if not re.match(rb"\s*,", _without_comments(raw)[place.start + last.end :]):
            body = body[: last.end - 1] + b"," + body[last.end - 1 :]
    line = _line_break(raw)
    member = json.dumps(name, ensure_ascii=False).encode() + b": " + _written(raw, value, indent)
    before = raw[: place.start + 1] + body.rstrip()
    return before + line + indent + member + line + outer_indent + raw[closing:]


def _object_at(plain: bytes, start: int, end: int) -> _Object:
    if plain[start : start + 1] != b"{":
        raise CannotEdit("expected an object, found something else")
    try:
        return _Object(start, end, {each.key: each for each in elements(plain[start:end])})
    except ValueError:  # For example, NaN.
        raise CannotEdit("its format is not supported") from None


def _without_comments(raw: bytes) -> bytes:
    """Return the text with comments replaced by spaces; lines and offsets do not change."""

    def blank(found: re.Match[bytes]) -> bytes:
        return found[0] if found[0][:1] == b'"' else re.sub(rb"[^\n]", b" ", found[0])

    return _COMMENT.sub(blank, raw)


def _plain(raw: bytes) -> bytes:
    """Return the text with trailing commas replaced by spaces."""
    return _LAST_COMMA.sub(lambda found: b" " if found[0] == b"," else found[0], raw)


def _written(raw: bytes, value: Json, indent: bytes) -> bytes:
    text = json.dumps(value, indent=_unit(raw).decode(), ensure_ascii=False)
    return text.encode().replace(b"\n", _line_break(raw) + indent)


def _line_break(raw: bytes) -> bytes:
    return b"\r\n" if b"\r\n" in raw else b"\n"


def _unit(raw: bytes) -> bytes:
    """Return the indentation of one level, taken from the first indented line."""
    found = re.search(rb"\n([ \t]+)\S", raw)
    return found[1] if found else b"  "


def _indent_at(raw: bytes, place: int) -> bytes:
    """Return the whitespace at the start of the line that contains *place*."""
    found = re.compile(rb"[ \t]*").match(raw, raw.rfind(b"\n", 0, place) + 1)
    return found[0] if found else b""
