"""The attacker and the unlucky client, over a pipe: each gets its due, and the next is served."""

from __future__ import annotations

import base64
import json
import os
import select
import signal
import threading
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.fuzz.pipes import (
    BOUND,
    EVERYTHING,
    HOSTILE,
    Pipe,
    call,
    cancel,
    checked,
    notification,
    pipe,
    request,
    says,
    wait_until,
)

MEGABYTE = 1024 * 1024
STATELESS: dict[str, Any] = {
    "io.modelcontextprotocol/protocolVersion": "2026-07-28",
    "io.modelcontextprotocol/clientCapabilities": {"elicitation": {}},
}
HUGE_CURSOR = base64.b64encode(b"from " + b"9" * 5000).decode()
PING = b'{"jsonrpc":"2.0","id":7,"method":"ping"}'


@pytest.fixture(scope="module")
def shared() -> Iterator[Pipe]:
    """One server for all attacks that it should survive."""
    with pipe() as server:
        yield server


@pytest.fixture
def client(shared: Pipe) -> Iterator[Pipe]:
    shared.initialize(elicitation={}, sampling={}, roots={})
    shared.others.clear()
    yield shared
    shared.still_serves()


@pytest.mark.parametrize(
    ("line", "code"),
    [
        (b"{", -32700),
        (b"nonsense", -32700),
        (PING[:-1], -32700),
        (PING + b"}", -32700),
        (PING + PING, -32700),
        (b"\xef\xbb\xbf" + PING, -32700),
        (PING + b"\0", -32700),
        (b"\0" + PING, -32700),
        (PING.replace(b"ping", b"p\0ng"), -32700),
        (PING.replace(b"ping", b"p\xffng"), -32700),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"\xc3("}}', -32700),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":"\xed\xa0\x80"}}', -32700),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":{"a":NaN}}', -32700),
        (b'{"jsonrpc":"2.0","id":7,"method":"ping","params":' + b"[" * 100_000, -32700),
        (b"[" * 100_000 + b"]" * 100_000, -32700),
        (b'{"a":' * 100_000 + b"1" + b"}" * 100_000, -32700),
        (b"null", -32600),
        (b"true", -32600),
        (b'"ping"', -32600),
        (b"{}", -32600),
        (b'{"jsonrpc":"2.0"}', -32600),
        (b'{"id":null,"jsonrpc":"2.0","method":"ping"}', -32600),
        (b'{"id":true,"jsonrpc":"2.0","method":"ping"}', -32600),
        (b'{"id":1.5,"jsonrpc":"2.0","method":"ping"}', -32600),
        (b'{"id":[1],"jsonrpc":"2.0","method":"ping"}', -32600),
        (b'{"id":{},"jsonrpc":"2.0","method":"ping"}', -32600),
    ],
)
def test_what_is_no_message_is_refused_without_an_id(client: Pipe, line: bytes, code: int) -> None:
    client.write(line + b"\n")

    said = client.receive()

    assert said["error"]["code"] == code
    assert "id" not in said


@pytest.mark.parametrize(
    ("frame", "code"),
    [
        ({"method": "no/such"}, -32601),
        ({"method": ""}, -32601),
        ({"method": "__init__"}, -32601),
        ({"method": "tools/call/"}, -32601),
        ({"method": "server/discover"}, -32601),
        ({"method": "subscriptions/listen", "params": {"notifications": {}}}, -32601),
        ({"method": 5}, -32600),
        ({"method": None}, -32600),
        ({"method": "ping", "jsonrpc": "1.0"}, -32600),
        ({"method": "ping", "jsonrpc": 2.0}, -32600),
        ({"method": "ping", "params": [1]}, -32600),
        ({"method": "ping", "params": "x"}, -32600),
        ({"method": "tools/call", "params": {}}, -32602),
        ({"method": "tools/call", "params": {"name": None}}, -32602),
        ({"method": "tools/call", "params": {"name": "no such"}}, -32602),
        ({"method": "tools/call", "params": {"name": "add", "arguments": [1, 2]}}, -32602),
        ({"method": "tools/call", "params": {"name": "add", "_meta": 5}}, -32602),
        ({"method": "tools/list", "params": {"cursor": 5}}, -32602),
        ({"method": "tools/list", "params": {"cursor": "forged"}}, -32602),
        ({"method": "tools/list", "params": {"cursor": HUGE_CURSOR}}, -32602),
        ({"method": "resources/read", "params": {"uri": "file:///etc/passwd"}}, -32002),
        ({"method": "prompts/get", "params": {"name": "no such"}}, -32602),
        ({"method": "logging/setLevel", "params": {"level": "loud"}}, -32602),
        ({"method": "completion/complete", "params": {"ref": {"type": "ref/x"}}}, -32602),
    ],
)
def test_a_wrong_request_is_answered_under_its_id(
    client: Pipe, frame: dict[str, Any], code: int
) -> None:
    client.send({"jsonrpc": "2.0", "id": "odd", **frame})

    assert client.answer("odd")["error"]["code"] == code


