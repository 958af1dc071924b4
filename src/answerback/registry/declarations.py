"""Registry: the author's declared tools, resources and prompts, and a feed of their changes.

Calls, MCP and the wires read it. Only the author writes to it, through `App`. State that exists
only while serving is in a `Runtime` (`calls/runtime.py`).
"""

from __future__ import annotations

from _weakref import ref  # Importing `weakref` would add a millisecond to startup.
from collections.abc import Awaitable, Callable, Coroutine, Iterator, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias, TypeVar

import msgspec

from ..contract import RESERVED_ROUTES, Contract
from ..core.limits import DEFAULT_LIMITS, Limits
from ..core.log import logger
from ..tools.callable_source import required_parameters, source_of
from ..tools.tool import Tool
from ..tools.tool_options import CommonOptions, ToolOptions, read_settings

if TYPE_CHECKING:
    from _collections_abc import dict_items, dict_values

    from ..core.authentication import AppAuth
    from ..core.content import Icon
    from ..core.reply import Reply
    from ..core.request_info import RequestInfo
    from ..tools.prompt import Prompt
    from ..tools.resource import Resource, ResourceOptions
    from .composition import Composition, Switch
    from .lifespan import Lifespan

T = TypeVar("T", bound=Tool)
ListedKind: TypeAlias = Literal["tools", "resources", "prompts"]


class Change(msgspec.Struct, frozen=True):
    """A change to a list, or to the resource at *uri*."""

    kind: Literal["tools", "resources", "prompts", "resource"]
    """The list that changed, or `resource`."""
    uri: str | None = None
    """The resource that changed."""


Listener: TypeAlias = Callable[[Change], None]


class Attached(Protocol):
    """Serves a registry; implemented by `answerback.calls.runtime.Runtime`."""

    runs_middleware: bool
    """Whether its handlers run middleware and observers."""


class ChangeFeed:
    """Sends changes to its subscribers. Thread-safe; a subscriber must not block."""

    def __init__(self) -> None:
        # Operations on these are atomic, so no lock is needed.
        self._listeners: dict[object, Listener] = {}
        self._links: dict[object, tuple[Listener, Callable[[Switch], None]]] = {}
        self._attached: list[ref[Attached]] = []
        self.was_used = False
        """Whether a call, a wire or a document has used the registry."""

    def attach(self, runtime: Attached) -> None:
        """Let *runtime* check apps included later; only a weak reference to it is kept."""
        self._attached.append(ref(runtime, self._attached.remove))
        self.was_used = True

    def attached(self) -> list[Attached]:
        """Return the runtimes that are serving the registry, newest last."""
        found = [each() for each in list(self._attached)]
        return [each for each in found if each is not None]

    def link(
        self, forward: Listener, forward_switch: Callable[[Switch], None]
    ) -> Callable[[], None]:
        """Send changes and switches to other processes, until the returned function is called."""
        key = object()
        self._links[key] = (forward, forward_switch)

        def unlink() -> None:
            self._links.pop(key, None)

        return unlink

    def publish(self, change: Change) -> None:
        """Send a change made in this process to the subscribers and to the other processes."""
        self.deliver(change)
        for forward, _ in tuple(self._links.values()):
            forward(change)

    def publish_switch(self, switch: Switch) -> None:
        """Send a switch to the other processes."""
        for _, forward_switch in tuple(self._links.values()):
            forward_switch(switch)

    def deliver(self, change: Change) -> None:
        """Send a change to the subscribers in this process."""
        for listener in tuple(self._listeners.values()):
            listener(change)

    def subscribe(self, listener: Listener) -> Callable[[], None]:
        """Call *listener* for each change, until the returned function is called."""
        key = object()
        self._listeners[key] = listener

        def unsubscribe() -> None:
            self._listeners.pop(key, None)

        return unsubscribe


class HealthState(msgspec.Struct, frozen=True):
    """The result of a health check; *details* are visible to anyone who can request it."""

    ready: bool = True
    """False while calls cannot be served."""
    details: dict[str, bool | int | str] = {}


Check: TypeAlias = Callable[[], HealthState | None]
"""A health check. It must be quick and must not block; None means that it does not apply."""


