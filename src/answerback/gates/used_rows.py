"""UsedRows: remembers the redeemed links' tokens, for all hosts that share a database."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING

from ..state.database import NOW_ONCE

if TYPE_CHECKING:
    from ..state.shared import SharedState

_SPARE = 86_400
"""Seconds that a row is kept after its token has expired: the hosts' clocks may differ."""
_BATCH = 1_000


class UsedRows:
    """Keeps a row for each used token; only one host can add it."""

    def __init__(self, shared: SharedState) -> None:
        self._database = shared.database

    def add(self, token: bytes, expires: int) -> bool:
        """Return whether the token was not used before; raises Unavailable."""
        with self._database.transaction() as cursor:
            cursor.execute(
                "DELETE FROM answerback.used_tokens WHERE digest IN (SELECT digest"
                f" FROM answerback.used_tokens WHERE expires < {NOW_ONCE} - {_SPARE}"
                f" ORDER BY expires LIMIT {_BATCH} FOR UPDATE SKIP LOCKED)"
            )
            cursor.execute(
                "INSERT INTO answerback.used_tokens (digest, expires) VALUES (%s, %s)"
                " ON CONFLICT DO NOTHING",
                (sha256(token).digest(), float(expires)),
            )
            return cursor.rowcount == 1
