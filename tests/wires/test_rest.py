"""REST as ordinary callers use it and as hostile ones try it."""

from __future__ import annotations

import asyncio
import http.client
import json
import socket
from collections.abc import Callable
from typing import Any

import pytest

from answerback import App, Audio, Image, ToolError

Ask = Callable[..., Any]
MIB = 1024 * 1024


@pytest.fixture
def still_served(everything_served: Any, connect: Any, request_bytes: Any) -> Any:
    """The served app; after the test, one more call must be answered."""
    yield everything_served
    line = connect(everything_served.port)
    line.send(request_bytes())
    assert line.read().body == b'{"result":10}'


# What an ordinary caller gets.


def test_a_success_is_compact_json_and_nothing_else(everything: App, ask: Ask) -> None:
    found = ask(everything, "POST", "/functions/add", b'{"x":7,"y":3}')

    assert found.status == 200
    assert found.body == b'{"result":10}'
    assert found.headers == {"content-type": "application/json", "content-length": "13"}


def test_an_error_is_its_message_with_the_code_in_a_header(everything: App, ask: Ask) -> None:
    found = ask(everything, "POST", "/functions/missing_city", b'{"city":"Atlantis"}')

    assert found.status == 404
    assert found.body == b'{"error":"no city \'Atlantis\'"}'
    assert found.headers["content-type"] == "application/json"
    assert found.headers["x-error-code"] == "CITY_UNKNOWN"


def test_an_unknown_function_is_not_found(everything: App, ask: Ask) -> None:
    found = ask(everything, "POST", "/functions/nope", b"{}")

    assert (found.status, found.error) == (404, "TOOL_NOT_FOUND")
    assert found.body == b'{"error":"Function not found: nope"}'


def test_no_body_means_no_arguments(everything: App, ask: Ask) -> None:
    found = ask(everything, "POST", "/functions/greet")

    assert found.json == {"result": "Hello, world! ☀"}


def test_all_that_is_wrong_with_the_arguments_is_told_at_once(everything: App, ask: Ask) -> None:
    found = ask(everything, "POST", "/functions/add", b'{"x":"seven","y":null,"z":1}')

    assert (found.status, found.error) == (400, "INVALID_ARGUMENTS")
    assert all(name in found.json["error"] for name in ("x:", "y:", "z:"))


def test_a_picture_is_its_bytes_under_its_media_type(everything: App, ask: Ask) -> None:
    found = ask(everything, "POST", "/functions/picture")

    assert found.headers["content-type"] == "image/png"
    assert found.body.startswith(b"\x89PNG")


def test_five_megabytes_arrive_whole(still_served: Any) -> None:
    client = http.client.HTTPConnection("127.0.0.1", still_served.port, timeout=20)
    client.request("POST", "/functions/large")
    response = client.getresponse()
    body = response.read()
    client.close()

    assert response.headers["Content-Length"] == str(len(body))
    assert len(json.loads(body)["result"]) == 5_000_000


@pytest.mark.parametrize(
    "media", ["application/json", "application/json; charset=utf-8", "APPLICATION/JSON",
              "application/vnd.x+json", ""],
)  # fmt: skip
def test_json_under_any_of_its_names_is_taken(everything: App, ask: Ask, media: str) -> None:
    found = ask(everything, "POST", "/functions/add", b'{"x":7,"y":3}', {"Content-Type": media})

    assert found.body == b'{"result":10}'


@pytest.mark.parametrize(
    "media",
    [
        "application/x-www-form-urlencoded",
        "text/plain",
        "text/plain; x=application/json",
        "multipart/form-data; boundary=x",
        "application/json, text/plain",
        "text/plain, application/json",
    ],
)
def test_what_a_page_could_post_unasked_is_refused_and_the_fix_is_told(
    everything: App, ask: Ask, media: str
) -> None:
    found = ask(everything, "POST", "/functions/add", b'{"x":7,"y":3}', {"Content-Type": media})

    assert (found.status, found.error) == (415, "UNSUPPORTED_MEDIA_TYPE")
    assert "Content-Type: application/json" in found.json["error"]


