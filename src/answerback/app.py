"""App: tools are registered here, called here, and served from here."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from functools import cached_property, partial
from typing import TYPE_CHECKING, Any, TypeVar, Unpack, cast, overload

from .contract import Contract, contract_named
from .limits import DEFAULT_LIMITS, Limits
from .registry import Change, Changes
from .tools.tool import Options, Tool, ToolOptions, check_options
from .wires.http.refusals import MAX_BODY, RESERVED

if TYPE_CHECKING:
    from .calls.handlers import Paths
    from .records import Records, Sink
    from .reply import Reply
    from .tools.prompt import Prompt
    from .tools.resource import Resource, ResourceOptions
    from .wires.asgi.application import Site

F = TypeVar("F", bound=Callable[..., Any])


class App:
    """A set of tools under one name.

    *contract* says how replies look; *lenient* takes "7" for 7 and JSON in a string;
    *limits* says how much may go on at a time, and for how long; *records* keeps what
    was answered, such as `SQLite("audit.db")`.
    """

    def __init__(
        self,
        name: str,
        *,
        version: str = "0.0.0",
        title: str = "",
        description: str = "",
        contract: str | Contract = "standard",
        lenient: bool = False,
        limits: Limits = DEFAULT_LIMITS,
        records: Sink | Records | None = None,
    ) -> None:
        self.name = name
        self.version = version
        self.title = title
        self.description = description
        self.contract = contract_named(contract)
        self.tools: dict[str, Tool] = {}
        self.resources: dict[str, Resource] = {}
        self.prompts: dict[str, Prompt] = {}
        self.completions: dict[str, Tool] = {}
        self.changes = Changes()
        self._lenient = lenient
        self.limits = limits
        self.records = None if records is None else _records(records)

    @overload
    def tool(self, fn: F, /) -> F: ...
    @overload
    def tool(self, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...
    def tool(self, fn: Any = None, /, **options: Any) -> Any:
        """Register a function; it is given back unchanged. With or without options."""
        if fn is None:
            return partial(self.tool, **options)
        if not callable(fn):
            raise TypeError(f"@app.tool takes options by name: @app.tool(name={fn!r})")
        self.add_tool(fn, **options)
        return fn

    def add_tool(self, fn: Callable[..., Any], **options: Unpack[ToolOptions]) -> Tool:
        """Register a function without a decorator, such as a method of an object."""
        check_options(options, ToolOptions)
        said: ToolOptions = {"lenient": self._lenient, "timeout": self.limits.seconds, **options}
        tool = Tool(fn, said, self.contract)
        _refuse_name(self, tool.name)
        self.tools[tool.name] = tool
        self.changes.tell(Change("tools"))
        return tool

    def remove_tool(self, name: str) -> None:
        """Serve a tool no longer; clients that listen are told."""
        del self.tools[name]
        self.changes.tell(Change("tools"))

    def resource(self, uri: str, /, **options: Unpack[ResourceOptions]) -> Callable[[F], F]:
        """Register a function that gives what is at *uri*, or at all URIs of a template."""
        from .tools.resource import Resource, ResourceOptions, check_uri

        check_uri(uri)
        check_options(options, ResourceOptions)

        def register(fn: F) -> F:
            if uri in self.resources:
                raise ValueError(f"there is a resource {uri!r} already")
            self.resources[uri] = Resource(uri, fn, options, self.contract)
            self.changes.tell(Change("resources"))
            return fn

        return register

    @overload
    def prompt(self, fn: F, /) -> F: ...
    @overload
    def prompt(self, /, **options: Unpack[Options]) -> Callable[[F], F]: ...
    def prompt(self, fn: Any = None, /, **options: Any) -> Any:
        """Register a function that makes messages. With or without options."""
        from .tools.prompt import Prompt

        if fn is None:
            return partial(self.prompt, **options)
        if not callable(fn):
            raise TypeError(f"@app.prompt takes options by name: @app.prompt(name={fn!r})")
        check_options(options, Options)
        prompt = Prompt(fn, cast("Options", options), self.contract)
        if prompt.name in self.prompts:
            raise ValueError(f"there is a prompt {prompt.name!r} already")
        self.prompts[prompt.name] = prompt
        self.changes.tell(Change("prompts"))
        return fn

    def remove_resource(self, uri: str) -> None:
        """Serve a resource no longer; clients that listen are told."""
        del self.resources[uri]
        self.changes.tell(Change("resources"))

    def remove_prompt(self, name: str) -> None:
        """Serve a prompt no longer; clients that listen are told."""
        del self.prompts[name]
        self.changes.tell(Change("prompts"))

    def resource_changed(self, uri: str) -> None:
        """Tell the clients that subscribed to *uri* that it reads otherwise now."""
        self.changes.tell(Change("resource", uri))

    def completion(self, of: str, argument: str) -> Callable[[F], F]:
        """Register a function that completes an argument of a prompt or of a resource's URI.

        It takes `value: str`, what was typed so far, and gives a list of strings; with a
        parameter `arguments: dict[str, str]` it is given those that are filled in already.
        """
        from .mcp.completion import completion_key, completion_tool

        def register(fn: F) -> F:
            key = completion_key(of, argument)
            self.completions[key] = completion_tool(fn, self.contract)
            return fn

        return register

    async def call(self, name: str, /, **arguments: Any) -> Reply[Any]:
        """Call a tool in memory, through the whole pipeline."""
        from .types.encoding import ENCODER
        from .wires.memory import call

        return await call(self, name, ENCODER.encode(arguments))

    @cached_property
    def paths(self) -> Paths:
        """The ways through, for wires with a running loop."""
        from .calls.handlers import paths
        from .calls.runners import on_loop
        from .calls.thread_pool import Pool

        return paths(self, on_loop(Pool(self.limits.threads)))

    def asgi(
        self, *, hosts: Sequence[str] = (), origins: Sequence[str] = (), max_body: int = MAX_BODY
    ) -> Site:
        """A plain ASGI application; it also mounts in any Starlette or FastAPI app.

        *hosts* are the names it answers to, *origins* those whose pages may call it.
        """
        from .wires.asgi import asgi
        from .wires.http.options import WebOptions

        return asgi(self, WebOptions(max_body=max_body, hosts=tuple(hosts), origins=tuple(origins)))

    def openapi(self) -> dict[str, Any]:
        """The OpenAPI 3.1 document of the tools; the caller may change it."""
        from .wires.http.openapi import document

        return document(self)

    def run(self, arguments: Sequence[str] | None = None) -> None:
        """Be a command-line program: `python calculator.py COMMAND`."""
        from .cli import run_app

        run_app(self, arguments)


def _refuse_name(app: App, name: str) -> None:
    if name in app.tools:
        raise ValueError(f"there is a tool {name!r} already; give one another name")
    if app.contract.route == "/" and name in RESERVED:
        raise ValueError(f"/{name} is a route of the server's; give the tool another name")


def _records(given: Sink | Records) -> Records:
    from .records import Records

    return given if isinstance(given, Records) else Records(given)


def only_app(namespace: Mapping[str, Any], where: str) -> App:
    """The one App among a module's names."""
    apps = {id(value): value for value in namespace.values() if isinstance(value, App)}
    if len(apps) != 1:
        names = [name for name, value in namespace.items() if isinstance(value, App)]
        found = f"these: {', '.join(names)}; add :NAME" if names else "none"
        raise ValueError(f"{where} should hold one App, and holds {found}")
    return next(iter(apps.values()))