class Recording(Protocol):
    """Keeps a record of each call; implemented by `answerback.records.Records`."""

    def recorded(
        self, handle: Callable[[Any], Coroutine[Any, Any, Any]], kind: str
    ) -> Callable[[Any], Coroutine[Any, Any, Any]]:
        """Return *handle*, wrapped to record each outcome."""

    def close(self) -> None:
        """Write the pending records."""

    def check(self) -> HealthState:
        """Report whether the records can be written."""


class Errors(Protocol):
    """Makes errors for an author's exceptions; implemented by `calls.failures.AppErrors`."""

    def add(self, kind: object, function: Callable[[Any], Any]) -> None:
        """Use *function* to make the error for exceptions of *kind*."""

    def shown_for(self, exc: BaseException, tool: Tool) -> BaseException | Reply[Any] | None:
        """Return the error that callers see for *exc*, or None if the app defines none."""


class Table(Mapping[str, T]):
    """The tools, resources, prompts or completions of an app, by public name.

    It is replaced atomically when apps are combined, so every thread sees a complete table.
    """

    __slots__ = ("_served", "get", "own")

    def __init__(self) -> None:
        self.own: dict[str, T] = {}
        """The entries registered in this app, including disabled ones."""
        self.serve(self.own)

    def serve(self, served: dict[str, T]) -> None:
        """Make *served* visible to callers."""
        self._served = served
        # The dict's own method, for speed: each call uses it to look up its tool.
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
    sessions = True
    """Whether MCP over HTTP uses sessions in its stateful versions."""
    requires: tuple[Callable[..., Any], ...] = ()
    """The gates for everything served here."""
    has_gates = False
    """Whether anything served here has gates."""
    visible: tuple[Callable[[Any, Any], bool], ...] = ()
    """The functions that decide which entries are visible to a caller."""
    challenge: Literal["auto", "http", "result"] = "auto"
    """How an MCP client is told to log in."""
    has_tasks = False
    """Whether any tool served here may run as a task."""
    has_budgets = False
    """Whether any tool served here has a budget."""
    stored_reply_resource: Resource | None = None
    """The resource for stored replies, created when a client first reads one."""
    has_keys = False
    """Whether any tool served here accepts an idempotency key in a plain call."""

    def __init__(
        self,
        name: str,
        *,
        version: str,
        title: str,
        description: str,
        contract: Contract,
        limits: Limits = DEFAULT_LIMITS,
    ) -> None:
        self.name = name
        self.version = version
        self.title = title
        self.description = description
        self.contract = contract
        self.limits = limits
        self.tool_defaults: dict[str, Any] = {}
        """The settings for tools that do not set their own."""
        self.records: Recording | None = None
        self.lifespan: Lifespan | None = None
        self.auth: AppAuth | None = None
        """The authentication for HTTP requests; None means that everyone is served."""
        self.overrides: dict[Any, Callable[..., Any]] = {}
        """For tests: replacement functions, by dependency."""
        self.tools: Table[Tool] = Table()
        self.resources: Table[Resource] = Table()
        self.prompts: Table[Prompt] = Table()
        self.completions: Table[Tool] = Table()
        self.tables: dict[str, Table[Any]] = {
            "tools": self.tools,
            "resources": self.resources,
            "prompts": self.prompts,
            "completions": self.completions,
        }
        self.icons: tuple[Icon, ...] = ()
        self.website_url = ""
        self.middleware: tuple[Any, ...] = ()
        """Functions that wrap each run of a tool, resource or prompt."""
        self.observers: tuple[Callable[[Any], object], ...] = ()
        """Functions that see every outcome."""
        self.errors: Errors | None = None
        """The errors that callers see for the author's own exceptions."""
        self.composition: Composition | None = None
        """The combined apps and their switches; None until first used."""
        self.changes = ChangeFeed()
        self.routes: list[OwnRoute] = []
        """The author's own pages, served alongside the tools."""

    def add_tool(self, fn: Callable[..., Any], options: ToolOptions) -> Tool:
        """Register a function with *options*, which override the app's defaults."""
        defaults = {"timeout": self.limits.seconds, **self.tool_defaults}
        tool = Tool(fn, read_settings({**defaults, **options}), self.contract)
        if tool.name in self.tools.own:
            raise ValueError(f"there is already a tool {tool.name!r}; give one a different name")
        if self.contract.route == "/" and tool.name in RESERVED_ROUTES:
            raise ValueError(f"/{tool.name} is one of the server's own routes; rename the tool")
        _put(self, self.tools, tool.name, tool)
        self.changes.publish(Change("tools"))
        return tool

    def add_resource(self, uri: str, fn: Callable[..., Any], options: ResourceOptions) -> None:
        """Register a function that returns the content at *uri*, which may be a URI template."""
        from ..tools.resource import Resource

        if uri in self.resources.own:
            raise ValueError(f"there is already a resource {uri!r}")
        put_resource(self, Resource(uri, fn, options, self.contract))

    def add_prompt(self, fn: Callable[..., Any], options: CommonOptions) -> None:
        """Register a function that returns messages."""
        from ..tools.prompt import Prompt

        prompt = Prompt(fn, read_settings(options), self.contract)
        if prompt.name in self.prompts.own:
            raise ValueError(f"there is already a prompt {prompt.name!r}")
        _put(self, self.prompts, prompt.name, prompt)
        self.changes.publish(Change("prompts"))

    def remove(self, kind: ListedKind, name: str) -> None:
        """Stop serving an entry, and notify the clients that subscribed to its list."""
        table = self.tables[kind]
        if self.composition is None:
            del table.own[name]
        else:
            self.composition.remove(table, name)
        self.changes.publish(Change(kind))

    def add_completion(
        self, of: str, argument: str, fn: Callable[..., Any], requires: Sequence[Callable[..., Any]]
    ) -> None:
        """Register a function that completes an argument of a prompt or a resource URI."""
        settings = read_settings({"returns": "value", "requires": requires})
        tool = Tool(fn, settings, self.contract)
        names = {parameter.name for parameter in tool.signature.parameters}
        if unknown := sorted(names - {"value", "arguments"}):
            raise TypeError(
                f"completion {tool.name!r} takes {unknown}; "
                "it should take value: str and arguments: dict[str, str]"
            )
        tool.noun = "completion"
        _put(self, self.completions, completion_key(of, argument), tool)

    def composed(self) -> Composition:
        """Return the combined apps, created on first use."""
        if self.composition is None:
            from .composition import Composition

            self.composition = Composition(self)
        return self.composition

    def apps(self) -> Iterator[Registry]:
        """Return this app and the apps it includes, without duplicates."""
        if self.composition is None:
            return iter((self,))
        return self.composition.apps()

    @property
    def has_filters(self) -> bool:
        """Whether an `@app.visible` function decides what is visible to a caller."""
        return any(app.visible for app in self.apps())

    @property
    def hides_entries(self) -> bool:
        """Whether anything served here may be hidden from a caller."""
        return self.has_gates or self.has_filters


