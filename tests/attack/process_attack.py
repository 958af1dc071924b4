"""Attacks CGI and the command line, which start a process for each request."""

from __future__ import annotations

import json
import os
import random
import subprocess
import sys

from tests.attack.hostile_messages import Generator
from tests.attack.report import Plan, WireReport
from tests.fuzz.frames import VERSIONS
from tests.fuzz.stdio_client import HOSTILE, SECRETS, TIMEOUT, refuse_constant

_CGI = {"REQUEST_METHOD": "POST", "PATH_INFO": "/add", "CONTENT_TYPE": "application/json"}
ODD_VARIABLES: list[dict[str, str]] = [
    {"CONTENT_LENGTH": "-1"},
    {"CONTENT_LENGTH": "9" * 30},
    {"CONTENT_LENGTH": "1000000"},
    {"CONTENT_LENGTH": "x"},
    {"CONTENT_LENGTH": ""},
    {"REQUEST_METHOD": "GET"},
    {"REQUEST_METHOD": "\udcff"},
    {"REQUEST_METHOD": ""},
    {"PATH_INFO": ""},
    {"PATH_INFO": "/none"},
    {"PATH_INFO": "/../add"},
    {"PATH_INFO": "/raise_interrupt"},
    {"PATH_INFO": "/exit_async"},
    {"PATH_INFO": "/" + "a" * 5000},
    {"PATH_INFO": "/\udcff"},
    {"CONTENT_TYPE": "text/plain"},
    {"CONTENT_TYPE": "\udcff"},
    {"HTTP_ACCEPT": "application/problem+json"},
    {"HTTP_ACCEPT": "," * 2000},
    {"HTTP_HOST": "evil.example"},
    {"SCRIPT_NAME": "/\udcff"},
    {"HTTP_PROXY": "http://evil.example"},
    {"SERVER_PROTOCOL": "HTTP/0.9"},
]
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
    report = WireReport("CGI")
    generator, chance = Generator(VERSIONS[0], plan.seed), random.Random(plan.seed)
    for number in range(plan.cases):
        if plan.time_is_up:
            break
        body = generator.arguments() if chance.random() < 0.9 else b"[" * 100_000
        variables = {**_CGI, "CONTENT_LENGTH": str(len(body))}
        if number % 3:
            variables |= ODD_VARIABLES[number % len(ODD_VARIABLES)]
        report.cases += 1
        with report.caught(f"CGI {variables} {body[:100]!r}"):
            _check_cgi(_run(["cgi"], body, variables))
    return report


def attack_command_line(plan: Plan) -> WireReport:
    report = WireReport("command line")
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


def _check_cgi(done: subprocess.CompletedProcess[bytes]) -> None:
    head, blank, body = done.stdout.partition(b"\r\n\r\n")
    if not blank:
        head, blank, body = done.stdout.partition(b"\n\n")
    assert blank, f"no response: {done.stdout[:200]!r} {done.stderr[-300:]!r}"
    for secret in SECRETS:
        assert secret not in done.stdout, f"the response contains {secret!r}"
    headers = dict(line.split(b": ", 1) for line in head.splitlines())
    assert b"Content-Type" in headers or b"Content-type" in headers, head
    json.loads(body, parse_constant=refuse_constant)


def _check_call(done: subprocess.CompletedProcess[bytes]) -> None:
    # 130 is the status of a program that was interrupted.
    assert done.returncode == 130 or 0 <= done.returncode < 128, f"exit status {done.returncode}"
    for secret in (b"Traceback", b"hunter2"):
        assert secret not in done.stdout, f"the output contains {secret!r}"
    assert b"Traceback" not in done.stderr or b"hunter2" in done.stderr, done.stderr[-300:]
