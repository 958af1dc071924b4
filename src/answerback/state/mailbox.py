"""Messages, sessions and switches, shared between an app's processes."""

from __future__ import annotations

from collections.abc import Callable

import msgspec

from ..core.log import logger
from .database import NOW, NOW_ONCE, Database
from .sealing import CannotOpen, place_of
from .shared import SharedState

_MESSAGE_KEPT = 60
"""Seconds after which an unread message is removed."""


class Mailbox:
    """Messages are sealed. Each sender's messages are taken in the order they were sent."""

    def __init__(self, shared: SharedState, app: str) -> None:
        self._database = shared.database
        self._sealer = shared.sealer
        self._members = shared.members(app)
        self._app = app
        self._place = place_of(app, "bus")
        self._taken: set[tuple[int, float]] = set()
        """The number and time of each message that has been taken but not removed. After a crash,
        the database may reuse a number."""

    def put(self, message: bytes, receiver: int | None) -> list[int]:
        """Send to one process, or to all others if *receiver* is None; return the receivers."""
        query = (
            "INSERT INTO answerback.bus (receiver, message)"
            " SELECT number, %s FROM answerback.processes WHERE app = %s AND number <> %s"
            f" AND NOT has_left AND seen > {NOW} - %s"
        )
        members = self._members
        sealed = self._sealer.seal(message, self._place)
        values = [sealed, self._app, members.number, members.patience]
        if receiver is not None:
            query, values = f"{query} AND number = %s", [*values, receiver]
        rows = self._database.rows(f"{query} RETURNING receiver", *values)
        return [row[0] for row in rows]

    def take(self) -> list[bytes]:
        """Return the messages for this process; must be called from one thread at a time.

        The next call removes them. If this call removed them, a lost reply would lose the messages.
        """
        receiver, before = self._members.number, self._taken
        rows = self._database.rows(
            "WITH removed AS (DELETE FROM answerback.bus WHERE receiver = %s AND (number, made) IN"
            " (SELECT * FROM unnest(%s::bigint[], %s::double precision[])))"
            f" SELECT number, made, made > {NOW} - {_MESSAGE_KEPT}, message"
            " FROM answerback.bus WHERE receiver = %s",
            *(receiver, [number for number, _ in before], [made for _, made in before], receiver),
        )
        new = sorted(row for row in rows if row[:2] not in before)
        self._taken = {row[:2] for row in new}
        taken = []
        for _, _, is_current, message in new:
            if is_current:
                try:
                    taken.append(self._sealer.open(bytes(message), self._place))
                except CannotOpen as exc:
                    logger().error("a message from another process cannot be read: %s", exc)
        return taken

    def remove_old(self) -> None:
        """Remove the messages for processes that have died."""
        self._database.rows(f"DELETE FROM answerback.bus WHERE made < {NOW} - {_MESSAGE_KEPT}")


_LIFETIME = 86_400
"""The maximum lifetime of a session after a change, in seconds."""
_SPARE = 120
"""How many seconds a row is kept after its session expires, since the hosts' clocks may differ."""
_BATCH = 1_000
_COLUMNS = "nonce, expires, has_ended, state"
_CHANGED = "changed = pg_current_xact_id()::text::bigint"


class SessionRow(msgspec.Struct, frozen=True):
    nonce: bytes
    expires: float
    has_ended: bool
    state: bytes | None


