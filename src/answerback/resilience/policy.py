"""Policy: a tool's or function's limits, breaker and retries, in their fixed order; and Retry.

The limits come first, then the breaker, then the attempts. Each attempt has the tool's timeout,
and the retry's deadline covers all attempts.
"""

from __future__ import annotations

import time
from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from functools import partial, wraps
from math import ceil, inf, isfinite
from random import random
from time import monotonic
from types import CoroutineType
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import msgspec

from ..calls.context import Context
from ..calls.runners import ON_LOOP, run_at_once
from ..core.clocks import RUNNING, Stopwatch
from ..core.json_value import JsonObject, is_integer, is_number
from ..core.log import logger
from ..core.reply import Error
from ..errors import CHECK_FIRST, RateLimited, TimedOut, ToolError, Unavailable
from ..registry.declarations import HealthState
from ..tools.tool_options import ToolSettings, limits_of
from .service_failure import PLAIN_DATA, ServiceFailure, read_failure, read_value

if TYPE_CHECKING:
    from ..calls.call import Call
    from ..tools.tool import Tool
    from .breaker import Breaker
    from .limit import Ask, Limit, PendingCount


class Clock:
    """The real clock, which uses `time.monotonic`."""

    def now(self) -> float:
        """Return the time in seconds."""
        return time.monotonic()

    async def sleep(self, seconds: float) -> None:
        """Wait on the event loop; the wait can be cancelled."""
        import asyncio

        await asyncio.sleep(seconds)

    def wait(self, seconds: float) -> None:
        """Wait in a thread."""
        time.sleep(seconds)


REAL_CLOCK = Clock()


# Flags of code objects, as in `inspect`, which is slow to import.
_ASYNC = 0x80
_GENERATOR = 0x20 | 0x200


def check_first(value: object, example: str) -> None:
    """Refuse a function: the decorator was written without parentheses."""
    if callable(value):
        raise TypeError(f"{value!r} is not a valid first argument; write {example}")


def check_name(name: str, value: object, example: str) -> None:
    """Refuse a value that is not a name."""
    if not isinstance(value, str) or not value:
        raise ValueError(f"{name}={value!r} should be a name, such as {example!r}")


def check_count(name: str, value: object) -> None:
    """Refuse a value that is not a positive whole number."""
    if not is_integer(value) or value < 1:
        raise ValueError(f"{name}={value!r} should be a whole number of at least 1")


def check_seconds(name: str, value: Any) -> None:
    """Refuse a value that is not a duration."""
    if not is_number(value) or not isfinite(value) or value <= 0:
        raise ValueError(f"{name}={value!r} should be a number of seconds greater than 0")


def check_classes(name: str, value: object) -> None:
    """Refuse values that `isinstance` does not accept, and exceptions that end more than a call."""
    classes = value if isinstance(value, tuple) else (value,)
    if not all(isinstance(each, type) and issubclass(each, Exception) for each in classes):
        raise TypeError(
            f"{name}={value!r} should be an exception class or a tuple of them, such as OSError"
        )


def check_clock(value: object) -> None:
    if not isinstance(value, Clock):
        raise TypeError(f"clock={value!r} should be a Clock from answerback.resilience")


def check_plain(name: str, value: object) -> None:
    """Refuse an async function: its result would not be awaited."""
    if _flags(value) & _ASYNC:
        raise TypeError(f"{name} should be a plain function, not async: its result is not awaited")


def check_store(value: object, *methods: str) -> None:
    """Refuse a store without the methods of its protocol."""
    for each in methods:
        if not callable(getattr(value, each, None)):
            raise TypeError(f"store={value!r} has no method {each}; see docs/guides/resilience.md")


def check_function(part: object, fn: Callable[..., Any]) -> None:
    """Refuse anything that a part cannot run: a non-function, or a generator."""
    if not callable(fn):
        name = type(part).__name__
        raise TypeError(f"{name} can only decorate a function, not {fn!r}")
    if _flags(fn) & _GENERATOR:
        raise TypeError(
            f"{getattr(fn, '__name__', fn)!r} is a generator, which runs after the call has ended; "
            "decorate the function that reads one value, or return a list"
        )


