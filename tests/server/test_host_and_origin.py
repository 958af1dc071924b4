"""The check of the `Host` and `Origin` headers, on loopback and on other addresses."""

from __future__ import annotations

import socket
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answerback import App
from answerback.core.reply import Reply
from answerback.errors import AnswerbackError
from answerback.server.asgi.request import joined_headers
from answerback.server.http.host_and_origin import Guard
from answerback.server.http.server_options import WebOptions

SendRequest = Callable[..., Any]
EVERYTHING = Path(__file__).parent.parent / "apps" / "everything.py"
LOOPBACK = "127.0.0.1"


def refusal_code(
    *headers: tuple[bytes, bytes],
    server: str | None = LOOPBACK,
    options: WebOptions | None = None,
) -> str | None:
    """The error code of the refusal of a request with these headers, or None."""
    guard = Guard(options or WebOptions())
    scope = {"server": server and (server, 8000), "headers": list(headers)}
    refused: Reply[Any] | None = guard.refuse(scope, joined_headers(scope))
    return None if refused is None or refused.error is None else refused.error.code


def host(name: str) -> tuple[bytes, bytes]:
    return b"host", name.encode("latin-1")


def origin(name: str) -> tuple[bytes, bytes]:
    return b"origin", name.encode("latin-1")


@pytest.mark.parametrize(
    "name",
    [
        "127.0.0.1",
        "127.0.0.1:8000",
        "127.0.0.2",
        "localhost",
        "LocalHost:9",
        "localhost.",
        "localhost:",
        "[::1]",
        "[::1]:8000",
    ],
)
def test_on_loopback_the_loopback_names_are_allowed(name: str) -> None:
    assert refusal_code(host(name)) is None


@pytest.mark.parametrize(
    "name",
    [
        "evil.com",
        "evil.com:8000",
        "",
        "localhost.evil.com",
        "127.0.0.1.evil.com",
        "127.evil.com",
        "evil@127.0.0.1",
        "127.0.0.1@evil.com",
        "127.0.0.1:80@evil.com",
        "127.0.0.1:x",
        "localhost:80:90",
        "localhost/evil.com",
        "localhost evil.com",
        "localhost,evil.com",
        "localhost..",
        "[::1",
        "[::1]evil.com",
        "[::1].evil.com",
        "[]",
        "é.com",
        "0.0.0.0",
        "\x00",
    ],
)
@pytest.mark.parametrize("server", ["127.0.0.1", "127.0.0.2", "::1", "::ffff:127.0.0.1"])
def test_on_loopback_any_other_host_is_refused(name: str, server: str) -> None:
    """DNS rebinding: a foreign name that resolves to this machine."""
    assert refusal_code(host(name), server=server) == "FOREIGN_HOST"


def test_on_loopback_a_request_without_a_host_is_refused() -> None:
    assert refusal_code() == "FOREIGN_HOST"


@pytest.mark.parametrize("hosts", [("evil.com", "127.0.0.1"), ("127.0.0.1", "evil.com")])
def test_an_allowed_host_does_not_hide_a_foreign_one(hosts: tuple[str, str]) -> None:
    assert refusal_code(host(hosts[0]), host(hosts[1])) == "FOREIGN_HOST"


@pytest.mark.parametrize("server", ["192.168.1.5", "2001:db8::1", None])
def test_on_other_addresses_every_host_is_allowed_until_hosts_are_given(server: str | None) -> None:
    allowing = WebOptions(hosts=("tools.example.com",))

    assert refusal_code(host("whatever.example.com"), server=server) is None
    assert (
        refusal_code(host("whatever.example.com"), server=server, options=allowing)
        == "FOREIGN_HOST"
    )
    assert refusal_code(host("localhost"), server=server, options=allowing) == "FOREIGN_HOST"
    assert refusal_code(host("Tools.Example.com:443"), server=server, options=allowing) is None


