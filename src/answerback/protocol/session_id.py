"""Session ids: signed tokens that hold what the client and server agreed on at `initialize`."""

from __future__ import annotations

import os
import struct
import time
from typing import Self

import msgspec

from ..core.request_info import ClientInfo
from ..core.signing import Signer
from ..core.versions import STATEFUL, Version
from .session import ClientCapabilities

_PURPOSE = b"session"
_LAYOUT = struct.Struct("!BBHI8s8s")
_VERSIONS = tuple(STATEFUL.values())
_BITS = ("form", "url", "sampling", "roots")
"""The capabilities, in the order of their bits in a token."""
_MAX_INFO = 64
"""The maximum size in bytes of the client's name and version in a token; the rest is dropped."""
MAX_LENGTH = 160
"""Maximum length of a token."""


class SessionId(msgspec.Struct, frozen=True, kw_only=True):
    """The content of an `Mcp-Session-Id`."""

    version: Version
    client: ClientCapabilities
    home: int
    """The worker that opened the session."""
    issued: int
    subject: bytes
    """A hash of the user who opened the session; zeros for an anonymous user."""
    nonce: bytes
    info: ClientInfo | None = None
    """The client's name and version."""

    @classmethod
    def issue(
        cls,
        version: Version,
        client: ClientCapabilities,
        home: int,
        subject: bytes = b"",
        info: ClientInfo | None = None,
    ) -> Self:
        return cls(
            version=version,
            client=client,
            home=home,
            issued=int(time.time()),
            subject=subject.ljust(8, b"\0")[:8],
            nonce=os.urandom(8),
            info=info,
        )

    def sign(self, signer: Signer) -> str:
        declared = msgspec.structs.asdict(self.client)
        bits = sum(declared[name] << place for place, name in enumerate(_BITS))
        packed = _LAYOUT.pack(
            _VERSIONS.index(self.version), bits, self.home, self.issued, self.subject, self.nonce
        )
        info = "" if self.info is None else f"{self.info.name}\0{self.info.version}"
        return signer.sign(packed + info.encode("utf-8", "replace")[:_MAX_INFO], _PURPOSE)

    @classmethod
    def verify(cls, token: str, signer: Signer) -> Self | None:
        """Return the session id; None if the token is forged or comes from another server."""
        packed = signer.verify(token, _PURPOSE)
        if packed is None or len(packed) < _LAYOUT.size:
            return None
        version, bits, home, issued, subject, nonce = _LAYOUT.unpack_from(packed)
        if version >= len(_VERSIONS):
            return None
        name, _, client_version = packed[_LAYOUT.size :].decode("utf-8", "ignore").partition("\0")
        capabilities = {bit: bool(bits >> place & 1) for place, bit in enumerate(_BITS)}
        return cls(
            version=_VERSIONS[version],
            client=ClientCapabilities(**capabilities),
            home=home,
            issued=issued,
            subject=subject,
            nonce=nonce,
            info=ClientInfo(name, client_version) if name else None,
        )
