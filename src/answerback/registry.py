"""Registry: the tools, resources and prompts that an app serves, and the feed of their changes.

Calls, MCP and the wires are written against it. `App` is the front door to it.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from functools import partial
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar, Unpack, cast, overload

import msgspec

from .contract import RESERVED_ROUTES, Contract
from .limits import DEFAULT_LIMITS, Limits
from .tools.tool import Tool
from .tools.tool_options import CommonOptions, ToolOptions, check_options

if TYPE_CHECKING:
    from _collections_abc import dict_items, dict_values

    from .authentication import AppAuth
    from .composition import Composition, Switch
    from .content import Icon
    from .lifespan import Lifespan
    from .own_routes import OwnRoute
    from .tools.prompt import Prompt
    from .tools.resource import Resource, ResourceOptions

F = TypeVar("F", bound=Callable[..., Any])
T = TypeVar("T", bound=Tool)


class Change(msgspec.Struct, frozen=True):
    """A list has changed, or one resource, which *uri* names."""

    kind: Literal["tools", "resources", "prompts", "resource"]
    uri: str | None = None


Listener: TypeAlias = Callable[[Change], None]


class ChangeFeed:
    """Sends changes to its subscribers. Any thread may use it; a subscriber must not block."""

    def __init__(self) -> None:
        # The operations on it are atomic, so that threads need no lock.
        self._listeners: dict[object, Listener] = {}
        self.forward: Listener | None = None
        """Sends a change to the other processes that serve the same app."""
        self.forward_switch: Callable[[Switch], None] | None = None
        """Sends what was enabled or disabled to the same processes."""

    def publish(self, change: Change) -> None:
        """Send a change of this process to the subscribers and to the other processes."""
        self.deliver(change)
        if self.forward is not None:
            self.forward(change)

    def deliver(self, change: Change) -> None:
        """Send a change to the subscribers of this process."""
        for listener in tuple(self._listeners.values()):
            listener(change)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call *listener* for each change; the function that is returned ends that."""
        key = object()
        self._listeners[key] = listener

        def unsubscribe() -> None:
            self._listeners.pop(key, None)

        return unsubscribe


class HealthState(msgspec.Struct, frozen=True):
    """The result of a health check; *details* are shown to anyone who asks for the health."""

    ready: bool = True
    """False while calls cannot be served."""
    details: dict[str, bool | int | str] = {}


Check: TypeAlias = Callable[[], HealthState | None]
"""A health check. It must be quick and must not block; None means that it does not apply."""


class Recording(Protocol):
    """Keeps a record of each call; `answerback.records.Records` is one."""

    def recorded(self, handle: Any, kind: str) -> Any:
        """*handle*, with a record of each outcome."""

    def close(self) -> None:
        """Write what is still waiting."""

    def check(self) -> HealthState:
        """Whether the records can be written."""


class Table(Mapping[str, T]):
    """The tools, resources, prompts or completions of an app, by the name that callers use.

    It is replaced as a whole when an app is composed, so that every thread sees a whole table.
    """

    __slots__ = ("_served", "get", "own")

    def __init__(self) -> None:
        self.own: dict[str, T] = {}
        """The entries that were registered in this app, also those that are disabled."""
        self.serve(self.own)

    def serve(self, served: dict[str, T]) -> None:
        """Let callers see *served*."""
        self._served = served
        # The method of the dict itself: each call looks its tool up by it.
        self.get = served.get  # type: ignore[method-assign]  # see above

    def __getitem__(self, name: str) -> T:
        return self._served[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._served)

    def __len__(self) -> int:
        return len(self._served)

    def values(self) -> dict_values[str, T]:
        return self._served.values()

    def items(self) -> dict_items[str, T]:
        return self._served.items()


