"""Sessions of the stateful era over HTTP: a signed id holds a session, a store its changes."""

from __future__ import annotations

import time
from collections import OrderedDict
from collections.abc import Set as AbstractSet
from functools import lru_cache
from hashlib import sha256

import msgspec

from ...core.peer import Level
from ...core.signing import Signer
from ...core.versions import ASSUMED_STATEFUL, STATEFUL, Version
from ...protocol.jsonrpc import INVALID_REQUEST, RpcError
from ...protocol.session import DEFAULT_LEVEL, ClientCapabilities, Session
from ...protocol.session_id import MAX_LENGTH, SessionId
from ...registry.declarations import Change
from .http_error import HttpError
from .request import HttpRequest
from .worker_sockets import LogLevelSet, ResourceSubscribed, SessionChanged, SessionEnded

SESSION_HEADER = b"mcp-session-id"
VERSION_HEADER = b"mcp-protocol-version"
LIFETIME = 24 * 3600
"""Seconds for which a session lives."""
_CLOCKS_DIFFER = 60
"""The seconds by which the clocks of two hosts may differ."""
MAX_STATES = 10_000
"""Beyond this many changed sessions, the one idle longest is dropped."""
MAX_ENDED = 100_000
"""Beyond this many ended sessions, all sessions that are as old as the first of them end."""


class HttpClient(msgspec.Struct, frozen=True):
    """The client of a request: with a session, or without one at some version."""

    version: Version
    capabilities: ClientCapabilities = ClientCapabilities()
    session: SessionId | None = None
    nonce: bytes = b""
    """The random part of the session id, which names the session; empty without a session."""
    expires: float = 0.0
    """When the session ends, in seconds since the epoch."""


_WITHOUT_SESSION = {name.encode(): HttpClient(version) for name, version in STATEFUL.items()}
"""The clients without a session, by the version in their header."""
_OF_NO_VERSION = HttpClient(ASSUMED_STATEFUL)


class SessionState(msgspec.Struct):
    """A session's changes: its log level and its subscriptions."""

    level: Level | None = None
    subscriptions: set[str] = set()
    seen: float = 0.0

    @property
    def is_default(self) -> bool:
        """Whether the state is that of a new session."""
        return not (self.level or self.subscriptions)


