"""SingleSession: the stateful session of a connection with one client, and its requests' peers.

The session needs no id.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import TypeVar

from ..core.versions import LATEST_STATEFUL
from ..registry.declarations import Change, Registry
from .hidden_entries import described_if_hiding
from .jsonrpc import (
    METHOD_NOT_FOUND,
    Params,
    Request,
    RpcError,
    is_stateless,
    meta_of,
    read_params,
)
from .mcp_peer import McpPeer
from .params import ReadResource, SetLevel
from .server_info import ServerInfo
from .session import ClientCapabilities, Session, require_meta, stateless_version
from .subscriptions import change_frame, subscribed_uri

P = TypeVar("P", bound=McpPeer)

_EMPTY_RESULT = b"{}"


class SingleSession:
    """Answers requests about the session itself; *send* takes frames about changes."""

    def __init__(
        self, registry: Registry, server_info: ServerInfo, send: Callable[[bytes], None]
    ) -> None:
        self.state: Session | None = None
        self._registry = registry
        self._server_info = server_info
        self._send = send
        self._unsubscribe: Callable[[], None] = lambda: None
        self.methods: dict[str, Callable[[Params], bytes]] = {
            "initialize": self._initialize,
            "ping": lambda _: _EMPTY_RESULT,
            "logging/setLevel": self._set_level,
            "resources/subscribe": lambda raw: self._subscribe(raw, wanted=True),
            "resources/unsubscribe": lambda raw: self._subscribe(raw, wanted=False),
        }

    def close(self) -> None:
        """Send no more changes."""
        self._unsubscribe()

    def peer_for(self, request: Request, make_peer: Callable[[], P]) -> P | None:
        """Return a request's peer, in its era; None if the request is about the session itself.

        Raises RpcError for a request that its era does not have.
        """
        meta = meta_of(request)
        is_about_session = request.method in self.methods
        if is_stateless(meta):
            meta, client = require_meta(meta)
            version = stateless_version(meta)
            if is_about_session:
                raise RpcError(METHOD_NOT_FOUND, f"Method not found: {request.method}")
            peer = make_peer()
            peer.version, peer.client = version, client
            peer.level = meta.level
        elif is_about_session:
            return None
        else:
            peer = make_peer()
            self._join(peer)
        peer.id = request.id
        if meta is not None:
            peer.progress_token = meta.token
        return peer

    def _join(self, peer: McpPeer) -> None:
        """Give the peer of a stateful request what the session knows about the client."""
        session = self.state
        if session is None:
            # Requests before `initialize` are served too, so that they can be tried in a shell.
            peer.version, peer.client = LATEST_STATEFUL, ClientCapabilities()
            return
        peer.version, peer.client = session.version, session.client
        peer.level = session.level
        peer.session = session

    def answer(self, request: Request) -> bytes:
        """Return the result of a request about the session itself; raises RpcError."""
        try:
            return self.methods[request.method](request.params)
        except RpcError as error:
            error.id = request.id
            raise

    def _initialize(self, raw: Params) -> bytes:
        self.state, result = self._server_info.initialize(raw)
        self._unsubscribe()
        self._unsubscribe = self._registry.changes.subscribe(self._on_change)
        return result

    def _on_change(self, change: Change) -> None:
        session = self.state
        if session is None:
            return
        if change.kind != "resource" or change.uri in session.subscriptions:
            self._send(change_frame(change))

    def _set_level(self, raw: Params) -> bytes:
        level = read_params(raw, SetLevel).level
        if self.state is not None:
            self.state.level = level
        return _EMPTY_RESULT

    def _subscribe(self, raw: Params, *, wanted: bool) -> bytes:
        uris = set() if self.state is None else self.state.subscriptions
        if wanted:
            peer = McpPeer()
            self._join(peer)
            described = described_if_hiding(self._registry, peer)
            uris.add(subscribed_uri(self._registry, raw, uris, described))
        else:
            uris.discard(read_params(raw, ReadResource).uri)
        return _EMPTY_RESULT
