"""Who may speak to the server: `Host` and `Origin`, on this machine and elsewhere."""

from __future__ import annotations

from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answerback import App
from answerback.errors import AnswerbackError
from answerback.reply import Reply
from answerback.wires.asgi.request import joined_headers
from answerback.wires.http.guard import Guard
from answerback.wires.http.options import WebOptions

Ask = Callable[..., Any]
EVERYTHING = Path(__file__).parent.parent / "apps" / "everything.py"
LOOPBACK = "127.0.0.1"


def judge(
    *said: tuple[bytes, bytes], server: str | None = LOOPBACK, options: WebOptions | None = None
) -> str | None:
    """The code of the refusal for a request with those headers, or None."""
    guard = Guard(options or WebOptions())
    scope = {"server": server and (server, 8000), "headers": list(said)}
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
def test_on_loopback_the_names_of_this_machine_are_known(name: str) -> None:
    assert judge(host(name)) is None


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
def test_on_loopback_any_other_name_is_foreign(name: str, server: str) -> None:
    """DNS rebinding: a stranger's name that leads to this machine."""
    assert judge(host(name), server=server) == "FOREIGN_HOST"


def test_without_a_host_nobody_is_known_on_loopback() -> None:
    assert judge() == "FOREIGN_HOST"


@pytest.mark.parametrize("said", [("evil.com", "127.0.0.1"), ("127.0.0.1", "evil.com")])
def test_one_of_two_hosts_does_not_hide_the_other(said: tuple[str, str]) -> None:
    assert judge(host(said[0]), host(said[1])) == "FOREIGN_HOST"


@pytest.mark.parametrize("server", ["192.168.1.5", "2001:db8::1", None])
def test_elsewhere_every_name_is_known_until_names_are_given(server: str | None) -> None:
    named = WebOptions(hosts=("tools.example.com",))

    assert judge(host("whatever.example.com"), server=server) is None
    assert judge(host("whatever.example.com"), server=server, options=named) == "FOREIGN_HOST"
    assert judge(host("localhost"), server=server, options=named) == "FOREIGN_HOST"
    assert judge(host("Tools.Example.com:443"), server=server, options=named) is None


def test_names_that_are_given_add_to_those_of_this_machine() -> None:
    """A proxy calls by the name, a health check on the same machine by its address."""
    named = WebOptions(hosts=("tools.example.com",))

    assert judge(host("tools.example.com"), options=named) is None
    assert judge(host("127.0.0.1:8000"), options=named) is None
    assert judge(host("evil.com"), options=named) == "FOREIGN_HOST"


@pytest.mark.parametrize(
    "given", ["Tools.Example.COM", "tools.example.com:8000", "tools.example.com."]
)
def test_a_name_may_be_given_as_it_is_written(given: str) -> None:
    assert judge(host("tools.example.com"), options=WebOptions(hosts=(given,))) is None


@pytest.mark.parametrize("given", ["2001:db8::1", "[2001:DB8::1]", "[2001:db8::1]:80"])
def test_an_address_may_be_given_with_brackets_or_without(given: str) -> None:
    assert judge(host("[2001:db8::1]:8000"), options=WebOptions(hosts=(given,))) is None


def test_any_name_can_be_allowed() -> None:
    assert judge(host("evil.com"), options=WebOptions(hosts=("*",))) is None


@pytest.mark.parametrize("given", ["https://tools.example.com", "", "a b", "tools/x"])
def test_a_name_that_could_never_match_is_refused_at_once(given: str) -> None:
    with pytest.raises(AnswerbackError, match="no host"):
        WebOptions(hosts=(given,))


@pytest.mark.parametrize("given", ["app.example.com", "", "https://a.example.com/path"])
def test_an_origin_that_could_never_match_is_refused_at_once(given: str) -> None:
    with pytest.raises(AnswerbackError, match="no origin"):
        WebOptions(origins=(given,))


@pytest.mark.parametrize("server", [LOOPBACK, "192.168.1.5"])
@pytest.mark.parametrize(
    "said",
    ["http://127.0.0.1:8000", "https://127.0.0.1:8000", "HTTP://127.0.0.1:8000"],
)
def test_its_own_pages_may_call(said: str, server: str) -> None:
    assert judge(host("127.0.0.1:8000"), origin(said), server=server) is None


