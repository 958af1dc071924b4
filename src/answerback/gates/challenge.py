"""How a challenge is written for a client: as a header, or in the `_meta` of a result."""

from __future__ import annotations

import re
from typing import TYPE_CHECKING

import msgspec

from ..authentication import Challenge

if TYPE_CHECKING:
    from ..authentication import Authenticator

WWW_AUTHENTICATE = "mcp/www_authenticate"
"""The key in `_meta` for a host that logs in by a result."""
# RFC 6750 allows these characters between quotation marks.
_NOT_QUOTABLE = re.compile(r"[^ !#-\[\]-~]")


def header_value(auth: Authenticator | None, challenge: Challenge) -> str:
    """The value of `WWW-Authenticate`; without `auth=` it names no place to log in."""
    if auth is not None:
        return auth.www_authenticate(challenge)
    parameters = {
        "error": challenge.error or "",
        "error_description": challenge.description if challenge.error else "",
        "scope": " ".join(challenge.scopes),
    }
    written = [f'{name}="{_quotable(text)}"' for name, text in parameters.items() if text]
    return f"Bearer {', '.join(written)}" if written else "Bearer"


def in_result(auth: Authenticator | None, challenge: Challenge) -> dict[str, list[str]]:
    """The `_meta` of a result that asks the host to log in; it must name an error."""
    if auth is None:
        return {}
    if challenge.error is None:
        challenge = msgspec.structs.replace(challenge, error="insufficient_scope")
    return {WWW_AUTHENTICATE: [auth.www_authenticate(challenge)]}


def _quotable(text: str) -> str:
    return _NOT_QUOTABLE.sub(" ", text.replace('"', "'"))
