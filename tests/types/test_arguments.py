"""Decoding JSON text to keyword arguments, and the problems of arguments that do not fit."""

import dataclasses
import enum
import sys
import uuid
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, NotRequired, TypedDict

import annotated_types
import attrs
import msgspec
import pydantic
import pytest

from answerback.types.arguments import Arguments, Parameter
from answerback.types.output import Output
from answerback.types.problems import InvalidArguments, InvalidJson, Problem


def _arguments(lenient: bool = False, **annotations: Any) -> Arguments:
    parameters = [Parameter(name=name, annotation=kind) for name, kind in annotations.items()]
    return Arguments(parameters, lenient=lenient)


def _one(annotation: Any, text: str) -> Any:
    return _arguments(value=annotation).decode(b'{"value":%s}' % text.encode())["value"]


def _problems(arguments: Arguments, raw: bytes) -> dict[str, Problem]:
    with pytest.raises(InvalidArguments) as caught:
        arguments.decode(raw)
    return {problem.path: problem for problem in caught.value.problems}


@dataclasses.dataclass
class Item:
    name: str
    price: float


@dataclasses.dataclass
class Order:
    items: list[Item]
    note: str = ""


@dataclasses.dataclass
class Sized:
    size: Annotated[int, pydantic.Field(ge=1)]
    other: int = 0


class SizedDict(TypedDict):
    size: Annotated[int, annotated_types.Ge(1)]
    other: NotRequired[int]


class SizedTuple(NamedTuple):
    size: Annotated[int, annotated_types.Ge(1)]
    other: int = 0


@attrs.define
class SizedAttrs:
    _size: Annotated[int, annotated_types.Ge(1)]
    other: int = 0


class SizedStruct(msgspec.Struct, rename="upper"):
    size: Annotated[int, annotated_types.Ge(1)]
    other: int = 0


@dataclasses.dataclass
class Cat:
    name: str


@dataclasses.dataclass
class Dog:
    name: str
    tricks: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Link:
    next: "Link | Cat | None" = None


@dataclasses.dataclass
class Left:
    next: "Left | Right | None"


@dataclasses.dataclass
class Right:
    next: "Left | Right | None"
    more: int = 0


@dataclasses.dataclass
class Counted:
    size: Annotated[int, annotated_types.Ge(1)]
    twice: int = dataclasses.field(default=0, init=False)


@dataclasses.dataclass
class Even:
    number: int

    def __post_init__(self) -> None:
        if self.number % 2:
            raise ValueError("the number must be even")


@dataclasses.dataclass
class Fragile:
    number: int

    def __post_init__(self) -> None:
        raise KeyError("inner workings")


class Colour(enum.Enum):
    RED = "red"


