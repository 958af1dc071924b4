"""The forwarded headers of proxies: whose count, and for what."""

from __future__ import annotations

import asyncio
from pathlib import Path
from typing import Any

import httpx
import pytest
from tests.records.support import MemorySink

from answerback import App
from answerback.records import Records

EVERYTHING = Path(__file__).parent.parent / "apps" / "everything.py"
PROXY = "10.1.2.3"
HOSTS = ["tools.example.com"]


def app_with(records: Records | None = None) -> App:
    app = App("tools", records=records)

    @app.tool
    def add(x: int, y: int) -> int:
        return x + y

    return app


def send(
    app: App,
    method: str,
    path: str,
    headers: list[tuple[str, str]],
    peer: str = PROXY,
    proxies: tuple[str, ...] = ("10.0.0.0/8",),
) -> httpx.Response:
    """Send a request from the address *peer*."""

    async def request() -> httpx.Response:
        asgi = app.asgi(trusted_proxies=proxies, hosts=HOSTS)
        transport = httpx.ASGITransport(asgi, client=(peer, 5000))
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            body = b'{"x":7,"y":3}' if method == "POST" else b""
            return await client.request(method, path, content=body, headers=headers)

    return asyncio.run(asyncio.wait_for(request(), 60))


def recorded_client(
    *headers: tuple[str, str], peer: str = PROXY, proxies: tuple[str, ...] = ("10.0.0.0/8",)
) -> str:
    """The address that is recorded as the client's."""
    sink = MemorySink()
    records = Records(sink)
    send(app_with(records), "POST", "/functions/add", [*headers], peer, proxies)
    records.close()
    (event,) = sink.replies
    return event.caller


@pytest.mark.parametrize(
    ("forwarded", "client"),
    [
        ("192.0.2.7", "192.0.2.7"),
        ("192.0.2.7:4711", "192.0.2.7"),
        ("2001:db8::7", "2001:db8::7"),
        ("[2001:db8::7]:4711", "2001:db8::7"),
        ("::ffff:192.0.2.7", "192.0.2.7"),
        ("203.0.113.9, 192.0.2.7", "192.0.2.7"),
        ("192.0.2.7, 10.9.9.9", "192.0.2.7"),
        ("198.51.100.1, 192.0.2.7, 10.9.9.9, 10.8.8.8", "192.0.2.7"),
        ("10.7.7.7, 10.9.9.9", "10.7.7.7"),
        ("192.0.2.7, unknown", PROXY),
        ('192.0.2.7, evil" or 1=1', PROXY),
        ("999.0.0.1", PROXY),
        ("", PROXY),
    ],
)
def test_the_client_is_the_last_address_that_is_not_a_trusted_proxy(
    forwarded: str, client: str
) -> None:
    standard = ", ".join(f'for="{node}"' for node in forwarded.split(", "))

    assert recorded_client(("X-Forwarded-For", forwarded)) == client
    if '"' not in forwarded:
        assert recorded_client(("Forwarded", standard)) == client


@pytest.mark.parametrize(
    ("peer", "proxies"),
    [
        ("192.0.2.1", ("10.0.0.0/8",)),
        ("127.0.0.1", ("10.0.0.0/8",)),
        ("127.0.0.1", ()),
        ("2001:db8::1", ("10.0.0.0/8",)),
        ("10.1.2.3", ("10.1.2.4",)),
    ],
)
def test_forwarded_headers_from_other_addresses_are_ignored(
    peer: str, proxies: tuple[str, ...]
) -> None:
    headers = (("X-Forwarded-For", "192.0.2.7"), ("Forwarded", "for=192.0.2.7"))

    assert recorded_client(*headers, peer=peer, proxies=proxies) == peer


@pytest.mark.parametrize("trusted", ["10.1.2.3", "10.1.0.0/16", "10.1.2.3/8", "0.0.0.0/0"])
def test_an_address_or_a_network_can_be_trusted(trusted: str) -> None:
    client = recorded_client(("X-Forwarded-For", "2001:db8::7"), proxies=(trusted,))

    assert client == "2001:db8::7"


