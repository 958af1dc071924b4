"""Attacks the HTTP server: MCP in both eras, REST, and malformed HTTP."""

from __future__ import annotations

import json
import random
import threading
import time
from collections.abc import Callable, Sequence

from tests.attack.hostile_messages import Generator, Message, large_messages
from tests.attack.hostile_requests import MALFORMED, ODD_HEADERS, ODD_PATHS
from tests.attack.pipeline import RawResponse, open_connection, pipelined
from tests.attack.report import Plan, WireReport
from tests.fuzz.frames import PREFIX, STATEFUL, STATELESS, VERSIONS
from tests.fuzz.http_client import (
    EVENTS,
    JSON,
    ServedApp,
    mirrored_headers,
    raw_post,
    read_to_end,
    served_app,
    stateless_call,
)
from tests.fuzz.stdio_client import SECRETS, Json, call, checked_message, refuse_constant
from tests.protocol.message_faults import model_faults

BATCH = 100
_MCP_PATHS = (b"POST /mcp ", b"POST /message ")
"""Their errors are JSON-RPC messages, without the header of REST's errors."""
MCP_STATUSES = {200, 202, 400, 403, 404, 405, 406, 413, 415, 421}
REST_STATUSES = {200, 400, 404, 405, 413, 415}


def attack_mcp_over_http(plan: Plan) -> WireReport:
    report = plan.report("MCP over HTTP")
    with report.caught("MCP over HTTP"), served_app() as served:
        for version in VERSIONS:
            _attack_version(served, version, plan.part(1 / len(VERSIONS)), report)
        _spoil_session_ids(served, plan, report)
        _spoil_states(served, plan, report)
        for what, text in large_messages(plan.large).items():
            message = raw_post(text, {"Mcp-Protocol-Version": STATEFUL[-1]})
            _send_large(served, message, what, report)
        _check_server(served, report)
    return report


def _attack_version(served: ServedApp, version: str, plan: Plan, report: WireReport) -> None:
    generator, chance = Generator(version, plan.seed), random.Random(plan.seed)
    session = served.initialize(version) if version in STATEFUL else {}
    sent = 0
    while sent < plan.cases and not plan.time_is_up:
        messages = [generator.message() for _ in range(min(BATCH, plan.cases - sent))]
        requests = []
        for message in messages:
            headers = _mirrored(message) if version == STATELESS else session
            if chance.random() < 0.1:
                headers = {**headers, **chance.choice(ODD_HEADERS)}
            requests.append(raw_post(message.text, headers))
        responses = _send(served, requests, report)
        for message, response in zip(messages, responses, strict=False):
            with report.caught(f"{version} {message.text[:200]!r}"):
                _check_mcp(message, response, version)
        sent += len(messages)


def _mirrored(message: Message) -> dict[str, str]:
    try:
        found = json.loads(message.text)
    except (ValueError, RecursionError):
        found = None
    headers = mirrored_headers(found) if isinstance(found, dict) else {}
    return {"Mcp-Protocol-Version": STATELESS, **headers}


def _check_mcp(message: Message, response: RawResponse, version: str) -> None:
    assert response.status in MCP_STATUSES, f"status {response.status}"
    if not response.body:
        return
    media_type = response.headers["content-type"]
    assert media_type in (JSON, EVENTS), media_type
    texts = [response.body]
    if media_type == EVENTS:
        lines = response.body.splitlines()
        texts = [line[5:] for line in lines if line.startswith(b"data:") and line[5:].strip()]
    frames = [checked_message(text) for text in texts]
    answers = [frame for frame in frames if isinstance(frame, dict) and "method" not in frame]
    for frame in answers:
        assert frame.get("id", message.id) == message.id, f"another id: {frame.get('id')}"
        assert frame.get("error", {}).get("code") != -32603, "an internal error"
        if "result" in frame and message.has_own_answer:
            own = STATEFUL[-1] if version == STATELESS else version
            assert model_faults(frame, message.version or own, message.method) == []
    if message.has_own_answer:
        assert len(answers) == 1, f"{len(answers)} answers"


def attack_rest(plan: Plan) -> WireReport:
    report = plan.report("REST")
    generator, chance = Generator(VERSIONS[0], plan.seed), random.Random(plan.seed)
    tools = ("add", "add_in_thread", "add_async")
    with report.caught("REST"), served_app() as served:
        sent = 0
        while sent < plan.cases and not plan.time_is_up:
            requests = []
            for _ in range(min(BATCH, plan.cases - sent)):
                odd = chance.random() < 0.1
                path = chance.choice(ODD_PATHS) if odd else f"/functions/{chance.choice(tools)}"
                headers = chance.choice(ODD_HEADERS) if chance.random() < 0.1 else {}
                requests.append(raw_post(generator.arguments(), headers, path))
            for request, response in zip(requests, _send(served, requests, report), strict=False):
                with report.caught(f"{request[:300]!r}"):
                    _check_rest(response, is_mcp=request.startswith(_MCP_PATHS))
            sent += len(requests)
        for what, text in large_messages(plan.large).items():
            _, _, arguments = text.partition(b'"arguments":')
            body = arguments[:-2] or text
            _send_large(served, raw_post(body, {}, "/functions/add"), what, report)
        _check_server(served, report)
    return report


