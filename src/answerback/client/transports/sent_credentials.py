"""SentCredentials: the credentials that a client sent, masked where a server echoes them.

Credentials are `Authorization`, `Cookie`, and the headers and URL parameters with a secret's name.
"""

from __future__ import annotations

import asyncio
import re
from collections.abc import Mapping

import msgspec

from ...core.secrets import MASK, secrets_in_headers, secrets_in_url, written_forms
from ...protocol.jsonrpc import Id
from ..frames import Receiver, decode_frame

_KEPT = 32
"""How many login values are kept; a login changes its token now and then."""
_IS_ERROR = re.compile(rb'"isError"\s*:\s*true')


class SentCredentials:
    """Keeps the credentials in the URL and the headers of all requests, and those of logins."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._fixed = [*secrets_in_url(url), *secrets_in_headers(headers)]
        self._last: Mapping[str, str] = {}
        self._logins: list[str] = []
        self._forms = _forms(self._fixed)

    def __bool__(self) -> bool:
        return bool(self._forms)

    def keep(self, headers: Mapping[str, str]) -> None:
        """Keep the headers of a login, whose names are in lower case."""
        if headers != self._last:
            self._last = headers
            self._logins = [*self._logins, *secrets_in_headers(headers)][-_KEPT:]
            self._forms = _forms([*self._fixed, *self._logins])

    def masked(self, body: bytes) -> bytes:
        """Return a refusal's body without the credentials."""
        for form in self._forms:
            body = body.replace(form, MASK.encode())
        return body

    def masked_text(self, text: str) -> str:
        return self.masked(text.encode(errors="replace")).decode() if self._forms else text

    def masked_frame(self, frame: bytes) -> bytes:
        """Return a frame without the credentials; a tool's result is returned unchanged."""
        if any(form in frame for form in self._forms) and not _is_success(frame):
            return self.masked(frame)
        return frame


class MaskedFrames:
    """A receiver that gets the frames without the credentials."""

    def __init__(self, receiver: Receiver, sent: SentCredentials) -> None:
        self._receiver = receiver
        self._sent = sent

    def receive(self, frame: bytes) -> Id | None:
        return self._receiver.receive(self._sent.masked_frame(frame))

    async def receive_large(self, frame: bytes) -> Id | None:
        masked = await asyncio.to_thread(self._sent.masked_frame, frame)
        return await self._receiver.receive_large(masked)

    def receive_cut(self, edges: bytes) -> None:
        self._receiver.receive_cut(self._sent.masked(edges))


class _Answer(msgspec.Struct):
    """The members that say whether a frame is a result; an error's data is not decoded."""

    result: msgspec.Raw | msgspec.UnsetType = msgspec.UNSET


def _is_success(frame: bytes) -> bool:
    try:
        result = msgspec.json.decode(frame, type=_Answer).result
    except (ValueError, RecursionError):
        message = decode_frame(frame)
        result = msgspec.UNSET if message is None else message.result
    return bool(result) and not _IS_ERROR.search(frame)


def _forms(secrets: list[str]) -> list[bytes]:
    """Return the values in all their written forms, the longest first."""
    forms = {form for each in secrets for form in written_forms(each)}
    # A value may be part of another one.
    return sorted((each.encode(errors="replace") for each in forms), key=len, reverse=True)
