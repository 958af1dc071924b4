"""Middleware that wraps the run of a tool, resource or prompt, and observers of outcomes.

Middleware runs after the arguments are decoded and before the reply is checked, masked and
recorded. Observers see the outcome as sent, including refusals, but cannot change it.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Coroutine, Sequence
from time import perf_counter
from types import CoroutineType
from typing import Any, Literal, Protocol, TypeAlias

import msgspec

from ..core.log import logger
from ..core.reply import Reply
from ..registry.declarations import Registry
from ..tools.tool import Tool
from .call import Call, Handler, Outcome
from .context import Context, ContextOfApp
from .runners import Runnable, Runner, with_loop

Kind: TypeAlias = Literal["tool", "resource", "prompt"]


class Invocation:
    """The call that middleware wraps; `arguments` may be changed, but are not checked again."""

    __slots__ = ("_call", "_context", "_has_result", "_including", "_tool", "arguments", "kind")

    def __init__(self, kind: Kind, tool: Tool, arguments: dict[str, Any], call: Call) -> None:
        self.kind: Kind = kind
        """The kind of entry being called."""
        self._has_result = False
        """Whether the function has returned anything but None."""
        self._including: Registry | None = None
        """The app whose middleware is running; None for the tool's own app."""
        self._tool = tool
        self._call = call
        parameter = tool.signature.context
        self._context = None if parameter is None else arguments.pop(parameter)
        self.arguments = arguments
        """The decoded arguments by parameter; they may be changed, but are not checked again."""

    @property
    def name(self) -> str:
        """The name of the tool or prompt, or the URI or URI template of the resource."""
        return self._call.name

    @property
    def tags(self) -> frozenset[str]:
        """The tags of the tool, resource or prompt."""
        return frozenset(self._tool.settings.tags)

    @property
    def context(self) -> Context:
        """The context for progress, log messages and questions to the client, as in the tool.

        Its `state` is that of the middleware's app.
        """
        if self._including is not None:
            return ContextOfApp(self._call, self._including)
        return self._own_context()

    def _own_context(self) -> Context:
        if self._context is None:
            self._context = Context(self._call)
        return self._context

    def _run_by(self, run: Runner) -> object:
        """Run the function; middleware may call this again to retry."""
        kwargs = dict(self.arguments)
        if (parameter := self._tool.signature.context) is not None:
            kwargs[parameter] = self._own_context()
        policy = self._tool.policy
        if policy is not None:
            return policy.run(run, self._tool, kwargs, self._call)
        return run(self._tool, kwargs, self._call)


class Next(Protocol):
    """Runs the remaining middleware, then the function; returns its result."""

    def __call__(self, call: Invocation, /) -> Coroutine[Any, Any, Any]:
        """Return the function's result: `await next(call)`."""


Middleware: TypeAlias = Callable[[Invocation, Next], Any]


class Observation(msgspec.Struct, frozen=True):
    """One call's outcome."""

    kind: Kind
    """The kind of entry that was called."""
    name: str
    """The name of the tool or prompt, or the resource's URI."""
    wire: str
    """The wire, such as "rest" or "mcp"."""
    caller: str
    """The client's address, if the wire knows it."""
    seconds: float
    """How long the call took."""
    reply: Reply[Any] | None
    """None if the call was cancelled, or if the client was asked a question instead."""


Observer: TypeAlias = Callable[[Observation], object]


def checked_middleware(given: Sequence[Any]) -> tuple[Middleware, ...]:
    """Return an App's middleware; raises TypeError for an entry that is not callable."""
    _require_list("middleware", given)
    for each in given:
        if not callable(each) or isinstance(each, type):
            raise TypeError(
                f"middleware has {each!r}; write functions: async def timing(call, next)"
            )
        code = getattr(each, "__code__", None)
        # Skip decorated functions, whose own parameters are *args.
        if code and not code.co_flags & _VARIADIC and code.co_argcount != 2:
            names = ", ".join(code.co_varnames[: code.co_argcount])
            raise TypeError(
                f"middleware {each.__name__}({names}) must take two parameters: "
                f"async def {each.__name__}(call, next)"
            )
    return tuple(given)