def test_headers_of_both_kinds_count_only_if_they_agree() -> None:
    """A proxy that sets one kind may pass the other kind on as a client sent it."""
    plain, forged = ("X-Forwarded-For", "192.0.2.7"), ("Forwarded", "for=198.51.100.1")

    assert recorded_client(plain, ("Forwarded", "for=192.0.2.7;proto=https")) == "192.0.2.7"
    assert recorded_client(plain, forged) == PROXY


@pytest.mark.parametrize(
    "headers",
    [
        [("X-Forwarded-Host", "evil.example")],
        [("X-Forwarded-For", "192.0.2.7"), ("X-Forwarded-Host", "tools.example.com, evil.example")],
        [("Forwarded", "for=192.0.2.7;host=evil.example")],
        [("Forwarded", 'for=192.0.2.7; Host="evil.example"')],
    ],
)
def test_the_host_that_a_proxy_was_asked_for_is_checked(headers: list[tuple[str, str]]) -> None:
    trusted = send(app_with(), "GET", "/healthz", headers)
    ignored = send(app_with(), "GET", "/healthz", headers, peer="192.0.2.1")

    assert (trusted.status_code, trusted.headers["x-error-code"]) == (421, "FOREIGN_HOST")
    assert ignored.status_code == 200


def test_a_forwarded_host_does_not_hide_the_real_one() -> None:
    """A page that reaches a loopback server by DNS rebinding can set every header but Host."""
    headers = [("Host", "evil.example"), ("X-Forwarded-Host", "localhost")]

    refused = send(app_with(), "GET", "/healthz", headers, "127.0.0.1", ("127.0.0.1",))

    assert (refused.status_code, refused.headers["x-error-code"]) == (421, "FOREIGN_HOST")


def test_a_page_of_the_forwarded_host_is_no_foreign_page() -> None:
    page = [("Origin", "https://tools.example.com"), ("X-Forwarded-Host", "tools.example.com")]

    assert send(app_with(), "POST", "/functions/add", page).json() == {"result": 10}
    assert send(app_with(), "POST", "/functions/add", page, peer="192.0.2.1").status_code == 403


@pytest.mark.parametrize(
    ("prefix", "server"),
    [
        ("/api/v1", "/api/v1"),
        ("/api/", "/api"),
        ("/functions", "/functions"),
        ("api", "/"),
        ("//evil.example", "/"),
        ("/a b", "/"),
        ('/a"b', "/"),
    ],
)
def test_the_prefix_that_a_proxy_removed_is_in_the_openapi_document(
    prefix: str, server: str
) -> None:
    headers = [("X-Forwarded-Prefix", prefix)]

    document = send(app_with(), "GET", "/openapi.json", headers)
    ignored = send(app_with(), "GET", "/openapi.json", headers, peer="192.0.2.1")
    called = send(app_with(), "POST", "/functions/add", headers)

    assert document.json().get("servers", [{"url": "/"}]) == [{"url": server}]
    assert ignored.json().get("servers", [{"url": "/"}]) == [{"url": "/"}]
    assert called.json() == {"result": 10}


@pytest.mark.parametrize(
    "header",
    ["for", "for=", ";;,,", 'for="', "=", "for=1.2.3.4;" * 200, "for=1.2.3.4 x", "\xff"],
)
def test_malformed_forwarded_headers_are_ignored(header: str) -> None:
    value = header.encode("latin-1")

    assert recorded_client((b"Forwarded", value)) == PROXY  # type: ignore[arg-type]  # httpx takes bytes too


@pytest.mark.parametrize(("flags", "status"), [((), 200), (("--trust-proxy", "127.0.0.1"), 421)])
def test_serve_reads_the_headers_of_trusted_proxies_only(
    serve: Any, connect: Any, request_bytes: Any, flags: tuple[str, ...], status: int
) -> None:
    with serve(EVERYTHING, *flags) as server:
        connection = connect(server.port)
        connection.send(
            request_bytes("/functions/add", b'{"x":7,"y":3}', "X-Forwarded-Host: a.example")
        )
        response = connection.read_response()

    assert response.status == status