@pytest.mark.parametrize(
    "name", ["192.168.1.5", "192.168.1.5:8000", "[2001:db8::1]:8000", "localhost", "127.0.0.1"]
)
def test_on_other_addresses_serve_allows_literal_addresses(name: str) -> None:
    options = WebOptions(only_addresses=True)

    assert refusal_code(host(name), server="192.168.1.5", options=options) is None


@pytest.mark.parametrize("name", ["evil.example", "", "192.168.1.5.evil.example", "1234", "a:b"])
def test_on_other_addresses_serve_refuses_names_until_they_are_given(name: str) -> None:
    """DNS rebinding reaches every machine in the network of the user."""
    options = WebOptions(only_addresses=True)
    allowing = WebOptions(only_addresses=True, hosts=("evil.example",))

    assert refusal_code(host(name), server="192.168.1.5", options=options) == "FOREIGN_HOST"
    assert refusal_code(host("evil.example"), server="192.168.1.5", options=allowing) is None


def test_serve_on_all_addresses_refuses_the_name_of_a_rebinding_page(
    serve: Any, request_bytes: Any, own_address: str
) -> None:
    with (
        serve(EVERYTHING, "--host", "0.0.0.0") as server,
        socket.create_connection((own_address, server.port), timeout=60) as connection,
    ):
        connection.sendall(request_bytes(host="evil.example"))
        refused = connection.recv(65536)
        connection.sendall(request_bytes(host=f"{own_address}:{server.port}"))
        answered = connection.recv(65536)

    assert refused.startswith(b"HTTP/1.1 421 ")
    assert answered.startswith(b"HTTP/1.1 200 ")


@pytest.fixture
def own_address() -> str:
    """An address of this machine that is not on loopback."""
    with socket.socket(socket.AF_INET, socket.SOCK_DGRAM) as probe:
        try:
            probe.connect(("192.0.2.1", 9))  # Nothing is sent; this only chooses the address.
        except OSError:
            pytest.skip("this machine has no address but loopback")
        address: str = probe.getsockname()[0]
    return address


def test_given_hosts_are_allowed_beside_the_loopback_names() -> None:
    """A proxy sends the name, and a health check on the same machine sends the address."""
    allowing = WebOptions(hosts=("tools.example.com",))

    assert refusal_code(host("tools.example.com"), options=allowing) is None
    assert refusal_code(host("127.0.0.1:8000"), options=allowing) is None
    assert refusal_code(host("evil.com"), options=allowing) == "FOREIGN_HOST"


@pytest.mark.parametrize(
    "given", ["Tools.Example.COM", "tools.example.com:8000", "tools.example.com."]
)
def test_case_port_and_trailing_dot_of_a_given_host_are_ignored(given: str) -> None:
    assert refusal_code(host("tools.example.com"), options=WebOptions(hosts=(given,))) is None


@pytest.mark.parametrize("given", ["2001:db8::1", "[2001:DB8::1]", "[2001:db8::1]:80"])
def test_an_ipv6_address_may_be_given_with_or_without_brackets(given: str) -> None:
    assert refusal_code(host("[2001:db8::1]:8000"), options=WebOptions(hosts=(given,))) is None


def test_a_star_allows_every_host() -> None:
    assert refusal_code(host("evil.com"), options=WebOptions(hosts=("*",))) is None


@pytest.mark.parametrize("given", ["https://tools.example.com", "", "a b", "tools/x"])
def test_a_malformed_host_option_is_refused(given: str) -> None:
    with pytest.raises(AnswerbackError, match="cannot be allowed as a host"):
        WebOptions(hosts=(given,))


@pytest.mark.parametrize("given", ["app.example.com", "", "https://a.example.com/path"])
def test_a_malformed_origin_option_is_refused(given: str) -> None:
    with pytest.raises(AnswerbackError, match="cannot be allowed as an origin"):
        WebOptions(origins=(given,))


@pytest.mark.parametrize("server", [LOOPBACK, "192.168.1.5"])
@pytest.mark.parametrize(
    "page",
    ["http://127.0.0.1:8000", "https://127.0.0.1:8000", "HTTP://127.0.0.1:8000"],
)
def test_a_page_of_the_server_itself_is_allowed(page: str, server: str) -> None:
    assert refusal_code(host("127.0.0.1:8000"), origin(page), server=server) is None


