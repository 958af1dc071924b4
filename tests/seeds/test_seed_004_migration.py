"""Seed 004: its handlers, builders and error classes in Python, wrapped as they are and mended."""

from __future__ import annotations

import asyncio
import json
import logging
from typing import Annotated, Any, TypedDict

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest
from msgspec import Meta

from answerback import App, Contract, ToolError, failure, read, validate
from answerback.contract import STANDARD

RESPONSE_SCHEMA_004 = {
    "type": "object",
    "properties": {
        "content": {
            "type": "array",
            "items": {
                "type": "object",
                "properties": {"type": {"const": "text"}, "text": {"type": "string"}},
                "required": ["type", "text"],
            },
        },
        "isError": {"type": "boolean"},
        "structuredContent": {"type": "object"},
    },
    "required": ["content"],
}


def sent(app: App, name: str, **arguments: Any) -> dict[str, Any]:
    """The MCP result of a call; errors without `_meta`, which the seed has not."""
    found = app.write(asyncio.run(app.call(name, **arguments)), "mcp")
    jsonschema.validate(found, RESPONSE_SCHEMA_004)
    return {key: value for key, value in found.items() if key != "_meta"}


# The seed's builders and handler, as a team would have them before it uses Answerback.


def build_success_response(data: dict[str, Any]) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": json.dumps(data)}], "structuredContent": data}


def build_error_response(message: str) -> dict[str, Any]:
    return {"isError": True, "content": [{"type": "text", "text": message}]}


class DFMError(ToolError):
    """The seed's error class; `error_text="coded"` does what its new method does."""

    def to_mcp_message(self) -> str:
        shown = json.dumps(self.details, separators=(",", ":"))
        return f"{self.code}: {self.message}" + (f" ({shown})" if self.details else "")


class Manager:
    """The seed's knowledge graph; its database may be away."""

    def __init__(self, error: Exception | None = None) -> None:
        self.error = error

    async def create_entities(self, entities: list[Any]) -> list[Any]:
        if self.error is not None:
            raise self.error
        return entities


def handle_error(error: Exception, logger: logging.Logger) -> dict[str, Any]:
    logger.error("Tool error", exc_info=error)
    message = error.to_mcp_message() if isinstance(error, DFMError) else str(error)
    return build_error_response(message or "Operation failed")


async def handle_create_entities(args: Any, manager: Manager) -> dict[str, Any]:
    try:
        entities = args["entities"]
        if not all(isinstance(each, dict) and "name" in each for each in entities):
            return build_error_response("Invalid input: each entity needs a name")
        created = await manager.create_entities(entities)
        return build_success_response({"created": len(created), "entities": created})
    except Exception as error:  # noqa: BLE001 -- the seed's handler catches all
        return handle_error(error, logging.getLogger("legacy"))


class Entity(TypedDict):
    name: str


class Created(TypedDict):
    created: Annotated[int, Meta(ge=0)]
    entities: list[Entity]


CODED = Contract(name="coded 004", error_text="coded", http="mcp", hint_in_text=False)


def wrapped_app(manager: Manager) -> App:
    """The handler as it is."""
    app = App("wrapped", contract=STANDARD.derive(hint_in_text=False))

    @app.tool
    async def create(entities: list[Any]) -> dict[str, Any]:
        return await handle_create_entities({"entities": entities}, manager)

    return app


def mended_app(manager: Manager) -> App:
    app = App("mended", contract=CODED)

    @app.tool
    async def create(entities: list[Entity]) -> Created:
        created = await manager.create_entities(entities)
        return {"created": len(created), "entities": created}

    return app


def both(manager: Manager, entities: list[dict[str, Any]]) -> list[dict[str, Any]]:
    """The results of the handler as it is and mended."""
    apps = wrapped_app(manager), mended_app(manager)
    return [sent(app, "create", entities=entities) for app in apps]


TEA = [{"name": "tea"}]
LEAK = "PostgreSQL connection refused at localhost:5432 with user 'admin'"


def test_seed_004_change_6_the_wrapped_and_the_mended_handler_send_the_same_success() -> None:
    wrapped, mended = both(Manager(), TEA)

    assert wrapped["structuredContent"] == mended["structuredContent"]
    assert mended["structuredContent"] == {"created": 1, "entities": TEA}
    assert json.loads(mended["content"][0]["text"]) == mended["structuredContent"]
    assert wrapped["isError"] is mended["isError"] is False
    assert not validate(mended)


