"""App: the front door. Tools are registered, called and served from here."""

from __future__ import annotations

import atexit
import sys
from collections.abc import Callable, Coroutine, Iterator, Mapping, Sequence
from contextlib import contextmanager
from typing import TYPE_CHECKING, Any, Literal, Never, NoReturn, TypedDict, Unpack

from .context import Context, take_peer
from .contract import Contract, Dialect, contract_named
from .errors import Code, add_codes
from .limits import DEFAULT_LIMITS, MAX_BODY, Limits
from .registry import Registry
from .tools.tool_options import ToolOptions, check_options

if TYPE_CHECKING:
    from contextlib import AbstractAsyncContextManager

    from .authentication import AppAuth, Authenticator
    from .calls.around import Middleware, Observer
    from .calls.handlers import Handlers
    from .content import Icon
    from .gates import Redeemed, UsedTokens
    from .lifespan import LifespanFunction
    from .own_routes import RouteFunction
    from .records import Records, Sink
    from .reply import Reply
    from .tasks import TaskLimits
    from .tools.tool import Tool
    from .widgets.widget import WidgetOptions
    from .wires.asgi.application import AsgiApp


_FOR_WIDGETS = frozenset({"widget", "invoking", "invoked", "visible_to"})
"""The options of a tool that become keys of its `_meta`."""


class AppOptions(TypedDict, total=False):
    """The options of an App."""

    version: str
    """The version of the author's program, which clients see; "0.0.0" by default."""
    title: str
    description: str
    """Shown to language models as the server's instructions."""
    contract: str | Contract
    """How replies look: a preset's name or a Contract; "standard" by default."""
    lenient: bool
    """Read "7" as 7, and JSON in a string, where the type allows no string; True by default."""
    returns: Literal["reply", "value"]
    nan: Literal["refuse", "null"]
    """Defaults of the options of the same names in `@app.tool`."""
    codes: Mapping[str, int | Code]
    """Error codes of your own and their HTTP statuses, such as {"CITY_UNKNOWN": 404}."""
    limits: Limits
    """How many calls and threads may run at a time, and for how long."""
    task_limits: TaskLimits
    """How many tasks there may be, how large their results, and how long they are kept."""
    lifespan: LifespanFunction
    """A context manager function, async or plain; a tool gets what it yields as `ctx.state`."""
    records: Sink | Records | None
    """Where a record of each reply is kept, such as `SQLite("audit.db")`."""
    icons: Sequence[Icon]
    website_url: str
    """Shown by MCP hosts beside the name of the server."""
    url: str
    """The URL of the MCP endpoint as clients know it, such as "https://example.com/mcp"."""
    requires: Sequence[Callable[..., Any]]
    """The gates of all tools, resources, prompts and completions; they run before their own."""
    challenge: Literal["auto", "http", "result"]
    """How a client over MCP learns that it must log in: by an HTTP status or in the result."""
    used_tokens: UsedTokens
    """Remembers which links of gates were used; by default `UsedFiles()`, for one machine."""
    middleware: Sequence[Middleware]
    """Functions around each run: `async def timing(call, next)`; the first is outermost."""
    observers: Sequence[Observer]
    """Functions that see each outcome, refusals too: `def count(seen)`."""
    auth: Authenticator
    """Authenticates the requests over HTTP, such as `OAuth(...)` of `answerback.auth`."""


