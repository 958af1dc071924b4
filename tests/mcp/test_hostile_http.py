"""The attacker and the unlucky client, over HTTP: each gets its due, and the next is served."""

from __future__ import annotations

import asyncio
import json
import select
import signal
import socket
import threading
import time
from base64 import b64encode
from collections.abc import Iterator, MutableMapping
from contextlib import suppress
from hashlib import blake2b
from pathlib import Path
from typing import Any

import msgspec
import pytest
from tests.fuzz.pipes import BOUND, HOSTILE, call, cancel, notification, request, says, wait_until
from tests.fuzz.posts import (
    BOTH,
    EVENTS,
    JSON,
    Said,
    Site,
    raw_post,
    routing,
    site,
    stateless_call,
    stateless_request,
)

from answerback import App, Context
from answerback.mcp.session import ClientCapabilities
from answerback.mcp.session_id import LIFETIME, SessionId
from answerback.mcp.signing import Signer
from answerback.versions import STATEFUL

OURS, OLD, FOREIGN = Signer(b"one"), Signer(b"two"), Signer(b"other")
KILOBYTE = 1024
CAPABILITIES = "io.modelcontextprotocol/clientCapabilities"


@pytest.fixture(scope="module")
def shared() -> Iterator[Site]:
    """One server for all attacks that it should survive."""
    with site() as server:
        yield server


@pytest.fixture
def served(shared: Site) -> Iterator[Site]:
    before = shared.complaints()
    yield shared
    shared.still_serves()
    assert shared.complaints() == before


# Sessions


def ticket(age: int = 0) -> SessionId:
    fresh = SessionId.issue(STATEFUL["2025-11-25"], ClientCapabilities(form=True), home=0)
    return msgspec.structs.replace(fresh, issued=int(time.time()) - age)


def flipped(token: str, place: int) -> str:
    other = "A" if token[place] != "A" else "B"
    return token[:place] + other + token[place + 1 :]


GOOD = ticket().sign(OURS)


def in_session(served: Site, id: str, method: str = "POST") -> Said:
    body = json.dumps(call(1, "add", x=1, y=2)).encode() if method == "POST" else b""
    return served.send(body, {"Mcp-Session-Id": id}, method=method, listens=True)


@pytest.mark.parametrize("sealer", [OURS, OLD])
def test_a_session_sealed_with_any_of_the_keys_is_served(served: Site, sealer: Signer) -> None:
    assert in_session(served, ticket().sign(sealer)).status == 200


FORGED_IDS = {
    "short": "x",
    "plain": "A" * len(GOOD),
    "huge": "A" * 50_000,
    "not ascii": "\xe9\xb2\xff",
    "without its end": GOOD[:-1],
    "without its beginning": GOOD[1:],
    "with more": GOOD + "A",
    "padded": GOOD + "=",
    "twice": f"{GOOD}, {GOOD}",
    "half": GOOD[:-8],
    "of another key": ticket().sign(FOREIGN),
    "too old": ticket(LIFETIME + 1).sign(OURS),
    "of tomorrow": ticket(-3600).sign(OURS),
    "empty": OURS.sign(b"", b"session"),
    "of no time": OURS.sign(bytes(24), b"session"),
    "of no version": OURS.sign(bytes([255]) * 24, b"session"),
    "for another purpose": OURS.sign(bytes(24), b"round"),
}


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
@pytest.mark.parametrize("which", FORGED_IDS)
def test_a_session_id_that_is_not_ours_is_not_found(served: Site, which: str, method: str) -> None:
    said = in_session(served, FORGED_IDS[which], method)

    assert said.status == 404
    assert said.code == -32600
    assert GOOD[:20] not in json.dumps(said.frame)


def test_a_session_id_with_any_character_changed_is_not_found(served: Site) -> None:
    for place in range(len(GOOD)):
        assert in_session(served, flipped(GOOD, place)).status == 404, place


def test_a_session_ends_in_time_even_while_it_is_used(served: Site) -> None:
    id = ticket(LIFETIME - 2).sign(OURS)
    assert in_session(served, id).status == 200

    wait_until(lambda: in_session(served, id).status == 404)


@pytest.mark.parametrize("method", ["POST", "GET", "DELETE"])
def test_a_session_that_was_ended_is_not_found(served: Site, method: str) -> None:
    session = served.initialize()
    assert served.send(headers=session, method="DELETE").status == 204

    assert in_session(served, session["Mcp-Session-Id"], method).status == 404


def test_a_session_cannot_cancel_or_answer_for_another(served: Site, tmp_path: Path) -> None:
    mine, theirs = served.initialize(elicitation={}), served.initialize(elicitation={})
    gate = tmp_path / "gate"
    frame = call(1, "finish", notes=str(tmp_path / "n"), gate=str(gate))
    line = served.post_and_leave(frame, {**mine, "Connection": "close"})
    wait_until(lambda: says(tmp_path / "n", "began"))

    assert served.post(cancel(1), theirs).status == 202
    assert served.post(cancel(1), {}).status == 202

    gate.touch()
    assert b'"isError":false' in read_all(line)


