"""Breaker: stops calls to a failing service, and lets one probe through to see if it is back."""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Callable
from typing import ClassVar, Literal, Protocol
from weakref import WeakValueDictionary

from ..core.log import logger
from .policy import (
    REAL_CLOCK,
    Clock,
    Part,
    Policy,
    check_classes,
    check_clock,
    check_count,
    check_first,
    check_name,
    check_seconds,
    check_store,
    unavailable,
)

State = Literal["closed", "open", "half-open"]


class BreakerStore(Protocol):
    """The state of a service. A store shared by several machines has the same methods.

    The methods run for every call, on any thread, so they must not block.
    """

    @property
    def state(self) -> State:
        """Closed, open, or half-open if the next call is the probe."""

    @property
    def trips(self) -> int:
        """How many times it has opened."""

    def enter(self) -> int | None:
        """Return a ticket if the call may proceed; None if it is refused."""

    def leave(self, ticket: int, failed: bool | None) -> bool:
        """Count an outcome; None says nothing about the service. Return True if this opened it."""

    def seconds_left(self) -> float:
        """Return the seconds until the next probe is allowed."""


class ServiceState:
    """Counts a service's consecutive failures. Thread-safe.

    Every state change starts a new period; a ticket is the period's number. The result of a call
    that started in an earlier period says nothing about the current one.
    """

    def __init__(self, failures: int, reset: float, now: Callable[[], float]) -> None:
        self.failures = failures
        self.reset = reset
        self.trips = 0
        self._now = now
        self._lock = allocate_lock()
        self._count = 0
        self._period = 0
        self._is_open = False
        self._probe_at = 0.0
        """When the next probe may start; during a probe, when it is abandoned."""

    @property
    def state(self) -> State:
        if not self._is_open:
            return "closed"
        return "open" if self._now() < self._probe_at else "half-open"

    def holds(self, ticket: int) -> bool:
        """Return whether the state has not changed since the call with this ticket started."""
        return ticket == self._period

    def seconds_left(self) -> float:
        return max(0.0, self._probe_at - self._now()) if self._is_open else 0.0

    def enter(self) -> int | None:
        if not self._is_open:
            return self._period
        with self._lock:
            if not self._is_open:
                return self._period
            now = self._now()
            if now < self._probe_at:
                return None
            # Other calls are refused during the probe. A probe that never ends is abandoned.
            self._probe_at = now + self.reset
            self._period += 1
            return self._period

    def leave(self, ticket: int, failed: bool | None) -> bool:
        if failed is False and not self._count and not self._is_open:
            return False
        with self._lock:
            if ticket != self._period:
                return False
            if failed is None:
                if self._is_open:
                    # The probe was inconclusive: the next call becomes the probe.
                    self._probe_at = self._now()
                return False
            if not failed:
                self._period += self._is_open
                self._count, self._is_open = 0, False
                return False
            self._count += 1
            if not self._is_open and self._count < self.failures:
                return False
            self._is_open = True
            self._period += 1
            self.trips += 1
            self._probe_at = self._now() + self.reset
            return True


_SERVICES: WeakValueDictionary[str, ServiceState] = WeakValueDictionary()
"""The state of each service by name, shared by all breakers with that name."""


class Breaker(Part):
    """Refuses calls for a while after a service has failed several times in a row.

    *failures* is the number of failures that opens it. *reset* is how long it then refuses calls,
    in seconds. All breakers with the same *service* share one state. Connection errors,
    timeouts, errors with a status of 500 or above, and the exceptions in *counts* are failures.
    *store* keeps the state outside this process. *clock* is for tests.
    """

    option: ClassVar[str] = "breaker"

    def __init__(
        self,
        service: str,
        *,
        failures: int = 3,
        reset: float = 30.0,
        counts: type[Exception] | tuple[type[Exception], ...] = (),
        store: BreakerStore | None = None,
        clock: Clock = REAL_CLOCK,
    ) -> None:
        check_first(service, "@Breaker('weather-api')")
        check_name("service", service, "weather-api")
        check_count("failures", failures)
        check_seconds("reset", reset)
        check_classes("counts", counts)
        check_clock(clock)
        if store is not None:
            check_store(store, "enter", "leave", "seconds_left")
        self.service = service
        self.reset = reset
        self.counts = counts
        self.clock = clock
        # An empty store may be falsy.
        self.store: BreakerStore = (
            _shared_state(service, failures, reset, clock) if store is None else store
        )

    def __repr__(self) -> str:
        return f"Breaker({self.service!r}, {self.state})"

    def policy(self) -> Policy:
        return Policy(breaker=self, may_repeat=True)

    @property
    def state(self) -> State:
        """Closed, open, or half-open if the next call is the probe."""
        return self.store.state

    def enter(self) -> int:
        """Let a call through; raises Unavailable while the breaker is open."""
        ticket = self.store.enter()
        if ticket is None:
            raise unavailable(self.store.seconds_left())
        return ticket

    def holds(self, ticket: int | None) -> bool:
        """Return whether a ticket's period is still current; always true with a custom store."""
        store = self.store
        return ticket is None or not isinstance(store, ServiceState) or store.holds(ticket)

    def leave(self, ticket: int, failed: bool | None) -> bool:
        """Count a call's outcome; return whether this opened the breaker."""
        before = self.store.state
        opened = self.store.leave(ticket, failed)
        if opened:
            text = "breaker %r is open: the service failed; calls to it are refused for %g seconds"
            fields = {"service": self.service, "breaker": "opened"}
            logger().warning(text, self.service, self.reset, extra=fields)
        elif failed is False and before != "closed" and before != self.store.state:
            fields = {"service": self.service, "breaker": "closed"}
            text = "breaker %r is closed: the service is responding again"
            logger().info(text, self.service, extra=fields)
        return opened


def _shared_state(service: str, failures: int, reset: float, clock: Clock) -> ServiceState:
    found = _SERVICES.get(service)
    if found is None:
        found = _SERVICES[service] = ServiceState(failures, reset, clock.now)
    elif (found.failures, found.reset) != (failures, reset):
        raise ValueError(
            f"there is already a Breaker({service!r}) with failures={found.failures} and "
            f"reset={found.reset:g}; use that one, or pass the same numbers"
        )
    return found
