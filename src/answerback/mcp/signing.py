"""Tokens that we hand out and get back: nobody else can make one, or change one.

Any process that has the key can read them, so a session needs no memory of ours.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode

_MAC = 16
SECRET = "ANSWERBACK_SECRET"


class Sealer:
    """Seals with the first key and opens with any, so that keys can be changed under way."""

    def __init__(self, *secrets: bytes) -> None:
        keys = [hashlib.sha256(b"answerback:" + secret).digest() for secret in secrets]
        self._first = keys[0]
        # A key is known by a byte; two may have the same.
        self._keys: dict[int, list[bytes]] = {}
        for key in keys:
            self._keys.setdefault(_id(key), []).append(key)

    def seal(self, payload: bytes, purpose: bytes) -> str:
        """A token for *payload* that opens only for the same *purpose*."""
        body = bytes([_id(self._first)]) + payload
        token = body + _mac(self._first, purpose, body)
        return urlsafe_b64encode(token).rstrip(b"=").decode()

    def open(self, token: str, purpose: bytes) -> bytes | None:
        """What was sealed, or None: forged, broken, for another purpose, or of a key long gone."""
        try:
            sealed = urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
        except ValueError:
            return None
        body, mac = sealed[:-_MAC], sealed[-_MAC:]
        keys = self._keys.get(body[0], []) if body else []
        if not any(hmac.compare_digest(mac, _mac(key, purpose, body)) for key in keys):
            return None
        # Base64 has spare bits: only the spelling that we handed out is ours.
        if urlsafe_b64encode(sealed).rstrip(b"=").decode() != token:
            return None
        return body[1:]


def sealer_from_environment() -> tuple[Sealer, bool]:
    """The sealer, and whether its key is only this process's (and its children's).

    ANSWERBACK_SECRET may hold several secrets, separated by commas: the first seals.
    """
    parts = os.environ.get(SECRET, "").split(",")
    secrets = [part.strip().encode() for part in parts if part.strip()]
    return Sealer(*(secrets or [os.urandom(32)])), not secrets


def _id(key: bytes) -> int:
    return hashlib.sha256(key).digest()[0]


def _mac(key: bytes, purpose: bytes, body: bytes) -> bytes:
    return hmac.digest(key, purpose + b"\0" + body, "sha256")[:_MAC]