@pytest.mark.parametrize(
    ("accept", "media"),
    [
        ("", "application/json"),
        ("*/*", "application/json"),
        ("text/html", "application/json"),
        ("application/problem+json", "application/problem+json"),
        ("application/vnd.answerback.mcp+json", "application/vnd.answerback.mcp+json"),
        (
            "application/json;q=0.5, application/vnd.answerback.envelope+json",
            "application/vnd.answerback.envelope+json",
        ),
    ],
)
def test_a_caller_picks_the_dialect_of_an_error(
    everything: App, ask: Ask, accept: str, media: str
) -> None:
    found = ask(everything, "POST", "/functions/add", b"{}", {"Accept": accept})

    assert (found.status, found.headers["content-type"]) == (400, media)


# The method, the path, the query.


@pytest.mark.parametrize(
    "method", ["GET", "HEAD", "OPTIONS", "TRACE", "PUT", "DELETE", "PATCH", "FROB"]
)
def test_another_method_is_told_which_is_allowed(everything: App, ask: Ask, method: str) -> None:
    found = ask(everything, method, "/functions/add")

    assert (found.status, found.error) == (405, "METHOD_NOT_ALLOWED")
    assert found.headers["allow"] == "POST"


@pytest.mark.parametrize("method", ["OPTIONS", "TRACE", "CONNECT", "PURGE", "DELETE"])
def test_another_method_is_refused_by_the_server_too(
    still_served: Any, connect: Any, request_bytes: Any, method: str
) -> None:
    line = connect(still_served.port)
    line.send(request_bytes(body=None, method=method))
    found = line.read()

    assert (found.status, found.headers["allow"]) == (405, "POST")
    assert found.json == {"error": f"Method not allowed: {method}; use POST"}


@pytest.mark.parametrize(
    ("path", "said"),
    [
        ("/functions/add/", "Function not found: add/"),
        ("/functions//add", "Function not found: /add"),
        ("/functions/..%2f..%2fetc%2fpasswd", "Function not found: ../../etc/passwd"),
        ("/functions/caf%C3%A9", "Function not found: café"),
        ("/functions/%E2%82%AC%0d%0aX-Evil:%201", "Function not found: €\r\nX-Evil: 1"),
        ("/functions/%00", "Function not found: \x00"),
        ("/functions/%ff", "Function not found: \ufffd"),
        ("/functions/add%3Fx=1", "Function not found: add?x=1"),
        ("//functions/add", "Not found: //functions/add"),
        ("/functions/", "Not found: /functions/"),
        ("/add", "Not found: /add"),
        ("/", "Not found: /; see /functions and /openapi.json"),
    ],
)
def test_a_path_that_leads_nowhere_is_not_found(
    still_served: Any, connect: Any, request_bytes: Any, path: str, said: str
) -> None:
    line = connect(still_served.port)
    line.send(request_bytes(path))
    found = line.read()

    assert found.status == 404
    assert found.json == {"error": said}
    assert "x-evil" not in found.headers


@pytest.mark.parametrize(
    "path", ["/functions/%61dd", "/functions/add?x=1&y=2", "/functions/add?", "/functions/add#a"]
)
def test_the_same_path_written_otherwise_is_the_same(
    still_served: Any, connect: Any, request_bytes: Any, path: str
) -> None:
    line = connect(still_served.port)
    line.send(request_bytes(path))

    assert line.read().body == b'{"result":10}'


# Pages.


