"""The keywords and definitions in the JSON Schema of arguments and outputs."""

import dataclasses
import enum
from datetime import date, datetime, time, timedelta
from typing import Annotated, Any, Generic, Literal, TypeVar

import annotated_types
import msgspec
import pydantic
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]

from answerback import App
from answerback.core.shape import EMPTY
from answerback.types.arguments import Parameter
from answerback.types.json_schema import arguments_schema, output_schema, schemas

T = TypeVar("T")


class Colour(enum.Enum):
    RED = "red"


@dataclasses.dataclass
class Point:
    """A place on the plane.

    More about it.
    """

    x: Annotated[int, pydantic.Field(ge=0, description="across")]
    y: int = 0


@dataclasses.dataclass
class Line:
    start: Point
    end: Point


@dataclasses.dataclass
class Tree:
    children: "list[Tree]"


@dataclasses.dataclass
class Box(Generic[T]):
    item: T


class User(pydantic.BaseModel):
    name: str
    friend: "User | None" = None


class Closed(msgspec.Struct, forbid_unknown_fields=True):
    x: int


def _other_point() -> type:
    @dataclasses.dataclass
    class Point:
        z: int

    return Point


def _schema(annotation: Any, **more: Any) -> dict[str, Any]:
    schema = arguments_schema([Parameter(name="x", annotation=annotation, **more)])
    Draft202012Validator.check_schema(schema)
    found: dict[str, Any] = schema["properties"]["x"]
    return found


def test_the_schema_of_no_arguments_is_a_closed_empty_object() -> None:
    assert arguments_schema([]) == {
        "type": "object",
        "properties": {},
        "additionalProperties": False,
    }


def test_arguments_are_a_closed_object() -> None:
    parameters = [
        Parameter(name="x", annotation=int, description="how many"),
        Parameter(name="y", annotation=Colour, default=Colour.RED),
    ]

    assert arguments_schema(parameters) == {
        "type": "object",
        "properties": {
            "x": {"type": "integer", "description": "how many"},
            "y": {"type": "string", "enum": ["red"], "default": "red"},
        },
        "required": ["x"],
        "additionalProperties": False,
    }


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (Annotated[int, "how many"], {"type": "integer", "description": "how many"}),
        (
            Annotated[str, pydantic.Field(title="T", examples=["a"], min_length=1, pattern="^a")],
            {"type": "string", "title": "T", "examples": ["a"], "minLength": 1, "pattern": "^a"},
        ),
        (
            Annotated[float, annotated_types.Interval(gt=0, le=1)],
            {
                "type": "number",
                "exclusiveMinimum": 0,
                "maximum": 1,
            },
        ),
        (
            Annotated[list[int], annotated_types.Len(1, 3)],
            {
                "type": "array",
                "items": {"type": "integer"},
                "minItems": 1,
                "maxItems": 3,
            },
        ),
        (
            Annotated[int, msgspec.Meta(extra_json_schema={"deprecated": True})],
            {
                "type": "integer",
                "deprecated": True,
            },
        ),
        (
            Annotated[int | None, "maybe"],
            {
                "anyOf": [{"type": "integer"}, {"type": "null"}],
                "description": "maybe",
            },
        ),
        (Literal[1, 2], {"type": "integer", "enum": [1, 2]}),
        (date, {"type": "string", "format": "date"}),
        (Any, {}),
        (
            Closed,
            {
                "title": "Closed",
                "type": "object",
                "properties": {"x": {"type": "integer"}},
                "required": ["x"],
                "additionalProperties": False,
            },
        ),
    ],
)
def test_a_type_is_rendered_with_json_schema_keywords(
    annotation: Any, schema: dict[str, Any]
) -> None:
    assert _schema(annotation) == schema


@pytest.mark.parametrize("default", [float("nan"), object(), msgspec.UNSET])
def test_a_default_that_json_cannot_represent_is_left_out(default: Any) -> None:
    assert "default" not in _schema(Any, default=default)


def test_a_class_that_is_used_once_is_written_in_place() -> None:
    assert _schema(Point) == {
        "title": "Point",
        "description": "A place on the plane.",
        "type": "object",
        "properties": {
            "x": {"type": "integer", "minimum": 0, "description": "across"},
            "y": {"type": "integer", "default": 0},
        },
        "required": ["x"],
    }


def test_a_class_that_is_used_twice_is_defined_once() -> None:
    schema = output_schema(Line)

    assert schema["properties"]["start"] == {"$ref": "#/$defs/Point"}
    assert list(schema["$defs"]) == ["Point"]


def test_a_recursive_root_is_still_an_object() -> None:
    for annotation in (Tree, User):
        schema = output_schema(annotation)

        assert schema["type"] == "object"
        assert "properties" in schema
        assert len(schema["$defs"]) == 1


def test_a_union_of_objects_is_an_object() -> None:
    schema = output_schema(Point | Tree)

    assert schema["type"] == "object"
    assert len(schema["anyOf"]) == 2


def test_two_classes_of_one_name_are_two_definitions() -> None:
    other = _other_point()

    rendered, components = schemas([Point, other, list[Point]])

    assert len(components) == 2
    assert rendered[0] == rendered[2]["items"]
    assert rendered[0] != rendered[1]


