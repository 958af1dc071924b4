"""Limits that the processes of several hosts share.

The database keeps a bucket of tokens for each limit and key. Each process takes a block of tokens
and spends them without asking. A limit that is too small for blocks asks for each call. One thread
asks for all calls that wait, together.
"""

from __future__ import annotations

from _thread import allocate_lock
from collections.abc import Hashable, Mapping
from concurrent.futures import Future
from time import monotonic
from typing import TypeAlias

import msgspec

from ..errors import Unavailable
from ..state.background_work import BackgroundWork
from ..state.members import BEAT
from ..state.sealing import place_of
from ..state.shared import SharedState
from ..state.token_rows import TokenRows, Wanted
from .asking import MustAsk
from .limit import MAX_KEYS, Buckets, Limit
from .policy import Policy

_BLOCKS = 4
"""The processes together hold at most a quarter of a limit as unspent tokens."""
_SPENT_SOON = 1.0
"""The seconds in which a call spends the token that was asked for it."""
_CLEANING = 60.0
"""The seconds between two removals of full buckets."""

Asked: TypeAlias = "tuple[SharedBuckets, Hashable]"


class Lease(msgspec.Struct):
    """The tokens of one key that this process holds."""

    bucket: bytes
    """The name of the key's bucket, the same in every process."""
    left: int = 0
    good_until: float = 0.0
    refused_until: float = 0.0
    """Until then the database has no token."""
    is_asking: bool = False
    """Whether more tokens are on their way."""


class SharedBuckets:
    """The store of one limit: counts calls by the tokens that the database grants this process.

    Any thread may use it, and no method waits for the database.
    """

    def __init__(self, limits: SharedLimits, name: str, own: Buckets) -> None:
        self._limits = limits
        self._name = name
        self._own = own
        self._now = own.now
        self._half = MAX_KEYS // 2
        self._young: dict[Hashable, Lease] = {}
        self._old: dict[Hashable, Lease] = {}
        self._lock = allocate_lock()
        self._share: tuple[int, Buckets] = (1, own)
        """The number of processes, and the buckets that count while the database is away."""

    def take(self, key: Hashable) -> float:
        """Count a call; raises MustAsk if the database must be asked first."""
        with self._lock:
            now = self._now()
            lease = self._lease(key)
            if lease.left > 0 and now < lease.good_until:
                lease.left -= 1
                self._fill_up(key, lease, now)
                return 0.0
            if now < lease.refused_until:
                return lease.refused_until - now
        if self._limits.is_away:
            return self._own_share().take(key)
        raise MustAsk(self._limits.ask(self, key))

    def give_back(self, key: Hashable) -> None:
        if self._limits.is_away:
            self._own_share().give_back(key)
        elif block := self._block():
            with self._lock:
                lease = self._lease(key)
                lease.left = min(lease.left + 1, block)
        else:
            self._limits.give_back(self, key)

    def wanted(self, key: Hashable, calls: int) -> Wanted:
        """Return how many tokens to ask for if so many *calls* wait."""
        block = self._block()
        with self._lock:
            lease = self._lease(key)
            return self._tokens(lease, max(0, block - lease.left) if block else calls)

    def returned(self, key: Hashable, calls: int) -> Wanted:
        """Return what gives the tokens of so many *calls* back."""
        with self._lock:
            return self._tokens(self._lease(key), -calls)

    def _tokens(self, lease: Lease, count: int) -> Wanted:
        seconds = self._own.seconds
        return Wanted(lease.bucket, count, seconds / self._own.count, seconds)

    def grant(self, key: Hashable, count: int, wait: float | None) -> None:
        """Add tokens. *wait* is the seconds until there are more; None if there may be some now."""
        block = self._block()
        with self._lock:
            now = self._now()
            lease = self._lease(key)
            lease.left = count + (lease.left if now < lease.good_until else 0)
            lease.good_until = now + (self._own.seconds if block else _SPENT_SOON)
            if wait is not None:
                lease.refused_until = now + wait

    def end_question(self, key: Hashable) -> None:
        """Allow the next question: the database has answered, or it does not."""
        with self._lock:
            self._lease(key).is_asking = False

    def _block(self) -> int:
        return int(self._own.count) // (_BLOCKS * self._limits.processes)

    def _fill_up(self, key: Hashable, lease: Lease, now: float) -> None:
        """Ask for more tokens before the last one is spent; the lock is held."""
        block = self._block()
        if not block:
            return
        # There may be more processes than when the tokens were granted.
        lease.left = min(lease.left, block)
        is_low = lease.left <= block // 2 and now >= lease.refused_until
        if is_low and not lease.is_asking and not self._limits.is_away:
            lease.is_asking = True
            self._limits.ask(self, key)

    def _lease(self, key: Hashable) -> Lease:
        """Return the lease of a key; the lock is held. Memory is bounded as in Buckets."""
        lease = self._young.get(key)
        if lease is None:
            lease = self._old.pop(key, None) or Lease(place_of(self._name, repr(key)))
            self._young[key] = lease
            if len(self._young) >= self._half:
                self._old, self._young = self._young, {}
        return lease

    def _own_share(self) -> Buckets:
        """Return the buckets of this process, for its part of the limit."""
        known, buckets = self._share
        processes = self._limits.processes
        if known != processes:
            count = self._own.count / processes
            # A bucket holds at least one token, which may take longer to come back.
            seconds = self._own.seconds / min(count, 1.0)
            buckets = Buckets(max(count, 1.0), seconds, self._now)
            self._share = processes, buckets
        return buckets


