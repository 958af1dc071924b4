"""The four pipelines of a registry: for tools, resources, prompts and completions."""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from functools import partial
from typing import TYPE_CHECKING, Any

import msgspec

from ..registry import Recording, Registry
from ..reply import Reply
from .call import Call, Handler
from .failures import SHOW_EXCEPTION
from .pipeline import pipeline
from .runners import (
    AsyncRunner,
    LargeDecoder,
    Runner,
    decode_in_place,
    run_in_new_loop,
    run_in_place,
)

if TYPE_CHECKING:
    from ..contract import Contract
    from ..tools.tool import Tool
    from .around import Kind


ADMITTED: Reply[Any] = Reply()
"""The outcome of a call that may run: it passed the gates, and its arguments are right."""


class Handlers(msgspec.Struct, frozen=True):
    """They differ in the table they search and in how a value becomes a reply."""

    tools: Handler
    resources: Handler
    prompts: Handler
    completions: Handler
    pass_gates: Callable[[Call], Coroutine[Any, Any, Reply[Any] | None]]
    """Passes the gates of `call.tool` that take `ctx` alone; returns the refusal."""
    admit: Callable[[], Handler]
    """Makes a handler for calls in the stage "admit": it returns ADMITTED, or a refusal."""
    records: Recording | None = None
    """Where the calls are recorded."""


def make_handlers(
    registry: Registry,
    run: Runner,
    decode_large: LargeDecoder = decode_in_place,
    run_async: AsyncRunner | None = None,
    *,
    debug: bool = False,
) -> Handlers:
    """The handlers of *registry*; *run* runs the functions.

    A wire without an event loop gives *run_async*, which runs middleware that may wait.
    """
    contract = registry.contract
    if debug:
        contract = contract.derive(masked=SHOW_EXCEPTION)
    pass_gates = partial(_pass_gates, run, contract.masked)
    options: Any = {"max_calls": registry.limits.calls, "decode_large": decode_large}
    wrap = _wrapper(registry, run, run_async) if _is_wrapped(registry) else lambda kind: run
    handlers = Handlers(
        tools=pipeline(registry.tools, contract, wrap("tool"), **options),
        resources=pipeline(registry.resources, contract, wrap("resource"), **options),
        prompts=pipeline(registry.prompts, contract, wrap("prompt"), _prompt_reply, **options),
        completions=pipeline(registry.completions, contract, run, **options),
        pass_gates=pass_gates,
        admit=partial(_admission, registry.tools, contract, run, options),
    )
    if registry.lifespan is not None:
        from .started import started_handlers

        handlers = started_handlers(handlers, registry, registry.lifespan)
    if not registry.runs_plain:
        handlers = _observed(handlers, registry)
    return handlers if registry.records is None else _recorded(handlers, registry.records)


def tools_handler(registry: Registry) -> Handler:
    """The handler of the tools alone, for a process that makes one call."""
    if registry.lifespan is not None:
        from .started import handler_in_lifespan

        handle = handler_in_lifespan(registry, registry.lifespan)
    else:
        handle = one_call_handler(registry, run_in_new_loop)
    if not registry.runs_plain:
        from .around import observed

        handle = observed(registry, handle, "tool")
    return handle if registry.records is None else registry.records.recorded(handle, "tool")


def one_call_handler(registry: Registry, run_async: AsyncRunner) -> Handler:
    """The handler of the tools, without an event loop; *run_async* runs the coroutines."""
    is_wrapped = _is_wrapped(registry)
    run = run_in_place(run_async)
    if is_wrapped:
        run = _wrapper(registry, run, run_async)("tool")
    return pipeline(registry.tools, registry.contract, run, max_calls=registry.limits.calls)


def handlers_on_loop(registry: Registry, *, debug: bool = False) -> Handlers:
    """The handlers for a wire with an event loop; plain functions run in a thread pool.

    *debug* sends the text of unexpected exceptions to the caller.
    """
    from .thread_pool import ThreadPool, decode_in_thread, run_async_for_thread, run_on_loop

    pool = ThreadPool(registry.limits.threads, registry.limits.wait)
    registry.checks["threads"] = pool.check
    registry.shows_exceptions = debug
    registry.run_async = run_async_for_thread(pool, registry.run_async or run_in_new_loop)
    # A pool of its own, so that slow functions do not hold up the decoding of other calls.
    decoding = ThreadPool(_DECODING_THREADS)
    return make_handlers(registry, run_on_loop(pool), decode_in_thread(decoding), debug=debug)


# Each thread that decodes makes every other one wait longer for its turn.
_DECODING_THREADS = 4


def _is_wrapped(registry: Registry) -> bool:
    """Whether an app of *registry* may have middleware or observers; it is served from now on."""
    registry.is_served = True
    has_own = bool(registry.middleware or registry.observers)
    registry.runs_plain = registry.composition is None and not has_own
    return not registry.runs_plain


def _wrapper(
    registry: Registry, run: Runner, run_async: AsyncRunner | None
) -> Callable[[Kind], Runner]:
    """Puts middleware around *run*."""
    # Imported here, so that other apps do not pay for it.
    from .around import runner_on_loop, with_middleware, with_middleware_in_place

    if run_async is None:
        return lambda kind: with_middleware(kind, run)
    get_runner = runner_on_loop(registry, run_async)
    return lambda kind: with_middleware_in_place(kind, run, run_async, get_runner)


def _observed(handlers: Handlers, registry: Registry) -> Handlers:
    from .around import observed

    return Handlers(
        tools=observed(registry, handlers.tools, "tool"),
        resources=observed(registry, handlers.resources, "resource"),
        prompts=observed(registry, handlers.prompts, "prompt"),
        completions=handlers.completions,
        pass_gates=handlers.pass_gates,
        admit=handlers.admit,
    )


def _recorded(handlers: Handlers, records: Recording) -> Handlers:
    return Handlers(
        tools=records.recorded(handlers.tools, "tool"),
        resources=records.recorded(handlers.resources, "resource"),
        prompts=records.recorded(handlers.prompts, "prompt"),
        completions=records.recorded(handlers.completions, "completion"),
        pass_gates=handlers.pass_gates,
        admit=handlers.admit,
        records=records,
    )


def _admission(
    tools: Mapping[str, Tool], contract: Contract, run: Runner, options: dict[str, Any]
) -> Handler:
    def run_gates(tool: Tool, kwargs: dict[str, Any], call: Call) -> Any:
        # Gates are run as tools are; the tool itself is not run.
        return ADMITTED if tool is call.tool else run(tool, kwargs, call)

    return pipeline(tools, contract, run_gates, _as_it_is, **options)


def _as_it_is(tool: Tool, value: Any) -> Reply[Any]:
    reply: Reply[Any] = value
    return reply


async def _pass_gates(run: Runner, masked: str, call: Call) -> Reply[Any] | None:
    # Imported at the first completion of something with gates.
    from .gating import pass_early

    return await pass_early(call, run, masked)


def _prompt_reply(tool: Tool, value: Any) -> Reply[Any]:
    # Imported at the first prompt, so that other apps do not pay for it.
    from .prompt_reply import prompt_reply

    return prompt_reply(tool, value)
