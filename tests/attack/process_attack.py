"""Attacks CGI and the command line, which start a process for each request."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys

import msgspec
from tests.attack.hostile_messages import Generator
from tests.attack.report import Plan, WireReport
from tests.fuzz.frames import VERSIONS
from tests.fuzz.stdio_client import HOSTILE, SECRETS, TIMEOUT, refuse_constant

_CGI = {"REQUEST_METHOD": "POST", "PATH_INFO": "/add", "CONTENT_TYPE": "application/json"}
ODD_VARIABLES: list[tuple[dict[str, str], set[int]]] = [
    ({"CONTENT_LENGTH": "-1"}, {400}),
    ({"CONTENT_LENGTH": "9" * 30}, {413}),
    ({"CONTENT_LENGTH": "1000000"}, {400}),
    ({"CONTENT_LENGTH": "x"}, {400}),
    ({"CONTENT_LENGTH": ""}, {400}),
    ({"REQUEST_METHOD": "GET"}, {405}),
    ({"REQUEST_METHOD": "\udcff"}, {405}),
    ({"REQUEST_METHOD": ""}, {405}),
    ({"PATH_INFO": ""}, {404}),
    ({"PATH_INFO": "/none"}, {404}),
    ({"PATH_INFO": "/../add"}, {404}),
    ({"PATH_INFO": "/raise_interrupt"}, {400, 500}),
    ({"PATH_INFO": "/exit_async"}, {400, 500}),
    ({"PATH_INFO": "/" + "a" * 5000}, {404}),
    ({"PATH_INFO": "/\udcff"}, {404}),
    ({"CONTENT_TYPE": "text/plain"}, {415}),
    ({"CONTENT_TYPE": "\udcff"}, {415}),
    ({"HTTP_ACCEPT": "application/problem+json"}, set()),
    ({"HTTP_ACCEPT": "," * 2000}, set()),
    ({"HTTP_HOST": "evil.example"}, set()),
    ({"SCRIPT_NAME": "/\udcff"}, set()),
    ({"HTTP_PROXY": "http://evil.example"}, set()),
    ({"SERVER_PROTOCOL": "HTTP/0.9"}, set()),
]
"""Variables and the statuses that they lead to; without one, the body decides."""
ODD_ARGUMENTS: list[list[str]] = [
    [],
    ["none"],
    ["add"],
    ["add", "x=1", "y=2"],
    ["add", "x=1", "x=2"],
    ["add", "x"],
    ["add", "=1"],
    ["add", "x=" + "9" * 5000, "y=1"],
    ["add", "x=\udcff", "y=1"],
    ["add", "--dialect", "none"],
    ["add", "--no-such-option"],
    ["add", "x=@/nonexistent", "y=1"],
    ["add", "{}"],
    ["add", "\x1b[31m=1"],
    ["raise_interrupt"],
    ["exit_async"],
    ["raise_cancelled"],
    ["a" * 3000],
    ["--", "--help"],
    ["long_text", "size=-1"],
]


def attack_cgi(plan: Plan) -> WireReport:
    report = plan.report("CGI")
    generator, chance = Generator(VERSIONS[0], plan.seed), random.Random(plan.seed)
    for number in range(plan.cases):
        if plan.time_is_up:
            break
        body = generator.arguments() if chance.random() < 0.9 else b"[" * 100_000
        variables = {**_CGI, "CONTENT_LENGTH": str(len(body))}
        statuses = {200} if _fits_add(body) else {400}
        if number % 3:
            odd, its_statuses = ODD_VARIABLES[number % len(ODD_VARIABLES)]
            variables |= odd
            statuses = its_statuses or statuses
        report.cases += 1
        with report.caught(f"CGI {variables} {body[:100]!r}"):
            check_cgi(_run(["cgi"], body, variables), statuses)
    return report


def attack_command_line(plan: Plan) -> WireReport:
    report = plan.report("command line")
    generator = Generator(VERSIONS[0], plan.seed)
    for number in range(plan.cases):
        if plan.time_is_up:
            break
        arguments = ODD_ARGUMENTS[number % len(ODD_ARGUMENTS)]
        body = b""
        if number >= len(ODD_ARGUMENTS) or number % 4 == 3:
            arguments, body = ["add", "-"], generator.arguments()
        report.cases += 1
        with report.caught(f"call {arguments} {body[:100]!r}"):
            _check_call(_run(["call", *arguments], body, {}))
    return report


def _run(
    arguments: list[str], body: bytes, variables: dict[str, str]
) -> subprocess.CompletedProcess[bytes]:
    return subprocess.run(
        [sys.executable, str(HOSTILE), *arguments],
        input=body,
        capture_output=True,
        env=os.environ | variables,
        timeout=TIMEOUT,
        check=False,
    )


def _fits_add(body: bytes) -> bool:
    """Whether the body holds the arguments of `add`: two ints, or floats that are whole."""
    try:
        found = msgspec.json.decode(body or b"{}")
        body.decode()
    except (ValueError, RecursionError):
        return False
    if not isinstance(found, dict) or found.keys() != {"x", "y"}:
        return False
    return all(_is_whole(value) for value in found.values())


def _is_whole(value: object) -> bool:
    if isinstance(value, float):
        return value.is_integer()
    return isinstance(value, int) and not isinstance(value, bool)


def check_cgi(done: subprocess.CompletedProcess[bytes], statuses: set[int]) -> None:
    head, blank, body = done.stdout.partition(b"\r\n\r\n")
    if not blank:
        head, blank, body = done.stdout.partition(b"\n\n")
    assert blank, f"no response: {done.stdout[:200]!r} {done.stderr[-300:]!r}"
    for secret in SECRETS:
        assert secret not in done.stdout, f"the response contains {secret!r}"
    headers = dict(line.split(b": ", 1) for line in head.splitlines())
    assert b"Content-Type" in headers or b"Content-type" in headers, head
    # A CGI program that names no status has the status 200.
    status = int(headers.get(b"Status", b"200").split()[0])
    assert status in statuses, f"status {status}, expected one of {sorted(statuses)}"
    json.loads(body, parse_constant=refuse_constant)


def _check_call(done: subprocess.CompletedProcess[bytes]) -> None:
    # 130 is the status of a program that was interrupted.
    assert done.returncode == 130 or 0 <= done.returncode < 128, f"exit status {done.returncode}"
    for secret in (b"Traceback", b"hunter2"):
        assert secret not in done.stdout, f"the output contains {secret!r}"
    assert b"Traceback" not in done.stderr or b"hunter2" in done.stderr, done.stderr[-300:]
