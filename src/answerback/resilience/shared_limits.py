"""Limits shared by processes on several hosts.

The database keeps a bucket of tokens for each limit and key, and each limited call takes a token
with one statement. One thread per process talks to the database, so that no event loop waits. While
the database is unavailable, each process enforces its share of the limit.
"""

from __future__ import annotations

from collections import deque
from collections.abc import Hashable, Iterator, Mapping
from concurrent.futures import Future
from contextlib import suppress
from time import monotonic

import msgspec

from ..core.background_work import BackgroundWork
from ..errors import Unavailable
from ..state.database import NOW
from ..state.sealing import place_of
from ..state.shared import BEAT, SharedState
from .limit import MAX_KEYS, Buckets, Limit, PendingCount
from .policy import Policy

_CLEANING = 60.0
"""Seconds between removals of full buckets."""
_BATCH = 1_000
_MAX_ROWS = 1_000_000
"""Above this number, the buckets that will be full soonest are removed too."""


class SharedBuckets:
    """The store for one limit. Thread-safe; no method waits for the database."""

    def __init__(self, limits: SharedLimits, name: str, local: Buckets) -> None:
        self._limits = limits
        self._name = name
        self._local = local
        """This process's buckets for the whole limit."""
        self._refused_until: dict[Hashable, float] = {}
        """When the database will have a token; until then, calls are refused without asking."""
        self._share: tuple[int, Buckets] = (1, local)
        """The number of processes, and the buckets to use while the database is unavailable."""

    def take(self, key: Hashable) -> float | PendingCount:
        """Count a call; returns a PendingCount if the database must answer first."""
        if self._limits.is_away:
            return self.count_locally(key)
        left = self._refused_until.get(key, 0.0) - self._local.now()
        return left if left > 0 else self._limits.ask(self._request(key, 1))

    def give_back(self, key: Hashable) -> None:
        if self._limits.is_away:
            self._buckets().give_back(key)
        else:
            self._refused_until.pop(key, None)
            self._limits.ask(self._request(key, -1))

    def count_locally(self, key: Hashable) -> float:
        """Count a call against this process's share of the limit."""
        return self._buckets().take(key)

    def refuse(self, key: Hashable, seconds: float) -> None:
        """Remember that the database will have no token for *seconds*."""
        if len(self._refused_until) >= MAX_KEYS:
            self._refused_until.clear()
        self._refused_until[key] = self._local.now() + seconds

    def _request(self, key: Hashable, count: int) -> BucketRequest:
        # Raises if the key has no `repr`: that is the call's failure, not the database's.
        bucket = place_of(self._name, repr(key))
        seconds = self._local.seconds
        return BucketRequest(self, key, bucket, count, seconds / self._local.count, seconds)

    def _buckets(self) -> Buckets:
        """Return this process's buckets, for its share of the limit."""
        known, buckets = self._share
        processes = self._limits.processes
        if known != processes:
            count = self._local.count / processes
            # A bucket holds at least one token, which may take longer to be replaced.
            seconds = self._local.seconds / min(count, 1.0)
            buckets = Buckets(max(count, 1.0), seconds, self._local.now)
            self._share = processes, buckets
        return buckets


class BucketRequest(msgspec.Struct, frozen=True, eq=False):
    """A token to take out of a bucket, or to give back."""

    store: SharedBuckets
    key: Hashable
    bucket: bytes
    """The bucket's name, the same in every process. Only a fingerprint of it is stored."""
    count: int
    """1, or -1 to give the token back."""
    each: float
    """How many seconds it takes to replace one token."""
    seconds: float
    """How many seconds it takes to refill an empty bucket."""