class User(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(ge=0)


def test_arguments_are_decoded_to_their_types() -> None:
    arguments = _arguments(order=Order, when=datetime, colour=Colour)

    values = arguments.decode(
        b'{"order":{"items":[{"name":"a","price":1}]},"when":"2020-01-02T03:04:05","colour":"red"}'
    )

    assert values == {
        "order": Order([Item("a", 1.0)]),
        "when": datetime(2020, 1, 2, 3, 4, 5),
        "colour": Colour.RED,
    }


def test_an_optional_argument_that_was_not_sent_is_left_out() -> None:
    arguments = Arguments(
        [
            Parameter(name="x", annotation=int),
            Parameter(name="y", annotation=list[int], default=()),
        ]
    )

    assert arguments.decode(b'{"x":1}') == {"x": 1}
    assert arguments.decode(b'{"x":1.0}') == {"x": 1}


def test_a_function_without_arguments_takes_an_empty_object() -> None:
    assert Arguments([]).decode(b"{}") == {}


def test_all_problems_are_reported_at_once() -> None:
    arguments = _arguments(x=int, order=Order, colour=Literal["red", "blue"], y=int)

    problems = _problems(
        arguments,
        b'{"x":"two","order":{"items":[{"name":1,"price":"p"},{"name":"b"}]},"color":"red","y":1}',
    )

    assert set(problems) == {
        "x",
        "order.items[0].name",
        "order.items[0].price",
        "order.items[1].price",
        "color",
        "colour",
    }
    assert problems["x"].message == "expected int, got str 'two'"
    assert problems["color"].hint == "did you mean 'colour'?"


def test_an_unknown_argument_alone_is_refused() -> None:
    problems = _problems(_arguments(x=int), b'{"x":1,"z":2}')

    assert list(problems) == ["z"]


def test_a_long_value_is_cut_in_the_message() -> None:
    problems = _problems(_arguments(x=int), b'{"x":"%s"}' % (b"a" * 10_000))

    assert len(problems["x"].message) < 120


def test_the_number_of_problems_is_bounded() -> None:
    raw = msgspec.json.encode({"x": ["a"] * 1000})

    assert len(_problems(_arguments(x=list[int]), raw)) == 50


@pytest.mark.parametrize("raw", [b"[1]", b'"x"', b"null", b"3"])
def test_arguments_that_are_not_an_object_are_one_problem(raw: bytes) -> None:
    assert list(_problems(_arguments(x=int), raw)) == [""]


@pytest.mark.parametrize(
    "raw",
    [
        b"",
        b"{",
        b'{"x":}',
        b'{"x":NaN}',
        b'{"x":"\xff"}',
        b'{"x":1,"y":{"z":"\xff"}}',
        b'{"x":"\\ud800"}',
        b'{"x":{"y":"\\udc00 and more text"}}',
        b'{"x":1} 2',
        b'\xef\xbb\xbf{"x":1}',
    ],
)
def test_malformed_json_raises_invalid_json(raw: bytes) -> None:
    with pytest.raises(InvalidJson):
        _arguments(x=Any).decode(raw)


def test_invalid_utf8_in_an_undeclared_key_is_refused() -> None:
    arguments = _arguments(item=Item)

    with pytest.raises(InvalidJson):
        arguments.decode(b'{"item":{"name":"a","price":1,"more":"\xff"}}')


def _nested(levels: int) -> bytes:
    # The argument object itself is one level.
    return b'{"x":' + b"[" * (levels - 1) + b"]" * (levels - 1) + b"}"


def test_two_hundred_levels_are_read_and_one_more_is_not() -> None:
    arguments = _arguments(x=Any)

    assert arguments.decode(_nested(200))
    with pytest.raises(InvalidJson):
        arguments.decode(_nested(201))


def test_a_hundred_thousand_levels_are_refused() -> None:
    with pytest.raises(InvalidJson):
        _arguments(x=Any).decode(_nested(100_000))


def test_brackets_in_strings_do_not_count_as_levels() -> None:
    raw = msgspec.json.encode({"x": ['"[{' * 300, "\\", "[" * 300]})

    assert _arguments(x=list[str]).decode(raw)["x"][2] == "[" * 300


def test_many_brackets_side_by_side_are_not_deep() -> None:
    raw = msgspec.json.encode({"x": [[]] * 1000})

    assert len(_arguments(x=list[list[int]]).decode(raw)["x"]) == 1000


def test_a_recursive_union_is_decoded_down_to_the_depth_limit() -> None:
    raw = b'{"x":' + b'{"next":' * 198 + b'{"name":"Tom"}' + b"}" * 198 + b"}"

    link = _arguments(x=Link).decode(raw)["x"]

    for _ in range(198):
        link = link.next
    assert link == Cat("Tom")


def test_decoding_near_the_recursion_limit_is_a_problem_and_no_crash() -> None:
    raw = b'{"x":' + b'{"next":' * 190 + b'{"name":"Tom"}' + b"}" * 190 + b"}"
    arguments = _arguments(x=Link)

    def deep(level: int) -> None:
        if level:
            deep(level - 1)
        else:
            arguments.decode(raw)

    with pytest.raises((InvalidArguments, InvalidJson)):
        deep(sys.getrecursionlimit() - 250)


def test_recursive_unions_do_not_take_exponential_time() -> None:
    raw = b'{"x":' + b'{"next":' * 150 + b"3" + b"}" * 150 + b"}"

    for lenient in (False, True):
        problems = _problems(_arguments(lenient, x=Left | Right), raw)

        assert len(problems) == 1


@pytest.mark.parametrize("number", ["9" * 5000, "1e400", "-1e400"])
def test_a_number_out_of_range_is_a_problem_of_its_argument(number: str) -> None:
    raw = b'{"x":%s,"y":"a"}' % number.encode()

    problems = _problems(_arguments(x=int, y=int), raw)

    assert set(problems) == {"x", "y"}


def test_a_large_int_is_read_exactly() -> None:
    assert _one(int, "9" * 400) == 10**400 - 1


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (int, "1.0", 1),
        (int, "1e3", 1000),
        (list[int], "[1.0,2]", [1, 2]),
        (dict[str, list[int]], '{"a":[2.0]}', {"a": [2]}),
        (Sized, '{"size":2.0}', Sized(2)),
        (Literal[1, 2], "2.0", 2),
        (int | None, "3.0", 3),
        (User, '{"name":"a","age":4.0}', User(name="a", age=4)),
        (list[User], '[{"name":"a","age":4.0}]', [User(name="a", age=4)]),
    ],
)
def test_a_whole_float_is_accepted_for_an_int(annotation: Any, text: str, value: Any) -> None:
    decoded = _one(annotation, text)

    assert decoded == value
    assert type(decoded) is type(value)