@pytest.mark.parametrize(
    "id", ["", "0", 0, -1, 2**53, 2**64, 10**40, "\u2603", "x" * 10_000, "\0", "__proto__"]
)
def test_an_odd_id_comes_back_as_it_was_sent(client: Pipe, id: Any) -> None:
    client.send(call(id, "add_in_thread", x=1, y=2))

    said = client.receive()

    assert said["id"] == id
    assert type(said["id"]) is type(id)
    assert said["result"]["isError"] is False


@pytest.mark.parametrize(
    "escape", [r"\ud800", r"\ud800 and more of it", r"\udc00\ud800", r"\ud800\u0041"]
)
@pytest.mark.parametrize("where", ["method", "name", "argument", "meta", "id"])
def test_half_a_character_breaks_nothing(client: Pipe, where: str, escape: str) -> None:
    texts = {
        "method": r'{"jsonrpc":"2.0","id":8,"method":"%s"}',
        "name": r'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"%s"}}',
        "argument": r'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":{"name":"watch",'
        r'"arguments":{"notes":"%s"}}}',
        "meta": r'{"jsonrpc":"2.0","id":8,"method":"tools/list","params":{"_meta":{"x":"%s"}}}',
        "id": r'{"jsonrpc":"2.0","id":"%s","method":"tools/list"}',
    }
    client.write((texts[where] % escape).encode() + b"\n")

    said = client.receive()

    if "error" in said:
        assert said["error"]["code"] in (-32700, -32602)
    else:
        assert said["result"].get("isError") is True or where == "meta"


def test_a_number_that_no_machine_holds_is_refused_where_it_matters(client: Pipe) -> None:
    for number in (b"1e999", b"-1e999", b"9" * 5000):
        client.write(
            b'{"jsonrpc":"2.0","id":8,"method":"tools/call","params":'
            b'{"name":"add","arguments":{"x":%b,"y":1}}}\n' % number
        )
        assert client.answer(8)["result"]["isError"] is True
        client.write(b'{"jsonrpc":"2.0","id":%b,"method":"ping"}\n' % number)
        assert client.receive()["error"]["code"] in (-32700, -32600)


def test_a_hundred_megabytes_on_a_line_are_refused_and_not_kept() -> None:
    with pipe() as client:
        client.still_serves()
        before = client.status("VmHWM")
        block = b"x" * MEGABYTE
        client.write(b'{"jsonrpc":"2.0","id":7,"method":"')
        for _ in range(100):
            client.write(block)
        client.write(b'"}\n')

        said = client.receive()

        assert said["error"]["code"] == -32600
        assert client.status("VmHWM") - before < 40 * 1024
        client.still_serves()


def test_a_line_just_below_the_limit_is_served(client: Pipe) -> None:
    client.send(call(7, "nap", notes="x" * (9 * MEGABYTE), chatty="no"))

    assert client.answer(7)["result"]["isError"] is True


def test_a_huge_line_that_never_ends_ends_the_server_with_its_input() -> None:
    with pipe() as client:
        client.write(b"y" * (11 * MEGABYTE))

        assert client.end() == 0
        assert client.receive()["error"]["code"] == -32600


