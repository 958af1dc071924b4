"""The flags of `serve` for every day: logs, debugging, a prefix, a unix socket, TLS."""

from __future__ import annotations

import os
import re
import shutil
import socket
import ssl
import stat
import subprocess
import sys
import tempfile
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import Any, NamedTuple

import httpx
import pytest
from tests.ports import free_port
from tests.server.processes import BOUND

FAILING = """
import logging
from answerback import App

app = App("failing", version="1.0")

@app.tool
def fail(x: int) -> int:
    logging.getLogger("author").info("about to fail")
    return [10][x]

@app.tool
def invalid() -> int:
    return "seven"

app.run()
"""
WORKERS = pytest.mark.parametrize("workers", [(), ("--workers", "2")], ids=["one", "workers"])


@pytest.fixture
def failing(tmp_path: Path) -> Path:
    path = tmp_path / "failing.py"
    path.write_text(FAILING)
    return path


class Started(NamedTuple):
    process: subprocess.Popen[str]
    banner: str


@contextmanager
def started(path: Path, *flags: str, **environ: str) -> Iterator[Started]:
    """Serve with these flags alone, and end the server afterwards."""
    command = [sys.executable, str(path), "serve", *flags]
    process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True, env=os.environ | environ)
    assert process.stderr is not None
    banner = ""
    while "Ctrl-C" not in banner:
        line = process.stderr.readline()
        assert line, f"the server ended: {banner}"
        banner += line
    try:
        yield Started(process, banner)
    finally:
        process.terminate()
        process.communicate(timeout=BOUND)


def refused(path: Path, *flags: str, **environ: str) -> str:
    """The stderr of a server that must not start."""
    command = [sys.executable, str(path), "serve", *flags]
    done = subprocess.run(
        command, capture_output=True, text=True, timeout=BOUND, env=os.environ | environ
    )
    assert done.returncode == 2
    return done.stderr


@WORKERS
def test_debug_shows_the_exception_and_its_line_to_the_caller(
    serve: Any, failing: Path, workers: tuple[str, ...]
) -> None:
    with serve(failing, "--debug", *workers) as server:
        response = httpx.post(f"{server.url}/functions/fail", json={"x": 7})

    assert response.status_code == 500
    message = response.json()["error"]
    assert message.startswith("IndexError: list index out of range, in fail at ")
    assert f"{failing}:10" in message


def test_debug_shows_the_exception_of_a_task(serve: Any, failing: Path) -> None:
    failing.write_text(failing.read_text().replace("@app.tool\n", '@app.tool(task="optional")\n'))
    with serve(failing, "--debug") as server:
        wait = {"Prefer": "respond-async, wait=10"}
        response = httpx.post(f"{server.url}/functions/fail", json={"x": 7}, headers=wait)

    assert response.headers["preference-applied"] == "wait=10"
    assert response.json()["error"].startswith("IndexError: list index out of range, in fail at ")


def test_without_debug_the_exception_is_masked(serve: Any, failing: Path) -> None:
    with serve(failing) as server:
        response = httpx.post(f"{server.url}/functions/fail", json={"x": 7})

    assert "IndexError" not in response.text


@pytest.mark.parametrize(
    ("flags", "conflict"),
    [
        (("--host", "0.0.0.0"), "the host '0.0.0.0'"),
        (("--host", "192.0.2.1"), "the host '192.0.2.1'"),
        (("--trust-proxy", "127.0.0.1"), "--trust-proxy"),
        (("--allow-host", "tools.example.com"), "--allow-host"),
        (("--uds", "tools.sock"), "--uds"),
    ],
)
def test_debug_is_refused_where_clients_may_be_on_other_machines(
    failing: Path, flags: tuple[str, ...], conflict: str
) -> None:
    message = refused(failing, "--debug", *flags)

    assert len(message.splitlines()) == 1
    assert f"cannot be used with {conflict};" in message