@pytest.mark.parametrize("path", ["/functions", "/openapi.json", "/healthz"])
def test_a_page_is_json_and_head_is_its_head(
    still_served: Any, connect: Any, request_bytes: Any, path: str
) -> None:
    line = connect(still_served.port)
    line.send(request_bytes(path, None, method="GET"))
    whole = line.read()
    line.send(request_bytes(path, None, method="HEAD"))
    head = line.read(head=True)

    assert (whole.status, whole.headers["content-type"]) == (200, "application/json")
    assert json.dumps(whole.json, separators=(",", ":"), ensure_ascii=False) == whole.body.decode()
    assert (head.status, head.headers["content-length"]) == (200, str(len(whole.body)))


@pytest.mark.parametrize("path", ["/functions", "/openapi.json", "/healthz"])
@pytest.mark.parametrize("method", ["POST", "DELETE", "OPTIONS", "FROB"])
def test_a_page_is_only_read(everything: App, ask: Ask, path: str, method: str) -> None:
    found = ask(everything, method, path)

    assert (found.status, found.headers["allow"]) == (405, "GET, HEAD")
    assert found.json == {"error": f"Method not allowed: {method}; use GET, HEAD"}


def test_every_tool_is_listed_with_its_schemas(everything: App, ask: Ask) -> None:
    found = ask(everything, "GET", "/functions").json

    assert [tool["name"] for tool in found] == list(everything.tools)
    assert found[0]["inputSchema"]["required"] == ["x", "y"]


def test_health_names_the_app(everything: App, ask: Ask) -> None:
    found = ask(everything, "GET", "/healthz")

    assert found.body == b'{"status":"ok","name":"everything","version":"2.1.0"}'


@pytest.mark.parametrize("path", ["/healthz/", "/functions/", "/openapi.json/"])
def test_nobody_is_redirected_anywhere(everything: App, ask: Ask, path: str) -> None:
    found = ask(everything, "GET", path, None, {"Host": "evil.com"})

    assert found.status == 421
    assert "location" not in found.headers


@pytest.mark.parametrize(
    ("contract", "member"), [("standard", "error"), ("envelope", "success"), ("apps", "isError")]
)
def test_what_is_not_found_is_told_in_the_dialect_of_the_contract(
    ask: Ask, contract: str, member: str
) -> None:
    app = App("plain", contract=contract)

    for path in ("/nowhere", "/functions/nothing"):
        found = ask(app, "POST", path)
        assert (found.status, found.headers["content-type"]) == (404, "application/json")
        assert member in found.json


def test_a_page_that_cannot_be_made_is_an_error_in_json(ask: Ask) -> None:
    app = App("late")

    @app.tool
    def late(x: Unwritten) -> int:  # type: ignore[name-defined] # noqa: F821
        return 1

    found = ask(app, "GET", "/functions")

    assert found.status == 500
    assert found.json == {"error": "Internal server error"}


# Bodies that are not what they should be.


@pytest.mark.parametrize(
    "body",
    [
        b"{",
        b'{"x":7,"y":3} trailing',
        b"x=7&y=3",
        b"\xff\xfe",
        b'{"x":7,"y":3,"s":"\xff"}',
        '{"x":7,"y":3}'.encode("utf-16"),
        b"[" * 100_000,
        b'{"x":' * 100_000 + b"1" + b"}" * 100_000,
        b'{"x":NaN,"y":3}',
    ],
    ids=["cut", "trailing", "form", "bytes", "not-utf-8", "utf-16", "deep", "deep-object", "nan"],
)
def test_what_is_no_json_is_told_so(
    still_served: Any, connect: Any, request_bytes: Any, body: bytes
) -> None:
    line = connect(still_served.port)
    line.send(request_bytes(body=body))
    found = line.read()

    assert (found.status, found.error) == (400, "INVALID_JSON")
    assert found.body == b'{"error":"Invalid JSON body"}'


@pytest.mark.parametrize("body", [b"[7,3]", b"7", b"null", b'"add"'])
def test_json_that_is_no_object_is_no_arguments(everything: App, ask: Ask, body: bytes) -> None:
    found = ask(everything, "POST", "/functions/add", body)

    assert (found.status, found.error) == (400, "INVALID_ARGUMENTS")