def test_carriage_returns_and_blank_lines_do_no_harm(client: Pipe) -> None:
    client.write(b"\r\n\n  \t\r\n" + PING + b"\r\n\r\n")

    assert client.receive() == {"jsonrpc": "2.0", "id": 7, "result": {}}
    assert client.settle() == []


def test_a_message_may_arrive_byte_by_byte(client: Pipe) -> None:
    for byte in json.dumps(call(7, "add", x=1, y=2)).encode() + b"\n":
        client.write(bytes([byte]))

    assert client.answer(7)["result"]["isError"] is False


def test_many_messages_may_arrive_at_once(client: Pipe) -> None:
    client.send(*(call(number, "add_in_thread", x=number, y=1) for number in range(500)))

    said = [client.receive() for _ in range(500)]

    assert sorted(frame["id"] for frame in said) == list(range(500))


def test_the_last_line_needs_no_end() -> None:
    with pipe() as client:
        client.write(PING)

        assert client.end() == 0
        assert client.rest() == [{"jsonrpc": "2.0", "id": 7, "result": {}}]


@pytest.mark.parametrize("version", ["2024-11-05", "2025-06-18", "2025-11-25"])
def test_a_batch_is_refused_where_there_are_none(client: Pipe, version: str) -> None:
    client.initialize(version)

    client.send([request(1, "ping"), request(2, "ping")])

    assert client.receive()["error"]["code"] == -32600


def test_a_batch_of_anything_is_answered_one_by_one(client: Pipe) -> None:
    client.initialize("2025-03-26")

    client.send(
        [
            request(1, "ping"),
            5,
            {},
            [],
            notification("notifications/initialized"),
            request(2, "no/such"),
            request(3, "initialize", {"protocolVersion": "2025-03-26"}),
            call(4, "add", x=1, y="two"),
            {"jsonrpc": "2.0", "id": 5, "result": {}},
        ]
    )

    said = client.receive()
    assert [frame.get("id") for frame in said] == [1, None, None, None, 2, 3, 4]
    codes = [frame["error"]["code"] for frame in said if "error" in frame]
    assert codes == [-32600, -32600, -32600, -32601, -32600]


def test_an_empty_batch_is_refused_and_one_without_requests_is_not_answered(client: Pipe) -> None:
    client.initialize("2025-03-26")

    client.send([])
    client.send([notification("notifications/initialized")])

    assert client.receive()["error"]["code"] == -32600
    assert client.settle() == []


def test_a_batch_of_millions_is_refused_whole() -> None:
    with pipe() as client:
        client.initialize("2025-03-26")
        before = client.status("VmHWM")

        client.write(b"[" + b"1," * (4 * MEGABYTE) + b"1]\n")

        assert client.receive()["error"]["code"] == -32600
        assert client.status("VmHWM") - before < 400 * 1024
        client.still_serves()


def test_requests_are_served_before_and_after_a_second_initialize() -> None:
    with pipe() as client:
        client.still_serves()
        client.initialize("2024-11-05")
        listed = client.ask("tools/list")["result"]["tools"]
        assert all("outputSchema" not in tool for tool in listed)

        client.initialize("2025-11-25")

        assert any("outputSchema" in tool for tool in client.ask("tools/list")["result"]["tools"])


def test_a_notification_is_never_answered_whatever_is_in_it(client: Pipe) -> None:
    for method in ("notifications/cancelled", "notifications/progress", "no/such", "tools/call"):
        for odd in ("0", "[]", "null", "1.5", "{}"):
            client.send(notification(method, requestId=json.loads(odd)))

    assert client.settle() == []


def test_an_answer_to_a_question_never_asked_is_ignored(client: Pipe) -> None:
    for id in ("ask-1", "ask-999999", 1, ""):
        client.send({"jsonrpc": "2.0", "id": id, "result": {"action": "accept"}})
        client.send({"jsonrpc": "2.0", "id": id, "error": {"code": 1, "message": "no"}})

    assert client.settle() == []


