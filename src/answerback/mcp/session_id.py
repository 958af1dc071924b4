"""Session ids that hold their session: what was agreed at `initialize`, sealed."""

from __future__ import annotations

import os
import struct
import time
from typing import Self

import msgspec

from ..versions import LEGACY, Version
from .session import Client
from .signing import Sealer

_PURPOSE = b"session"
_LAYOUT = struct.Struct("!BBHI8s8s")
_VERSIONS = tuple(LEGACY.values())
_BITS = ("form", "url", "sampling", "roots")
LIFETIME = 24 * 3600


class Ticket(msgspec.Struct, frozen=True, kw_only=True):
    version: Version
    client: Client
    home: int
    """The worker that it was opened at."""
    issued: int
    subject: bytes
    """Who opened it: a hash, or nothing for anybody."""
    nonce: bytes

    @classmethod
    def issue(cls, version: Version, client: Client, home: int, subject: bytes = b"") -> Self:
        return cls(
            version=version,
            client=client,
            home=home,
            issued=int(time.time()),
            subject=subject.ljust(8, b"\0")[:8],
            nonce=os.urandom(8),
        )

    def seal(self, sealer: Sealer) -> str:
        bits = sum(getattr(self.client, name) << place for place, name in enumerate(_BITS))
        packed = _LAYOUT.pack(
            _VERSIONS.index(self.version), bits, self.home, self.issued, self.subject, self.nonce
        )
        return sealer.seal(packed, _PURPOSE)

    @classmethod
    def open(cls, id: str, sealer: Sealer) -> Self | None:
        """The ticket, or None: forged, foreign, or too old."""
        packed = sealer.open(id, _PURPOSE)
        if packed is None or len(packed) != _LAYOUT.size:
            return None
        version, bits, home, issued, subject, nonce = _LAYOUT.unpack(packed)
        if version >= len(_VERSIONS):
            return None
        abilities = {name: bool(bits >> place & 1) for place, name in enumerate(_BITS)}
        ticket = cls(
            version=_VERSIONS[version],
            client=Client(**abilities),
            home=home,
            issued=issued,
            subject=subject,
            nonce=nonce,
        )
        return ticket if ticket.is_valid else None

    @property
    def is_valid(self) -> bool:
        """Neither too old nor from the future; clocks may differ by a minute."""
        return -60 <= time.time() - self.issued <= LIFETIME