def test_a_body_past_the_limit_is_refused(everything: App, ask: Ask) -> None:
    body = b'{"name":"%b"}' % (b"a" * 100)

    at = ask(everything, "POST", "/functions/greet", body, max_body=len(body))
    past = ask(everything, "POST", "/functions/greet", body, max_body=len(body) - 1)

    assert at.status == 200
    assert (past.status, past.error) == (413, "TOO_LARGE")
    assert past.json == {"error": "Body larger than 110 bytes"}


def test_one_who_sends_all_of_a_large_body_before_reading_can_read_the_refusal(
    still_served: Any, connect: Any, request_bytes: Any
) -> None:
    line = connect(still_served.port)
    line.send(request_bytes(body=b"a" * 8 * MIB))
    found = line.read()
    line.send(request_bytes())

    assert (found.status, found.error) == (413, "TOO_LARGE")
    assert line.read().body == b'{"result":10}'


def test_a_body_of_unknown_length_is_cut_off_at_the_limit(
    still_served: Any, connect: Any, request_bytes: Any
) -> None:
    line = connect(still_served.port)
    line.send(request_bytes("/functions/add", None, "Transfer-Encoding: chunked"))
    for _ in range(128):
        line.send(b"10000\r\n" + b"a" * 65536 + b"\r\n")
    line.send(b"0\r\n\r\n")

    assert line.read().status == 413


def test_one_who_waits_for_a_go_ahead_is_refused_before_he_sends(
    still_served: Any, connect: Any, request_bytes: Any
) -> None:
    line = connect(still_served.port)
    line.send(
        request_bytes("/functions/add", None, "Expect: 100-continue", f"Content-Length: {8 * MIB}")
    )

    assert line.read().status == 413


def test_one_who_waits_for_a_go_ahead_gets_it(
    still_served: Any, connect: Any, request_bytes: Any
) -> None:
    line = connect(still_served.port)
    line.send(request_bytes("/functions/add", None, "Expect: 100-continue", "Content-Length: 13"))
    first = line.read()
    line.send(b'{"x":7,"y":3}')

    assert first.status == 100
    assert line.read().body == b'{"result":10}'


def test_a_body_that_trickles_in_is_waited_for(
    still_served: Any, connect: Any, request_bytes: Any
) -> None:
    line = connect(still_served.port)
    line.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for byte in request_bytes("/functions/add", b'{"x":7,"y":3}'):
        line.send(bytes([byte]))

    assert line.read().body == b'{"result":10}'


@pytest.mark.parametrize("length", ["100", "99999999999"])
def test_one_who_goes_in_the_middle_of_a_body_is_forgotten(
    still_served: Any, connect: Any, request_bytes: Any, length: str
) -> None:
    line = connect(still_served.port)
    line.send(request_bytes("/functions/add", None, f"Content-Length: {length}") + b'{"x":7')
    line.socket.shutdown(socket.SHUT_WR)

    assert line.ends()


class Caller:
    """An ASGI server's side of one request: what it gives, what it was sent."""

    def __init__(self, *messages: dict[str, Any]) -> None:
        self.left = list(messages)
        self.sent: list[dict[str, Any]] = []
        self.left_when_answered: int | None = None

    async def receive(self) -> dict[str, Any]:
        return self.left.pop(0)

    async def send(self, message: Any) -> None:
        if not self.sent:
            self.left_when_answered = len(self.left)
        self.sent.append(message)

    def post(self, app: App, path: str, *headers: tuple[bytes, bytes], **options: Any) -> None:
        scope = {"type": "http", "method": "POST", "path": path, "headers": [*headers]}
        asyncio.run(app.asgi(**options)(scope, self.receive, self.send))


def part(body: bytes, *, more: bool = True) -> dict[str, Any]:
    return {"type": "http.request", "body": body, "more_body": more}


