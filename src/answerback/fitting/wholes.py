"""Wholes: the whole replies of which a client got only a part, kept for it for a while.

A client reads one as the resource `answerback://replies/{id}`, or a range of it.
"""

from __future__ import annotations

import secrets
from typing import TYPE_CHECKING, Any, NamedTuple, Protocol, TypeVar
from urllib.parse import urlencode

import msgspec

from ..core.event_loop import running_loop
from ..core.limits import LARGE_BODY, ReplyLimits
from ..core.log import logger
from ..errors import Unavailable
from .ranges import Part, Range, range_of

if TYPE_CHECKING:
    from collections.abc import Callable
    from concurrent.futures import ThreadPoolExecutor

T = TypeVar("T")
PREFIX = "answerback://replies/"
"""How the URI of each whole begins; its id follows."""
_ID_BYTES = 20
_THREADS = 2


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


class Whole(NamedTuple):
    """A kept reply."""

    user: str
    tool: str
    body: bytes


class WholeStore(Protocol):
    """Where wholes are kept; any thread may use it. Its methods raise Unavailable."""

    @property
    def blocks(self) -> bool:
        """Whether methods may take long, so that an event loop calls them in a thread."""

    def add(self, id: str, body: bytes, owner: Owner, limits: ReplyLimits) -> None:
        """Keep a whole; earlier ones are removed if there are too many."""

    def get(self, id: str) -> Whole | None: ...

    def forget_session(self, session: str) -> None:
        """Remove the wholes of a session that has ended."""

    def remove_expired(self) -> bool:
        """Remove expired wholes; return whether any others are left."""

    def close(self) -> None: ...


class Wholes:
    """Keeps whole replies in a store, within its limits."""

    def __init__(self, store: WholeStore, limits: ReplyLimits) -> None:
        self._store = store
        self._limits = limits
        self._threads: ThreadPoolExecutor | None = None

    async def keep(self, body: bytes, owner: Owner) -> str | None:
        """Keep the JSON of the returned data; return its URI.

        None if it cannot be kept: it is larger than the limit, or the store fails. The reply is
        then sent without a link.
        """
        if len(body) > self._limits.reply_bytes:
            return None
        id = secrets.token_urlsafe(_ID_BYTES)
        try:
            await self._off_loop(len(body), self._store.add, id, body, owner, self._limits)
        except Unavailable as exc:
            logger().warning("a whole reply of %r cannot be kept: %s", owner.tool, exc)
            return None
        return PREFIX + id

    async def find(self, id: str, user: str) -> Whole | None:
        """Return a whole; None if it is unknown, expired or another user's."""
        whole = await self._off_loop(LARGE_BODY, self._store.get, id)
        if whole is None or (whole.user and whole.user != user):
            return None
        return whole

    async def read(self, whole: Whole, part: Part) -> Range:
        """Return a part of a whole; raises InvalidInput for a range that it does not have."""
        return await self._off_loop(len(whole.body), range_of, whole.body, part)

    async def forget_session(self, session: str) -> None:
        """Remove the wholes of a session that has ended."""
        try:
            await self._off_loop(LARGE_BODY, self._store.forget_session, session)
        except Unavailable as exc:
            logger().warning("the whole replies of a session cannot be removed: %s", exc)

    def close(self) -> None:
        self._store.close()
        if self._threads is not None:
            self._threads.shutdown(wait=False)

    async def _off_loop(self, size: int, function: Callable[..., T], *args: Any) -> T:
        """Call a function, in a thread if it would block an event loop."""
        loop = running_loop()
        if loop is None or not (self._store.blocks or size >= LARGE_BODY):
            return function(*args)
        if self._threads is None:
            from concurrent.futures import ThreadPoolExecutor

            self._threads = ThreadPoolExecutor(_THREADS, "answerback-wholes")
        return await loop.run_in_executor(self._threads, function, *args)


def range_uri(uri: str, part: Part) -> str:
    """Return the URI of a part of the whole at *uri*."""
    given = {
        "path": part.path or None,
        "offset": part.offset or None,
        "limit": part.limit,
        "unit": "lines" if part.unit == "lines" else None,
    }
    query = urlencode({name: value for name, value in given.items() if value is not None})
    return f"{uri}?{query}" if query else uri
