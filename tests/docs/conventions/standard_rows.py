"""Checks of the rows about `standard`."""

from __future__ import annotations

import asyncio
import enum
import json
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict

import pytest
from msgspec import Meta
from tests.docs.conventions.checks import (
    PACKAGE,
    KeptLog,
    app_of,
    ask_mcp,
    listed,
    rows_of,
    run_python,
    sent,
    text_of,
)
from tests.resilience.manual_clock import ManualClock

from answerback import (
    Annotations,
    Audio,
    Contract,
    Depends,
    Embedded,
    Image,
    Link,
    NotFound,
    Text,
    ToolError,
    failure,
    read,
    success,
)
from answerback.core.content import Block
from answerback.resilience import Breaker, Retry

row = rows_of("standard")
CODED = Contract(name="coded", error_text="coded")


class Entity(TypedDict):
    name: str


@dataclass
class Created:
    created: Annotated[int, Meta(ge=0)]
    entities: list[Entity]


class KnowledgeGraphManager:
    def create(self, entities: list[Entity]) -> list[Entity]:
        return entities


class DFMError(ToolError):
    code = "ENTITY_EXISTS"


class ErrorCode(enum.Enum):
    ENTITY_EXISTS_HERE = "ENTITY_EXISTS_HERE"


def double(n: int) -> int:
    return 2 * n


def refuse() -> None:
    raise ToolError("API rate limit exceeded")


def crash() -> None:
    raise RuntimeError("at localhost:5432 with user 'admin'")


def exists() -> None:
    raise DFMError("Entity exists", details={"name": "a"})


def wrong_form() -> Any:
    inner = {"success": False, "error": {"code": "ERROR_CODE", "message": "error message"}}
    return {"content": [{"type": "text", "text": json.dumps(inner)}]}


@row("buildSuccessResponse(data)")
def _() -> None:
    def returned() -> dict[str, int]:
        return {"created": 1}

    def built() -> Any:
        return success({"created": 1})

    app = app_of(returned, built)

    assert sent(app, "returned", "mcp") == sent(app, "built", "mcp")
    assert sent(app, "built", "mcp") == {
        "content": [{"type": "text", "text": '{"created":1}'}],
        "structuredContent": {"created": 1},
        "isError": False,
    }


@row("buildErrorResponse(message)")
def _() -> None:
    def returned() -> Any:
        return failure("API rate limit exceeded")

    app = app_of(refuse, returned)

    for name in ("refuse", "returned"):
        result = sent(app, name, "mcp")
        assert (result["isError"], text_of(result)) == (True, "API rate limit exceeded")


@row("handleError(error, logger)")
def _() -> None:
    with KeptLog("answerback") as logged:
        result = sent(app_of(crash), "crash", "mcp")

    assert "localhost" not in json.dumps(result)
    assert "localhost" in str(logged[0].exc_info[1])
    assert (PACKAGE / "calls" / "failures.py").exists()


@row("DFMError, toMCPMessage()")
def _() -> None:
    result = sent(app_of(exists, contract=CODED), "exists", "mcp")

    assert text_of(result) == 'ENTITY_EXISTS: Entity exists ({"name":"a"})'


@row("ErrorCode")
def _() -> None:
    def create() -> None:
        raise ToolError("Entity exists", ErrorCode.ENTITY_EXISTS_HERE)

    app = app_of(create, codes={ErrorCode.ENTITY_EXISTS_HERE: 409})

    problem = sent(app, "create", "problem")
    assert (problem["code"], problem["status"]) == ("ENTITY_EXISTS_HERE", 409)


@row("MCPToolResponseSchema")
def _() -> None:
    schema = run_python("-m", "answerback", "schema", "mcp")

    assert b'"isError"' in schema
    assert (PACKAGE / "dialects" / "mcp.py").exists()


@row("server.registerTool")
def _() -> None:
    app = app_of()
    app.add_tool(double, name="calculate-bmi", title="BMI Calculator", description="Calculate it")

    entry = listed(app, "calculate-bmi")
    assert (entry["title"], entry["description"]) == ("BMI Calculator", "Calculate it")


@row("server.setRequestHandler")
def _() -> None:
    app = app_of(double)

    assert ask_mcp(app, "tools/call", name="double", arguments={"n": 2})["isError"] is False
    unknown = ask_mcp(app, "tools/call", name="nothing", arguments={})
    assert unknown["error"]["code"] == -32602
    assert unknown["error"]["message"] == "Unknown tool: nothing"


@row("inputSchema, outputSchema")
def _() -> None:
    entry = listed(app_of(double), "double")

    assert entry["inputSchema"]["properties"]["n"]["type"] == "integer"
    assert entry["outputSchema"]["properties"]["result"]["type"] == "integer"


