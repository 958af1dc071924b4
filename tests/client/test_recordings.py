"""Taps, caches of lists, and the check of output schemas."""

from __future__ import annotations

import asyncio
import json
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import SERVED, STUB
from tests.conftest import load_app

from answerback import App, connect
from answerback.client import ConnectError
from answerback.core.peer import Progress

_REPLAY = """
import json, sys
file, server = sys.argv[1:]
lines = [json.loads(line) for line in open(file)]
lines = [each for each in lines if each.get("server", "") == server]
def key(message):
    params = message.get("params") or {}
    return message.get("method"), {name: params[name] for name in params if name != "_meta"}
for line in sys.stdin:
    asked = json.loads(line)
    if "id" not in asked or "method" not in asked:
        continue
    sent = [n for n, each in enumerate(lines) if each["direction"] == "sent"]
    place = next((n for n in sent if key(lines[n]["message"]) == key(asked)), len(lines))
    for each in lines[place + 1 :]:
        message = each["message"]
        is_response = message.get("id") == lines[place]["message"]["id"]
        if each["direction"] == "received" and ("method" in message or is_response):
            print(json.dumps({**message, "id": asked["id"]} if is_response else message))
            if is_response:
                break
    else:
        error = {"code": -32601, "message": "not in the recording"}
        print(json.dumps({"jsonrpc": "2.0", "id": asked["id"], "error": error}))
    sys.stdout.flush()
"""


def replayed(file: Path, server: str = "") -> list[str]:
    """The command of a server that answers as the recorded one did."""
    return [sys.executable, "-I", "-S", "-c", _REPLAY, str(file), server]


def test_a_tap_sees_every_message_so_that_its_file_can_be_replayed(
    target: Any, tmp_path: Path
) -> None:
    file = tmp_path / "tap.jsonl"

    async def use(target: Any, **options: Any) -> list[Any]:
        steps: list[Progress] = []
        async with connect(target, **options, elicit=lambda _: {"value": "Ada"}) as server:
            return [
                [tool.name for tool in await server.tools()],
                await server.call("add", x=1, y=2),
                (await server.options(progress=steps.append).call("steps")).content,
                await server.call("missing"),
                [step.progress for step in steps],
            ]

    recorded = asyncio.run(use(target, tap=file))
    again = asyncio.run(use(replayed(file)))

    lines = [json.loads(line) for line in file.read_text().splitlines()]
    assert {line["direction"] for line in lines} == {"sent", "received"}
    assert again[0] == recorded[0]
    assert again[1].data == recorded[1].data == 3
    assert again[2] == recorded[2]
    assert again[3].error == recorded[3].error
    assert again[4] == recorded[4] == [1, 2]


def test_the_recording_of_several_servers_says_which_server_each_message_is_of(
    tmp_path: Path,
) -> None:
    file = tmp_path / "tap.jsonl"

    def use(entries: dict[str, Any], **options: Any) -> list[Any]:
        with connect({"mcpServers": entries}, **options) as servers:
            names = sorted(tool.name for tool in servers.tools())
            replies = [servers.call(f"{name}_add", x=1, y=2).data for name in ("one", "two")]
            return [names, *replies, sorted(servers.servers)]

    recorded = use({"one": load_app(SERVED), "two": load_app(SERVED)}, tap=file)
    commands = {name: replayed(file, name) for name in ("one", "two")}
    again = use({name: {"command": each[0], "args": each[1:]} for name, each in commands.items()})

    servers = {json.loads(line)["server"] for line in file.read_text().splitlines()}
    assert servers == {"one", "two"}
    assert again == recorded
    assert again[1:] == [3, 3, ["one", "two"]]


def test_a_recording_is_not_overwritten(tmp_path: Path) -> None:
    file = tmp_path / "tap.jsonl"
    file.write_text("an older recording\n")

    context = connect(load_app(SERVED), tap=file)
    with pytest.raises(ConnectError, match="already has a recording"), context:
        pass

    assert file.read_text() == "an older recording\n"


def test_a_recording_that_cannot_be_written_is_an_error(tmp_path: Path) -> None:
    context = connect(load_app(SERVED), tap=tmp_path / "none" / "tap.jsonl")

    with pytest.raises(ConnectError, match="cannot record to"), context:
        pass


