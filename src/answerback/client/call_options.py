"""Options for a client's calls; retries, breakers and limits form one policy per server."""

from __future__ import annotations

from collections.abc import Awaitable, Callable, Mapping
from typing import TYPE_CHECKING, Any, TypedDict, TypeVar

import msgspec

from ..core.clocks import Deadline
from ..core.log import logger
from ..core.reply import Error, Reply
from ..errors import ToolError
from .user_handlers import OnProgress

if TYPE_CHECKING:
    from ..resilience import Breaker, Limit, Retry

T = TypeVar("T")
_LOGGER = logger("answerback.client")


class CallOptions(TypedDict, total=False):
    """Options for `server.options`; None removes an option that was given to `connect`."""

    timeout: float | None
    """How many seconds an attempt may take; None means no limit."""
    progress: OnProgress | None
    """Called with a call's progress."""
    meta: Mapping[str, Any] | None
    """Members to add to each request's `_meta`, such as a trace id; not sent when listing."""
    retry: Retry | None
    """How many times a request is resent, if that is safe."""
    breaker: Breaker | None
    """Stops requests to a failing server."""
    limit: Limit | tuple[Limit, ...] | list[Limit] | None
    """How many requests may be sent; any more are refused."""


POLICY_OPTIONS = ("retry", "breaker", "limit")


class ClientOptions(msgspec.Struct, frozen=True):
    """How requests to a server are sent, as set by `connect` or `server.options`."""

    timeout: float | None = 60.0
    progress: OnProgress | None = None
    meta: Mapping[str, Any] | None = None
    retry: Retry | None = None
    breaker: Breaker | None = None
    limit: Limit | tuple[Limit, ...] | list[Limit] | None = None
    has_policy: bool = False
    label: str = ""
    """The server's name in the log."""

    @classmethod
    def of(cls, options: Mapping[str, Any], label: str = "") -> ClientOptions:
        """Pick these options out of the ones given to `connect`; raises TypeError."""
        return cls(label=label).changed(
            {name: options[name] for name in CallOptions.__annotations__ if name in options}
        )

    def changed(self, options: Mapping[str, Any]) -> ClientOptions:
        """Return these options with some replaced; raises TypeError."""
        unknown = sorted(options.keys() - CallOptions.__annotations__.keys())
        if unknown:
            known = ", ".join(CallOptions.__annotations__)
            raise TypeError(f"unknown option {', '.join(unknown)}; the options are {known}")
        for name in POLICY_OPTIONS:
            if name in options:
                _check(name, options[name])
        if not isinstance(options.get("meta"), Mapping | None):
            raise TypeError(f"meta={options['meta']!r} should be a dict")
        changed = msgspec.structs.replace(self, **options)
        has_policy = any(getattr(changed, name) is not None for name in POLICY_OPTIONS)
        return msgspec.structs.replace(changed, has_policy=has_policy)

    def with_meta(self, params: Mapping[str, Any]) -> Mapping[str, Any]:
        """Return a request's parameters, with the user's `_meta` if there is one."""
        return {**params, "_meta": dict(self.meta)} if self.meta else params


def _as_tuple(given: T | tuple[T, ...] | list[T] | None) -> tuple[T, ...]:
    if isinstance(given, list | tuple):
        return tuple(given)
    return () if given is None else (given,)


def _check(name: str, given: object) -> None:
    from ..resilience import Limit
    from ..resilience.policy import Part

    for part in _as_tuple(given):
        if not isinstance(part, Part) or part.option != name:
            example = {"retry": "Retry(attempts=3)", "breaker": "Breaker('name')"}
            should = example.get(name, "Limit('10/s')")
            raise TypeError(f"{name}={part!r} should be a {name.title()}, such as {should}")
        if isinstance(part, Limit) and part.per != "all":
            raise TypeError(f"per={part.per!r} is for a server; a client counts all of its calls")


async def under_policy(
    options: ClientOptions,
    attempt: Callable[[Deadline], Awaitable[T]],
    *,
    may_repeat: bool = True,
    first: Deadline | None = None,
) -> T:
    """Make attempts according to the options; each has its own deadline.

    *first* is the first attempt's deadline, if its clock is already running. Raises a breaker's or
    limit's refusal, or the last attempt's exception.
    """
    if not options.has_policy:
        return await attempt(first or Deadline(options.timeout))
    from ..resilience.policy import Policy, PolicyRun, run_async

    attempts = 0

    async def once(left: float | None) -> T:
        nonlocal attempts, first
        attempts += 1
        if attempts > 1:
            _LOGGER.info("%s: attempt %d, because of retry=", options.label, attempts)
        deadline, first = first or Deadline(options.timeout), None
        return await attempt(deadline.sooner(left))

    policy = Policy(
        limits=_as_tuple(options.limit),
        breaker=options.breaker,
        retry=options.retry,
        may_repeat=may_repeat,
    )
    found: T = await run_async(PolicyRun(policy), once)
    return found


async def reply_under_policy(
    options: ClientOptions,
    attempt: Callable[[Deadline], Awaitable[Reply[Any]]],
    *,
    may_repeat: bool = True,
    first: Deadline | None = None,
) -> Reply[Any]:
    """Like `under_policy`, but return a failed reply if a breaker or a limit refuses the call."""
    try:
        return await under_policy(options, attempt, may_repeat=may_repeat, first=first)
    except ToolError as refusal:
        error = Error.of(refusal)
        details = {**(error.details or {}), "may_have_run": False}
        return Reply(error=msgspec.structs.replace(error, details=details))
