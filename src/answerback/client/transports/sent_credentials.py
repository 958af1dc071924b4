"""SentCredentials: the credentials that a client sent, masked where a server echoes them."""

from __future__ import annotations

import re
from base64 import b64decode
from collections.abc import Iterator, Mapping
from urllib.parse import unquote

from ...rules.detectors.secrets import MASK
from ...types.secret_names import is_secret_name
from ..frames import Receive, decode_frame

_KEPT = 32
"""How many values are kept; a login changes its token now and then."""
_MIN_LENGTH = 4
"""Shorter values are not masked, because ordinary words contain them."""
_MIN_OTHER_LENGTH = 8
"""The same for headers whose names do not say that their values are secret."""
_MAX_WORD = 15
"""Such a value is a word, and no token, if it is not longer and has no digit."""
_HARMLESS = frozenset(
    {"user-agent", "origin", "referer", "host", "connection", "from", "traceparent", "tracestate"}
)
_HARMLESS_PREFIXES = ("accept", "content-", "cache-", "mcp-", "sec-")
_DIGIT = re.compile(r"\d")
_IS_ERROR = re.compile(rb'"isError"\s*:\s*true')


class SentCredentials:
    """Keeps the credentials in the headers and in the URL of requests."""

    def __init__(self, url: str, headers: Mapping[str, str]) -> None:
        self._last: Mapping[str, str] = {}
        self._secrets: dict[str, None] = dict.fromkeys(_in_url(url))
        self._forms: tuple[bytes, ...] = ()
        self.keep(headers)

    def __bool__(self) -> bool:
        return bool(self._secrets)

    def keep(self, headers: Mapping[str, str]) -> None:
        """Keep the headers of a request, whose names are in lower case."""
        if headers == self._last:
            return
        self._last = headers
        for name, value in headers.items():
            self._secrets |= dict.fromkeys(_in_header(name, value))
        for old in list(self._secrets)[:-_KEPT]:
            del self._secrets[old]
        forms = {form for each in self._secrets for form in _forms(each)}
        # A value may be a part of another one.
        self._forms = tuple(sorted(forms, key=len, reverse=True))

    def masked(self, body: bytes) -> bytes:
        """The body of a refusal without the credentials."""
        for form in self._forms:
            if form in body:
                body = body.replace(form, MASK.encode())
        return body

    def masked_text(self, text: str) -> str:
        return self.masked(text.encode(errors="replace")).decode() if self._forms else text

    def masking(self, receive: Receive) -> Receive:
        """A function that receives frames without the credentials, except in results of tools."""

        def receive_masked(frame: bytes) -> int | str | None:
            if any(form in frame for form in self._forms) and not _is_success(frame):
                frame = self.masked(frame)
            return receive(frame)

        return receive_masked


def _is_success(frame: bytes) -> bool:
    message = decode_frame(frame)
    return message is not None and bool(message.result) and not _IS_ERROR.search(frame)


def _in_url(url: str) -> Iterator[str]:
    """The values of parameters such as `api_key`, as they are and decoded."""
    for each in url.partition("?")[2].partition("#")[0].split("&"):
        name, _, value = each.partition("=")
        if is_secret_name(unquote(name)) and len(value) >= _MIN_LENGTH:
            yield from (value, unquote(value))


def _in_header(name: str, value: str) -> Iterator[str]:
    """The secret parts of a header: the token, the password, the values of cookies."""
    if name in _HARMLESS or name.startswith(_HARMLESS_PREFIXES) or name.endswith("version"):
        return
    parts = [value]
    if name == "cookie":
        parts += (each.partition("=")[2].strip() for each in value.split(";"))
    scheme, _, rest = value.strip().partition(" ")
    if name.endswith("authorization") and rest:
        parts.append(rest.strip())
        if scheme.lower() == "basic":
            parts.append(_password(rest))
    if name == "cookie" or is_secret_name(name):
        yield from (each for each in parts if len(each) >= _MIN_LENGTH)
    elif len(value) >= _MIN_OTHER_LENGTH and (len(value) > _MAX_WORD or _DIGIT.search(value)):
        yield value


def _password(encoded: str) -> str:
    try:
        return b64decode(encoded).decode().partition(":")[2]
    except ValueError:
        return ""


def _forms(secret: str) -> Iterator[bytes]:
    """A value as it is, and as it is written in JSON."""
    written = secret.replace("\\", "\\\\").replace('"', '\\"')
    for each in (secret, written, written.replace("/", "\\/")):
        yield each.encode(errors="replace")
