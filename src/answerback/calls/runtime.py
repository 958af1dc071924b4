"""The path of a call, and Runtime: the state that exists while an app is served.

Each wire makes a runtime. The registry holds what the author declared, and a runtime never writes
to it. So several wires can serve one app in a process, each with its own threads, records and
tasks.
"""

from __future__ import annotations

from collections.abc import Awaitable, Coroutine, Mapping
from functools import cached_property, partial
from time import perf_counter
from types import CoroutineType
from typing import TYPE_CHECKING, Any, Literal, Protocol, TypeAlias

from ..core.event_loop import OffLoop, call_in_place
from ..core.peer import NeedsInput
from ..core.reply import Reply, failure
from ..registry.declarations import Check, Recording, Registry
from ..tools.current_call import CURRENT
from ..tools.tool import Tool
from ..types.json_text import LARGE
from .call import Call, Handler, Outcome
from .context import Context, current_runtime
from .failures import SHOW_EXCEPTION, failed_reply, log_fields, must_propagate
from .reply_check import ReplyTo, reply_to
from .runners import (
    ArgumentsDecoder,
    Execution,
    LargeDecoder,
    Runnable,
    Runner,
    decode_in_place,
    execution_in,
    execution_in_place,
)

if TYPE_CHECKING:
    from ..core.list_page import Page, StoredPart
    from ..fitting.reply_store import StoredReplies
    from ..state.shared import SharedState


def pipeline(
    runtime: Runtime, tools: Mapping[str, Tool], run: Runner, reply_to: ReplyTo
) -> Handler:
    """Return the path of a call to one of *tools*."""
    running: set[Call] = set()
    limits, masked = runtime.registry.limits, runtime._contract.masked
    max_calls, max_in_place = limits.calls, min(LARGE, limits.values)
    decode = partial(_decode, runtime._execution.decode_large, limits.values)
    decode_slowly = partial(_decode_slowly, run, decode)
    run_slowly = partial(_run_slowly, run)

    async def handle(call: Call) -> Outcome:
        tool = call.tool = tools.get(call.name)
        if tool is None or len(running) >= max_calls:
            return _refusal(call, tools, max_calls)
        running.add(call)
        call.runtime = runtime
        before, began = CURRENT.set(call), perf_counter()
        try:
            is_slow = len(raw := call.arguments) > max_in_place or tool.has_gates_or_policy
            kwargs = await decode_slowly(call, tool) if is_slow else tool.arguments.decode(raw)
            signature = tool.signature
            if signature.context is not None:
                kwargs[signature.context] = Context(call)
            if signature.questions:
                # Imported at the first question, so that other tools do not pay for it.
                from .gating import ask_all

                kwargs |= await ask_all(tool, call.peer, call.kept_answers)
            value = (run_slowly if is_slow else run)(tool, kwargs, call)
            if isinstance(value, CoroutineType):
                value = await value
            reply = reply_to(tool, value)
            if reply.encoded is not None:
                call.shape = reply.shape or tool.shape
            if reply.content and tool.has_lines:
                call.shape = call.shape.with_lines()
            # A task's reply is stored in full, and other wires have no budget.
            if tool.budget is None or call.wire != "mcp" or call.stage != "whole":
                return reply
            # Imported here, so that tools without a budget do not pay for it.
            from .fitted_reply import fitted_reply

            return await fitted_reply(reply, call)
        except NeedsInput as question:
            return question
        except BaseException as exc:
            # A thread that the call left running may check this and stop.
            call.cancelled = True
            if must_propagate(exc, call.wire):
                raise
            return _failed(exc, call, tools, masked, began)
        finally:
            running.discard(call)
            CURRENT.reset(before)

    return handle


async def _decode_slowly(
    run: Runner, decode: ArgumentsDecoder, call: Call, tool: Tool
) -> dict[str, Any]:
    """Return the decoded arguments if the tool has gates, or if the call may have many values.

    Arguments with fewer bytes than the value limit cannot exceed that limit.
    """
    if tool.gates is None or call.stage == "run":
        return await decode(tool, call.arguments)
    # Imported here, so that other tools do not pay for it.
    from .gating import decode_behind_gates

    return await decode_behind_gates(call, tool, run, decode)