def test_an_announced_body_that_does_not_arrive_is_not_taken_for_no_arguments(
    everything: App,
) -> None:
    """Servers other than ours drop the body of one who offers an upgrade."""
    caller = Caller(part(b"", more=False))

    caller.post(everything, "/functions/greet", (b"content-length", b"13"))

    assert caller.sent[0]["status"] == 400


def test_a_large_body_is_taken_to_its_end_and_not_kept() -> None:
    """One who is sending does not read yet; how much he sends is no matter."""
    alive = most = 0

    class Chunk(bytes):
        def __new__(cls) -> Chunk:
            nonlocal alive, most
            alive += 1
            most = max(most, alive)
            return super().__new__(cls, b"a" * 1000)

        def __del__(self) -> None:
            nonlocal alive
            alive -= 1

    class Sender(Caller):
        async def receive(self) -> dict[str, Any]:
            self.left.pop()
            return part(Chunk(), more=bool(self.left))

    caller = Sender(*({} for _ in range(100)))
    caller.post(App("empty"), "/functions/any", max_body=5000)

    assert caller.sent[0]["status"] == 413
    assert caller.left_when_answered == 0
    assert most <= 7


def test_nothing_is_run_for_one_who_has_gone() -> None:
    app = App("late")
    ran: list[int] = []
    app.add_tool(lambda: ran.append(1), name="run")
    caller = Caller(part(b"{"), {"type": "http.disconnect"})

    caller.post(app, "/functions/run")

    assert ran == []
    # To nobody, but for middleware that wants an answer.
    assert [message.get("body", b"") for message in caller.sent] == [b"", b""]


# What is hardly HTTP, or more than one asked for.


def test_requests_sent_at_once_are_answered_in_their_order(
    still_served: Any, connect: Any, request_bytes: Any
) -> None:
    line = connect(still_served.port)
    line.send(b"".join(request_bytes(body=b'{"x":%d,"y":0}' % n) for n in range(20)))

    assert [line.read().json["result"] for _ in range(20)] == list(range(20))


@pytest.mark.parametrize(
    "garbage",
    [
        b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03",
        b"hello\r\n\r\n",
        b"FROB /functions/add HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"PRI * HTTP/2.0\r\n\r\nSM\r\n\r\n",
        b"POST /functions/\xc3\xa9 HTTP/1.1\r\nHost: localhost\r\n\r\n",
        b"POST /functions/add HTTP/1.1\r\nContent-Length: 1\r\nContent-Length: 2\r\n\r\n",
        b"POST /functions/add HTTP/1.1\r\nContent-Length: -1\r\n\r\n",
        b"POST /functions/add HTTP/1.1\r\nContent-Length: 1" + b"0" * 30 + b"\r\n\r\n",
        b"POST /functions/add HTTP/1.1\r\nContent-Length: 3\r\nTransfer-Encoding: chunked\r\n\r\n",
    ],
    ids=["tls", "words", "method", "http2", "path", "lengths", "negative", "huge", "smuggled"],
)
def test_what_is_no_http_is_refused_in_json_and_hung_up_on(
    still_served: Any, connect: Any, garbage: bytes
) -> None:
    line = connect(still_served.port)
    line.send(garbage)
    found = line.read()

    assert (found.status, found.headers["content-type"]) == (400, "application/json")
    assert found.json == {"error": "Invalid HTTP request"}
    assert line.ends()


def test_a_head_without_an_end_is_refused(still_served: Any, connect: Any) -> None:
    line = connect(still_served.port)
    line.send(b"POST /functions/add HTTP/1.1\r\nHost: localhost\r\nX-Long: " + b"a" * 70_000)

    assert line.read().json == {"error": "Headers too large"}


def test_a_large_head_is_fine_as_long_as_it_ends(
    still_served: Any, connect: Any, request_bytes: Any
) -> None:
    large = request_bytes("/functions/add", b'{"x":7,"y":3}', "X-Long: " + "a" * 30_000)

    line = connect(still_served.port)
    line.socket.setsockopt(socket.IPPROTO_TCP, socket.TCP_NODELAY, 1)
    for _ in range(10):
        for at in range(0, len(large), 3000):
            line.send(large[at : at + 3000])
        assert line.read().body == b'{"result":10}'


