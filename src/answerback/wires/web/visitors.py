"""Who is at the door of the legacy era: sessions that their ids hold, and what they changed."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from ...changes import Change
from ...mcp import headers as routing
from ...mcp.messages import INVALID_REQUEST, RpcError
from ...mcp.session import DEFAULT_LEVEL, Client, Session
from ...mcp.sessions import Sessions
from ...mcp.tickets import Ticket
from ...versions import ASSUMED_LEGACY, LEGACY, Version
from .body import Headers
from .bus import Ended, Levelled, Subscribed
from .refusals import HttpError

if TYPE_CHECKING:
    from ...peer import Level
    from ...seal import Sealer

SESSION = b"mcp-session-id"
_LONGEST_ID = 100


class Visitor(msgspec.Struct, frozen=True):
    """Who sent a request: one with a session, or anybody at some version."""

    ticket: Ticket | None
    version: Version
    caller: str

    @property
    def client(self) -> Client:
        return Client() if self.ticket is None else self.ticket.client

    @property
    def nonce(self) -> bytes:
        return b"" if self.ticket is None else self.ticket.nonce


class Visitors:
    def __init__(self, sealer: Sealer, worker: int) -> None:
        self._sealer = sealer
        self._worker = worker
        self._sessions = Sessions()
        # Bounded, so that a session which is never used again costs nothing for long.
        self._ticket = lru_cache(1024)(lambda id: Ticket.open(id.decode("latin-1"), sealer))

    def welcome(self, session: Session) -> bytes:
        """The id of a new session."""
        ticket = Ticket.issue(session.version, session.client, home=self._worker)
        return ticket.seal(self._sealer).encode()

    def at(self, headers: Headers, caller: str = "") -> Visitor:
        """Without a session id it is whoever it is, at the version of its header."""
        id = headers.get(SESSION)
        if id is None:
            said = headers.get(routing.VERSION, b"").decode("latin-1").strip()
            return Visitor(None, LEGACY.get(said, ASSUMED_LEGACY), caller)
        ticket = self._ticket(id) if len(id) < _LONGEST_ID else None
        if ticket is not None and not ticket.is_valid:
            ticket = None
        state = None if ticket is None else self._sessions.get(ticket.nonce)
        if ticket is None or (state is not None and state.ended):
            raise HttpError(404, RpcError(INVALID_REQUEST, "Session not found; initialize anew"))
        return Visitor(ticket, ticket.version, caller)

    def level(self, visitor: Visitor) -> Level:
        state = None if visitor.ticket is None else self._sessions.get(visitor.nonce)
        return DEFAULT_LEVEL if state is None or state.level is None else state.level

    def wants(self, visitor: Visitor, change: Change) -> bool:
        return change.what != "resource" or change.uri in self.subscriptions(visitor)

    def subscriptions(self, visitor: Visitor) -> AbstractSet[str]:
        state = self._sessions.get(visitor.nonce)
        return frozenset() if state is None else state.subscriptions

    def hear(self, note: Ended | Levelled | Subscribed) -> None:
        """Something changed in a session, here or in another worker."""
        state = self._sessions.keep(note.nonce)
        match note:
            case Ended():
                state.ended = True
            case Levelled():
                state.level = note.level
            case Subscribed():
                uris = state.subscriptions
                uris.add(note.uri) if note.wanted else uris.discard(note.uri)
                self._sessions.release(note.nonce)
