"""Reads the target of `connect`: a command, a URL, an App, a host's file, or a dict."""

from __future__ import annotations

import os
import re
import shlex
from collections.abc import Callable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from ..core.json_value import Json
from ..core.secrets.mask import mask_command, mask_url
from ..registry.declarations import HasRegistry, Registry, registry_of
from .faults import ConnectError
from .frames import Transport

if TYPE_CHECKING:
    from .transports.http_requests import ClientAuth

Target: TypeAlias = "str | Sequence[str] | Mapping[str, Any] | os.PathLike[str] | HasRegistry"
_URL = re.compile(r"https?://", re.IGNORECASE)
_VARIABLE = re.compile(r"\$\{(input:[^}]+|(?:env:)?[A-Za-z_]\w*)(?::-([^}]*))?\}")
_GROUPS = ("mcpServers", "servers", "context_servers", "mcp")
"""The members of hosts' files that hold servers by name."""


class BadTarget(ConnectError, ValueError):
    """`connect` cannot understand its target."""

    code = "BAD_TARGET"


class ServerEntry(msgspec.Struct, frozen=True, kw_only=True):
    """One server of a host's file; either a command or a URL."""

    command: tuple[str, ...] = ()
    env: dict[str, str] = {}
    cwd: str | None = None
    url: str = ""
    headers: dict[str, str] = {}
    transport: str = ""
    """"http", "sse" or "rest"; detected by default."""
    app: Registry | None = None
    timeout: float | None = None

    @property
    def label(self) -> str:
        """The server's name in errors, without passwords and tokens."""
        if self.app is not None:
            return self.app.name
        return mask_url(self.url) or shlex.join(mask_command(self.command))

    def __repr__(self) -> str:
        # The environment and the headers may hold secrets.
        return f"<ServerEntry {self.label}>"


def read_target(target: Target) -> ServerEntry | dict[str, ServerEntry]:
    """Return one server, or several by name; raises BadTarget."""
    if isinstance(target, HasRegistry):
        return ServerEntry(app=registry_of(target))
    if isinstance(target, Mapping):
        return read_config(target)
    if isinstance(target, os.PathLike):
        return _read_file(Path(target))
    if isinstance(target, str):
        return _read_text(target)
    if not isinstance(target, Sequence):
        kind = type(target).__name__
        text = "connect(…) should get a command, a URL, an App, a dict or a path, not"
        raise TypeError(f"{text} {kind}")
    if target and all(isinstance(each, str) for each in target):
        return ServerEntry(command=tuple(target))
    words = mask_command([str(each) for each in target])
    raise BadTarget(f"connect({words}) should get a command, a URL, an App or a dict")


def _read_text(text: str) -> ServerEntry | dict[str, ServerEntry]:
    if _URL.match(text):
        return ServerEntry(url=text)
    if text.endswith((".json", ".jsonc")) and (os.path.isfile(text) or " " not in text):
        return _read_file(Path(text))
    if text.endswith(".py") and os.path.isfile(text):
        import sys

        return ServerEntry(command=(sys.executable, text))
    words = shlex.split(text, posix=os.name == "posix")
    if not words:
        raise BadTarget("connect('') should get a command or a URL")
    return ServerEntry(command=tuple(words))


def _read_file(path: Path) -> ServerEntry | dict[str, ServerEntry]:
    try:
        found = msgspec.json.decode(_without_comments(path.read_text(encoding="utf-8-sig")))
    except OSError as exc:
        raise BadTarget(f"cannot read {path}: {exc.strerror}") from None
    except ValueError as exc:
        raise BadTarget(f"{path} is not JSON: {exc}") from None
    if not isinstance(found, dict):
        raise BadTarget(f"{path} should hold an object with mcpServers")
    return read_config(found, path.absolute().parent)


_STRING = r'("(?:[^"\\]|\\.)*")'
_COMMENT = re.compile(_STRING + r"|//[^\n]*|/\*.*?\*/", re.DOTALL)
_LAST_COMMA = re.compile(_STRING + r"|,(?=\s*[}\]])")


def _without_comments(text: str) -> str:
    """Remove comments and trailing commas, which VS Code allows in its JSON."""
    for left_out in (_COMMENT, _LAST_COMMA):
        text = left_out.sub(lambda found: found[1] or "", text)
    return text


def read_config(
    config: Mapping[str, Any], folder: Path | None = None
) -> ServerEntry | dict[str, ServerEntry]:
    """Read a host's file in *folder*; a dict with a command or a URL is one server."""
    given = _given_variables(config, folder or Path.cwd())
    for group in _GROUPS:
        found = _by_name(config.get(group))
        if not isinstance(found, Mapping):
            continue
        if isinstance(found.get("servers"), Mapping):
            found = found["servers"]
        named = {str(name): entry for name, entry in found.items() if _is_enabled(entry)}
        return {name: _read_entry(entry, name, given) for name, entry in named.items()}
    if "command" in config or _url_of(config):
        return _read_entry(config, "the server", given)
    known = ", ".join(_GROUPS[:2])
    raise BadTarget(f"a dict for connect should have {known}, command or url")