@pytest.mark.parametrize("server", [LOOPBACK, "192.168.1.5"])
@pytest.mark.parametrize(
    "page",
    [
        "https://evil.com",
        "null",
        "",
        "file://",
        "http://127.0.0.1",
        "http://127.0.0.1:9000",
        "http://localhost:8000",
        "http://127.0.0.1:8000@evil.com",
        "http://evil.com@127.0.0.1:8000",
        "http://127.0.0.1:8000/x",
        "http://127.0.0.1:8000, https://evil.com",
        "http://[evil",
        "127.0.0.1:8000",
        "é",
    ],
)
def test_a_page_from_a_foreign_origin_is_refused(page: str, server: str) -> None:
    assert refusal_code(host("127.0.0.1:8000"), origin(page), server=server) == "FOREIGN_ORIGIN"


@pytest.mark.parametrize("page", ["null", "", "http://"])
def test_without_a_host_header_every_origin_is_foreign(page: str) -> None:
    assert refusal_code(origin(page), server="192.168.1.5") == "FOREIGN_ORIGIN"


@pytest.mark.parametrize("given", ["https://App.example.com", "https://app.example.com/"])
def test_a_page_from_an_allowed_origin_is_allowed(given: str) -> None:
    allowed = WebOptions(origins=(given,))

    assert refusal_code(host(LOOPBACK), origin("https://app.example.com"), options=allowed) is None
    assert (
        refusal_code(host(LOOPBACK), origin("https://evil.com"), options=allowed)
        == "FOREIGN_ORIGIN"
    )


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", "/functions/add"),
        ("GET", "/functions"),
        ("GET", "/openapi.json"),
        ("GET", "/healthz"),
        ("GET", "/nowhere"),
        ("DELETE", "/healthz"),
        ("POST", "/mcp"),
    ],
)
def test_every_path_refuses_foreign_hosts_and_origins(
    everything: App, send_request: SendRequest, method: str, path: str
) -> None:
    foreign_host = send_request(everything, method, path, b"{}", {"Host": "evil.com"})
    foreign_page = send_request(everything, method, path, b"{}", {"Origin": "https://evil.com"})

    assert foreign_host.status == 421
    assert foreign_page.status == 403


def test_a_refusal_says_how_to_allow_the_host_or_origin(
    everything: App, send_request: SendRequest
) -> None:
    foreign_host = send_request(
        everything, "POST", "/functions/add", b"{}", {"Host": "tools.example.com"}
    )
    foreign_page = send_request(
        everything, "POST", "/functions/add", b"{}", {"Origin": "https://a.b"}
    )

    assert foreign_host.json == {
        "error": "Foreign host: tools.example.com; allow it with --allow-host or hosts="
    }
    assert foreign_page.json == {
        "error": "Foreign origin: https://a.b; allow it with --allow-origin or origins="
    }


def test_cors_lets_an_allowed_page_read_the_response_and_its_error_code(
    everything: App, send_request: SendRequest
) -> None:
    page = {"Origin": "https://app.example.com"}
    options = {"origins": ["https://app.example.com"]}

    good = send_request(everything, "POST", "/functions/add", b'{"x":7,"y":3}', page, **options)
    bad = send_request(everything, "POST", "/functions/nope", b"{}", page, **options)

    assert good.body == b'{"result":10}'
    assert good.headers["access-control-allow-origin"] == "https://app.example.com"
    assert "X-Error-Code" in bad.headers["access-control-expose-headers"]


