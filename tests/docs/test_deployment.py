"""Runs the files of docs/guides/deployment.md: the systemd unit, nginx, the Dockerfile."""

from __future__ import annotations

import json
import os
import re
import shlex
import shutil
import signal
import ssl
import subprocess
import sys
import tempfile
import threading
from collections.abc import Iterator
from contextlib import ExitStack, closing, contextmanager
from functools import partial
from http.client import HTTPSConnection
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from tests.docs.test_cgi_servers import find, running
from tests.records.support import replies_in
from tests.server.processes import BackgroundCall, wait_until

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "guides" / "deployment.md").read_text()
SECRET = "0123456789abcdef0123456789abcdef"
HEADERS = {"Host": "tools.example.com"}


REQUESTS = int(os.environ.get("ANSWERBACK_REQUESTS", "0"))
"""How many calls a rolling restart gets, with the times of the page; 0 for less of both."""


def block(language: str, number: int = 0) -> str:
    found: list[str] = re.findall(rf"```{language}\n(.*?)```", PAGE, re.DOTALL)
    return found[number]


@pytest.fixture
def folder() -> Iterator[Path]:
    """A folder with the program."""
    # The paths of unix sockets are limited to about 100 characters, which tmp_path may exceed.
    with tempfile.TemporaryDirectory(dir="/tmp") as name:
        folder = Path(name)
        shutil.copy(ROOT / "examples" / "calculator.py", folder)
        for name in ("tools", "tools-1", "tools-2"):
            (folder / name).mkdir()
        yield folder


def port_in(banner: str) -> int:
    """The port of the address that a server prints."""
    found = re.search(r"http://[^/\s]+:(\d+)", banner)
    assert found is not None, banner
    return int(found[1])


def unit_command(folder: Path, name: str = "ExecStart", number: int = 0) -> list[str]:
    """A command of the unit, with the folder in place of the unit's folders.

    Number 0 is the single server, and the others are those behind one nginx.
    """
    unit = block("ini", min(number, 1))
    found = re.search(rf"^{name}=(.*?[^\\])$", unit, re.DOTALL | re.MULTILINE)
    assert found is not None
    line = found[1].replace("\\\n", " ").replace("%i", str(number))
    program = f"{shlex.quote(sys.executable)} -m answerback"
    line = line.replace("/srv/tools/.venv/bin/answerback", program)
    for place in ("/srv/tools", "/var/lib/tools"):
        line = line.replace(place, str(folder))
    return shlex.split(line.replace("/run/", f"{folder}/"))


@contextmanager
def served(command: list[str], folder: Path, **environ: str) -> Iterator[str]:
    with subprocess.Popen(
        command,
        cwd=folder,
        env=os.environ | {"ANSWERBACK_SECRET": SECRET} | environ,
        stderr=subprocess.PIPE,
        text=True,
    ) as process:
        assert process.stderr is not None
        banner = ""
        while "Ctrl-C" not in banner:
            line = process.stderr.readline()
            assert line, f"the server ended: {banner}"
            banner += line
        try:
            yield banner
        finally:
            process.terminate()
            process.communicate(timeout=60)


class Site(NamedTuple):
    """The address of nginx, and the certificate that clients trust."""

    url: str
    trusted: ssl.SSLContext
    folder: Path

    def post(self, path: str, body: Any, **headers: str) -> httpx.Response:
        return httpx.post(
            f"{self.url}{path}",
            json=body,
            headers=HEADERS | headers,
            verify=self.trusted,
            timeout=60,
        )


@pytest.fixture
def site(folder: Path) -> Iterator[Site]:
    """The command of the unit behind nginx, both with the page's configuration."""
    with served(unit_command(folder), folder), nginx_with(block("nginx"), folder) as site:
        yield site


@contextmanager
def nginx_with(page: str, folder: Path) -> Iterator[Site]:
    nginx, openssl = find("nginx"), find("openssl")
    cert, key = folder / "tools.pem", folder / "tools.key"
    request = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    request += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    request += ["-keyout", str(key), "-out", str(cert)]
    subprocess.run(request, check=True, capture_output=True, timeout=60)
    page = page.replace("/run/", f"{folder}/").replace("/etc/ssl", str(folder))
    kinds = ("client_body", "proxy", "fastcgi", "uwsgi", "scgi")
    temporary = "".join(f"{kind}_temp_path {folder}/{kind};" for kind in kinds)

    def command(port: int) -> list[str]:
        on_port = page.replace("listen 443 ssl", f"listen 127.0.0.1:{port} ssl")
        (folder / "nginx.conf").write_text(
            f"pid {folder}/nginx.pid; error_log {folder}/nginx.log; daemon off; events {{}}\n"
            f"http {{ access_log off; {temporary}\n{on_port}\n}}"
        )
        return [nginx, "-e", f"{folder}/nginx.log", "-c", f"{folder}/nginx.conf"]

    with running(command, folder) as port:
        trusted = ssl.create_default_context(cafile=str(cert))
        yield Site(f"https://127.0.0.1:{port}", trusted, folder)


def test_nginx_with_the_pages_configuration_passes_calls_on_below_the_prefix(site: Site) -> None:
    called = site.post("/tools/functions/add", {"x": 7, "y": 3})
    refused = site.post("/tools/functions/add", {"x": 7})
    document = httpx.get(f"{site.url}/tools/openapi.json", headers=HEADERS, verify=site.trusted)
    outside = site.post("/functions/add", {"x": 7, "y": 3})

    assert called.json() == {"result": 10}
    assert refused.status_code == 400
    assert document.json()["servers"] == [{"url": "/tools"}]
    assert outside.status_code == 404


