"""The four pipelines of a registry: for tools, resources, prompts and completions."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any

import msgspec

from ..registry import Recording, Registry
from .call import Handler
from .failures import SHOW_EXCEPTION
from .pipeline import pipeline
from .runners import LargeDecoder, Runner, decode_in_place

if TYPE_CHECKING:
    from ..reply import Reply
    from ..tools.tool import Tool


class Handlers(msgspec.Struct, frozen=True):
    """They differ in the table they search and in how a value becomes a reply."""

    tools: Handler
    resources: Handler
    prompts: Handler
    completions: Handler
    records: Recording | None = None
    """Where the calls are recorded."""


def make_handlers(
    registry: Registry,
    run: Runner,
    decode_large: LargeDecoder = decode_in_place,
    *,
    debug: bool = False,
) -> Handlers:
    """The handlers of *registry*; *run* runs the functions."""
    contract = registry.contract
    if debug:
        contract = contract.derive(masked=SHOW_EXCEPTION)
    options: Any = {"max_calls": registry.limits.calls, "decode_large": decode_large}
    handlers = Handlers(
        tools=pipeline(registry.tools, contract, run, **options),
        resources=pipeline(registry.resources, contract, run, **options),
        prompts=pipeline(registry.prompts, contract, run, _prompt_reply, **options),
        completions=pipeline(registry.completions, contract, run, **options),
    )
    return handlers if registry.records is None else _recorded(handlers, registry.records)


def tools_handler(registry: Registry, run: Runner) -> Handler:
    """The handler of the tools alone, for a process that makes one call."""
    handle = pipeline(registry.tools, registry.contract, run, max_calls=registry.limits.calls)
    return handle if registry.records is None else registry.records.recorded(handle, "tool")


def handlers_on_loop(registry: Registry, *, debug: bool = False) -> Handlers:
    """The handlers for a wire with an event loop; plain functions run in a thread pool.

    *debug* sends the text of unexpected exceptions to the caller.
    """
    from .thread_pool import ThreadPool, decode_in_thread, run_on_loop

    pool = ThreadPool(registry.limits.threads)
    registry.checks["threads"] = pool.check
    # A pool of its own, so that slow functions do not hold up the decoding of other calls.
    decoding = ThreadPool(_DECODING_THREADS)
    return make_handlers(registry, run_on_loop(pool), decode_in_thread(decoding), debug=debug)


# Each thread that decodes makes every other one wait longer for its turn.
_DECODING_THREADS = 4


def _recorded(handlers: Handlers, records: Recording) -> Handlers:
    return Handlers(
        tools=records.recorded(handlers.tools, "tool"),
        resources=records.recorded(handlers.resources, "resource"),
        prompts=records.recorded(handlers.prompts, "prompt"),
        completions=records.recorded(handlers.completions, "completion"),
        records=records,
    )


def _prompt_reply(tool: Tool, value: Any) -> Reply[Any]:
    # Imported at the first prompt, so that other apps do not pay for it.
    from .prompt_reply import prompt_reply

    return prompt_reply(tool, value)
