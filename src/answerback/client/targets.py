"""Reads the target of `connect`: a command, a URL, an App, a host's file, or a dict.

`make_transports` returns the transports for a server once its target has been read.
"""

from __future__ import annotations

import json
import os
import re
import shlex
import sys
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ..core.json_value import Json
from ..core.secrets import mask_command, mask_url
from ..registry.declarations import HasRegistry, Registry, registry_of
from .child_process import ChildProcess, child_environment
from .faults import ConnectError
from .frames import Transport

if TYPE_CHECKING:
    from .http_requests import ClientAuth


_VARIABLE = re.compile(
    r"\$\{(/|(?:input|config|command|workspaceFolder):[^}-][^}]*|(?:env:)?[A-Za-z_]\w*)"
    r"(?::-([^}]*))?\}"
)
_EDITORS = frozenset(
    {
        *("file", "fileBasename", "fileBasenameNoExtension", "fileDirname", "fileDirnameBasename"),
        *("fileExtname", "fileWorkspaceFolder", "relativeFile", "relativeFileDirname"),
        *("lineNumber", "columnNumber", "selectedText", "execPath", "defaultBuildTask"),
    }
)
"""VS Code's variables for the open file; no file is open here."""
_PROJECT_FOLDERS = (".vscode", ".cursor")
_ASSIGNMENT = re.compile(r"(?:export\s+)?([A-Za-z_][\w.-]*)\s*=\s*(.*)")
_QUOTED = re.compile(r"""(["'])(.*?)\1\s*(?:#.*)?""")


class HostContext(msgspec.Struct, frozen=True):
    """The folders for a host's file, and the values of the variables that the host defines."""

    workspace: Path
    start: str | None = None
    """The working directory of servers without `cwd`; None means this process's."""
    variables: dict[str, str] = {}

    @classmethod
    def of(cls, config: Mapping[str, Any], file: Path | None) -> HostContext:
        """Return the context for a host's file, or for a dict in this process's folder."""
        folder = Path.cwd() if file is None else file.absolute().parent
        workspace = folder.parent if folder.name.startswith(".") else folder
        in_project = folder.name in _PROJECT_FOLDERS or (file and file.name == ".mcp.json")
        # Such a file in the home folder applies to all projects.
        start = str(workspace) if in_project and workspace != Path.home() else None
        variables = {
            "workspaceFolder": str(workspace),
            "workspaceFolderBasename": workspace.name,
            "userHome": str(Path.home()),
            "cwd": os.getcwd(),
            "pathSeparator": os.sep,
            "/": os.sep,
        }
        # VS Code's inputs, which may have defaults.
        inputs = config.get("inputs")
        for each in inputs if isinstance(inputs, list) else ():
            if isinstance(each, Mapping) and each.get("default") is not None:
                variables[f"input:{each.get('id')}"] = str(each["default"])
        return cls(workspace, start, variables)

    def filled(self, value: Json) -> Any:
        """Replace `${NAME}` in a value; raises LookupError."""
        if isinstance(value, str):
            return _VARIABLE.sub(lambda found: self._variable(found[1], found[2]), value)
        if isinstance(value, Mapping):
            return {key: self.filled(each) for key, each in value.items()}
        if isinstance(value, list | tuple):
            return [self.filled(each) for each in value]
        return value

    def _variable(self, name: str, default: str | None) -> str:
        """Return a variable's value; the `api-key` input is the environment variable `API_KEY`."""
        default = self.variables.get(name, default)
        kind, colon, rest = name.partition(":")
        variable = rest if kind == "env" and colon else name
        if kind == "input":
            variable = re.sub(r"\W", "_", rest).upper()
        found = os.environ.get(variable, default)
        if found is None and (name in _EDITORS or (colon and kind not in ("env", "input"))):
            raise LookupError(f"uses ${{{name}}}, which only an editor knows; write the value")
        if found is None:
            raise LookupError(f"needs the environment variable {variable}")
        return found

    def path(self, given: str) -> Path:
        """Resolve a path from the file, relative to the workspace."""
        return self.workspace / Path(given).expanduser()


def read_env_file(path: Path) -> dict[str, str]:
    """Return the variables in a file of `NAME=VALUE` lines; raises OSError or ValueError."""
    found = {}
    for number, line in enumerate(path.read_text(encoding="utf-8-sig").splitlines(), 1):
        text = line.strip()
        if not text or text.startswith("#"):
            continue
        assignment = _ASSIGNMENT.fullmatch(text)
        value = None if assignment is None else _value(assignment[2])
        if assignment is None or value is None:
            raise ValueError(f"line {number} is not NAME=VALUE")
        found[assignment[1]] = value
    return found