class HasRegistry:
    """An object with a registry: how the layers below see an `App`."""

    def __init__(self, registry: Registry) -> None:
        self._registry = registry


def registry_of(app: HasRegistry) -> Registry:
    return app._registry


def _put(registry: Registry, table: Table[T], name: str, entry: T) -> None:
    """Add an entry; raises ValueError if its name clashes in an app that includes this one."""
    adopt(registry, entry)
    if registry.composition is None:
        table.own[name] = entry
    else:
        registry.composition.put(table, name, entry)


def adopt(registry: Registry, entry: Tool) -> None:
    """Put *registry*'s middleware and gates before the ones that *entry* already has."""
    entry.path = (registry, *entry.path)
    entry.middleware = registry.middleware + entry.middleware
    # A widget's page contains no data, and shows its tools' refusals.
    requires = () if entry.is_widget else registry.requires
    if requires or entry.settings.requires or entry.gates is not None:
        from ..tools.requires import add_gates

        add_gates(entry, requires, registry.limits.gates)
        registry.has_gates = True
    registry.has_tasks = registry.has_tasks or entry.settings.task != "forbidden"
    registry.has_budgets = registry.has_budgets or entry.settings.budget is not None
    registry.has_keys = registry.has_keys or entry.settings.idempotency_key


def put_resource(registry: Registry, resource: Resource) -> None:
    """Serve an existing resource."""
    _put(registry, registry.resources, resource.uri, resource)
    registry.changes.publish(Change("resources"))


