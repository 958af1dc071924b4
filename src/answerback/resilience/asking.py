"""MustAsk: says that a call can only be counted after the shared database has answered."""

from __future__ import annotations

from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from concurrent.futures import Future


class MustAsk(Exception):
    """Raised by a shared limit that has no tokens left in this process.

    Whoever counts the call waits for *answer*, and then counts it again. Nothing was counted.
    """

    def __init__(self, answer: Future[None]) -> None:
        super().__init__("the database must be asked for this limit")
        self.answer = answer
