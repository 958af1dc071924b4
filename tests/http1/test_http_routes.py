"""The ways to a server: TLS, proxies of the environment, IPv6, redirects, credentials in a URL."""

from __future__ import annotations

import asyncio
import shutil
import socket
import ssl
import subprocess
from base64 import b64encode
from contextlib import closing
from pathlib import Path
from typing import Any

import pytest
from tests.client.conftest import stream_server

from answerback import connect
from answerback.client import ConnectError

ANSWER = (
    b'HTTP/1.1 200 OK\r\nContent-Type: application/json\r\nContent-Length: 11\r\n\r\n{"ok":true}'
)


class Site:
    """An HTTP server that keeps the heads of its requests."""

    def __init__(self, answer: bytes = ANSWER) -> None:
        self.heads: list[str] = []
        self.answer = answer

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        while True:
            head = (await reader.readuntil(b"\r\n\r\n")).decode()
            length = head.lower().partition("content-length: ")[2].partition("\r\n")[0]
            await reader.readexactly(int(length or 0))
            self.heads.append(head)
            moves = head.startswith("POST /tool ")
            writer.write(self.answer if moves else ANSWER)


class Proxy(Site):
    """A proxy: opens tunnels, and answers other requests itself."""

    async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
        head = (await reader.readuntil(b"\r\n\r\n")).decode()
        self.heads.append(head)
        if not head.startswith("CONNECT"):
            writer.write(ANSWER)
            await super().serve(reader, writer)
            return
        host, _, port = head.split()[1].rpartition(":")
        there, back = await asyncio.open_connection(host, int(port))
        writer.write(b"HTTP/1.1 200 Connection established\r\n\r\n")
        with closing(writer), closing(back):
            await asyncio.gather(_pass_on(reader, back), _pass_on(there, writer))


async def _pass_on(source: asyncio.StreamReader, sink: asyncio.StreamWriter) -> None:
    while data := await source.read(65536):
        sink.write(data)
    sink.close()


async def call(url: str, **options: Any) -> Any:
    async with asyncio.timeout(60), connect(url, transport="rest", **options) as server:
        return await server.call("tool", x=1)


@pytest.fixture(scope="module")
def certificate(tmp_path_factory: pytest.TempPathFactory) -> tuple[str, str]:
    openssl = shutil.which("openssl")
    if openssl is None:
        pytest.skip("openssl is not installed; install it from the system's packages")
    folder = tmp_path_factory.mktemp("tls")
    cert, key = str(folder / "cert.pem"), str(folder / "key.pem")
    command = [openssl, "req", "-x509", "-newkey", "rsa:2048", "-nodes", "-days", "2"]
    command += ["-subj", "/CN=localhost", "-addext", "subjectAltName=IP:127.0.0.1"]
    subprocess.run(
        [*command, "-keyout", key, "-out", cert], check=True, capture_output=True, timeout=30
    )
    return cert, key


@pytest.fixture
def tls(certificate: tuple[str, str]) -> ssl.SSLContext:
    context = ssl.create_default_context(ssl.Purpose.CLIENT_AUTH)
    context.load_cert_chain(*certificate)
    return context


