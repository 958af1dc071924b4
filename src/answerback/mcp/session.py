"""What is known of the other end: what it said when it opened, and has set since."""

from __future__ import annotations

from typing import Any

import msgspec

from ..peer import LEVELS, Level, Question
from ..versions import Version

DEFAULT_LEVEL: Level = "info"
"""From which on a legacy client hears the log until it says otherwise."""


class Client(msgspec.Struct, frozen=True, kw_only=True):
    """What a client can do, as it said: once when it opened, or with each modern request."""

    form: bool = False
    """It can put a question with a form to its user."""
    url: bool = False
    """It can send its user to a page."""
    sampling: bool = False
    roots: bool = False

    @classmethod
    def of(cls, capabilities: dict[str, Any], *, elicitation: bool = True) -> Client:
        """Bare `elicitation: {}` means forms only; what a version has no word for is not asked."""
        if not capabilities:
            return _NO_CLIENT
        asks = capabilities.get("elicitation") if elicitation else None
        modes = asks if isinstance(asks, dict) else {}
        return cls(
            form=asks is not None and ("form" in modes or "url" not in modes),
            url="url" in modes,
            sampling="sampling" in capabilities,
            roots="roots" in capabilities,
        )

    def can(self, question: Question) -> bool:
        """Whether it said that it can answer such a question."""
        return not missing(self, question)


_NO_CLIENT = Client()


def missing(client: Client, question: Question) -> dict[str, Any]:
    """The capability that a question needs and the client did not declare, in MCP's words."""
    match question.method:
        case "elicitation/create":
            mode = question.params.get("mode", "form")
            has = client.url if mode == "url" else client.form
            return {} if has else {"elicitation": {mode: {}}}
        case "sampling/createMessage":
            return {} if client.sampling else {"sampling": {}}
        case _:
            return {} if client.roots else {"roots": {}}


class Session:
    """One legacy client: from `initialize` until it goes."""

    __slots__ = ("client", "level", "subscriptions", "version")

    def __init__(self, version: Version, client: Client) -> None:
        self.version = version
        self.client = client
        self.level: Level = DEFAULT_LEVEL
        self.subscriptions: set[str] = set()


def reaches(level: Level, threshold: Level) -> bool:
    """Whether a message of *level* is to be sent to one who asked for *threshold* and above."""
    return LEVELS.index(level) >= LEVELS.index(threshold)
