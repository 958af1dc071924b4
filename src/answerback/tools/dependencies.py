"""Dependencies: functions that fill the parameters marked with `Depends`.

Each runs once per call, after the arguments are decoded, in the tool's thread or task.
A generator resumes after the tool and before the reply is checked. The tool's exception is
raised at its `yield`; the generator can raise another one, but cannot make the call succeed.

A plain tool may depend on an async function, which runs on the event loop while the tool's
thread waits for it.
"""

from __future__ import annotations

from collections.abc import Callable, Coroutine, Mapping
from contextlib import AbstractAsyncContextManager, asynccontextmanager, contextmanager
from types import CoroutineType
from typing import TYPE_CHECKING, Any, TypeAlias

import msgspec

from .callable_source import callable_kind, parameter_hints
from .signature import HIDDEN_CONTEXT, Depends, Signature, is_context, marker_of

if TYPE_CHECKING:
    import asyncio

    from .current_call import CallContext
    from .tool import Tool

Overrides: TypeAlias = Mapping[Any, Callable[..., Any]]


class Step(msgspec.Struct, frozen=True):
    """One dependency: how it is called, and which earlier values it takes."""

    call: Callable[..., Any]
    """The function; for a generator, the function that creates its context manager."""
    is_async: bool
    is_generator: bool
    contexts: tuple[str, ...]
    """The parameters that receive the Context."""
    values: tuple[tuple[str, int], ...]
    """The parameters that receive an earlier step's value, and that step's number."""

    def start(self, values: list[Any], context: CallContext) -> Any:
        """Call the function, or create the context manager."""
        found = {name: values[number] for name, number in self.values}
        for name in self.contexts:
            found[name] = context
        return self.call(**found)


class Plan(msgspec.Struct, frozen=True):
    """A tool's dependencies, in call order."""

    steps: tuple[Step, ...]
    parameters: tuple[tuple[str, int], ...]
    """The tool's parameters, and the number of the step that fills each."""

    def fill(self, kwargs: dict[str, Any], values: list[Any]) -> None:
        for name, number in self.parameters:
            kwargs[name] = values[number]


def with_dependencies(tool: Tool, signature: Signature) -> Callable[..., Any]:
    """Return the tool's function, wrapped to fill in its dependencies.

    Raises TypeError for a dependency that cannot be called.
    """
    fn = tool.fn
    context_name = signature.context or HIDDEN_CONTEXT
    usual = _Planner(tool, {}).plan(signature)

    def prepare(kwargs: dict[str, Any]) -> tuple[Plan, Any]:
        """Return this call's plan and its Context; the tool itself need not take a Context."""
        context = kwargs[context_name]
        if context_name is HIDDEN_CONTEXT:
            del kwargs[context_name]
        called = context._call.tool
        apps = () if called is None else called.path
        overrides = {replaced: fn for app in apps for replaced, fn in app.overrides.items()}
        if not overrides:
            return usual, context
        return _Planner(tool, overrides).plan(signature), context

    def run_plain(**kwargs: object) -> object:
        plan, context = prepare(kwargs)
        return _PlainCall(tool, context).run(plan, fn, kwargs)

    async def run_async(**kwargs: object) -> object:
        plan, context = prepare(kwargs)
        return await _run_async(plan, context, fn, kwargs)

    runs: Any = run_async if tool.is_async else run_plain
    runs.__wrapped__ = fn
    runs.__doc__ = fn.__doc__
    found: Callable[..., Any] = runs
    return found


class _Planner:
    """Orders a tool's dependencies, each after the ones it needs."""

    def __init__(self, tool: Tool, overrides: Overrides) -> None:
        self._tool = tool
        self._overrides = overrides
        self._steps: list[Step] = []
        self._numbers: dict[Any, int] = {}
        self._path: list[Any] = []

    def plan(self, signature: Signature) -> Plan:
        parameters = [(name, self._add(each)) for name, each in signature.dependencies.items()]
        return Plan(tuple(self._steps), tuple(parameters))

    def _add(self, wanted: Callable[..., Any]) -> int:
        """Return the number of a dependency's step; an existing step is shared."""
        function = self._overrides.get(wanted, wanted)
        if function in self._numbers:
            return self._numbers[function]
        if function in self._path:
            names = " -> ".join(map(_name, [*self._path, function]))
            raise TypeError(f"the dependencies of tool {self._tool.name!r} form a cycle: {names}")
        self._path.append(function)
        step = self._step(function)
        self._path.pop()
        self._steps.append(step)
        self._numbers[function] = len(self._steps) - 1
        return self._numbers[function]

    def _step(self, function: Callable[..., Any]) -> Step:
        values: list[tuple[str, int]] = []
        contexts: list[str] = []
        for name, annotation in parameter_hints(function).items():
            if is_context(annotation):
                contexts.append(name)
            elif (depends := marker_of(Depends, annotation)) is not None:
                values.append((name, self._add(depends.function)))
            else:
                raise TypeError(
                    f"parameter {name!r} of {_name(function)!r}, a dependency of tool "
                    f"{self._tool.name!r}, is neither a Context nor marked with Depends; "
                    "only the tool itself receives the caller's arguments"
                )
        kind = callable_kind(function)
        if kind.is_async and self._tool.inline:
            raise TypeError(
                f"tool {self._tool.name!r} is inline and depends on {_name(function)!r}, which is "
                "async; leave inline=True out, or write the tool as async def"
            )
        call: Callable[..., Any] = function
        if kind.is_generator and not kind.is_manager:
            call = asynccontextmanager(function) if kind.is_async else contextmanager(function)
        return Step(call, kind.is_async, kind.is_generator, tuple(contexts), tuple(values))


