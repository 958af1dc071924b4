"""The four handlers of a registry: for tools, resources, prompts and completions."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from ..context import Running
from ..contract import Contract
from ..registry import Recording, Registry
from ..reply import Reply
from .call import Call, Handler
from .pipeline import pipeline
from .runners import AsyncRunner, LargeDecoder, Runner, decode_in_place

if TYPE_CHECKING:
    from ..lifespan import Lifespan
    from ..tools.tool import Tool

Kind: TypeAlias = Literal["tool", "resource", "prompt", "completion"]
ADMITTED: Reply[Any] = Reply()
"""The outcome of a call that may run: it passed the gates, and its arguments are right."""


class Handlers(msgspec.Struct, frozen=True):
    """They differ in the table they search and in how a value becomes a reply."""

    tools: Handler
    resources: Handler
    prompts: Handler
    completions: Handler


class Execution(msgspec.Struct, frozen=True):
    """How a wire runs functions: on an event loop with threads beside it, or in place."""

    run: Runner
    run_async: AsyncRunner
    """Runs a coroutine for a plain function, which waits for it."""
    decode_large: LargeDecoder = decode_in_place
    is_in_place: bool = False
    """Whether there is no event loop, so that the code of middleware may need one."""
    close: Callable[[], None] = lambda: None
    """Ends the threads."""
    wait_for: Callable[[Handler, Mapping[str, Tool], Lifespan], Handler] | None = None
    """Lets a handler wait for the lifespan; None for the usual way."""


class HandlerMaker:
    """Makes the handlers of one runtime, all in the same way."""

    def __init__(
        self,
        registry: Registry,
        execution: Execution,
        running: Running,
        contract: Contract,
        records: Recording | None,
    ) -> None:
        self._registry = registry
        self._execution = execution
        self._running = running
        self._contract = contract
        self._records = records

    def all(self) -> Handlers:
        registry = self._registry
        return Handlers(
            tools=self._handler("tool", registry.tools),
            resources=self._handler("resource", registry.resources),
            prompts=self._handler("prompt", registry.prompts, _prompt_reply),
            completions=self._handler("completion", registry.completions),
        )

    def admission(self) -> Handler:
        """A handler for calls in the stage "admit": it returns ADMITTED, or a refusal."""
        run = self._execution.run

        def run_gates(tool: Tool, kwargs: dict[str, Any], call: Call) -> Any:
            # Gates are run as tools are; the tool itself is not run.
            return ADMITTED if tool is call.tool else run(tool, kwargs, call)

        tools = self._registry.tools
        return self._started(self._pipeline(tools, run_gates, _as_it_is), tools)

    def seen(self, handle: Handler, kind: Kind) -> Handler:
        """*handle*, whose outcomes the observers see and the records keep."""
        if kind != "completion" and may_have_middleware(self._registry):
            from .around import observed

            handle = observed(self._registry, handle, kind)
        return handle if self._records is None else self._records.recorded(handle, kind)

    def _handler(self, kind: Kind, table: Mapping[str, Tool], *reply_to: Any) -> Handler:
        run = self._execution.run
        if kind != "completion" and may_have_middleware(self._registry):
            run = _with_middleware(kind, self._registry, self._execution)
        return self.seen(self._started(self._pipeline(table, run, *reply_to), table), kind)

    def _pipeline(self, table: Mapping[str, Tool], run: Runner, *reply_to: Any) -> Handler:
        return pipeline(
            table,
            self._contract,
            run,
            *reply_to,
            max_calls=self._registry.limits.calls,
            decode_large=self._execution.decode_large,
            running_in=self._running,
        )

    def _started(self, handle: Handler, table: Mapping[str, Tool]) -> Handler:
        lifespan = self._registry.lifespan
        if lifespan is None:
            return handle
        if self._execution.wait_for is not None:
            return self._execution.wait_for(handle, table, lifespan)
        from .started import started

        return started(handle, table, lifespan, in_thread=self._execution.is_in_place)


def may_have_middleware(registry: Registry) -> bool:
    """Whether an app of *registry* may have middleware or observers."""
    return registry.composition is not None or bool(registry.middleware or registry.observers)


def _with_middleware(
    kind: Literal["tool", "resource", "prompt"], registry: Registry, execution: Execution
) -> Runner:
    # Imported here, so that other apps do not pay for it.
    from .around import runner_on_loop, with_middleware, with_middleware_in_place

    if not execution.is_in_place:
        return with_middleware(kind, execution.run)
    get_runner = runner_on_loop(registry)
    return with_middleware_in_place(kind, execution.run, execution.run_async, get_runner)


def _as_it_is(tool: Tool, value: Any) -> Reply[Any]:
    reply: Reply[Any] = value
    return reply


def _prompt_reply(tool: Tool, value: Any) -> Reply[Any]:
    # Imported at the first prompt, so that other apps do not pay for it.
    from .prompt_reply import prompt_reply

    return prompt_reply(tool, value)