def test_a_cors_preflight_succeeds_for_an_allowed_origin_only(
    everything: App, send_request: SendRequest
) -> None:
    preflight = {
        "Origin": "https://app.example.com",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    options = {"origins": ["https://app.example.com"]}

    allowed = send_request(everything, "OPTIONS", "/functions/add", None, preflight, **options)
    refused = send_request(
        everything, "OPTIONS", "/functions/add", None,
        preflight | {"Origin": "https://evil.com"}, **options,
    )  # fmt: skip

    assert allowed.status == 200
    assert allowed.headers["access-control-allow-origin"] == "https://app.example.com"
    assert "POST" in allowed.headers["access-control-allow-methods"]
    assert "access-control-allow-origin" not in refused.headers


@pytest.mark.parametrize(
    ("path", "headers", "status"),
    [
        ("/healthz", {"Host": "10.1.2.3:8000"}, 200),
        ("/readyz", {"Host": "[fd00::7]:8000"}, 200),
        ("/readyz", {"Host": "tools.example.com"}, 200),
        ("/readyz", {"Host": "evil.com"}, 421),
        ("/readyz", {"Host": "10.1.2.3.evil.com"}, 421),
        ("/readyz", {"Host": ""}, 421),
        ("/readyz", {"Host": "10.1.2.3", "Origin": "http://10.1.2.3"}, 421),
        ("/functions", {"Host": "10.1.2.3:8000"}, 421),
        ("/nowhere", {"Host": "10.1.2.3:8000"}, 421),
    ],
)
def test_only_the_health_pages_answer_requests_that_name_any_address(
    everything: App, send_request: SendRequest, path: str, headers: dict[str, str], status: int
) -> None:
    """Load balancers and Kubernetes put the address of the machine into their health checks."""
    response = send_request(everything, "GET", path, None, headers, hosts=["tools.example.com"])

    assert response.status == status


@pytest.mark.parametrize(
    ("headers", "status", "code"),
    [
        ({"Origin": "https://evil.com"}, 403, "FOREIGN_ORIGIN"),
        ({"Access-Control-Request-Method": "PUT"}, 403, "FOREIGN_ORIGIN"),
        ({"Host": "evil.com"}, 421, "FOREIGN_HOST"),
    ],
)
def test_a_refused_preflight_is_answered_in_json(
    everything: App, send_request: SendRequest, headers: dict[str, str], status: int, code: str
) -> None:
    page = {"Origin": "https://app.example.com", "Access-Control-Request-Method": "POST"}

    response = send_request(
        everything, "OPTIONS", "/functions/add", None, page | headers,
        origins=["https://app.example.com"],
    )  # fmt: skip

    assert (response.status, response.headers["x-error-code"]) == (status, code)
    assert isinstance(response.json["error"], str)


def test_options_without_a_preflight_is_refused_with_405(
    everything: App, send_request: SendRequest
) -> None:
    response = send_request(
        everything, "OPTIONS", "/functions/add", origins=["https://app.example.com"]
    )

    assert response.status == 405


def test_a_refused_page_gets_no_cors_headers(everything: App, send_request: SendRequest) -> None:
    response = send_request(
        everything, "POST", "/functions/add", b"{}", {"Origin": "https://evil.com"}
    )

    assert not any(name.startswith("access-control") for name in response.headers)


def test_serve_passes_its_allow_flags_to_the_guard(
    serve: Any, connect: Any, request_bytes: Any
) -> None:
    flags = ("--allow-host", "tools.example.com", "--allow-origin", "https://app.example.com")
    with serve(EVERYTHING, *flags, "--host", "0.0.0.0") as server:
        connection = connect(server.port)

        def status(host: str, *headers: str) -> int:
            connection.send(request_bytes("/functions/add", b'{"x":7,"y":3}', *headers, host=host))
            response: int = connection.read_response().status
            return response

        assert status("tools.example.com") == 200
        assert status("evil.com") == 421
        assert status("tools.example.com", "Origin: https://app.example.com") == 200
        assert status("tools.example.com", "Origin: https://evil.com") == 403


def test_http_1_0_without_a_host_header_is_refused_with_a_message(
    everything_served: Any, connect: Any
) -> None:
    connection = connect(everything_served.port)
    connection.send(b"GET /healthz HTTP/1.0\r\n\r\n")

    assert "Foreign host: (none);" in connection.read_response().json["error"]