def _by_name(group: Json) -> Json:
    """Return the servers by name; Continue writes a list of named servers."""
    if not isinstance(group, list):
        return group
    named = [each for each in group if isinstance(each, Mapping) and "name" in each]
    return {each["name"]: each for each in named}


def _given_variables(config: Mapping[str, Any], folder: Path) -> dict[str, str]:
    """Return the values of the hosts' own variables, and the defaults of VS Code's inputs."""
    workspace = folder.parent if folder.name.startswith(".") else folder
    given = {"workspaceFolder": str(workspace), "userHome": str(Path.home())}
    inputs = config.get("inputs")
    for each in inputs if isinstance(inputs, list) else ():
        if isinstance(each, Mapping) and each.get("default") is not None:
            given[f"input:{each.get('id')}"] = str(each["default"])
    return given


def _is_enabled(entry: Json) -> bool:
    if not isinstance(entry, Mapping):
        return True
    return not entry.get("disabled") and entry.get("enabled", True) is not False


def _url_of(entry: Mapping[str, Any]) -> str:
    return next((str(entry[key]) for key in ("url", "serverUrl", "httpUrl") if entry.get(key)), "")


def _read_entry(entry: Json, name: str, given: Mapping[str, str]) -> ServerEntry:
    if isinstance(entry, HasRegistry):
        return ServerEntry(app=registry_of(entry))
    if not isinstance(entry, Mapping):
        kind = type(entry).__name__
        raise BadTarget(f"{name} should be an object with command or url, not a {kind}")
    try:
        filled = _filled(dict(entry), given)
    except KeyError as exc:
        raise BadTarget(f"{name} needs the environment variable {exc.args[0]}") from None
    if isinstance(filled.get("command"), Mapping):
        # Zed's older files have an object with path, args and env.
        filled = {**filled["command"], "command": filled["command"].get("path")}
    command = filled.get("command") or ()
    words = [command] if isinstance(command, str) else list(command)
    words += filled.get("args") or ()
    env = filled.get("env") or filled.get("environment") or {}
    kind = str(filled.get("transport") or filled.get("type") or "").lower()
    if not words and not _url_of(filled):
        raise BadTarget(f"{name} should have command or url")
    try:
        return msgspec.convert(
            {
                "command": [str(word) for word in words],
                "env": {str(key): str(value) for key, value in env.items()},
                "cwd": filled.get("cwd"),
                "url": _url_of(filled),
                "headers": filled.get("headers") or {},
                "transport": kind if kind in ("sse", "rest") else "",
            },
            ServerEntry,
        )
    except msgspec.ValidationError as exc:
        raise BadTarget(f"{name} is malformed: {exc}") from None


def _filled(value: Json, given: Mapping[str, str]) -> Any:
    """Replace `${NAME}` in a value from *given* or the environment; raises KeyError."""
    if isinstance(value, str):
        return _VARIABLE.sub(lambda found: _variable(found[1], found[2], given), value)
    if isinstance(value, Mapping):
        return {key: _filled(each, given) for key, each in value.items()}
    if isinstance(value, list | tuple):
        return [_filled(each, given) for each in value]
    return value


def _variable(name: str, default: str | None, given: Mapping[str, str]) -> str:
    """Return a variable's value; the input `api-key` is the environment variable `API_KEY`."""
    default = given.get(name, default)
    if name.startswith("input:"):
        variable = re.sub(r"\W", "_", name.removeprefix("input:")).upper()
    else:
        variable = name.removeprefix("env:")
    return os.environ[variable] if default is None else os.environ.get(variable, default)


def make_transports(
    entry: ServerEntry, auth: ClientAuth | None, *, inherit: bool
) -> tuple[Callable[[], Transport], ...]:
    """Return functions that make the transports to a server, in the order in which to try them.

    With *inherit* a child process gets this process's whole environment.
    """
    if entry.app is not None:
        from .transports.in_memory import InMemory

        return (lambda: InMemory(entry.app),)
    if not entry.url:
        from .transports.child_environment import child_environment
        from .transports.child_process import ChildProcess

        env = child_environment(entry.env, inherit=inherit)
        return (lambda: ChildProcess(entry.command, env, entry.cwd),)
    from .transports.http_requests import HttpRequests
    from .transports.old_sse import OldSse
    from .transports.streamable_http import StreamableHttp

    def http() -> HttpRequests:
        return HttpRequests(entry.url, entry.headers, auth)

    makers: tuple[Callable[[], Transport], ...] = (
        lambda: StreamableHttp(http()),
        lambda: OldSse(http()),
    )
    return makers[1:] if entry.transport == "sse" else makers
