"""App: the front door. Tools are registered, called and served from here."""

from __future__ import annotations

import atexit
import sys
from abc import ABCMeta
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import AbstractAsyncContextManager, contextmanager, nullcontext
from functools import partial
from typing import TYPE_CHECKING, Any, Never, NoReturn, TypedDict, TypeVar, Unpack, cast, overload

from .contract import Contract, Dialect, contract_named
from .core.author_errors import HideLibraryFrames
from .core.content import our_icons
from .core.limits import DEFAULT_LIMITS, Limits
from .errors import Code, add_codes
from .registry.declarations import (
    Change,
    HasRegistry,
    OwnRoute,
    Registry,
    Table,
    add_visible,
    check_route,
)
from .tools.tool_options import CommonOptions, ToolOptions, check_options
from .types.json_text import ENCODER

if TYPE_CHECKING:
    from .calls.failures import ErrorFunction
    from .calls.middleware_and_observers import Middleware, Observer
    from .calls.runtime import Runtime
    from .core.authentication import AppAuth, Authenticator
    from .core.content import Icon
    from .core.reply import Reply
    from .gates import Redeemed
    from .options import Access, Values
    from .protocol.widget import WidgetOptions
    from .records import Records, Sink
    from .registry.declarations import RouteFunction, VisibleFunction
    from .registry.lifespan import Lifespan, LifespanFunction
    from .server.asgi.application import AsgiApp
    from .server.asgi.request import Receive, Scope, Send
    from .tools.resource import Resource, ResourceOptions
    from .tools.tool import Tool


class AppOptions(TypedDict, total=False):
    """Options for an App."""

    version: str
    """Your program's version, shown to clients; "0.0.0" by default."""
    title: str
    """The server's display name, shown by MCP hosts."""
    description: str
    """The server's instructions for language models."""
    contract: str | Contract
    """The format of replies: a preset's name or a Contract; "standard" by default."""
    values: Values
    """How tools read arguments and send results, unless they set `values=` themselves."""
    budget: int
    """How many characters of a tool's reply to send over MCP, unless the tool sets `budget=`."""
    codes: Mapping[Any, int | Code]
    """Your own error codes and their HTTP statuses, such as {"CITY_UNKNOWN": 404}."""
    limits: Limits
    """Limits on the number and duration of calls, threads and tasks."""
    lifespan: LifespanFunction
    """A context manager function, async or plain; the value it yields becomes `ctx.state`."""
    records: Sink | Records | None
    """Where to record each reply, such as `SQLite("audit.db")`."""
    icons: Sequence[Icon]
    """The icons that MCP hosts show next to the server's name."""
    website_url: str
    """The URL of the server's web page, which MCP hosts show."""
    access: Access
    """How clients reach the app over HTTP: its URL, its sessions, and how clients log in."""
    requires: Sequence[Callable[..., Any]]
    """Gates for all tools, resources, prompts and completions; they run before an entry's own."""
    middleware: Sequence[Middleware]
    """Functions that wrap each run: `async def timing(call, next)`; the first is outermost."""
    observers: Sequence[Observer]
    """Functions that see every outcome, including refusals: `def count(seen)`."""
    errors: Mapping[type[BaseException], ErrorFunction]
    """The errors that callers see for your own exceptions, such as {ProjectError: NotFound}."""
    auth: Authenticator | None
    """Authentication for HTTP requests, such as `OAuth(...)` from `answerback.auth`."""


class AsgiOptions(TypedDict, total=False):
    """Options for `app.asgi`."""

    hosts: Sequence[str]
    """The host names to accept, in addition to this machine's."""
    origins: Sequence[str]
    """The sites whose pages may call the app, such as `https://app.example.com`."""
    max_body: int
    """The largest request body in bytes."""
    trusted_proxies: Sequence[str]
    """The addresses or networks whose forwarded headers are trusted."""
    signals: bool
    """False leaves SIGTERM and SIGINT to the server; open streams then keep it from exiting."""
    console: bool
    """Show browsers a page for calling the tools."""
    mcp: str
    """The path for MCP; use "/" for an app mounted at /mcp."""
    rest: bool
    """False disables REST: only MCP, the health pages and your own pages are served."""
    auth: bool
    """False confirms that anyone may call an app without `auth=`, and silences the warning."""