def _flags(fn: object) -> int:
    while hasattr(fn, "func"):  # A functools.partial.
        fn = fn.func
    flags: int = getattr(getattr(fn, "__code__", None), "co_flags", 0)
    return flags


E = TypeVar("E", bound=ToolError)


def unavailable(seconds: float) -> Unavailable:
    """Return an open breaker's refusal."""
    return _refusal(Unavailable, "Service temporarily unavailable", {}, seconds)


def rate_limited(limit: str, seconds: float) -> RateLimited:
    """Return a limit's refusal."""
    message = f"Too many calls: the limit is {limit}"
    return _refusal(RateLimited, message, {"limit": limit}, seconds)


def _refusal(kind: type[E], message: str, details: JsonObject, seconds: float) -> E:
    after = max(1, ceil(seconds))
    details["retry_after"] = after
    error = kind(message, details=details, retryable=True, hint=f"try again {_in(after)}")
    error.may_have_run = False
    return error


def _in(seconds: int) -> str:
    return "in 1 second" if seconds == 1 else f"in {seconds} seconds"


_NOTICEABLE = 0.1
"""A shorter wait for a shared database is not deducted from the call's timeout, so that a timeout
error shows the number that the author wrote."""


class PolicyRun(msgspec.Struct, eq=False):
    """The attempts, the breaker's ticket and the counted limits of one call."""

    _policy: Policy
    call: Call | None = None
    _tool: Tool | None = None
    attempts: int = 0
    """How many times the function was started."""
    opened: bool = False
    """Whether the call opened the breaker."""
    watch: Stopwatch | None = None
    _entered: list[tuple[Limit, Hashable]] = []
    _ticket: int | None = None
    _failed: bool | None = None
    _waited: float = 0.0
    """The seconds that a shared database took to count the call, if noticeable."""

    @property
    def clock(self) -> Clock:
        retry = self._policy.retry
        return REAL_CLOCK if retry is None else retry.clock

    @property
    def breaker(self) -> str:
        """The breaker's current state; empty if there is no breaker."""
        breaker = self._policy.breaker
        return "" if breaker is None else breaker.state

    async def begin(self, ask: Ask) -> None:
        """Pass the limits and the breaker; raises RateLimited or Unavailable."""
        policy = self._policy
        retry = policy.retry
        if retry is not None:
            signature = None if self._tool is None else self._tool.signature
            # Without a deadline, the watch only counts questions; most functions cannot ask any.
            can_ask = signature is None or signature.context is not None or signature.dependencies
            if can_ask or retry.deadline is not None:
                self.watch = Stopwatch(retry.clock.now)
        try:
            for limit in policy.limits:
                pending = self._enter(limit)
                if pending is not None:
                    await self._answer(ask, pending)
            if policy.breaker is not None:
                self._ticket = policy.breaker.enter()
        except BaseException:
            self._give_back()
            raise

    def _enter(self, limit: Limit) -> PendingCount | None:
        call = self.call
        # A task was counted against the rates when it was created.
        is_task = call is not None and call.is_counted
        if is_task and callable(limit.per):
            return None  # The function may need the request, which a task does not have.
        key = None if call is None else limit.key(call)
        limit.start(key)
        try:
            pending = None if is_task else limit.count(key)
        except BaseException:
            limit.leave(key)
            raise
        self._entered.append((limit, key))
        return pending

    async def _answer(self, ask: Ask, pending: PendingCount) -> None:
        """Wait until the last entered limit is counted; raises RateLimited.

        Waits for at most half of the call's time, because the function needs the rest.
        """
        limit, key = self._entered[-1]
        timeout = None if self._tool is None else self._tool.timeout
        known = [each for each in (self.seconds_left(), timeout) if each is not None]
        began = monotonic()
        try:
            limit.check(await ask(pending, min(known) / 2 if known else None))
        except BaseException:
            # The call was not counted, so there is nothing to give back.
            self._entered.pop()
            limit.leave(key)
            raise
        took = monotonic() - began
        if took > _NOTICEABLE:
            self._waited += took

    def _give_back(self) -> None:
        for limit, key in self._entered:
            limit.leave(key)
            limit.give_back(key)
        self._entered.clear()

    def seconds_left(self) -> float | None:
        """Return the seconds until the deadline; None if there is none."""
        retry = self._policy.retry
        if retry is None:
            timeout = None if self._tool is None else self._tool.timeout
            return max(0.0, timeout - self._waited) if timeout and self._waited else None
        if retry.deadline is None or self.watch is None:
            return None
        return max(0.0, retry.deadline - self.watch.elapsed())

    def succeeded(self) -> None:
        self._failed = False

    def failure_in(self, value: object) -> ServiceFailure | None:
        """Return the failure in the function's return value; None if it succeeded."""
        if type(value) in PLAIN_DATA:
            return None
        return read_value(value, self._tool is None or self._tool.returns.finished)

    def shown_for(self, exc: BaseException) -> Error | None:
        """Return the error that callers see for a service failure; None for other exceptions.

        The exception's own text is not shown.
        """
        policy = self._policy
        if policy.breaker is None and policy.retry is None:
            return None
        failure = read_failure(exc)
        if not (failure.transient or policy.counts(exc)):
            return None
        code, message = Unavailable.code, "A service that this tool needs is unavailable"
        if failure.timed_out:
            code, message = TimedOut.code, "A service that this tool needs did not answer in time"
        retryable = policy.may_repeat or not failure.may_have_run
        hint, details = "try again later", None
        if failure.retry_after is not None:
            after = max(1, ceil(failure.retry_after))
            hint, details = f"try again {_in(after)}", {"retry_after": after}
        return Error(code, message, details, retryable, hint if retryable else CHECK_FIRST)

    def wait_after(self, exc: BaseException | None, failure: ServiceFailure) -> float | None:
        """Return the seconds to wait before the next attempt; None to stop retrying."""
        policy = self._policy
        breaker, retry = policy.breaker, policy.retry
        # A refusal says nothing about the service, and neither does a caller's mistake.
        self._failed = True if failure.of_service or policy.counts(exc) else None
        # After the user has answered a question, another attempt would repeat it.
        if retry is None or (self.watch is not None and self.watch.questions > 0):
            return None
        wait = retry.wait_after(self.attempts - 1, exc, failure, policy.may_repeat)
        left = self.seconds_left()
        if wait is None or (left is not None and wait >= left):
            return None
        # Other calls may have opened the breaker in the meantime, unless this call is the probe.
        return None if breaker is not None and not breaker.holds(self._ticket) else wait

    def check_cancelled(self) -> None:
        """Stop retrying once the client has gone away."""
        if self.call is not None and Context(self.call).cancelled:
            raise ToolError("The call was cancelled", code="CANCELLED")

    def end(self) -> None:
        """Report the call's end to the breaker and the limits."""
        for limit, key in self._entered:
            limit.leave(key)
        self._entered.clear()
        if self._ticket is None:
            return
        breaker, ticket = self._policy.breaker, self._ticket
        assert breaker is not None
        self._ticket = None
        try:
            self.opened = breaker.leave(ticket, self._failed)
        except Exception:  # noqa: BLE001 -- it is the author's code
            message = "the store of breaker %r raised an exception, and missed the result of a call"
            logger().exception(message, breaker.service)

    def undo(self) -> None:
        """Make the breaker and the limits forget the call, whose function was not started."""
        self._give_back()
        self._failed = None
        self.attempts = 0
        self.end()


