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
        """Return the messages to this process, and remove them."""
        rows = self._database.rows(
            "DELETE FROM answerback.bus WHERE receiver = %s"
            f" RETURNING number, made > {NOW} - {_MESSAGE_KEPT}, message",
            self._members.number,
        )
        taken = []
        for _, is_current, message in sorted(rows):
            if is_current:
                try:
                    taken.append(self._sealer.open(bytes(message), self._place))
                except CannotOpen as exc:
                    logger().error("a message from another process cannot be read: %s", exc)
        return taken

    def remove_old(self) -> None:
        """Remove the messages to processes that have died."""
        self._database.rows(f"DELETE FROM answerback.bus WHERE made < {NOW} - {_MESSAGE_KEPT}")
