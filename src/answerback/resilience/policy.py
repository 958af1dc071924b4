"""Policy: the limits, breaker and retries of a tool or function, in their fixed order.

The limits come first, then the breaker, then the attempts. Each attempt has the tool's time-out,
and the retry's deadline covers all of them.
"""

from __future__ import annotations

from abc import ABC, abstractmethod
from collections.abc import Callable, Hashable, Mapping
from functools import partial, wraps
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar, cast

import msgspec

from ..registry.declarations import HealthState
from ..tools.context import RunningCall
from ..tools.tool_options import ToolSettings, limits_of
from .option_checks import check_function
from .policy_run import PolicyRun
from .running import ask_on_loop, run_async, run_sync

if TYPE_CHECKING:
    from ..tools.tool import Tool
    from .breaker import Breaker
    from .limit import Limit
    from .retry import Retry

F = TypeVar("F", bound=Callable[..., Any])
C = TypeVar("C", bound="RunningCall")


class Part(ABC):
    """A Limit, Breaker or Retry: a tool option, and a decorator for a function."""

    option: ClassVar[str]
    """The name of the option that takes it."""

    def policy_for(self, settings: ToolSettings) -> Policy:
        """Return the policy of a tool with these options, which include this part."""
        return Policy(
            limits=cast("tuple[Limit, ...]", limits_of(settings)),
            breaker=cast("Breaker | None", settings.breaker),
            retry=cast("Retry | None", settings.retry),
            may_repeat=bool(settings.idempotent or settings.read_only),
        )

    def __call__(self, fn: F) -> F:
        """Decorate a function, sync or async. A function with `Retry` must be able to run twice."""
        check_function(self, fn)
        policy = self.policy()

        async def call_async(*args: object, **kwargs: object) -> object:
            return await run_async(PolicyRun(policy), lambda left: fn(*args, **kwargs))

        def call_sync(*args: object, **kwargs: object) -> object:
            return run_sync(PolicyRun(policy), lambda left: fn(*args, **kwargs))

        decorated: Any = wraps(fn)(call_async if _is_async(fn) else call_sync)
        return decorated  # type: ignore[no-any-return]  # it has the signature of the function

    @abstractmethod
    def policy(self) -> Policy:
        """Return the policy of a function decorated with this."""

    def call(self, fn: Callable[..., Any], *args: object, **kwargs: object) -> Any:
        """Call a function once under this policy: `breaker.call(fetch, city)`."""
        return self(fn)(*args, **kwargs)


def _is_async(fn: Callable[..., Any]) -> bool:
    from inspect import iscoroutinefunction

    return iscoroutinefunction(fn) or iscoroutinefunction(getattr(fn, "__call__", None))  # noqa: B004 -- the method is needed, to see whether it is async


class Policy(msgspec.Struct, frozen=True, eq=False, kw_only=True):
    """The combined parts. A tool has one; a client may make one for its requests."""

    limits: tuple[Limit, ...] = ()
    breaker: Breaker | None = None
    retry: Retry | None = None
    may_repeat: bool = False
    """Whether an attempt that may have taken effect may be repeated."""

    def run(
        self,
        run: Callable[[Tool, dict[str, Any], C], Any],
        tool: Tool,
        kwargs: dict[str, Any],
        call: C,
    ) -> object:
        """Run a tool with *run*."""
        policy_run = call.policy_run = PolicyRun(self, call, tool)
        attempt = partial(_attempt, run, tool, kwargs, call)
        return run_async(policy_run, attempt)

    async def count(self, call: RunningCall) -> Callable[[], None]:
        """Count a new task by the rates; return a function that undoes it. Raises RateLimited."""
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
        """Return the health check of *tools*' breakers. An open one does not stop other tools."""

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
    run: Callable[[Tool, dict[str, Any], C], Any],
    tool: Tool,
    kwargs: dict[str, Any],
    call: C,
    left: float | None,
) -> object:
    """Make one attempt of a tool, which ends at the call's deadline at the latest."""
    if left is not None and (tool.timeout is None or left < tool.timeout):
        from copy import copy

        tool = copy(tool)
        tool.timeout = left
    return run(tool, kwargs, call)