@pytest.mark.parametrize("pieces", [1, 2, 400])
def test_one_who_offers_an_upgrade_is_answered_as_if_he_had_not(
    still_served: Any, connect: Any, request_bytes: Any, pieces: int
) -> None:
    """Every Java client does, and sends more requests on the same connection."""
    offer = ("Connection: Upgrade, HTTP2-Settings", "Upgrade: h2c", "HTTP2-Settings: AAMAAABk")
    offered = request_bytes("/functions/add", b'{"x":7,"y":3}', *offer)
    chunked = request_bytes("/functions/add", None, *offer, "Transfer-Encoding: chunked")
    both = offered + chunked + b"d\r\n" + b'{"x":1,"y":3}' + b"\r\n0\r\n\r\n" + request_bytes()
    step = -(-len(both) // pieces)

    line = connect(still_served.port)
    for at in range(0, len(both), step):
        line.send(both[at : at + step])

    assert [line.read().json["result"] for _ in range(3)] == [10, 4, 10]


def test_a_websocket_is_not_opened(still_served: Any, connect: Any, request_bytes: Any) -> None:
    line = connect(still_served.port)
    line.send(
        request_bytes(
            "/functions/add", None, "Connection: Upgrade", "Upgrade: websocket",
            "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==", "Sec-WebSocket-Version: 13",
            method="GET",
        )
    )  # fmt: skip

    assert line.read().status == 405


# Nothing that a tool says can break a header, and nothing secret is said.


@pytest.mark.parametrize("code", ["A\r\nX-Evil: 1", "Ä", "", "A B", "A" * 1000])
def test_an_error_code_cannot_break_a_header(ask: Ask, code: str) -> None:
    app = App("codes")

    @app.tool
    def fail() -> None:
        raise ToolError("it did not work", code=code)

    found = ask(app, "POST", "/functions/fail")

    assert (found.status, found.json) == (500, {"error": "it did not work"})
    assert "x-evil" not in found.headers
    assert found.headers["x-error-code"].isascii()


@pytest.mark.parametrize("kind", [Image, Audio])
@pytest.mark.parametrize("mime", ["image/png\r\nX-Evil: 1", "text/html", "image/ä", "", "image/"])
def test_a_media_type_cannot_break_a_header_or_pass_for_a_page(
    ask: Ask, kind: Any, mime: str
) -> None:
    app = App("mimes")
    app.add_tool(lambda: kind(b"<script>", mime), name="media")

    found = ask(app, "POST", "/functions/media")

    assert "x-evil" not in found.headers
    assert found.headers["content-type"] in ("application/octet-stream", "application/json")


@pytest.mark.parametrize("name", ["leak", "leak_async", "leave", "wrong_shape", "undeclared_key"])
@pytest.mark.parametrize(
    "accept",
    ["application/json", "application/problem+json", "application/vnd.answerback.mcp+json",
     "application/vnd.answerback.envelope+json"],
)  # fmt: skip
def test_nothing_secret_is_said_in_any_dialect(
    everything: App, ask: Ask, name: str, accept: str
) -> None:
    found = ask(everything, "POST", f"/functions/{name}", b"{}", {"Accept": accept})

    said = found.body + repr(found.headers).encode()
    assert all(secret not in said for secret in (b"hunter2", b"postgres", b"Traceback", b".py"))


def test_of_an_accept_header_without_an_end_only_the_beginning_is_read(
    everything: App, ask: Ask
) -> None:
    accept = "a/b;q=0.1," * 1000 + "application/vnd.answerback.mcp+json"

    found = ask(everything, "POST", "/functions/add", b'{"x":7,"y":3}', {"Accept": accept})

    assert found.headers["content-type"] == "application/json"
