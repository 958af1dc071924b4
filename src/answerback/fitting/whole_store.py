"""Where whole replies are kept: the store's methods, and which replies make room for others."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple, Protocol

import msgspec

from ..core.limits import ReplyLimits

_LEFT = 0.9
"""The part of a full store that is left."""


class Owner(msgspec.Struct, frozen=True, kw_only=True):
    """Whose call it was."""

    user: str = ""
    """A digest of issuer and subject; empty without auth. Only this user reads the whole."""
    session: str = ""
    """The MCP session, with which the whole is removed; empty without one."""
    address: str = ""
    """The client's address."""
    tool: str = ""
    """The called tool, by its name in the app that is served."""

    @property
    def account(self) -> str:
        """Whose limits count the whole: the user's, else the session's, else the address's."""
        if self.user:
            return f"user {self.user}"
        return f"session {self.session}" if self.session else f"address {self.address}"

    @property
    def holder(self) -> str:
        """Who makes room for others: the user, or the address, whatever sessions it has opened."""
        return f"user {self.user}" if self.user else f"address {self.address}"


class KeptReply(NamedTuple):
    tool: str
    body: bytes


class WholeStore(Protocol):
    """Where wholes are kept; any thread may use it. Its methods raise Unavailable."""

    @property
    def blocks(self) -> bool:
        """Whether methods may take long, so that an event loop calls them in a thread."""

    def add(self, id: str, body: bytes, owner: Owner, limits: ReplyLimits) -> None:
        """Keep a whole, or keep it longer if it has been kept already.

        Earlier ones are removed if there are too many.
        """

    def get(self, id: str, user: str, *parts: slice) -> KeptReply | None:
        """Return a whole, or these parts of its body together.

        None if it is unknown, expired or another user's.
        """

    def forget_session(self, session: str) -> None:
        """Remove the wholes of a session that has ended."""

    def remove_expired(self) -> None:
        """Remove expired wholes; if there are many, some stay until the next time."""

    def close(self) -> None: ...


def surplus(rows: Sequence[tuple[int, int]], size: int, count: int, total: int) -> list[int]:
    """Return the numbers of the wholes to remove, so that another one of *size* bytes fits.

    *rows* are numbers and sizes, in the order of removal; *count* and *total* are the limits.
    """
    left, held = len(rows), sum(size for _, size in rows)
    removed = []
    for number, freed in rows:
        if left < count and held + size <= total:
            break
        removed.append(number)
        left, held = left - 1, held - freed
    return removed


def surplus_of_all(rows: Sequence[tuple[int, int]], size: int, limits: ReplyLimits) -> list[int]:
    """Return which wholes of all owners to remove; more than needed, as this is slow."""
    count, total = int(limits.count * _LEFT), int(limits.total_bytes * _LEFT)
    return surplus(rows, size, max(count, 1), max(total, size))
