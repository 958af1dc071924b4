"""Reads `WWW-Authenticate`: each challenge's scheme and parameters (RFC 9110)."""

from __future__ import annotations

import re

import msgspec

_TOKEN = r"[!#$%&'*+.^_`|~0-9A-Za-z-]+"
_SCHEME = re.compile(rf"\s*,?\s*({_TOKEN})(?=\s|,|$)(?!\s*=)")
_PARAMETER = re.compile(rf'[\s,]*({_TOKEN})\s*=\s*(?:"((?:[^"\\]|\\.)*)"|({_TOKEN}))')
_TOKEN68 = re.compile(r"\s+[A-Za-z0-9._~+/-]+=*(?=\s*(?:,|$))")
"""The single value that some schemes have in place of parameters."""
_MAX_HEADER = 16_384


class AskedLogin(msgspec.Struct, frozen=True):
    """A Bearer challenge; members that the server did not send are empty."""

    error: str = ""
    description: str = ""
    scopes: tuple[str, ...] = ()
    metadata_url: str = ""


def read_challenges(header: str) -> list[tuple[str, dict[str, str]]]:
    """Return each challenge's lower-case scheme and parameters, as far as they can be read."""
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
    """Return the first challenge for a bearer token; an empty one if there is none."""
    for scheme, parameters in read_challenges(header):
        if scheme == "bearer":
            return AskedLogin(
                error=parameters.get("error", ""),
                description=parameters.get("error_description", ""),
                scopes=tuple(parameters.get("scope", "").split()),
                metadata_url=parameters.get("resource_metadata", ""),
            )
    return AskedLogin()
