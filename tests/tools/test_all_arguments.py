"""Functions that take all arguments as one object, or as `**kwargs: Unpack[TypedDict]`."""

import asyncio
import logging
from collections.abc import Callable
from dataclasses import dataclass
from datetime import date
from typing import Annotated, Any, NotRequired, TypedDict, Unpack

import attrs
import msgspec
import pytest
from pydantic import BaseModel, ConfigDict, Field

from answerback import AllArguments, App, Context, Depends, Reply, ToolError


class Typed(TypedDict):
    name: str
    when: NotRequired[date]


@dataclass
class Data:
    name: str
    when: date | None = None

    def __post_init__(self) -> None:
        if self.name == "refused":
            raise ValueError("no such name")


class Struct(msgspec.Struct):
    name: str
    when: date | None = None


@attrs.define
class Attrs:
    name: str
    when: date | None = None


class Model(BaseModel):
    name: str
    when: date | None = None


def app_with(kind: Any) -> tuple[App, list[Any]]:
    app = App("all")
    received: list[Any] = []

    def store(params: Any) -> None:
        received.append(params)

    store.__annotations__ = {"params": Annotated[kind, AllArguments], "return": None}
    app.add_tool(store)
    return app, received


def call(app: App, tool: str, /, **arguments: Any) -> Reply[Any]:
    return asyncio.run(app.call(tool, **arguments))


def paths(reply: Reply[Any]) -> list[str]:
    assert reply.error is not None
    assert reply.error.code == "INVALID_ARGUMENTS"
    return sorted(each["path"] for each in reply.error.details["problems"])


KINDS = [Typed, Data, Struct, Attrs, Model]


@pytest.mark.parametrize("kind", KINDS)
def test_the_parameter_receives_all_arguments_as_its_type(kind: Any) -> None:
    app, received = app_with(kind)

    reply = call(app, "store", name="tea", when="2026-01-31")

    assert reply.ok
    assert received == [kind(name="tea", when=date(2026, 1, 31))]


@pytest.mark.parametrize("kind", KINDS)
def test_the_type_is_the_schema_of_the_arguments(kind: Any) -> None:
    app, _ = app_with(kind)

    schema = app.tools["store"].input_schema

    assert list(schema["properties"]) == ["name", "when"]
    assert schema["required"] == ["name"]
    assert schema["additionalProperties"] is False
    assert "title" not in schema


@pytest.mark.parametrize("kind", KINDS)
def test_all_wrong_arguments_are_named_at_once(kind: Any) -> None:
    app, received = app_with(kind)

    reply = call(app, "store", nam="tea", when="soon")

    assert paths(reply) == ["nam", "name", "when"]
    assert reply.error is not None
    assert "did you mean 'name'?" in reply.error.message
    assert received == []


def test_a_refusal_of_the_class_itself_is_shown() -> None:
    app, _ = app_with(Data)

    reply = call(app, "store", name="refused")

    assert reply.error is not None
    assert reply.error.message == "Invalid arguments: no such name"


@pytest.mark.parametrize("kind", [dict, dict[str, Any]])
def test_a_dict_takes_any_arguments(kind: Any) -> None:
    app, received = app_with(kind)

    call(app, "store", name="tea", more=[1])

    assert received == [{"name": "tea", "more": [1]}]
    assert app.tools["store"].input_schema == {"type": "object", "properties": {}}


def test_a_dict_of_one_type_checks_each_argument() -> None:
    app, received = app_with(dict[str, int])

    call(app, "store", a="1")
    refused = call(app, "store", a="x", b=2)

    assert received == [{"a": 1}]
    assert paths(refused) == ["a"]


class Aliased(BaseModel):
    name: str = Field(alias="Name")


class ByBoth(Aliased):
    model_config = ConfigDict(populate_by_name=True)


class Open(BaseModel):
    model_config = ConfigDict(extra="allow")
    name: str


def test_a_models_own_settings_decide_which_names_are_known() -> None:
    aliased, _ = app_with(Aliased)
    both, of_both = app_with(ByBoth)
    extra, of_extra = app_with(Open)

    refused = call(aliased, "store", Name="tea", name="tea")
    call(both, "store", name="tea")
    call(extra, "store", name="tea", more=1)

    assert paths(refused) == ["name"]
    assert of_both == [ByBoth(Name="tea")]
    assert of_extra == [Open(name="tea", more=1)]  # type: ignore[call-arg]  # extra="allow"


class Node(TypedDict):
    children: "list[Node]"