def _name(function: object) -> str:
    return str(getattr(function, "__name__", None) or type(function).__name__)


async def _run_async(
    plan: Plan, context: CallContext, fn: Callable[..., Any], kwargs: dict[str, Any]
) -> object:
    """Call an async tool with its dependencies, all in its task."""
    values: list[Any] = []
    opened: list[Any] = []
    try:
        for step in plan.steps:
            value = step.start(values, context)
            if step.is_generator:
                manager = value
                value = await manager.__aenter__() if step.is_async else manager.__enter__()
                opened.append(manager)
            elif step.is_async or isinstance(value, CoroutineType):
                value = await value
            values.append(value)
        plan.fill(kwargs, values)
        result = await fn(**kwargs)
    except BaseException as exc:
        await _close_async(opened, exc)
        raise
    if opened:
        await _close_async(opened, None)
    return result


async def _close_async(opened: list[Any], exc: BaseException | None) -> None:
    """Exit the generators in reverse order; an exception from one of them is raised instead."""
    failure = exc
    while opened:
        manager = opened.pop()
        try:
            if hasattr(manager, "__aexit__"):
                await manager.__aexit__(*_exc_info(failure))
            else:
                manager.__exit__(*_exc_info(failure))
        except BaseException as other:  # noqa: BLE001 -- raised below, once all have exited
            failure = other
    if failure is not None and failure is not exc:
        raise failure


def _exc_info(exc: BaseException | None) -> tuple[Any, Any, Any]:
    return (None, None, None) if exc is None else (type(exc), exc, exc.__traceback__)


class _PlainCall:
    """One call to a plain tool with its dependencies, in the tool's thread."""

    def __init__(self, tool: Tool, context: CallContext) -> None:
        self._tool = tool
        self._context = context
        self._opened: list[Any] = []
        self._own_loop: asyncio.Runner | None = None

    def run(self, plan: Plan, fn: Callable[..., Any], kwargs: dict[str, Any]) -> Any:
        try:
            values: list[Any] = []
            for step in plan.steps:
                value = step.start(values, self._context)
                if step.is_generator:
                    manager = _HeldOnLoop(value, self._wait_for) if step.is_async else value
                    value = manager.__enter__()
                    self._opened.append(manager)
                elif step.is_async or isinstance(value, CoroutineType):
                    value = self._wait_for(value)
                values.append(value)
            plan.fill(kwargs, values)
            result = fn(**kwargs)
        except BaseException as exc:
            self._close(exc)
            raise
        if not self._opened:
            return result
        if isinstance(result, CoroutineType):
            return self._finish(result)
        self._close(None)
        return result

    async def _finish(self, steps: Coroutine[Any, Any, Any]) -> Any:
        """Await the coroutine that a plain function returned, then close."""
        try:
            result = await steps
        except BaseException as exc:
            self._close(exc)
            raise
        self._close(None)
        return result

    def _close(self, exc: BaseException | None) -> None:
        """Exit the generators in reverse order; an exception from one of them is raised instead."""
        failure = exc
        while self._opened:
            try:
                self._opened.pop().__exit__(*_exc_info(failure))
            except BaseException as other:  # noqa: BLE001 -- raised below, after the others
                failure = other
        if self._own_loop is not None:
            self._own_loop.close()
        if failure is not None and failure is not exc:
            raise failure

    def _wait_for(self, steps: Coroutine[Any, Any, Any]) -> object:
        """Run a coroutine on the wire's event loop, and block until it is done."""
        if (runtime := self._context._call.runtime) is not None:
            return runtime.wait_for(steps)
        import asyncio

        if self._own_loop is None:
            self._own_loop = asyncio.Runner()
        return self._own_loop.run(steps)


class _HeldOnLoop:
    """A plain tool's async generator, entered and exited by the same task on the loop."""

    def __init__(
        self,
        manager: AbstractAsyncContextManager[Any],
        wait_for: Callable[[Coroutine[Any, Any, Any]], Any],
    ) -> None:
        self._manager = manager
        self._wait_for = wait_for
        self._ready: asyncio.Future[Any]
        self._release: asyncio.Future[BaseException | None]
        self._task: asyncio.Task[None]

    def __enter__(self) -> object:
        return self._wait_for(self._start())

    def __exit__(self, kind: object, exc: BaseException | None, traceback: object) -> None:
        self._wait_for(self._end(exc))

    async def _start(self) -> object:
        import asyncio

        self._ready, self._release = asyncio.Future(), asyncio.Future()
        self._task = asyncio.create_task(self._hold())
        return await self._ready

    async def _end(self, exc: BaseException | None) -> None:
        self._release.set_result(exc)
        await self._task

    async def _hold(self) -> None:
        try:
            async with self._manager as value:
                self._ready.set_result(value)
                failure = await self._release
                if failure is not None:
                    raise failure
        except BaseException as exc:
            if self._ready.done():
                raise
            self._ready.set_exception(exc)