@pytest.fixture(autouse=True)
def no_proxies(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("http_proxy", "https_proxy", "all_proxy", "no_proxy"):
        monkeypatch.delenv(name, raising=False)
        monkeypatch.delenv(name.upper(), raising=False)


def test_https_is_spoken_with_servers_whose_certificate_is_trusted(
    tls: ssl.SSLContext, certificate: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    async def run() -> tuple[Any, str]:
        async with stream_server(Site().serve, tls=tls) as port:
            url = f"https://127.0.0.1:{port}"
            with pytest.raises(ConnectError) as refused:
                await call(url)
            monkeypatch.setenv("SSL_CERT_FILE", certificate[0])
            return await call(url), str(refused.value)

    reply, refused = asyncio.run(run())

    assert reply.data == {"ok": True}
    assert "certificate verify failed" in refused


def test_https_goes_through_a_tunnel_of_the_proxy(
    tls: ssl.SSLContext, certificate: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("SSL_CERT_FILE", certificate[0])
    site, proxy = Site(), Proxy()

    async def run() -> tuple[Any, int]:
        async with (
            stream_server(site.serve, tls=tls) as port,
            stream_server(proxy.serve) as proxy_port,
        ):
            monkeypatch.setenv("HTTPS_PROXY", f"http://anna:se%20cret@127.0.0.1:{proxy_port}")
            return await call(f"https://127.0.0.1:{port}", headers={"authorization": "own"}), port

    reply, port = asyncio.run(run())

    assert reply.data == {"ok": True}
    login = b64encode(b"anna:se cret").decode()
    assert proxy.heads == [
        f"CONNECT 127.0.0.1:{port} HTTP/1.1\r\nhost: 127.0.0.1:{port}\r\n"
        f"proxy-authorization: Basic {login}\r\n\r\n"
    ]
    assert "proxy-authorization" not in site.heads[-1]


def test_http_is_asked_of_the_proxy_unless_no_proxy_names_the_host(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    site, proxy = Site(), Proxy()

    async def run() -> None:
        async with stream_server(site.serve) as port, stream_server(proxy.serve) as proxy_port:
            monkeypatch.setenv("http_proxy", f"http://127.0.0.1:{proxy_port}")
            await call("http://tools.example.com/base")
            monkeypatch.setenv("NO_PROXY", "127.0.0.1")
            await call(f"http://127.0.0.1:{port}")

    asyncio.run(run())

    assert proxy.heads[-1].startswith("POST http://tools.example.com/base/tool HTTP/1.1\r\n")
    assert [head.split()[1] for head in site.heads] == ["/functions", "/tool"]


def test_a_proxy_that_refuses_the_tunnel_is_an_error(monkeypatch: pytest.MonkeyPatch) -> None:
    class Refusing(Site):
        async def serve(self, reader: asyncio.StreamReader, writer: asyncio.StreamWriter) -> None:
            await reader.readuntil(b"\r\n\r\n")
            writer.write(b"HTTP/1.1 407 Proxy Authentication Required\r\nContent-Length: 0\r\n\r\n")
            writer.close()

    async def run() -> None:
        async with stream_server(Refusing().serve) as port:
            monkeypatch.setenv("https_proxy", f"127.0.0.1:{port}")
            await call("https://tools.example.com")

    with pytest.raises(ConnectError, match="answered with HTTP status 407"):
        asyncio.run(run())


def test_a_proxy_that_is_not_http_is_an_error_without_its_password(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("all_proxy", "socks5://anna:secret@127.0.0.1:1")

    with pytest.raises(ConnectError, match="is not an HTTP proxy") as raised:
        asyncio.run(call("http://tools.example.com"))

    assert "secret" not in str(raised.value)


def test_a_server_on_ipv6_is_called_by_its_address() -> None:
    site = Site()

    async def run() -> tuple[Any, int]:
        async with stream_server(site.serve, "::1") as port:
            return await call(f"http://[::1]:{port}"), port

    if not socket.has_ipv6 or not Path("/proc/net/if_inet6").exists():
        pytest.skip("there is no IPv6")
    reply, port = asyncio.run(run())

    assert reply.ok
    assert f"\r\nhost: [::1]:{port}\r\n" in site.heads[-1]


def test_a_server_is_called_from_uvloop_with_and_without_a_tunnel(
    tls: ssl.SSLContext, certificate: tuple[str, str], monkeypatch: pytest.MonkeyPatch
) -> None:
    """Tools that call other servers run in it, because `serve` uses it."""
    uvloop = pytest.importorskip("uvloop")
    monkeypatch.setenv("SSL_CERT_FILE", certificate[0])
    site, proxy = Site(), Proxy()

    async def run() -> list[Any]:
        async with (
            stream_server(site.serve) as port,
            stream_server(site.serve, tls=tls) as tls_port,
            stream_server(proxy.serve) as proxy_port,
        ):
            urls = [f"http://127.0.0.1:{port}", f"https://127.0.0.1:{tls_port}"]
            found = [await call(url) for url in urls]
            monkeypatch.setenv("HTTPS_PROXY", f"http://127.0.0.1:{proxy_port}")
            return [*found, await call(urls[1])]

    with asyncio.Runner(loop_factory=uvloop.new_event_loop) as runner:
        replies = runner.run(run())

    assert [reply.data for reply in replies] == [{"ok": True}] * 3
    assert proxy.heads


@pytest.mark.parametrize("place", ["/moved", "http://localhost:{port}/moved", "//evil.example/x"])
def test_a_redirect_is_followed_within_the_origin_alone(place: str) -> None:
    site = Site()

    async def run() -> None:
        async with stream_server(site.serve) as port:
            where = place.format(port=port)
            site.answer = (
                f"HTTP/1.1 308 Moved\r\nLocation: {where}\r\nContent-Length: 0\r\n\r\n".encode()
            )
            await call(f"http://127.0.0.1:{port}", headers={"authorization": "Bearer secret"})

    asyncio.run(run())

    paths = [head.split()[1] for head in site.heads if head.startswith("POST")]
    assert paths == (["/tool", "/moved"] if place == "/moved" else ["/tool"])


def test_the_login_in_a_url_is_sent_as_basic_authentication() -> None:
    site = Site()

    async def run() -> None:
        async with stream_server(site.serve) as port:
            await call(f"http://anna:secret@127.0.0.1:{port}")

    asyncio.run(run())

    login = b64encode(b"anna:secret").decode()
    assert f"\r\nauthorization: Basic {login}\r\n" in site.heads[0]
