"""Checks of the rows about `envelope`."""

from __future__ import annotations

import asyncio
import json
import logging
from datetime import datetime
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it ships no types
from tests.docs.conventions.checks import (
    PACKAGE,
    ROOT,
    KeptLog,
    app_of,
    example,
    rows_of,
    sent,
    text_of,
)

from answerback import (
    Image,
    Link,
    NotFound,
    ToolError,
    audit,
    failure,
    read,
    success,
    validate,
    wrap,
)
from answerback.dialects.readable import render
from answerback.dialects.reply_schemas import convention_schema, dialect_schema
from answerback.errors import BUILT_IN
from answerback.middleware.wsgi import ValidReplies
from answerback.records import Logging, Records
from answerback.rules.validation import repair
from answerback.testing import DisplayClient

row = rows_of("envelope")
INSTANCE = {"instance": {"name": "web", "status": "running"}}
TIME = "2025-05-03T14:30:00Z"
TEXT = [{"type": "text", "text": "a"}]
NO_SUCCESS: dict[str, Any] = {"content": TEXT, "timestamp": TIME}
ENVELOPE: dict[str, Any] = {"success": True, **NO_SUCCESS}


def envelope(value: Any, dialect: Any = "envelope") -> Any:
    """What an app under `envelope` sends for a tool that returns or raises *value*."""

    def my_tool() -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return sent(app_of(my_tool, contract="envelope"), "my_tool", dialect)


def wrapped(value: Any) -> Any:
    """The envelope that `wrap` makes of *value*."""

    async def tool() -> Any:
        if isinstance(value, Exception):
            raise value
        return value

    return asyncio.run(wrap(tool)())


def has_no_error(reply: Any, dialect: Any) -> bool:
    return not any(each.severity == "error" for each in validate(reply, dialect))


def guarded(body: bytes) -> tuple[str, Any]:
    """The status and the body of the middleware's answer to another server's *body*."""
    started: list[str] = []

    def app(environ: Any, start_response: Any) -> list[bytes]:
        start_response("200 OK", [("Content-Type", "application/json")])
        return [body]

    guard = ValidReplies(app, dialect="envelope")
    environ = {"REQUEST_METHOD": "POST", "PATH_INFO": "/tool"}
    answer = b"".join(guard(environ, lambda status, *_: started.append(status)))
    return started[-1], json.loads(answer)


def accepts(schema: Any, reply: Any) -> bool:
    return bool(jsonschema.Draft202012Validator(schema).is_valid(reply))


def only_the_convention_accepts(reply: Any) -> bool:
    own = accepts(dialect_schema("envelope"), reply)
    return accepts(convention_schema(), reply) and not own


def with_item(**item: Any) -> dict[str, Any]:
    return {**ENVELOPE, "content": [item]}


@row("createSuccessResponse(data)")
def _() -> None:
    found = success(INSTANCE).to("envelope")

    assert (found["success"], found["data"]) == (True, INSTANCE)
    assert text_of(found) == "Instance: web\nStatus: running"
    assert envelope(success(INSTANCE))["content"] == found["content"]


@row("createErrorResponse(message, code, details)")
def _() -> None:
    details = {"instanceId": "instance-9"}

    def raising() -> None:
        raise ToolError("It is gone", "INSTANCE_GONE_HERE", details)

    def returning() -> Any:
        return failure("It is gone", "INSTANCE_GONE_HERE", details)

    codes = {"INSTANCE_GONE_HERE": 404}
    app = app_of(raising, returning, contract="envelope", codes=codes)

    for name in ("raising", "returning"):
        error = sent(app, name)["error"]
        assert error == {"code": "INSTANCE_GONE_HERE", "message": "It is gone", "details": details}
        assert sent(app, name, "problem")["status"] == 404


@row("UNKNOWN_ERROR, TOOL_EXECUTION_ERROR")
def _() -> None:
    codes = {"UNKNOWN_ERROR", "TOOL_EXECUTION_ERROR", "INVALID_RESPONSE_FORMAT"}

    assert codes | {"RESPONSE_VALIDATION_ERROR"} <= BUILT_IN


