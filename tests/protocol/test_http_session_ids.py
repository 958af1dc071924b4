"""Session ids over HTTP: forged, expired and ended ones are refused, and sessions are separate."""

from __future__ import annotations

import asyncio
import json
import time
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.fuzz.http_client import HttpResponse, ServedApp, read_to_end, served_app
from tests.fuzz.stdio_client import call, cancel, file_holds, wait_until
from tests.protocol.signed_tokens import (
    FOREIGN,
    OLD,
    OURS,
    VALID_ID,
    session_id,
    with_other_character,
)

from answerback import App
from answerback.core.signing import Signer
from answerback.server.asgi import sessions
from answerback.server.asgi.sessions import LIFETIME

KILOBYTE = 1024


def in_session(served: ServedApp, id: str, method: str = "POST") -> HttpResponse:
    """Send a request with that session id."""
    body = json.dumps(call(1, "add", x=1, y=2)).encode() if method == "POST" else b""
    return served.send(body, {"Mcp-Session-Id": id}, method=method, first_event_only=True)


@pytest.mark.parametrize("signer", [OURS, OLD])
def test_a_session_id_signed_with_any_key_of_the_server_is_accepted(
    served: ServedApp, signer: Signer
) -> None:
    assert in_session(served, session_id().sign(signer)).status == 200


@pytest.mark.parametrize(
    ("age", "status"),
    [(0, 200), (LIFETIME - 60, 200), (LIFETIME + 2, 404), (-30, 200), (-120, 404)],
)
def test_a_session_id_is_valid_for_its_lifetime(served: ServedApp, age: int, status: int) -> None:
    assert in_session(served, session_id(age).sign(OURS)).status == status


FORGED_IDS = {
    "short": "x",
    "plain": "A" * len(VALID_ID),
    "huge": "A" * 50_000,
    "not ASCII": "\xe9\xb2\xff",
    "without its last character": VALID_ID[:-1],
    "without its first character": VALID_ID[1:],
    "with one more character": VALID_ID + "A",
    "padded": VALID_ID + "=",
    "twice": f"{VALID_ID}, {VALID_ID}",
    "half": VALID_ID[:-8],
    "signed with another key": session_id().sign(FOREIGN),
    "too old": session_id(LIFETIME + 1).sign(OURS),
    "issued in the future": session_id(-3600).sign(OURS),
    "signed, but empty": OURS.sign(b"", b"session"),
    "signed, but issued at 0": OURS.sign(bytes(24), b"session"),
    "signed, but of an unknown version": OURS.sign(bytes([255]) * 24, b"session"),
    "signed for another purpose": OURS.sign(bytes(24), b"round"),
}


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize("which", FORGED_IDS)
def test_a_forged_or_expired_session_id_is_refused_with_404(
    served: ServedApp, which: str, method: str
) -> None:
    response = in_session(served, FORGED_IDS[which], method)

    assert response.status == 404
    assert response.code == -32600
    assert VALID_ID[:20] not in json.dumps(response.frame)


def test_a_session_id_with_any_character_changed_is_refused_with_404(served: ServedApp) -> None:
    for place in range(len(VALID_ID)):
        assert in_session(served, with_other_character(VALID_ID, place)).status == 404, place


def test_a_session_expires_even_while_it_is_used(served: ServedApp) -> None:
    id = session_id(LIFETIME - 2).sign(OURS)
    assert in_session(served, id).status == 200

    assert wait_until(lambda: in_session(served, id).status == 404)


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_an_ended_session_is_refused_with_404(served: ServedApp, method: str) -> None:
    session = served.initialize()
    assert served.send(headers=session, method="DELETE").status == 204

    assert in_session(served, session["Mcp-Session-Id"], method).status == 404


def test_a_client_cannot_cancel_a_request_of_another_session(
    served: ServedApp, tmp_path: Path
) -> None:
    mine, theirs = served.initialize(elicitation={}), served.initialize(elicitation={})
    state, release = tmp_path / "state", tmp_path / "release"
    frame = call(1, "wait_for_file", state_file=str(state), until_file=str(release))
    connection = served.start_post(frame, {**mine, "Connection": "close"})
    wait_until(lambda: file_holds(state, "began"))

    assert served.post(cancel(1), theirs).status == 202
    assert served.post(cancel(1), {}).status == 202

    release.touch()
    assert b'"isError":false' in read_to_end(connection)


def test_an_abandoned_session_takes_less_than_512_bytes() -> None:
    count = 10_000
    with served_app() as served:
        for _ in range(1500):
            served.post(call(1, "add", x=1, y=2), served.initialize())
        before = served.status("VmRSS")

        for number in range(count):
            session = served.initialize("2025-06-18")
            if number % 10 == 0:
                served.post(call(1, "add", x=1, y=2), session)

        grown = (served.status("VmRSS") - before) * KILOBYTE
        assert grown / count < 512
        assert served.still_serves()


def test_an_ended_session_stays_ended_however_many_others_change_or_end(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr(sessions, "MAX_STATES", 3)
    monkeypatch.setattr(sessions, "MAX_ENDED", 3)
    now = time.time() - 1000
    monkeypatch.setattr(time, "time", lambda: now)

    async def steps() -> list[int]:
        nonlocal now
        transport = httpx.ASGITransport(App("sessions").asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            sender = SessionClient(client)
            first = await sender.initialize()
            await sender.end(first)
            for _ in range(5):
                await sender.send("logging/setLevel", await sender.initialize(), level="error")
            after_changes = await sender.send("ping", first)
            for _ in range(5):
                now += 1
                await sender.end(await sender.initialize())
            now += 1
            newest = await sender.initialize()
            after_ends = await sender.send("ping", first)
            return [after_changes, after_ends, await sender.send("ping", newest)]

    assert asyncio.run(steps()) == [404, 404, 200]


class SessionClient:
    """Sends messages of sessions to an app in memory."""

    def __init__(self, client: httpx.AsyncClient) -> None:
        self._client = client

    async def initialize(self) -> str:
        params = {"protocolVersion": "2025-11-25", "capabilities": {}}
        message = {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params}
        session: str = (await self._client.post("/mcp", json=message)).headers["mcp-session-id"]
        return session

    async def send(self, method: str, session: str, **params: Any) -> int:
        message = {"jsonrpc": "2.0", "id": 1, "method": method, "params": params}
        headers = {"Mcp-Session-Id": session}
        return (await self._client.post("/mcp", json=message, headers=headers)).status_code

    async def end(self, session: str) -> None:
        await self._client.delete("/mcp", headers={"Mcp-Session-Id": session})
