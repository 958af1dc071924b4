"""The options for a server in place of an App, and the connection that they describe."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

from ..client.connecting import ConnectContext, connect
from ..client.targets import BadTarget, ServerEntry, Surroundings, read_target
from ..core.author_errors import did_you_mean, similar_names
from .program import WrongOption

if TYPE_CHECKING:
    from collections.abc import Iterable, Mapping

    from .program import Options, ServerTarget
    from .terminal_peer import TerminalPeer

_FOR_URL = ("header", "token", "transport")
_FOR_COMMAND = ("env", "inherit_env")
_FOR_ONE = ("header", "token", "transport", "env")


def connection(
    target: ServerTarget, options: Options, peer: TerminalPeer, **more: Any
) -> ConnectContext[Any]:
    """Return the connection to the target; raises WrongOption or BadTarget."""
    found = chosen_servers(target, options)
    # A command has no later list, so it waits for every server of a file.
    more |= {"inherit": bool(options.inherit_env), "wait": None}
    if options.timeout is not None:
        more |= {"timeout": options.timeout, "connect_timeout": options.timeout}
    if options.server_log:
        more |= {"on_log": peer.notify, "stderr": peer.show_line}
    if not isinstance(target, list):
        from .terminal_login import terminal_login

        more["auth"] = terminal_login(target, peer.stdin)
    if isinstance(found, ServerEntry):
        more |= own_options(options)
    return connect(found, **more)


def chosen_servers(target: ServerTarget, options: Options) -> ServerEntry | ServerTarget:
    """Return the one server that is meant; without `--server` a file stands for all of its own."""
    found = read_target(target)
    if isinstance(found, ServerEntry):
        if options.server is not None:
            raise WrongOption("--server is for a file with several servers")
        _check_fits(found, options)
        return found
    names = ", ".join(found) or "none"
    if options.server is None:
        for flag in _given(_FOR_ONE, options):
            raise WrongOption(f"{flag} is for one server; choose it with --server, from {names}")
        return target
    if options.server not in found:
        advice = did_you_mean(similar_names(options.server, found)) or f"its servers are {names}"
        raise WrongOption(f"there is no server {options.server!r} in {target}; {advice}")
    entry = found[options.server]
    if isinstance(entry, BadTarget):
        raise entry
    _check_fits(entry, options)
    return entry


def _check_fits(entry: ServerEntry, options: Options) -> None:
    if not entry.url:
        for flag in _given(_FOR_URL, options):
            raise WrongOption(f"{flag} is for a URL; a command gets its secrets by --env")
    else:
        for flag in _given(_FOR_COMMAND, options):
            raise WrongOption(f"{flag} is for a command; a URL gets --token or --header")


def _given(names: Iterable[str], options: Options) -> list[str]:
    return [f"--{name.replace('_', '-')}" for name in names if getattr(options, name)]


def own_options(options: Options) -> Mapping[str, Any]:
    """Return the options of `connect` for one server."""
    found: dict[str, Any] = {}
    headers = dict(_pair("--header", text, ":") for text in options.header or ())
    if headers:
        found["headers"] = headers
    if options.env:
        found["env"] = dict(_pair("--env", text, "=") for text in options.env)
    if options.transport is not None:
        found["transport"] = options.transport
    if options.token is not None:
        found["auth"] = _filled("--token", options.token)
    return found


def _pair(option: str, text: str, separator: str) -> tuple[str, str]:
    """Return the name and the value; no error shows the text, which may be a secret."""
    name, found, value = text.partition(separator)
    if not found or not name.strip():
        raise WrongOption(f"{option} should be NAME{separator}VALUE")
    return name.strip(), _filled(option, value.strip() if separator == ":" else value)


def _filled(option: str, text: str) -> str:
    """Replace `${NAME}` by the environment's variable, as in a host's file."""
    try:
        filled: str = Surroundings.of({}, None).filled(text)
    except LookupError as exc:
        raise WrongOption(f"{option} {exc.args[0]}") from None
    return filled