def test_a_float_stays_a_float_where_int_and_float_are_accepted() -> None:
    assert type(_one(int | float, "1.0")) is float


@pytest.mark.parametrize("kind", [Sized, SizedDict, SizedAttrs])
def test_limits_in_the_fields_of_a_class_are_enforced(kind: Any) -> None:
    field = "_size" if kind is SizedAttrs else "size"

    problems = _problems(_arguments(x=list[kind]), b'{"x":[{"%s":0}]}' % field.encode())

    assert list(problems) == [f"x[0].{field}"]


def test_limits_in_the_fields_of_tuples_and_renamed_structs_are_enforced() -> None:
    arguments = _arguments(t=SizedTuple, s=SizedStruct)

    problems = _problems(arguments, b'{"t":[0],"s":{"SIZE":0}}')

    assert list(problems) == ["t[0]", "s.SIZE"]


def test_a_dataclass_field_with_init_false_may_be_sent() -> None:
    counted = _one(Counted, '{"size":1,"twice":2}')

    assert (counted.size, counted.twice) == (1, 2)


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (Sized, '{"size":1}', Sized(1)),
        (SizedDict, '{"size":1}', {"size": 1}),
        (SizedTuple, "[1]", SizedTuple(1)),
        (SizedAttrs, '{"_size":1}', SizedAttrs(1)),
        (SizedStruct, '{"SIZE":1,"OTHER":2}', SizedStruct(1, 2)),
    ],
)
def test_a_class_with_limited_fields_is_built(annotation: Any, text: str, value: Any) -> None:
    assert _one(annotation, text) == value


@pytest.mark.parametrize(
    ("metadata", "good", "bad"),
    [
        (pydantic.Field(gt=0), "1", "0"),
        (pydantic.Field(multiple_of=5), "10", "11"),
        (annotated_types.Interval(ge=1, lt=3), "2", "3"),
        (annotated_types.Predicate(lambda number: number % 2 == 0), "2", "3"),
        (msgspec.Meta(le=3), "3", "4"),
        (annotated_types.Lt(10**30), "5", "9" * 31),
    ],
)
def test_a_limit_from_any_library_is_enforced(metadata: Any, good: str, bad: str) -> None:
    annotation = Annotated[int, metadata]

    assert _one(annotation, good) == int(good)
    with pytest.raises(InvalidArguments):
        _one(annotation, bad)


def test_a_decimal_must_be_finite_and_within_its_limits() -> None:
    annotation = Annotated[Decimal, pydantic.Field(gt=0)]

    assert _one(annotation, '"1.50"') == Decimal("1.50")
    for bad in ('"0"', '"NaN"', '"Infinity"', '" 1"', "-1"):
        with pytest.raises(InvalidArguments):
            _one(annotation, bad)


@pytest.mark.parametrize(
    ("annotation", "text", "value"),
    [
        (Cat | Dog, '{"name":"a"}', Cat("a")),
        (Dog | Cat, '{"name":"a"}', Cat("a")),
        (Cat | Dog, '{"name":"a","tricks":[]}', Dog("a")),
        (Cat | dict[str, Any], '{"name":"a"}', Cat("a")),
        (Cat | dict[str, Any], '{"nom":"a"}', {"nom": "a"}),
        (dict[str, Any] | Cat, '{"name":"a"}', Cat("a")),
        (
            str | uuid.UUID,
            '"6b1d1a3e-5d3f-4b8e-9a55-0d3f1c2b4a5e"',
            uuid.UUID("6b1d1a3e-5d3f-4b8e-9a55-0d3f1c2b4a5e"),
        ),
        (str | uuid.UUID, '"abc"', "abc"),
        (date | datetime, '"2020-01-02"', date(2020, 1, 2)),
        (date | datetime, '"2020-01-02T00:00:00"', datetime(2020, 1, 2)),
        (list[int] | set[str], "[1]", [1]),
        (list[int] | set[str], '["a"]', {"a"}),
        (bytes | str, '"YWJj"', "YWJj"),
        (str | Decimal, '"12"', "12"),
        (str | Decimal, "12", Decimal(12)),
        (User | int, "3", 3),
        (User | int, '{"name":"a","age":1}', User(name="a", age=1)),
        (User | Cat, '{"name":"a"}', Cat("a")),
        (list[Cat | Dog | None], '[null,{"name":"a"}]', [None, Cat("a")]),
        (dict[str, Sized | int], '{"a":{"size":1},"b":2}', {"a": Sized(1), "b": 2}),
    ],
)
def test_a_union_becomes_the_member_that_fits_best(annotation: Any, text: str, value: Any) -> None:
    decoded = _one(annotation, text)

    assert decoded == value
    assert type(decoded) is type(value)


