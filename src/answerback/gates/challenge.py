"""How a challenge is written for a client: as a header, or in a result's `_meta`."""

from __future__ import annotations

from typing import TYPE_CHECKING

import msgspec

from ..core.authentication import Challenge, bearer_challenge, quotable

if TYPE_CHECKING:
    from ..core.authentication import AppAuth

WWW_AUTHENTICATE = "mcp/www_authenticate"
"""The key in `_meta` for a host that logs in by a result."""


def header_value(auth: AppAuth | None, challenge: Challenge) -> str:
    """Return the value of `WWW-Authenticate`; without `auth=` it names no place to log in."""
    challenge = _quotable(challenge)
    return bearer_challenge(challenge) if auth is None else auth.www_authenticate(challenge)


def in_result(auth: AppAuth | None, challenge: Challenge) -> dict[str, list[str]]:
    """Return the `_meta` of a result that asks the host to log in; it must name an error."""
    if auth is None:
        return {}
    if challenge.error is None:
        challenge = msgspec.structs.replace(challenge, error="insufficient_scope")
    return {WWW_AUTHENTICATE: [auth.www_authenticate(_quotable(challenge))]}


def url_value(url: str) -> str:
    """Return a URL as a header's value: all but printable ASCII is percent-encoded."""
    from urllib.parse import quote

    return quote(url, safe="!#$%&'()*+,/:;=?@[]~|", errors="replace")


def _quotable(challenge: Challenge) -> Challenge:
    """Return the challenge with texts that can stand between quotation marks.

    A gate may repeat what the client sent, and the author's own authenticator may write the
    texts as they are.
    """
    return msgspec.structs.replace(
        challenge,
        description=quotable(challenge.description),
        scopes=tuple(map(quotable, challenge.scopes)),
    )