def _decode(
    decode_large: LargeDecoder, max_values: int, tool: Tool, raw: bytes
) -> Awaitable[dict[str, Any]]:
    decode = decode_large if len(raw) > LARGE else decode_in_place
    return decode(tool, raw, max_values)


def _run_slowly(run: Runner, tool: Tool, kwargs: dict[str, Any], call: Call) -> object:
    """Run a tool that may have a policy; middleware wraps the policy, and runs it itself."""
    if tool.policy is None or tool.middleware or call.stage == "admit":
        return run(tool, kwargs, call)
    return tool.policy.run(run, tool, kwargs, call)


def _failed(
    exc: BaseException, call: Call, tools: Mapping[str, Tool], masked: str, began: float
) -> Reply[Any]:
    """Return the reply to a call that raised *exc*."""
    if call.tool is not None and call.tool.gates is not None:
        from .gating import RefusedByGate, unknown_tool

        if isinstance(exc, RefusedByGate):
            # None hides the tool.
            return exc.reply or unknown_tool(call, tools)
    return failed_reply(exc, call, masked, partial(log_fields, call, began))


def _refusal(call: Call, tools: Mapping[str, Tool], max_calls: int) -> Reply[Any]:
    """Return the refusal for a call to an unknown tool, or for a call over the limit."""
    if (tool := call.tool) is not None:
        gates = tool.gates
        # For a caller that may not see the tool, it does not exist.
        if gates is None or not (gates.hiding and gates.hide_from(Context(call).user)):
            return failure(
                f"Too many calls in flight, more than {max_calls}",
                code="UNAVAILABLE",
                retryable=True,
                hint="try again in a moment",
            )
    from .gating import unknown_tool

    return unknown_tool(call, tools)


Kind: TypeAlias = Literal["tool", "resource", "prompt", "completion"]
ADMITTED: Reply[Any] = Reply()
"""The outcome of a call that may run: it passed the gates, and its arguments are valid."""


class Handlers:
    """The paths of calls: they differ in the table they search and in how a value becomes a reply.

    Each is made at its first use, because a process may serve only tools, or make just one call.
    """

    def __init__(self, runtime: Runtime) -> None:
        self._runtime = runtime
        self._registry = runtime.registry

    @cached_property
    def tools(self) -> Handler:
        return self._runtime._handler("tool", self._registry.tools)

    @cached_property
    def resources(self) -> Handler:
        return self._runtime._handler("resource", self._registry.resources)

    @cached_property
    def prompts(self) -> Handler:
        return self._runtime._handler("prompt", self._registry.prompts, _prompt_reply)

    @cached_property
    def completions(self) -> Handler:
        return self._runtime._handler("completion", self._registry.completions)


class Tasks(Protocol):
    """The service that runs tasks: `answerback.tasks.service.TaskService`."""

    async def stop(self, seconds: float | None = None) -> None:
        """Start no more tasks, and let the running ones finish."""


class TaskStorage(Protocol):
    """The part of `answerback.tasks`' `TaskStore` that uses no types from that package."""

    @property
    def blocks(self) -> bool:
        """Whether methods may take a long time, so that an event loop calls them in a thread."""

    def close(self) -> None: ...


