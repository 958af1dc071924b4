"""Tools from a JSON Schema: what is checked, and which schemas and functions are refused."""

import asyncio
import logging
import subprocess
import sys
from collections.abc import Callable
from functools import partial
from typing import Annotated, Any

import pytest

from answerback import AllArguments, App, Context, Depends, Reply, failure, success, validate
from answerback.errors import MissingExtraError
from answerback.options import Values

SCHEMA = {
    "type": "object",
    "properties": {
        "id": {"type": "integer", "minimum": 1},
        "tags": {"type": "array", "items": {"type": "string"}},
        "size": {"anyOf": [{"type": "number"}, {"type": "null"}]},
        "password": {"type": "string", "maxLength": 3},
    },
    "required": ["id"],
}


def call(app: App, tool: str, /, **arguments: Any) -> Reply[Any]:
    return asyncio.run(app.call(tool, **arguments))


def problems(reply: Reply[Any]) -> dict[str, str]:
    assert reply.error is not None
    assert reply.error.code == "INVALID_ARGUMENTS"
    return {each["path"]: each["message"] for each in reply.error.details["problems"]}


def echo(**arguments: Any) -> Any:
    return arguments


async def echo_later(args: Annotated[dict[str, Any], AllArguments]) -> Any:
    return args


def app_with(fn: Callable[..., Any], **options: Any) -> App:
    app = App("schema")
    app.add_tool(fn, name="tool", **{"input_schema": SCHEMA, **options})
    return app


@pytest.mark.parametrize("fn", [echo, echo_later])
def test_the_function_receives_what_fits_the_schema(fn: Callable[..., Any]) -> None:
    app = app_with(fn)

    reply = call(app, "tool", id=1, tags=["a"], more={"x": None})

    assert reply.data == {"id": 1, "tags": ["a"], "more": {"x": None}}


@pytest.mark.parametrize("fn", [echo, echo_later])
def test_all_problems_with_the_arguments_are_listed(fn: Callable[..., Any]) -> None:
    app = app_with(fn, input_schema=SCHEMA | {"additionalProperties": False})

    refused = call(app, "tool", id=0, tags=["a", 2], size="big", password="abcd", tag=1)

    assert problems(refused) == {
        "id": "0 is less than the minimum of 1",
        "tags[1]": "expected string, got int 2",
        "size": "expected number or null, got str 'big'",
        "password": "it violates the schema's 'maxLength'",
        "tag": "unknown argument",
    }


def test_a_missing_argument_is_named() -> None:
    assert problems(call(app_with(echo), "tool")) == {"id": "missing"}


def test_texts_are_read_where_the_schema_allows_no_text() -> None:
    app = app_with(echo)

    reply = call(app, "tool", id="7", tags='["a"]', size="2.5")

    assert reply.data == {"id": 7, "tags": ["a"], "size": 2.5}


def test_many_texts_in_one_list_are_read() -> None:
    numbers = {"type": "array", "items": {"type": "integer"}}
    app = app_with(echo, input_schema={"type": "object", "properties": {"n": numbers}})

    reply = call(app, "tool", n=[str(each) for each in range(200)])

    assert reply.data == {"n": list(range(200))}


def test_texts_are_not_read_if_the_tool_is_strict() -> None:
    app = app_with(echo, values=Values(lenient=False))

    assert list(problems(call(app, "tool", id="7"))) == ["id"]


def test_a_call_with_thousands_of_problems_lists_fifty() -> None:
    numbers = {"type": "array", "items": {"type": "integer"}}
    app = app_with(echo, input_schema={"type": "object", "properties": {"n": numbers}})

    refused = call(app, "tool", n=["x"] * 5_000)

    assert len(problems(refused)) == 50


def test_a_result_that_does_not_fit_is_not_sent(caplog: pytest.LogCaptureFixture) -> None:
    app = app_with(echo, output_schema=SCHEMA, input_schema={"type": "object"})

    good = call(app, "tool", id=1)
    with caplog.at_level(logging.ERROR):
        bad = call(app, "tool", tags=["a", 77777])

    assert good.data == {"id": 1}
    assert bad.error is not None
    assert bad.error.code == "INVALID_OUTPUT"
    assert "id: missing" in caplog.text
    assert "tags[1]: expected string, got int" in caplog.text
    assert "77777" not in bad.error.message


def test_a_result_that_is_not_an_object_is_wrapped() -> None:
    app = app_with(
        lambda **_: [1, 2], output_schema={"type": "array", "items": {"type": "integer"}}
    )

    reply = call(app, "tool", id=1)

    assert reply.data == [1, 2]
    assert reply.to("mcp")["structuredContent"] == {"result": [1, 2]}
    assert app.tools["tool"].output_schema is not None
    assert app.tools["tool"].output_schema["properties"]["result"]["type"] == "array"


@pytest.mark.parametrize("place", ["$defs", "definitions"])
def test_references_in_a_wrapped_schema_lead_to_its_definitions(place: str) -> None:
    rows = {"type": "array", "items": {"$ref": f"#/{place}/Row"}}
    app = app_with(
        lambda **_: [{"id": 1}], output_schema={**rows, place: {"Row": {"type": "object"}}}
    )

    reply = call(app, "tool", id=1)

    schema = app.tools["tool"].output_schema
    assert schema is not None
    assert schema["properties"] == {"result": rows}
    assert validate(reply.to("mcp"), schema=schema) == ()