def test_component_names_do_not_depend_on_the_order_of_the_types() -> None:
    annotations = [Point, _other_point(), Tree, User, Box[int], Box[str]]

    _, forward = schemas(annotations)
    _, backward = schemas(annotations[::-1])

    assert forward == backward
    assert {"Tree", "User", "Box_int", "Box_str"} <= set(forward)


def test_a_model_that_is_used_twice_is_one_component() -> None:
    _, components = schemas([list[User], dict[str, User], User])

    assert set(components) == {"User"}


def test_a_model_has_one_schema_for_validation_and_one_for_serialization() -> None:
    class Aliased(pydantic.BaseModel):
        name: str = pydantic.Field(validation_alias="in", serialization_alias="out")

    read, written = _schema(Aliased), output_schema(Aliased)

    assert list(read["properties"]) == ["in"]
    assert list(written["properties"]) == ["out"]


def test_the_schema_of_a_class_has_its_name_as_title_and_no_titles_of_fields() -> None:
    assert output_schema(User)["title"] == "User"
    assert output_schema(Line)["title"] == "Line"
    assert "title" not in str(output_schema(User)["properties"])


def test_a_model_that_is_the_whole_type_is_a_component_by_its_name() -> None:
    class Plain(pydantic.BaseModel):
        x: int

    (alone, in_a_list), components = schemas([Plain, list[Plain]])

    assert alone == {"$ref": "#/components/schemas/Plain"}
    assert in_a_list["items"] == alone
    assert set(components) == {"Plain"}


class Empty(msgspec.Struct):
    pass


def test_an_object_without_members_has_empty_properties() -> None:
    assert _schema(Empty)["properties"] == {}
    assert EMPTY.wrap_schema({})["properties"] == {}


def test_a_datetime_with_an_offset_has_the_format_and_no_pattern() -> None:
    aware = Annotated[datetime, msgspec.Meta(tz=True)]

    assert _schema(aware) == {"type": "string", "format": "date-time"}
    # RFC 3339 requires an offset, so the format would refuse what these types accept.
    assert "format" not in _schema(datetime)
    assert "format" not in _schema(Annotated[datetime, msgspec.Meta(tz=False)])


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (Annotated[time, msgspec.Meta(tz=True)], {"type": "string", "format": "time"}),
        (timedelta, {"type": "string", "format": "duration"}),
        (
            datetime,
            {
                "type": "string",
                "description": "ISO 8601 date and time, with or without an offset",
            },
        ),
        (
            Annotated[datetime, msgspec.Meta(tz=False)],
            {"type": "string", "description": "ISO 8601 date and time without an offset"},
        ),
        (
            time,
            {"type": "string", "description": "ISO 8601 time, with or without an offset"},
        ),
        (
            Annotated[datetime, "Its start."],
            {
                "type": "string",
                "description": "Its start. (ISO 8601 date and time, with or without an offset)",
            },
        ),
    ],
)
def test_a_time_is_a_format_or_a_few_words_and_never_a_pattern(
    annotation: Any, schema: dict[str, Any]
) -> None:
    assert _schema(annotation) == schema


def test_a_duration_in_a_result_has_no_format_because_it_may_have_fractions() -> None:
    assert output_schema(timedelta) == {"type": "string", "description": "ISO 8601 duration"}


def test_the_docstring_of_an_argument_stands_before_the_words_for_its_time() -> None:
    parameter = Parameter(name="at", annotation=datetime, description="The start.")

    schema = arguments_schema([parameter])["properties"]["at"]

    assert schema["description"] == (
        "The start. (ISO 8601 date and time, with or without an offset)"
    )


class Meeting(pydantic.BaseModel):
    start: pydantic.NaiveDatetime
    end: pydantic.NaiveDatetime | None = None
    noted: pydantic.NaiveDatetime = pydantic.Field(description="When it was noted")
    signed: pydantic.AwareDatetime


NAIVE = "ISO 8601 date and time without an offset"


def test_a_naive_datetime_of_pydantic_is_described_like_one_of_msgspec() -> None:
    def meet(
        plain: Annotated[datetime, msgspec.Meta(tz=False)],
        at: pydantic.NaiveDatetime,
        meeting: Meeting,
    ) -> Meeting:
        """Meet.

        Args:
            at: The time of the meeting.
        """
        return meeting

    app = App("test")
    app.add_tool(meet)
    arguments = app.tools["meet"].input_schema["properties"]
    fields = arguments["meeting"]["properties"]

    assert arguments["plain"] == {"type": "string", "description": NAIVE}
    assert arguments["at"]["description"] == f"The time of the meeting. ({NAIVE})"
    assert fields["start"] == {"type": "string", "description": NAIVE}
    assert fields["end"]["anyOf"][0] == {"type": "string", "description": NAIVE}
    assert fields["noted"] == {"type": "string", "description": f"When it was noted ({NAIVE})"}
    assert fields["signed"] == {"type": "string", "format": "date-time"}
    assert (app.tools["meet"].output_schema or {})["properties"]["start"]["description"] == NAIVE
