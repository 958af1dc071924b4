"""Wholes: the whole replies of which a client got only a part, kept for it for a while.

A client reads one as the resource `answerback://replies/{id}`, or a range of it.
"""

from __future__ import annotations

import secrets
from base64 import urlsafe_b64encode
from concurrent.futures import ThreadPoolExecutor
from contextlib import suppress
from functools import partial
from hashlib import blake2b
from typing import TYPE_CHECKING, TypeVar
from urllib.parse import urlencode
from weakref import finalize

import msgspec

from ..core.event_loop import running_loop
from ..core.limits import LARGE_BODY, ReplyLimits
from ..core.log import logger
from ..errors import Unavailable
from ..state.background_work import BackgroundWork
from .ranges import Range, ReplyPart, range_of
from .sqlite_wholes import SQLiteWholes
from .whole_store import KeptReply, Owner, WholeStore

if TYPE_CHECKING:
    from collections.abc import Callable

    from ..registry.declarations import Registry
    from ..state.shared import SharedState

T = TypeVar("T")
PREFIX = "answerback://replies/"
"""How the URI of each whole begins; its id follows."""
_ID_BYTES = 20
_MAX_ID = 100
_THREADS = 2
_EXPIRY_SECONDS = 60.0
"""The seconds between two removals of expired wholes."""


class Wholes:
    """Keeps whole replies in a store, within its limits.

    *key* returns the key of the ids, which nobody can guess. A reply that is sent again, as a
    task's is each time a client asks, has the same id and is kept once.
    """

    def __init__(
        self, store: WholeStore, limits: ReplyLimits, key: Callable[[], bytes] | None = None
    ) -> None:
        self._store = store
        self._limits = limits
        made = secrets.token_bytes(32)
        self._key = key or (lambda: made)
        self._threads: ThreadPoolExecutor | None = None
        self._removing = removing = BackgroundWork(
            "answerback-wholes-expiry", partial(_remove_expired, store), _EXPIRY_SECONDS
        )
        # The thread has no reference to this object, and ends with it.
        finalize(self, _close, removing, store).atexit = False

    async def keep(self, body: bytes, owner: Owner) -> str | None:
        """Keep the JSON of the returned data; return its URI.

        None if it cannot be kept: it is larger than the limit, or the store fails. The reply is
        then sent without a link.
        """
        if len(body) > self._limits.reply_bytes:
            return None
        try:
            id = await self._off_loop(len(body), self._add, body, owner)
        except Unavailable as exc:
            logger().warning("a whole reply of %r cannot be kept: %s", owner.tool, exc)
            return None
        self._removing.wake()
        return PREFIX + id

    def _add(self, body: bytes, owner: Owner) -> str:
        digest = blake2b(body, key=self._key(), digest_size=_ID_BYTES)
        digest.update(msgspec.msgpack.encode(owner))
        id = urlsafe_b64encode(digest.digest()).rstrip(b"=").decode()
        self._store.add(id, body, owner, self._limits)
        return id

    async def find(self, id: str, user: str, *parts: slice) -> KeptReply | None:
        """Return a whole, or parts of it; None if it is unknown, expired or another user's."""
        # PostgreSQL and SQLite refuse some texts.
        if not (len(id) < _MAX_ID and id.isascii() and id.isprintable()):
            return None
        return await self._off_loop(LARGE_BODY, self._store.get, id, user, *parts)

    async def read(self, whole: KeptReply, part: ReplyPart) -> Range:
        """Return a part of a whole; raises InvalidInput for a range that it does not have."""
        return await self._off_loop(len(whole.body), range_of, whole.body, part)

    async def forget_session(self, session: str) -> None:
        """Remove the wholes of a session that has ended."""
        try:
            await self._off_loop(LARGE_BODY, self._store.forget_session, session)
        except Unavailable as exc:
            logger().warning("the whole replies of a session cannot be removed: %s", exc)

    def close(self) -> None:
        _close(self._removing, self._store)
        if self._threads is not None:
            self._threads.shutdown(wait=False)
            self._threads = None

    async def _off_loop(self, size: int, function: Callable[..., T], *args: object) -> T:
        """Call a function, in a thread if it would block an event loop."""
        loop = running_loop()
        if loop is None or not (self._store.blocks or size >= LARGE_BODY):
            return function(*args)
        if self._threads is None:
            self._threads = ThreadPoolExecutor(_THREADS, "answerback-wholes")
        return await loop.run_in_executor(self._threads, function, *args)


def range_uri(uri: str, part: ReplyPart) -> str:
    """Return the URI of a part of the reply at *uri*; `part_of` reads its query."""
    query = urlencode(msgspec.to_builtins(part))
    return f"{uri}?{query}" if query else uri


def _close(removing: BackgroundWork, store: WholeStore) -> None:
    removing.close()
    store.close()


def _remove_expired(store: WholeStore) -> None:
    with suppress(Unavailable):
        store.remove_expired()


def wholes_of(registry: Registry, state: SharedState | None, path: str) -> Wholes:
    """Return the kept replies of an app: in the shared database, in a file, or in this process."""
    limits = registry.limits.replies
    if state is None:
        return Wholes(SQLiteWholes(path), limits)
    # It needs the driver of the database.
    from .postgres_wholes import PostgresWholes

    key = partial(state.fingerprints.of, b"ids of whole replies")
    return Wholes(PostgresWholes(state, registry.name), limits, key)