Operation = Callable[[float | None], Any]
"""Makes one attempt within the given seconds; returns a value or a coroutine."""


async def run_async(run: PolicyRun, operation: Operation) -> Any:
    """Return the result of *operation*, retried as the policy allows."""
    return await _run(run, operation, ask_on_loop)


def run_sync(run: PolicyRun, operation: Operation) -> Any:
    """Like `run_async`, but without an event loop: blocks the thread.

    A function that returns a coroutine, as a lambda may, has not run yet. In that case the result
    is a coroutine that runs it with `run_async`.
    """
    return run_at_once(_run(run, operation, _ask_in_thread))


async def _run(run: PolicyRun, operation: Operation, ask: Ask) -> Any:
    await run.begin(ask)
    # Questions to the user pause the call's clock; only calls with a retry have one.
    token = None if run.watch is None else RUNNING.set((*RUNNING.get(), run.watch))
    try:
        while True:
            run.attempts += 1
            try:
                value = operation(run.seconds_left())
                if isinstance(value, CoroutineType):
                    if ask is _ask_in_thread:
                        run.undo()
                        return run_async(run, _beginning_with(value, operation))
                    value = await value
            except BaseException as exc:
                wait = run.wait_after(exc, read_failure(exc))
                if wait is None:
                    raise
            else:
                failure = run.failure_in(value)
                if failure is None:
                    run.succeeded()
                    return value
                wait = run.wait_after(None, failure)
                if wait is None:
                    return value
            if ask is _ask_in_thread:
                run.clock.wait(wait)
            else:
                await ON_LOOP
                await run.clock.sleep(wait)
            run.check_cancelled()
    finally:
        if token is not None:
            RUNNING.reset(token)
        run.end()


