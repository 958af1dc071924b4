"""PolicyRun: one call under a policy, with its attempts, as the log and the records show it."""

from __future__ import annotations

from collections.abc import Hashable
from time import monotonic
from typing import TYPE_CHECKING, Any

import msgspec

from ..core.log import logger
from ..core.reply import Error
from ..errors import ToolError
from ..tools.context import Context, RunningCall
from .caller_errors import service_failed
from .clock import REAL_CLOCK, Clock, Stopwatch
from .service_failure import PLAIN_DATA, ServiceFailure, read_failure, read_value

if TYPE_CHECKING:
    from ..tools.tool import Tool
    from .limit import Ask, Limit, PendingCount
    from .policy import Policy

_NOTICEABLE = 0.1
"""A shorter wait for a shared database is not taken from the call's time-out, so that the error of
a late call names the number that its author wrote."""


class PolicyRun(msgspec.Struct, eq=False):
    """The attempts, the breaker's ticket and the counted limits of one call."""

    _policy: Policy
    call: RunningCall | None = None
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
    """The seconds that a shared database took to count the call, if one can notice them."""

    @property
    def clock(self) -> Clock:
        retry = self._policy.retry
        return REAL_CLOCK if retry is None else retry.clock

    @property
    def breaker(self) -> str:
        """The breaker's current state; empty without a breaker."""
        breaker = self._policy.breaker
        return "" if breaker is None else breaker.state

    async def begin(self, ask: Ask) -> None:
        """Pass the limits and the breaker; raises RateLimited or Unavailable."""
        policy = self._policy
        retry = policy.retry
        # Without a deadline the clock only counts questions, and most functions cannot ask any.
        if retry is not None and (retry.deadline is not None or self._can_ask()):
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
        # The rates counted a task when it was created.
        is_task = call is not None and call.is_counted
        if is_task and callable(limit.per):
            return None  # It may need the request, which a task does not have.
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

        It takes at most half of the call's time, because the function needs the rest.
        """
        limit, key = self._entered[-1]
        timeout = None if self._tool is None else self._tool.timeout
        known = [each for each in (self.seconds_left(), timeout) if each is not None]
        began = monotonic()
        try:
            limit.check(await ask(pending, min(known) / 2 if known else None))
        except BaseException:
            # It was not counted, so nothing is given back.
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

    def _can_ask(self) -> bool:
        if self._tool is None:
            return True
        signature = self._tool.signature
        return signature.context is not None or bool(signature.dependencies)

    def _context(self) -> Context[Any]:
        assert self.call is not None
        return Context(self.call)

    def seconds_left(self) -> float | None:
        """Return the seconds until the deadline; None without one."""
        retry = self._policy.retry
        if retry is None:
            timeout = None if self._tool is None else self._tool.timeout
            return max(0.0, timeout - self._waited) if timeout and self._waited else None
        if retry.deadline is None or self.watch is None:
            return None
        return max(0.0, retry.deadline - self.watch.seconds())

    def succeeded(self) -> None:
        self._failed = False

    def failure_in(self, value: object) -> ServiceFailure | None:
        """Return the failure in the function's return value; None if it succeeded."""
        if type(value) in PLAIN_DATA:
            return None
        return read_value(value, self._tool is None or self._tool.returns.finished)

    def shown_for(self, exc: BaseException) -> Error | None:
        """Return the error that callers see for a service failure; None for other exceptions."""
        policy = self._policy
        if policy.breaker is None and policy.retry is None:
            return None
        failure = read_failure(exc)
        if not (failure.transient or policy.counts(exc)):
            return None
        return service_failed(failure, policy.may_repeat)

    def wait_after(self, exc: BaseException | None, failure: ServiceFailure) -> float | None:
        """Return the seconds to wait before the next attempt; None if there is none."""
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
        # Other calls may have opened it meanwhile, unless this call is the probe.
        return None if breaker is not None and not breaker.holds(self._ticket) else wait

    def check_cancelled(self) -> None:
        """Stop retrying once the client has gone."""
        if self.call is not None and self._context().cancelled:
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
        except Exception:  # noqa: BLE001 -- it is the code of an author
            message = "the store of breaker %r raised, and does not know the result of a call"
            logger().exception(message, breaker.service)

    def undo(self) -> None:
        """Make the breaker and the limits forget the call, whose function was not started."""
        self._give_back()
        self._failed = None
        self.attempts = 0
        self.end()