class Runtime:
    """How a wire serves a registry: its handlers, records, tasks and health checks.

    *records* replaces the author's records. Tasks are kept in *task_store*, a store from
    `answerback.tasks`, or else in this process. With *debug*, callers see the text of unexpected
    exceptions. *parent* is the wire's main runtime, if this is its second one.
    """

    is_stopped = False
    """Whether its wire has ended."""
    development = False
    """Whether widget files are reread each time."""
    task_slots: int | None = None
    """How many tasks run here at a time; None means the author's limit."""
    state: SharedState | None = None
    """The state that this server shares with other hosts."""
    replies_file: str = ""
    """The file in which all workers keep full replies; empty if each process has its own."""

    def __init__(
        self,
        registry: Registry,
        execution: Execution,
        *,
        records: Recording | None = None,
        task_store: TaskStorage | None = None,
        debug: bool = False,
        parent: Runtime | None = None,
    ) -> None:
        self.registry = registry
        self.records = registry.records if records is None else records
        self.task_store = task_store
        self.debug = debug
        self.auth = registry.auth
        """The authentication of HTTP requests; `serve` may replace it with test tokens."""
        self.url = registry.url
        """The MCP endpoint's URL as set by the author or the operator, or empty."""
        self.tasks: Tasks | None = None
        """The service that runs tasks, once created."""
        self.checks: dict[str, Check] = {}
        """The health checks by name; a wire's parts add theirs."""
        if self.records is not None:
            self.checks["records"] = self.records.check
        self._execution = execution
        ours = execution.ours
        self.off_loop: OffLoop = call_in_place if ours is None else ours.off_loop
        """Calls our own blocking functions, such as a store's."""
        self._parent = parent
        contract = registry.contract
        self._contract = contract.derive(masked=SHOW_EXCEPTION) if debug else contract
        self.runs_middleware = registry.composition is not None or bool(
            registry.middleware or registry.observers
        )
        self.handlers = Handlers(self)
        if parent is None:
            registry.changes.attach(self)

    @property
    def runtime(self) -> Runtime:
        """Itself: code between calls finds it the way code in a call finds the call's runtime."""
        return self

    @property
    def endpoint(self) -> str:
        """The URL of the MCP endpoint, as clients know it; empty if it is not known."""
        return (self.auth is not None and self.auth.url) or self.url

    def wait_for(self, steps: Coroutine[Any, Any, Any]) -> Any:
        """From a thread, run a coroutine on the call's event loop and wait for it."""
        return self._execution.wait_for(steps)

    @cached_property
    def stored_replies(self) -> StoredReplies:
        """The full versions of replies that clients received only in part."""
        if self._parent is not None:
            return self._parent.stored_replies
        # Imported here, so that apps without budgets do not pay for it.
        from ..fitting.reply_store import stored_replies_of

        made = stored_replies_of(self.registry, self.state, self.replies_file, self.off_loop)
        # Another thread may have made one in the meantime.
        shared: StoredReplies = self.__dict__.setdefault("stored_replies", made)
        return shared

    @cached_property
    def read_stored_reply(self) -> Handler:
        """The handler for calls that read a stored reply."""
        from .fitted_reply import stored_reply_resource

        resource = stored_reply_resource(self.registry)
        return self._handler("resource", {resource.uri: resource})

    async def stored_page(self, part: StoredPart, owner: str, room: int | None) -> Page[Any] | None:
        """Return the rest of a page stored for *owner*; None if it is no longer stored.

        A caller that truncates it to *room* characters receives no more items than it needs.
        """
        from ..fitting.cut_lists import read_page

        return await read_page(self.stored_replies, part, owner, room)

    @cached_property
    def admit(self) -> Handler:
        """The handler for calls in the "admit" stage: it returns ADMITTED, or a refusal."""
        run = self._execution.run

        def run_gates(tool: Runnable, kwargs: dict[str, Any], call: Call) -> object:
            # Gates run the way tools do; the tool itself does not run.
            return ADMITTED if tool is call.tool else run(tool, kwargs, call)

        return self._pipeline(self.registry.tools, run_gates, _as_it_is)

    async def pass_gates(self, call: Call) -> Reply[Any] | None:
        """Pass the gates of `call.tool` that take only `ctx`; return a refusal, if any."""
        # Imported at the first completion for a gated entry.
        from .gating import pass_early

        call.runtime = self
        before = CURRENT.set(call)
        try:
            return await pass_early(call, self._execution.run, self._contract.masked)
        finally:
            CURRENT.reset(before)

    async def record(self, call: Call, outcome: Outcome) -> Outcome:
        """Record the outcome of a call whose tool did not run, and show it to the observers."""

        async def handle(call: Call) -> Outcome:
            return outcome

        return await self._observed(handle, "tool")(call)

    def health(self) -> dict[str, Check]:
        """Return the health checks that apply now."""
        tools = self.registry.tools
        policy = next((tool.policy for tool in tools.values() if tool.policy is not None), None)
        breakers = {} if policy is None else {"breakers": policy.check_of(tools)}
        return {**self.checks, **breakers}

    def write_records(self) -> None:
        """Write the pending records."""
        if self.records is not None:
            self.records.close()

    def close(self) -> None:
        """End the threads of the functions; no calls may be made after this."""
        self._execution.close()

    def _handler(
        self, kind: Kind, table: Mapping[str, Tool], reply_to: ReplyTo = reply_to
    ) -> Handler:
        run = self._execution.run
        if kind != "completion" and self.runs_middleware:
            # Imported here, so that other apps do not pay for it.
            from .middleware_and_observers import with_middleware

            run = with_middleware(kind, run)
        return self._observed(self._pipeline(table, run, reply_to), kind)

    def _pipeline(self, table: Mapping[str, Tool], run: Runner, reply_to: ReplyTo) -> Handler:
        """Return the path of a call to an entry in *table*; it waits for the lifespan."""
        handle = pipeline(self, table, run, reply_to)
        if self.registry.has_filters:
            from .gating import only_visible

            handle = only_visible(handle, table)
        lifespan = self.registry.lifespan
        if lifespan is None:
            return handle
        from .started import in_lifespan, started

        wait = in_lifespan if self._execution.makes_one_call else started
        return wait(handle, table, lifespan)

    def _observed(self, handle: Handler, kind: Kind) -> Handler:
        """Return *handle*, wrapped so that outcomes are shown to observers and recorded."""
        if kind != "completion" and self.runs_middleware:
            from .middleware_and_observers import observed

            handle = observed(self.registry, handle, kind)
        return handle if self.records is None else self.records.recorded(handle, kind)