class Sessions:
    """Identifies clients by their session id, and keeps changed sessions."""

    def __init__(
        self, signer: Signer, worker: int, *, is_bound: bool = False, are_kept: bool = True
    ) -> None:
        self._signer = signer
        self._worker = worker
        self._is_bound = is_bound
        """Whether a session belongs to the user who opened it."""
        self.are_kept = are_kept
        """Whether there are sessions; without them every session id is unknown."""
        self._states: OrderedDict[bytes, SessionState] = OrderedDict()
        self._ended: OrderedDict[bytes, float] = OrderedDict()
        """When each of the ended sessions would have expired."""
        self.ended_until = 0.0
        """Sessions that expire until then have ended, although they are not listed."""
        # The cache is bounded, so an abandoned session costs nothing for long.
        self._verified = lru_cache(1024)(self._verify)

    def new_id(self, session: Session, http: HttpRequest) -> bytes:
        """Return the signed id of a new session, which belongs to the request's user."""
        subject = _user_key(http) if self._is_bound else b""
        id = SessionId.issue(session.version, session.client, self._worker, subject, session.info)
        return id.sign(self._signer).encode()

    def identify(self, http: HttpRequest) -> HttpClient:
        """Return the client of a request; raises HttpError for an unknown session.

        Another user's session is unknown. Without a session id only the version header counts.
        """
        headers = http.headers
        token = headers.get(SESSION_HEADER)
        if token is None:
            return _WITHOUT_SESSION.get(headers.get(VERSION_HEADER, b"").strip(), _OF_NO_VERSION)
        client = self._verified(token) if self.are_kept and len(token) < MAX_LENGTH else None
        if self._is_bound and client is not None:
            client = _of_user(client, _user_key(http))
        # The signature was verified once and is cached; the session may have expired since.
        if client is not None and time.time() <= client.expires and not self._has_ended(client):
            return client
        raise HttpError(404, RpcError(INVALID_REQUEST, "Session not found; initialize anew"))

    def _has_ended(self, client: HttpClient) -> bool:
        return client.nonce in self._ended or client.expires <= self.ended_until

    def _verify(self, token: bytes) -> HttpClient | None:
        id = SessionId.verify(token.decode("latin-1"), self._signer)
        if id is None or id.issued > time.time() + _CLOCKS_DIFFER:
            return None
        return HttpClient(id.version, id.client, id, id.nonce, id.issued + LIFETIME)

    def level(self, client: HttpClient) -> Level | None:
        """Return the log level of the client's session; without sessions no logs are sent."""
        if not self.are_kept:
            return None
        state = self._states.get(client.nonce)
        return DEFAULT_LEVEL if state is None or state.level is None else state.level

    def subscriptions(self, client: HttpClient) -> AbstractSet[str]:
        state = self._states.get(client.nonce)
        return frozenset() if state is None else state.subscriptions

    def wants(self, client: HttpClient, change: Change) -> bool:
        """Return whether the client is notified of a change."""
        return change.kind != "resource" or change.uri in self.subscriptions(client)

    def apply(
        self, message: SessionEnded | SessionChanged | LogLevelSet | ResourceSubscribed
    ) -> None:
        """Apply a session's change, which this or another worker received."""
        match message:
            case SessionEnded():
                self._states.pop(message.nonce, None)
                self._end(message)
            case SessionChanged():
                state = self._keep(message.nonce)
                state.level, state.subscriptions = message.level, set(message.subscriptions)
                self._forget_default(message.nonce)
            case LogLevelSet():
                self._keep(message.nonce).level = message.level
            case ResourceSubscribed():
                uris = self._keep(message.nonce).subscriptions
                uris.add(message.uri) if message.wanted else uris.discard(message.uri)
                self._forget_default(message.nonce)

    def changes(self) -> list[SessionEnded | SessionChanged]:
        """Return the messages that make another worker's store equal to this one."""
        return [
            *(
                SessionChanged(nonce, state.level, frozenset(state.subscriptions))
                for nonce, state in self._states.items()
            ),
            *(SessionEnded(nonce, expires) for nonce, expires in self._ended.items()),
        ]

    def _end(self, message: SessionEnded) -> None:
        self._ended[message.nonce] = message.expires
        now = time.time()
        while self._ended:
            nonce, expires = next(iter(self._ended.items()))
            if len(self._ended) <= MAX_ENDED and expires > now:
                return
            del self._ended[nonce]
            self.ended_until = max(self.ended_until, expires)

    def _keep(self, nonce: bytes) -> SessionState:
        state = self._states.get(nonce)
        if state is None:
            self._drop_old()
            state = self._states[nonce] = SessionState()
        state.seen = time.monotonic()
        self._states.move_to_end(nonce)
        return state

    def _forget_default(self, nonce: bytes) -> None:
        if self._states[nonce].is_default:
            del self._states[nonce]

    def _drop_old(self) -> None:
        limit = time.monotonic() - LIFETIME
        while self._states:
            oldest = next(iter(self._states.values()))
            if len(self._states) < MAX_STATES and oldest.seen > limit:
                return
            self._states.popitem(last=False)


def _user_key(http: HttpRequest) -> bytes:
    user = http.scope.get("user")
    return b"" if user is None else bytes(user.key)


def _of_user(client: HttpClient, key: bytes) -> HttpClient | None:
    """Return the client as the user with that key sees it; None if the session is another user's.

    A session opened without a login continues after one, under another name: what is sent to the
    user must not reach those who know the anonymous session.
    """
    id = client.session
    if id is None or id.subject == key or not (key or any(id.subject)):
        return client
    if any(id.subject):
        return None
    nonce = sha256(id.nonce + key).digest()[: len(id.nonce)]
    id = msgspec.structs.replace(id, nonce=nonce, subject=key)
    return HttpClient(client.version, client.capabilities, id, nonce, client.expires)