def test_a_tap_that_raises_loses_no_call_and_is_logged(caplog: pytest.LogCaptureFixture) -> None:
    def full(direction: str, frame: bytes) -> None:
        raise OSError("no space left on device")

    with connect(load_app(SERVED), tap=full, timeout=60) as server:
        reply = server.call("add", x=1, y=2)

    assert reply.data == 3
    assert "the tap raised" in caplog.text
    assert "no space left on device" in caplog.text


def test_a_tap_can_be_a_function() -> None:
    seen: list[tuple[str, bytes]] = []

    with connect(load_app(SERVED), tap=lambda *frame: seen.append(frame)) as server:
        server.call("add", x=1, y=2)

    assert seen[0][0] == "sent"
    assert b"server/discover" in seen[0][1]
    assert seen[-1][0] == "received"


def sent_methods(seen: list[tuple[str, bytes]]) -> list[str]:
    return [json.loads(frame)["method"] for direction, frame in seen if direction == "sent"]


def test_a_list_is_kept_until_the_server_tells_that_it_changed() -> None:
    app = load_app(SERVED)
    seen: list[tuple[str, bytes]] = []

    with connect(app, version="2025-11-25", tap=lambda *frame: seen.append(frame)) as server:
        before = [server.tools(), server.tools()]
        server.call("grow")
        after = server.tools()

    assert sent_methods(seen).count("tools/list") == 2
    assert len(before[0]) == len(before[1]) == len(after) - 1


def test_a_stateless_list_without_a_time_to_live_is_not_kept() -> None:
    seen: list[tuple[str, bytes]] = []

    with connect(load_app(SERVED), tap=lambda *frame: seen.append(frame)) as server:
        server.tools()
        server.tools()

    assert sent_methods(seen).count("tools/list") == 2


def test_data_that_breaks_the_output_schema_is_a_finding_or_an_error() -> None:
    with connect(STUB) as server:
        found = server.call("weather")
    with connect(STUB, output_schema="error") as server:
        refused = server.call("weather")

    assert found.ok
    assert found.data == {"degrees": "warm"}
    assert [each.rule for each in found.findings] == ["AB320"]
    assert found.findings[0].pointer == "/structuredContent/degrees"
    assert refused.error is not None
    assert refused.error.code == "INVALID_OUTPUT"


def test_an_output_schema_that_takes_too_long_to_check_is_a_finding_or_an_error() -> None:
    refs = "[{'$ref': f'#/$defs/d{at + 1}'}] * 2"
    defs = f"{{**{{f'd{{at}}': {{'allOf': {refs}}} for at in range(40)}}, 'd40': {{}}}}"
    hostile = STUB[-1].replace(
        '"outputSchema": schema',
        f"""'outputSchema': {{
        '$ref': '#/$defs/d0', '$defs': {defs}}}""",
    )

    with connect([*STUB[:-1], hostile]) as server:
        found = server.call("weather")
    with connect([*STUB[:-1], hostile], output_schema="error") as server:
        refused = server.call("weather")

    assert found.ok
    assert [each.rule for each in found.findings] == ["AB320"]
    assert "too large to be checked" in found.findings[0].message
    assert refused.error is not None
    assert refused.error.code == "INVALID_OUTPUT"


def test_a_stateless_list_is_kept_for_its_time_to_live() -> None:
    seen: list[tuple[str, bytes]] = []

    with connect(STUB, tap=lambda *frame: seen.append(frame)) as server:
        lists = [server.tools(), server.tools()]

    assert [len(each) for each in lists] == [1, 1]
    assert sent_methods(seen).count("tools/list") == 1


def test_the_lifespan_of_an_app_runs_while_it_is_connected_to() -> None:
    from collections.abc import Iterator
    from contextlib import contextmanager

    states: list[str] = []

    @contextmanager
    def lifespan(_: App) -> Iterator[None]:
        states.append("open")
        yield
        states.append("closed")

    app = App("living", lifespan=lifespan)

    with connect(app):
        during = list(states)

    assert during == ["open"]
    assert states == ["open", "closed"]
