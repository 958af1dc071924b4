"""Fixtures that make requests as the seeds' scenarios do: over HTTP, CGI and the shell."""

from __future__ import annotations

import json
import os
import subprocess
import sys
import urllib.error
import urllib.request
from collections.abc import Callable, Mapping
from pathlib import Path
from typing import Any, NamedTuple, TypeAlias

import pytest

EXAMPLES = Path(__file__).parent.parent.parent / "examples"


class Answer(NamedTuple):
    """A response. Header names are in lower case; `status` is the HTTP or the exit status."""

    status: int
    headers: Mapping[str, str]
    body: bytes

    @property
    def json(self) -> Any:
        return json.loads(self.body)


Ask: TypeAlias = Callable[..., Answer]


@pytest.fixture(scope="session")
def ask() -> Ask:
    """Sends one HTTP request: a POST if there is a body, else a GET."""

    def request(url: str, body: bytes | None = None, **headers: str) -> Answer:
        given = {name.replace("_", "-"): value for name, value in headers.items()}
        if body is not None:
            given.setdefault("Content-Type", "application/json")
        found = urllib.request.Request(url, body, given)
        try:
            with urllib.request.urlopen(found, timeout=60) as response:
                return _answer(response)
        except urllib.error.HTTPError as error:
            with error:
                return _answer(error)

    return request


def _answer(response: Any) -> Answer:
    headers = {name.lower(): value for name, value in response.headers.items()}
    return Answer(response.status, headers, response.read())


@pytest.fixture(scope="session")
def cgi() -> Ask:
    """Sends one CGI request to an example."""

    def request(example: str, path: str, body: bytes = b"", **environ: str) -> Answer:
        given = {"REQUEST_METHOD": "POST", "PATH_INFO": path, "CONTENT_LENGTH": str(len(body))}
        done = _run([example, "cgi"], body, given | environ)
        assert done.returncode == 0
        head, _, content = done.stdout.partition(b"\r\n\r\n")
        lines = [line.split(": ", 1) for line in head.decode().split("\r\n")]
        headers = {name.lower(): value for name, value in lines}
        return Answer(int(headers["status"].split()[0]), headers, content)

    return request


@pytest.fixture(scope="session")
def shell() -> Ask:
    """Runs `python EXAMPLE.py WORDS` with pipes; the body is stdout, or stderr if that is empty."""

    def run(example: str, *words: str) -> Answer:
        done = _run([example, *words], b"", {})
        return Answer(done.returncode, {}, done.stdout or done.stderr)

    return run


def _run(
    words: list[str], body: bytes, environ: dict[str, str]
) -> subprocess.CompletedProcess[bytes]:
    example, *rest = words
    return subprocess.run(
        [sys.executable, str(EXAMPLES / f"{example}.py"), *rest],
        input=body,
        capture_output=True,
        env=os.environ | environ,
        timeout=60,
        check=False,
    )
