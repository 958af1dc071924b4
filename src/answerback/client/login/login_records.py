"""A login's data: the client, its tokens, and the texts in which a store keeps them."""

from __future__ import annotations

import asyncio
import time
from typing import TypeVar
from urllib.parse import quote

import msgspec

from ..faults import LoginError
from .token_store import TokenStore

T = TypeVar("T")


class RegisteredClient(msgspec.Struct, frozen=True, omit_defaults=True):
    """A client that an issuer knows: its id, and its secret or private key if it has one."""

    id: str
    """The client's id."""
    secret: str | None = None
    """The client's secret, if it has one."""
    issuer: str | None = None
    """Where the client is registered; its secret is sent to nobody else. None for any issuer."""
    private_key: str | None = None
    """A PEM text, for issuers that want signed assertions (`private_key_jwt`)."""
    auth_method: str = ""
    """How the client authenticates; by default as the issuer's metadata allow."""
    redirect_uri: str = ""
    """The registered redirect address; by default any on this machine."""
    expires: float = 0.0
    """When the secret expires, in seconds since 1970; 0 if it does not."""
    scopes: tuple[str, ...] = ()
    """The registered scopes; an issuer may refuse others."""
    dynamic: bool = False
    """Whether this program registered the client itself."""

    def __repr__(self) -> str:
        return f"<RegisteredClient {self.id!r} of {self.issuer or 'any issuer'}>"


class Grant(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One user's tokens for one server, from one issuer."""

    issuer: str
    resource: str
    client: RegisteredClient
    access_token: str
    refresh_token: str = ""
    expires: float = 0.0
    """When the access token is no longer used, in seconds since 1970; 0 if unknown."""
    scopes: tuple[str, ...] = ()
    """The requested and the granted scopes."""

    @property
    def header(self) -> str:
        return f"Bearer {self.access_token}"

    @property
    def is_expired(self) -> bool:
        return self.expires != 0 and time.time() > self.expires

    def __repr__(self) -> str:
        return f"<Grant of {self.issuer} for {self.resource}>"


class LoginRecords:
    """The login records in a store, each under a key that says whose it is."""

    def __init__(self, store: TokenStore) -> None:
        self._store = store

    async def grant(self, server: str, client: str) -> Grant | None:
        """Load the last login to a server with a client; *client* is empty for any."""
        last = await self._load(_key("last", server, client), tuple[str, str, str])
        return None if last is None else await self._load(_key("token", *last), Grant)

    async def keep_grant(self, server: str, client: str, grant: Grant) -> None:
        last = (grant.issuer, grant.resource, grant.client.id)
        await self._save(_key("token", *last), grant)
        await self._save(_key("last", server, client), last)

    async def registration(self, issuer: str) -> RegisteredClient | None:
        """Load the client that this program registered with an issuer."""
        found = await self._load(_key("client", issuer), RegisteredClient)
        return None if found is None or 0 < found.expires < time.time() else found

    async def keep_registration(self, issuer: str, client: RegisteredClient | None) -> None:
        await self._save(_key("client", issuer), client)

    async def bound_issuer(self, server: str, client: str) -> str | None:
        """Load the issuer at which a client without a named issuer was first used."""
        return await self._load(_key("issuer", server, client), str)

    async def bind_issuer(self, server: str, client: str, issuer: str) -> None:
        await self._save(_key("issuer", server, client), issuer)

    async def _load(self, key: str, type: type[T]) -> T | None:
        text = await asyncio.to_thread(self._store.load, key)
        if text is None:
            return None
        try:
            return msgspec.json.decode(text, type=type)
        except msgspec.MsgspecError:
            raise LoginError(f"the store has an entry that cannot be read: {key}") from None

    async def _save(self, key: str, value: object) -> None:
        text = None if value is None else msgspec.json.encode(value).decode()
        await asyncio.to_thread(self._store.save, key, text)


def _key(*parts: str) -> str:
    return " ".join(quote(part, safe=":/?&=") or "-" for part in parts)