def test_seed_004_change_6_both_answer_invalid_input_with_an_error_result() -> None:
    wrapped, mended = both(Manager(), [{"id": 1}])

    assert wrapped["isError"] is mended["isError"] is True
    assert wrapped["content"][0]["text"] == "Invalid input: each entity needs a name"
    assert mended["content"][0]["text"].startswith("Invalid arguments: entities[0].name: missing")


@pytest.mark.parametrize(
    "error",
    [
        DFMError("Entity not found", code="ENTITY_NOT_FOUND", details={"id": 7}),
        DFMError("Entity not found", code="ENTITY_NOT_FOUND"),
    ],
)
def test_seed_004_changes_4_and_5_both_send_the_coded_message_of_the_authors_error(
    error: DFMError,
) -> None:
    wrapped, mended = both(Manager(error), TEA)

    assert mended == build_error_response(error.to_mcp_message())
    assert wrapped == mended


def test_seed_004_change_5_the_mended_handler_no_longer_shows_other_exceptions() -> None:
    """The wrapped one sends its own text, which is the author's to mend."""
    wrapped, mended = both(Manager(ConnectionError(LEAK)), TEA)

    assert wrapped["isError"] is mended["isError"] is True
    assert "admin" in json.dumps(wrapped)
    assert "admin" not in json.dumps(mended)
    assert {each.rule for each in validate(wrapped)} == {"AB506"}


def test_seed_004_change_2_the_builders_are_a_returned_value_and_failure() -> None:
    app = App("builders")

    @app.tool
    def succeed() -> Created:
        return {"created": 0, "entities": []}

    @app.tool
    def fail() -> Any:
        return failure("Entity not found")

    built = build_success_response({"created": 0, "entities": []})
    found = sent(app, "succeed")

    assert found["structuredContent"] == built["structuredContent"]
    assert json.loads(found["content"][0]["text"]) == json.loads(built["content"][0]["text"])
    assert sent(app, "fail") == build_error_response("Entity not found")


def test_seed_004_change_3_the_mended_handler_has_an_output_schema() -> None:
    schema = mended_app(Manager()).tools["create"].output_schema

    assert schema is not None
    assert schema["properties"]["created"] == {"type": "integer", "minimum": 0}
    assert schema["required"] == ["created", "entities"]


def test_seed_004_the_error_handling_pattern_needs_no_try_and_no_catch() -> None:
    app = App("pattern", contract=STANDARD.derive(masked="Unknown error", hint_in_text=False))

    @app.tool
    def execute(fails: bool) -> dict[str, int]:
        if fails:
            raise RuntimeError("internal text")
        return {"n": 1}

    result, error = sent(app, "execute", fails=False), sent(app, "execute", fails=True)

    assert result["content"] == [{"type": "text", "text": '{"n":1}'}]
    assert error["isError"] is True
    assert error["content"][0]["text"].startswith("Unknown error (reference ")


def test_seed_004_best_practice_4_the_log_has_the_error_its_stack_and_its_cause(
    caplog: pytest.LogCaptureFixture,
) -> None:
    app = App("safe", contract=STANDARD.derive(masked="Operation failed. Please try again."))

    def query() -> None:
        raise ConnectionError("PostgreSQL refused at localhost:5432")

    @app.tool
    def operation() -> int:
        try:
            query()
        except ConnectionError as exc:
            raise RuntimeError("the order was not stored") from exc
        return 1

    reply = read(app.write(asyncio.run(app.call("operation")), "mcp"))

    assert reply.error is not None
    reference = reply.error.details["reference"]
    record: Any = next(each for each in caplog.records if reference in each.getMessage())
    assert record.reference == reference
    story = logging.Formatter().format(record)
    assert "PostgreSQL refused at localhost:5432" in story
    assert "the order was not stored" in story
    assert "in query" in story
    assert "PostgreSQL" not in reply.error.message


@pytest.mark.parametrize(
    ("text", "rules"),
    [
        ("Error occurred", {"AB204"}),
        (LEAK, {"AB506"}),
        ("Database connection failed. Please try again later.", set()),
        (
            "Location 'xyz' not found. Please provide a valid city name or zip code.",
            set(),
        ),
    ],
)
def test_seed_004_best_practices_2_and_3_the_rules_find_the_bad_examples(
    text: str, rules: set[str]
) -> None:
    found = {each.rule for each in validate(build_error_response(text))}

    assert found == rules