def checked_observers(given: Sequence[Any]) -> tuple[Observer, ...]:
    """Return an App's observers; raises TypeError for an entry that is not a plain function."""
    _require_list("observers", given)
    for each in given:
        code = getattr(each, "__code__", None)
        if not callable(each) or isinstance(each, type) or (code and code.co_flags & _ASYNC):
            raise TypeError(f"observers has {each!r}; write plain functions: def count(seen)")
    return tuple(given)


def _require_list(option: str, given: object) -> None:
    if callable(given):
        name = getattr(given, "__name__", "…")
        raise TypeError(f"{option} is a list: {option}=[{name}]")


_VARIADIC = 0x0C
"""The code flags of a function that takes *args or **kwargs."""
_ASYNC = 0x80
"""The code flag of a coroutine function."""


def with_middleware(kind: Kind, run: Runner) -> Runner:
    """Return *run*, wrapped in each tool's middleware."""
    # Keyed by the tuple's id, and the tuple is kept alive: middleware need not be hashable.
    chains: dict[int, tuple[tuple[Middleware, ...], Next]] = {}

    def run_wrapped(tool: Runnable, kwargs: dict[str, Any], call: Call) -> object:
        chained = tool.middleware
        if not chained:
            return run(tool, kwargs, call)
        assert isinstance(tool, Tool)  # A gate has no middleware.
        found = chains.get(id(chained))
        if found is None:
            found = chains[id(chained)] = (chained, _chain(tool, run))
        steps = found[1](Invocation(kind, tool, kwargs, call))
        # An async tool needs a loop, and so may middleware if the program has imported asyncio.
        return with_loop(steps) if tool.is_async or "asyncio" in sys.modules else steps

    return run_wrapped


def _chain(tool: Tool, run: Runner) -> Next:
    """Return one function that runs the tool's middleware and its function."""

    async def run_function(call: Invocation) -> Any:
        value = call._run_by(run)
        if isinstance(value, CoroutineType):
            value = await value
        call._has_result = value is not None
        return value

    chain: Next = run_function
    # The app that each middleware belongs to, in the same order.
    apps = [app for app in tool.path for _ in app.middleware]
    for middleware, app in zip(reversed(tool.middleware), reversed(apps), strict=True):
        chain = _link(middleware, chain)
        if len(tool.path) > 1:
            chain = _for_app(None if app is tool.path[-1] else app, chain)
    return chain


def _link(middleware: Middleware, following: Next) -> Next:
    warned: list[bool] = []

    async def step(call: Invocation) -> Any:
        value = middleware(call, following)
        # A plain function returns the coroutine of `next(call)`, or its own result.
        while isinstance(value, CoroutineType):
            value = await value
        if value is None and call._has_result and not warned:
            warned.append(True)
            name = getattr(middleware, "__name__", type(middleware).__name__)
            message = (
                "middleware %r returned None, but %s %r had a result; "
                "write: return await next(call)"
            )
            logger().warning(message, name, call.kind, call.name)
        return value

    return step


def _for_app(app: Registry | None, step: Next) -> Next:
    """Return *step* as middleware of *app*; None means the tool's own app."""

    async def step_of_app(call: Invocation) -> Any:
        before, call._including = call._including, app
        try:
            return await step(call)
        finally:
            call._including = before

    return step_of_app


def observed(registry: Registry, handle: Handler, kind: Kind) -> Handler:
    """Return *handle*, with the observers of *registry* and of the apps between it and the tool."""
    of_registry = (registry,)

    async def handle_and_observe(call: Call) -> Outcome:
        began = perf_counter()
        outcome: Outcome | None = None
        try:
            outcome = await handle(call)
            return outcome
        finally:
            apps = of_registry if call.tool is None else call.tool.path
            observers = [each for app in apps for each in app.observers]
            if observers:
                reply = outcome if isinstance(outcome, Reply) else None
                seconds = perf_counter() - began
                seen = Observation(kind, call.name, call.wire, call.caller, seconds, reply)
                for observe in observers:
                    try:
                        observe(seen)
                    except Exception:  # noqa: BLE001 -- the author's code may raise anything
                        logger().exception("an observer failed: %r", observe)

    return handle_and_observe
