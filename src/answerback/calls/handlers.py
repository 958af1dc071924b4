"""A registry's four handlers: for tools, resources, prompts and completions."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, Literal, TypeAlias

import msgspec

from ..contract import Contract
from ..core.reply import Reply
from ..registry.declarations import Recording, Registry
from ..tools.context import Running
from .call import Call, Handler
from .pipeline import pipeline
from .reply_check import ReplyTo, reply_to
from .runners import Execution, Runnable, Runner

if TYPE_CHECKING:
    from ..tools.tool import Tool

Kind: TypeAlias = Literal["tool", "resource", "prompt", "completion"]
ADMITTED: Reply[Any] = Reply()
"""The outcome of a call that may run: it passed the gates, and its arguments are valid."""


class Handlers(msgspec.Struct, frozen=True):
    """The handlers differ in the table they search and in how a value becomes a reply."""

    tools: Handler
    resources: Handler
    prompts: Handler
    completions: Handler


class HandlerMaker:
    """Makes one runtime's handlers, all in the same way."""

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
        """Return a handler for calls in the stage "admit": it returns ADMITTED, or a refusal."""
        run = self._execution.run

        def run_gates(tool: Runnable, kwargs: dict[str, Any], call: Call) -> object:
            # Gates run as tools do; the tool itself does not run.
            return ADMITTED if tool is call.tool else run(tool, kwargs, call)

        tools = self._registry.tools
        return self._started(self._pipeline(tools, run_gates, _as_it_is), tools)

    def seen(self, handle: Handler, kind: Kind) -> Handler:
        """Return *handle*, with its outcomes shown to observers and recorded."""
        if kind != "completion" and may_have_middleware(self._registry):
            from .author_middleware import observed

            handle = observed(self._registry, handle, kind)
        return handle if self._records is None else self._records.recorded(handle, kind)

    def _handler(
        self, kind: Kind, table: Mapping[str, Tool], reply_to: ReplyTo = reply_to
    ) -> Handler:
        run = self._execution.run
        if kind != "completion" and may_have_middleware(self._registry):
            # Imported here, so that other apps do not pay for it.
            from .author_middleware import with_middleware

            run = with_middleware(kind, run)
        return self.seen(self._started(self._pipeline(table, run, reply_to), table), kind)

    def _pipeline(self, table: Mapping[str, Tool], run: Runner, reply_to: ReplyTo) -> Handler:
        return pipeline(
            table,
            self._contract,
            run,
            reply_to,
            limits=self._registry.limits,
            decode_large=self._execution.decode_large,
            running_in=self._running,
        )

    def _started(self, handle: Handler, table: Mapping[str, Tool]) -> Handler:
        lifespan = self._registry.lifespan
        if lifespan is None:
            return handle
        from .started import in_lifespan, started

        wait = in_lifespan if self._execution.makes_one_call else started
        return wait(handle, table, lifespan)


def may_have_middleware(registry: Registry) -> bool:
    """Return whether an app of *registry* may have middleware or observers."""
    return registry.composition is not None or bool(registry.middleware or registry.observers)


def _as_it_is(tool: Tool, value: Any) -> Reply[Any]:
    reply: Reply[Any] = value
    return reply


def _prompt_reply(tool: Tool, value: object) -> Reply[Any]:
    # Imported at the first prompt, so that other apps do not pay for it.
    from .prompt_reply import prompt_reply

    return prompt_reply(tool, value)