def completion_key(owner: str, argument: str) -> str:
    """Return a completion's key: *owner* is the prompt's name or the resource's URI."""
    return f"{argument} of {owner}"


RouteFunction: TypeAlias = Callable[[Any], Awaitable[Any]]
"""Takes Starlette's Request and returns one of its responses."""


class OwnRoute(msgspec.Struct, frozen=True):
    """A page: its path, which may contain Starlette's path parameters, and its methods."""

    path: str
    methods: tuple[str, ...]
    fn: RouteFunction


def check_route(registry: Registry, path: object, methods: Sequence[str]) -> None:
    """Raise TypeError or ValueError for a path that cannot be served or is already taken."""
    if callable(path):
        raise TypeError("@app.route takes a path: @app.route('/plans')")
    if not isinstance(path, str) or not path.startswith("/"):
        raise ValueError(f"{path!r} is not a path; write one that begins with a slash: '/plans'")
    if isinstance(methods, str) or not methods:
        raise TypeError(f"methods is a list: methods=[{methods or 'GET'!r}]")
    first = path[1:].partition("/")[0]
    if first in RESERVED_ROUTES or first == ".well-known":
        raise ValueError(f"{path!r} is one of the server's own paths; choose another")
    if registry.contract.route == "/" and path[1:] in registry.tools.own:
        raise ValueError(f"{path!r} is the path of a tool; choose another")
    for each in registry.routes:
        if each.path == path and set(each.methods) & set(methods):
            raise ValueError(f"there is already a route {path!r} for {' '.join(each.methods)}")


VisibleFunction: TypeAlias = Callable[[Any, Any], bool]
"""Takes a VisibleEntry and the RequestInfo; returns whether the caller may see the entry."""


class VisibleEntry(msgspec.Struct, frozen=True):
    """A tool, a resource or a prompt, as seen by an `@app.visible` function."""

    kind: str
    """"tool", "resource" or "prompt"."""
    name: str
    """The name of the tool or prompt, or the URI or URI template of the resource."""
    tags: frozenset[str]


def add_visible(registry: Registry, function: VisibleFunction) -> None:
    """Let *function* decide who sees what; raises TypeError or ValueError."""
    given: object = function
    if not callable(given) or isinstance(given, type):
        raise TypeError("@app.visible decorates a function: def visible(entry, request) -> bool")
    source = source_of(function)
    name = source.function.__name__
    names = required_parameters(source)
    if source.is_async or len(names) != 2:
        found = "is async" if source.is_async else f"takes {names}"
        raise TypeError(f"{name!r} {found}; write def {name}(entry, request) -> bool")
    if _is_served(registry):
        raise ValueError(f"register {name!r} before {registry.name!r} is served or called")
    registry.visible = (*registry.visible, function)


def _is_served(registry: Registry) -> bool:
    if registry.changes.attached():
        return True
    composition = registry.composition
    return composition is not None and any(_is_served(each.app) for each in composition.including())


def is_hidden(entry: Tool, request: RequestInfo) -> bool:
    """Return whether the entry is hidden from the caller of *request*."""
    if entry.gates is not None and entry.gates.hide_from(request.user):
        return True
    return is_filtered(entry, request)


def is_filtered(entry: Tool, request: RequestInfo) -> bool:
    """Return whether an `@app.visible` function hides the entry; gates do not count."""
    functions = [each for app in entry.path for each in app.visible if entry.is_listed]
    return bool(functions) and not all(_shows(each, entry, request) for each in functions)


def _shows(function: VisibleFunction, entry: Tool, request: RequestInfo) -> bool:
    listed = VisibleEntry(entry.noun, entry.public_name, frozenset(entry.settings.tags))
    try:
        return bool(function(listed, request))
    except Exception:  # noqa: BLE001 -- the author's code may raise anything
        logger().exception("%r failed, so %s is hidden", function, entry.owner)
        return False
