"""The replies of the example apps have no findings, in any dialect and version."""

from __future__ import annotations

import asyncio
from collections.abc import Callable
from typing import Any, get_args

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import msgspec
import pytest

from answerback import App
from answerback.contract import Dialect
from answerback.core.shape import BARE
from answerback.core.versions import LATEST_STATEFUL, VERSIONS, Version
from answerback.dialects import write
from answerback.dialects.reply_schemas import dialect_schema
from answerback.rules import Finding
from answerback.rules.reply_view import CheckContext
from answerback.rules.validation import check

CALLS: list[tuple[str, str, dict[str, Any]]] = [
    ("calculator", "add", {"x": 7, "y": 3}),
    ("calculator", "add", {"x": "seven"}),
    ("calculator", "add", {"x": 1, "y": 2, "z": 3}),
    ("calculator", "divide", {"x": 7, "y": 2}),
    ("calculator", "divide", {"x": 7, "y": 0}),
    ("calculator", "subtract", {}),
    ("aligned", "Add", {"x": 7, "y": 3}),
    ("aligned", "Add", {"x": None, "y": 3}),
    ("aligned", "DivMod", {"x": 7, "y": 3}),
    ("aligned", "Forget", {}),
    ("weather", "weather", {"location": "Tromsø"}),
    ("weather", "weather", {"location": "Atlantis"}),
    ("weather", "cities", {}),
    ("instances", "list_instances", {}),
    ("instances", "get_instance", {"instanceId": "instance-1"}),
    ("instances", "get_instance", {"instanceId": "instance-9"}),
    ("instances", "start_instance", {"instanceId": "instance-2"}),
    ("instances", "start_instance", {"instanceId": "instance-3"}),
    ("instances", "stop_instance", {"instanceId": "instance-1"}),
    ("instances", "cpu_chart", {"instanceId": "instance-1"}),
    ("instances", "open_instance", {"instanceId": "instance-1"}),
    ("conformance", "test_simple_text", {}),
    ("conformance", "test_image_content", {}),
    ("conformance", "test_audio_content", {}),
    ("conformance", "test_embedded_resource", {}),
    ("conformance", "test_multiple_content_types", {}),
    ("conformance", "test_error_handling", {}),
]

VALIDATORS = {
    dialect: jsonschema.Draft202012Validator(dialect_schema(dialect))
    for dialect in get_args(Dialect)
}


def schema_of(app: App, tool: str) -> dict[str, Any] | None:
    return app.tools[tool].output_schema if tool in app.tools else None


async def findings_in_call(
    app: App, tool: str, arguments: dict[str, Any], dialect: Any, version: Version
) -> tuple[Finding, ...]:
    reply = await app.call(tool, **arguments)
    shape = app.tools[tool].shape if tool in app.tools else app.tools[next(iter(app.tools))].shape
    written = write(reply, dialect, shape, app.contract, version)
    if not written.media_type.endswith("json"):
        return ()
    schema = schema_of(app, tool) if version.structured else None
    context = CheckContext(version, schema, listed=version.structured)
    return check(msgspec.json.decode(written.body), dialect, context)


@pytest.mark.parametrize(("name", "tool", "arguments"), CALLS)
def test_a_reply_of_an_example_matches_the_schema_of_its_dialect(
    example: Callable[[str], App], name: str, tool: str, arguments: dict[str, Any]
) -> None:
    app = example(name)
    reply = asyncio.run(app.call(tool, **arguments))
    shape = app.tools[tool].shape if tool in app.tools else BARE
    dialects: list[Dialect] = ["mcp", "rest", "envelope"]
    dialects += ["problem"] if reply.error else []

    for dialect in dialects:
        written = write(reply, dialect, shape, app.contract, LATEST_STATEFUL)
        if written.media_type.endswith("json"):
            body = msgspec.json.decode(written.body)
            assert list(VALIDATORS[dialect].iter_errors(body)) == [], dialect


@pytest.mark.parametrize(("name", "tool", "arguments"), CALLS)
def test_a_reply_of_an_example_has_no_findings(
    example: Callable[[str], App], name: str, tool: str, arguments: dict[str, Any]
) -> None:
    app = example(name)
    places: list[tuple[Any, Version]] = [("mcp", version) for version in VERSIONS.values()]
    places += [("envelope", LATEST_STATEFUL), ("rest", LATEST_STATEFUL)]

    for dialect, version in places:
        found = asyncio.run(findings_in_call(example(name), tool, arguments, dialect, version))
        # A convention's text beside data is sent as it is, though some hosts do not show it.
        if app.contract.name != "standard":
            found = tuple(each for each in found if each.rule != "AB313")
        assert found == (), (dialect, version.name)
    assert tool in app.tools or tool == "subtract"