def declared(name: str, options: AppOptions) -> Registry:
    """Return the registry that the options declare, except the lifespan, which needs the App."""
    registry = Registry(
        name,
        version=options.get("version", "0.0.0"),
        title=options.get("title", ""),
        description=options.get("description", ""),
        contract=contract_named(options.get("contract", "standard")),
        limits=options.get("limits") or DEFAULT_LIMITS,
    )
    if "codes" in options:
        add_codes(options["codes"])
    if (values := options.get("values")) is not None:
        registry.tool_defaults = values.settings()
    if (budget := options.get("budget")) is not None:
        registry.tool_defaults["budget"] = budget
    if (given := options.get("records")) is not None:
        from .records import Records

        registry.records = given if isinstance(given, Records) else Records(given)
    registry.requires = tuple(options.get("requires", ()))
    registry.icons = our_icons(options.get("icons", ()))
    registry.website_url = options.get("website_url", "")
    if (auth := options.get("auth")) is not None:
        from .core.authentication import checked_authenticator

        registry.auth = checked_authenticator(auth)
    if (access := options.get("access")) is not None:
        url, known = access.url or "", "" if registry.auth is None else registry.auth.url
        if url and known not in ("", url):
            raise ValueError(
                f"the url of access=, {url!r}, is not the url of auth=; leave one of them out"
            )
        registry.url = url
        registry.sessions = access.sessions
        registry.challenge = access.challenge
    middleware, observers = options.get("middleware"), options.get("observers")
    if middleware or observers:
        from .calls.middleware_and_observers import checked_middleware, checked_observers

        registry.middleware = checked_middleware(middleware or ())
        registry.observers = checked_observers(observers or ())
    return registry


F = TypeVar("F", bound=Callable[..., Any])
VF = TypeVar("VF", bound="VisibleFunction")


class _HintsOfClass(ABCMeta):
    """Suggests replacements for class methods such as `FastMCP.from_openapi`.

    It extends ABCMeta so that an author's class can be both an App and abstract.
    """

    # Hidden from type checkers so that they still catch a wrong name.
    if not TYPE_CHECKING:

        def __getattr__(cls, name: str) -> NoReturn:
            raise _missing_member(name)

        def __call__(cls, *arguments: object, **options: object) -> App:
            if cls is App and not arguments and "name" not in options:
                raise TypeError('an app needs a name, which clients see; write App("shop")')
            return super().__call__(*arguments, **options)


