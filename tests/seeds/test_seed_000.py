"""Seed 000, the envelope: its examples with examples/instances.py, over HTTP, CGI and the shell."""

from __future__ import annotations

import json
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest
from tests.seeds import quotes

from answerback.core.content import Text
from answerback.dialects import HttpReply, read
from answerback.errors import CODES

EXAMPLE = Path(__file__).parent.parent.parent / "examples" / "instances.py"

# Successful and failing calls of every tool, and requests that reach no tool.
REQUESTS = [
    ("list_instances", b"{}", 200),
    ("get_instance", b'{"instanceId": "instance-1"}', 200),
    ("get_instance", b'{"instanceId": "instance-9"}', 404),
    ("start_instance", b'{"instanceId": "instance-3"}', 409),
    ("stop_instance", b'{"instanceId": "instance-2"}', 409),
    ("cpu_chart", b'{"instanceId": "instance-1"}', 200),
    ("open_instance", b'{"instanceId": "instance-1"}', 200),
    ("get_instance", b'{"invalidParam": true}', 400),
    ("get_instance", b"{", 400),
    ("no_such_tool", b"{}", 404),
]


@pytest.fixture(scope="module")
def url(serve: Callable[..., Any]) -> Iterator[str]:
    with serve(EXAMPLE) as server:
        yield f"{server.url}/functions"


@pytest.fixture
def envelope(ask: Callable[..., Any], url: str) -> Callable[..., Any]:
    """Calls a tool over HTTP and returns the envelope."""
    return lambda name, **given: ask(f"{url}/{name}", json.dumps(given).encode()).json


def without_timestamp(found: dict[str, Any]) -> dict[str, Any]:
    """The envelope without its timestamp, which must have a time zone."""
    assert datetime.fromisoformat(found.pop("timestamp")).tzinfo is not None
    return found


def test_seed_000_text_response_example(envelope: Callable[..., Any]) -> None:
    envelope("stop_instance", instanceId="instance-1")

    found = envelope("start_instance", instanceId="instance-1")

    assert without_timestamp(found) == {
        "success": True,
        "content": [quotes.STARTED_000],
        "data": quotes.STARTED_DATA_000,
    }


def test_seed_000_image_response_example(envelope: Callable[..., Any]) -> None:
    found = envelope("cpu_chart", instanceId="instance-1")

    assert without_timestamp(found) == {
        "success": True,
        "content": [
            {"type": "text", "text": "Instance CPU usage over time:"},
            quotes.IMAGE_000,
        ],
        "data": {"instanceId": "instance-1", "metrics": {"cpu": {"average": 45, "peak": 87}}},
    }


def test_seed_000_resource_response_example(envelope: Callable[..., Any]) -> None:
    found = envelope("open_instance", instanceId="instance-1")

    assert without_timestamp(found) == {
        "success": True,
        "content": [
            {
                "type": "text",
                "text": "VSCode instance deployed successfully. "
                "You can access it using the following URL:",
            },
            quotes.RESOURCE_000,
        ],
        "data": {"instanceId": "instance-1", "name": "vscode-instance-1", "status": "running"},
    }


def test_seed_000_error_response_example(envelope: Callable[..., Any]) -> None:
    found = envelope("get_instance", instanceId="instance-9")

    # `kind` is the standard code that a code of the author's own is treated like.
    assert found["error"].pop("kind") == "NOT_FOUND"
    assert without_timestamp(found) == {
        "success": False,
        "content": [{"type": "text", "text": "Error: Instance 'instance-9' not found"}],
        "error": {
            "code": "INSTANCE_NOT_FOUND",
            "message": "Instance 'instance-9' not found",
            "details": {
                "instanceId": "instance-9",
                "availableInstances": ["instance-1", "instance-2", "instance-3"],
            },
        },
    }


def test_seed_000_create_success_response_of_an_instance(envelope: Callable[..., Any]) -> None:
    found = envelope("get_instance", instanceId="instance-1")

    text = found["content"][0]["text"]
    assert text.startswith("Instance: vscode-instance-1\n")
    assert "\nStatus: running\n" in text
    assert text.endswith("\nProvider: docker")
    assert found["data"]["instance"]["name"] == "vscode-instance-1"


