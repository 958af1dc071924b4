"""`ctx.request` and `ctx.user` on every wire."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from starlette.applications import Starlette
from starlette.authentication import AuthCredentials, AuthenticationBackend, SimpleUser
from starlette.middleware import Middleware
from starlette.middleware.authentication import AuthenticationMiddleware
from starlette.routing import Mount

from answerback import App, Context

PREFIX = "io.modelcontextprotocol/"
STATELESS = {
    PREFIX + "protocolVersion": "2026-07-28",
    PREFIX + "clientCapabilities": {},
    PREFIX + "clientInfo": {"name": "modern", "version": "2"},
    "example.com/trace": "t-1",
}
HELLO = {
    "protocolVersion": "2025-11-25",
    "capabilities": {},
    "clientInfo": {"name": "classic", "version": "1.5"},
}

FILE = """
from typing import Any
from answerback import App, Context

app = App("data")

def members(ctx: Context) -> dict[str, Any]:
    request = ctx.request
    headers, client = request.headers, request.client
    return {
        "wire": request.wire,
        "header": None if headers is None else headers.get("X-Tenant"),
        "address": request.address,
        "id": request.id,
        "protocol": request.protocol,
        "client": None if client is None else [client.name, client.version],
        "session": request.session,
        "meta": None if request.meta is None else dict(request.meta),
        "user": None if ctx.user is None else str(ctx.user),
    }

@app.tool
def show(ctx: Context) -> dict[str, Any]:
    return members(ctx)

if __name__ == "__main__":
    app.run()
"""
NONE = {
    "header": None,
    "address": None,
    "id": None,
    "protocol": None,
    "client": None,
    "session": None,
    "meta": None,
    "user": None,
}


def make_app() -> App:
    namespace: dict[str, Any] = {"__name__": "data"}
    exec(FILE, namespace)
    app: App = namespace["app"]
    return app


def rpc(id: int | str, method: str, **params: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def send(host: Any, *requests: tuple[str, Any, dict[str, str]]) -> list[httpx.Response]:
    """POST each request; the headers of a response's session go with the next ones."""

    async def send_all() -> list[httpx.Response]:
        transport = httpx.ASGITransport(host, client=("192.0.2.7", 5))
        responses = []
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            for path, body, headers in requests:
                response = await client.post(path, json=body, headers=headers)
                if session := response.headers.get("mcp-session-id"):
                    client.headers["mcp-session-id"] = session
                responses.append(response)
        return responses

    return asyncio.run(asyncio.wait_for(send_all(), 60))


def shown(response: httpx.Response) -> Any:
    return response.json()["result"]["structuredContent"]


def test_rest_has_headers_and_the_address() -> None:
    (response,) = send(make_app().asgi(), ("/functions/show", {}, {"x-TENANT": "a"}))

    assert response.json() == NONE | {"wire": "rest", "header": "a", "address": "192.0.2.7"}


def test_mcp_over_http_with_a_session_has_the_client_and_a_stable_name_of_the_session() -> None:
    meta = {"progressToken": 5, "example.com/trace": "t-1"}
    call = rpc(7, "tools/call", name="show", _meta=meta)
    hello, first, second = send(
        make_app().asgi(),
        ("/mcp", rpc(1, "initialize", **HELLO), {}),
        ("/mcp", call, {"X-Tenant": "a"}),
        ("/mcp", call, {"X-Tenant": "a"}),
    )
    _, other = send(
        make_app().asgi(),
        ("/mcp", rpc(1, "initialize", **HELLO), {}),
        ("/mcp", call, {}),
    )

    session = shown(first)["session"]
    assert shown(first) == shown(second)
    assert shown(first) == {
        "wire": "mcp",
        "header": "a",
        "address": "192.0.2.7",
        "id": 7,
        "protocol": "2025-11-25",
        "client": ["classic", "1.5"],
        "session": session,
        "meta": meta,
        "user": None,
    }
    assert len(session) == 24
    assert session not in hello.headers["mcp-session-id"]
    assert shown(other)["session"] != session


def test_mcp_over_http_without_sessions_has_the_client_of_each_request() -> None:
    headers = {
        "X-Tenant": "a",
        "MCP-Protocol-Version": "2026-07-28",
        "Mcp-Method": "tools/call",
        "Mcp-Name": "show",
    }
    call = rpc("id-1", "tools/call", name="show", _meta=STATELESS)
    (response,) = send(make_app().asgi(), ("/mcp", call, headers))

    assert shown(response) == NONE | {
        "wire": "mcp",
        "header": "a",
        "address": "192.0.2.7",
        "id": "id-1",
        "protocol": "2026-07-28",
        "client": ["modern", "2"],
        "meta": STATELESS,
    }


def test_each_request_of_a_batch_has_its_own_meta() -> None:
    hello = HELLO | {"protocolVersion": "2025-03-26"}
    batch = [rpc(n, "tools/call", name="show", _meta={"n": n}) for n in (1, 2)]
    _, response = send(
        make_app().asgi(), ("/mcp", rpc(1, "initialize", **hello), {}), ("/mcp", batch, {})
    )

    texts = [json.loads(each["result"]["content"][0]["text"]) for each in response.json()]
    assert [text["meta"] for text in texts] == [{"n": 1}, {"n": 2}]
    assert [text["client"] for text in texts] == [["classic", "1.5"]] * 2


def test_a_plain_message_has_headers_and_its_meta() -> None:
    call = rpc(3, "tools/call", name="show", _meta={"n": 1})
    (response,) = send(make_app().asgi(), ("/message", call, {"X-Tenant": "a"}))

    found = shown(response)
    assert (found["header"], found["meta"], found["address"]) == ("a", {"n": 1}, "192.0.2.7")
    assert found["session"] is None