class App(HasRegistry, metaclass=_HintsOfClass):
    """A set of tools under one name; `AppOptions` lists the options.

    *name* is the server's name, as shown to clients.
    """

    def __init__(self, name: str, **options: Unpack[AppOptions]) -> None:
        check_options(options, AppOptions)
        registry = declared(name, options)
        super().__init__(registry)
        if (function := options.get("lifespan")) is not None:
            from .registry.lifespan import Lifespan

            registry.lifespan = Lifespan(function, registry, self)
        if errors := options.get("errors"):
            self._add_errors(errors)
        access = options.get("access")
        self._used_tokens = None if access is None else access.used_tokens
        self._included: list[App] = []
        self._own_runtime: Runtime | None = None
        self._served: AsgiApp | None = None
        # Registered once, however many apps a program has.
        atexit.unregister(_remind_to_run)
        atexit.register(_remind_to_run)

    if not TYPE_CHECKING:

        def __getattr__(self, name: str) -> NoReturn:
            raise _missing_member(name)

    @property
    def tools(self) -> Table[Tool]:
        """The tools by name, including those of included apps."""
        return self._registry.tools

    @property
    def resources(self) -> Table[Resource]:
        """The resources by URI or URI template."""
        return self._registry.resources

    @property
    def contract(self) -> Contract:
        """The format of the app's replies."""
        return self._registry.contract

    @property
    def auth(self) -> AppAuth | None:
        """The authentication for requests; with `serve --dev-auth`, it accepts test tokens."""
        from .calls.runtime import serving

        runtime = serving(self._registry)
        return self._registry.auth if runtime is None else runtime.auth

    @property
    def records(self) -> Records | None:
        """The records passed to the App: `app.records.flush()`."""
        return cast("Records | None", self._registry.records)

    @property
    def lifespan(self) -> Lifespan | None:
        """For the host application this app is mounted in: `FastAPI(lifespan=app.lifespan)`."""
        return self._registry.lifespan

    @lifespan.setter
    def lifespan(self, value: object) -> None:
        raise AttributeError("the lifespan is set when the app is made: App(..., lifespan=…)")

    @property
    def overrides(self) -> dict[Any, Callable[..., Any]]:
        """For tests: replacement functions, keyed by the dependency they replace."""
        return self._registry.overrides

    @overload
    def tool(self, fn: F, /) -> F: ...
    @overload
    def tool(self, /, **options: Unpack[ToolOptions]) -> Callable[[F], F]: ...
    def tool(self: object = None, fn: Any = None, /, **options: Any) -> Any:
        """Register a function and return it unchanged. Works with or without options."""
        if not isinstance(self, App):
            raise TypeError("App.tool needs an instance; write app = App('NAME'), then @app.tool")
        if fn is None:
            return partial(self.tool, **options)
        if not callable(fn):
            raise TypeError(f"@app.tool takes options by name: @app.tool(name={fn!r})")
        self.add_tool(fn, **options)
        return fn

    def add_tool(self, fn: Callable[..., Any], **options: Unpack[ToolOptions]) -> Tool:
        """Register a function without a decorator, such as an object's method."""
        if isinstance(fn, App):
            raise TypeError("an App is not a tool; write app.include(other)")
        with HideLibraryFrames():
            check_options(options, ToolOptions)
            if options.get("widget") is not None:
                from .protocol.widget import with_widget_keys

                options = with_widget_keys(options)
            return self._registry.add_tool(fn, options)

    def remove_tool(self, name: str) -> None:
        """Stop serving a tool, and notify the clients subscribed to the tool list."""
        self._registry.remove("tools", name)

    def resource(self, uri: str, /, **options: Unpack[ResourceOptions]) -> Callable[[F], F]:
        """Register a function that returns the content of *uri*, or of URIs matching a template."""
        from .tools.resource import ResourceOptions, check_uri

        check_uri(uri)
        check_options(options, ResourceOptions)

        def register(fn: F) -> F:
            with HideLibraryFrames():
                self._registry.add_resource(uri, fn, options)
            return fn

        return register

    def resource_changed(self, uri: str) -> None:
        """Notify the clients subscribed to *uri* that its content has changed."""
        self._registry.changes.publish(Change("resource", uri))

    @overload
    def prompt(self, fn: F, /) -> F: ...
    @overload
    def prompt(self, /, **options: Unpack[CommonOptions]) -> Callable[[F], F]: ...
    def prompt(self, fn: object = None, /, **options: object) -> Any:
        """Register a function that returns messages. Works with or without options."""
        if fn is None:
            return partial(self.prompt, **options)
        if not callable(fn):
            raise TypeError(f"@app.prompt takes options by name: @app.prompt(name={fn!r})")
        with HideLibraryFrames():
            check_options(options, CommonOptions)
            self._registry.add_prompt(fn, cast("CommonOptions", options))
        return fn

    def remove_prompt(self, name: str) -> None:
        """Stop serving a prompt, and notify the clients subscribed to the prompt list."""
        self._registry.remove("prompts", name)

    def completion(
        self, of: str, argument: str, *, requires: Sequence[Callable[..., Any]] = ()
    ) -> Callable[[F], F]:
        """Register a function that completes an argument of a prompt or a resource URI.

        It takes `value: str`, the text typed so far, and returns a list of strings. With an
        `arguments: dict[str, str]` parameter, it also receives the arguments already filled in. The
        gates of the prompt or resource apply here too; *requires* adds more.
        """
        check_options({"requires": requires}, CommonOptions)

        def register(fn: F) -> F:
            self._registry.add_completion(of, argument, fn, requires)
            return fn

        return register

    def visible(self, fn: VF, /) -> VF:
        """Register a function that decides what a caller sees: `def visible(entry, request)`.

        *entry* has `kind`, `name` and `tags`, and *request* is like `ctx.request`. If the function
        returns False, the caller can neither list nor call the entry.
        """
        add_visible(self._registry, fn)
        return fn

    def error(self, *kinds: type[BaseException]) -> Callable[[F], F]:
        """Register a function that returns the error callers see: `@app.error(ProjectError)`.

        It takes the exception and returns a ToolError, `failure(…)` or the message; None keeps the
        exception masked. The function registered for the most specific class is used.
        """
        if not kinds or not all(isinstance(kind, type) for kind in kinds):
            raise TypeError("@app.error takes exception classes: @app.error(ProjectError)")

        def register(fn: F) -> F:
            self._add_errors(dict.fromkeys(kinds, fn))
            return fn

        return register

    def _add_errors(self, functions: Mapping[type[BaseException], ErrorFunction]) -> None:
        from .calls.failures import AppErrors

        if self._registry.errors is None:
            self._registry.errors = AppErrors()
        for kind, function in functions.items():
            self._registry.errors.add(kind, function)

    def include(self, other: App, *unknown: Never, prefix: str = "") -> None:
        """Also serve the tools, resources and prompts of *other*, even those registered later.

        *prefix* is added to the names of tools and prompts; URIs stay unchanged.
        """
        from .registry.composition import include

        wrong: object = other
        if not isinstance(wrong, App):
            raise TypeError(f"include takes an App, not {type(wrong).__name__}")
        if unknown:
            raise TypeError(
                "include takes the prefix by name: "
                f"app.include(other, prefix={', '.join(map(repr, unknown))})"
            )
        include(self._registry, other._registry, prefix)
        self._included.append(other)

    def enable(self, name: str | None = None, *, tag: str | None = None) -> None:
        """Undo `disable`: serve one entry again, by name or URI, or all entries with *tag*."""
        self._switch(name, tag, on=True)

    def disable(self, name: str | None = None, *, tag: str | None = None) -> None:
        """Stop serving a tool, prompt or resource, or all entries with *tag*, until enabled again.

        To callers, it no longer exists. Running calls finish normally.
        """
        self._switch(name, tag, on=False)

    def _switch(self, name: str | None, tag: str | None, *, on: bool) -> None:
        from .registry.composition import switch

        switch(self._registry, name, tag, on=on)

    def apps(self) -> Iterator[App]:
        """Yield this app and the apps it includes, each once."""
        found = {id(self): self}
        for child in self._included:
            found |= {id(each): each for each in child.apps() if id(each) not in found}
        return iter(found.values())

    def widget(self, name: str, /, **options: Unpack[WidgetOptions]) -> None:
        """Register a page that hosts show with a reply; `@app.tool(widget=name)` refers to it."""
        from .protocol.widget import add_widget

        # Relative to the author's file, because a host may start the server in any folder.
        add_widget(self._registry, name, options, sys._getframe(1).f_globals.get("__file__"))

    def route(
        self, path: str, *, methods: Sequence[str] = ("GET",)
    ) -> Callable[[RouteFunction], RouteFunction]:
        """Serve your own HTTP page: an async function that takes Starlette's Request.

        *methods* are the HTTP methods it accepts. Gates and `auth=` do not apply to it.
        Register it before the app is served.
        """
        check_route(self._registry, path, methods)

        def register(fn: RouteFunction) -> RouteFunction:
            self._registry.routes.append(OwnRoute(path, tuple(methods), fn))
            return fn

        return register

    def call(self, name: str, /, **arguments: object) -> Coroutine[Any, Any, Reply[Any]]:
        """Call a tool in memory, through the whole pipeline: `await app.call("add", x=1)`.

        A Context among the arguments receives progress, log messages and questions.
        """
        from .server.memory import UnawaitedCall

        return UnawaitedCall(self._call(name, arguments))

    async def _call(self, name: str, arguments: dict[str, Any]) -> Reply[Any]:
        from .calls.context import take_caller
        from .server.memory import call

        peer, user = take_caller(arguments)
        encoded = ENCODER.encode(arguments)
        return await call(self._runtime, name, encoded, peer, user)

    def write(self, reply: Reply[Any], dialect: Dialect | None = None) -> dict[str, Any]:
        """Return the JSON object that this app sends for *reply*, over HTTP or in *dialect*."""
        from .dialects import as_sent

        return as_sent(reply, dialect or self.contract.http, self.contract)

    @contextmanager
    def override(
        self, dependency: Callable[..., Any], replacement: Callable[..., Any]
    ) -> Iterator[None]:
        """Replace a dependency within a block: `with app.override(get_pool, fake):`."""
        overrides = self._registry.overrides
        before = dict(overrides)
        overrides[dependency] = replacement
        try:
            yield
        finally:
            overrides.clear()
            overrides.update(before)

    def redeem(self, token: str, user: object) -> Redeemed:
        """Accept the token from a gate link, on the page the link leads to.

        *user* is the user logged in on that page; the link must have been made for this user.
        A token can be redeemed only once. Raises LinkRefused.
        """
        from .calls.runtime import serving
        from .gates.links import redeem, used_tokens_in

        runtime = serving(self._registry)
        state = None if runtime is None else runtime.state
        return redeem(token, user, self._used_tokens or used_tokens_in(state))

    def running(self) -> AbstractAsyncContextManager[None]:
        """For tests: run the lifespan within a block, with `async with app.running():`."""
        if self.lifespan is not None:
            return self.lifespan()
        return nullcontext()

    @property
    def state(self) -> Any:
        """The value that the lifespan yielded, for code outside the tools, such as a route.

        None if there is no lifespan, or if it has not started yet.
        """
        return None if self.lifespan is None else self.lifespan.state

    @property
    def _runtime(self) -> Runtime:
        """The running call's runtime, else the newest one serving the app, else a new one."""
        from .calls.runtime import runtime_on_loop, serving

        found = serving(self._registry)
        if found is None:
            found = self._own_runtime = runtime_on_loop(self._registry)
        return found

    def openapi(self, *, dialects: bool = False) -> dict[str, Any]:
        """Return the OpenAPI 3.1 document for the tools.

        It lists the contract's media type. With *dialects*, it also lists the others that a client
        can request.
        """
        from .server.http.openapi import document

        self._registry.changes.was_used = True
        return document(self._registry, dialects=dialects)

    def asgi(self, **options: Unpack[AsgiOptions]) -> AsgiApp:
        """Return the ASGI application; `AsgiOptions` lists the options.

        Other frameworks can mount it, and ASGI servers can run it.
        """
        from .server.asgi.application import asgi_app
        from .server.http.server_options import WebOptions

        check_options(options, AsgiOptions)
        if any(each.settings.widget or each.settings.meta for each in self.tools.values()):
            from .protocol.widget import check_widgets

            check_widgets(self._registry)
        return asgi_app(self._registry, WebOptions(**options))

    async def __call__(self, scope: Scope, receive: Receive, send: Send) -> None:
        """Serve as an ASGI application, like `asgi()` without options: `uvicorn server:app`."""
        if self._served is None:
            try:
                self._served = self.asgi()
            except Exception as exc:
                # A server takes an exception to mean "no lifespan", and would start anyway.
                if scope["type"] == "lifespan":
                    await receive()
                    await send({"type": "lifespan.startup.failed", "message": str(exc)})
                raise
        await self._served(scope, receive, send)

    # ASGI servers expect a coroutine function, so this method cannot detect `@app` itself.
    # Python's error about missing arguments starts with this name.
    __call__.__qualname__ = "to register a function, write @app.tool; App.__call__"

    def run(self, arguments: Sequence[str] | None = None, **unknown: Never) -> None:
        """Run as a command-line program: `python calculator.py COMMAND`."""
        if unknown or isinstance(arguments, str):
            _refuse_run(arguments, unknown)
        atexit.unregister(_remind_to_run)
        from .cli.program import run_app

        run_app(self, arguments)

    async def run_async(self, arguments: Sequence[str] | None = None, **unknown: Never) -> None:
        """Run as a command-line program on a running event loop: `await app.run_async(["serve"])`.

        The tools' coroutines run on this loop. Cancelling the task ends the server.
        """
        if unknown or isinstance(arguments, str):
            _refuse_run(arguments, unknown)
        atexit.unregister(_remind_to_run)
        from .cli.program import run_app_async

        await run_app_async(self, arguments)


def _missing_member(name: str) -> AttributeError:
    from .tools.other_frameworks import missing_member

    return missing_member("App", name, dir(App))


def _remind_to_run() -> None:
    """Print a reminder if a program defines an App but never runs or uses it."""
    # `last_value` is the exception that ended the program.
    if "argparse" in sys.modules or hasattr(sys, "last_value"):
        return
    main = vars(sys.modules["__main__"])
    apps = {name: value for name, value in main.items() if isinstance(value, App)}
    if apps and not any(app._registry.changes.was_used for app in apps.values()):
        from .cli.program import remind_to_run

        remind_to_run(*next(iter(apps.items())))


def _refuse_run(arguments: object, unknown: dict[str, Never]) -> NoReturn:
    from .tools.other_frameworks import refuse_run_options, refuse_text

    if isinstance(arguments, str):
        refuse_text(arguments)
    refuse_run_options({**unknown})