class SharedLimits:
    """Asks the database for tokens for all of an app's limits, in one thread per process."""

    def __init__(self, shared: SharedState, app: str) -> None:
        self.processes = 1
        """How many processes are currently serving the app."""
        self.is_away = False
        """True if the database is not responding; each process then enforces its share."""
        self._app = app
        self._database = shared.database
        self._fingerprints = shared.fingerprints
        self._members = shared.members(app)
        # First in, first out: a token is given back before later calls are counted.
        self._asked: deque[tuple[BucketRequest, Future[float]]] = deque()
        self._shared: list[tuple[Limit, Buckets, SharedBuckets]] = []
        self._cleans_at = 0.0
        self._work = BackgroundWork("answerback-limits", self._answer_all, BEAT)

    def share(self, policies: Mapping[str, object]) -> None:
        """Start counting all limits in the database that are not counted there yet.

        A policy's key is its tool's name, the same on all hosts. An author's own store is kept.
        """
        for name, policy in policies.items():
            limits = policy.limits if isinstance(policy, Policy) else ()
            for number, limit in enumerate(limits):
                local = limit.store
                if type(local) is Buckets:
                    place = f"{self._app}\0{name} {number}\0{limit.rate}"
                    limit.store = shared = SharedBuckets(self, place, local)
                    self._shared.append((limit, local, shared))

    def start(self) -> None:
        """Resume counting in the database after `close`. The first call starts the thread."""
        if self._work.is_closed:
            self._work.open()
            self.is_away = False
            for limit, _, shared in self._shared:
                limit.store = shared

    def close(self) -> None:
        """From now on, count in this process only."""
        for limit, local, _ in self._shared:
            limit.store = local
        self.is_away = True
        self._work.close()

    def ask(self, request: BucketRequest) -> PendingCount:
        """Queue a request; without the database, this process's share of the limit decides."""
        answer: Future[float] = Future()
        self._asked.append((request, answer))
        self._work.wake()
        if self._work.is_closed:
            self._answer_locally()
        return PendingCount(answer, lambda: request.store.count_locally(request.key))

    def _answer_all(self) -> None:
        """Do all pending work; called by the thread."""
        is_away = True
        try:
            self._beat()
            for request, answer in self._take_requests():
                if answer.cancelled():
                    continue
                try:
                    wait = self._take_token(request)
                except Exception:
                    self._asked.appendleft((request, answer))
                    raise
                if answer.set_running_or_notify_cancel():
                    answer.set_result(wait)
                self._beat()
            is_away = self._work.is_closed
        except Unavailable:
            pass  # Already logged.
        finally:
            self.is_away = is_away
            if is_away:
                self._answer_locally()

    def _beat(self) -> None:
        """Count the processes and remove full buckets, when due."""
        self.processes = max(1, len(self._members.beat(at_once=self.is_away)))
        now = monotonic()
        if now >= self._cleans_at:
            if self.remove_full():
                self._work.wake()
            else:
                self._cleans_at = now + _CLEANING

    def _answer_locally(self) -> None:
        """Release the calls that are waiting for the database."""
        for request, answer in self._take_requests():
            if request.count > 0 and answer.set_running_or_notify_cancel():
                answer.set_result(request.store.count_locally(request.key))

    def _take_requests(self) -> Iterator[tuple[BucketRequest, Future[float]]]:
        with suppress(IndexError):  # Empty, or another thread has taken the last request.
            while True:
                yield self._asked.popleft()

    def _take_token(self, request: BucketRequest) -> float:
        """Take a token; return 0, or the seconds until the next one. Raises Unavailable."""
        [(taken, wait)] = self._database.rows(
            "SELECT taken, wait FROM answerback.take_tokens"
            "(%s::bytea[], %s::bigint[], %s::double precision[], %s::double precision[])",
            [self._fingerprints.of(request.bucket)],
            [request.count],
            [request.each],
            [request.seconds],
        )
        if taken:
            return 0.0
        request.store.refuse(request.key, wait)
        return float(wait)

    def remove_full(self) -> bool:
        """Remove a batch of full buckets; return whether there may be more. Raises Unavailable."""
        with self._database.transaction(durable=False) as cursor:
            cursor.execute(
                "DELETE FROM answerback.limits WHERE key IN (SELECT key FROM answerback.limits"
                f" WHERE full_at < {NOW} LIMIT {_BATCH} FOR UPDATE SKIP LOCKED)"
            )
            removed = cursor.rowcount
            if removed == 0:
                # Use the planner's estimate, because counting would read the whole table.
                cursor.execute(
                    "DELETE FROM answerback.limits WHERE key IN (SELECT key FROM answerback.limits"
                    " WHERE (SELECT reltuples FROM pg_class"
                    f" WHERE oid = 'answerback.limits'::regclass) > {_MAX_ROWS}"
                    f" ORDER BY full_at LIMIT {_BATCH} FOR UPDATE SKIP LOCKED)"
                )
                removed = cursor.rowcount
        return removed >= _BATCH
