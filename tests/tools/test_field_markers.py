"""pydantic's Field and FastAPI's markers on the parameters of a tool."""

# ruff: noqa: B008 - calls and wrong values as defaults are the subject

from __future__ import annotations

import asyncio
import dataclasses
import json
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path as FilePath
from typing import Annotated, Any

import fastapi
import pydantic
import pytest
from pydantic import AliasChoices, AliasPath, Field

from answerback import App, Reply


def _app(*functions: Callable[..., Any]) -> App:
    app = App("fields")
    for fn in functions:
        app.add_tool(fn)
    return app


def _call(fn: Callable[..., Any], **arguments: Any) -> Reply[Any]:
    return asyncio.run(_app(fn).call(fn.__name__, **arguments))


def _schema(fn: Callable[..., Any]) -> dict[str, Any]:
    return _app(fn).tools[fn.__name__].input_schema


def search(
    url: str = Field(description="Where to look."),
    n: int = Field(default=3, ge=1, le=9, description="How many."),
) -> str:
    return f"{url!r} {n!r}"


def test_field_as_a_default_gives_the_function_the_value_of_the_default() -> None:
    assert _call(search, url="a").data == "'a' 3"


def test_field_without_a_default_makes_the_argument_required() -> None:
    reply = _call(search)

    assert reply.error is not None
    assert reply.error.message == "Invalid arguments: url: missing, expected str"


def test_the_limits_of_a_field_as_a_default_are_enforced() -> None:
    reply = _call(search, url="a", n=-4)

    assert reply.error is not None
    assert reply.error.message == "Invalid arguments: n: expected int >= 1 <= 9, got int -4"


def test_field_as_a_default_is_in_the_schema() -> None:
    assert _schema(search) == {
        "type": "object",
        "properties": {
            "url": {"type": "string", "description": "Where to look."},
            "n": {
                "type": "integer",
                "minimum": 1,
                "maximum": 9,
                "description": "How many.",
                "default": 3,
            },
        },
        "required": ["url"],
        "additionalProperties": False,
    }


def in_annotated(
    n: Annotated[int, Field(default=5)],
    tags: Annotated[list[str], Field(default_factory=lambda: ["a"])],
    own: Annotated[int, Field(default=5)] = 7,
) -> str:
    tags.append("b")
    return f"{n} {tags} {own}"


def test_a_default_and_a_default_factory_inside_annotated_make_an_argument_optional() -> None:
    assert _call(in_annotated).data == "5 ['a', 'b'] 7"
    assert "required" not in _schema(in_annotated)


def test_each_call_gets_its_own_default_from_a_field() -> None:
    def collect(
        made: list[int] = Field(default_factory=list), given: list[int] = Field(default=[])
    ) -> int:
        made.append(1)
        given.append(1)
        return len(made) + len(given)

    app = _app(collect)

    answers = [asyncio.run(app.call("collect")).data for _ in range(3)]

    assert answers == [2, 2, 2]


def test_an_explicit_argument_is_not_replaced_by_the_default_of_a_field() -> None:
    assert _call(search, url="a", n=9).data == "'a' 9"
    assert _call(in_annotated, n=0, tags=[], own=0).data == "0 ['b'] 0"


def paged(page_size: int = Field(default=10, alias="page-size", le=100)) -> int:
    return page_size


def commented(body: Annotated[str, Field(validation_alias=AliasChoices("body", "comment"))]) -> str:
    return body


def test_an_alias_is_the_name_of_the_argument_in_schema_call_and_error() -> None:
    assert list(_schema(paged)["properties"]) == ["page-size"]
    assert _call(paged, **{"page-size": 7}).data == 7
    too_large = _call(paged, **{"page-size": 700}).error
    assert too_large is not None
    assert too_large.message == "Invalid arguments: page-size: expected int <= 100, got int 700"


def _refuse(value: str) -> str:
    raise ValueError(f"{value} is too short")


class Login(pydantic.BaseModel):
    password: Annotated[str, pydantic.AfterValidator(_refuse)] = Field(alias="x1")


def one(password: Annotated[int, Field(alias="x1")]) -> str:
    return "ok"


def several(
    x1: Annotated[int, Field(validation_alias=AliasChoices("x1", "password"))],
) -> str:
    return "ok"


def logged_in(login: Login) -> str:
    return "ok"


@pytest.mark.parametrize(
    ("fn", "arguments"),
    [
        (one, {"x1": "hunter2"}),
        (several, {"x1": "hunter2"}),
        (logged_in, {"login": {"x1": "hunter2"}}),
    ],
)
def test_a_secret_under_an_alias_is_not_quoted_in_a_refusal(
    fn: Callable[..., Any], arguments: dict[str, Any]
) -> None:
    error = _call(fn, **arguments).error

    assert error is not None
    assert "x1" in error.message
    assert "hunter2" not in error.message


def test_the_function_s_own_name_is_unknown_where_there_is_an_alias() -> None:
    error = _call(paged, page_size=7).error

    assert error is not None
    assert "page_size: unknown argument; did you mean 'page-size'?" in error.message


