"""Subscriptions of the client: changes of lists and of resources, in both eras."""

from __future__ import annotations

import asyncio
from typing import TYPE_CHECKING

from ..protocol.jsonrpc import RpcError
from .exchange import Exchange, RequestOptions
from .faults import NoAnswer, raised_error
from .link import ServerLink
from .opening import LinkPlan

if TYPE_CHECKING:
    from ..core.json_value import JsonObject


_AGAIN_SECONDS = 1.0
"""Seconds until a subscription that broke off is opened again."""


class Subscribed:
    """The resources that the user subscribed to; they are renewed when a session is reopened."""

    def __init__(self, link: ServerLink, plan: LinkPlan) -> None:
        self._link = link
        self._uris: set[str] = set()
        self._wants_lists = plan.handlers.on_change is not None
        self._listening: asyncio.Task[None] | None = None

    async def change(self, uri: str, *, wanted: bool) -> None:
        """Subscribe or unsubscribe; raises ToolError."""
        (self._uris.add if wanted else self._uris.discard)(uri)
        try:
            exchange = await self._link.open()
            if self._link.facts.version.stateless:
                self._listen(exchange)
                return
            method = "resources/subscribe" if wanted else "resources/unsubscribe"
            await self._link.request(method, {"uri": uri}, RequestOptions(self._link.plan.timeout))
        except (NoAnswer, RpcError) as error:
            raise raised_error(error) from None

    async def renew(self, exchange: Exchange) -> None:
        """Subscribe again, in a new session."""
        if self._link.facts.version.stateless:
            self._listen(exchange)
            return
        for uri in self._uris:
            await exchange.request("resources/subscribe", {"uri": uri})

    def _listen(self, exchange: Exchange) -> None:
        """Open a stream with the wanted changes, in place of the last one."""
        if self._listening is not None:
            self._listening.cancel()
            self._listening = None
        wanted = self._filter()
        if wanted:
            self._listening = exchange.spawn(self._receive(exchange, wanted))

    def _filter(self) -> JsonObject:
        offers = self._link.facts.offers
        found: JsonObject = {}
        if self._wants_lists:
            found = {
                f"{kind}ListChanged": True
                for kind in ("tools", "prompts", "resources")
                if offers(kind, "listChanged")
            }
        if self._uris:
            found["resourceSubscriptions"] = sorted(self._uris)
        return found

    async def _receive(self, exchange: Exchange, wanted: JsonObject) -> None:
        """Keep the stream open; each change arrives at the exchange as a notification."""
        while exchange.lost is None:
            try:
                await exchange.request("subscriptions/listen", {"notifications": wanted})
            except RpcError:
                return  # The server does not serve subscriptions.
            except NoAnswer:
                pass
            await asyncio.sleep(_AGAIN_SECONDS)