@pytest.mark.parametrize(
    ("returned", "code"),
    [
        (success("Done.", {"id": 1}), None),
        (success("Done.", {"id": "x"}), "INVALID_OUTPUT"),
        (success("Done."), "INVALID_OUTPUT"),
        (failure("No.", code="CLOSED"), "CLOSED"),
        ({"id": float("nan")}, "INVALID_OUTPUT"),
    ],
)
def test_replies_are_checked_by_the_output_schema_too(returned: Any, code: str | None) -> None:
    app = app_with(lambda **_: returned, output_schema=SCHEMA)

    reply = call(app, "tool", id=1)

    assert (reply.error and reply.error.code) == code


def store() -> str:
    return "the store"


def test_other_parameters_are_for_the_server_and_no_caller_can_set_them() -> None:
    received: list[Any] = []

    def generated(  # type: ignore[no-untyped-def]  # the subject
        first: str,
        ctx: Context,
        store: Annotated[str, Depends(store)],
        _name: str = "kept",
        _untyped=None,
        *,
        tool: str,
        **arguments: Any,
    ) -> None:
        received.append((first, store, _name, _untyped, tool, arguments))

    app = app_with(partial(generated, "bound", tool="fixed"))
    taken = ["_name", "_untyped", "ctx", "first", "store", "tool"]

    call(app, "tool", id=1, other=2)
    refused = call(app, "tool", id=1, **dict.fromkeys(taken, "x"))

    assert received == [("bound", "the store", "kept", None, "fixed", {"id": 1, "other": 2})]
    assert sorted(problems(refused)) == taken


def test_the_schema_of_a_function_with_parameters_is_only_shown() -> None:
    def typed(id: int) -> int:
        return id

    app = app_with(typed)

    assert call(app, "tool", id=0).data == 0
    assert app.tools["tool"].input_schema is SCHEMA


def with_parameter(id: int, **arguments: Any) -> Any: ...
def with_default(id: int = 1, **arguments: Any) -> Any: ...
def with_type(**arguments: Any) -> int:
    return len(arguments)


REFUSED: list[tuple[Callable[..., Any], dict[str, Any], str]] = [
    (
        echo,
        {"input_schema": {"type": "object", "properties": {"a": {"type": "intger"}}}},
        "input_schema of tool 'tool' cannot be used: "
        '"intger" is not allowed (at /properties/a/type)',
    ),
    (
        echo,
        {"input_schema": {"type": "object", "properties": {"a": {"$ref": "#/$defs/B"}}}},
        "input_schema of tool 'tool' cannot be used: Pointer '/$defs/B' does not exist",
    ),
    (
        echo,
        {"input_schema": {"type": "object", "properties": {"a": {"$ref": "https://x.test/"}}}},
        "input_schema of tool 'tool' cannot be used: the schema cannot be checked: "
        "a reference to https://x.test/ is not followed",
    ),
    (
        echo,
        {"input_schema": {"type": "object", "default": object()}},
        "input_schema of tool 'tool' cannot be used: it is not JSON: ",
    ),
    (
        echo,
        {"input_schema": {"type": "array"}},
        "input_schema={'type': 'array'} should be a JSON Schema with 'type': 'object'",
    ),
    (
        echo,
        {"output_schema": {"type": "object", "required": "id"}},
        "output_schema of tool 'tool' cannot be used: ",
    ),
    (echo, {"output_schema": True}, "output_schema=True should be a JSON Schema"),
    (
        with_type,
        {"output_schema": SCHEMA},
        "the return value of tool 'tool' has both a type, int, and output_schema=; remove one",
    ),
    (
        with_parameter,
        {},
        "tool 'tool' takes all arguments in **kwargs, and also 'id'; read an argument from",
    ),
    (
        with_default,
        {},
        "input_schema of tool 'tool' has 'id', but the function has a parameter of that name",
    ),
]


@pytest.mark.parametrize(("fn", "options", "message"), REFUSED)
def test_a_wrong_schema_or_function_is_refused_at_registration(
    fn: Callable[..., Any], options: dict[str, Any], message: str
) -> None:
    with pytest.raises((TypeError, ValueError)) as refused:
        app_with(fn, **options)

    assert str(refused.value).startswith(message)


def test_a_hostile_schema_is_refused_at_once() -> None:
    deep: dict[str, Any] = {"type": "object"}
    for _ in range(5_000):
        deep = {"type": "object", "properties": {"a": deep}}

    with pytest.raises(ValueError, match="the schema is too large to be checked"):
        app_with(echo, input_schema=deep)


def test_arguments_that_take_too_long_to_check_are_refused_at_once() -> None:
    patterns = [{"pattern": f"(a|b)*{each}$"} for each in range(20)]
    texts = {"type": "array", "items": {"allOf": patterns}}
    app = app_with(echo, input_schema={"type": "object", "properties": {"n": texts}})

    refused = call(app, "tool", n=["ab" * 1_000] * 500)

    assert problems(refused) == {"": "the schema is too large to be checked"}


def test_without_the_extra_such_a_tool_is_refused_with_an_install_hint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    for name in ("schema_check", "schema_arguments"):
        monkeypatch.delitem(sys.modules, f"answerback.types.{name}", raising=False)

    with pytest.raises(MissingExtraError, match=r"pip install 'answerback\[lint\]'"):
        app_with(echo)


def test_an_app_without_such_tools_does_not_load_the_checker() -> None:
    program = """
import sys
from answerback import App
app = App("plain")
@app.tool
def add(x: int) -> int: return x
app.add_tool(add, name="shown", input_schema={"type": "object"})
names = ("jsonschema_rs", "answerback.types.schema_check", "answerback.types.argument_object")
sys.exit(any(name in sys.modules for name in names))
"""
    assert subprocess.run([sys.executable, "-c", program], check=False).returncode == 0
