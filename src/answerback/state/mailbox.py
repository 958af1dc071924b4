"""Mailbox: messages between the processes that serve an app."""

from __future__ import annotations

from ..core.log import logger
from .database import NOW
from .sealing import CannotOpen, place_of
from .shared import SharedState

_MESSAGE_KEPT = 60
"""Seconds after which a message that nobody took is removed."""


class Mailbox:
    """Messages are sealed. Those from one sender are taken in the order in which they were sent."""

    def __init__(self, shared: SharedState, app: str) -> None:
        self._database = shared.database
        self._sealer = shared.sealer
        self._members = shared.members(app)
        self._app = app
        self._place = place_of(app, "bus")
        self._taken: set[tuple[int, float]] = set()
        """The number and the time of each message that was taken and not yet removed. After a crash
        the database may give a number again."""

    def put(self, message: bytes, receiver: int | None) -> list[int]:
        """Send to one process, or to all others for None; return those that get it."""
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
        """Return the messages to this process; one thread may call it at a time.

        The next call removes them: had this one done so, a lost reply would lose the messages.
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
        """Remove the messages to processes that have died."""
        self._database.rows(f"DELETE FROM answerback.bus WHERE made < {NOW} - {_MESSAGE_KEPT}")
