"""The options of tools and apps: how many there are, and the values that have several parts."""

import asyncio
import math
from typing import Any

import pytest

from answerback import App, Limits
from answerback.app import AppOptions
from answerback.gates import UsedFiles
from answerback.options import Access, Shown, Task, TaskLimits, Values
from answerback.tools.tool_options import ToolOptions


def test_a_tool_has_at_most_24_options_and_an_app_18() -> None:
    assert len(ToolOptions.__annotations__) <= 24
    assert len(AppOptions.__annotations__) <= 18


OLD_OF_TOOLS: list[tuple[dict[str, Any], str]] = [
    (
        {"widget": "orders", "invoking": "Loading…"},
        "invoking= is now part of widget=: write widget=Shown('orders', invoking='Loading…')",
    ),
    (
        {"widget": "orders", "invoking": "Loading…", "invoked": "Done", "lenient": True},
        "invoked= is now part of widget=: "
        "write widget=Shown('orders', invoked='Done', invoking='Loading…')",
    ),
    (
        {"visible_to": {"app"}},
        "visible_to= is now part of widget=: write widget=Shown(visible_to={'app'})",
    ),
    (
        {"task": "optional", "idempotency_key": True},
        "idempotency_key= is now part of task=: write task=Task('optional', key=True)",
    ),
    ({"lenient": False}, "lenient= is now part of values=: write values=Values(lenient=False)"),
    ({"nan": "null"}, "nan= is now part of values=: write values=Values(nan='null')"),
    ({"returns": "value"}, "write values=Values(returns='value')"),
    ({"structured": False}, "write values=Values(structured=False), with Values from answerback.o"),
    ({"security_schemes": []}, "write meta={'securitySchemes': [{'type': 'noauth'}]}"),
]
OLD_OF_APPS: list[tuple[dict[str, Any], str]] = [
    ({"lenient": False, "nan": "null"}, "write values=Values(lenient=False, nan='null')"),
    ({"returns": "value"}, "returns= is now part of values=: write values=Values(returns='value')"),
    (
        {"url": "https://example.com/mcp", "challenge": "http"},
        "challenge= is now part of access=: "
        "write access=Access(challenge='http', url='https://example.com/mcp'), with Access from",
    ),
    ({"sessions": False}, "sessions= is now part of access=: write access=Access(sessions=False)"),
    ({"used_tokens": UsedFiles()}, "write access=Access(used_tokens=…)"),
    (
        {"task_limits": TaskLimits()},
        "task_limits= is now part of limits=: write limits=Limits(tasks=…), "
        "with Limits from answerback",
    ),
]


@pytest.mark.parametrize(("options", "message"), OLD_OF_TOOLS)
def test_an_old_option_of_a_tool_is_refused_with_what_to_write(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        App("shop").add_tool(lambda: 1, name="orders", **options)

    assert message in str(caught.value)


@pytest.mark.parametrize(("options", "message"), OLD_OF_APPS)
def test_an_old_option_of_an_app_is_refused_with_what_to_write(
    options: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        App("shop", **options)

    assert message in str(caught.value)


def test_an_option_that_prompts_never_had_is_refused_as_unknown() -> None:
    options: dict[str, Any] = {"lenient": False}

    with pytest.raises(TypeError, match="no option is named 'lenient'; the options are descr"):
        App("shop").prompt(**options)(lambda: "a")


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        (
            "values",
            {"lenient": False},
            "should be a Values from answerback.options, such as Values(",
        ),
        ("values", "lenient", "values='lenient' should be a Values from answerback.options"),
        ("task", True, "task=True should be 'forbidden', 'optional', 'required', or a Task from"),
        ("task", "later", "task='later' should be 'forbidden', 'optional', 'required', or a Task"),
        ("widget", Task(), "should be the name of a widget, such as 'accounts', or a Shown from"),
    ],
)
def test_another_value_of_an_option_of_a_tool_is_refused(
    option: str, value: Any, message: str
) -> None:
    options: dict[str, Any] = {option: value}

    with pytest.raises(TypeError) as caught:
        App("shop").add_tool(lambda: 1, name="orders", **options)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("option", "value", "message"),
    [
        (
            "access",
            "https://example.com/mcp",
            "should be an Access from answerback.options, such as",
        ),
        ("limits", TaskLimits(), "should be a Limits from answerback, such as Limits(seconds=30)"),
        ("values", Shown("orders"), "should be a Values from answerback.options"),
    ],
)
def test_another_value_of_an_option_of_an_app_is_refused(
    option: str, value: Any, message: str
) -> None:
    options: dict[str, Any] = {option: value}

    with pytest.raises(TypeError) as caught:
        App("shop", **options)

    assert message in str(caught.value)


@pytest.mark.parametrize(
    ("make", "parts", "message"),
    [
        (Values, {"lenient": "no"}, "lenient='no' of Values should be True or False"),
        (Values, {"returns": "data"}, "returns='data' of Values should be 'reply' or 'value'"),
        (Values, {"structured": 0}, "structured=0 of Values should be True or False"),
        (Values, {"nan": "zero"}, "nan='zero' of Values should be 'refuse' or 'null'"),
        (Task, {"mode": "later"}, "mode='later' of Task should be 'forbidden', 'optional' or 'req"),
        (Task, {"key": "k-1"}, "key='k-1' of Task should be True or False"),
        (Access, {"challenge": "header"}, "challenge='header' of Access should be 'auto', 'http'"),
        (Access, {"sessions": "no"}, "sessions='no' of Access should be True or False"),
        (Access, {"used_tokens": "/tmp"}, "used_tokens='/tmp' of Access should be an object with"),
        (Limits, {"tasks": 20}, "tasks=20 should be a TaskLimits from answerback.options"),
        (Limits, {"replies": 20}, "replies=20 should be a ReplyLimits from answerback.options"),
    ],
)
def test_a_wrong_part_of_a_value_is_refused_when_it_is_made(
    make: Any, parts: dict[str, Any], message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        make(**parts)

    assert message in str(caught.value)


def test_a_tool_has_the_parts_of_values_that_it_does_not_give_from_its_app() -> None:
    app = App("shop", values=Values(lenient=False, structured=False))

    @app.tool(values=Values(nan="null"))
    def half(x: float) -> list[float]:
        return [x / 2, math.nan]

    @app.tool(values=Values(lenient=True))
    def twice(x: int) -> int:
        return 2 * x

    refused = asyncio.run(app.call("half", x="1"))
    nulled = app.write(asyncio.run(app.call("half", x=1.0)), "mcp")

    assert refused.error is not None
    assert refused.error.code == "INVALID_ARGUMENTS"
    assert "structuredContent" not in nulled
    assert "null" in nulled["content"][0]["text"]
    assert asyncio.run(app.call("twice", x="2")).data == 4