def test_thousands_of_abandoned_sessions_cost_next_to_nothing(tmp_path: Path) -> None:
    count = 10_000
    with site() as served:
        for _ in range(1500):
            served.post(call(1, "add", x=1, y=2), served.initialize())
        before = served.status("VmRSS")

        for number in range(count):
            session = served.initialize("2025-06-18")
            if number % 10 == 0:
                served.post(call(1, "add", x=1, y=2), session)

        grown = (served.status("VmRSS") - before) * KILOBYTE
        assert grown / count < 512
        served.still_serves()


# Request state


def state_for(
    name: str, arguments: bytes, answers: dict[str, Any], *, expires: float = 60
) -> bytes:
    """As the library packs it."""
    digest = blake2b(b"tool\0%b\0%b" % (name.encode(), arguments), digest_size=16).digest()
    return msgspec.msgpack.encode([int(time.time() + expires), digest, answers])


def asked_once(served: Site, name: str = "ask_name", **arguments: Any) -> tuple[str, str]:
    """The key of the question and the state that came with it."""
    result = served.stateless(stateless_call(1, name, **arguments)).frame["result"]
    assert result["resultType"] == "input_required"
    (key,) = result["inputRequests"]
    return key, result["requestState"]


def again(served: Site, state: Any, frame: Any, answers: Any = None) -> Said:
    frame["params"] |= {"requestState": state, "inputResponses": {} if answers is None else answers}
    return served.stateless(frame)


def test_a_state_is_taken_back_with_its_answer(served: Site) -> None:
    key, state = asked_once(served)

    answer = {key: {"action": "accept", "content": {"value": "Ada"}}}
    said = again(served, state, stateless_call(2, "ask_name"), answer)

    assert said.frame["result"]["structuredContent"] == {"result": "Hello, Ada!"}


FORGED_STATES = {
    "empty": "",
    "short": "x",
    "plain": "A" * 200,
    "not ascii": "\u2603",
    "a session": GOOD,
    "of nothing": OURS.sign(b"", b"round"),
    "of garbage": OURS.sign(b"\xc1", b"round"),
    "too old": OURS.sign(state_for("ask_name", b"{}", {}, expires=-1), b"round"),
    "of another key": FOREIGN.sign(state_for("ask_name", b"{}", {}), b"round"),
    "for another purpose": OURS.sign(state_for("ask_name", b"{}", {}), b"session"),
    "for another tool": OURS.sign(state_for("ask_model", b"{}", {}), b"round"),
}


@pytest.mark.parametrize("which", FORGED_STATES)
def test_a_state_that_is_not_ours_for_this_request_is_refused(served: Site, which: str) -> None:
    said = again(served, FORGED_STATES[which], stateless_call(2, "ask_name"))

    assert (said.status, said.code) == (400, -32602)
    assert said.frame["error"]["message"] == "Invalid requestState"
    assert said.frame["id"] == 2


@pytest.mark.parametrize("state", [5, [], {}, True, 1.5])
def test_a_state_that_is_no_text_is_refused(served: Site, state: Any) -> None:
    said = again(served, state, stateless_call(2, "ask_name"))

    assert (said.status, said.code) == (400, -32602)


def test_a_state_with_any_character_changed_is_refused(served: Site) -> None:
    _, state = asked_once(served)

    for place in range(0, len(state), 3):
        said = again(served, flipped(state, place), stateless_call(2, "ask_name"))
        assert (said.status, said.code) == (400, -32602), place


def test_a_state_is_good_for_its_own_request_only(served: Site) -> None:
    _, state = asked_once(served)
    prompt = stateless_request(2, "prompts/get", name="ask_name", arguments={})

    for frame in (
        stateless_call(2, "ask_name", greeting="Goodbye"),
        stateless_call(2, "ask_model"),
        prompt,
    ):
        said = again(served, state, frame)
        assert (said.status, said.code) == (400, -32602), frame["method"]


@pytest.mark.parametrize(
    "answers",
    [
        {"nobody asked": {"action": "accept"}},
        {"KEY": {"action": "decline"}},
        {"KEY": {"action": 5}},
        {"KEY": {}},
        {"KEY": {"action": "accept", "content": 5}},
        {"KEY": {"action": "accept", "content": {"value": {"deep": []}}}},
    ],
)
def test_garbage_for_an_answer_fails_that_call_alone(served: Site, answers: Any) -> None:
    key, state = asked_once(served)
    given = {key if name == "KEY" else name: value for name, value in answers.items()}

    result = again(served, state, stateless_call(2, "ask_name"), given).frame["result"]

    assert result.get("isError") is True or result["resultType"] == "input_required"


@pytest.mark.parametrize("answers", [5, [], "x", {"k": 5}, {"k": []}])
def test_answers_of_the_wrong_shape_are_refused(served: Site, answers: Any) -> None:
    said = again(served, None, stateless_call(2, "ask_name"), answers)

    assert (said.status, said.code) == (400, -32602)