def _as_it_is(tool: Tool, value: Any) -> Reply[Any]:
    reply: Reply[Any] = value
    return reply


def _prompt_reply(tool: Tool, value: object) -> Reply[Any]:
    # Imported at the first prompt, so that other apps do not pay for it.
    from .gating import prompt_reply

    return prompt_reply(tool, value)


def runtime_on_loop(
    registry: Registry,
    *,
    records: Recording | None = None,
    task_store: TaskStorage | None = None,
    debug: bool = False,
) -> Runtime:
    """Return the runtime for a wire with an event loop; plain functions run in separate threads."""
    from .thread_pool import OUR_THREADS, ThreadPool

    pool = ThreadPool(registry.limits.threads, registry.limits.wait)
    execution = execution_in(pool, ThreadPool(OUR_THREADS))
    runtime = Runtime(registry, execution, records=records, task_store=task_store, debug=debug)
    runtime.checks["threads"] = pool.check
    return runtime


def runtime_for_tasks(wire: Runtime, threads: int) -> Runtime:
    """Return the runtime for tasks, which have their own threads and hold them for a long time."""
    from .thread_pool import ThreadPool

    execution = execution_in(ThreadPool(threads), wire._execution.ours)
    return Runtime(wire.registry, execution, records=wire.records, debug=wire.debug, parent=wire)


def runtime_for_one_call(registry: Registry) -> Runtime:
    """Return the runtime for a one-call process, without an event loop if possible."""
    return Runtime(registry, execution_in_place())


def serving(registry: Registry) -> Runtime | None:
    """Return the runtime of the current call to *registry*, or else the newest one serving it."""
    running = current_runtime()
    if running is not None and running.registry is registry:
        return running
    found = [each for each in registry.changes.attached() if isinstance(each, Runtime)]
    found.sort(key=lambda runtime: not runtime.is_stopped)
    return found[-1] if found else None