def _check_rest(response: RawResponse, *, is_mcp: bool) -> None:
    assert response.status in MCP_STATUSES | REST_STATUSES, f"status {response.status}"
    for secret in SECRETS:
        assert secret not in response.body, f"the body contains {secret!r}"
    assert is_mcp or ("x-error-code" in response.headers) == (response.status >= 400)
    assert "json" in response.headers["content-type"]
    json.loads(response.body, parse_constant=refuse_constant)


def attack_raw_http(plan: Plan) -> WireReport:
    """Send malformed and half-sent requests, each on a connection of its own."""
    report = plan.report("malformed HTTP")
    with report.caught("malformed HTTP"), served_app() as served:
        for number in range(max(plan.cases, len(MALFORMED))):
            if plan.time_is_up and number >= len(MALFORMED):
                break
            data = MALFORMED[number % len(MALFORMED)]
            if number >= len(MALFORMED):
                data = data[: random.Random(number).randint(1, len(data))]
            report.cases += 1
            with report.caught(f"{data[:200]!r}"):
                _send_malformed(served, data)
        start = time.monotonic()
        _check_server(served, report)
        report.waited(time.monotonic() - start, "half-sent requests")
    return report


def _send_malformed(served: ServedApp, data: bytes) -> None:
    connection = open_connection(served.port)
    connection.sendall(data)
    # The client sends nothing more, so the server must answer or close.
    connection.shutdown(1)
    received = read_to_end(connection)
    for secret in SECRETS:
        assert secret not in received, f"the response contains {secret!r}"
    assert not received or received.startswith(b"HTTP/1.1 "), f"not a response: {received[:80]!r}"
    assert not received.startswith(b"HTTP/1.1 500"), "an internal error"


def _spoil_session_ids(served: ServedApp, plan: Plan, report: WireReport) -> None:
    """No changed session id may be accepted."""
    headers = served.initialize()
    body = json.dumps(call("case-1", "add", x=1, y=2)).encode()
    id = headers["Mcp-Session-Id"]

    def spoil(spoiled: str) -> bytes:
        return raw_post(body, {**headers, "Mcp-Session-Id": spoiled})

    _send_spoiled(served, spoil, id, plan, report)


def _spoil_states(served: ServedApp, plan: Plan, report: WireReport) -> None:
    """No changed request state may be accepted."""
    frame = stateless_call("case-1", "ask_name")
    capabilities: Json = {"elicitation": {"form": {}}}
    frame["params"]["_meta"][PREFIX + "clientCapabilities"] = capabilities
    asked = served.post_stateless(frame).frame["result"]
    key = next(iter(asked["inputRequests"]))
    answer = {"action": "accept", "content": {"value": "x"}}

    def spoil(spoiled: str) -> bytes:
        retried = {"inputResponses": {key: answer}, "requestState": spoiled}
        retry = {**frame, "params": {**frame["params"], **retried}}
        return raw_post(json.dumps(retry).encode(), mirrored_headers(retry))

    _send_spoiled(served, spoil, asked["requestState"], plan, report)


def _send_spoiled(
    served: ServedApp, spoil: Callable[[str], bytes], token: str, plan: Plan, report: WireReport
) -> None:
    generator = Generator(VERSIONS[0], plan.seed)
    spoiled = [generator.spoiled(token) for _ in range(max(50, plan.cases // 100))]
    for each, response in zip(
        spoiled, _send(served, [spoil(each) for each in spoiled], report), strict=False
    ):
        accepted = response.status == 200 and b'"result"' in response.body
        report.expect(not accepted, f"a changed token was accepted: {each!r}")


def _send(served: ServedApp, requests: Sequence[bytes], report: WireReport) -> list[RawResponse]:
    report.cases += len(requests)
    with report.caught(f"{len(requests)} requests"):
        return pipelined(served.port, requests)
    return []


def _send_large(served: ServedApp, request: bytes, what: str, report: WireReport) -> None:
    """Send a large request, and small ones on another connection, which must not wait."""
    with report.caught(what):
        waits = (_wait_of_quick_call(served, request, report) for _ in range(3))
        report.waited_each_time(waits, what)


def _wait_of_quick_call(served: ServedApp, request: bytes, report: WireReport) -> float:
    """The longest that a call took while the server worked on *request*."""
    report.cases += 1
    received: list[RawResponse] = []
    sender = threading.Thread(
        target=lambda: received.extend(pipelined(served.port, [request])), daemon=True
    )
    sender.start()
    quick = raw_post(b'{"x":1,"y":2}', {}, "/functions/add")
    longest = 0.0
    while sender.is_alive():
        start = time.monotonic()
        assert pipelined(served.port, [quick])[0].status == 200
        longest = max(longest, time.monotonic() - start)
    assert received, "no response"
    assert received[0].status < 500
    return longest


def _check_server(served: ServedApp, report: WireReport) -> None:
    report.expect(served.process.poll() is None, "the server ended")
    report.expect(served.still_serves(), "the server does not serve")
    report.expect("internal error" not in served.log(), "an internal error is logged")
