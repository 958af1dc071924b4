"""The report of a client on tests/apps/for_clients.py, which must be the same from every client."""

from __future__ import annotations

from typing import Any, Literal

import msgspec
from tests.conftest import load_app
from tests.protocol.official_tools import FOR_CLIENTS

Era = Literal["stateful", "stateless"]
VERSION: dict[Era, str] = {"stateful": "2025-11-25", "stateless": "2026-07-28"}
ANSWER = {"name": "Ada"}
"""The answer of each client's user to a question."""
PIXEL = (
    "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR4nGNgYGBg"
    "AAAABQABpfZFQAAAAABJRU5ErkJggg=="
)


class ClientReport(msgspec.Struct):
    """The messages that a client received; the fields do not depend on the client."""

    version: str
    era: str
    server: str
    tools: list[str]
    text: str
    structured: Any
    with_message: list[Any]
    """The data of two replies with texts beside it, which their output schemas allow."""
    image: tuple[str, str]
    error: tuple[bool, str]
    progress: list[tuple[float, float, str]]
    slow_result: str
    asked_while_running: str
    asked_before_running: str
    resource: str
    prompt: str


def expected_without_session() -> ClientReport:
    """The report of a stateful client that the server cannot ask, because it keeps no session."""
    refusal = "This call needs something the client does not offer: elicitation. It asks: "
    hint = "\nHint: only a client with a session, or one that uses MCP 2026-07-28, can be asked"
    return msgspec.structs.replace(
        expected("stateful"),
        asked_while_running=f"{refusal}What is your name?{hint}",
        asked_before_running=f"{refusal}Who is there?{hint}",
    )


def expected(era: Era) -> ClientReport:
    app = load_app(FOR_CLIENTS)
    return ClientReport(
        version=VERSION[era],
        era=era,
        server="for-clients 3.2.1",
        tools=list(app.tools),
        text="Hello, žluťoučký kůň!",
        structured={"total": 5, "terms": [2, 3]},
        with_message=[
            {"total": 5, "terms": [2, 3], "message": "That was easy."},
            {"result": [0, 1, 4], "message": "The first 3:\n[image: image/png, 70 bytes, a curve]"},
        ],
        image=("image/png", PIXEL),
        error=(True, "no city 'Atlantis'"),
        progress=[(1, 3, "step 1"), (2, 3, "step 2"), (3, 3, "step 3")],
        slow_result="done",
        asked_while_running="Hello, Ada!",
        asked_before_running="Welcome, Ada!",
        resource="noted",
        prompt="Please review this.",
    )
