"""The options of an App, and the registry that they declare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict

from .contract import Contract, contract_named
from .core.content import own_icons
from .core.limits import DEFAULT_LIMITS, Limits
from .errors import Code, add_codes
from .registry.declarations import Registry

if TYPE_CHECKING:
    from .calls.failures import ErrorFunction
    from .calls.middleware_and_observers import Middleware, Observer
    from .core.authentication import Authenticator
    from .core.content import Icon
    from .options import Access, Values
    from .records import Records, Sink
    from .registry.lifespan import LifespanFunction


class AppOptions(TypedDict, total=False):
    """The options of an App."""

    version: str
    """The version of the author's program, which clients see; "0.0.0" by default."""
    title: str
    """The server's name for people, which MCP hosts show."""
    description: str
    """The server's instructions, which language models see."""
    contract: str | Contract
    """How replies look: a preset's name or a Contract; "standard" by default."""
    values: Values
    """How tools read arguments and send results, unless they set `values=` themselves."""
    budget: int
    """How many characters of a tool's reply MCP sends, unless the tool has its own `budget=`."""
    codes: Mapping[Any, int | Code]
    """Your own error codes and their HTTP statuses, such as {"CITY_UNKNOWN": 404}."""
    limits: Limits
    """Limits on the number and duration of calls, threads and tasks."""
    lifespan: LifespanFunction
    """A context manager function, async or plain; a tool gets what it yields as `ctx.state`."""
    records: Sink | Records | None
    """Where a record of each reply is kept, such as `SQLite("audit.db")`."""
    icons: Sequence[Icon]
    """The icons that MCP hosts show beside the server's name."""
    website_url: str
    """The URL of the server's web page, which MCP hosts show."""
    access: Access
    """How clients reach the app over HTTP: its URL, sessions, and how they are told to log in."""
    requires: Sequence[Callable[..., Any]]
    """The gates of all tools, resources, prompts and completions; they run before their own."""
    middleware: Sequence[Middleware]
    """Functions around each run: `async def timing(call, next)`; the first is outermost."""
    observers: Sequence[Observer]
    """Functions that see every outcome, including refusals: `def count(seen)`."""
    errors: Mapping[type[BaseException], ErrorFunction]
    """What callers see of your own exceptions, such as {ProjectError: NotFound}."""
    auth: Authenticator | None
    """Authentication of HTTP requests, such as `OAuth(...)` from `answerback.auth`."""


class AsgiOptions(TypedDict, total=False):
    """The options of `app.asgi`."""

    hosts: Sequence[str]
    """The host names that it answers to, besides this machine's."""
    origins: Sequence[str]
    """The sites whose pages may call it, such as `https://app.example.com`."""
    max_body: int
    """The largest request body in bytes."""
    trusted_proxies: Sequence[str]
    """The addresses or networks whose forwarded headers are believed."""
    signals: bool
    """False leaves SIGTERM and SIGINT to the server; streams then keep it from ending."""
    console: bool
    """Show browsers a page to call the tools."""
    mcp: str
    """The path of MCP; with "/", an app that is mounted at /mcp serves it there."""
    rest: bool
    """False serves no REST: only MCP, the health pages and your own pages."""
    auth: bool
    """False if anyone may call an app without `auth=`; the log then does not mention it."""


def declared(name: str, options: AppOptions) -> Registry:
    """Return the registry that the options declare; the lifespan needs the App itself."""
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
    registry.icons = own_icons(options.get("icons", ()))
    registry.website_url = options.get("website_url", "")
    if (auth := options.get("auth")) is not None:
        from .core.authentication import checked_authenticator

        registry.auth = checked_authenticator(auth)
    if (access := options.get("access")) is not None:
        _use_access(registry, access)
    if middleware := options.get("middleware"):
        from .calls.middleware_and_observers import checked_middleware

        registry.middleware = checked_middleware(middleware)
    if observers := options.get("observers"):
        from .calls.middleware_and_observers import checked_observers

        registry.observers = checked_observers(observers)
    return registry


def _use_access(registry: Registry, access: Access) -> None:
    url, auth = access.url or "", registry.auth
    if url and auth is not None and auth.url not in ("", url):
        raise ValueError(f"url={url!r} of access= is not the url of auth=; leave one of them out")
    registry.url = url
    registry.sessions = access.sessions
    registry.challenge = access.challenge
