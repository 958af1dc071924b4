"""Options for tools, resources and prompts: their types, checks and defaults.

A new option is a key in a TypedDict here, a field of `ToolSettings` with its default and,
if a value can be invalid, a row in `_CHECKS`. Options with several parts are values from
`answerback.options`. Options that only resources have are in `resource`.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Mapping, Sequence
from typing import TYPE_CHECKING, Any, ClassVar, Literal, Protocol, TypedDict

import msgspec

from ..core.content import Icon, is_icon, our_icons
from ..core.json_value import is_number
from ..core.limits import Limits
from ..errors import ToolError
from ..types.problems import shown

if TYPE_CHECKING:
    from ..options import Shown, Task, TaskMode, Values
    from ..registry.declarations import Check
    from .tool import Tool

    class PolicyPart(Protocol):
        """A Limit, Breaker or Retry from `answerback.resilience`."""

        option: ClassVar[str]

        def policy_for(self, settings: ToolSettings) -> ToolPolicy:
            """Return the policy for a tool with these options."""

    class ToolPolicy(Protocol):
        """A tool's limits, breaker and retries: a Policy from `answerback.resilience`.

        *call* is a Call, which belongs to a higher layer.
        """

        @property
        def limits(self) -> Sequence[PolicyPart]: ...
        @property
        def breaker(self) -> PolicyPart | None: ...
        @property
        def retry(self) -> PolicyPart | None: ...

        def run(
            self,
            run: Callable[[Tool, dict[str, Any], Any], Any],
            tool: Tool,
            kwargs: dict[str, Any],
            call: Any,
        ) -> object:
            """Run a tool with *run*; return its value, or a coroutine if there is an event loop."""

        async def count(self, call: Any) -> Callable[[], None]:
            """Count a new task; return a function that undoes it. Raises RateLimited."""

        def check_of(self, tools: Mapping[str, Tool]) -> Check:
            """Return the health check for the breakers of *tools*."""


class CommonOptions(TypedDict, total=False):
    """Options shared by tools, resources and prompts."""

    name: str
    """1 to 128 characters of `A-Z a-z 0-9 _ . -`; by default the function's name."""
    title: str
    """The display name."""
    description: str
    """What it does, for models; by default the docstring."""
    icons: Sequence[Icon]
    """Icons that hosts show."""
    meta: Mapping[str, Any]
    """The entry's `_meta`, for hosts; the hosts' keys are checked."""
    tags: Collection[str]
    """Labels such as "read", for `--tag` and `app.disable(tag=…)`."""
    requires: Sequence[Callable[..., Any]]
    """The gates that a caller must pass, such as [login(), scope("accounts:read")]."""


class ToolOptions(CommonOptions, total=False):
    """Options for `@app.tool` and `app.add_tool`."""

    examples: Sequence[Mapping[str, Any]]
    """Argument objects, shown in the OpenAPI document."""
    raises: Sequence[type[ToolError]]
    """The errors that callers should expect, for the OpenAPI document."""
    input_schema: dict[str, Any]
    """For `**kwargs` or `Annotated[dict, AllArguments]`, the schema that arguments must match.

    For other functions it is only shown: their parameters decide what is accepted.
    """
    output_schema: dict[str, Any]
    """The schema that results must match; for a function that declares no return type."""
    inline: bool
    """Run a plain `def` in place, not in a thread; for quick functions that never block."""
    timeout: float | None
    """How many seconds a call may take, or each attempt with `retry=`.

    By default the app's `Limits(seconds=…)` applies; without it, there is no timeout."""
    retry: PolicyPart | None
    """Retries failed calls: Retry(attempts=3)."""
    breaker: PolicyPart | None
    """Stops calling a failing service: Breaker("weather-api")."""
    limit: PolicyPart | Sequence[PolicyPart] | None
    """Refuses excess calls: Limit("10/s", per="user")."""
    budget: int
    """The character limit for an MCP reply; longer replies are cut, and link to the full one."""
    values: Values
    """How arguments are read and the result is sent: Values(lenient=False, nan="null")."""
    read_only: bool
    """A hint for hosts: the tool changes nothing."""
    destructive: bool
    """A hint for hosts: the tool may delete or overwrite something."""
    idempotent: bool
    """Repeating a call with the same arguments has no further effect, so retrying is safe."""
    open_world: bool
    """A hint for hosts: the tool works with the outside world, such as the web."""
    task: TaskMode | Task
    """Whether a call may outlive its request, as a task: "optional", Task("optional", key=True)."""
    widget: str | Shown
    """The widget that shows the reply: "orders", Shown("orders", invoking="Loading…")."""