# Streams that are taken up again


def test_a_stream_is_taken_up_by_its_own_session_only(served: Site) -> None:
    mine, theirs = served.initialize(), served.initialize()
    wanted = {**mine, "Accept": EVENTS, "Connection": "close"}
    line = served.post_and_leave(call(1, "big", size=10), wanted)
    text = read_all(line)
    id = text.partition(b"id: ")[2].split()[0].decode().rpartition("-")[0]

    resumed = served.send(headers={**mine, "Last-Event-ID": f"{id}-0"}, method="GET", listens=True)
    assert resumed.frames[0]["id"] == 1

    for session, last in (
        (theirs, f"{id}-0"),
        (mine, f"{id}-\xb2"),
        (mine, f"{id}-{'9' * 5000}"),
        (mine, f"{id}--1"),
        (mine, f"{id}x-0"),
        (mine, "9" * 60_000),
        (mine, "-"),
        (mine, "\xb2.x-\xb2"),
        (mine, "65535.x-0"),
    ):
        stream = served.open()
        lines = "\r\n".join(f"{name}: {value}" for name, value in session.items())
        head = f"GET /mcp HTTP/1.1\r\nHost: localhost\r\n{lines}\r\nLast-Event-ID: {last}\r\n\r\n"
        stream.sendall(head.encode("latin-1"))
        answer = stream.recv(65536)
        assert b" 500 " not in answer.partition(b"\r\n")[0]
        assert b'"id":1' not in answer
        stream.close()


@pytest.mark.parametrize("last", ["7.x-0", "9999.x-0"])
def test_one_who_comes_back_to_a_worker_that_never_was_listens_all_the_same(
    served: Site, last: str
) -> None:
    session = served.initialize()
    assert served.post(request(1, "resources/subscribe", {"uri": "note://one"}), session).status
    stream = served.open()
    lines = "\r\n".join(f"{name}: {value}" for name, value in session.items())
    head = f"GET /mcp HTTP/1.1\r\nHost: localhost\r\n{lines}\r\nLast-Event-ID: {last}\r\n\r\n"
    stream.sendall(head.encode())
    read_until(stream, b"\r\n\r\n")

    served.post(call(2, "change"), session)

    # A sign of life ends so too.
    assert b"resources/updated" in read_until(stream, b"\n\n")


# Who may speak


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Host": "evil.example:80"}, 421),
        ({"Host": "localhost.evil.example"}, 421),
        ({"Host": "127.0.0.1.evil.example"}, 421),
        ({"Host": "169.254.169.254"}, 421),
        ({"Origin": "http://evil.example"}, 403),
        ({"Origin": "null"}, 403),
        ({"Origin": "http://localhost.evil.example"}, 403),
        ({"Origin": "https://127.0.0.1:1"}, 403),
        ({"Host": "evil.example", "Origin": "http://evil.example"}, 421),
    ],
)
@pytest.mark.parametrize("path", ["/mcp", "/message"])
def test_a_stranger_s_page_is_not_served(
    served: Site, headers: dict[str, str], status: int, path: str
) -> None:
    for method in ("POST", "GET", "DELETE", "OPTIONS"):
        body = json.dumps(call(1, "add", x=1, y=2)).encode() if method == "POST" else b""
        assert served.send(body, headers, method=method, path=path).status == status


@pytest.mark.parametrize("name", ["Host", "Origin"])
@pytest.mark.parametrize("turn", [1, -1])
def test_a_second_header_does_not_hide_the_first(served: Site, name: str, turn: int) -> None:
    here = f"127.0.0.1:{served.port}"
    good, bad = (here, "evil.example") if name == "Host" else (f"http://{here}", "http://evil")
    first, second = (good, bad)[::turn]
    body = json.dumps(call(1, "add", x=1, y=2)).encode()
    host = "" if name == "Host" else f"Host: {here}\r\n"
    line = served.open()
    line.sendall(
        f"POST /mcp HTTP/1.1\r\n{host}{name}: {first}\r\n{name}: {second}\r\n"
        f"Content-Length: {len(body)}\r\nContent-Type: {JSON}\r\n"
        "Connection: close\r\n\r\n".encode()
        + body
    )

    assert status_of(read_all(line)) in (400, 403, 421)


# Wrong forms