@pytest.mark.parametrize(
    "header",
    ["X-Forwarded-For", "Forwarded", "X-Real-IP", "Via", "X-Forwarded-Host", "X-Forwarded-Proto"],
)
def test_a_server_with_debug_refuses_clients_behind_a_proxy(
    serve: Any, failing: Path, header: str
) -> None:
    with serve(failing, "--debug") as server:
        response = httpx.post(
            f"{server.url}/functions/fail", json={"x": 7}, headers={header: "192.0.2.1"}
        )

    assert response.status_code == 403
    assert response.headers["x-error-code"] == "FORBIDDEN"
    assert "started with --debug" in response.json()["error"]


@WORKERS
def test_the_log_level_shows_the_loggers_of_the_author(
    serve: Any, failing: Path, workers: tuple[str, ...]
) -> None:
    with serve(failing, "--log-level", "info", *workers) as server:
        httpx.post(f"{server.url}/functions/fail", json={"x": 0})

        lines = iter(server.stderr.readline, b"")
        found = next(line for line in lines if b"author" in line)

    assert re.fullmatch(rb"[\d:, -]+ INFO author: about to fail\n", found)


def test_a_log_level_above_error_hides_the_traceback_of_a_tool(serve: Any, failing: Path) -> None:
    with serve(failing, "--log-level", "critical") as server:
        httpx.post(f"{server.url}/functions/fail", json={"x": 7})
        server.process.terminate()
        written = server.stderr.read()

    assert written == b""


def test_an_unknown_log_level_is_refused_with_the_known_ones(failing: Path) -> None:
    message = refused(failing, "--log-level", "loud")

    assert "'debug', 'info', 'warning', 'error', 'critical'" in message


@WORKERS
def test_the_access_log_has_a_line_for_each_request(
    serve: Any, failing: Path, workers: tuple[str, ...]
) -> None:
    with serve(failing, "--access-log", *workers) as server:
        httpx.post(f"{server.url}/functions/fail", json={"x": 0})
        first = server.stderr.readline()
        httpx.get(f"{server.url}/no%0Awhere?token=secret")
        second = server.stderr.readline()

    assert re.fullmatch(rb".* 127\.0\.0\.1 POST /functions/fail 200 [\d.]+ ms\n", first)
    assert re.fullmatch(rb".* 127\.0\.0\.1 GET /no%0Awhere 404 [\d.]+ ms\n", second)


def test_the_access_log_names_the_client_behind_a_trusted_proxy(serve: Any, failing: Path) -> None:
    with serve(failing, "--access-log", "--trust-proxy", "127.0.0.1") as server:
        httpx.get(f"{server.url}/healthz", headers={"X-Forwarded-For": "192.0.2.7"})
        line = server.stderr.readline()

    assert b" 192.0.2.7 GET /healthz 200 " in line


@WORKERS
@pytest.mark.parametrize("path", ["/tools/functions/fail", "/functions/fail"])
def test_a_server_below_a_prefix_answers_with_the_prefix_and_without_it(
    serve: Any, failing: Path, path: str, workers: tuple[str, ...]
) -> None:
    """Proxies may remove the prefix or keep it."""
    with serve(failing, "--root-path", "/tools/", *workers) as server:
        response = httpx.post(f"{server.url}{path}", json={"x": 0})
        document = httpx.get(f"{server.url}/openapi.json").json()

    assert response.json() == {"result": 10}
    assert document["servers"] == [{"url": "/tools"}]


def test_a_prefix_that_the_proxy_names_as_well_counts_once(serve: Any, failing: Path) -> None:
    with serve(failing, "--root-path", "/tools", "--trust-proxy", "127.0.0.1") as server:
        document = httpx.get(
            f"{server.url}/openapi.json", headers={"X-Forwarded-Prefix": "/tools"}
        ).json()

    assert document["servers"] == [{"url": "/tools"}]


@pytest.mark.parametrize("prefix", ["tools", "/to ols", "/a//b", "/a?b"])
def test_a_malformed_prefix_is_refused(failing: Path, prefix: str) -> None:
    message = refused(failing, "--root-path", prefix)

    assert "cannot be a --root-path" in message


@pytest.fixture
def socket_path() -> Iterator[Path]:
    # The path of a unix socket must be short, and `tmp_path` may be long.
    with tempfile.TemporaryDirectory() as folder:
        yield Path(folder) / "tools.sock"


