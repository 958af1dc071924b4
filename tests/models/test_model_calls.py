"""`kit.run` makes the call that a model asks for, in each provider's form."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Callable, Mapping
from decimal import Decimal
from types import SimpleNamespace
from typing import Any

import pytest

from answerback import App, NotFound, Reply, connect, success
from answerback.models import (
    ModelTools,
    to_anthropic,
    to_gemini,
    to_openai,
    to_openai_responses,
)

app = App("calculator")


@app.tool(name="functions.Add")
def add(x: int, y: int = 3) -> int:
    """Add two numbers."""
    return x + y


@app.tool
def find(name: str) -> str:
    """Find something."""
    raise NotFound(f"no {name}", hint="look elsewhere")


def as_object(value: Any) -> Any:
    """The JSON as the packages of the providers have it: objects with the arguments as a dict."""
    if not isinstance(value, dict):
        return value
    inner = {
        name: each if name in ("args", "input") else as_object(each) for name, each in value.items()
    }
    return SimpleNamespace(**inner)


def chat_call(name: str, arguments: Any) -> Any:
    raw = arguments if isinstance(arguments, str) else json.dumps(arguments)
    return {"id": "c1", "type": "function", "function": {"name": name, "arguments": raw}}


def function_call(name: str, arguments: Any) -> Any:
    return chat_call(name, arguments)["function"]


def responses_call(name: str, arguments: Any) -> Any:
    function = function_call(name, arguments)
    return {"type": "function_call", "id": "fc_1", "call_id": "c1", "status": "done", **function}


def anthropic_call(name: str, arguments: Any) -> Any:
    return {"type": "tool_use", "id": "c1", "name": name, "input": arguments}


def gemini_call(name: str, arguments: Any) -> Any:
    return {"id": "c1", "name": name, "args": arguments}


def gemini_part(name: str, arguments: Any) -> Any:
    return {"functionCall": gemini_call(name, arguments), "thoughtSignature": "…"}


def gemini_object_part(name: str, arguments: Any) -> Any:
    return {"function_call": gemini_call(name, arguments), "text": None}


Form = tuple[ModelTools, Callable[[str, Any], Any]]
FORMS: list[Form] = [
    (to_openai(app), chat_call),
    (to_openai(app, strict=True), chat_call),
    (to_openai(app, functions=True), function_call),
    (to_openai_responses(app), responses_call),
    (to_anthropic(app), anthropic_call),
    (to_gemini(app), gemini_call),
    (to_gemini(app), gemini_part),
    (to_gemini(app), gemini_object_part),
]
each_form = pytest.mark.parametrize(
    ("kit", "form"), FORMS, ids=lambda each: getattr(each, "__name__", "")
)


def name_in(kit: ModelTools, tool: str) -> str:
    return next(each.name for each in kit.report.tools if each.tool == tool)


@each_form
@pytest.mark.parametrize("shape", [lambda call: call, as_object], ids=["json", "object"])
def test_a_call_in_each_form_is_made_and_answered(
    kit: ModelTools, form: Any, shape: Callable[[Any], Any]
) -> None:
    name = name_in(kit, "functions.Add")

    with connect(app) as server:
        call_id, reply, called = kit.run(server, shape(form(name, {"x": 4, "y": 5})))

    assert reply.data == 9
    assert called == name
    assert call_id == (None if form is function_call else "c1")
    assert kit.messages([(call_id, reply, called)])


@each_form
def test_an_async_server_is_awaited(kit: ModelTools, form: Any) -> None:
    async def results() -> list[Any]:
        async with connect(app) as server:
            calls = [form(name_in(kit, "functions.Add"), {"x": n}) for n in (1, 2)]
            calls.append(form("made_up", {}))
            return list(await asyncio.gather(*(kit.run(server, each) for each in calls)))

    first, second, unknown = asyncio.run(results())

    assert (first[1].data, second[1].data) == (4, 5)
    assert unknown[1].error.code == "TOOL_NOT_FOUND"


@each_form
def test_a_mistake_of_the_model_becomes_a_failed_reply(kit: ModelTools, form: Any) -> None:
    name = name_in(kit, "functions.Add")
    mistakes = {
        "TOOL_NOT_FOUND": [form("made_up", {"x": 1}), form("", {}), form("x" * 9_999, {})],
        "INVALID_ARGUMENTS": [
            *(form(name, {"x": "four"}), form(name, {}), form(name, {"x": 1, "z": 2})),
            *(form(name, "{"), form(name, "[1]"), form(name, "[" * 10_000), form(name, '"\ud800"')),
        ],
    }

    with connect(app) as server:
        codes = {
            code: [kit.run(server, call)[1].error for call in calls]
            for code, calls in mistakes.items()
        }

    assert {code: {each and each.code for each in found} for code, found in codes.items()} == {
        "TOOL_NOT_FOUND": {"TOOL_NOT_FOUND"},
        "INVALID_ARGUMENTS": {"INVALID_ARGUMENTS"},
    }


@pytest.mark.parametrize(
    "value", ["\ud800", ["\udfff"], {"\ud800": 1}, Decimal, {"a": Decimal}], ids=ascii
)
def test_an_argument_that_json_cannot_express_becomes_a_failed_reply(value: Any) -> None:
    kit = to_anthropic(app)

    with connect(app) as server:
        _, reply, _ = kit.run(server, anthropic_call("find", {"name": value}))

    assert reply.error is not None
    assert reply.error.code == "INVALID_ARGUMENTS"


def test_the_hint_of_an_unknown_tool_and_of_a_failed_tool_reach_the_model() -> None:
    kit = to_openai(app)

    with connect(app) as server:
        results = [kit.run(server, chat_call(name, {"name": "it"})) for name in ("fnd", "find")]

    texts = [each["content"] for each in kit.messages(results)]
    assert texts[0] == "Error: Unknown tool: fnd\nHint: the tools are functions_Add, find"
    assert texts[1] == "Error: no it\nHint: look elsewhere"


@pytest.mark.parametrize("call", [None, 5, "add", {}, {"type": "text", "text": "Hi"}], ids=str)
def test_a_value_that_is_not_a_call_is_the_programs_mistake(call: object) -> None:
    with connect(app) as server:
        for kit, _ in FORMS:
            with pytest.raises(TypeError, match="should be one of the model's calls"):
                kit.run(server, call)


def test_nothing_is_called_for_a_call_that_the_model_got_wrong() -> None:
    called: list[str] = []

    class Server:
        def call(self, name: str, arguments: Mapping[str, Any], /) -> Reply[Any]:
            called.append(name)
            return success()

    kit = to_openai(app)
    _, reply, _ = kit.run(Server(), chat_call("functions_Add", "{"))

    assert reply.error is not None
    assert called == []