def test_long_names_of_clients_are_cut_off_and_nameless_ones_are_none() -> None:
    def client(info: Any) -> Any:
        hello = HELLO | {"clientInfo": info}
        _, response = send(
            make_app().asgi(),
            ("/mcp", rpc(1, "initialize", **hello), {}),
            ("/mcp", rpc(2, "tools/call", name="show"), {}),
        )
        return shown(response)["client"]

    assert client({"name": "é" * 1000, "version": "1"}) == ["é" * 32, ""]
    assert client({"name": 5}) is None
    assert client("text") is None


def run(file: Path, *arguments: str, text: str = "", **environ: str) -> str:
    return subprocess.run(
        [sys.executable, str(file), *arguments],
        input=text,
        capture_output=True,
        text=True,
        timeout=60,
        check=True,
        env=os.environ | environ,
    ).stdout


@pytest.fixture
def file(tmp_path: Path) -> Path:
    path = tmp_path / "data.py"
    path.write_text(FILE)
    return path


def test_stdio_has_the_client_and_one_session(file: Path) -> None:
    messages = [
        rpc(1, "initialize", **HELLO),
        rpc(2, "tools/call", name="show", _meta={"n": 1}),
        rpc(3, "tools/call", name="show"),
        rpc(4, "tools/call", name="show", _meta=STATELESS),
    ]
    lines = run(file, "mcp", text="".join(json.dumps(each) + "\n" for each in messages))
    replies = {each["id"]: each["result"] for each in map(json.loads, lines.splitlines())}
    found = {id: replies[id]["structuredContent"] for id in (2, 3, 4)}

    assert found[2] == NONE | {
        "wire": "mcp",
        "id": 2,
        "protocol": "2025-11-25",
        "client": ["classic", "1.5"],
        "session": found[3]["session"],
        "meta": {"n": 1},
    }
    assert found[3]["session"]
    assert found[3]["meta"] is None
    assert found[4]["client"] == ["modern", "2"]
    assert found[4]["session"] is None


def test_cgi_has_headers_the_address_and_the_user_of_the_web_server(file: Path) -> None:
    output = run(
        file,
        "cgi",
        text="{}",
        REQUEST_METHOD="POST",
        PATH_INFO="/show",
        CONTENT_LENGTH="2",
        HTTP_X_TENANT="a",
        REMOTE_ADDR="192.0.2.7",
        REMOTE_USER="ada",
    )

    assert json.loads(output.partition("\n\n")[2]) == NONE | {
        "wire": "cgi",
        "header": "a",
        "address": "192.0.2.7",
        "user": "ada",
    }


def test_over_cgi_bytes_that_are_not_utf_8_are_text_that_can_be_sent(file: Path) -> None:
    output = run(
        file,
        "cgi",
        text="{}",
        REQUEST_METHOD="POST",
        PATH_INFO="/show",
        CONTENT_LENGTH="2",
        HTTP_X_TENANT=os.fsdecode(b"caf\xe9 \xff"),
        REMOTE_USER=os.fsdecode(b"ad\xc3\xa4 \xff"),
    )

    found = json.loads(output.partition("\n\n")[2])
    assert found["header"] == "café ÿ"
    assert found["user"] == "adä \\xff"


def test_the_command_line_and_memory_have_a_wire_alone(file: Path) -> None:
    reply = asyncio.run(make_app().call("show"))

    assert json.loads(run(file, "call", "show")) == NONE | {"wire": "call"}
    assert reply.data == NONE | {"wire": "memory"}


class Header(AuthenticationBackend):
    async def authenticate(self, conn: Any) -> Any:
        name = conn.headers.get("x-user")
        return (AuthCredentials(), SimpleUser(name)) if name else None


@pytest.mark.parametrize(("headers", "user"), [({"X-User": "ada"}, "ada"), ({}, None)])
@pytest.mark.parametrize("path", ["/functions/show", "/mcp"])
def test_the_user_is_the_one_that_the_hosts_middleware_authenticated(
    path: str, headers: dict[str, str], user: str | None
) -> None:
    app = App("users")

    @app.tool
    def show(ctx: Context) -> str:
        return "nobody" if ctx.user is None else str(ctx.user.display_name)

    host = Starlette(
        routes=[Mount("/", app.asgi())],
        middleware=[Middleware(AuthenticationMiddleware, backend=Header())],
    )
    body = {} if path != "/mcp" else rpc(1, "tools/call", name="show")
    (response,) = send(host, (path, body, headers))

    result = response.json()["result"]
    assert (result if path != "/mcp" else result["content"][0]["text"]) == (user or "nobody")


def test_headers_are_found_in_any_case_and_their_values_are_not_in_the_repr() -> None:
    app = App("headers")

    @app.tool
    def show(ctx: Context) -> dict[str, Any]:
        headers = ctx.request.headers
        assert headers is not None
        return {
            "joined": headers["X-MANY"],
            "missing": "x-none" in headers,
            "there": "X-Many" in headers,
            "repr": repr(headers),
        }

    async def call() -> Any:
        transport = httpx.ASGITransport(app.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://127.0.0.1") as client:
            headers = [("x-many", "a"), ("x-many", "b"), ("authorization", "Bearer hunter2")]
            return (await client.post("/functions/show", json={}, headers=headers)).json()

    found = asyncio.run(call())

    assert (found["joined"], found["missing"], found["there"]) == ("a, b", False, True)
    assert "authorization" in found["repr"]
    assert "hunter2" not in found["repr"]