def test_an_alias_is_the_name_of_the_argument_in_the_openapi_document() -> None:
    document = _app(paged).openapi()

    assert '"page-size"' in json.dumps(document)
    assert "page_size" not in json.dumps(document)


def test_an_alias_is_the_name_of_the_argument_on_the_command_line(tmp_path: FilePath) -> None:
    target = tmp_path / "pages.py"
    target.write_text(
        "from pydantic import Field\n"
        "from answerback import App\n"
        "app = App('pages')\n"
        "@app.tool\n"
        "def paged(page_size: int = Field(default=10, alias='page-size')) -> int:\n"
        "    return page_size\n"
    )
    command = [sys.executable, "-m", "answerback", "call", str(target), "paged", "page-size=7"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, json.loads(done.stdout)) == (0, {"result": 7})


@pytest.mark.parametrize("name", ["body", "comment"])
def test_every_choice_of_an_alias_is_accepted_and_the_first_is_shown(name: str) -> None:
    assert _call(commented, **{name: "hello"}).data == "hello"
    assert list(_schema(commented)["properties"]) == ["body"]


def test_an_alias_works_for_arguments_that_are_large() -> None:
    def total(numbers: list[int] = Field(alias="the-numbers")) -> int:
        return sum(numbers)

    assert _call(total, **{"the-numbers": [1] * 300_000}).data == 300_000


def test_a_type_of_pydantic_s_takes_default_alias_and_description() -> None:
    def visit(
        site: pydantic.AnyUrl = Field(
            default=pydantic.AnyUrl("https://a.example/"), alias="web-site", description="A page."
        ),
    ) -> str:
        return str(site)

    assert _call(visit).data == "https://a.example/"
    assert _call(visit, **{"web-site": "https://b.example"}).data == "https://b.example/"
    assert _schema(visit)["properties"]["web-site"]["description"] == "A page."


def listing(
    limit: Annotated[int, fastapi.Query(ge=1, le=50, description="How many rows.")] = 10,
    item: Annotated[int, fastapi.Path(ge=1)] = 1,
    note: str = fastapi.Body(default="", max_length=5),
    colour: str = fastapi.Form("red", alias="color"),
) -> str:
    return f"{limit} {item} {note!r} {colour}"


def test_fastapi_markers_keep_their_limits_defaults_aliases_and_descriptions() -> None:
    properties = _schema(listing)["properties"]

    assert _call(listing).data == "10 1 '' red"
    assert properties["limit"]["description"] == "How many rows."
    assert properties["limit"]["minimum"] == 1
    assert list(properties) == ["limit", "item", "note", "color"]


@pytest.mark.parametrize("wrong", [{"limit": 0}, {"item": 0}, {"note": "too long"}])
def test_the_limits_of_fastapi_markers_are_enforced(wrong: dict[str, Any]) -> None:
    error = _call(listing, **wrong).error

    assert error is not None
    assert error.code == "INVALID_ARGUMENTS"


def test_a_field_keeps_its_title_examples_and_deprecation_in_the_schema() -> None:
    def old(
        a: int = Field(default=1, title="T", examples=[2], deprecated=True),
        b: Annotated[int, fastapi.Query(deprecated=True, json_schema_extra={"x-unit": "km"})] = 1,
    ) -> int:
        return a + b

    assert _schema(old)["properties"] == {
        "a": {"type": "integer", "title": "T", "examples": [2], "deprecated": True, "default": 1},
        "b": {"type": "integer", "deprecated": True, "x-unit": "km", "default": 1},
    }


def test_a_required_query_of_fastapi_s_is_required() -> None:
    def read(item: int = fastapi.Query(...)) -> int:
        return item

    assert _schema(read)["required"] == ["item"]


def two_names(a: int = Field(alias="b"), b: int = 1) -> None: ...
def with_path(a: int = Field(validation_alias=AliasPath("b", 0))) -> None: ...
def with_data(a: int = Field(default_factory=lambda data: data["b"])) -> None: ...


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (
            two_names,
            "tool 'two_names' has two parameters named 'b' in JSON, 'a' and 'b'; change an alias",
        ),
        (
            with_path,
            "parameter 'a' of tool 'with_path': an AliasPath reads inside another argument; "
            "take that argument and read it",
        ),
        (
            with_data,
            "parameter 'a' of tool 'with_data': its default_factory takes the other fields; "
            "write one without parameters",
        ),
    ],
)
def test_a_field_that_no_caller_can_fill_in_is_refused(
    fn: Callable[..., Any], message: str
) -> None:
    with pytest.raises(TypeError) as caught:
        _app(fn)

    assert str(caught.value) == message


@dataclasses.dataclass
class Order:
    n: int = Field(default=3, ge=1)


def place(order: Order) -> int:
    return order.n


def test_a_field_as_the_default_of_a_plain_dataclass_is_refused() -> None:
    with pytest.raises(TypeError, match=r"of tool 'place'\.n: pydantic's Field as a default"):
        _app(place)