def test_a_problem_inside_the_nearest_member_of_a_union_has_its_path() -> None:
    problems = _problems(_arguments(x=list[Dog | int]), b'{"x":[{"name":"a","tricks":[1]}]}')

    assert list(problems) == ["x[0].tricks[0]"]


def test_problems_inside_a_pydantic_model_have_their_paths() -> None:
    problems = _problems(_arguments(x=list[User]), b'{"x":[{"name":1,"age":-1}]}')

    assert set(problems) == {"x[0].name", "x[0].age"}


def test_a_pydantic_model_refuses_a_string_for_a_number() -> None:
    assert list(_problems(_arguments(x=User), b'{"x":{"name":"a","age":"3"}}')) == ["x.age"]


def test_a_pydantic_validator_in_an_annotation_runs() -> None:
    annotation = Annotated[int, pydantic.AfterValidator(lambda number: number * 2)]

    assert _one(annotation, "4") == 8


def test_a_value_error_of_a_class_is_shown_to_the_caller() -> None:
    problems = _problems(_arguments(x=Even), b'{"x":{"number":3}}')

    assert problems["x"].message == "the number must be even"


def test_the_text_of_an_unexpected_exception_is_not_shown() -> None:
    problems = _problems(_arguments(x=Fragile), b'{"x":{"number":3}}')

    assert "inner workings" not in str(problems)


def test_a_decoded_dataclass_is_encoded_with_its_defaults() -> None:
    """Contract: an object that was an argument is encoded like any other of its class."""
    orders = _one(list[Order], '[{"items": []}]')

    assert vars(orders[0]) == {"items": [], "note": ""}
    assert Output(list[Order]).encode(orders)[0] == b'[{"items":[],"note":""}]'


def test_each_call_decodes_new_objects() -> None:
    arguments = _arguments(x=list[int])

    first, second = (arguments.decode(b'{"x":[1]}')["x"] for _ in range(2))

    assert first is not second


@pytest.mark.parametrize(
    ("annotation", "given", "form"),
    [
        (datetime, "tomorrow", "2026-01-31T12:00:00Z"),
        (datetime, 5, "2026-01-31T12:00:00Z"),
        (datetime | None, "tomorrow", "2026-01-31T12:00:00Z"),
        (Annotated[datetime, msgspec.Meta(tz=True)], "2026-01-31T12:00:00", "2026-01-31T12:00:00Z"),
        (
            Annotated[datetime, msgspec.Meta(tz=False)],
            "2026-01-31T12:00:00Z",
            "2026-01-31T12:00:00",
        ),
        (date, "31.1.2026", "2026-01-31"),
        (date, "2026-02-30", "2026-01-31"),
        (Annotated[date, "When."] | int, "soon", "2026-01-31"),
        (time, "noon", "12:00:00"),
        (Annotated[time, msgspec.Meta(tz=True)], "12:00:00", "12:00:00Z"),
        (timedelta, "1h30", "PT1H30M"),
        (uuid.UUID, "7", "00000000-0000-4000-8000-000000000000"),
    ],
)
def test_a_string_in_the_wrong_format_gets_an_example_as_hint(
    annotation: Any, given: Any, form: str
) -> None:
    problem = _problems(_arguments(value=annotation), msgspec.json.encode({"value": given}))[
        "value"
    ]

    assert problem.hint == f"write it like {form}"
    assert str(problem).endswith(f"; write it like {form}")
    assert _one(annotation, f'"{form}"') is not None


def test_the_hint_for_bytes_is_base64() -> None:
    problem = _problems(_arguments(value=bytes), b'{"value": "\xc3\xa4"}')["value"]

    assert problem.hint == "write it in base64"


def test_a_value_in_the_right_format_but_outside_its_limits_gets_no_hint() -> None:
    later = Annotated[date, annotated_types.Ge(date(2026, 1, 1))]

    problem = _problems(_arguments(value=later), b'{"value": "2025-01-01"}')["value"]

    assert problem.hint is None


def test_a_known_name_in_another_case_is_suggested() -> None:
    assert _problems(_arguments(x=int), b'{"X": 1}')["X"].hint == "did you mean 'x'?"


def test_an_argument_of_any_type_stays_whole_beside_one_that_is_repaired() -> None:
    arguments = Arguments(
        [Parameter(name="n", annotation=int), Parameter(name="x", annotation=Any)], lenient=True
    )

    repaired = arguments.decode(b'{"n":1.0,"x":[1,{"a":[2]}]}')
    read = arguments.decode(b'{"n":"1","x":[1,{"a":[2]}]}')

    assert repaired == read == {"n": 1, "x": [1, {"a": [2]}]}