def test_nginx_with_the_pages_configuration_passes_mcp_sessions_on(site: Site) -> None:
    accept = {"Accept": "application/json, text/event-stream"}
    params = {
        "protocolVersion": "2025-11-25",
        "capabilities": {},
        "clientInfo": {"name": "test", "version": "1"},
    }
    started = site.post(
        "/tools/mcp",
        {"jsonrpc": "2.0", "id": 1, "method": "initialize", "params": params},
        **accept,
    )
    call = {"name": "add", "arguments": {"x": 7, "y": 3}}
    session = {"Mcp-Session-Id": started.headers["mcp-session-id"]}
    called = site.post(
        "/tools/mcp",
        {"jsonrpc": "2.0", "id": 2, "method": "tools/call", "params": call},
        **accept,
        **session,
    )

    assert called.json()["result"]["structuredContent"] == {"result": 10}


def test_the_records_behind_nginx_have_the_clients_address_and_not_a_forged_one(site: Site) -> None:
    forged = {"X-Forwarded-For": "192.0.2.1", "Forwarded": "for=192.0.2.2"}
    site.post("/tools/functions/add", {"x": 7, "y": 3}, **forged)

    (record,) = wait_until(lambda: replies_in(site.folder / "audit.db"))
    assert record.caller == "127.0.0.1"


def test_a_foreign_host_is_refused_behind_nginx(site: Site) -> None:
    response = site.post("/tools/functions/add", {"x": 7, "y": 3}, Host="evil.example")

    assert response.status_code == 421


def test_no_call_fails_while_the_servers_behind_nginx_restart_one_after_the_other(
    folder: Path,
) -> None:
    page = re.sub(r"upstream tools {.*?\n}\n", block("nginx", 1), block("nginx"), flags=re.DOTALL)
    drain = unit_command(folder, number=1)[-1]
    if not REQUESTS:
        page = re.sub(r"(keepalive_timeout |fail_timeout=)\d+s", r"\g<1>1s", page)
        drain = "2"
    counts, failed, ended = [0] * 4, list[object](), threading.Event()

    def start(number: int) -> subprocess.Popen[bytes]:
        find("curl")
        command = [*unit_command(folder, number=number)[:-1], drain]
        process = subprocess.Popen(command, cwd=folder, stderr=subprocess.DEVNULL)
        stack.callback(process.wait, 60)
        stack.callback(process.send_signal, signal.SIGINT)
        ready = unit_command(folder, "ExecStartPost", number)
        subprocess.run(ready, check=True, timeout=120)
        return process

    def call(client: int, site: Site) -> None:
        address = site.url.removeprefix("https://")
        with closing(HTTPSConnection(address, timeout=60, context=site.trusted)) as connection:
            while not ended.is_set() or sum(counts) < REQUESTS:
                connection.request("POST", "/tools/functions/add", b'{"x":7,"y":3}', HEADERS)
                response = connection.getresponse()
                answer = (response.status, response.read())
                counts[client] += 1
                if answer != (200, b'{"result":10}'):
                    failed.append(answer)

    with ExitStack() as stack:
        processes = {number: start(number) for number in (1, 2)}
        site = stack.enter_context(nginx_with(page, folder))
        clients = [BackgroundCall(partial(call, client, site)) for client in range(len(counts))]
        stack.callback(ended.set)
        for number, process in processes.items():
            process.terminate()
            assert process.wait(120) == 0
            start(number)
        ended.set()
        for each in clients:
            each.join(600)

        assert [each.result for each in clients] == [None] * len(clients)
        assert failed == [], f"of {sum(counts)} calls: {(folder / 'nginx.log').read_text()}"
        assert sum(counts) >= REQUESTS


def test_the_unit_is_valid(tmp_path: Path) -> None:
    analyze = find("systemd-analyze")
    unit = tmp_path / "tools.service"
    text = block("ini").replace("/srv/tools/.venv/bin/answerback", "/bin/sh")
    unit.write_text(text.replace("User=tools\n", ""))

    done = subprocess.run(
        [analyze, "verify", "--man=no", "--recursive-errors=no", str(unit)],
        capture_output=True,
        text=True,
        timeout=60,
    )

    complaints = [line for line in done.stderr.splitlines() if "tools.service" in line]
    assert complaints == []


def test_the_commands_of_the_dockerfile_serve_and_check_health(folder: Path) -> None:
    text = block("dockerfile")
    words = {name: json.loads(line) for name, line in re.findall(r"(CMD|CHECK CMD) (\[.*\])", text)}
    found = re.search(r"^ENV (.*)$", text, re.MULTILINE)
    assert found is not None
    environ = dict(pair.split("=") for pair in found[1].split()) | {"PORT": "0"}
    program = [sys.executable, "-m", *words["CMD"]]

    with served(program, folder, **environ) as banner:
        port = port_in(banner)
        health = [sys.executable, *words["CHECK CMD"][1:]]
        health[-1] = health[-1].replace("8000", str(port))
        checked = subprocess.run(health, capture_output=True, timeout=60)
        called = httpx.post(
            f"http://127.0.0.1:{port}/functions/add", json={"x": 7, "y": 3}, headers=HEADERS
        )

    assert "on every address" in banner
    assert checked.returncode == 0, checked.stderr
    assert called.json() == {"result": 10}


def test_the_tutorials_container_checks_its_health_with_the_same_command() -> None:
    tutorial = (ROOT / "docs" / "start" / "tutorial" / "deployment.md").read_text()
    (command,) = re.findall(r"^HEALTHCHECK .+$", block("dockerfile"), re.MULTILINE)

    assert command in tutorial