@pytest.mark.parametrize("server", [LOOPBACK, "192.168.1.5"])
@pytest.mark.parametrize(
    "said",
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
def test_a_page_from_elsewhere_may_not_call(said: str, server: str) -> None:
    assert judge(host("127.0.0.1:8000"), origin(said), server=server) == "FOREIGN_ORIGIN"


@pytest.mark.parametrize("said", ["null", "", "http://"])
def test_no_origin_is_our_own_where_no_host_was_said(said: str) -> None:
    assert judge(origin(said), server="192.168.1.5") == "FOREIGN_ORIGIN"


@pytest.mark.parametrize("given", ["https://App.example.com", "https://app.example.com/"])
def test_an_allowed_page_may_call(given: str) -> None:
    allowed = WebOptions(origins=(given,))

    assert judge(host(LOOPBACK), origin("https://app.example.com"), options=allowed) is None
    assert judge(host(LOOPBACK), origin("https://evil.com"), options=allowed) == "FOREIGN_ORIGIN"


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
def test_the_guard_stands_before_everything(
    everything: App, ask: Ask, method: str, path: str
) -> None:
    foreign_host = ask(everything, method, path, b"{}", {"Host": "evil.com"})
    foreign_page = ask(everything, method, path, b"{}", {"Origin": "https://evil.com"})

    assert foreign_host.status == 421
    assert foreign_page.status == 403


def test_a_refusal_says_how_to_allow_it(everything: App, ask: Ask) -> None:
    foreign_host = ask(everything, "POST", "/functions/add", b"{}", {"Host": "tools.example.com"})
    foreign_page = ask(everything, "POST", "/functions/add", b"{}", {"Origin": "https://a.b"})

    assert foreign_host.json == {
        "error": "Foreign host: tools.example.com; allow it with --allow-host or hosts="
    }
    assert foreign_page.json == {
        "error": "Foreign origin: https://a.b; allow it with --allow-origin or origins="
    }


def test_an_allowed_page_can_read_the_answer_and_its_error_code(everything: App, ask: Ask) -> None:
    page = {"Origin": "https://app.example.com"}
    options = {"origins": ["https://app.example.com"]}

    good = ask(everything, "POST", "/functions/add", b'{"x":7,"y":3}', page, **options)
    bad = ask(everything, "POST", "/functions/nope", b"{}", page, **options)

    assert good.body == b'{"result":10}'
    assert good.headers["access-control-allow-origin"] == "https://app.example.com"
    assert "X-Error-Code" in bad.headers["access-control-expose-headers"]


def test_an_allowed_page_may_ask_first(everything: App, ask: Ask) -> None:
    asked = {
        "Origin": "https://app.example.com",
        "Access-Control-Request-Method": "POST",
        "Access-Control-Request-Headers": "content-type",
    }
    options = {"origins": ["https://app.example.com"]}

    allowed = ask(everything, "OPTIONS", "/functions/add", None, asked, **options)
    refused = ask(
        everything, "OPTIONS", "/functions/add", None,
        asked | {"Origin": "https://evil.com"}, **options,
    )  # fmt: skip

    assert allowed.status == 200
    assert allowed.headers["access-control-allow-origin"] == "https://app.example.com"
    assert "POST" in allowed.headers["access-control-allow-methods"]
    assert "access-control-allow-origin" not in refused.headers


def test_a_page_that_was_not_allowed_learns_nothing(everything: App, ask: Ask) -> None:
    found = ask(everything, "POST", "/functions/add", b"{}", {"Origin": "https://evil.com"})

    assert not any(name.startswith("access-control") for name in found.headers)


def test_the_flags_of_serve_reach_the_guard(serve: Any, connect: Any, request_bytes: Any) -> None:
    flags = ("--allow-host", "tools.example.com", "--allow-origin", "https://app.example.com")
    with serve(EVERYTHING, *flags, "--host", "0.0.0.0") as server:
        line = connect(server.port)

        def status(host: str, *headers: str) -> int:
            line.send(request_bytes("/functions/add", b'{"x":7,"y":3}', *headers, host=host))
            found: int = line.read().status
            return found

        assert status("tools.example.com") == 200
        assert status("evil.com") == 421
        assert status("tools.example.com", "Origin: https://app.example.com") == 200
        assert status("tools.example.com", "Origin: https://evil.com") == 403


def test_http_1_0_without_a_host_is_refused_in_words(everything_served: Any, connect: Any) -> None:
    line = connect(everything_served.port)
    line.send(b"GET /healthz HTTP/1.0\r\n\r\n")

    assert "none was named" in line.read().json["error"]
