"""Where logins are kept: in memory, in a private file, or in the system's keyring.

A store maps keys to strings. The keys name the issuer, the server and the client, so that tokens
and registrations are never used elsewhere.
"""

from __future__ import annotations

import asyncio
import os
import time
from collections.abc import Iterator
from contextlib import contextmanager, suppress
from pathlib import Path
from typing import Any, Protocol, TypeVar
from urllib.parse import quote

import msgspec

from ...errors import needs_extra
from ..faults import LoginError

if os.name == "posix":
    import fcntl
else:
    import msvcrt

_LOCK_SECONDS = 10.0
"""Seconds to wait for another process that is writing the file."""


class TokenStore(Protocol):
    """Keeps users' logins. The methods may block, because they are called in a thread."""

    def load(self, key: str) -> str | None:
        """Return the saved string; None if there is none."""

    def save(self, key: str, text: str | None) -> None:
        """Save a string; None removes the entry."""


class MemoryTokens:
    """Keeps logins for as long as this object exists."""

    def __init__(self) -> None:
        self._texts: dict[str, str] = {}

    def load(self, key: str) -> str | None:
        return self._texts.get(key)

    def save(self, key: str, text: str | None) -> None:
        if text is None:
            self._texts.pop(key, None)
        else:
            self._texts[key] = text

    def __repr__(self) -> str:
        return f"<MemoryTokens with {len(self._texts)} entries>"


class FileTokens:
    """Keeps logins in a JSON file that only its owner may read (mode 0600).

    *path* is the file, which is created if needed. Several processes may use one file: a writer
    holds a lock and replaces the file atomically.
    """

    def __init__(self, path: str | os.PathLike[str]) -> None:
        self.path = Path(path).expanduser()

    def load(self, key: str) -> str | None:
        return self._read().get(key)

    def save(self, key: str, text: str | None) -> None:
        self.path.parent.mkdir(mode=0o700, parents=True, exist_ok=True)
        with _locked(self.path.with_name(f"{self.path.name}.lock")):
            texts = self._read()
            if text is None:
                texts.pop(key, None)
            else:
                texts[key] = text
            # The lock is held, so such a file was left by a killed process.
            name = self.path.with_name(f"{self.path.name}.new")
            name.unlink(missing_ok=True)
            try:
                with open(name, "xb", opener=_open_private) as file:
                    file.write(msgspec.json.format(msgspec.json.encode(texts), indent=2))
                    file.flush()
                    os.fsync(file.fileno())
                os.replace(name, self.path)
            except BaseException:
                with suppress(OSError):
                    os.unlink(name)
                raise

    def _read(self) -> dict[str, str]:
        try:
            with open(self.path, "rb") as file:
                # On Windows, the permissions of the user's folder protect the file.
                mode = os.fstat(file.fileno()).st_mode & 0o777
                if os.name == "posix" and mode & 0o077:
                    raise LoginError(
                        f"others can read {self.path} (mode {mode:o}); run: chmod 600 {self.path}"
                    )
                return msgspec.json.decode(file.read(), type=dict[str, str])
        except FileNotFoundError:
            return {}
        except msgspec.MsgspecError:
            text = f"{self.path} is not a login file; remove it, and log in again"
            raise LoginError(text) from None
        except OSError as exc:
            raise LoginError(f"cannot read {self.path}: {exc.strerror}") from None


class KeyringTokens:
    """Keeps logins in the system's keyring; needs `pip install 'answerback[keyring]'`.

    *service* is the service name used in the keyring.
    """

    def __init__(self, service: str = "answerback") -> None:
        with needs_extra("keyring"):
            import keyring

        self._keyring: Any = keyring
        self._service = service

    def load(self, key: str) -> str | None:
        found: str | None = self._keyring.get_password(self._service, key)
        return found

    def save(self, key: str, text: str | None) -> None:
        if text is not None:
            self._keyring.set_password(self._service, key, text)
        elif self.load(key) is not None:
            self._keyring.delete_password(self._service, key)


@contextmanager
def _locked(path: Path) -> Iterator[None]:
    """Hold a file's lock; it is released when the process ends, however that happens."""
    with open(path, "ab", opener=_open_private) as file:
        until = time.monotonic() + _LOCK_SECONDS
        while not _takes_lock(file.fileno()):
            if time.monotonic() > until:
                raise LoginError(f"another process has locked {path}")
            time.sleep(0.02)
        yield


def _open_private(name: str, flags: int) -> int:
    return os.open(name, flags, 0o600)


def _takes_lock(descriptor: int) -> bool:
    try:
        if os.name == "posix":
            fcntl.flock(descriptor, fcntl.LOCK_EX | fcntl.LOCK_NB)
        else:
            windows: Any = vars(msvcrt)
            windows["locking"](descriptor, windows["LK_NBLCK"], 1)
    except OSError:
        return False
    return True


T = TypeVar("T")


class RegisteredClient(msgspec.Struct, frozen=True, omit_defaults=True):
    """A client registered with an issuer: its id, and its secret or private key if it has one."""

    id: str
    """The client's id."""
    secret: str | None = None
    """The client's secret, if it has one."""
    issuer: str | None = None
    """Where the client is registered; its secret is sent nowhere else. None for any issuer."""
    private_key: str | None = None
    """A key in PEM format, for issuers that want signed assertions (`private_key_jwt`)."""
    auth_method: str = ""
    """How the client authenticates; by default, as the issuer's metadata allows."""
    redirect_uri: str = ""
    """The registered redirect address; by default, any address on this machine."""
    expires: float = 0.0
    """When the secret expires, in seconds since 1970; 0 if it does not."""
    scopes: tuple[str, ...] = ()
    """The registered scopes; an issuer may refuse others."""
    dynamic: bool = False
    """Whether this program registered the client itself."""

    def __repr__(self) -> str:
        return f"<RegisteredClient {self.id!r} for {self.issuer or 'any issuer'}>"


class Grant(msgspec.Struct, frozen=True, omit_defaults=True, kw_only=True):
    """One user's tokens for one server, from one issuer."""

    issuer: str
    resource: str
    client: RegisteredClient
    access_token: str
    refresh_token: str = ""
    expires: float = 0.0
    """When the access token stops being used, in seconds since 1970; 0 if unknown."""
    scopes: tuple[str, ...] = ()
    """The requested and granted scopes."""

    @property
    def header(self) -> str:
        return f"Bearer {self.access_token}"

    @property
    def is_expired(self) -> bool:
        return self.expires != 0 and time.time() > self.expires

    def __repr__(self) -> str:
        return f"<Grant from {self.issuer} for {self.resource}>"


class LoginRecords:
    """The login records in a store, each under a key that says whose it is."""

    def __init__(self, store: TokenStore) -> None:
        self._store = store

    async def grant(self, server: str, client: str) -> Grant | None:
        """Load the last login to a server with a client; *client* is empty for any client."""
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
        """Load the issuer that a client without a named issuer was first used with."""
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