class ToolSettings(msgspec.Struct, frozen=True, kw_only=True):
    """A tool's options, with defaults for those the author left out."""

    name: str | None = None
    title: str | None = None
    description: str | None = None
    icons: Sequence[Icon] = ()
    meta: Mapping[str, Any] | None = None
    tags: Collection[str] = ()
    requires: Sequence[Callable[..., Any]] = ()
    examples: Sequence[Mapping[str, Any]] = ()
    raises: Sequence[type[ToolError]] = ()
    input_schema: dict[str, Any] | None = None
    output_schema: dict[str, Any] | None = None
    inline: bool = False
    timeout: float | None = None
    retry: PolicyPart | None = None
    breaker: PolicyPart | None = None
    limit: PolicyPart | Sequence[PolicyPart] | None = None
    budget: int | None = None
    message: bool = True
    lenient: bool = True
    returns: Literal["reply", "value"] = "reply"
    structured: bool = True
    nan: Literal["refuse", "null"] = "refuse"
    read_only: bool | None = None
    destructive: bool | None = None
    idempotent: bool | None = None
    open_world: bool | None = None
    task: TaskMode = "forbidden"
    idempotency_key: bool = False
    widget: str | None = None
    chosen: frozenset[str] = frozenset()
    """The options that the tool or its app set; an app that includes it sets the rest."""

    @property
    def hints(self) -> dict[str, bool]:
        """The hints that the author gave, named like MCP's tool annotations."""
        hints = {
            "readOnlyHint": self.read_only,
            "destructiveHint": self.destructive,
            "idempotentHint": self.idempotent,
            "openWorldHint": self.open_world,
        }
        return {name: bool(value) for name, value in hints.items() if value is not None}


_SETTINGS = frozenset(ToolSettings.__struct_fields__)


def read_settings(options: Mapping[str, Any]) -> ToolSettings:
    """Return the settings in *options*, which `check_options` has checked.

    None means the default, and options that only resources have are ignored.
    """
    chosen = dict(options)
    for name in ("values", "task", "widget"):
        value = chosen.get(name)
        if value is not None and not isinstance(value, str):
            del chosen[name]
            chosen |= value.settings()
    given = {
        name: value for name, value in chosen.items() if value is not None and name in _SETTINGS
    }
    if "icons" in given:
        given["icons"] = our_icons(given["icons"])
    return ToolSettings(chosen=frozenset(chosen), **given)


def check_options(options: Mapping[str, Any], known: type[Any]) -> None:
    """Raise TypeError for an option that is not in *known*, or for an invalid value."""
    if unknown := options.keys() - known.__annotations__.keys():
        from .other_frameworks import option_hint, refuse_grouped

        refuse_grouped(options, known.__annotations__)
        name = min(unknown)
        raise TypeError(f"no option is named {name!r}; {option_hint(name, known.__annotations__)}")
    for name, (expected, is_valid) in _CHECKS.items():
        value = options.get(name)
        if value is not None and not is_valid(value):
            raise TypeError(f"{name}={shown(value)} should be {expected}")


def _are_all(values: object, is_valid: Callable[[Any], bool]) -> bool:
    return isinstance(values, list | tuple) and all(map(is_valid, values))


def _is_error_class(value: object) -> bool:
    return isinstance(value, type) and issubclass(value, ToolError)


def _are_gates(value: object) -> bool:
    from .requires import checked_gates

    return bool(checked_gates(value)) or value in ([], ())


def _is_part(value: object, option: str) -> bool:
    return getattr(value, "option", None) == option and hasattr(value, "policy_for")


def _are_limits(value: object) -> bool:
    return _is_part(value, "limit") or _are_all(value, lambda one: _is_part(one, "limit"))