@row("wrapToolResponse(toolFn)")
def _() -> None:
    def my_tool() -> Any:
        return {"success": True, "data": {"id": "instance-1"}}

    found = wrapped(my_tool())
    served = sent(app_of(wrap(my_tool), contract="envelope"), "my_tool")

    assert found["data"] == served["data"] == {"id": "instance-1"}


@row("formatComplexDataAsText")
def _() -> None:
    listed = {"instances": [{"id": "a", "status": "running"}]}

    assert text_of(envelope(listed)) == render(listed)
    assert render(INSTANCE) == "Instance: web\nStatus: running"


@row("textContent in the data")
def _() -> None:
    data = {**INSTANCE, "textContent": "It runs."}

    assert text_of(envelope(success(data))) == "It runs."
    found = envelope(success("It runs.", INSTANCE))
    assert (text_of(found), found["data"]) == ("It runs.", INSTANCE)


@row("validateMcpResponse(response)")
def _() -> None:
    response: dict[str, Any] = {"success": True, "content": TEXT}

    findings = validate(response, "envelope")
    left = repair(response, "envelope")

    assert findings
    assert (left, "timestamp" in response) == ((), True)


@row("mcpResponseValidationMiddleware")
def _() -> None:
    assert guarded(json.dumps(ENVELOPE).encode()) == ("200 OK", ENVELOPE)
    assert guarded(json.dumps(NO_SUCCESS).encode())[1]["error"]["code"] == "INVALID_RESPONSE_FORMAT"
    assert has_no_error(NO_SUCCESS, None)


@row("auditMcpResponse(toolName, response)")
def _() -> None:
    assert audit("myTool", ENVELOPE, dialect="envelope") is ENVELOPE


@row("wrapWithAudit(toolName, toolFn)")
def _() -> None:
    def my_tool() -> dict[str, Any]:
        return ENVELOPE

    assert audit("myTool", my_tool, dialect="envelope")() is ENVELOPE
    assert audit(my_tool)() is ENVELOPE


@row('monitoringClient.logEvent("mcp_response_format_issue", …)')
def _() -> None:
    records = Records(Logging(logging.getLogger("monitoring")))

    with KeptLog("monitoring") as logged:
        audit("myTool", NO_SUCCESS, records=records, dialect="envelope")
        records.close()

    assert [each.event["event"] for each in logged] == ["mcp_response_format_issue"]


@row("MockMcpClient")
def _() -> None:
    client = DisplayClient()

    client.process_response(envelope(NotFound("It is gone", code="GONE")))

    assert client.displayed_text == "Error: It is gone"
    assert (client.displayed_error, client.error_code) == (True, "GONE")


@row("myTool")
def _() -> None:
    app = example("instances.py")

    assert has_no_error(sent(app, "list_instances"), "envelope")


@row("mcpResponseSchema, Ajv")
def _() -> None:
    file = ROOT / "tests" / "seeds" / "seed_000.schema.json"

    assert convention_schema() == json.loads(file.read_text())
    assert accepts(convention_schema(), envelope(INSTANCE))


@row('type: "image" with url')
def _() -> None:
    image = Image(url="https://a/b.png", alt="A chart", width=8, height=4, caption="CPU")

    assert envelope(image)["content"][-1] == {
        "type": "image",
        "url": "https://a/b.png",
        "altText": "A chart",
        "width": 8,
        "height": 4,
        "caption": "CPU",
    }


@row('type: "resource" with resourceType, identifier')
def _() -> None:
    assert envelope(Link("instance-1", "Mine", kind="instance"))["content"][-1] == {
        "type": "resource",
        "resourceType": "instance",
        "identifier": "instance-1",
        "name": "Mine",
    }


@row("getAllInstanceIds()")
def _() -> None:
    def get_all_instance_ids() -> list[str]:
        return ["instance-2", "instance-3"]

    error = NotFound("It is gone", details={"availableInstances": get_all_instance_ids()})

    found = envelope(error)["error"]["details"]
    assert found == {"availableInstances": ["instance-2", "instance-3"]}