class SessionRows:
    """Reads the sessions that other processes have changed; their states are sealed."""

    def __init__(self, shared: SharedState, app: str) -> None:
        self._database = shared.database
        self._sealer = shared.sealer
        self._app = app
        self._since = 0

    def end(self, nonce: bytes, expires: float) -> None:
        """End a session permanently, even if the database crashes."""
        self._database.rows(
            "INSERT INTO answerback.sessions (app, nonce, expires, has_ended)"
            " VALUES (%s, %s, %s, true) ON CONFLICT (app, nonce) DO UPDATE"
            f" SET has_ended = true, state = NULL, expires = excluded.expires, {_CHANGED}",
            *(self._app, nonce, expires),
        )

    def change(self, nonce: bytes, change: Callable[[bytes | None], bytes]) -> None:
        """Replace a session's state with the result of *change*, unless the session has ended."""
        key = (self._app, nonce)
        with self._database.transaction(durable=False) as cursor:
            cursor.execute(
                "INSERT INTO answerback.sessions (app, nonce, expires)"
                f" VALUES (%s, %s, {NOW} + {_LIFETIME}) ON CONFLICT DO NOTHING",
                key,
            )
            cursor.execute(
                f"SELECT {_COLUMNS} FROM answerback.sessions"
                " WHERE app = %s AND nonce = %s AND NOT has_ended FOR UPDATE",
                key,
            )
            row = cursor.fetchone()
            if row is None:
                return
            after = self._sealer.seal(change(self._read(row).state), self._place(nonce))
            cursor.execute(
                f"UPDATE answerback.sessions SET state = %s, expires = {NOW} + {_LIFETIME},"
                f" {_CHANGED} WHERE app = %s AND nonce = %s",
                (after, *key),
            )

    def changed(self) -> tuple[float, list[SessionRow]]:
        """Return the database's time, and the rows changed since the last call.

        A row may be returned again. The first call returns all rows, the oldest first.
        """
        # All transactions before xmin had ended, so any row that was not visible has at least this
        # number.
        rows = self._database.rows(
            f"SELECT {NOW}, seen.xmin, {_COLUMNS}"
            " FROM (SELECT pg_snapshot_xmin(pg_current_snapshot())::text::bigint AS xmin) AS seen"
            " LEFT JOIN answerback.sessions ON app = %s AND changed >= %s ORDER BY expires",
            *(self._app, self._since),
        )
        now, self._since = rows[0][:2]
        return now, [self._read(row[2:]) for row in rows if row[2] is not None]

    def read_all_again(self) -> None:
        """Make the next call to `changed` return all rows, in case the database is different."""
        self._since = 0

    def remove_expired(self) -> None:
        self._database.rows(
            "DELETE FROM answerback.sessions WHERE (app, nonce) IN (SELECT app, nonce"
            f" FROM answerback.sessions WHERE expires < {NOW_ONCE} - {_SPARE}"
            f" ORDER BY expires LIMIT {_BATCH} FOR UPDATE SKIP LOCKED)"
        )

    def _read(self, row: tuple[bytes, float, bool, bytes | None]) -> SessionRow:
        nonce, expires, has_ended, sealed = row
        state = None
        if sealed is not None:
            try:
                state = self._sealer.open(bytes(sealed), self._place(nonce))
            except CannotOpen as exc:
                logger().error("the log level and subscriptions of a session are lost: %s", exc)
        return SessionRow(bytes(nonce), expires, has_ended, state)

    def _place(self, nonce: bytes) -> bytes:
        return place_of(self._app, bytes(nonce).hex(), "session")


class SwitchRows:
    """Names and tags that have been enabled or disabled in one of the combined apps."""

    def __init__(self, database: Database, app: str) -> None:
        self._database = database
        self._app = app

    def keep(self, part: int, what: str, value: str, *, on: bool) -> None:
        """Store this as the latest switch; it survives a crash."""
        self._database.rows(
            "INSERT INTO answerback.switches (app, part, what, value, is_on)"
            " VALUES (%s, %s, %s, %s, %s) ON CONFLICT (app, part, what, value) DO UPDATE"
            " SET is_on = excluded.is_on, number = nextval('answerback.switch_numbers')",
            *(self._app, part, what, value, on),
        )

    def all(self) -> list[tuple[int, str, str, bool]]:
        """Return all switches, the latest one last."""
        query = "SELECT part, what, value, is_on FROM answerback.switches WHERE app = %s"
        return [tuple(row) for row in self._database.rows(f"{query} ORDER BY number", self._app)]
