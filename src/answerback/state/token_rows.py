"""TokenRows: the buckets of tokens of the limits that several hosts share."""

from __future__ import annotations

from collections.abc import Sequence

import msgspec

from .database import NOW
from .shared import SharedState

_BATCH = 1_000
_MAX_ROWS = 1_000_000
"""With more buckets, those that are full soonest are removed too."""


class Wanted(msgspec.Struct, frozen=True):
    """How many tokens to take out of a bucket; a negative number gives them back."""

    bucket: bytes
    """The bucket's name, of which only a fingerprint is stored."""
    count: int
    each: float
    """The seconds in which one token comes back."""
    seconds: float
    """The seconds in which an empty bucket is full again."""


class Granted(msgspec.Struct, frozen=True):
    count: int
    wait: float
    """The seconds until the next token."""


class TokenRows:
    def __init__(self, shared: SharedState) -> None:
        self._database = shared.database
        self._fingerprints = shared.fingerprints

    def take(self, wanted: Sequence[Wanted]) -> list[Granted]:
        """Take tokens out of several buckets, as many as there are; raises Unavailable."""
        keys = [self._fingerprints.of(each.bucket) for each in wanted]
        # All processes lock the rows in the same order, so that they do not wait in a circle.
        order = sorted(range(len(keys)), key=keys.__getitem__)
        rows = self._database.rows(
            "SELECT taken, wait FROM answerback.take_tokens"
            "(%s::bytea[], %s::bigint[], %s::double precision[], %s::double precision[])",
            [keys[index] for index in order],
            [wanted[index].count for index in order],
            [wanted[index].each for index in order],
            [wanted[index].seconds for index in order],
        )
        granted = {index: Granted(*row) for index, row in zip(order, rows, strict=True)}
        return [granted[index] for index in range(len(keys))]

    def remove_full(self) -> bool:
        """Remove a batch of full buckets; return whether there may be more. Raises Unavailable."""
        with self._database.transaction(durable=False) as cursor:
            cursor.execute(
                "DELETE FROM answerback.limits WHERE key IN (SELECT key FROM answerback.limits"
                f" WHERE full_at < {NOW} LIMIT {_BATCH} FOR UPDATE SKIP LOCKED)"
            )
            removed = cursor.rowcount
            if removed == 0:
                # The planner's estimate: counting would read the whole table.
                cursor.execute(
                    "DELETE FROM answerback.limits WHERE key IN (SELECT key FROM answerback.limits"
                    " WHERE (SELECT reltuples FROM pg_class"
                    f" WHERE oid = 'answerback.limits'::regclass) > {_MAX_ROWS}"
                    f" ORDER BY full_at LIMIT {_BATCH} FOR UPDATE SKIP LOCKED)"
                )
                removed = cursor.rowcount
        return removed >= _BATCH
