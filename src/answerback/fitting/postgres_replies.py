"""Stores full replies in PostgreSQL, encrypted, for all hosts that run an app."""

from __future__ import annotations

from hashlib import sha256
from typing import TYPE_CHECKING, Any

from ..core.limits import ReplyLimits
from ..core.log import logger
from ..state.database import NOW
from ..state.sealing import CannotOpen, place_of
from .reply_store import Owner, StoredReply, surplus, surplus_of_all

if TYPE_CHECKING:
    import psycopg

    from ..state.shared import SharedState

_BATCH = 500
_HOLDER = 16
"""The length of the prefix shared by all accounts of a user or an address."""
# Evict the oldest replies from the users and addresses that hold the most.
_IN_ORDER_OF_REMOVAL = (
    "SELECT number, size FROM (SELECT number, size,"
    f" sum(size) OVER (PARTITION BY substr(account, 1, {_HOLDER}) ORDER BY number DESC) AS held"
    " FROM answerback.wholes WHERE app = %s) AS each ORDER BY held DESC, number"
)


class PostgresReplies:
    """Stores one app's replies, using the database's clock."""

    blocks = True

    def __init__(self, shared: SharedState, app: str) -> None:
        self._database = shared.database
        self._sealer = shared.sealer
        self._fingerprints = shared.fingerprints
        self._app = app

    def add(self, id: str, body: bytes, owner: Owner, limits: ReplyLimits) -> None:
        digest, user, size = _digest(id), self._owner(owner.user), len(body)
        holder = self._fingerprints.of(place_of("holder", owner.holder))[:_HOLDER]
        account = holder + self._fingerprints.of(place_of("account", owner.account))
        # Replies do not need to survive a crash of the database server.
        with self._database.transaction(durable=False) as cursor:
            cursor.execute(
                f"UPDATE answerback.wholes SET expires = {NOW} + %s"
                f" WHERE app = %s AND digest = %s AND expires > {NOW}",
                (limits.retention, self._app, digest),
            )
            if cursor.rowcount:
                return
            _remove_expired(cursor)
            sealed = self._sealer.seal(body, self._place(user, digest))
            # Make room within the owner's limits, then within the overall limits.
            cursor.execute(
                "SELECT number, size FROM answerback.wholes WHERE app = %s AND account = %s"
                " ORDER BY number",
                (self._app, account),
            )
            _remove(cursor, surplus(cursor.fetchall(), size, limits.per_owner, limits.owner_bytes))
            cursor.execute(
                "SELECT count(*), coalesce(sum(size), 0)::bigint"
                " FROM answerback.wholes WHERE app = %s",
                (self._app,),
            )
            [(count, held)] = cursor.fetchall()
            if count >= limits.count or held + size > limits.total_bytes:
                cursor.execute(_IN_ORDER_OF_REMOVAL, (self._app,))
                _remove(cursor, surplus_of_all(cursor.fetchall(), size, limits))
            cursor.execute(
                "INSERT INTO answerback.wholes"
                " (digest, app, account, owner, session, tool, expires, size, body)"
                f" VALUES (%s, %s, %s, %s, %s, %s, {NOW} + %s, %s, %s)"
                " ON CONFLICT (app, digest) DO UPDATE SET expires = excluded.expires",
                (
                    *(digest, self._app, account, user, owner.session, owner.tool),
                    *(limits.retention, size, sealed),
                ),
            )

    def get(self, id: str, user: str, *parts: slice) -> StoredReply | None:
        digest = _digest(id)
        rows = self._database.rows(
            "SELECT owner, tool, body FROM answerback.wholes"
            f" WHERE app = %s AND digest = %s AND owner = ANY(%s) AND expires > {NOW}",
            *(self._app, digest, ["", self._owner(user)]),
        )
        if not rows:
            return None
        [(owner, tool, sealed)] = rows
        try:
            body = self._sealer.open(bytes(sealed), self._place(owner, digest))
        except CannotOpen as exc:
            logger().error("cannot read a full reply from %r: %s", tool, exc)
            return None
        return StoredReply(tool, b"".join(body[part] for part in parts) if parts else body)

    def forget_session(self, session: str) -> None:
        self._database.rows(
            "DELETE FROM answerback.wholes WHERE app = %s AND session = %s AND session <> ''",
            *(self._app, session),
        )

    def remove_expired(self) -> None:
        with self._database.transaction(durable=False) as cursor:
            _remove_expired(cursor)

    def close(self) -> None:
        """Do nothing, because the server closes the state."""

    def _owner(self, user: str) -> str:
        """Return the user's fingerprint, or an empty string if there is no user."""
        return self._fingerprints.of(place_of("owner", user)).hex() if user else ""

    def _place(self, owner: str, digest: bytes) -> bytes:
        return place_of(self._app, owner, digest.hex(), "body")


def _digest(id: str) -> bytes:
    return sha256(id.encode("utf-8", "replace")).digest()


def _remove_expired(cursor: psycopg.Cursor[tuple[Any, ...]]) -> None:
    cursor.execute(
        "DELETE FROM answerback.wholes WHERE number IN (SELECT number FROM answerback.wholes"
        f" WHERE expires <= {NOW} LIMIT {_BATCH} FOR UPDATE SKIP LOCKED)"
    )


def _remove(cursor: psycopg.Cursor[tuple[Any, ...]], numbers: list[int]) -> None:
    if numbers:
        # Another host may be removing them.
        cursor.execute(
            "DELETE FROM answerback.wholes WHERE number IN (SELECT number FROM answerback.wholes"
            " WHERE number = ANY(%s) FOR UPDATE SKIP LOCKED)",
            (numbers,),
        )