def call_over(path: Path, **headers: str) -> httpx.Response:
    transport = httpx.HTTPTransport(uds=str(path))
    with httpx.Client(transport=transport, base_url="http://localhost") as client:
        return client.post("/functions/fail", json={"x": 0}, headers=headers)


@WORKERS
def test_a_unix_socket_is_served_and_removed_at_the_end(
    failing: Path, socket_path: Path, workers: tuple[str, ...]
) -> None:
    with started(failing, "--uds", str(socket_path), *workers) as server:
        response = call_over(socket_path)
        mode = stat.S_IMODE(socket_path.stat().st_mode)

    assert f"on the unix socket {socket_path}" in server.banner
    assert response.json() == {"result": 10}
    assert mode == 0o660
    assert not socket_path.exists()


def test_a_socket_that_an_ended_server_left_behind_is_used_again(
    failing: Path, socket_path: Path
) -> None:
    with socket.socket(socket.AF_UNIX) as ended:
        ended.bind(str(socket_path))

    with started(failing, "--uds", str(socket_path)):
        response = call_over(socket_path)

    assert response.json() == {"result": 10}


def test_a_socket_in_use_is_refused_and_kept(failing: Path, socket_path: Path) -> None:
    with socket.socket(socket.AF_UNIX) as other:
        other.bind(str(socket_path))
        other.listen()
        message = refused(failing, "--uds", str(socket_path))

    expected = f"cannot listen on {socket_path}: another server is using it; try another"
    assert message == f"error: {expected}\n"
    assert socket_path.exists()


def test_another_file_is_not_replaced_by_a_socket(failing: Path, tmp_path: Path) -> None:
    file = tmp_path / "notes.txt"
    file.write_text("kept")

    message = refused(failing, "--uds", str(file))

    assert "it is not a socket" in message
    assert file.read_text() == "kept"


def test_a_proxy_on_a_unix_socket_is_trusted_as_loopback(failing: Path, socket_path: Path) -> None:
    flags = ("--uds", str(socket_path), "--trust-proxy", "127.0.0.1", "--access-log")
    with started(failing, *flags) as server:
        call_over(socket_path, **{"X-Forwarded-For": "192.0.2.7"})
        assert server.process.stderr is not None
        line = server.process.stderr.readline()

    assert " 192.0.2.7 POST /functions/fail 200 " in line


@pytest.fixture(scope="session")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[Path, Path]:
    """A certificate for localhost and its key."""
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed; install it from the system's packages")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = folder / "cert.pem", folder / "key.pem"
    names = "subjectAltName=DNS:localhost,IP:127.0.0.1"
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", names, "-keyout", str(key), "-out", str(cert)]
    subprocess.run(command, check=True, capture_output=True, timeout=BOUND)
    return cert, key


@WORKERS
def test_tls_serves_https(
    failing: Path, certificate: tuple[Path, Path], workers: tuple[str, ...]
) -> None:
    cert, key = map(str, certificate)
    with started(failing, "--port", "0", "--tls-cert", cert, "--tls-key", key, *workers) as server:
        found = re.search(r"https://\S+?:\d+", server.banner)
        assert found is not None
        trusted = ssl.create_default_context(cafile=cert)
        response = httpx.post(f"{found.group()}/functions/fail", json={"x": 0}, verify=trusted)

    assert response.json() == {"result": 10}


def test_a_client_that_leaves_a_tls_connection_causes_no_log_line(
    failing: Path, certificate: tuple[Path, Path]
) -> None:
    cert, key = map(str, certificate)
    with started(failing, "--port", "0", "--tls-cert", cert, "--tls-key", key) as server:
        found = re.search(r"https://\S+?:(\d+)", server.banner)
        assert found is not None
        context = ssl.create_default_context(cafile=cert)
        for _ in range(3):
            with socket.create_connection(("127.0.0.1", int(found[1])), timeout=BOUND) as plain:
                secured = context.wrap_socket(plain, server_hostname="localhost")
                secured.sendall(b"POST /functions/fail HTTP/1.1\r\nHost: localhost\r\n")
                secured.close()
        assert server.process.stderr is not None
        server.process.terminate()
        written = server.process.stderr.read()

    assert written == ""


