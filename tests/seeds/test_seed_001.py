"""Seed 001, the same JSON on every wire: its scenarios with examples/aligned.py."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.ports import free_port

from answerback import App, InvalidInput
from answerback.dialects import write

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "aligned.py"
MCP = "application/vnd.answerback.mcp+json"


@pytest.fixture(scope="module")
def url(serve: Callable[..., Any]) -> Iterator[str]:
    port = free_port()
    with serve(EXAMPLE, "--port", str(port)) as server:
        assert server.port == port
        yield server.url


def test_seed_001_scenario_3_an_http_error_is_json(ask: Callable[..., Any], url: str) -> None:
    answer = ask(f"{url}/functions/Add", b"{invalid")

    assert answer.status == 400
    assert answer.json == {"error": "Invalid JSON body"}
    assert answer.headers["content-type"] == "application/json"


def test_seed_001_scenario_4_a_cgi_error_has_a_status_header(cgi: Callable[..., Any]) -> None:
    answer = cgi("aligned", "/NonExistent")

    assert answer.headers["status"] == "404 Not Found"
    assert answer.headers["content-type"] == "application/json"
    assert answer.body == b'{"error":"Function not found: NonExistent"}'


def test_seed_001_scenario_5_the_served_document_has_error_schemas(
    ask: Callable[..., Any], url: str
) -> None:
    document = ask(f"{url}/openapi.json").json

    operations = [path["post"] for path in document["paths"].values() if "post" in path]
    assert [each["operationId"] for each in operations] == [
        "functions.Add",
        "functions.DivMod",
        "functions.Forget",
    ]
    for operation in operations:
        for status, description in (("400", "Invalid request"), ("500", "Internal server error")):
            response = operation["responses"][status]
            schema = response["content"]["application/json"]["schema"]
            assert response["description"] == description
            assert schema["type"] == "object"
            assert schema["properties"] == {"error": {"type": "string"}}
            assert schema["required"] == ["error"]


def test_seed_001_scenario_5_cgi_and_the_shell_print_the_same_document(
    cgi: Callable[..., Any], shell: Callable[..., Any], ask: Callable[..., Any], url: str
) -> None:
    over_cgi = cgi("aligned", "/openapi.json", REQUEST_METHOD="GET", SCRIPT_NAME="")

    served = ask(f"{url}/openapi.json").json
    assert over_cgi.json["paths"] == served["paths"]
    assert shell("aligned", "openapi").json["paths"] == served["paths"]


def test_seed_001_scenario_6_an_http_success_is_unchanged(
    ask: Callable[..., Any], url: str
) -> None:
    answer = ask(f"{url}/functions/Add", b'{"x": 5, "y": 5}')

    assert answer.status == 200
    assert answer.json == {"result": 10}
    assert answer.body == b'{"result":10}'


def test_seed_001_scenario_6_a_cgi_success_at_the_path_of_http_is_unchanged(
    cgi: Callable[..., Any],
) -> None:
    answer = cgi("aligned", "/functions/Add", b'{"x": 10, "y": 20}')

    assert answer.headers["status"] == "200 OK"
    assert answer.json == {"result": 30}


@pytest.mark.parametrize(
    ("name", "body", "text"),
    [
        ("Add", b'{"x": 7, "y": 3}', '{"result":10}'),
        ("DivMod", b'{"x": 50, "y": 30}', '{"result0":1,"result1":20}'),
        ("Forget", b"{}", "{}"),
    ],
)
def test_seed_001_requirement_1_http_cgi_shell_and_mcp_text_are_the_same_json(
    name: str,
    body: bytes,
    text: str,
    ask: Callable[..., Any],
    cgi: Callable[..., Any],
    shell: Callable[..., Any],
    url: str,
) -> None:
    over_http = ask(f"{url}/functions/{name}", body)
    as_mcp = ask(f"{url}/functions/{name}", body, Accept=MCP).json

    assert over_http.body.decode() == text
    assert cgi("aligned", f"/{name}", body).body.decode() == text
    assert shell("aligned", "call", name, "--json", body.decode()).body.decode() == f"{text}\n"
    assert as_mcp["isError"] is False
    assert as_mcp["content"] == [{"type": "text", "text": text}]


def test_seed_001_requirement_2_an_argument_error_is_json_in_the_mcp_text(
    ask: Callable[..., Any], url: str
) -> None:
    body = b'{"x": "not_a_number", "y": 3}'

    found = ask(f"{url}/functions/Add", body, Accept=MCP).json

    assert found["isError"] is True
    assert json.loads(found["content"][0]["text"]) == {
        "error": "Invalid arguments: x: expected int, got str 'not_a_number'"
    }


@pytest.mark.parametrize(
    ("path", "body", "status", "error"),
    [
        ("Add", b'{"x": "not_a_number", "y": 3}', 400, "Invalid arguments: "),
        ("NonExistent", b"{}", 404, "Function not found: NonExistent"),
        ("Add", None, 405, "Method not allowed: GET"),
    ],
)
def test_seed_001_requirements_3_and_4_every_error_is_json_over_http_and_cgi(
    path: str,
    body: bytes | None,
    status: int,
    error: str,
    ask: Callable[..., Any],
    cgi: Callable[..., Any],
    url: str,
) -> None:
    method = "GET" if body is None else "POST"

    over_http = ask(f"{url}/functions/{path}", body)
    over_cgi = cgi("aligned", f"/{path}", body or b"", REQUEST_METHOD=method)

    for answer in (over_http, over_cgi):
        assert answer.status == status
        assert answer.headers["content-type"] == "application/json"
        assert list(answer.json) == ["error"]
        assert answer.json["error"].startswith(error)


def test_seed_001_an_error_in_a_shell_is_the_same_json(shell: Callable[..., Any]) -> None:
    answer = shell("aligned", "call", "NonExistent")

    assert answer.status == 2
    assert answer.body == b'{"error":"Function not found: NonExistent"}\n'


def divide(x: int, y: int) -> int:
    if y == 0:
        raise InvalidInput("division by zero")
    return x // y


@pytest.mark.parametrize(
    ("arguments", "status", "error"),
    [
        ({"x": 7, "y": 0}, 400, "division by zero"),
        ({"x": 7, "y": "three"}, 400, "Invalid arguments: y: expected int, got str 'three'"),
    ],
)
def test_seed_001_requirement_2_errors_of_the_function_and_of_arguments_are_the_same_json(
    arguments: dict[str, Any], status: int, error: str
) -> None:
    app = App("aligned", contract="aligned")
    tool = app.add_tool(divide)

    reply = asyncio.run(app.call("divide", **arguments))

    over_http = write(reply, "rest", tool.shape, app.contract)
    over_mcp = json.loads(write(reply, "mcp", tool.shape, app.contract).body)
    assert (over_http.status, json.loads(over_http.body)) == (status, {"error": error})
    assert over_mcp["isError"] is True
    assert over_mcp["content"] == [{"type": "text", "text": over_http.body.decode()}]
