"""Sealer encrypts stored calls, so that access to the database does not reveal them.

It uses AES-256-GCM with a key derived from ANSWERBACK_SECRET. A sealed value begins with its key's
id, so that keys can be rotated: the first secret seals, and any secret opens. Fingerprints makes
the digests used to look up rows.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from collections.abc import Callable
from typing import Any

from cryptography.exceptions import InvalidTag
from cryptography.hazmat.primitives.ciphers.aead import AESGCM

from ..core.log import logger
from ..errors import AnswerbackError
from .database import Database, unavailable

_KEY_ID, _NONCE = 4, 12
KEY_PLACE = "fingerprints"
_KEY_BYTES = 32
_TABLE = "answerback.fingerprint_key"

Rows = Callable[..., list[tuple[Any, ...]]]
"""Runs a statement with values, and returns its rows."""


class CannotOpen(AnswerbackError):
    """A value was sealed with another secret or for another record, or it was changed."""

    code = "CANNOT_OPEN"


class Sealer:
    def __init__(self, *secrets: bytes) -> None:
        derived = [hmac.digest(secret, b"answerback state", "sha256") for secret in secrets]
        self._ciphers = {key_id(key): AESGCM(key) for key in derived}
        self.first = key_id(derived[0])
        """The id of the key used for sealing."""
        self.keys = tuple(self._ciphers)
        """The ids of the keys that can open values."""

    def seal(self, value: bytes, owner: bytes) -> bytes:
        """Return the sealed *value*; `open` needs the same *owner*."""
        nonce = os.urandom(_NONCE)
        return self.first + nonce + self._ciphers[self.first].encrypt(nonce, value, owner)

    def open(self, sealed: bytes, owner: bytes) -> bytes:
        """Return the value; raises CannotOpen."""
        cipher = self._ciphers.get(sealed[:_KEY_ID])
        nonce, rest = sealed[_KEY_ID : _KEY_ID + _NONCE], sealed[_KEY_ID + _NONCE :]
        if cipher is None:
            raise CannotOpen("the value was sealed with a secret that this server does not have")
        try:
            return cipher.decrypt(nonce, rest, owner)
        except (InvalidTag, ValueError):
            raise CannotOpen("the value was sealed for another record, or it was changed") from None


def key_id(key: bytes) -> bytes:
    return hashlib.sha256(b"id of " + key).digest()[:_KEY_ID]


def place_of(*parts: str) -> bytes:
    """Return the location of a sealed value: app, owner, id and column."""
    return "\0".join(parts).encode()


class Fingerprints:
    """Makes digests with a key that is read from the database on first use. Thread-safe."""

    def __init__(self, database: Database, sealer: Sealer) -> None:
        self._database = database
        self._sealer = sealer
        self._key: bytes | None = None

    def of(self, value: bytes) -> bytes:
        """Return a digest that cannot be computed without the secret; raises Unavailable."""
        if self._key is None:
            try:
                self._key = fingerprint_key(self._database.rows, self._sealer)
            except CannotOpen as exc:
                logger().error("the fingerprint key cannot be read: %s", exc)
                raise unavailable() from None
        return hmac.digest(self._key, value, "sha256")


def fingerprint_key(rows: Rows, sealer: Sealer) -> bytes:
    """Return the key, which the first process creates; raises CannotOpen."""
    place = place_of(KEY_PLACE)
    found = rows(f"SELECT sealed FROM {_TABLE}")
    if not found:
        made = sealer.seal(os.urandom(_KEY_BYTES), place)
        rows(f"INSERT INTO {_TABLE} (sealed) VALUES (%s) ON CONFLICT DO NOTHING", made)
        # Another process may have been first.
        found = rows(f"SELECT sealed FROM {_TABLE}")
    return sealer.open(bytes(found[0][0]), place)