@row("CreateEntitiesOutputSchema")
def _() -> None:
    def create_entities(names: list[str]) -> Created:
        return Created(len(names), [{"name": name} for name in names])

    schema = listed(app_of(create_entities), "create_entities")["outputSchema"]

    assert schema["properties"]["created"] == {"type": "integer", "minimum": 0}
    assert schema["properties"]["entities"]["items"]["required"] == ["name"]


@row("CreateEntitiesInputSchema.safeParse(args)")
def _() -> None:
    ran: list[int] = []

    def create(count: int, title: str) -> None:
        ran.append(count)

    result = sent(app_of(create), "create", "mcp", count="many", title=5)

    assert result["isError"] is True
    assert "count" in text_of(result)
    assert "title" in text_of(result)
    assert ran == []


@row("handleCreateEntities(args, manager, logger)")
def _() -> None:
    def create_entities(
        entities: list[Entity],
        manager: Annotated[KnowledgeGraphManager, Depends(KnowledgeGraphManager)],
    ) -> Created:
        made = manager.create(entities)
        return Created(len(made), made)

    app = app_of(create_entities)

    assert list(listed(app, "create_entities")["inputSchema"]["properties"]) == ["entities"]
    assert sent(app, "create_entities", entities=[{"name": "a"}])["created"] == 1


@row("retryWithBackoff(operation)")
def _() -> None:
    clock = ManualClock()
    errors = [RuntimeError("first"), RuntimeError("second")]

    @Retry(attempts=3, on=Exception, clock=clock)
    def operation() -> str:
        if errors:
            raise errors.pop()
        return "done"

    def tool() -> str:
        return operation()

    app = app_of()
    app.add_tool(tool, retry=Retry(attempts=3, on=Exception, clock=clock))

    assert operation() == "done"
    assert len(clock.waits) == 2
    assert sent(app, "tool") == {"result": "done"}


@row("CircuitBreaker")
def _() -> None:
    counting = Breaker("every error", failures=3, counts=Exception, clock=ManualClock())
    plain = Breaker("service errors", failures=3, clock=ManualClock())
    tool_breaker = Breaker("tool", failures=3, counts=Exception, clock=ManualClock())
    app = app_of()
    app.add_tool(crash, breaker=tool_breaker)

    for breaker in (counting, plain):
        for _ in range(3):
            with pytest.raises(RuntimeError, match="localhost"):
                breaker.call(crash)
    replies = [sent(app, "crash", "mcp") for _ in range(4)]

    assert (counting.state, plain.state, tool_breaker.state) == ("open", "closed", "open")
    assert text_of(replies[3]).startswith("Service temporarily unavailable")


@row("text, image, audio, resource_link and resource blocks")
def _() -> None:
    blocks: list[Block] = [
        Text("a"),
        Image(b"x", "image/png"),
        Audio(b"x", "audio/wav"),
        Link("file:///main.rs", "main.rs"),
        Embedded("file:///main.rs", "fn main() {}"),
    ]

    found = success(content=blocks).to("mcp")["content"]

    types = [block["type"] for block in found]
    assert types == ["text", "image", "audio", "resource_link", "resource"]


@row("annotations with audience, priority and lastModified")
def _() -> None:
    notes = Annotations(audience=("user",), priority=0.9, last_modified="2025-05-03T14:30:00Z")

    for block in (Text("a", annotations=notes), Link("file:///a", "a", annotations=notes)):
        assert success(content=[block]).to("mcp")["content"][0]["annotations"] == {
            "audience": ["user"],
            "priority": 0.9,
            "lastModified": "2025-05-03T14:30:00Z",
        }


@row("1. update the response type")
def _() -> None:
    result = sent(app_of(double), "double", "mcp", n=2)

    assert result["isError"] is False
    assert result["structuredContent"] == {"result": 4}


@row("2. simplify the response builders")
def _() -> None:
    app = app_of(double, refuse)

    assert text_of(sent(app, "double", "mcp", n=2)) == '{"result":4}'
    assert sent(app, "refuse", "mcp")["isError"] is True


@row("3. add output schemas")
def _() -> None:
    def finished() -> Any:
        return {"content": [{"type": "text", "text": "{}"}], "structuredContent": {"created": 1}}

    app = app_of(finished, double)

    assert "outputSchema" in listed(app, "double")
    assert "outputSchema" not in listed(app, "finished")
    assert sent(app, "finished", "mcp")["structuredContent"] == {"created": 1}


@row("4. update the error classes")
def _() -> None:
    result = sent(app_of(exists, contract=CODED), "exists", "mcp")

    assert text_of(result).startswith("ENTITY_EXISTS: Entity exists")


