"""Reads `WWW-Authenticate`: the scheme and the parameters of each challenge (RFC 9110)."""

from __future__ import annotations

import re

import msgspec

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_SCHEME = re.compile(rf"\s*,?\s*({_TOKEN})(?=\s|,|$)(?!\s*=)")
_PARAMETER = re.compile(rf'[\s,]*({_TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|({_TOKEN}))')
_TOKEN68 = re.compile(r"\s+[A-Za-z0-9._~+/-]+=*(?=\s*(?:,|$))")
"""The one value that some schemes have in place of parameters."""
_MAX_HEADER = 16_384


class AskedLogin(msgspec.Struct, frozen=True):
    """The challenge of the scheme Bearer; its members are empty if the server did not send them."""

    error: str = ""
    description: str = ""
    scopes: tuple[str, ...] = ()
    metadata_url: str = ""


def read_challenges(header: str) -> list[tuple[str, dict[str, str]]]:
    """The scheme, in lower case, and the parameters of each challenge; reads as far as it can."""
    found: list[tuple[str, dict[str, str]]] = []
    text, position = header[:_MAX_HEADER], 0
    while position < len(text):
        if found and (match := _PARAMETER.match(text, position)):
            value = match[3] if match[2] is None else re.sub(r"\\(.)", r"\1", match[2])
            found[-1][1].setdefault(match[1].lower(), value)
        elif match := _SCHEME.match(text, position):
            found.append((match[1].lower(), {}))
            match = _TOKEN68.match(text, match.end()) or match
        else:
            break
        position = match.end()
    return found


def asked_login(header: str) -> AskedLogin:
    """The first challenge for a bearer token; an empty one if there is none."""
    for scheme, parameters in read_challenges(header):
        if scheme == "bearer":
            return AskedLogin(
                error=parameters.get("error", ""),
                description=parameters.get("error_description", ""),
                scopes=tuple(parameters.get("scope", "").split()),
                metadata_url=parameters.get("resource_metadata", ""),
            )
    return AskedLogin()
