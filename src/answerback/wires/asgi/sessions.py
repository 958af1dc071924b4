"""Who is at the door of the legacy era: sessions that their ids hold, and what they changed."""

from __future__ import annotations

from collections.abc import Set as AbstractSet
from functools import lru_cache
from typing import TYPE_CHECKING

import msgspec

from ...mcp.mcp_peer import Exchange
from ...mcp.messages import INVALID_REQUEST, Request, RpcError
from ...mcp.session import DEFAULT_LEVEL, Client, Session
from ...mcp.session_id import Ticket
from ...registry import Change
from ...versions import ASSUMED_LEGACY, LEGACY, Version
from . import mirrored_headers as routing
from .http_error import HttpError
from .request import Headers
from .session_store import Sessions
from .worker_bus import Ended, Levelled, Subscribed

if TYPE_CHECKING:
    from ...mcp.params import Meta
    from ...mcp.signing import Sealer
    from ...peer import Level
    from .sse import Answer

SESSION = b"mcp-session-id"
_LONGEST_ID = 100


class Visitor(msgspec.Struct, frozen=True):
    """Who sent a request: one with a session, or anybody at some version."""

    version: Version
    client: Client = Client()
    ticket: Ticket | None = None
    nonce: bytes = b""


class Visitors:
    def __init__(self, sealer: Sealer, worker: int) -> None:
        self._sealer = sealer
        self._worker = worker
        self._sessions = Sessions()
        # Bounded, so that a session which is never used again costs nothing for long.
        self._known = lru_cache(1024)(self._open)

    def welcome(self, session: Session) -> bytes:
        """The id of a new session."""
        ticket = Ticket.issue(session.version, session.client, home=self._worker)
        return ticket.seal(self._sealer).encode()

    def at(self, headers: Headers) -> Visitor:
        """Without a session id it is whoever it is, at the version of its header."""
        id = headers.get(SESSION)
        if id is None:
            said = headers.get(routing.VERSION, b"").decode("latin-1").strip()
            return Visitor(LEGACY.get(said, ASSUMED_LEGACY))
        visitor = self._known(id) if len(id) < _LONGEST_ID else None
        if visitor is not None and visitor.ticket is not None and visitor.ticket.is_valid:
            state = self._sessions.get(visitor.nonce)
            if state is None or not state.ended:
                return visitor
        raise HttpError(404, RpcError(INVALID_REQUEST, "Session not found; initialize anew"))

    def _open(self, id: bytes) -> Visitor | None:
        ticket = Ticket.open(id.decode("latin-1"), self._sealer)
        if ticket is None:
            return None
        return Visitor(ticket.version, ticket.client, ticket, ticket.nonce)

    def level(self, visitor: Visitor) -> Level:
        state = self._sessions.get(visitor.nonce)
        return DEFAULT_LEVEL if state is None or state.level is None else state.level

    def exchange(
        self,
        request: Request,
        meta: Meta | None,
        visitor: Visitor,
        answer: Answer,
        caller: str,
    ) -> Exchange:
        """What a visitor's request is answered in."""
        level = self.level(visitor)
        exchange = Exchange(request.id, visitor.version, visitor.client, answer, level=level)
        if meta is not None:
            exchange.token = meta.token
        exchange.caller = caller
        return exchange

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