def test_a_certificate_that_cannot_be_used_is_refused_in_one_line(
    failing: Path, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    cert, key = map(str, certificate)
    other = tmp_path / "no.pem"
    other.write_text("no certificate")

    messages = [
        refused(failing, "--tls-key", key),
        refused(failing, "--tls-cert", str(tmp_path / "missing.pem")),
        refused(failing, "--tls-cert", str(other), "--tls-key", key),
        refused(failing, "--tls-cert", cert),
        refused(failing, "--tls-cert", cert, "--tls-key", key, "--workers", "2", "--port", "x"),
    ]

    assert [len(message.splitlines()) for message in messages[:4]] == [1, 1, 1, 1]
    assert "--tls-key needs --tls-cert" in messages[0]
    assert "there is no file" in messages[1]
    assert "cannot be used" in messages[2]
    assert "cannot be used" in messages[3]


def test_the_message_about_a_certificate_names_the_file_and_what_to_do(
    failing: Path, certificate: tuple[Path, Path], tmp_path: Path
) -> None:
    cert, key = certificate
    words, other_key, locked = (tmp_path / f"{name}.pem" for name in ("words", "other", "locked"))
    words.write_text("no certificate")
    generate = ["openssl", "genrsa", "-out", str(other_key), "2048"]
    subprocess.run(generate, check=True, capture_output=True, timeout=BOUND)
    lock = ["openssl", "rsa", "-aes256", "-passout", "pass:word", "-in", str(key)]
    subprocess.run([*lock, "-out", str(locked)], check=True, capture_output=True, timeout=BOUND)

    def message(tls_cert: Path, tls_key: Path | None = None) -> str:
        flags = () if tls_key is None else ("--tls-key", str(tls_key))
        return refused(failing, "--tls-cert", str(tls_cert), *flags)

    unusable = "cannot be used: it"
    assert f"--tls-cert {str(cert)!r} {unusable} has no key; give it with --tls-key" in message(
        cert
    )
    assert f"--tls-cert {str(words)!r} {unusable} has no certificate in PEM" in message(words, key)
    assert f"--tls-key {str(words)!r} {unusable} has no key in PEM format" in message(cert, words)
    assert f"--tls-key {str(other_key)!r} {unusable} is not the key for" in message(cert, other_key)
    assert f"--tls-key {str(locked)!r} {unusable} has a passphrase" in message(cert, locked)
    assert f"openssl pkey -in {locked}" in message(cert, locked)


def test_the_environment_gives_the_host_and_the_port(failing: Path) -> None:
    port = str(free_port())

    with started(failing, HOST="localhost", PORT=port) as server:
        response = httpx.get(f"http://127.0.0.1:{port}/healthz")

    assert f"http://localhost:{port}/mcp" in server.banner
    assert response.status_code == 200


def test_flags_win_over_the_environment(failing: Path) -> None:
    port = str(free_port())

    with started(failing, "--host", "127.0.0.1", "--port", port, HOST="nowhere", PORT="x") as it:
        assert f"http://127.0.0.1:{port}/mcp" in it.banner


@pytest.mark.parametrize("port", ["http", "99999", "-1", "80 "])
def test_a_malformed_port_in_the_environment_is_refused(failing: Path, port: str) -> None:
    message = refused(failing, PORT=port)

    assert message == (
        f"error: PORT in the environment must be a number from 0 to 65535, not {port!r}; "
        "--port overrides it\n"
    )


def test_a_host_of_the_environment_that_cannot_be_used_is_refused(failing: Path) -> None:
    message = refused(failing, HOST="no.such.host.invalid")

    assert message.startswith("error: cannot listen on no.such.host.invalid:8000: ")
    assert message.endswith("; try another --host, or another HOST in the environment\n")


@pytest.mark.parametrize(
    "flags", [("--uds", "x", "--port", "1"), ("--reload", "--workers", "2")], ids=str
)
def test_flags_that_exclude_each_other_are_refused(failing: Path, flags: tuple[str, ...]) -> None:
    message = refused(failing, *flags)

    assert len(message.splitlines()) == 1
    assert "leave" in message