def test_a_recursive_type_takes_all_arguments() -> None:
    app, received = app_with(Node)

    call(app, "store", children=[{"children": []}])
    refused = call(app, "store", children=[{"children": 1}])

    assert received == [{"children": [{"children": []}]}]
    assert paths(refused) == ["children[0].children"]


def manager() -> str:
    return "the manager"


def test_the_rest_of_the_parameters_are_for_the_server() -> None:
    app = App("all")

    @app.tool
    async def create(
        args: Annotated[Typed, AllArguments()],
        manager: Annotated[str, Depends(manager)],
        ctx: Context,
    ) -> list[str]:
        return [args["name"], manager, type(ctx).__name__]

    assert call(app, "create", name="tea").data == ["tea", "the manager", "Context"]
    assert list(app.tools["create"].input_schema["properties"]) == ["name", "when"]


def test_keywords_have_the_types_of_a_typed_dict() -> None:
    app = App("all")

    @app.tool
    def create(count: int, ctx: Context, **params: Unpack[Typed]) -> str:
        return repr((count, params))

    reply = call(app, "create", count=1, name="tea", when="2026-01-31")
    without = call(app, "create", count=1, name="tea")
    refused = call(app, "create", name=1, whn="x")

    assert reply.data == repr((1, {"name": "tea", "when": date(2026, 1, 31)}))
    assert without.data == repr((1, {"name": "tea"}))
    assert paths(refused) == ["count", "name", "whn"]
    assert app.tools["create"].input_schema["required"] == ["count", "name"]


def test_a_gate_may_take_all_arguments() -> None:
    app = App("all")

    def allowed(ctx: Context, params: Typed) -> None:
        if params["name"] != "tea":
            raise ToolError("not this one", code="NOT_THIS_ONE")

    @app.tool(requires=[allowed])
    def create(params: Annotated[Typed, AllArguments]) -> str:
        return params["name"]

    refused = call(app, "create", name="coffee")

    assert call(app, "create", name="tea").data == "tea"
    assert refused.error is not None
    assert refused.error.code == "NOT_THIS_ONE"


class Manager: ...


def with_argument(params: Annotated[dict, AllArguments], x: int) -> None: ...  # type: ignore[type-arg]
def twice(a: Annotated[Typed, AllArguments], b: Annotated[Typed, AllArguments]) -> None: ...
def not_object(params: Annotated[list[int], AllArguments]) -> None: ...
def keywords(**params: Any) -> None: ...
def same_name(name: str, **params: Unpack[Typed]) -> None: ...  # type: ignore[misc]  # the subject
def of_server(manager: Manager) -> None: ...
def unmarked(args: AllArguments) -> int:
    return 1


def with_logger(params: Annotated[Typed, AllArguments], logger: logging.Logger) -> None: ...


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (
            with_argument,
            "tool 'with_argument' takes all arguments in 'params', and also 'x'; read an argument "
            "from 'params', and mark a value from the server with Depends, as in "
            "x: Annotated[T, Depends(fn)]",
        ),
        (twice, "tool 'twice' takes all arguments twice; once is enough"),
        (
            not_object,
            "parameter 'params' of tool 'not_object': all arguments together are an object; "
            "write dict[str, Any], a TypedDict, a dataclass or a model",
        ),
        (
            keywords,
            "tool 'keywords' takes **params without saying which arguments there are; name each "
            "argument, write **params: Unpack[T] with a TypedDict T, pass input_schema=, or take "
            "args: Annotated[dict, AllArguments] for any arguments",
        ),
        (
            same_name,
            "**params of tool 'same_name' has 'name', but the function has a parameter of that "
            "name; rename the parameter",
        ),
        (
            of_server,
            "parameter 'manager' of tool 'of_server': Manager is not a type that JSON supports; "
            "make it a dataclass, write str, or register it with register_type; for a value from "
            "the server, write manager: Annotated[Manager, Depends(fn)]",
        ),
        (
            unmarked,
            "parameter 'args' of tool 'unmarked' has AllArguments as its type; write args: "
            "Annotated[dict, AllArguments], or a TypedDict for dict",
        ),
        (
            with_logger,
            "tool 'with_logger' takes all arguments in 'params', and also 'logger'; read an "
            "argument from 'params', and mark a value from the server with Depends, as in "
            "logger: Annotated[T, Depends(fn)]",
        ),
    ],
)
def test_a_function_that_cannot_be_served_is_refused_with_what_to_write(
    fn: Callable[..., Any], message: str
) -> None:
    with pytest.raises(TypeError) as refused:
        App("all").add_tool(fn)

    assert str(refused.value) == message
