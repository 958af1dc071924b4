"""The options of an App, and the registry that they declare."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING, Any, Literal, TypedDict

from .contract import Contract, contract_named
from .core.limits import DEFAULT_LIMITS, Limits
from .errors import Code, add_codes
from .registry.declarations import Registry
from .tools.tool_options import ToolOptions

if TYPE_CHECKING:
    from .calls.author_middleware import Middleware, Observer
    from .core.authentication import AppAuth, Authenticator
    from .core.content import Icon
    from .gates import UsedTokens
    from .records import Records, Sink
    from .registry.lifespan import LifespanFunction
    from .tasks import TaskLimits


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
    sessions: bool
    """Whether MCP over HTTP has sessions in versions before 2026-07-28; True by default."""
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


def declared(name: str, options: AppOptions) -> Registry:
    """The registry that the options declare; the lifespan needs the App itself."""
    registry = Registry(
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
    registry.tool_defaults = _tool_defaults(options)
    if (records := options.get("records")) is not None:
        registry.records = _records(records)
    registry.task_limits = options.get("task_limits")
    registry.requires = tuple(options.get("requires", ()))
    registry.challenge = options.get("challenge", "auto")
    registry.icons = tuple(options.get("icons", ()))
    registry.website_url = options.get("website_url", "")
    registry.auth = _authenticator(options.get("auth"))
    registry.url = _url(options, registry.auth)
    registry.sessions = options.get("sessions", True)
    if middleware := options.get("middleware"):
        from .calls.author_middleware import checked_middleware

        registry.middleware = checked_middleware(middleware)
    if observers := options.get("observers"):
        from .calls.author_middleware import checked_observers

        registry.observers = checked_observers(observers)
    return registry


def _url(options: AppOptions, auth: AppAuth | None) -> str:
    url = options.get("url", "")
    if url and auth is not None and auth.url not in ("", url):
        raise ValueError(f"url={url!r} is not the url of auth=; leave one of them out")
    return url


def _authenticator(auth: Authenticator | None) -> AppAuth | None:
    if auth is None:
        return None
    from .core.authentication import checked_authenticator

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
