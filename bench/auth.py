"""The cost of authentication in a request, in microseconds."""

from __future__ import annotations

import asyncio
import time

from answerback.auth import ApiKeys, OAuth
from answerback.calls.runners import run_without_loop
from answerback.core.authentication import AppAuth, Credentials
from answerback.server.http.authentication_step import AuthenticationStep

from .report import Figure

REQUESTS = 2_000
ROUNDS = 25
_OTHERS = [
    (b"host", b"127.0.0.1:8000"),
    (b"accept", b"application/json, text/event-stream"),
    (b"content-type", b"application/json"),
    (b"user-agent", b"bench"),
]


def measure() -> list[Figure]:
    oauth = OAuth.development(scopes=["read"])
    # As long as the tokens of a real issuer, with an RSA signature and groups of the user.
    token = oauth.issue("alice", claims={"groups": ["0f8fad5b-d9cb-469f-a165-70867728950e"] * 20})
    made = ApiKeys.new()
    return [
        _figure("a token seen before, in µs", oauth, token, 15),
        _figure("an API key, in µs", ApiKeys({made.digest: "ci"}), made.key, 15),
    ]


def _figure(what: str, auth: AppAuth, token: str, limit: float) -> Figure:
    step = AuthenticationStep(auth)
    headers = [*_OTHERS, (b"authorization", f"Bearer {token}".encode())]
    asyncio.run(step.identify(Credentials("POST", "/mcp", b"", headers)))
    best = min(_seconds(step, headers) for _ in range(ROUNDS))
    return Figure(what, best * 1e6, limit, True, f"a token of {len(token)} bytes")


def _seconds(step: AuthenticationStep, headers: list[tuple[bytes, bytes]]) -> float:
    """The CPU time of the authentication of one request."""
    started = time.process_time()
    for _ in range(REQUESTS):
        run_without_loop(step.identify(Credentials("POST", "/mcp", b"", headers)))
    return (time.process_time() - started) / REQUESTS