def question_of(client: Pipe, tool: str) -> Any:
    client.send(call("asking", tool))
    question = client.receive()
    assert "method" in question
    return question


@pytest.mark.parametrize("tool", ["sure", "ask_name", "ask_model", "ask_roots"])
@pytest.mark.parametrize(
    "answer",
    [
        {"error": {"code": -1, "message": "hunter3"}},
        {"error": "nonsense"},
        {"error": None},
        {"result": None},
        {"result": 5},
        {"result": []},
        {"result": {}},
        {"result": {"action": 5}},
        {"result": {"action": "accept", "content": "x"}},
        {"result": {"action": "accept", "content": {"value": {}}}},
        {"result": {"content": 5, "roots": 5}},
        {"result": {"content": {"text": 5}, "roots": [5]}},
        {"result": {"content": {"type": "text", "text": None}, "model": 5}},
    ],
)
def test_garbage_for_an_answer_fails_that_call_alone(
    client: Pipe, tool: str, answer: dict[str, Any]
) -> None:
    question = question_of(client, tool)

    client.send({"jsonrpc": "2.0", "id": question["id"], **answer})

    said = client.answer("asking")
    assert said["result"]["isError"] is True or tool == "ask_model" or "roots" not in answer
    client.send({"jsonrpc": "2.0", "id": question["id"], **answer})
    assert client.settle() == []


@pytest.mark.parametrize("tool", ["sure", "ask_name"])
def test_a_cancelled_question_is_given_up(client: Pipe, tool: str) -> None:
    for _ in range(20):
        question = question_of(client, tool)
        client.send(cancel("asking"))
        wait_until(lambda: _is_free(client, "asking"))
        client.send({"jsonrpc": "2.0", "id": question["id"], "result": {"action": "decline"}})

    assert client.settle() == []


def _is_free(client: Pipe, id: str) -> bool:
    """Whether nothing runs under this id any more."""
    client.send(call(id, "add_in_thread", x=1, y=1))
    return "result" in client.answer(id)


@pytest.mark.parametrize("tool", ["sure", "ask_name"])
def test_one_who_closes_its_end_while_asked_is_not_waited_for(tool: str) -> None:
    with pipe() as client:
        client.initialize(elicitation={})
        question_of(client, tool)

        assert client.end() == 0
        assert [frame["id"] for frame in client.rest()] in ([], ["asking"])
        assert "Traceback" not in client.stderr()


def test_an_id_that_is_still_running_is_refused_and_the_first_goes_on(
    client: Pipe, tmp_path: Path
) -> None:
    gate = tmp_path / "gate"
    client.send(call(1, "wait_for", path=str(gate)), call(1, "add", x=1, y=2))

    assert client.answer(1)["error"]["code"] == -32600
    gate.touch()
    assert client.answer(1)["result"]["structuredContent"] == {"result": True}


@pytest.mark.parametrize("tool", ["watch", "chatter", "nap"])
@pytest.mark.parametrize("meta", [{}, STATELESS])
def test_a_cancelled_call_stops_and_nothing_more_is_written_for_it(
    client: Pipe, tmp_path: Path, tool: str, meta: dict[str, Any]
) -> None:
    notes = tmp_path / "notes"
    frame = call("doomed", tool, notes=str(notes), **({"chatty": True} if tool == "nap" else {}))
    frame["params"]["_meta"] = {"progressToken": "doomed", **meta}
    if meta:
        frame["params"]["_meta"]["io.modelcontextprotocol/logLevel"] = "debug"
    client.send(frame)
    wait_until(lambda: says(notes, "began"))

    client.send(cancel("doomed"))
    client.settle()
    client.settle()
    wait_until(lambda: says(notes, "cancelled"))

    assert client.settle() == []


def test_a_call_cancelled_as_soon_as_it_is_sent_is_not_answered(
    client: Pipe, tmp_path: Path
) -> None:
    for number in range(100):
        notes = tmp_path / str(number)
        tool = ("watch", "nap")[number % 2]
        client.send(call(number, tool, notes=str(notes)), cancel(number))

    assert client.settle() == []
    for number in range(100):
        notes = tmp_path / str(number)
        wait_until(lambda notes=notes: not notes.exists() or says(notes, "cancelled"))
    assert client.settle() == []