def _value(text: str) -> str | None:
    """Return a value without its quotes or comment; None if a quote is not closed."""
    if not text.startswith(("'", '"')):
        return re.split(r"(?:^|\s)#", text)[0].rstrip()
    quoted = _QUOTED.fullmatch(text)
    if quoted is None:
        return None
    return quoted[2].replace("\\n", "\n") if quoted[1] == '"' else quoted[2]


Target: TypeAlias = (
    "str | Sequence[str] | Mapping[str, Any] | os.PathLike[str] | HasRegistry | ServerEntry"
)
_URL = re.compile(r"https?://", re.IGNORECASE)
_STRING = r'("(?:[^"\\]|\\.)*")'
_COMMENT = re.compile(_STRING + r"|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(_STRING + r"|,(?=\s*[}\]])")
_GROUPS = ("mcpServers", "servers", "context_servers", "mcp")
"""The members of hosts' files that hold servers by name."""


class BadTarget(ConnectError, ValueError):
    """`connect` cannot understand its target."""

    code = "BAD_TARGET"


class ServerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One server in a host's file; either a command or a URL."""

    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str = ""
    headers: dict[str, str] = {}
    transport: str = ""
    """"http", "sse" or "rest"; detected by default."""
    app: Registry | None = None

    @property
    def label(self) -> str:
        """The server's name in errors, without passwords or tokens."""
        if self.app is not None:
            return self.app.name
        return mask_url(self.url) or shlex.join(mask_command(self.command))

    def __repr__(self) -> str:
        # The environment and the headers may hold secrets.
        return f"<ServerEntry {self.label}>"


Entries: TypeAlias = "dict[str, ServerEntry | BadTarget]"
"""Several servers by name; a malformed entry does not affect the others."""


def read_target(target: Target) -> ServerEntry | Entries:
    """Return one server, or several by name; raises BadTarget."""
    if isinstance(target, ServerEntry):
        return target
    if isinstance(target, HasRegistry):
        return ServerEntry(app=registry_of(target))
    if isinstance(target, Mapping):
        return read_config(target)
    if isinstance(target, os.PathLike):
        return _read_file(Path(target))
    if isinstance(target, str):
        return _read_text(target)
    if not isinstance(target, Sequence):
        text = "connect(…) takes a command, a URL, an App, a dict or a path, not"
        raise TypeError(f"{text} {type(target).__name__}")
    if target and all(isinstance(each, str) for each in target):
        return ServerEntry(command=tuple(target))
    words = mask_command([str(each) for each in target])
    raise BadTarget(f"connect({words}): the target should be a command, a URL, an App or a dict")


def _read_text(text: str) -> ServerEntry | Entries:
    if _URL.match(text):
        return ServerEntry(url=text)
    if text.endswith((".json", ".jsonc")) and (os.path.isfile(text) or " " not in text):
        return _read_file(Path(text))
    if text.endswith(".py") and os.path.isfile(text):
        return ServerEntry(command=(sys.executable, text))
    words = shlex.split(text, posix=os.name == "posix")
    if not words:
        raise BadTarget("connect('') needs a command or a URL")
    return ServerEntry(command=tuple(words))


def _read_file(path: Path) -> ServerEntry | Entries:
    try:
        text = path.read_text(encoding="utf-8-sig")
        # VS Code allows comments and trailing commas in its JSON.
        for left_out in (_COMMENT, _LAST_COMMA):
            text = left_out.sub(lambda found: found[1] or "", text)
        found = json.loads(text, object_pairs_hook=_members)
    except OSError as exc:
        raise BadTarget(f"cannot read {path}: {exc.strerror}") from None
    except BadTarget as exc:
        raise BadTarget(f"{path}: {exc}") from None
    except ValueError as exc:
        raise BadTarget(f"{path} is not JSON: {exc}") from None
    if not isinstance(found, dict):
        raise BadTarget(f"{path} should hold an object with mcpServers")
    return read_config(found, path)


def _members(pairs: list[tuple[str, Json]]) -> dict[str, Json]:
    """Return an object's members; raises BadTarget for a duplicate name."""
    names = [name for name, _ in pairs]
    if twice := [name for name in names if names.count(name) > 1]:
        raise BadTarget(f"{twice[0]!r} appears twice; remove one of them")
    return dict(pairs)


def read_config(config: Mapping[str, Any], file: Path | None = None) -> ServerEntry | Entries:
    """Read a host's file, or a dict; a dict with a command or a URL is one server."""
    host = HostContext.of(config, file)
    config = _with_project(config)
    for group in _GROUPS:
        found = config.get(group)
        if isinstance(found, list):
            # Continue writes a list of named servers.
            listed = [each for each in found if isinstance(each, Mapping) and "name" in each]
            found = _members([(str(each["name"]), each) for each in listed])
        if not isinstance(found, Mapping):
            continue
        if isinstance(found.get("servers"), Mapping):
            found = found["servers"]
        return _read_entries(found, host)
    if "command" in config or _url_of(config):
        return _read_entry(config, "the server", host)
    raise BadTarget("a dict for connect should have mcpServers, servers, command or url")


