"""Session ids: signed tokens that hold what client and server agreed at `initialize`."""

from __future__ import annotations

import os
import struct
import time
from typing import Self

import msgspec

from ..versions import STATEFUL, Version
from .session import ClientCapabilities
from .signing import Signer

_PURPOSE = b"session"
_LAYOUT = struct.Struct("!BBHI8s8s")
_VERSIONS = tuple(STATEFUL.values())
_BITS = ("form", "url", "sampling", "roots")
"""The capabilities, in the order of their bits in a token."""
LIFETIME = 24 * 3600
"""Seconds that a session id is valid."""


class SessionId(msgspec.Struct, frozen=True, kw_only=True):
    """The content of an `Mcp-Session-Id`."""

    version: Version
    client: ClientCapabilities
    home: int
    """The worker that opened the session."""
    issued: int
    subject: bytes
    """A hash of the user who opened the session; zeros for an anonymous one."""
    nonce: bytes

    @classmethod
    def issue(
        cls, version: Version, client: ClientCapabilities, home: int, subject: bytes = b""
    ) -> Self:
        return cls(
            version=version,
            client=client,
            home=home,
            issued=int(time.time()),
            subject=subject.ljust(8, b"\0")[:8],
            nonce=os.urandom(8),
        )

    def sign(self, signer: Signer) -> str:
        bits = sum(getattr(self.client, name) << place for place, name in enumerate(_BITS))
        packed = _LAYOUT.pack(
            _VERSIONS.index(self.version), bits, self.home, self.issued, self.subject, self.nonce
        )
        return signer.sign(packed, _PURPOSE)

    @classmethod
    def verify(cls, token: str, signer: Signer) -> Self | None:
        """The session id; None if the token is forged, of another server, or too old."""
        packed = signer.verify(token, _PURPOSE)
        if packed is None or len(packed) != _LAYOUT.size:
            return None
        version, bits, home, issued, subject, nonce = _LAYOUT.unpack(packed)
        if version >= len(_VERSIONS):
            return None
        capabilities = {name: bool(bits >> place & 1) for place, name in enumerate(_BITS)}
        found = cls(
            version=_VERSIONS[version],
            client=ClientCapabilities(**capabilities),
            home=home,
            issued=issued,
            subject=subject,
            nonce=nonce,
        )
        return found if found.is_valid else None

    @property
    def is_valid(self) -> bool:
        """Neither too old nor from the future; two machines' clocks may differ by a minute."""
        return -60 <= time.time() - self.issued <= LIFETIME
