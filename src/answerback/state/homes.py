"""The processes that serve an app, which have numbers, and the messages between them."""

from __future__ import annotations

from ..core.log import logger
from ..errors import AnswerbackError
from .database import NOW, Database
from .sealing import CannotOpen, place_of
from .shared import SharedState

_KEPT = 86_400
"""Seconds for which a number is not given again: as long as a session lives."""
_MAX = 65_535
"""A session id has two bytes for the number."""
_LOCK = 0x616E7379
"""The number of the advisory lock for taking a number."""
_MESSAGE_KEPT = 60
"""Seconds after which a message that nobody took is removed."""


class NoHomeLeft(AnswerbackError):
    """All numbers were given within a day."""

    code = "NO_HOME_LEFT"


class Homes:
    """Gives this process its number, and knows the other processes of the app."""

    def __init__(self, database: Database, app: str) -> None:
        self._database = database
        self._app = app

    def take(self) -> int:
        """Return a number that no process had within a day; raises Unavailable or NoHomeLeft."""
        with self._database.transaction() as cursor:
            cursor.execute("SELECT pg_advisory_xact_lock(%s)", (_LOCK,))
            cursor.execute(f"DELETE FROM answerback.homes WHERE seen < {NOW} - {_KEPT}")
            cursor.execute(
                "INSERT INTO answerback.homes (number, app, seen)"
                f" SELECT free.number, %s, {NOW} FROM generate_series(1, {_MAX}) AS free(number)"
                " WHERE NOT EXISTS (SELECT 1 FROM answerback.homes AS h"
                " WHERE h.number = free.number) ORDER BY free.number LIMIT 1 RETURNING number",
                (self._app,),
            )
            row = cursor.fetchone()
        if row is None:
            raise NoHomeLeft(f"the database has given {_MAX} processes a number within a day")
        return int(row[0])

    def beat(self, number: int, patience: float) -> frozenset[int]:
        """Say that this process lives; return the numbers of those that did within *patience*."""
        with self._database.transaction(durable=False) as cursor:
            cursor.execute(f"UPDATE answerback.homes SET seen = {NOW} WHERE number = %s", (number,))
            cursor.execute(
                "SELECT number FROM answerback.homes"
                f" WHERE app = %s AND NOT has_left AND seen > {NOW} - %s",
                (self._app, patience),
            )
            return frozenset(row[0] for row in cursor.fetchall())

    def leave(self, number: int) -> None:
        """Say that this process ends."""
        self._database.rows("UPDATE answerback.homes SET has_left = true WHERE number = %s", number)


class Mailbox:
    """Messages are sealed. Those from one sender are taken in the order in which they were sent."""

    def __init__(self, shared: SharedState, app: str) -> None:
        self._database = shared.database
        self._sealer = shared.sealer
        self._app = app
        self._place = place_of(app, "bus")
        self._taken: set[tuple[int, float]] = set()
        """The number and the time of each message that was taken and not yet removed. After a crash
        the database may give a number again."""

    def put(self, message: bytes, sender: int, receiver: int | None, patience: float) -> list[int]:
        """Send to one process, or to all others for None; return those that get it.

        A process gets it if it has shown within *patience* seconds that it lives.
        """
        query = (
            "INSERT INTO answerback.bus (receiver, message)"
            " SELECT number, %s FROM answerback.homes WHERE app = %s AND number <> %s"
            f" AND NOT has_left AND seen > {NOW} - %s"
        )
        values = [self._sealer.seal(message, self._place), self._app, sender, patience]
        if receiver is not None:
            query, values = f"{query} AND number = %s", [*values, receiver]
        rows = self._database.rows(f"{query} RETURNING receiver", *values)
        return [row[0] for row in rows]

    def take(self, receiver: int) -> list[bytes]:
        """Return the messages to this process; one thread may call it at a time.

        The next call removes them: had this one done so, a lost reply would lose the messages.
        """
        before = self._taken
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
        """Remove the messages to processes that have died."""
        self._database.rows(f"DELETE FROM answerback.bus WHERE made < {NOW} - {_MESSAGE_KEPT}")
