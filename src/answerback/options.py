"""Option values with several parts: `values=`, `task=`, `widget=`, `access=`.

`@app.tool(widget="orders")` is enough for most tools, and
`@app.tool(widget=Shown("orders", invoking="Loading…"))` adds details. Each value is checked
when it is created.
"""

from __future__ import annotations

from collections.abc import Callable, Collection
from typing import TYPE_CHECKING, Any, Literal

import msgspec

from .core.limits import ReplyLimits, TaskLimits

if TYPE_CHECKING:
    from .core.authentication import UsedTokens

__all__ = ["Access", "ReplyLimits", "Shown", "Task", "TaskLimits", "Values"]

TaskMode = Literal["forbidden", "optional", "required"]


class Values(msgspec.Struct, frozen=True, kw_only=True):
    """How a tool's arguments are read and its result is sent.

    A tool inherits unset members from its app; an app uses the defaults below.
    """

    lenient: bool | None = None
    """Read "7" as 7, and parse JSON in strings, unless the type allows strings; True by default."""
    returns: Literal["reply", "value"] | None = None
    """"reply" (the default) sends a finished reply as the reply, "value" sends it as data."""
    structured: bool | None = None
    """False: MCP sends only the text, without outputSchema or structuredContent."""
    message: bool | None = None
    """False: no `message` in the data, and no text block naming links, audio and binary files."""
    nan: Literal["refuse", "null"] | None = None
    """"null" sends NaN and infinities as null; "refuse" (the default) makes them an error."""

    def __post_init__(self) -> None:
        _check(self, "lenient", "True or False", _is_bool)
        _check(self, "returns", "'reply' or 'value'", lambda value: value in ("reply", "value"))
        _check(self, "structured", "True or False", _is_bool)
        _check(self, "message", "True or False", _is_bool)
        _check(self, "nan", "'refuse' or 'null'", lambda value: value in ("refuse", "null"))

    def settings(self) -> dict[str, Any]:
        """Return the tool settings that were given, by name."""
        given = msgspec.structs.asdict(self)
        return {name: value for name, value in given.items() if value is not None}


# The first field of a value is positional, and the others are keyword-only. In msgspec this is set
# per class, not per field.
class _TaskMode(msgspec.Struct, frozen=True):
    mode: TaskMode = "forbidden"
    """Whether a call may outlive its request, as a task."""


class Task(_TaskMode, frozen=True, kw_only=True):
    """Whether a tool runs as a task, and whether plain calls accept an idempotency key."""

    key: bool = False
    """A plain call with a known key returns the first call's reply instead of running again."""

    def __post_init__(self) -> None:
        modes = ("forbidden", "optional", "required")
        _check(self, "mode", "'forbidden', 'optional' or 'required'", lambda mode: mode in modes)
        _check(self, "key", "True or False", _is_bool)

    def settings(self) -> dict[str, Any]:
        """Return the tool settings, by name."""
        return {"task": self.mode, "idempotency_key": self.key}


class _WidgetName(msgspec.Struct, frozen=True):
    name: str | None = None
    """The widget that shows the reply; None for a tool that only widgets call."""


class Shown(_WidgetName, frozen=True, kw_only=True):
    """How hosts show a tool: its widget, the status messages, and who may call the tool."""

    invoking: str | None = None
    """Text of at most 64 characters that ChatGPT shows while the tool is running."""
    invoked: str | None = None
    """Text of at most 64 characters that ChatGPT shows afterwards."""
    visible_to: Collection[Literal["model", "app"]] | None = None
    """Who may call the tool: the model, the widgets ("app"), or both (the default)."""

    def __post_init__(self) -> None:
        _check(self, "name", "the name of a widget, such as 'orders'", _is_text)
        for name in ("invoking", "invoked"):
            _check(self, name, "a string of 1 to 64 characters", _is_status)
        _check(self, "visible_to", "a set of 'model' and 'app', such as {'app'}", _are_callers)

    def settings(self) -> dict[str, Any]:
        """Return the tool settings, by name; other members become keys of the tool's `_meta`."""
        return {"widget": self.name}


class Access(msgspec.Struct, frozen=True, kw_only=True):
    """How clients reach an app over HTTP, and how they are told to log in."""

    url: str | None = None
    """The URL of the MCP endpoint as clients know it, such as "https://example.com/mcp"."""
    sessions: bool = True
    """Whether MCP over HTTP uses sessions in versions before 2026-07-28."""
    challenge: Literal["auto", "http", "result"] = "auto"
    """How an MCP client is told to log in: by an HTTP status or in the result."""
    used_tokens: UsedTokens | None = None
    """Remembers which gate links have been used; the default, `UsedFiles()`, is for one machine."""

    def __post_init__(self) -> None:
        example = "the full URL of the MCP endpoint, such as 'https://example.com/mcp'"
        forms = ("auto", "http", "result")
        _check(self, "url", example, _is_endpoint)
        _check(self, "sessions", "True or False", _is_bool)
        _check(self, "challenge", "'auto', 'http' or 'result'", lambda form: form in forms)
        _check(self, "used_tokens", "an object with an add method", lambda it: hasattr(it, "add"))


def _check(
    struct: msgspec.Struct, name: str, expected: str, is_valid: Callable[[Any], bool]
) -> None:
    value = getattr(struct, name)
    if value is not None and not is_valid(value):
        raise TypeError(f"{name}={value!r} of {type(struct).__name__} should be {expected}")


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_status(value: object) -> bool:
    return isinstance(value, str) and 0 < len(value) <= 64


def _are_callers(value: object) -> bool:
    if not isinstance(value, set | frozenset | list | tuple) or not value:
        return False
    return all(who in ("model", "app") for who in value)


def _is_endpoint(value: object) -> bool:
    # Imported here, so that an app without a URL does not pay for it.
    from .core.request_info import is_endpoint

    return isinstance(value, str) and is_endpoint(value)