@pytest.mark.parametrize(
    ("method", "headers", "status"),
    [
        ("POST", {"Accept": "text/html"}, 406),
        ("POST", {"Accept": "image/png, text/plain"}, 406),
        ("POST", {"Content-Type": "text/plain"}, 415),
        ("POST", {"Content-Type": "application/x-www-form-urlencoded"}, 415),
        ("POST", {"Content-Type": "multipart/form-data; boundary=x"}, 415),
        ("PUT", {}, 405),
        ("PATCH", {}, 405),
        ("OPTIONS", {}, 405),
        ("BREW", {}, 400),
        ("GET", {}, 405),
        ("DELETE", {}, 400),
        ("GET", {"Mcp-Protocol-Version": "2026-07-28"}, 405),
        ("DELETE", {"Mcp-Protocol-Version": "2026-07-28"}, 405),
        ("GET", {"Mcp-Protocol-Version": "2099-01-01"}, 405),
    ],
)
def test_a_request_of_the_wrong_form_is_refused(
    served: Site, method: str, headers: dict[str, str], status: int
) -> None:
    body = json.dumps(call(1, "add", x=1, y=2)).encode() if method == "POST" else b""

    if method == "BREW":
        line = served.open()
        line.sendall(b"BREW /mcp HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
        assert status_of(read_all(line)) in (400, 405)
        return
    said = served.send(body, headers, method=method)

    assert said.status == status
    assert "error" in said.frame
    assert ("allow" in said.headers) == (status == 405)


@pytest.mark.parametrize(
    ("body", "code"),
    [
        (b"", -32700),
        (b"{", -32700),
        (b"\xff", -32700),
        (b"[" * 100_000, -32700),
        (b'{"a":' * 100_000, -32700),
        (b"\xef\xbb\xbf{}", -32700),
        (b"null", -32600),
        (b"5", -32600),
        (b"{}", -32600),
        (b"[]", -32600),
    ],
)
@pytest.mark.parametrize("version", ["2025-11-25", "2026-07-28", ""])
def test_what_is_no_message_is_refused_without_an_id(
    served: Site, body: bytes, code: int, version: str
) -> None:
    said = served.send(body, {"Mcp-Protocol-Version": version})

    assert (said.status, said.code) == (400, code)
    assert "id" not in said.frame


@pytest.mark.parametrize("version", ["2025-06-18", "2025-11-25", "2024-11-05"])
def test_a_batch_is_refused_where_there_are_none(served: Site, version: str) -> None:
    said = served.post([request(1, "ping")], {"Mcp-Protocol-Version": version})

    assert (said.status, said.code) == (400, -32600)


def test_a_batch_of_anything_is_answered_one_by_one(served: Site) -> None:
    batch = [request(1, "ping"), 5, [], notification("x"), request(2, "no/such"), cancel(1)]

    said = served.post(batch, {"Mcp-Protocol-Version": "2025-03-26"})

    assert said.status == 200
    assert [frame.get("id") for frame in said.frame] == [1, None, None, 2]
    assert served.post([cancel(1)], {"Mcp-Protocol-Version": "2025-03-26"}).status == 202


def test_a_batch_that_asks_nothing_has_no_events_even_where_they_are_named_first(
    served: Site,
) -> None:
    wanted = {**served.initialize("2025-03-26"), "Accept": f"{EVENTS}, {JSON}"}

    assert served.post([notification("x"), cancel(1)], wanted).status == 202


def test_a_batch_that_is_cancelled_after_it_has_spoken_has_one_answer(
    served: Site, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    session = served.initialize("2025-03-26")
    frame = call(1, "nap", notes=str(notes), chatty=True)
    frame["params"]["_meta"] = {"progressToken": 1}
    line = served.post_and_leave([frame], {**session, "Connection": "close"})
    read_until(line, b"notifications/progress")

    assert served.post(cancel(1), session).status == 202

    rest = read_all(line)
    assert b"HTTP/1.1" not in rest
    assert rest.endswith(b"0\r\n\r\n")


def test_a_batch_of_millions_is_refused_whole() -> None:
    with site() as served:
        served.still_serves()
        before = served.status("VmHWM")

        said = served.send(b"[" + b"1," * 1_900_000 + b"1]", {"Mcp-Protocol-Version": "2025-03-26"})

        assert (said.status, said.code) == (400, -32600)
        assert served.status("VmHWM") - before < 200 * KILOBYTE
        served.still_serves()


@pytest.mark.parametrize("accept", ["Application/JSON", "TEXT/Event-Stream"])
def test_what_is_accepted_may_be_said_in_capitals(served: Site, accept: str) -> None:
    assert served.post(call(1, "add", x=1, y=2), {"Accept": accept}).status == 200


# The version, and what stands in headers too


@pytest.mark.parametrize(
    ("headers", "code"),
    [
        ({"Mcp-Protocol-Version": "2025-11-25"}, -32020),
        ({"Mcp-Protocol-Version": "2099-01-01"}, -32020),
        ({"Mcp-Protocol-Version": ""}, -32020),
        ({"Mcp-Method": "tools/list"}, -32020),
        ({"Mcp-Method": "TOOLS/CALL"}, -32020),
        ({"Mcp-Method": ""}, -32020),
        ({"Mcp-Name": "add"}, -32020),
        ({"Mcp-Name": ""}, -32020),
        ({"Mcp-Name": "Region"}, -32020),
        ({"Mcp-Name": "=?base64?cmVnaW9u"}, -32020),
        ({"Mcp-Name": "=?base64?cmVnaW9?="}, -32020),
        ({"Mcp-Name": "=?base64?cmVn aW9u?="}, -32020),
        ({"Mcp-Name": "=?base64?/////w==?="}, -32020),
        ({"Mcp-Name": "=?base64?=="}, -32020),
        ({"Mcp-Name": "=?base64?="}, -32020),
        ({"Mcp-Name": "=?BASE64?cmVnaW9u?="}, -32020),
        ({"Mcp-Param-Region": ""}, -32020),
        ({"Mcp-Param-Region": "WEST"}, -32020),
        ({"Mcp-Param-Region": "=?base64?d2VzdA?="}, -32020),
        ({"Mcp-Param-Number": ""}, -32020),
        ({"Mcp-Param-Number": "eight"}, -32020),
        ({"Mcp-Param-Number": "nan"}, -32020),
        ({"Mcp-Param-Number": "inf"}, -32020),
        ({"Mcp-Param-Number": "9007199254740992"}, -32020),
        ({"Mcp-Param-Number": "9007199254740_993"}, -32020),
        ({"Mcp-Param-Number": "9" * 5000}, -32020),
        ({"Mcp-Name": " region\t", "Mcp-Param-Region": "=?base64?d2VzdA==?="}, None),
        ({"Mcp-Name": "=?base64?cmVnaW9u?="}, None),
        ({"Mcp-Param-Number": "9007199254740993.0"}, None),
        ({"Mcp-Param-Other": "whatever"}, None),
        ({"Mcp-Session-Id": "forged", "Last-Event-ID": "forged"}, None),
    ],
)
def test_a_header_that_belies_the_body_is_refused(
    served: Site, headers: dict[str, str], code: int | None
) -> None:
    frame = stateless_call(1, "region", where="west", number=9007199254740993)
    mirrored = {"Mcp-Param-Region": "west", "Mcp-Param-Number": "9007199254740993"}

    said = served.stateless(frame, {**mirrored, **headers})

    assert said.frame["id"] == 1
    if code is None:
        assert said.frame["result"]["isError"] is False
    else:
        assert (said.status, said.code) == (400, code)


@pytest.mark.parametrize(
    "name", ["Mcp-Protocol-Version", "Mcp-Method", "Mcp-Name", "Mcp-Param-Region"]
)
def test_a_routing_header_that_is_there_twice_is_refused(served: Site, name: str) -> None:
    frame = stateless_call(1, "region", where="west", number=7)
    headers = {**routing(frame), "Mcp-Param-Region": "west", "Mcp-Param-Number": "7"}
    again = {**headers, "X-Last": f"1\r\n{name}: {headers[name]}", "Connection": "close"}
    line = served.post_and_leave(frame, again)

    answer = read_all(line)

    assert status_of(answer) == 400
    assert b"-32020" in answer


def test_a_version_that_nobody_speaks_is_refused_with_those_we_do(served: Site) -> None:
    frame = stateless_call(1, "add", x=1, y=2)
    frame["params"]["_meta"]["io.modelcontextprotocol/protocolVersion"] = "2099-01-01"

    said = served.stateless(frame)

    assert (said.status, said.code) == (400, -32022)
    assert said.frame["error"]["data"] == {"supported": ["2026-07-28"], "requested": "2099-01-01"}


@pytest.mark.parametrize("missing", ["_meta", "protocolVersion", "clientCapabilities"])
def test_a_stateless_request_without_its_meta_is_refused_under_its_id(
    served: Site, missing: str
) -> None:
    frame = stateless_call(1, "add", x=1, y=2)
    headers = routing(frame)
    if missing == "_meta":
        del frame["params"]["_meta"]
    else:
        del frame["params"]["_meta"][f"io.modelcontextprotocol/{missing}"]

    said = served.post(frame, headers)

    assert (said.status, said.code) == (400, -32602)
    assert said.frame["id"] == 1


@pytest.mark.parametrize("method", ["tools/call", "tools/list"])
@pytest.mark.parametrize("headers", [{}, {"Mcp-Protocol-Version": "2026-07-28"}])
@pytest.mark.parametrize("meta", [None, 5, [], {"progressToken": {}}])
def test_a_meta_of_the_wrong_form_is_refused_under_the_requests_id(
    served: Site, method: str, headers: dict[str, str], meta: Any
) -> None:
    said = served.post(request(7, method, {"name": "add", "_meta": meta}), headers)

    assert (said.status, said.code) == (400, -32602)
    assert said.frame["id"] == 7


@pytest.mark.parametrize("method", ["initialize", "ping", "logging/setLevel", "no/such", ""])
def test_a_method_that_the_stateless_era_lacks_is_not_found(served: Site, method: str) -> None:
    said = served.stateless(
        stateless_request(1, method, protocolVersion="2025-11-25", level="debug")
    )

    assert (said.status, said.code) == (404, -32601)
    assert "mcp-session-id" not in said.headers


def test_a_cursor_that_is_not_ours_is_refused(served: Site) -> None:
    for cursor in ("x", "\u2603", b64encode(b"from " + b"9" * 5000).decode()):
        said = served.stateless(stateless_request(1, "tools/list", cursor=cursor))
        assert (said.status, said.code) == (400, -32602)


# Bodies that do not come


def test_a_body_that_breaks_off_is_forgotten(served: Site) -> None:
    whole = raw_post(json.dumps(call(1, "add", x=1, y=2)).encode(), {})
    for end in (10, 40, len(whole) // 2, len(whole) - 1):
        line = served.open()
        line.sendall(whole[:end])
        line.close()


def test_a_body_in_pieces_is_put_together(served: Site) -> None:
    line = served.open()
    for byte in raw_post(json.dumps(call(1, "add", x=1, y=2)).encode(), {"Connection": "close"}):
        line.send(bytes([byte]))

    assert b'"id":1' in read_all(line)


def test_one_who_holds_his_body_back_does_not_hold_up_others(served: Site) -> None:
    whole = raw_post(json.dumps(call(1, "add", x=1, y=2)).encode(), {})
    lines = [served.open() for _ in range(100)]
    for line in lines:
        line.sendall(whole[:-5])

    served.still_serves()

    for line in lines:
        line.sendall(whole[-5:])
        assert b" 200 " in line.recv(65536)
        line.close()


def test_a_body_beyond_the_limit_is_refused_so_that_its_sender_can_read_it(served: Site) -> None:
    before = served.status("VmHWM")

    said = served.send(b"[" + b" " * (32 * 1024 * KILOBYTE) + b"]")

    assert said.status == 413
    assert served.status("VmHWM") - before < 30 * KILOBYTE


@pytest.mark.parametrize(
    "head",
    [
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: -1\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: x\r\n\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nTransfer-Encoding: chunked\r\n\r\nzz\r\n",
        b"POST /mcp HTTP/1.1\r\nHost: localhost\r\nContent-Length: 2\r\n"
        b"Transfer-Encoding: chunked\r\n\r\n{}",
        b"POST /mcp HTTP/9.9\r\n\r\n",
        b"\x16\x03\x01\x02\x00",
        b"\0" * 100,
    ],
)
def test_what_is_no_http_closes_that_line(served: Site, head: bytes) -> None:
    line = served.open()
    line.sendall(head)

    answer = read_all(line)

    assert b" 500 " not in answer.partition(b"\r\n")[0]


# Clients that go


@pytest.mark.parametrize("tool", ["watch", "nap", "chatter"])
def test_a_stateless_client_that_hangs_up_has_cancelled(
    served: Site, tool: str, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    frame = stateless_call(1, tool, notes=str(notes))
    if tool == "chatter":
        frame["params"]["_meta"]["progressToken"] = 1
    line = served.post_and_leave(frame, routing(frame))
    wait_until(lambda: says(notes, "began"))
    if tool == "chatter":
        read_until(line, b"notifications/progress")

    line.close()

    wait_until(lambda: says(notes, "cancelled"))


@pytest.mark.parametrize("accept", [BOTH, f"{EVENTS}, {JSON}"])
def test_a_stateful_client_that_hangs_up_has_not_cancelled(
    served: Site, accept: str, tmp_path: Path
) -> None:
    notes, gate = tmp_path / "notes", tmp_path / "gate"
    session = served.initialize()
    frame = call(1, "finish", notes=str(notes), gate=str(gate))
    line = served.post_and_leave(frame, {**session, "Accept": accept})
    wait_until(lambda: says(notes, "began"))

    line.close()
    for _ in range(50):
        served.still_serves()
    gate.touch()

    wait_until(lambda: says(notes, "over"))


@pytest.mark.parametrize("tool", ["watch", "nap", "insist"])
def test_a_stateful_client_cancels_with_a_notification(
    served: Site, tool: str, tmp_path: Path
) -> None:
    notes = tmp_path / "notes"
    session = served.initialize()
    line = served.post_and_leave(
        call(1, tool, notes=str(notes)), {**session, "Connection": "close"}
    )
    wait_until(lambda: says(notes, "began"))

    assert served.post(cancel(1), session).status == 202

    wait_until(lambda: says(notes, "cancelled"))
    assert b'"id":1' not in read_all(line)


def test_an_id_that_is_still_running_is_refused_and_the_first_goes_on(
    served: Site, tmp_path: Path
) -> None:
    session = served.initialize()
    notes, gate = tmp_path / "notes", tmp_path / "gate"
    frame = call(1, "finish", notes=str(notes), gate=str(gate))
    line = served.post_and_leave(frame, {**session, "Connection": "close"})
    wait_until(lambda: says(notes, "began"))

    said = served.post(call(1, "add", x=1, y=2), session)

    assert said.code == -32600
    gate.touch()
    assert b'"isError":false' in read_all(line)


def test_a_slow_reader_of_much_progress_costs_little() -> None:
    with site() as served:
        served.still_serves()
        before = served.status("VmRSS")
        frame = stateless_call(1, "flood", count=100_000, size=1000)
        frame["params"]["_meta"]["progressToken"] = 1
        line = served.post_and_leave(frame, {**routing(frame), "Connection": "close"})
        line.recv(100)

        for _ in range(100):
            served.still_serves()

        assert served.status("VmRSS") - before < 30 * KILOBYTE
        answer = read_all(line)
        assert b'"structuredContent":{"result":100000}' in answer


def test_a_stream_that_never_rests_leaves_others_their_turn(served: Site) -> None:
    frame = stateless_call(1, "flood", count=1_000_000, size=10)
    frame["params"]["_meta"]["progressToken"] = 1
    line = served.post_and_leave(frame, routing(frame))
    reading = threading.Thread(target=_read_on, args=(line,))
    reading.start()

    began = time.monotonic()
    for _ in range(10):
        served.still_serves()
    took = time.monotonic() - began

    assert reading.is_alive(), "the stream was over too early to show anything"
    assert took < 5
    line.shutdown(socket.SHUT_RDWR)
    reading.join(BOUND)


def _read_on(line: socket.socket) -> None:
    with suppress(OSError):
        while line.recv(1 << 20):
            pass


def test_a_listener_that_does_not_read_is_hung_up_on() -> None:
    with site() as served:
        frame = stateless_request(
            1, "subscriptions/listen", notifications={"resourceSubscriptions": ["note://one"]}
        )
        line = served.open()
        line.setsockopt(socket.SOL_SOCKET, socket.SO_RCVBUF, 65536)
        line.sendall(raw_post(json.dumps(frame).encode(), routing(frame)))
        read_until(line, b"acknowledged")
        served.still_serves()
        before = served.status("VmRSS")

        served.post(call(1, "change", times=60_000))

        assert served.status("VmRSS") - before < 8 * KILOBYTE
        served.still_serves()
        heard = read_until(line, b"0\r\n\r\n").count(b"resources/updated")
        assert 1000 < heard < 60_000


def test_one_who_vanishes_while_asked_does_not_stop_others(served: Site) -> None:
    session = served.initialize(elicitation={})
    for number in range(20):
        line = served.post_and_leave(call(number, "ask_name"), session)
        read_until(line, b"elicitation/create")
        line.close()

    served.still_serves()


@pytest.mark.parametrize(
    "answer", [{"result": 5}, {"result": {}}, {"error": {"code": 1}}, {"error": None}]
)
def test_a_stateful_question_answered_with_garbage_fails_that_call_alone(
    served: Site, answer: Any
) -> None:
    session = served.initialize(elicitation={})
    line = served.post_and_leave(call(1, "ask_name"), {**session, "Connection": "close"})
    text = read_until(line, b"}\n\n")
    id = json.loads(text.partition(b"data: ")[2].partition(b"\n")[0])["id"]

    assert served.post({"jsonrpc": "2.0", "id": id, **answer}, session).status == 202

    assert b'"isError":true' in read_all(line)


@pytest.mark.parametrize("tool", ["leave_async", "interrupt"])
@pytest.mark.parametrize("way", ["stateful", "stateless", "rest", "message"])
def test_a_tool_that_would_end_the_program_ends_only_its_call(
    shared: Site, tool: str, way: str
) -> None:
    if way == "stateful":
        said = shared.post(call(1, tool), shared.initialize())
    elif way == "stateless":
        said = shared.stateless(stateless_call(1, tool))
    elif way == "message":
        said = shared.send(json.dumps(call(1, tool)).encode(), path="/message")
    else:
        line = shared.open()
        line.sendall(raw_post(b"{}", {"Connection": "close"}, f"/functions/{tool}"))
        answer = read_all(line)
        assert b"x-error-code: TOOL_EXECUTION_ERROR" in answer
        assert b"hunter2" not in answer
        shared.still_serves()
        return

    assert said.status == 200
    assert said.frame["result"]["isError"] is True
    shared.still_serves()


def test_a_session_may_not_listen_to_everything_there_could_be(served: Site) -> None:
    session = served.initialize()

    for uri in ("note://none", "x", "", "note://" + "x" * 100_000):
        said = served.post(request(1, "resources/subscribe", {"uri": uri}), session)
        assert said.code in (-32002, -32602)


@pytest.mark.parametrize("workers", ["1", "3"])
def test_of_several_streams_of_a_session_one_hears_each_change(workers: str) -> None:
    with site(HOSTILE, "--workers", workers) as served:
        session = served.initialize()
        subscribed = served.post(request(1, "resources/subscribe", {"uri": "note://one"}), session)
        assert subscribed.frame["result"] == {}
        streams = [_listen(served, session) for _ in range(9)]

        for number in range(20):
            served.post(call(number, "change"), session)
        heard = [read_until(streams[-1], b"resources/updated")]
        # The one before it has its turn when the newest is gone.
        streams.pop().close()
        wait_until(lambda: _hears(served, session, streams[-1]))
        served.process.send_signal(signal.SIGTERM)
        heard += [read_all(stream) for stream in streams]

    assert all(b"resources/updated" not in text for text in heard[1:-1])


def _listen(served: Site, session: dict[str, str]) -> socket.socket:
    lines = "\r\n".join(f"{name}: {value}" for name, value in session.items())
    stream = served.open()
    stream.sendall(f"GET /mcp HTTP/1.1\r\nHost: localhost\r\n{lines}\r\n\r\n".encode())
    assert b" 200 " in stream.recv(65536)
    return stream


def _hears(served: Site, session: dict[str, str], stream: socket.socket) -> bool:
    served.post(call(1, "change"), session)
    return bool(select.select([stream], [], [], 0.05)[0])


# The end


def test_open_streams_end_in_good_order_when_the_server_does(tmp_path: Path) -> None:
    with site() as served:
        session = served.initialize()
        wanted = {"notifications": {"toolsListChanged": True}}
        frame = stateless_request("listening", "subscriptions/listen", **wanted)
        listening = [served.post_and_leave(frame, routing(frame)) for _ in range(100)]
        for line in listening:
            read_until(line, b"acknowledged")
        streams = [_listen(served, session) for _ in range(100)]
        notes, gate = tmp_path / "notes", tmp_path / "gate"
        call_in_flight = served.post_and_leave(
            call(1, "finish", notes=str(notes), gate=str(gate)), session
        )
        wait_until(lambda: says(notes, "began"))

        began = time.monotonic()
        served.process.send_signal(signal.SIGTERM)
        ends = [read_all(line) for line in listening]
        for stream in streams:
            read_all(stream)
        gate.touch()

        assert all(b'"resultType":"complete"' in end for end in ends)
        assert b'"isError":false' in read_all(call_in_flight)
        assert served.process.wait(BOUND) == 0
        assert time.monotonic() - began < 5
        assert "Traceback" not in served.stderr()


def test_nothing_is_left_of_those_who_went(tmp_path: Path) -> None:
    with site() as served:
        _come_and_go(served, tmp_path / "warm", rounds=2)
        settled = _at_rest(served)

        _come_and_go(served, tmp_path / "again", rounds=20)

        wait_until(lambda: _at_rest(served)[0] <= settled[0])
        assert served.status("Threads") <= 60


def _come_and_go(served: Site, folder: Path, rounds: int) -> None:
    folder.mkdir()
    session = served.initialize(elicitation={})
    listen = stateless_request(1, "subscriptions/listen", notifications={"toolsListChanged": True})
    for number in range(rounds):
        notes = folder / str(number)
        nap = stateless_call(1, "nap", notes=str(notes), chatty=True)
        nap["params"]["_meta"]["progressToken"] = 1
        lines = [
            served.post_and_leave(nap, routing(nap)),
            served.post_and_leave(listen, routing(listen)),
            served.post_and_leave(call(number, "add_async", x=1, y=2), session),
        ]
        for line in lines:
            line.recv(100)
            line.close()
        wait_until(lambda notes=notes: says(notes, "cancelled"))


def _at_rest(served: Site) -> tuple[int, int]:
    return served.descriptors(), served.status("Threads")


def test_no_task_is_left_of_a_client_that_went() -> None:
    app = App("alone")
    over = threading.Event()

    @app.tool
    def chatter(ctx: Context) -> None:
        step = 0
        while not ctx.cancelled:
            step += 1
            ctx.progress(step)
            time.sleep(0.001)
        ctx.progress(step + 1)
        over.set()

    assert asyncio.run(_tasks_left(app, over)) == set()


async def _tasks_left(app: App, over: threading.Event) -> set[Any]:
    frame = stateless_call(1, "chatter")
    frame["params"]["_meta"]["progressToken"] = 1
    told, gone = asyncio.Event(), asyncio.Event()
    messages = [{"type": "http.request", "body": json.dumps(frame).encode()}]

    async def receive() -> dict[str, Any]:
        if not messages:
            await gone.wait()
        return messages.pop() if messages else {"type": "http.disconnect"}

    async def send(message: MutableMapping[str, Any]) -> None:
        if b"progress" in message.get("body", b""):
            told.set()

    headers = [(name.lower().encode(), value.encode()) for name, value in routing(frame).items()]
    scope = {"type": "http", "method": "POST", "path": "/mcp", "headers": headers}
    async with asyncio.timeout(BOUND):
        answering = asyncio.create_task(app.asgi()(scope, receive, send))
        await told.wait()
        gone.set()
        await answering
        await asyncio.to_thread(over.wait, BOUND)
        # What was cancelled ends in its next turn of the loop.
        for _ in range(10):
            await asyncio.sleep(0)
    return asyncio.all_tasks() - {asyncio.current_task()}


def read_until(line: socket.socket, end: bytes) -> bytes:
    text = b""
    while end not in text:
        chunk = line.recv(65536)
        assert chunk, "the line was closed"
        text += chunk
    return text


def read_all(line: socket.socket) -> bytes:
    """What comes until the other end closes the line."""
    text = b""
    try:
        while chunk := line.recv(1 << 20):
            text += chunk
    except ConnectionResetError:
        pass
    finally:
        line.close()
    return text


def status_of(answer: bytes) -> int:
    return int(answer.split(b" ", 2)[1]) if answer.startswith(b"HTTP/") else 0
