"""Large values of pydantic's types: other threads run in between, the results are the same."""

from __future__ import annotations

import enum
import json
import re
from dataclasses import dataclass, field
from datetime import date
from decimal import Decimal
from typing import Annotated, Any, Generic, Literal, NamedTuple, NotRequired, TypeVar
from uuid import UUID

import msgspec
import pydantic
import pytest
from pydantic_core import SchemaValidator
from typing_extensions import TypedDict

from answerback.types.arguments import Arguments, Parameter
from answerback.types.large_models import (
    build_large,
    json_validator,
    large_validator,
    with_fail_fast,
)
from answerback.types.problems import InvalidArguments

LONG = 20_000


class Item(pydantic.BaseModel):
    n: int = 0


class Order(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(frozen=True)

    name: str = "none"
    items: list[Item] = pydantic.Field(alias="lines")
    totals: list[int]


class Counted(pydantic.BaseModel):
    items: list[Item]
    count: int = 0

    @pydantic.model_validator(mode="after")
    def _count(self) -> Counted:
        self.count = len(self.items)
        return self


class Noted(pydantic.BaseModel):
    items: list[Item]
    seen: int = 0

    def model_post_init(self, context: Any) -> None:
        self.seen = len(self.items)


class Some(pydantic.BaseModel):
    items: Annotated[list[Item], pydantic.Field(min_length=1)]


class Color(enum.Enum):
    RED = "red"


class Renamed(pydantic.BaseModel):
    items: list[Item]

    @pydantic.model_validator(mode="before")
    @classmethod
    def _rename(cls, value: Any) -> Any:
        if isinstance(value, dict) and "things" in value:
            value["items"] = value.pop("things")
        return value


class Wrapped(pydantic.BaseModel):
    items: list[Item]
    first: int = 0

    @pydantic.model_validator(mode="wrap")
    @classmethod
    def _wrap(cls, value: Any, validate: Any) -> Any:
        return validate(value)

    @pydantic.field_validator("first")
    @classmethod
    def _check(cls, value: int, info: pydantic.ValidationInfo) -> int:
        assert (info.mode, "items" in info.data) == ("json", True)
        return value


class Initial(pydantic.BaseModel):
    """Accepts another name, as an `__init__` of its own may."""

    items: list[Item]
    day: date | None = None
    below: Initial | None = None
    _seen: int = pydantic.PrivateAttr(default=0)

    def __init__(self, **values: Any) -> None:
        if "things" in values:
            values["items"] = values.pop("things")
        super().__init__(**values)
        self._seen = len(self.items)


class Open(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="allow", str_strip_whitespace=True)

    type: list[str] | int = 0


class Closed(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid")

    n: int = pydantic.Field(default=0, alias="N")


class Other(pydantic.BaseModel):
    m: int
    day: date | None = None


class Cat(pydantic.BaseModel):
    kind: Literal["cat"]


class Dog(pydantic.BaseModel):
    kind: Literal["dog"]


class Tree(pydantic.BaseModel):
    kids: list[Tree] = []
    mark: Tree | int | None = None


T = TypeVar("T")


class Box(pydantic.BaseModel, Generic[T]):
    inside: list[T]


@dataclass
class Line:
    n: int
    days: set[date] = field(default_factory=set)


class Entry(TypedDict):
    n: int
    line: NotRequired[Line]


class Pair(NamedTuple):
    n: int
    others: list[int]


TABLE = list(range(LONG))


class Looked(pydantic.BaseModel):
    items: list[Annotated[Any, pydantic.AfterValidator(lambda _: TABLE)]]
    n: int


class Root(pydantic.RootModel[dict[str, Item]]):
    pass


TYPES: list[Any] = [
    *(Order, Counted, Noted, Some, Renamed, Wrapped, Initial, Open, Closed, Other, Tree, Root),
    *(Box[int], Box[Item], Line, Entry, Pair),
    Annotated[Cat | Dog, pydantic.Field(discriminator="kind")],
    *(list[Item | Other], list[Other | Item], Item | dict[str, int], dict[str, int] | Item),
    *(list[int] | list[float], list[float] | list[int], list[date] | list[str]),
    *(list[str] | list[date], UUID | str, list[int] | tuple[int, ...], set[int] | list[int]),
    *(tuple[Item, ...], tuple[int, list[Item]], frozenset[str], dict[int, Item], dict[date, int]),
    *(list[Color | str], list[Decimal | int], list[bytes], Literal["red", 1], list[Any], Any),
    Annotated[list[int], pydantic.Field(max_length=2)],
    Annotated[dict[str, int], pydantic.Field(max_length=2)],
    Annotated[set[int], pydantic.Field(max_length=2)],
    Annotated[list[date], pydantic.AfterValidator(lambda value: value)],
    Annotated[list[int], pydantic.BeforeValidator(lambda value: value)],
]
LEAVES: list[Any] = [None, True, 1, 1.0, 1.5, "", "a", " a", "red", "1", "2020-01-01", [], {}]
LEAVES += ["12345678-1234-5678-1234-567812345678"]
NAMES = ["n", "N", "m", "day", "items", "things", "lines", "totals", "first", "type", "kind"]
NAMES += ["kids", "mark", "inside", "days", "below", "line", "others", "other", "1", "2020-01-01"]


def values() -> list[Any]:
    """Return JSON of many shapes: each is a leaf, or made of one before it."""
    found = [*LEAVES, {"kind": "cat"}, {"kind": "bird"}, {"n": 1, "others": [1]}]
    found += [{"lines": [{"n": 1}, {"n": "x"}], "totals": [1, "x"]}, {"m": 1, "day": "2020-01-01"}]
    for inner in found[:]:
        found += [[inner], [inner, inner, 1], [1, inner], [1, 2, inner]]
        found += [{name: inner} for name in NAMES] + [{name: [inner]} for name in NAMES]
    items = [{"n": 1}, {"m": 1}, {"n": 1, "m": 1}, {"n": 1, "line": {"n": 1, "days": ["x"]}}]
    found += [[item] for item in items] + [[item, {"n": "x"}, 1] for item in items]
    found += [{"items": items, "first": 1}, {"items": items, "first": "x"}, {"things": items}]
    found += [{"items": items, "below": {"things": [last]}} for last in (items[0], {"n": "x"}, 1)]
    return found


def outcome(validate: Any) -> tuple[Any, ...]:
    try:
        made = validate()
    except pydantic.ValidationError as error:
        keys = ("type", "loc", "msg")
        return tuple(tuple(map(each.get, keys)) for each in error.errors(include_url=False))
    return type(made), repr(made)


def _name(annotation: Any) -> str:
    # The address of a function differs between the processes of a test run.
    return re.sub(r" at 0x\w+", "", str(annotation))


@pytest.mark.parametrize("annotation", TYPES, ids=_name)
def test_results_and_errors_of_decoded_json_are_those_of_pydantic_for_json(annotation: Any) -> None:
    schema = with_fail_fast(pydantic.TypeAdapter(annotation).core_schema)
    pydantics = SchemaValidator(schema, _use_prebuilt=False)
    # Types that differ in the order of their members are equal.
    large_validator.cache_clear()
    ours = large_validator(annotation)

    for value in values():
        text = json.dumps(value)
        expected = outcome(lambda text=text: pydantics.validate_json(text, strict=True))
        assert outcome(lambda value=value: build_large(ours, value)) == expected, text
        assert json.dumps(value) == text


@pytest.mark.parametrize("annotation", TYPES, ids=_name)
def test_a_function_that_returns_its_value_changes_no_result_and_no_error(annotation: Any) -> None:
    pydantics = pydantic.TypeAdapter(annotation)
    with_function = Annotated[annotation, pydantic.BeforeValidator(lambda value: value)]
    ours = json_validator(pydantic.TypeAdapter(with_function).core_schema)
    assert ours is not None

    for value in values():
        text = json.dumps(value)
        expected = outcome(lambda text=text: pydantics.validate_json(text, strict=True))
        found = outcome(lambda text=text: ours.validate_json(text))
        # The kind of an error about a tagged union differs, and is not shown.
        same_kinds = [
            ("dict_type" if each == "model_attributes_type" else each for each in error)
            for error in found
            if isinstance(error, tuple)
        ]
        assert (tuple(map(tuple, same_kinds)) or found) == expected, text


def test_an_object_that_a_validator_of_the_author_returns_is_left_as_it_is() -> None:
    with pytest.raises(InvalidArguments):
        decode(Looked, {"items": [1] * LONG, "n": "x"})

    assert len(TABLE) == LONG


def test_a_result_shares_nothing_with_the_decoded_json() -> None:
    sent: Any = [[each] for each in range(LONG)]

    made = build_large(large_validator(list[Any]), sent)

    assert made == sent
    assert made[0] is not sent[0]


def test_many_undeclared_keys_are_refused_with_some_of_them() -> None:
    found = problems_of(Closed, {f"k{n}": [n] for n in range(LONG)} | {"N": "x"})

    assert {"x.N", "x['k0']"} <= {path.replace(".k0", "['k0']") for path in found}
    assert len(found) < LONG


def decode(annotation: Any, value: Any) -> Any:
    arguments = Arguments([Parameter(name="x", annotation=annotation)])
    return arguments.decode(msgspec.json.encode({"x": value}))["x"]


def problems_of(annotation: Any, value: Any) -> set[str]:
    with pytest.raises(InvalidArguments) as caught:
        decode(annotation, value)
    return {problem.path for problem in caught.value.problems}


def test_a_model_with_long_lists_is_what_pydantic_makes_of_it() -> None:
    sent = {"lines": [{"n": n} for n in range(LONG)], "totals": list(range(LONG))}

    made = decode(Order, sent)

    assert made == Order.model_validate(sent)
    assert made.model_fields_set == {"items", "totals"}
    assert made.items[-1] == Item(n=LONG - 1)


def test_problems_in_long_lists_and_beside_them_are_all_named() -> None:
    items: list[Any] = [{"n": 1}] * LONG
    sent = {"name": 1, "lines": [*items, {"n": ""}], "totals": [*range(LONG), "x"]}

    assert problems_of(Order, sent) == {
        "x.name",
        f"x.lines[{LONG}].n",
        f"x.totals[{LONG}]",
    }


def test_whole_floats_in_a_long_list_of_ints_are_accepted() -> None:
    made = decode(Order, {"lines": [], "totals": [1.0] * LONG})

    assert made.totals == [1] * LONG
    assert type(made.totals[0]) is int


def test_validators_of_a_model_see_its_whole_list() -> None:
    sent: dict[str, Any] = {"items": [{}] * LONG}

    assert decode(Counted, sent).count == LONG
    assert decode(Noted, sent).seen == LONG
    assert len(decode(Some, sent).items) == LONG


def test_a_model_with_its_own_init_is_what_the_init_makes_of_a_large_value() -> None:
    made = decode(Initial, {"things": [{"n": 1}] * LONG, "day": "2020-01-01"})

    assert (made._seen, made.day, made.items[-1]) == (LONG, date(2020, 1, 1), Item(n=1))
    assert made.model_fields_set == {"items", "day"}
    assert set(vars(made)) == {"items", "day", "below"}
    assert problems_of(Initial, {"things": [*[{}] * LONG, 1]}) == {f"x.items[{LONG}]"}


def test_the_limits_of_a_long_list_hold() -> None:
    class Few(pydantic.BaseModel):
        items: Annotated[list[Item], pydantic.Field(max_length=5)]

    assert problems_of(Few, {"items": [{}] * LONG}) == {"x.items"}


def test_the_items_of_an_optional_list_are_validated_as_often_as_those_of_a_list() -> None:
    validated: list[int] = []

    class Watched(pydantic.BaseModel):
        n: int

        @pydantic.field_validator("n")
        @classmethod
        def _watch(cls, value: int) -> int:
            validated.append(value)
            return value

    many = 2 * LONG
    sent: list[Any] = [*({"n": n} for n in range(many)), 1]

    assert problems_of(list[Watched], sent) == {f"x[{many}]"}
    expected = len(validated)
    assert problems_of(list[Watched] | None, sent) == {f"x[{many}]"}
    assert len(validated) == 2 * expected
