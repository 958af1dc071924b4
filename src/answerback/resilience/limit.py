"""Limit: refuses calls above a rate or a number of concurrent calls, per user or in total."""

from __future__ import annotations

import re
from _thread import allocate_lock
from collections.abc import Awaitable, Callable, Hashable
from typing import TYPE_CHECKING, Any, ClassVar, Literal, NamedTuple, Protocol, TypeAlias

from ..calls.call import Call
from ..calls.context import Context
from ..core.authentication import User
from ..core.request_info import RequestInfo
from .policy import (
    REAL_CLOCK,
    Clock,
    Part,
    Policy,
    check_clock,
    check_count,
    check_first,
    check_plain,
    check_store,
    rate_limited,
)

if TYPE_CHECKING:
    from concurrent.futures import Future

Per: TypeAlias = "Literal['all', 'user', 'client', 'address'] | Callable[[Any], Hashable]"

_RATE = re.compile(r"\s*([0-9]{1,12})\s*/\s*([0-9]{0,12})\s*([a-z]+)\s*")
_UNITS = {
    **dict.fromkeys(("s", "sec", "second", "seconds"), 1),
    **dict.fromkeys(("m", "min", "minute", "minutes"), 60),
    **dict.fromkeys(("h", "hour", "hours"), 3600),
    **dict.fromkeys(("d", "day", "days"), 86_400),
}
MAX_KEYS = 100_000


class LimitStore(Protocol):
    """Counts the calls for each key. A store shared by several machines has the same methods.

    The methods run for every call, on any thread, so they must not block.
    """

    def take(self, key: Hashable) -> float:
        """Count a call. Return 0, or the seconds after which a refused call may be retried."""

    def give_back(self, key: Hashable) -> None:
        """Undo the count of a call that did not run, because another limit refused it."""


class PendingCount(NamedTuple):
    """A call being counted by a shared database."""

    answer: Future[float]
    """The result of `LimitStore.take`."""
    count_locally: Callable[[], float]
    """Counts the call if the answer arrives too late."""


class AskingStore(Protocol):
    """A LimitStore, or a store that has to wait for a database."""

    def take(self, key: Hashable) -> float | PendingCount: ...

    def give_back(self, key: Hashable) -> None: ...


Ask: TypeAlias = "Callable[[PendingCount, float | None], Awaitable[float]]"
"""Waits for a pending count; after the given number of seconds, this process counts the call."""


