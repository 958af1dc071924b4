"""App: the front door. Tools are registered, called and served from here."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import TYPE_CHECKING, Any, TypedDict, Unpack

from .contract import Contract, contract_named
from .limits import DEFAULT_LIMITS, MAX_BODY, Limits
from .registry import Registry
from .tools.tool_options import check_options

if TYPE_CHECKING:
    from .calls.handlers import Handlers
    from .records import Records, Sink
    from .reply import Reply
    from .wires.asgi.application import AsgiApp


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
    """Accept "7" for 7 and JSON in a string."""
    limits: Limits
    """How many calls and threads may run at a time, and for how long."""
    records: Sink | Records | None
    """Where a record of each reply is kept, such as `SQLite("audit.db")`."""


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
            lenient=options.get("lenient", False),
            limits=options.get("limits", DEFAULT_LIMITS),
        )
        if (records := options.get("records")) is not None:
            self.records = _records(records)
        self._handlers: Handlers | None = None

    async def call(self, name: str, /, **arguments: Any) -> Reply[Any]:
        """Call a tool in memory, through the whole pipeline."""
        from .types.json_text import ENCODER
        from .wires.memory import call

        return await call(self.handlers, name, ENCODER.encode(arguments))

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

        options = WebOptions(
            max_body=max_body,
            hosts=tuple(hosts),
            origins=tuple(origins),
            trusted_proxies=tuple(trusted_proxies),
        )
        application = asgi(self, self.handlers, options)
        warn_of_several_workers(has_secret=not application.key_is_temporary)
        return application

    def run(self, arguments: Sequence[str] | None = None) -> None:
        """Be a command-line program: `python calculator.py COMMAND`."""
        from .cli import run_app

        run_app(self, arguments)


def _records(records: Sink | Records) -> Records:
    from .records import Records

    return records if isinstance(records, Records) else Records(records)


def only_app(namespace: Mapping[str, Any], where: str) -> App:
    """The one App among a module's names."""
    apps = {id(value): value for value in namespace.values() if isinstance(value, App)}
    if len(apps) != 1:
        names = [name for name, value in namespace.items() if isinstance(value, App)]
        found = f"these: {', '.join(names)}; add :NAME" if names else "none"
        raise ValueError(f"{where} should hold one App, and holds {found}")
    return next(iter(apps.values()))
