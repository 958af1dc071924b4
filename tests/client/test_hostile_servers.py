"""Servers that break the rules: no call is lost, none is doubled, and time-outs hold."""

from __future__ import annotations

import asyncio
import os
import pty
import subprocess
import sys
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.loop_clock import advance_clock
from tests.server.processes import wait_until

from answerback import connect

SERVER = Path(__file__).parent / "hostile_server.py"


def hostile(effects: Path, how_to_list: str = "") -> list[str]:
    return [sys.executable, "-I", "-S", str(SERVER), str(effects), how_to_list]


@pytest.fixture(scope="module")
def effects(tmp_path_factory: pytest.TempPathFactory) -> Path:
    return tmp_path_factory.mktemp("hostile") / "effects"


@pytest.fixture(scope="module")
def server(effects: Path) -> Iterator[Any]:
    """One connection for all tests; it is opened again after the server has died."""
    with connect(hostile(effects), timeout=600) as found:
        found.tools()
        yield found


def runs(effects: Path) -> int:
    return effects.read_text().count("ran") if effects.exists() else 0


@pytest.mark.parametrize("how", ["other ids", "twice", "stderr"])
def test_only_the_first_answer_to_the_call_counts(server: Any, effects: Path, how: str) -> None:
    before = runs(effects)

    replies = [server.call("act", how=how), server.call("act")]

    assert [reply.for_model() for reply in replies] == ["fine", "fine"]
    assert runs(effects) == before + 2


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("deep", "nested too deeply"),
        ("cut", "cannot be read"),
        ("no UTF-8", "utf-8"),
        ("null", "cannot be read"),
        ("id at the end", "cannot be read"),
        ("neither", "neither a result nor an error"),
    ],
)
def test_an_answer_that_cannot_be_read_is_a_failed_reply_at_once(
    server: Any, effects: Path, how: str, said: str
) -> None:
    before = runs(effects)

    reply = server.call("act", how=how)

    assert reply.error.code == "INVALID_RESPONSE_FORMAT"
    assert said in reply.error.message
    assert reply.error.details["may_have_run"] is True
    assert runs(effects) == before + 1


@pytest.mark.parametrize(
    ("how", "code", "said", "data"),
    [
        ("error text", -32603, "boom", None),
        ("code alone", -32603, "error E1", {"code": "E1"}),
        ("code text", -32603, "over quota", {"code": "QUOTA", "data": 7}),
        ("code as text", -32602, "no city", None),
        ("message number", -32602, "42", None),
        ("error list", -32603, '["boom"]', None),
    ],
)
def test_an_error_with_members_of_other_types_keeps_the_message_of_the_server(
    server: Any, how: str, code: int, said: str, data: Any
) -> None:
    reply = server.call("act", how=how)

    assert reply.error.message == said
    assert reply.error.details["code"] == code
    assert reply.error.details.get("data") == data


@pytest.mark.parametrize(
    ("how", "shown"), [("half a character", "ab\ufffd"), ("NaN", '{"n":null}')]
)
def test_an_answer_that_is_nearly_json_is_read_as_read_reads_it(
    server: Any, how: str, shown: str
) -> None:
    reply = server.call("act", how=how)

    assert reply.ok, reply.error
    assert reply.for_model() == shown


@pytest.mark.parametrize(
    ("how", "said"),
    [
        ("close stdout", "closed its stdin or stdout"),
        ("close stdin", "closed its stdin or stdout"),
        ("too large", "too large"),
        ("die", "exit status 9"),
    ],
)
def test_a_server_that_breaks_off_is_a_failed_reply_and_is_started_again(
    server: Any, effects: Path, how: str, said: str
) -> None:
    before = runs(effects)

    broken, after = server.call("act", how=how), server.call("act")

    assert broken.error.code == "UNAVAILABLE"
    assert said in broken.error.message
    assert broken.error.details["may_have_run"] is True
    assert after.ok, after.error
    assert runs(effects) == before + 2


def test_a_tap_is_private_and_takes_answers_that_cannot_be_read(tmp_path: Path) -> None:
    tap = tmp_path / "tap.jsonl"

    with connect(hostile(tmp_path / "effects"), timeout=60, tap=tap) as server:
        replies = [server.call("act", how=how) for how in ("deep", "cut", "no UTF-8", "fine")]

    codes = [reply.error.code if reply.error else None for reply in replies]
    assert codes == [*["INVALID_RESPONSE_FORMAT"] * 3, None]
    assert len(tap.read_text().splitlines()) >= 8
    assert tap.stat().st_mode & 0o777 == 0o600


@pytest.mark.parametrize("how", ["hang", "notifications", "requests"])
def test_a_time_out_holds_while_the_server_hangs_or_floods(how: str, tmp_path: Path) -> None:
    with connect(hostile(tmp_path / "effects")) as flooded:
        began = time.monotonic()
        reply = flooded.options(timeout=0.5).call("act", how=how)
        taken = time.monotonic() - began
        wait_until(lambda: runs(tmp_path / "effects"))

    assert reply.error is not None
    assert reply.error.code == "TIMED_OUT"
    assert taken >= 0.5
    assert runs(tmp_path / "effects") == 1


@pytest.mark.parametrize(("how", "count"), [("cycle", 1), ("endless", 1001), ("crowd", 10_000)])
def test_a_list_without_an_end_is_cut(
    how: str, count: int, tmp_path: Path, caplog: pytest.LogCaptureFixture
) -> None:
    with connect(hostile(tmp_path / "effects", how), timeout=60) as endless:
        tools = endless.tools()

    assert len(tools) == count
    assert "using the first" in caplog.text


def test_a_list_ends_with_the_time_out_of_the_request(tmp_path: Path) -> None:
    pages: list[bytes] = []

    def tap(direction: str, frame: bytes) -> None:
        if direction == "sent" and b"tools/list" in frame:
            pages.append(frame)
            if len(pages) == 3:
                advance_clock(120)

    async def run() -> None:
        command = hostile(tmp_path / "effects", "endless")
        async with connect(command, timeout=60, tap=tap) as endless:
            await endless.tools()

    with pytest.raises(Exception, match="did not answer tools/list within 60 seconds"):
        asyncio.run(run())

    assert len(pages) == 3


def run_at_terminal(arguments: list[str]) -> bytes:
    """The output of the command, whose stdout and stderr are a terminal."""
    main, end = pty.openpty()
    command = [sys.executable, "-m", "answerback", *arguments]
    with subprocess.Popen(command, stdin=subprocess.DEVNULL, stdout=end, stderr=end) as running:
        os.close(end)
        output = b""
        try:
            while chunk := os.read(main, 65_536):
                output += chunk
        except OSError:
            pass  # On Linux a terminal ends with an error.
        running.wait(timeout=30)
    os.close(main)
    return output


@pytest.mark.parametrize(
    "arguments",
    [["list"], ["call", "act", "how=escapes"], ["call", "act", "how=failing escapes"], ["call"]],
    ids=["list", "a reply", "a failure", "no tool"],
)
def test_escape_sequences_of_a_server_never_reach_the_terminal(
    arguments: list[str], tmp_path: Path
) -> None:
    import shlex

    command, *rest = arguments
    target = shlex.join(hostile(tmp_path / "effects", "escapes"))

    output = run_at_terminal([command, target, *rest])

    shown = output.decode()
    assert "red" in shown
    assert not {"\x1b", "\x07", "\x9b", "\u202e"} & set(shown)