def _with_project(config: Mapping[str, Any]) -> Mapping[str, Any]:
    """Add the servers that `~/.claude.json` lists for the current folder or a parent folder."""
    projects = config.get("projects")
    if not isinstance(projects, Mapping):
        return config
    here = Path.cwd()
    found = [projects[str(each)] for each in (here, *here.parents) if str(each) in projects]
    servers = found[0].get("mcpServers") if found and isinstance(found[0], Mapping) else None
    if not isinstance(servers, Mapping):
        return config
    return {**config, "mcpServers": {**(config.get("mcpServers") or {}), **servers}}


def _read_entries(named: Mapping[str, Any], host: HostContext) -> Entries:
    """Read the enabled entries; raises BadTarget if none can be understood."""
    found: Entries = {}
    for key, entry in named.items():
        name = str(key)
        if isinstance(entry, Mapping) and (
            entry.get("disabled") or entry.get("enabled", True) is False
        ):
            continue
        try:
            found[name] = _read_entry(entry, name, host)
        except BadTarget as exc:
            found[name] = exc
    bad = [each for each in found.values() if isinstance(each, BadTarget)]
    if bad and len(bad) == len(found):
        raise BadTarget("; ".join(map(str, bad)))
    return found


def _url_of(entry: Mapping[str, Any]) -> str:
    return next((str(entry[key]) for key in ("url", "serverUrl", "httpUrl") if entry.get(key)), "")


def _read_entry(entry: Json, name: str, host: HostContext) -> ServerEntry:
    if isinstance(entry, HasRegistry):
        return ServerEntry(app=registry_of(entry))
    if not isinstance(entry, Mapping):
        kind = type(entry).__name__
        raise BadTarget(f"{name} should be an object with command or url, not a {kind}")
    try:
        filled = host.filled(dict(entry))
    except LookupError as exc:
        raise BadTarget(f"{name} {exc}") from None
    if isinstance(filled.get("command"), Mapping):
        # Older Zed files have an object with path, args and env.
        filled = {**filled["command"], "command": filled["command"].get("path")}
    command = filled.get("command") or ()
    words = [command] if isinstance(command, str) else list(command)
    words += filled.get("args") or ()
    cwd = filled.get("cwd")
    kind = str(filled.get("transport") or filled.get("type") or "").lower()
    if not words and not _url_of(filled):
        raise BadTarget(f"{name} should have command or url")
    try:
        return msgspec.convert(
            {
                "command": [str(word) for word in words],
                "env": _environment(filled, name, host),
                "cwd": str(host.path(cwd)) if isinstance(cwd, str) else cwd or host.start,
                "url": _url_of(filled),
                "headers": filled.get("headers") or {},
                "transport": kind if kind in ("sse", "rest") else "",
            },
            ServerEntry,
        )
    except msgspec.ValidationError as exc:
        raise BadTarget(f"{name} is malformed: {exc}") from None


def _environment(filled: Mapping[str, Any], name: str, host: HostContext) -> dict[str, str]:
    """Return an entry's variables, which override those in its `envFile`."""
    given = filled.get("env") or filled.get("environment") or {}
    env = {str(key): str(value) for key, value in given.items()}
    if not filled.get("envFile"):
        return env
    file = host.path(str(filled["envFile"]))
    try:
        return read_env_file(file) | env
    except (OSError, ValueError) as exc:
        reason = exc.strerror if isinstance(exc, OSError) else exc
        raise BadTarget(f"{name} cannot use its envFile {file}: {reason}") from None


def make_transports(
    entry: ServerEntry,
    auth: ClientAuth | None,
    *,
    inherit: bool,
    stderr: Callable[[str], object] | None,
) -> tuple[Callable[[], Transport], ...]:
    """Return functions that make the transports to a server, in the order to try them.

    With *inherit*, a child inherits this process's whole environment; *stderr* is called with
    each line of its stderr.
    """
    if entry.app is not None:
        from .in_memory import InMemory

        return (lambda: InMemory(entry.app),)
    if not entry.url:
        env = child_environment(entry.env, inherit=inherit)
        return (lambda: ChildProcess(entry.command, env, entry.cwd, stderr),)
    from .http_requests import HttpRequests
    from .streamable_http import OldSse, StreamableHttp

    def http() -> HttpRequests:
        return HttpRequests(entry.url, entry.headers, auth)

    makers: tuple[Callable[[], Transport], ...] = (
        lambda: StreamableHttp(http()),
        lambda: OldSse(http()),
    )
    return makers[1:] if entry.transport == "sse" else makers
