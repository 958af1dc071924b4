"""What every official client must read from tests/apps/judged.py, whichever way it came."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from tests.conftest import load_app
from tests.mcp.judges import JUDGED

Era = Literal["stateful", "stateless"]
VERSION: dict[Era, str] = {"stateful": "2025-11-25", "stateless": "2026-07-28"}
ANSWER = {"name": "Ada"}
"""What each client's user says when asked."""
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBg"
    "AAAABQABpfZFQAAAAABJRU5ErkJggg=="
)


class Seen(msgspec.Struct):
    """What a client made of the server, in words that no client has for itself alone."""

    version: str
    era: str
    server: str
    tools: list[str]
    text: str
    structured: Any
    image: tuple[str, str]
    error: tuple[bool, str]
    progress: list[tuple[float, float, str]]
    in_the_end: str
    asked_while_running: str
    asked_before: str
    resource: str
    prompt: str


def expected(era: Era) -> Seen:
    app = load_app(JUDGED)
    return Seen(
        version=VERSION[era],
        era=era,
        server="judged 3.2.1",
        tools=list(app.tools),
        text="Hello, žluťoučký kůň!",
        structured={"total": 5, "terms": [2, 3]},
        image=("image/png", PIXEL),
        error=(True, "no city 'Atlantis'"),
        progress=[(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")],
        in_the_end="done",
        asked_while_running="Hello, Ada!",
        asked_before="Welcome, Ada!",
        resource="noted",
        prompt="Please review this.",
    )