class SharedLimits:
    """Asks the database for the tokens of all limits of an app, in one thread of the process."""

    def __init__(self, shared: SharedState, app: str) -> None:
        self.processes = 1
        """How many processes serve the app now."""
        self.is_away = False
        """Whether the database does not answer; each process then counts its part of a limit."""
        self._app = app
        self._rows = TokenRows(shared)
        self._members = shared.members(app)
        self._lock = allocate_lock()
        self._asked: dict[Asked, list[Future[None]]] = {}
        self._given_back: dict[Asked, int] = {}
        self._shared: list[tuple[Limit, Buckets, SharedBuckets]] = []
        self._cleans_at = 0.0
        self._work = BackgroundWork("answerback-limits", self._answer_all, BEAT)

    def share(self, policies: Mapping[str, object]) -> None:
        """Count the limits in the database that are not counted there yet.

        A policy has its tool's name, the same on all hosts. A store of the author is kept.
        """
        for name, policy in policies.items():
            limits = policy.limits if isinstance(policy, Policy) else ()
            for number, limit in enumerate(limits):
                own = limit.store
                if type(own) is Buckets:
                    place = f"{self._app}\0{name} {number}\0{limit.rate}"
                    limit.store = shared = SharedBuckets(self, place, own)
                    self._shared.append((limit, own, shared))

    def start(self) -> None:
        """Count in the database again after `close`. The first counted call starts the thread."""
        if self._work.is_closed:
            self._work.open()
            self.is_away = False
            for limit, _, shared in self._shared:
                limit.store = shared

    def close(self) -> None:
        """Count in this process only, from now on."""
        for limit, own, _ in self._shared:
            limit.store = own
        self.is_away = True
        self._work.close()

    def ask(self, store: SharedBuckets, key: Hashable) -> Future[None]:
        """Ask for tokens soon; the future is done when the store has them, or cannot get any."""
        answer: Future[None] = Future()
        with self._lock:
            self._asked.setdefault((store, key), []).append(answer)
        self._work.wake()
        if self._work.is_closed:
            self._end(self._take_asked())
        return answer

    def give_back(self, store: SharedBuckets, key: Hashable) -> None:
        """Give a token back to the database soon."""
        with self._lock:
            self._given_back[store, key] = self._given_back.get((store, key), 0) + 1
        self._work.wake()

    def _answer_all(self) -> None:
        """Do what is due; the thread calls this."""
        asked: dict[Asked, list[Future[None]]] = {}
        is_away = True
        try:
            self._beat()
            self._return_tokens()
            asked = self._take_asked()
            self._answer(asked)
            is_away = self._work.is_closed
        except Unavailable:
            pass  # Already logged.
        finally:
            self.is_away = is_away
            self._end(asked)
            if is_away:
                self._end(self._take_asked())

    def _beat(self) -> None:
        """Count the processes and clean the table, if it is time for that."""
        self.processes = max(1, len(self._members.beat(at_once=self.is_away)))
        now = monotonic()
        if now >= self._cleans_at:
            if self._rows.remove_full():
                self._work.wake()
            else:
                self._cleans_at = now + _CLEANING

    def _return_tokens(self) -> None:
        with self._lock:
            given, self._given_back = self._given_back, {}
        if given:
            self._rows.take([store.returned(key, count) for (store, key), count in given.items()])

    def _take_asked(self) -> dict[Asked, list[Future[None]]]:
        with self._lock:
            asked, self._asked = self._asked, {}
        return asked

    def _answer(self, asked: dict[Asked, list[Future[None]]]) -> None:
        if not asked:
            return
        wanted = [store.wanted(key, len(calls)) for (store, key), calls in asked.items()]
        for (store, key), want, granted in zip(asked, wanted, self._rows.take(wanted), strict=True):
            is_all = granted.count >= want.count
            store.grant(key, granted.count, None if is_all else granted.wait)

    def _end(self, asked: dict[Asked, list[Future[None]]]) -> None:
        """Let the calls go on that waited for the answers."""
        for (store, key), answers in asked.items():
            store.end_question(key)
            for answer in answers:
                if answer.set_running_or_notify_cancel():
                    answer.set_result(None)
