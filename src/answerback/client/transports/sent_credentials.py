"""SentCredentials: the credentials that a client sent, masked where a server echoes them.

Credentials are `Authorization`, `Cookie`, and the headers and URL parameters with a secret's name.
"""

from __future__ import annotations

import re
from collections.abc import Mapping

from ...core.secrets.http_secrets import secrets_in_headers, secrets_in_url
from ...core.secrets.mask import MASK
from ...core.secrets.secret_values import written_forms
from ..frames import Receive, decode_frame

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

    def masking(self, receive: Receive) -> Receive:
        """Return a receiver of frames without the credentials, except in tools' results."""

        def receive_masked(frame: bytes) -> int | str | None:
            if any(form in frame for form in self._forms) and not _is_success(frame):
                frame = self.masked(frame)
            return receive(frame)

        return receive_masked


def _is_success(frame: bytes) -> bool:
    message = decode_frame(frame)
    return message is not None and bool(message.result) and not _IS_ERROR.search(frame)


def _forms(secrets: list[str]) -> list[bytes]:
    """Return the values in all their written forms, the longest first."""
    forms = {form for each in secrets for form in written_forms(each)}
    # A value may be part of another one.
    return sorted((each.encode(errors="replace") for each in forms), key=len, reverse=True)