async def ask_on_loop(pending: PendingCount, seconds: float | None = None) -> float:
    """Wait on the event loop until the shared database has counted a call."""
    await ON_LOOP
    import asyncio

    try:
        return await asyncio.wait_for(asyncio.wrap_future(pending.answer), seconds)
    except TimeoutError:
        return pending.count_locally()


async def _ask_in_thread(pending: PendingCount, seconds: float | None) -> float:
    try:
        return pending.answer.result(seconds)
    except TimeoutError:
        return pending.count_locally()


def _beginning_with(first: object, operation: Operation) -> Operation:
    """Return an operation whose first attempt returns *first*."""
    made = [first]
    return lambda left: made.pop() if made else operation(left)


F = TypeVar("F", bound=Callable[..., Any])


class Part(ABC):
    """A Limit, Breaker or Retry: a tool option, and a decorator for a function."""

    option: ClassVar[str]
    """The name of the option that accepts it."""

    def policy_for(self, settings: ToolSettings) -> Policy:
        """Return the policy for a tool with these options, which include this part."""
        return Policy(
            limits=cast("tuple[Limit, ...]", limits_of(settings)),
            breaker=cast("Breaker | None", settings.breaker),
            retry=cast("Retry | None", settings.retry),
            may_repeat=bool(settings.idempotent or settings.read_only),
        )

    def __call__(self, fn: F) -> F:
        """Decorate a sync or async function. With `Retry`, it must be safe to run twice."""
        check_function(self, fn)
        policy = self.policy()

        async def call_async(*args: object, **kwargs: object) -> object:
            return await run_async(PolicyRun(policy), lambda left: fn(*args, **kwargs))

        def call_sync(*args: object, **kwargs: object) -> object:
            return run_sync(PolicyRun(policy), lambda left: fn(*args, **kwargs))

        from inspect import iscoroutinefunction

        method = getattr(fn, "__call__", None)  # noqa: B004 -- to find out whether it is async
        is_async = iscoroutinefunction(fn) or iscoroutinefunction(method)
        decorated: Any = wraps(fn)(call_async if is_async else call_sync)
        return decorated  # type: ignore[no-any-return]  # it has the signature of the function

    @abstractmethod
    def policy(self) -> Policy:
        """Return the policy for a function decorated with this part."""

    def call(self, fn: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        """Call a function once under this policy: `breaker.call(fetch, city)`."""
        return self(fn)(*args, **kwargs)


class Policy(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """The combined parts. A tool has one, and a client may create one for its requests."""

    limits: tuple[Limit, ...] = ()
    breaker: Breaker | None = None
    retry: Retry | None = None
    may_repeat: bool = False
    """Whether an attempt that may have taken effect may be repeated."""

    def run(
        self,
        run: Callable[[Tool, dict[str, Any], Call], Any],
        tool: Tool,
        kwargs: dict[str, Any],
        call: Call,
    ) -> object:
        """Run a tool with *run*."""
        policy_run = call.policy_run = PolicyRun(self, call, tool)
        attempt = partial(_attempt, run, tool, kwargs, call)
        return run_async(policy_run, attempt)

    async def count(self, call: Call) -> Callable[[], None]:
        """Count a new task against the rates; return an undo function. Raises RateLimited."""
        counted: list[tuple[Limit, Hashable]] = []

        def undo() -> None:
            for limit, key in counted:
                limit.give_back(key)

        try:
            for limit in self.limits:
                key = limit.key(call)
                pending = limit.count(key)
                if pending is not None:
                    limit.check(await ask_on_loop(pending))
                counted.append((limit, key))
        except BaseException:
            undo()
            raise
        return undo

    def counts(self, exc: BaseException | None) -> bool:
        """Return whether the author listed *exc*'s class as a service failure."""
        return self.breaker is not None and isinstance(exc, self.breaker.counts)

    def check_of(self, tools: Mapping[str, Tool]) -> Callable[[], HealthState | None]:
        """Return a health check for *tools*' breakers. An open one does not stop other tools."""

        def check() -> HealthState | None:
            policies = [tool.policy for tool in tools.values()]
            found = [each.breaker for each in policies if isinstance(each, Policy)]
            breakers = {each.service: each for each in found if each is not None}
            if not breakers:
                return None
            details: dict[str, bool | int | str] = {
                name: each.state for name, each in sorted(breakers.items())
            }
            details["trips"] = sum(each.store.trips for each in breakers.values())
            return HealthState(details=details)

        return check


def _attempt(
    run: Callable[[Tool, dict[str, Any], Call], Any],
    tool: Tool,
    kwargs: dict[str, Any],
    call: Call,
    left: float | None,
) -> object:
    """Make one attempt to run a tool, which must end by the call's deadline."""
    if left is not None and (tool.timeout is None or left < tool.timeout):
        from copy import copy

        tool = copy(tool)
        tool.timeout = left
    return run(tool, kwargs, call)


def backoff_with_jitter(attempt: int) -> float:
    """Return the seconds to wait after attempt number *attempt*, counted from 0."""
    # Far longer than any wait; much larger powers would overflow a float.
    return 2.0 ** min(attempt, 64) + random()


def _always(seconds: object) -> Callable[[int], float]:
    if not is_number(seconds) or not 0 <= seconds < inf:
        raise TypeError(
            f"wait={seconds!r} should be a number of seconds, such as 0.5, "
            "or a function of the attempt's number, from 0"
        )
    return lambda attempt: seconds


class Retry(Part):
    """Retries a failed call, with increasing waits; the last attempt's error is raised.

    *attempts* includes the first call. *wait* is a number of seconds, or a function of the
    attempt's number, from 0. Connection errors, timeouts, `retryable` errors and the classes in
    *on* are retried. If a service asks for a longer wait, it is honoured up to *max_wait* seconds;
    beyond that, its error is raised immediately. *deadline* is the time limit for all attempts and
    waits together, in seconds. *clock* is for tests.
    """

    option: ClassVar[str] = "retry"

    def __init__(
        self,
        attempts: int = 3,
        *,
        wait: float | Callable[[int], float] = backoff_with_jitter,
        max_wait: float = 60.0,
        deadline: float | None = None,
        on: type[Exception] | tuple[type[Exception], ...] = (),
        clock: Clock = REAL_CLOCK,
    ) -> None:
        check_first(attempts, "@Retry(), with parentheses")
        check_count("attempts", attempts)
        self.wait = wait if callable(wait) else _always(wait)
        check_plain("wait", wait)
        check_seconds("max_wait", max_wait)
        if deadline is not None:
            check_seconds("deadline", deadline)
        check_classes("on", on)
        check_clock(clock)
        self.attempts = attempts
        self.max_wait = max_wait
        self.deadline = deadline
        self.on = on
        self.clock = clock

    def __repr__(self) -> str:
        return f"Retry(attempts={self.attempts})"

    def policy(self) -> Policy:
        return Policy(retry=self, may_repeat=True)

    def wait_after(
        self, attempt: int, exc: BaseException | None, failure: ServiceFailure, may_repeat: bool
    ) -> float | None:
        """Return the seconds to wait after a failed *attempt*, from 0; None if it was the last."""
        if attempt + 1 >= self.attempts or (failure.may_have_run and not may_repeat):
            return None
        is_wanted = exc is not None and isinstance(exc, self.on)
        if is_wanted and getattr(exc, "retryable", None) is False:
            return None
        if not (failure.transient or is_wanted):
            return None
        asked = failure.retry_after or 0.0
        if asked > self.max_wait:
            return None
        wait = self.wait(attempt)
        if not is_number(wait) or wait != wait:
            raise TypeError(f"wait({attempt}) returned {wait!r}, not a number of seconds")
        return max(asked, min(wait, self.max_wait), 0.0)
