"""The session of a client at the other end of a pipe; there is one, and it has no id."""

from __future__ import annotations

from collections.abc import Callable
from typing import TYPE_CHECKING

from ..registry import Change
from ..versions import LATEST_LEGACY
from . import params
from .mcp_peer import Exchange, Link
from .messages import Id, Params, Request, RpcError
from .session import Client, Session
from .subscriptions import change_frame, subscribed_uri

if TYPE_CHECKING:
    from ..app import App
    from .server_info import About

_DONE = b"{}"


class PipeSession:
    """Answers the requests that are about the session itself."""

    def __init__(self, app: App, about: About, link: Link) -> None:
        self._app = app
        self._about = about
        self._link = link
        self._session: Session | None = None
        self._stop_hearing: Callable[[], None] = lambda: None
        self._methods: dict[str, Callable[[Params], bytes]] = {
            "initialize": self._initialize,
            "ping": lambda _: _DONE,
            "logging/setLevel": self._set_level,
            "resources/subscribe": lambda raw: self._subscribe(raw, wanted=True),
            "resources/unsubscribe": lambda raw: self._subscribe(raw, wanted=False),
        }

    def __contains__(self, method: str) -> bool:
        return method in self._methods

    def answer(self, request: Request) -> bytes:
        try:
            return self._methods[request.method](request.params)
        except RpcError as error:
            error.id = request.id
            raise

    @property
    def takes_batches(self) -> bool:
        return self._session is not None and self._session.version.batches

    def exchange(self, id: Id) -> Exchange:
        """Before `initialize` a request is served all the same, as by a newcomer at a shell."""
        session = self._session
        if session is None:
            return Exchange(id, LATEST_LEGACY, Client(), self._link)
        return Exchange(id, session.version, session.client, self._link, level=session.level)

    def _initialize(self, raw: Params) -> bytes:
        self._session, result = self._about.initialize(raw)
        self._stop_hearing()
        self._stop_hearing = self._app.changes.listen(self._hear)
        return result

    def _hear(self, change: Change) -> None:
        session = self._session
        if session is None:
            return
        if change.what != "resource" or change.uri in session.subscriptions:
            self._link.send(change_frame(change))

    def _set_level(self, raw: Params) -> bytes:
        level = params.read(raw, params.SetLevel).level
        if self._session is not None:
            self._session.level = level
        return _DONE

    def _subscribe(self, raw: Params, *, wanted: bool) -> bytes:
        uris = set() if self._session is None else self._session.subscriptions
        if wanted:
            uris.add(subscribed_uri(self._app, raw, uris))
        else:
            uris.discard(params.read(raw, params.ReadResource).uri)
        return _DONE
