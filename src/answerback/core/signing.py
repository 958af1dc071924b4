"""Signed tokens (HMAC): a client can read them, but cannot create or change them.

Any process with the key can verify a token, so the server need not remember it.
"""

from __future__ import annotations

import hashlib
import hmac
import os
from base64 import urlsafe_b64decode, urlsafe_b64encode
from functools import cache

from ..errors import AnswerbackError

_MAC = 16
_MIN_SECRET = 16
SECRET = "ANSWERBACK_SECRET"


class WeakSecret(AnswerbackError):
    """The secret is so short that it could be guessed."""

    code = "BAD_SETTING"


class Signer:
    """Signs with the first key and verifies with any of them, so that keys can be rotated."""

    def __init__(self, *secrets: bytes) -> None:
        keys = [hashlib.sha256(b"answerback:" + secret).digest() for secret in secrets]
        self._first = keys[0]
        # A byte identifies the key; two keys may have the same byte.
        self._keys: dict[int, list[bytes]] = {}
        for key in keys:
            self._keys.setdefault(_id(key), []).append(key)

    def sign(self, payload: bytes, purpose: bytes) -> str:
        """Return a token with *payload*; it verifies only for the same *purpose*."""
        body = bytes([_id(self._first)]) + payload
        token = body + _mac(self._first, purpose, body)
        return urlsafe_b64encode(token).rstrip(b"=").decode()

    def verify(self, token: str, purpose: bytes) -> bytes | None:
        """Return the payload; None if the token is forged, or has another purpose or an old key."""
        try:
            signed = urlsafe_b64decode(token.encode("ascii") + b"=" * (-len(token) % 4))
        except ValueError:
            return None
        body, mac = signed[:-_MAC], signed[-_MAC:]
        keys = self._keys.get(body[0], []) if body else []
        if not any(hmac.compare_digest(mac, _mac(key, purpose, body)) for key in keys):
            return None
        # Base64 has spare bits, so one token could be written in several ways; accept only ours.
        if urlsafe_b64encode(signed).rstrip(b"=").decode() != token:
            return None
        return body[1:]


def signer_from_environment() -> tuple[Signer, bool]:
    """Return the signer, and whether its key was generated for this process and its children.

    The first secret in ANSWERBACK_SECRET is used to sign. Raises WeakSecret.
    """
    secrets = secrets_from_environment()
    return Signer(*(secrets or [os.urandom(32)])), not secrets


@cache
def process_signer() -> Signer:
    """Return the signer that this process shares with its children.

    Call this at registration, before a server forks, so that all workers have the same key.
    """
    return signer_from_environment()[0]


def secrets_from_environment() -> list[bytes]:
    """Return the comma-separated secrets in ANSWERBACK_SECRET.

    Raises WeakSecret if one is too short.
    """
    parts = os.environ.get(SECRET, "").split(",")
    secrets = [part.strip().encode() for part in parts if part.strip()]
    for secret in secrets:
        if len(secret) < _MIN_SECRET:
            raise WeakSecret(
                f"{SECRET} holds a secret of {len(secret)} bytes; it needs at least "
                f"{_MIN_SECRET}, such as the output of: openssl rand -hex 32"
            )
    return secrets


def _id(key: bytes) -> int:
    return hashlib.sha256(key).digest()[0]


def _mac(key: bytes, purpose: bytes, body: bytes) -> bytes:
    return hmac.digest(key, purpose + b"\0" + body, "sha256")[:_MAC]
