"""Hosts: the programs that show widgets to people, how each is recognised, and what it needs.

A host is detected by what its client says about itself, which is not verified. So it may choose
the form of an answer, but never decides about access.
"""

from __future__ import annotations

import re
from typing import Literal, TypeAlias, get_args

import msgspec

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


class Quirk(msgspec.Struct, frozen=True):
    """A host's need beyond MCP Apps, and what is done for it here."""

    host: str
    need: str
    done: str
    source: str
    date: str
    """The date of the report, or the date on which a reference was read."""


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


_CHECKED = "2026-11-16"
QUIRKS: tuple[Quirk, ...] = (
    Quirk(
        "Claude",
        "`ui.domain` is absent, or has the digest of the exact URL that the user entered",
        "`ui.domain` on the content of `resources/read`, for Claude alone",
        "laravel/mcp issue 218, skybridge issue 704",
        "2026-05-18",
    ),
    Quirk(
        "Claude",
        "the CSP stands on the page; on a tool it is ignored",
        "the CSP is on the content and in the list, never on the tool",
        "frontmcp issue 455",
        "2026-05-28",
    ),
    Quirk(
        "Claude",
        "the URI of the widget also in the old flat key `ui/resourceUri`",
        "both keys are on every tool with a widget",
        "claude-ai-mcp issue 71",
        "2026-02-27",
    ),
    Quirk(
        "Claude",
        "the page sends `ui/notifications/initialized`, or it stays hidden",
        "the bridge sends it, also if the host's answer is incomplete or late",
        "claude-ai-mcp issue 61, ext-apps issue 671",
        "2026-04-20",
    ),
    Quirk(
        "Claude",
        "some versions ignore the origins of the CSP",
        "the bridge is inline; put your scripts and styles into the page too",
        "claude-ai-mcp issue 40",
        "2026-07-05",
    ),
    Quirk(
        "Claude",
        "`ping` is answered, or no widget is shown",
        "it is, in all versions that have it; 2026-07-28 has it no more",
        "ext-apps issue 671",
        "2026-09-02",
    ),
    Quirk(
        "Claude",
        "reads no widget of a server that speaks 2026-07-28",
        "nothing can be done here; the text of the reply is shown",
        "claude-ai-mcp issue 1060",
        "2026-09-20",
    ),
    Quirk(
        "Claude Code",
        "shows no widgets",
        "the text of the reply is shown",
        "claude-code issue 95149",
        "2026-09-17",
    ),
    Quirk(
        "ChatGPT",
        "`readOnlyHint`, `destructiveHint` and `openWorldHint` on every tool",
        "a tool with a widget always has the three",
        "Apps SDK reference",
        _CHECKED,
    ),
    Quirk(
        "ChatGPT",
        "asks its user to log in by `mcp/www_authenticate` in a result at HTTP 200",
        'such a result instead of HTTP 401 or 403, unless `Access(challenge="http")`',
        "Apps SDK reference",
        _CHECKED,
    ),
    Quirk(
        "ChatGPT",
        "an origin of the app's own for submission",
        "`domain=` is sent as `openai/widgetDomain`",
        "Apps SDK reference",
        _CHECKED,
    ),
    Quirk(
        "ChatGPT",
        "`redirect_domains`, which MCP Apps does not have",
        "`CSP(redirects=…)` is sent in `openai/widgetCSP` alone",
        "Apps SDK reference",
        _CHECKED,
    ),
    Quirk(
        "ChatGPT",
        "`openai/toolInvocation/invoking` and `invoked` have at most 64 characters",
        "longer texts are refused at registration",
        "Apps SDK reference",
        _CHECKED,
    ),
    Quirk(
        "several",
        "give the page no `structuredContent`, or the result before it listens",
        "the bridge listens first, and reads the data from the text again",
        "tidebreak issue 571",
        _CHECKED,
    ),
    Quirk(
        "several",
        "send messages that are older than the specification",
        "the bridge takes them",
        "assistant-ui issue 4276",
        _CHECKED,
    ),
)
"""One row per need. `docs/guides/widgets.md` shows the same table."""