def test_seed_000_best_practice_6_a_list_is_a_readable_table(envelope: Callable[..., Any]) -> None:
    """The seed separates its columns by tabs; here spaces align them."""
    found = envelope("list_instances")

    assert found["content"][0]["text"] == (
        "Found 3 instances\n"
        "\n"
        "ID          Name               Status   Provider\n"
        "--------------------------------------------------\n"
        "instance-1  vscode-instance-1  running  docker\n"
        "instance-2  vscode-instance-2  stopped  docker\n"
        "instance-3  notebook           running  kubernetes"
    )
    assert [each["id"] for each in found["data"]["instances"]] == [
        "instance-1",
        "instance-2",
        "instance-3",
    ]


def test_seed_000_unit_test_a_success_has_the_required_fields(envelope: Callable[..., Any]) -> None:
    response = envelope("get_instance", instanceId="instance-1")

    assert response["success"] is True
    assert "timestamp" in response
    assert isinstance(response["content"], list)
    assert all("type" in item for item in response["content"])


def test_seed_000_unit_test_an_error_has_the_required_fields(envelope: Callable[..., Any]) -> None:
    response = envelope("get_instance", invalidParam=True)

    assert response["success"] is False
    assert "timestamp" in response
    assert isinstance(response["content"], list)
    assert {"code", "message"} <= response["error"].keys()


@pytest.mark.parametrize(("name", "body", "status"), REQUESTS)
def test_seed_000_every_http_reply_is_valid_by_the_json_schema(
    name: str, body: bytes, status: int, ask: Callable[..., Any], url: str
) -> None:
    answer = ask(f"{url}/{name}", body)

    assert answer.status == status
    assert answer.headers["content-type"] == "application/json"
    jsonschema.validate(answer.json, quotes.SCHEMA_000)
    datetime.fromisoformat(answer.json["timestamp"])


def test_seed_000_the_reply_to_a_wrong_method_is_valid_by_the_json_schema(
    ask: Callable[..., Any], url: str
) -> None:
    answer = ask(f"{url}/list_instances")

    assert answer.status == 405
    jsonschema.validate(answer.json, quotes.SCHEMA_000)


@pytest.mark.parametrize(("name", "body", "status"), REQUESTS)
def test_seed_000_every_cgi_reply_is_valid_by_the_json_schema(
    name: str, body: bytes, status: int, cgi: Callable[..., Any]
) -> None:
    answer = cgi("instances", f"/functions/{name}", body)

    assert answer.status == status
    jsonschema.validate(answer.json, quotes.SCHEMA_000)


def test_seed_000_the_shell_prints_the_envelope(shell: Callable[..., Any]) -> None:
    answer = shell(
        "instances", "call", "get_instance", "instanceId=instance-1", "--dialect", "envelope"
    )

    assert answer.status == 0
    jsonschema.validate(answer.json, quotes.SCHEMA_000)
    assert answer.json["data"]["instance"]["id"] == "instance-1"


def test_seed_000_client_integration_reads_the_text(ask: Callable[..., Any], url: str) -> None:
    answer = ask(f"{url}/cpu_chart", b'{"instanceId": "instance-1"}')

    reply = read(HttpReply(answer.status, answer.body, "application/json"), "envelope")

    assert reply.ok
    assert reply.content[0] == Text("Instance CPU usage over time:")


def test_seed_000_client_integration_reads_the_code(ask: Callable[..., Any], url: str) -> None:
    answer = ask(f"{url}/get_instance", b'{"instanceId": "instance-9"}')

    reply = read(HttpReply(answer.status, answer.body, "application/json"), "envelope")

    assert reply.error is not None
    assert reply.error.code == "INSTANCE_NOT_FOUND"


def test_seed_000_its_error_codes_have_status_500() -> None:
    codes = {
        "UNKNOWN_ERROR",
        "TOOL_EXECUTION_ERROR",
        "INVALID_RESPONSE_FORMAT",
        "RESPONSE_VALIDATION_ERROR",
    }

    assert {CODES[name].status for name in codes} == {500}


def test_seed_000_a_pipe_gets_the_envelope_without_an_option(shell: Callable[..., Any]) -> None:
    told = shell("instances", "call", "get_instance", "instanceId=instance-1")
    failed = shell("instances", "call", "get_instance", "instanceId=instance-9")

    jsonschema.validate(told.json, quotes.SCHEMA_000)
    jsonschema.validate(failed.json, quotes.SCHEMA_000)
    assert (told.json["success"], failed.json["success"]) == (True, False)
    assert failed.status == 66