class App(Registry):
    """A set of tools under one name; `AppOptions` lists the options."""

    def __init__(self, name: str, **options: Unpack[AppOptions]) -> None:
        check_options(options, AppOptions)
        super().__init__(
            name,
            version=options.get("version", "0.0.0"),
            title=options.get("title", ""),
            description=options.get("description", ""),
            contract=contract_named(options.get("contract", "standard")),
            lenient=options.get("lenient", True),
            limits=options.get("limits", DEFAULT_LIMITS),
        )
        if "codes" in options:
            add_codes(options["codes"])
        self.tool_defaults = _tool_defaults(options)
        if (records := options.get("records")) is not None:
            self.records = _records(records)
        if (function := options.get("lifespan")) is not None:
            from .lifespan import Lifespan

            self.lifespan = Lifespan(function, self)
        self.task_limits = options.get("task_limits")
        self.requires = tuple(options.get("requires", ()))
        self.challenge = options.get("challenge", "auto")
        self._used_tokens = options.get("used_tokens")
        self.icons = tuple(options.get("icons", ()))
        self.website_url = options.get("website_url", "")
        self.auth = _authenticator(options.get("auth"))
        self.url = _url(options, self.auth)
        if middleware := options.get("middleware"):
            from .calls.around import checked_middleware

            self.middleware = checked_middleware(middleware)
        if observers := options.get("observers"):
            from .calls.around import checked_observers

            self.observers = checked_observers(observers)
        self._handlers: Handlers | None = None
        if len(sys.argv) > 1:
            # Once, however many apps a program has.
            atexit.unregister(_remind_to_run)
            atexit.register(_remind_to_run)

    def add_tool(self, fn: Callable[..., Any], **options: Unpack[ToolOptions]) -> Tool:
        if not _FOR_WIDGETS.isdisjoint(options):
            from .widgets.tool_keys import with_widget_keys

            options = with_widget_keys(options)
        return super().add_tool(fn, **options)

    def widget(self, name: str, /, **options: Unpack[WidgetOptions]) -> None:
        """Register a page that hosts show beside a reply; `@app.tool(widget=name)` refers to it."""
        from .widgets.widget import add_widget

        # A relative path begins at the author's file: a host starts the server in any folder.
        add_widget(self, name, options, sys._getframe(1).f_globals.get("__file__"))

    def route(
        self, path: str, *, methods: Sequence[str] = ("GET",)
    ) -> Callable[[RouteFunction], RouteFunction]:
        """Serve a page of your own over HTTP: an async function of Starlette's Request.

        Gates and `auth=` do not hold for it. Register it before the app is served.
        """
        from .own_routes import OwnRoute, check_route

        check_route(self, path, methods)

        def register(fn: RouteFunction) -> RouteFunction:
            self.routes.append(OwnRoute(path, tuple(methods), fn))
            return fn

        return register

    def call(self, name: str, /, **arguments: Any) -> Coroutine[Any, Any, Reply[Any]]:
        """Call a tool in memory, through the whole pipeline: `await app.call("add", x=1)`.

        A Context among the arguments gets the progress, the log messages and the questions.
        """
        from .wires.memory import UnawaitedCall

        return UnawaitedCall(self._call(name, arguments))

    async def _call(self, name: str, arguments: dict[str, Any]) -> Reply[Any]:
        from .types.json_text import ENCODER
        from .wires.memory import call

        user = next((each.user for each in arguments.values() if isinstance(each, Context)), None)
        peer = take_peer(arguments)
        encoded = ENCODER.encode(arguments)
        return await call(self.handlers, name, encoded, peer, user, contract=self.contract)

    def write(self, reply: Reply[Any], dialect: Dialect | None = None) -> dict[str, Any]:
        """Return the JSON object that this app sends for *reply*, over HTTP or in *dialect*."""
        from .dialects import as_sent

        return as_sent(reply, dialect or self.contract.http, self.contract)

    @contextmanager
    def override(
        self, dependency: Callable[..., Any], replacement: Callable[..., Any]
    ) -> Iterator[None]:
        """Use another function for a dependency meanwhile: `with app.override(get_pool, fake):`."""
        before = dict(self.overrides)
        self.overrides[dependency] = replacement
        try:
            yield
        finally:
            self.overrides.clear()
            self.overrides.update(before)

    def redeem(self, token: str, user: Any) -> Redeemed:
        """Accept the token in a link of a gate, for the page that the link leads to.

        *user* is the user who is logged in at the page, and must be the one that the link was made
        for. A token can be redeemed once. Raises LinkRefused.
        """
        from .gates.links import redeem
        from .gates.used_tokens import UsedFiles

        return redeem(token, user, self._used_tokens or UsedFiles())

    def running(self) -> AbstractAsyncContextManager[None]:
        """Start the lifespan and stop it at the end: `async with app.running():`, for tests."""
        if self.lifespan is not None:
            return self.lifespan()
        from contextlib import nullcontext

        return nullcontext()

    @property
    def state(self) -> Any:
        """The value that the lifespan yielded, for code beside the tools, such as a route's.

        It is None without a lifespan, and before the lifespan has started.
        """
        return None if self.lifespan is None else self.lifespan.state

    @property
    def handlers(self) -> Handlers:
        """The pipelines of the tools, resources, prompts and completions, for an event loop."""
        handlers = self._handlers
        # `serve --audit` sets the records after the author's module may have called the app.
        if handlers is None or handlers.records is not self.records:
            from .calls.handlers import handlers_on_loop

            handlers = self._handlers = handlers_on_loop(self)
        return handlers

    def openapi(self, *, dialects: bool = False) -> dict[str, Any]:
        """The OpenAPI 3.1 document of the tools.

        It has the contract's own media type; *dialects* adds those that a client can ask for.
        """
        from .wires.http.openapi import document

        return document(self, dialects=dialects)

    def asgi(
        self,
        *,
        hosts: Sequence[str] = (),
        origins: Sequence[str] = (),
        max_body: int = MAX_BODY,
        trusted_proxies: Sequence[str] = (),
    ) -> AsgiApp:
        """A plain ASGI application; other frameworks can mount it.

        It answers to the host names *hosts*, and pages of *origins* may call it. The forwarded
        headers of *trusted_proxies*, which are addresses or networks, count.
        """
        from .wires.asgi import asgi
        from .wires.asgi.other_server import warn_of_several_workers
        from .wires.http.options import WebOptions

        if any(tool.settings.widget for tool in self.tools.values()):
            from .widgets.tool_keys import check_widgets

            check_widgets(self)
        options = WebOptions(
            max_body=max_body,
            hosts=tuple(hosts),
            origins=tuple(origins),
            trusted_proxies=tuple(trusted_proxies),
        )
        atexit.unregister(_remind_to_run)
        application = asgi(self, self.handlers, options)
        warn_of_several_workers(has_secret=not application.key_is_temporary)
        return application

    def run(self, arguments: Sequence[str] | None = None, **unknown: Never) -> None:
        """Be a command-line program: `python calculator.py COMMAND`."""
        if unknown or isinstance(arguments, str):
            _refuse_run(arguments, unknown)
        atexit.unregister(_remind_to_run)
        from .cli import run_app

        run_app(self, arguments)


