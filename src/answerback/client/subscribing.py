"""The client's subscriptions: changes to lists and resources, in both eras."""

from __future__ import annotations

import asyncio

from ..core.json_value import JsonObject
from ..protocol.jsonrpc import RpcError
from .client_connection import ClientConnection, ClientRequest, Deadline
from .faults import NoAnswer

_AGAIN_SECONDS = 1.0
"""Seconds until a broken subscription is reopened."""


class ClientSubscriptions:
    """The user's subscriptions, which are renewed when a session is reopened."""

    def __init__(self, *, wants_lists: bool) -> None:
        self._uris: set[str] = set()
        self._wants_lists = wants_lists
        self._listening: asyncio.Task[None] | None = None

    def change(self, uri: str, *, wanted: bool) -> None:
        (self._uris.add if wanted else self._uris.discard)(uri)

    async def renew(self, connection: ClientConnection) -> None:
        """Subscribe again, in a new session."""
        if connection.facts.version.stateless:
            self.listen(connection)
            return
        for uri in self._uris:
            asked = ClientRequest("resources/subscribe", {"uri": uri}, Deadline(None))
            await connection.request(asked)

    def listen(self, connection: ClientConnection) -> None:
        """Open a stateless server's stream of the wanted changes, in place of the last one."""
        if self._listening is not None:
            self._listening.cancel()
            self._listening = None
        wanted = self._filter(connection)
        if wanted:
            self._listening = connection.spawn(_receive(connection, wanted))

    def _filter(self, connection: ClientConnection) -> JsonObject:
        found: JsonObject = {}
        if self._wants_lists:
            found = {
                f"{kind}ListChanged": True
                for kind in ("tools", "prompts", "resources")
                if connection.facts.offers(kind, "listChanged")
            }
        if self._uris:
            found["resourceSubscriptions"] = sorted(self._uris)
        return found


async def _receive(connection: ClientConnection, wanted: JsonObject) -> None:
    """Keep the stream open; each change arrives at the connection as a notification."""
    while connection.lost is None:
        params = {"notifications": wanted}
        try:
            await connection.request(ClientRequest("subscriptions/listen", params, Deadline(None)))
        except RpcError:
            return  # The server does not serve subscriptions.
        except NoAnswer:
            pass
        await asyncio.sleep(_AGAIN_SECONDS)