@row("every error has code, message and a timestamp")
def _() -> None:
    for found in (wrapped(RuntimeError("x")), envelope(RuntimeError("x"))):
        assert {"code", "message"} <= found["error"].keys()
        assert found["timestamp"]


@row("the catch path and best practice 4 send error.message")
def _() -> None:
    secret = RuntimeError("at localhost:5432")

    for found in (wrapped(secret), envelope(secret)):
        assert "localhost" not in json.dumps(found)
        assert "reference" in text_of(found)


@row("a failing result without error gets Unknown error")
def _() -> None:
    result = {"success": False, "message": "Instance not found"}

    assert text_of(wrapped(result)) == text_of(envelope(result)) == "Error: Instance not found"


@row("the wrapper returns a result that is neither")
def _() -> None:
    for value in (None, 5, "text", [1]):
        assert has_no_error(wrapped(value), "envelope")


@row('a result with a content array passes "as is"')
def _() -> None:
    found = wrapped({"content": TEXT, "more": 1})

    assert (found["success"], found["content"], found["more"]) == (True, TEXT, 1)
    assert found["timestamp"]


@row("timestamp is a Date in the format")
def _() -> None:
    moment = datetime.fromisoformat(envelope(INSTANCE)["timestamp"])

    assert str(moment.tzinfo) == "UTC"


@row("data and details are any in the format")
def _() -> None:
    assert envelope([1, 2])["data"] == {"result": [1, 2]}
    assert envelope(ToolError("no", details=[1]))["error"]["details"] == {"details": [1]}


@row("a result without success is an error")
def _() -> None:
    assert envelope({"error": "nope"})["success"] is False
    for failed in ({"error": "nope"}, {"ok": False, "error": "nope"}):
        assert wrapped(failed)["success"] is False
    assert (wrapped({"cpu": 4})["success"], envelope({"cpu": 4})["success"]) == (True, True)


@row("an error has code, message and details")
def _() -> None:
    error = envelope(NotFound("no", code="GONE", hint="look again", retryable=True))["error"]

    assert (error["kind"], error["hint"], error["retryable"]) == ("NOT_FOUND", "look again", True)


@row("the middleware answers an invalid response with the status 200")
def _() -> None:
    assert guarded(json.dumps(NO_SUCCESS).encode())[0].startswith("500")


@row('the content text is "same as" error.message')
def _() -> None:
    found = envelope(ToolError("It is gone"))

    assert (text_of(found), found["error"]["message"]) == ("Error: It is gone", "It is gone")


@row("content must not be empty")
def _() -> None:
    values: list[Any] = [None, {}, [], "", success()]

    for value in values:
        assert envelope(value)["content"]


@row("validateMcpResponse is two functions")
def _() -> None:
    assert success(INSTANCE).timestamp.tzinfo is not None
    assert "timestamp" in success(INSTANCE).to("envelope")


@row("text is JSON (JSON.stringify(data, null, 2))")
def _() -> None:
    assert text_of(envelope({"cpu": 45})) == "CPU: 45"
    assert json.loads(text_of(wrapped({"success": True, "data": {"cpu": 45}}))) == {"cpu": 45}


@row("a list is a table made with tabs")
def _() -> None:
    instances = [{"id": "a", "name": "web"}, {"id": "instance-2", "name": "db"}]

    lines = text_of(envelope({"instances": instances})).splitlines()

    assert lines[0] == "Found 2 instances"
    header, rule, *records = lines[2:]
    assert {line.index(word) for line, word in zip(records, ("web", "db"), strict=True)} == {
        header.index("Name")
    }
    assert set(rule) <= {"-", " "}


@row("createSuccessResponse looks for data.instance by name")
def _() -> None:
    assert text_of(envelope({"server": {"name": "web", "status": "up"}})).startswith("Server: web")
    assert text_of(envelope({"servers": [{"id": "a"}]})).startswith("Found 1 server")