@row("5. simplify the error handler")
def _() -> None:
    assert sent(app_of(crash), "crash", "mcp")["isError"] is True


@row("6. update all handlers")
def _() -> None:
    def updated() -> Created:
        return Created(1, [{"name": "a"}])

    def not_updated() -> Any:
        output = {"created": 1, "entities": [{"name": "a"}]}
        text = json.dumps(output, separators=(",", ":"))
        return {"content": [{"type": "text", "text": text}], "structuredContent": output}

    app = app_of(updated, not_updated)

    assert sent(app, "updated", "mcp") == sent(app, "not_updated", "mcp")


@row("−32800, −32801 and −32802")
def _() -> None:
    sources = "".join(path.read_text() for path in (PACKAGE / "protocol").rglob("*.py"))
    codes = ["CANCELLED", "TOO_LARGE", "UNAVAILABLE"]

    for number, code in zip((-32800, -32801, -32802), codes, strict=True):
        error = {"jsonrpc": "2.0", "id": 1, "error": {"code": number, "message": "no"}}
        found = read(error).error
        assert found is not None
        assert found.code == code
        assert str(-number) not in sources


@row("handleError and three examples send error.message")
def _() -> None:
    app = app_of(crash, refuse)

    assert text_of(sent(app, "refuse", "mcp")) == "API rate limit exceeded"
    assert "localhost" not in text_of(sent(app, "crash", "mcp"))


@row("server crashes and failures of a handler")
def _() -> None:
    result = ask_mcp(app_of(crash), "tools/call", name="crash", arguments={})

    assert result["isError"] is True


@row("missing required fields are protocol errors")
def _() -> None:
    result = ask_mcp(app_of(double), "tools/call", name="double", arguments={})

    assert result["isError"] is True


@row("isError: false is optional")
def _() -> None:
    assert sent(app_of(double), "double", "mcp", n=1)["isError"] is False


@row("buildSuccessResponse<T> takes any data")
def _() -> None:
    assert sent(app_of(double), "double", "mcp", n=1)["structuredContent"] == {"result": 2}


@row("the text of a success is prose")
def _() -> None:
    def told() -> Any:
        return success("It is 22 degrees", {"temperature": 22})

    found = sent(app_of(told), "told", "mcp")["content"]

    assert [block["text"] for block in found] == ["It is 22 degrees", '{"temperature":22}']


@row("an error's text is the message")
def _() -> None:
    def hinting() -> None:
        raise NotFound("No such city", hint="ask for Oslo")

    plain, coded = app_of(hinting, double), app_of(hinting, double, contract=CODED)

    assert text_of(sent(plain, "hinting", "mcp")) == "No such city\nHint: ask for Oslo"
    assert text_of(sent(coded, "hinting", "mcp")) == "NOT_FOUND: No such city"
    assert text_of(sent(coded, "double", "mcp")).startswith("Invalid arguments: ")


@row("the text for invalid arguments is Invalid input")
def _() -> None:
    assert text_of(sent(app_of(double), "double", "mcp")).startswith("Invalid arguments: ")


@row("handlers that still send the wrong form")
def _() -> None:
    result = sent(app_of(wrong_form), "wrong_form", "mcp")

    assert (result["isError"], text_of(result)) == (True, "error message")


@row("complex error objects are wrong")
def _() -> None:
    result = sent(app_of(exists), "exists", "mcp")

    assert text_of(result) == "Entity exists"
    error = result["_meta"]["answerback/error"]
    assert (error["code"], error["details"]) == ("ENTITY_EXISTS", {"name": "a"})
    assert error["retryable"] is False


@row("responses have only text in MCPToolResponseSchema")
def _() -> None:
    def picture() -> Any:
        return [Text("Look:"), Image(b"x", "image/png")]

    found = sent(app_of(picture), "picture", "mcp")["content"]

    assert [block["type"] for block in found] == ["text", "image"]


@row('output schemas are "strongly recommended"')
def _() -> None:
    def broken() -> int:
        return "many"  # type: ignore[return-value]  # the row is about this mistake

    reply = asyncio.run(app_of(broken).call("broken"))

    assert reply.error is not None
    assert reply.error.code == "INVALID_OUTPUT"


@row("a failed tool with an output schema")
def _() -> None:
    app = app_of(double)

    assert "outputSchema" in listed(app, "double")
    assert "structuredContent" not in sent(app, "double", "mcp")


@row("the circuit breaker never closes again")
def _() -> None:
    clock = ManualClock()
    breaker = Breaker("closes again", failures=1, reset=30, counts=Exception, clock=clock)
    with pytest.raises(RuntimeError):
        breaker.call(crash)
    while_open = breaker.state

    clock.wait(31)
    breaker.call(dict)

    assert (while_open, breaker.state) == ("open", "closed")