class Buckets:
    """A bucket of *count* tokens for each key, which refills in *seconds*.

    One number is kept for each key: when its bucket will be full again. Keys are kept in
    two generations, and the older one is dropped when the younger one reaches half of *max_keys*.
    This bounds memory use without forgetting keys that are in use.
    """

    def __init__(
        self, count: float, seconds: float, now: Callable[[], float], max_keys: int = MAX_KEYS
    ) -> None:
        self.count = count
        self.seconds = seconds
        self.now = now
        self._each = seconds / count
        self._half = max(1, max_keys // 2)
        self._young: dict[Hashable, float] = {}
        self._old: dict[Hashable, float] = {}
        self._lock = allocate_lock()

    def take(self, key: Hashable) -> float:
        with self._lock:
            now = self.now()
            before = self._young.get(key)
            if before is None:
                before = self._old.get(key, now)
            full_at = max(before, now) + self._each
            over = full_at - now - self.seconds
            # Float rounding: a missing thousandth of a token must not refuse the last call.
            is_refused = over > self._each / 1000
            # A refused key is in use too, and must not be forgotten.
            self._young[key] = before if is_refused else full_at
            if len(self._young) >= self._half:
                self._old, self._young = self._young, {}
            return over if is_refused else 0.0

    def give_back(self, key: Hashable) -> None:
        with self._lock:
            for generation in (self._young, self._old):
                if key in generation:
                    generation[key] -= self._each
                    return

    def __len__(self) -> int:
        return len(self._young) + len(self._old)


class Limit(Part):
    """Refuses calls above a rate, or above a number of calls at a time: `Limit("10/s")`.

    *rate* is a number of calls and a period, such as "10/s", "100/min", "5/10s" or "1000/day".
    *concurrent* is the number of calls that may run at a time. *per* says which calls are counted
    together: "all", those from a "user", a "client" (the program or the API key) or an "address",
    or those for which a function of the context returns the same key. Calls without a user are
    counted by address. *store* counts the calls outside this process. *clock* is for tests.
    If several tools share a Limit, their calls are counted together.
    """

    option: ClassVar[str] = "limit"

    def __init__(
        self,
        rate: str | None = None,
        *,
        per: Per = "all",
        concurrent: int | None = None,
        store: LimitStore | None = None,
        clock: Clock = REAL_CLOCK,
    ) -> None:
        check_first(rate, "@Limit('10/s')")
        if rate is None and concurrent is None:
            raise TypeError("a Limit needs a rate, such as '10/s', or concurrent=…")
        if concurrent is not None:
            check_count("concurrent", concurrent)
        if per not in ("all", "user", "client", "address") and not callable(per):
            raise ValueError(
                f"per={per!r} should be 'all', 'user', 'client', 'address' or a function of ctx"
            )
        check_plain("per", per)
        check_clock(clock)
        if store is not None:
            if rate is None:
                raise TypeError("store= counts by a rate; give one, such as Limit('10/s', store=…)")
            check_store(store, "take", "give_back")
        self.rate = rate
        self.per: Per = per
        self.concurrent = concurrent
        self.store: AskingStore | None = None
        if rate is not None:
            count, seconds = _read_rate(rate)
            # An empty store may be falsy.
            self.store = Buckets(count, seconds, clock.now) if store is None else store
        self._running: dict[Hashable, int] = {}
        self._lock = allocate_lock()

    def __repr__(self) -> str:
        return f"Limit({self.rate!r}, per={self.per!r}, concurrent={self.concurrent})"

    def policy(self) -> Policy:
        if self.per != "all":
            needs = f"per={self.per!r} needs a call with a user"
            raise TypeError(f"{needs}; give it to @app.tool(limit=…)")
        return Policy(limits=(self,), may_repeat=True)

    def key(self, call: Call) -> Hashable:
        """Return the key under which the call is counted."""
        per = self.per
        if per == "all":
            return None
        ctx: Context[Any] = Context(call)
        if callable(per):
            return per(ctx)
        user = None if per == "address" else ctx.user
        return _address(ctx.request, call) if user is None else _user_key(user, per)

    def count(self, key: Hashable) -> PendingCount | None:
        """Count a call against the rate; return the count if it is pending. Raises RateLimited."""
        wait = 0.0 if self.store is None else self.store.take(key)
        if isinstance(wait, PendingCount):
            return wait
        self.check(wait)
        return None

    def check(self, wait: float) -> None:
        """Raise RateLimited if *wait*, in seconds, is not 0."""
        if wait > 0:
            raise rate_limited(str(self.rate), wait)

    def start(self, key: Hashable) -> None:
        """Count a call that is starting; raises RateLimited if too many are running."""
        if self.concurrent is not None:
            with self._lock:
                running = self._running.get(key, 0)
                if running >= self.concurrent:
                    raise rate_limited(f"{self.concurrent} at a time", 1.0)
                self._running[key] = running + 1

    def leave(self, key: Hashable) -> None:
        """End a counted call."""
        if self.concurrent is not None:
            with self._lock:
                running = self._running[key] - 1
                if running:
                    self._running[key] = running
                else:
                    del self._running[key]

    def give_back(self, key: Hashable) -> None:
        """Undo the count against the rate, because the call did not run."""
        if self.store is not None:
            self.store.give_back(key)


def _read_rate(rate: object) -> tuple[int, float]:
    found = _RATE.fullmatch(rate) if isinstance(rate, str) else None
    unit = _UNITS.get(found[3]) if found else None
    if found is None or unit is None or int(found[1]) < 1 or int(found[2] or 1) < 1:
        raise ValueError(f"rate={rate!r} should be like '10/s', '100/min', '5/10s' or '1000/day'")
    return int(found[1]), float(int(found[2] or 1) * unit)


def _address(request: RequestInfo | None, call: Call) -> Hashable:
    # A task has no request, but it knows who created it.
    found = (call.caller or None) if request is None else request.address
    if found is None or ":" not in found:
        return found
    from socket import AF_INET6, inet_ntoa, inet_pton

    try:
        packed = inet_pton(AF_INET6, found)
    except OSError:
        return found
    is_ipv4 = packed[:12] == b"\0" * 10 + b"\xff\xff"
    # For IPv6, use the first 64 bits: one subscriber has all addresses that share them.
    return inet_ntoa(packed[12:]) if is_ipv4 else packed[:8]


def _user_key(user: object, per: object) -> Hashable:
    if isinstance(user, User):
        has_client = per == "client" and user.client
        return (user.issuer, user.client) if has_client else user.key
    for name in ("key", "id", "identity", "username"):
        found = user if isinstance(user, str) else getattr(user, name, None)
        if isinstance(found, str | bytes | int):
            return found
    raise TypeError(
        f"a Limit cannot tell users of the class {type(user).__name__} apart; "
        "give a function: per=lambda ctx: ctx.user.name"
    )
