"""Hosts: the programs that show widgets to people, and how each is recognised.

A host is detected by what its client says about itself, which is not verified. So it may choose
the form of an answer, but never decides about access. `docs/guides/widgets.md` lists what each host
needs.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias, get_args

from .request_info import RequestInfo

HostName: TypeAlias = Literal["claude", "chatgpt", "other"]
HOST_NAMES: tuple[HostName, ...] = get_args(HostName)
_WORDS: tuple[tuple[HostName, tuple[str, ...]], ...] = (
    ("claude", ("claude",)),
    ("chatgpt", ("chatgpt", "openai-mcp")),
)
"""Words in a `User-Agent` or in a client's name that identify a host."""
_ENDPOINT = re.compile(
    r"(https://[A-Za-z0-9.-]+|http://(localhost|127\.0\.0\.1|\[::1\]))(:[0-9]{1,5})?/[^\s#]*"
)
_CLAUDE_SUFFIX = ".claudemcpcontent.com"
LOGS_IN_BY_RESULT: tuple[HostName, ...] = ("chatgpt",)
"""The hosts that read `mcp/www_authenticate` in a result, and log in with it."""


def detect_host(user_agent: str | None, client: str | None) -> HostName:
    """Return the host that the `User-Agent` names, else the one that the client's name suggests."""
    for text in (user_agent, client):
        folded = (text or "").lower()
        for host, words in _WORDS:
            if any(word in folded for word in words):
                return host
    return "other"


def is_endpoint(url: str) -> bool:
    """Return whether *url* is an endpoint's whole URL: https, or http on this machine; a path."""
    return bool(_ENDPOINT.fullmatch(url))


def claude_domain(url: str) -> str:
    """Return the domain of widgets in Claude for the MCP endpoint's exact URL."""
    from hashlib import sha256

    return sha256(url.encode()).hexdigest()[:32] + _CLAUDE_SUFFIX


def page_domain(url: str, request: RequestInfo | None, host: HostName | None) -> str | None:
    """Return the page's domain in Claude; None in other hosts, or if the endpoint is unknown."""
    if not url:
        return None
    if host is None:
        headers = None if request is None else request.headers
        if request is None or headers is None:
            return None  # A stdio server has no URL that Claude could know.
        client = request.client
        host = detect_host(headers.get("user-agent"), client.name if client else None)
    return claude_domain(url) if host == "claude" else None
