"""Fingerprints: stand for texts that the database must find but not show, such as owners and keys.

They are HMACs by a random key, which the database keeps sealed. A new secret only seals that key
anew, so a fingerprint stays the same and a unique one stays unique while secrets are rotated.
"""

from __future__ import annotations

import hmac
import os
from collections.abc import Callable
from typing import Any

from ..core.log import logger
from .database import Database, unavailable
from .sealing import CannotOpen, Sealer, place_of

KEY_PLACE = "fingerprints"
_KEY_BYTES = 32
_TABLE = "answerback.fingerprint_key"

Rows = Callable[..., list[tuple[Any, ...]]]
"""Runs a statement with values, and returns its rows."""


class Fingerprints:
    """Reads the key on first use. Any thread may use it."""

    def __init__(self, database: Database, sealer: Sealer) -> None:
        self._database = database
        self._sealer = sealer
        self._key: bytes | None = None

    def of(self, value: bytes) -> bytes:
        """Return a digest that only who has the secret can make; raises Unavailable."""
        if self._key is None:
            try:
                self._key = fingerprint_key(self._database.rows, self._sealer)
            except CannotOpen as exc:
                logger().error("the key of the fingerprints cannot be read: %s", exc)
                raise unavailable() from None
        return hmac.digest(self._key, value, "sha256")


def fingerprint_key(rows: Rows, sealer: Sealer) -> bytes:
    """Return the key, which the first process makes; raises CannotOpen."""
    place = place_of(KEY_PLACE)
    found = rows(f"SELECT sealed FROM {_TABLE}")
    if not found:
        made = sealer.seal(os.urandom(_KEY_BYTES), place)
        rows(f"INSERT INTO {_TABLE} (sealed) VALUES (%s) ON CONFLICT DO NOTHING", made)
        # Another process may have been faster.
        found = rows(f"SELECT sealed FROM {_TABLE}")
    return sealer.open(bytes(found[0][0]), place)