def _remind_to_run() -> None:
    """At the end of a program that was given a command and did not call `app.run()`."""
    if "argparse" in sys.modules:
        return  # The program reads its arguments itself.
    main = vars(sys.modules["__main__"])
    names = [name for name, value in main.items() if isinstance(value, App)]
    if names:
        from .cli import remind_to_run

        remind_to_run(names[0])


def _refuse_run(arguments: object, unknown: dict[str, Never]) -> NoReturn:
    from .other_frameworks import refuse_run_options, refuse_text

    if isinstance(arguments, str):
        refuse_text(arguments)
    refuse_run_options({**unknown})


def _url(options: AppOptions, auth: AppAuth | None) -> str:
    url = options.get("url", "")
    if url and auth is not None and auth.url not in ("", url):
        raise ValueError(f"url={url!r} is not the url of auth=; leave one of them out")
    return url


def _authenticator(auth: Authenticator | None) -> AppAuth | None:
    if auth is None:
        return None
    from .authentication import checked_authenticator

    return checked_authenticator(auth)


def _tool_defaults(options: AppOptions) -> ToolOptions:
    """Return the options of tools that the app gives."""
    defaults: ToolOptions = {}
    if "lenient" in options:
        defaults["lenient"] = options["lenient"]
    if "returns" in options:
        defaults["returns"] = options["returns"]
    if "nan" in options:
        defaults["nan"] = options["nan"]
    return defaults


def _records(records: Sink | Records) -> Records:
    from .records import Records

    return records if isinstance(records, Records) else Records(records)


def only_app(namespace: Mapping[str, Any], where: str) -> App:
    """The one App among a module's names; an App that another one includes is not counted."""
    apps = {id(value): value for value in namespace.values() if isinstance(value, App)}
    inner = {id(each) for app in apps.values() for each in app.apps() if each is not app}
    apps = {key: app for key, app in apps.items() if key not in inner}
    if len(apps) != 1:
        names = [name for name, value in namespace.items() if isinstance(value, App)]
        found = f"these: {', '.join(names)}; add :NAME" if names else "none"
        raise ValueError(f"{where} should hold one App, and holds {found}")
    return next(iter(apps.values()))