def limits_of(settings: ToolSettings) -> tuple[PolicyPart, ...]:
    """Return a tool's limits, given as one limit or a list."""
    limit = settings.limit
    if limit is None:
        return ()
    return tuple(limit) if isinstance(limit, Sequence) else (limit,)


def policy_of(settings: ToolSettings) -> ToolPolicy | None:
    """Return a tool's policy; None if it has no limits, breaker or retry."""
    parts = (*limits_of(settings), settings.breaker, settings.retry)
    first = next((each for each in parts if each is not None), None)
    return None if first is None else first.policy_for(settings)


def _is_duration(value: object) -> bool:
    return is_number(value) and value > 0


def _is_budget(value: object) -> bool:
    return isinstance(value, int) and not isinstance(value, bool) and value >= 500


def _is_text(value: object) -> bool:
    return isinstance(value, str) and bool(value)


def _is_grouped(value: object, name: str) -> bool:
    # Imported here, so that an app without such a value does not pay for it.
    from .. import options

    return isinstance(value, getattr(options, name))


_CHECKS: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "budget": ("a number of characters, 500 or more, such as 20_000", _is_budget),
    "title": ("a str", lambda value: isinstance(value, str)),
    "description": ("a str", lambda value: isinstance(value, str)),
    "icons": (
        "a list of Icon, such as [Icon('https://example.com/icon.png', mime='image/png')]",
        lambda value: _are_all(value, is_icon),
    ),
    "website_url": (
        "a URL, such as 'https://example.com'",
        lambda value: isinstance(value, str) and value.startswith(("https://", "http://")),
    ),
    "meta": ("a dict", lambda value: isinstance(value, dict)),
    "errors": (
        "a dict of exception classes, such as {KeyError: NotFound}",
        lambda value: isinstance(value, dict),
    ),
    "content_meta": ("a dict", lambda value: isinstance(value, dict)),
    "allow_paths": (
        "a list of parameter names",
        lambda value: _are_all(value, _is_text),
    ),
    "tags": (
        "a set of str, such as {'read'}",
        lambda value: (
            isinstance(value, set | frozenset | list | tuple)
            and all(isinstance(tag, str) and tag for tag in value)
        ),
    ),
    "requires": ("a list of gates, such as [login()]", _are_gates),
    "access": (
        "an Access from answerback.options, such as Access(url='https://example.com/mcp')",
        lambda value: _is_grouped(value, "Access"),
    ),
    "examples": (
        "a list of argument objects, such as [{'x': 7}]",
        lambda value: _are_all(value, lambda one: isinstance(one, Mapping)),
    ),
    "raises": (
        "a list of subclasses of ToolError",
        lambda value: _are_all(value, _is_error_class),
    ),
    "timeout": ("a number of seconds greater than 0", _is_duration),
    "retry": (
        "a Retry from answerback.resilience, such as Retry(3)",
        lambda value: _is_part(value, "retry"),
    ),
    "breaker": (
        "a Breaker from answerback.resilience, such as Breaker('billing')",
        lambda value: _is_part(value, "breaker"),
    ),
    "limit": (
        "a Limit from answerback.resilience, such as Limit('10/s'), or a list of them",
        _are_limits,
    ),
    "values": (
        "a Values from answerback.options, such as Values(lenient=False)",
        lambda value: _is_grouped(value, "Values"),
    ),
    "task": (
        "'forbidden', 'optional', 'required', or a Task from answerback.options",
        lambda value: value in ("forbidden", "optional", "required") or _is_grouped(value, "Task"),
    ),
    "widget": (
        "the name of a widget, such as 'accounts', or a Shown from answerback.options",
        lambda value: _is_text(value) or _is_grouped(value, "Shown"),
    ),
    "limits": (
        "a Limits from answerback, such as Limits(seconds=30)",
        lambda value: isinstance(value, Limits),
    ),
    "input_schema": (
        "a JSON Schema with 'type': 'object'",
        lambda value: isinstance(value, dict) and value.get("type") == "object",
    ),
    "output_schema": ("a JSON Schema, which is a dict", lambda value: isinstance(value, dict)),
}
"""For each checked option: how a message describes its values, and the check."""