class Registry:
    """The tools, resources, prompts and completions under one name, and their settings."""

    url = ""
    """The URL of the MCP endpoint, as clients know it; empty if the author gave none."""
    development = False
    """Whether the files of widgets are read anew each time."""
    requires: tuple[Callable[..., Any], ...] = ()
    """The gates of everything that this serves."""
    has_gates = False
    """Whether something that this serves has gates."""
    challenge: Literal["auto", "http", "result"] = "auto"
    """How a client over MCP learns that it must log in."""
    has_tasks = False
    """Whether a tool that this serves may run as a task."""
    has_keys = False
    """Whether a tool that this serves takes an idempotency key in a plain call."""
    task_store: Any = None
    """Where tasks are kept: a store of `answerback.tasks`; None keeps them in this process."""
    task_limits: Any = None
    """The limits of tasks; None for the defaults."""
    shows_exceptions = False
    """Whether callers see the text of unexpected exceptions: `serve --debug`."""
    tasks: Any = None
    """The service that runs tasks, once there was one."""
    background_loop: Callable[[], Any] | None = None
    """Gives the event loop for tasks, on a wire that serves without one."""

    def __init__(
        self,
        name: str,
        *,
        version: str,
        title: str,
        description: str,
        contract: Contract,
        lenient: bool = True,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.name = name
        self.version = version
        self.title = title
        self.description = description
        self.contract = contract
        self.lenient = lenient
        self.limits = limits
        self.tool_defaults: ToolOptions = {}
        """The options of a tool that gives none of its own."""
        self.records: Recording | None = None
        self.lifespan: Lifespan | None = None
        self.auth: AppAuth | None = None
        """Authenticates the requests over HTTP; None serves everyone."""
        self.overrides: dict[Any, Callable[..., Any]] = {}
        """For tests: the function to use instead of each dependency, by the dependency."""
        self.run_async: Callable[[Any, Any], Any] | None = None
        """Runs a coroutine for the thread of a plain tool, on a wire without an event loop."""
        self.tools: Table[Tool] = Table()
        self.resources: Table[Resource] = Table()
        self.prompts: Table[Prompt] = Table()
        self.completions: Table[Tool] = Table()
        self.icons: tuple[Icon, ...] = ()
        self.website_url = ""
        self.middleware: tuple[Any, ...] = ()
        """Functions around each run of a tool, resource or prompt."""
        self.observers: tuple[Callable[[Any], object], ...] = ()
        """Functions that see each outcome."""
        self.is_served = False
        """Whether this was served or called, so that its lifespan may have started."""
        self.runs_plain = False
        """Whether this is served without the code that middleware and observers need."""
        self.composition: Composition | None = None
        """The apps that belong together and what is enabled; None while this is not used."""
        self.changes = ChangeFeed()
        self.routes: list[OwnRoute] = []
        """The pages of the author that are served beside the tools."""
        self.checks: dict[str, Check] = {"records": self._check_records}
        """The health checks by name; the parts that serve the app add theirs."""

    @overload
    def tool(self, fn: F, /) -> F: ...
    @overload
    def tool(self, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...
    def tool(self, fn: Any = None, /, **options: Any) -> Any:
        """Register a function and return it unchanged. Works with or without options."""
        if fn is None:
            return partial(self.tool, **options)
        if not callable(fn):
            raise TypeError(f"@app.tool takes options by name: @app.tool(name={fn!r})")
        self.add_tool(fn, **options)
        return fn

    def add_tool(self, fn: Callable[..., Any], **options: Unpack[ToolOptions]) -> Tool:
        """Register a function without a decorator, such as a method of an object."""
        check_options(options, ToolOptions)
        merged: ToolOptions = {"lenient": self.lenient, "timeout": self.limits.seconds}
        merged = {**merged, **self.tool_defaults, **options}
        tool = Tool(fn, merged, self.contract)
        tool.given = frozenset({*self.tool_defaults, *options})
        if tool.name in self.tools.own:
            raise ValueError(f"there is a tool {tool.name!r} already; give one another name")
        if self.contract.route == "/" and tool.name in RESERVED_ROUTES:
            raise ValueError(f"/{tool.name} is a route of the server's; give the tool another name")
        _put(self, self.tools, tool.name, tool)
        self.changes.publish(Change("tools"))
        return tool

    def _check_records(self) -> HealthState | None:
        return None if self.records is None else self.records.check()

    def remove_tool(self, name: str) -> None:
        """Stop serving a tool, and notify the clients that subscribed to the list of tools."""
        _remove(self, self.tools, name)
        self.changes.publish(Change("tools"))

    def resource(self, uri: str, /, **options: Unpack[ResourceOptions]) -> Callable[[F], F]:
        """Register a function that gives the content at *uri*, or at all URIs of a template."""
        from .tools.resource import Resource, ResourceOptions, check_uri

        check_uri(uri)
        check_options(options, ResourceOptions)

        def register(fn: F) -> F:
            if uri in self.resources.own:
                raise ValueError(f"there is a resource {uri!r} already")
            _put(self, self.resources, uri, Resource(uri, fn, options, self.contract))
            self.changes.publish(Change("resources"))
            return fn

        return register

    def remove_resource(self, uri: str) -> None:
        """Stop serving a resource, and notify the clients that subscribed to the list."""
        _remove(self, self.resources, uri)
        self.changes.publish(Change("resources"))

    def resource_changed(self, uri: str) -> None:
        """Notify the clients that subscribed to *uri* that its content has changed."""
        self.changes.publish(Change("resource", uri))

    @overload
    def prompt(self, fn: F, /) -> F: ...
    @overload
    def prompt(self, /, **options: Unpack[CommonOptions]) -> Callable[[F], F]: ...
    def prompt(self, fn: Any = None, /, **options: Any) -> Any:
        """Register a function that makes messages. Works with or without options."""
        from .tools.prompt import Prompt

        if fn is None:
            return partial(self.prompt, **options)
        if not callable(fn):
            raise TypeError(f"@app.prompt takes options by name: @app.prompt(name={fn!r})")
        check_options(options, CommonOptions)
        prompt = Prompt(fn, cast("CommonOptions", options), self.contract)
        if prompt.name in self.prompts.own:
            raise ValueError(f"there is a prompt {prompt.name!r} already")
        _put(self, self.prompts, prompt.name, prompt)
        self.changes.publish(Change("prompts"))
        return fn

    def remove_prompt(self, name: str) -> None:
        """Stop serving a prompt, and notify the clients that subscribed to the list."""
        _remove(self, self.prompts, name)
        self.changes.publish(Change("prompts"))

    def completion(
        self, of: str, argument: str, *, requires: Sequence[Callable[..., Any]] = ()
    ) -> Callable[[F], F]:
        """Register a function that completes an argument of a prompt or of a resource's URI.

        It takes `value: str`, the text typed so far, and returns a list of strings. With a
        parameter `arguments: dict[str, str]` it also gets the arguments filled in already.
        The gates of the prompt or resource count here too; *requires* adds further ones.
        """
        check_options({"requires": requires}, CommonOptions)

        def register(fn: F) -> F:
            tool = _completion_tool(fn, self.contract, requires)
            _put(self, self.completions, completion_key(of, argument), tool)
            return fn

        return register

    def include(self, other: Registry, *, prefix: str = "") -> None:
        """Serve the tools, resources and prompts of *other* too, also those registered later.

        The names of tools and prompts begin with *prefix* here; URIs stay as they are.
        """
        from .composition import include

        include(self, other, prefix)

    def enable(self, name: str | None = None, *, tag: str | None = None) -> None:
        """Serve again what `disable` removed: the one with this name or URI, or all with a tag."""
        from .composition import switch

        switch(self, name, tag, on=True)

    def disable(self, name: str | None = None, *, tag: str | None = None) -> None:
        """Stop serving a tool, prompt or resource, or all with a tag, until it is enabled.

        For callers it does not exist. Calls that run end normally.
        """
        from .composition import switch

        switch(self, name, tag, on=False)

    def apps(self) -> Iterator[Registry]:
        """This app and those that it includes, each once."""
        if self.composition is None:
            return iter((self,))
        return self.composition.apps()


def _put(registry: Registry, table: Table[T], name: str, entry: T) -> None:
    """Add an entry; raises ValueError if it clashes in an app that includes this one."""
    entry.path = (registry,)
    entry.around = registry.middleware
    # The page of a widget has no data, and it shows the refusals of its tools.
    requires = () if entry.is_widget else registry.requires
    if requires or entry.settings.requires:
        from .tools.gate_list import add_gates

        add_gates(entry, requires, registry.limits.gates)
        registry.has_gates = True
    if entry.settings.task != "forbidden":
        registry.has_tasks = True
    registry.has_keys = registry.has_keys or entry.settings.idempotency_key
    if entry.policy is not None:
        registry.checks.setdefault("breakers", entry.policy.check_of(registry.tools))
    if registry.composition is None:
        table.own[name] = entry
    else:
        registry.composition.put(table, name, entry)


def put_resource(registry: Registry, resource: Resource) -> None:
    """Serve a resource that is made already."""
    _put(registry, registry.resources, resource.uri, resource)
    registry.changes.publish(Change("resources"))


def _remove(registry: Registry, table: Table[T], name: str) -> None:
    if registry.composition is None:
        del table.own[name]
    else:
        registry.composition.remove(table, name)


def completion_key(owner: str, argument: str) -> str:
    """The key of a completion: *owner* is the prompt's name or the resource's URI."""
    return f"{argument} of {owner}"


def _completion_tool(
    fn: Callable[..., Any], contract: Contract, requires: Sequence[Callable[..., Any]]
) -> Tool:
    """The author's function; refused if it has parameters that a completion does not get."""
    tool = Tool(fn, {"returns": "value", "requires": requires}, contract)
    unknown = {parameter.name for parameter in tool.signature.parameters} - {"value", "arguments"}
    if unknown:
        raise TypeError(
            f"completion {tool.name!r} takes {sorted(unknown)}; "
            "it is given value: str and arguments: dict[str, str]"
        )
    return tool