@row("textContent is put into the data")
def _() -> None:
    data = {"instances": [{"id": "a"}], "textContent": "Found 1 instances"}

    found = envelope(success(data))

    assert (text_of(found), found["data"]) == ("Found 1 instances", data)


@row("Instance 'x' not found and Instance x not found")
def _() -> None:
    app = example("instances.py")

    error = sent(app, "get_instance", instanceId="instance-9")["error"]

    assert error["message"] == "Instance 'instance-9' not found"


@row("a not-found example names instance-1")
def _() -> None:
    app = example("instances.py")

    assert sent(app, "get_instance", instanceId="instance-1")["success"] is True
    assert sent(app, "get_instance", instanceId="instance-9")["success"] is False


@row("images are a URL, but MCP's images are bytes")
def _() -> None:
    from_bytes = envelope(Image(b"hello", "image/png"))["content"][-1]
    from_url = envelope(Image(url="https://a/b.png", alt="b"), "mcp")["content"][-1]

    assert from_bytes["url"] == "data:image/png;base64,aGVsbG8="
    assert from_url["type"] == "resource_link"


@row("an identifier is any text, but MCP wants a URI")
def _() -> None:
    link = Link("instance-1", "Mine", kind="instance")
    result = envelope(link, "mcp")

    assert result["content"][-1]["uri"] == "urn:answerback:instance:instance-1"
    assert has_no_error(result, "mcp")
    assert read(result).content[-1] == link


@row("the middleware parses every body as JSON")
def _() -> None:
    status, body = guarded(b'{"success": tru')

    assert status.startswith("500")
    assert "tru" not in json.dumps({**body, "success": None})


@row("a success with data but no text")
def _() -> None:
    assert text_of(envelope({"cpu": 45})) == "CPU: 45"
    assert json.loads(text_of(wrapped({"success": True, "data": {"cpu": 45}}))) == {"cpu": 45}


@row('type: "resource" is a reference')
def _() -> None:
    link = Link("https://a", "A")

    assert envelope(link)["content"][-1]["type"] == "resource"
    assert envelope(link, "mcp")["content"][-1]["type"] == "resource_link"


@row('MCP stands for "Management Control Panel"')
def _() -> None:
    result = envelope({"cpu": 45}, "mcp")

    assert result["isError"] is False
    assert (result["success"], result["data"]) == (True, {"cpu": 45})


@row("data is a list, or null")
def _() -> None:
    for data in ([1], None):
        reply = {**ENVELOPE, "data": data}
        assert not accepts(convention_schema(), reply)
        assert accepts(dialect_schema("envelope"), reply)


@row("error.details is a list")
def _() -> None:
    error = {"code": "GONE", "message": "gone", "details": [1]}
    reply = {**ENVELOPE, "success": False, "error": error}

    assert not accepts(convention_schema(), reply)
    assert accepts(dialect_schema("envelope"), reply)


@row("a content item of a type that is not text")
def _() -> None:
    reply = with_item(type="video", url="https://a/b.mp4")

    assert only_the_convention_accepts(reply)
    assert validate(reply, "envelope") == ()


@row("a content item whose type is empty")
def _() -> None:
    assert only_the_convention_accepts(with_item(type=""))


@row("audio without a url")
def _() -> None:
    assert only_the_convention_accepts(with_item(type="audio"))


@row("width, height, caption or metadata of a wrong type")
def _() -> None:
    image = {"type": "image", "url": "https://a/b.png", "altText": "b"}

    for wrong in ({"width": "8"}, {"height": "4"}, {"caption": 5}):
        assert only_the_convention_accepts(with_item(**image, **wrong))


@row("annotations out of range")
def _() -> None:
    error = {"code": "GONE", "message": "gone", "retryable": "yes"}

    for reply in (
        with_item(type="text", text="a", annotations={"priority": 5}),
        {**ENVELOPE, "success": False, "error": error},
        {**ENVELOPE, "meta": 5},
    ):
        assert only_the_convention_accepts(reply)
    assert (PACKAGE / "dialects" / "envelope.convention.json").exists()