def test_cancelling_what_is_over_or_never_was_is_ignored(client: Pipe) -> None:
    client.send(call(1, "add_in_thread", x=1, y=1))
    client.answer(1)

    client.send(cancel(1), cancel("never"), cancel(1))

    assert client.settle() == []


def test_cancelling_races_with_answering_and_neither_breaks(client: Pipe) -> None:
    for number in range(300):
        client.send(call(number, ("add_in_thread", "add_async")[number % 2], x=1, y=1))
        client.send(cancel(number))

    client.still_serves()
    seen = [frame["id"] for frame in client.others]
    assert len(seen) == len(set(seen))
    assert all("result" in frame for frame in client.others)


def test_calls_in_flight_are_answered_after_stdin_is_closed(tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with pipe(EVERYTHING) as client:
        client.send(*(call(number, "wait_for", path=str(gate)) for number in range(5)))
        client.send(call("last", "add_async", x=1, y=1))
        client.answer("last")

        client.close_stdin()
        gate.touch()

        assert sorted(frame["id"] for frame in client.rest()) == [0, 1, 2, 3, 4]
        assert client.process.wait(BOUND) == 0


@pytest.mark.parametrize("tool", ["add", "add_in_thread", "add_async"])
def test_nobody_reading_ends_the_server(tool: str) -> None:
    with pipe() as client:
        client.still_serves()
        client.close_stdout()

        client.send(call(1, tool, x=1, y=1))

        client.process.wait(BOUND)
        assert "Traceback" not in client.stderr()


def test_nobody_reading_broken_input_ends_the_server() -> None:
    with pipe() as client:
        client.still_serves()
        client.close_stdout()

        client.write(b"nonsense\n")

        client.process.wait(BOUND)
        assert "Traceback" not in client.stderr()


def test_one_who_goes_while_much_is_told_ends_the_server() -> None:
    with pipe() as client:
        frame = call(1, "flood", count=10_000_000, size=1000)
        frame["params"]["_meta"] = {"progressToken": 1}
        client.send(frame)
        client.receive()
        client.close_stdout()

        client.process.wait(BOUND)
        assert "Traceback" not in client.stderr()


def test_a_slow_reader_loses_nothing_and_costs_little() -> None:
    with pipe() as client:
        client.still_serves()
        before = client.status("VmRSS")
        count = 20_000
        calls = b"".join(
            json.dumps(call(number, "add_in_thread", x=number, y=1)).encode() + b"\n"
            for number in range(count)
        )
        writing = threading.Thread(target=client.write, args=(calls,))
        writing.start()
        # The pipes are full and nothing moves any more.
        wait_until(lambda: _is_stuck(client))
        kept = client.status("VmRSS") - before

        said = [client.receive() for _ in range(count)]
        writing.join(BOUND)

        assert kept < 30 * 1024
        assert sorted(frame["id"] for frame in said) == list(range(count))
        client.still_serves()


def _is_stuck(client: Pipe) -> bool:
    """Whether the server used no time between two looks that are far enough apart."""
    before = _ticks(client)
    select.poll().poll(200)
    return _ticks(client) == before


def _ticks(client: Pipe) -> list[str]:
    fields = Path(f"/proc/{client.process.pid}/stat").read_text().rpartition(")")[2].split()
    return fields[11:13]


def test_a_slow_reader_of_much_progress_costs_little() -> None:
    with pipe() as client:
        client.still_serves()
        before = client.status("VmRSS")
        frame = call(1, "flood", count=50_000, size=1000)
        frame["params"]["_meta"] = {"progressToken": 1}
        client.send(frame)
        wait_until(lambda: _is_stuck(client))

        assert client.status("VmRSS") - before < 20 * 1024
        assert client.answer(1)["result"]["isError"] is False


@pytest.mark.parametrize("path", [EVERYTHING, HOSTILE])
def test_two_hundred_calls_in_flight_do_not_block_one_another(path: Path, tmp_path: Path) -> None:
    gate = tmp_path / "gate"
    with pipe(path) as client:
        client.send(*(call(number, "wait_for", path=str(gate)) for number in range(200)))
        client.still_serves()
        assert client.others == []

        gate.touch()

        said = [client.receive() for _ in range(200)]
        assert {frame["id"] for frame in said} == set(range(200))
        assert all(frame["result"]["structuredContent"] == {"result": True} for frame in said)


@pytest.mark.parametrize("tool", ["leave_async", "interrupt", "give_up"])
def test_a_tool_that_would_end_the_program_ends_only_its_call(client: Pipe, tool: str) -> None:
    client.send(call(1, tool))

    assert client.answer(1)["result"]["isError"] is True
    client.send(call(2, "add_async", x=1, y=1))
    assert client.answer(2)["result"]["isError"] is False


@pytest.mark.parametrize("tool", ["loud", "leave", "leak", "leak_async", "cycle", "infinite"])
def test_what_a_tool_prints_or_raises_never_reaches_the_wire(tool: str) -> None:
    with pipe(EVERYTHING) as client:
        client.send(call(1, tool))

        assert client.receive()["result"]["isError"] is (tool != "loud")
        client.still_serves()
        assert client.others == []


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
@pytest.mark.parametrize("busy", [None, "watch", "nap", "sure"])
def test_a_signal_ends_the_server_without_a_word(
    number: signal.Signals, busy: str | None, tmp_path: Path
) -> None:
    with pipe() as client:
        client.initialize(elicitation={})
        if busy == "sure":
            question_of(client, busy)
        elif busy is not None:
            client.send(call(1, busy, notes=str(tmp_path / "notes")))
            wait_until(lambda: says(tmp_path / "notes", "began"))

        client.process.send_signal(number)

        assert client.process.wait(BOUND) in (0, 130, 143, -number)
        assert client.stderr() == ""


def test_subscriptions_that_nobody_ends_end_with_the_pipe() -> None:
    with pipe() as client:
        for number in range(50):
            wanted = {
                "notifications": {"resourceSubscriptions": ["note://one"]},
                "_meta": STATELESS,
            }
            client.send(request(number, "subscriptions/listen", wanted))
            assert client.receive()["method"] == "notifications/subscriptions/acknowledged"
        client.send(cancel(0), call("change", "change"))

        client.answer("change")

        heard = [
            frame["params"]["_meta"]["io.modelcontextprotocol/subscriptionId"]
            for frame in client.others
        ]
        assert heard == list(range(1, 50))
        assert client.end() == 0


def test_a_pipe_that_is_closed_at_once_is_no_trouble() -> None:
    with pipe() as client:
        assert client.end() == 0
        assert client.rest() == []
        assert client.stderr() == ""


def test_garbage_of_every_byte_is_answered_line_by_line(client: Pipe) -> None:
    noise = [bytes([byte]) * 3 for byte in range(256) if byte not in b"\n"]
    blank = [line for line in noise if not line.strip()]
    client.write(b"\n".join(noise) + b"\n")

    said = [client.receive() for _ in range(len(noise) - len(blank))]

    assert {frame["error"]["code"] for frame in said} <= {-32700, -32600}
    assert client.settle() == []


def test_checked_sees_what_must_not_be_sent() -> None:
    """The judge itself is judged: it would see a leak, a null id and a NaN."""
    for bad in (
        b'{"jsonrpc":"2.0","id":1,"result":{"a":"hunter2"}}',
        b'{"jsonrpc":"2.0","id":null,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":NaN}',
        b'{"jsonrpc":"2.0","id":1,"result":{},"error":{}}',
        b'{"id":1,"result":{}}',
        b'{"jsonrpc":"2.0","id":1,"result":{"a":"%b"}}' % os.fsencode(HOSTILE),
    ):
        with pytest.raises((AssertionError, ValueError, KeyError)):
            checked(bad)
