"""Attacks MCP over stdio: batches of hostile lines, and lines of several megabytes."""

from __future__ import annotations

import threading
import time
from collections import Counter

from tests.attack.hostile_messages import RECORDED, Generator, Message, described, large_messages
from tests.attack.report import Plan, WireReport
from tests.fuzz.frames import STATEFUL, STATELESS, VERSIONS
from tests.fuzz.stdio_client import Json, StdioClient, call, stdio_client
from tests.protocol.message_faults import model_faults

BATCH = 200
ANSWER_WITHIN = 60.0


def attack_stdio(plan: Plan) -> WireReport:
    report = plan.report("MCP over stdio")
    for version in VERSIONS:
        part = plan.part(1 / len(VERSIONS))
        with report.caught(f"{version}"), stdio_client() as client:
            if version in STATEFUL:
                client.initialize(version, elicitation={})
            # The start of the server is no wait of a call.
            client.drain()
            _send_recorded(client, version, report)
            generator = Generator(version, plan.seed)
            sent = 0
            while sent < part.cases and not part.time_is_up:
                batch = [generator.message() for _ in range(min(BATCH, part.cases - sent))]
                sent += len(batch)
                _send_batch(client, version, batch, report)
            if version in (STATEFUL[-1], STATELESS):
                _send_large(client, plan, report)
            report.expect("internal error" not in client.stderr(), f"{version}: an internal error")
            report.expect(client.close_and_wait() == 0, f"{version}: the exit status is not 0")
    return report


def _send_recorded(client: StdioClient, version: str, report: WireReport) -> None:
    for text in RECORDED:
        _send_batch(client, version, [described(text)], report)


def _send_batch(
    client: StdioClient, version: str, batch: list[Message], report: WireReport
) -> None:
    """Send lines without waiting, and check that all answers come, each with a valid message."""
    report.cases += len(batch)
    data = b"".join(message.text + b"\n" for message in batch)
    # A thread, because the pipe to the server is full while the server waits for its reader.
    writer = threading.Thread(target=client.write, args=(data,), daemon=True)
    writer.start()
    by_id = _own_answers(batch)
    waiting = set(by_id)
    without_id = 0
    while waiting:
        try:
            received = client.receive(ANSWER_WITHIN)
        except TimeoutError:
            missing = [by_id[id].text[:300] for id in waiting]
            report.failures.append(f"{version}: no answer to {missing}")
            break
        without_id += _check(client, received, by_id, version, report)
        waiting -= _ids_answered(received)
    writer.join()
    start = time.monotonic()
    for received in client.drain():
        without_id += _check(client, received, by_id, version, report)
    report.waited(time.monotonic() - start, f"a batch of {len(batch)} lines")
    unreadable = sum(not message.is_readable and bool(message.text.strip()) for message in batch)
    report.expect(
        without_id >= unreadable,
        f"{version}: {unreadable} lines are not JSON, {without_id} answers: {batch[0].text[:80]!r}",
    )


def _own_answers(batch: list[Message]) -> dict[Json, Message]:
    """The messages whose answers can be told apart, by their ids."""
    counts = Counter(message.id for message in batch if message.has_own_answer)
    return {message.id: message for message in batch if counts[message.id] == 1}


def _ids_answered(received: Json) -> set[str]:
    frames = received if isinstance(received, list) else [received]
    return {str(frame["id"]) for frame in frames if "method" not in frame and "id" in frame}


def _check(
    client: StdioClient,
    received: Json,
    by_id: dict[Json, Message],
    version: str,
    report: WireReport,
) -> int:
    """Check a received message; return how many answers to unreadable messages it may hold."""
    if isinstance(received, list):
        return sum(_check(client, each, by_id, version, report) for each in received)
    if "method" in received:
        if "id" in received:
            client.send({"jsonrpc": "2.0", "id": received["id"], "result": {"action": "decline"}})
        return 0
    # Without a version of its own, a message is one of the stateful era.
    version = STATEFUL[-1] if version == STATELESS else version
    sent = by_id.get(received.get("id"))
    if "result" in received and sent is not None and sent.method is not None:
        for fault in model_faults(received, sent.version or version, sent.method):
            report.failures.append(f"{fault} for {sent.text[:200]!r}")
    if "error" in received:
        code = received["error"]["code"]
        report.expect(code != -32603, f"{version}: an internal error for {sent}")
    return sent is None


def _send_large(client: StdioClient, plan: Plan, report: WireReport) -> None:
    """Send a large line and a small call after it; the small call must not wait for long."""
    for what, text in large_messages(plan.large).items():
        if plan.time_is_up:
            break
        waits = (_wait_of_quick_call(client, text, report) for _ in range(3))
        report.waited_each_time(waits, what)


def _wait_of_quick_call(client: StdioClient, text: bytes, report: WireReport) -> float:
    report.cases += 1
    client.write(text + b"\n")
    start = time.monotonic()
    client.send(call("quick", "add", x=20, y=22))
    client.receive_response("quick")
    seconds = time.monotonic() - start
    client.drain()
    return seconds
