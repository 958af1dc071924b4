"""Encoding return values as JSON text, checked against the return type."""

import asyncio
import dataclasses
import enum
import uuid
from collections import ChainMap, OrderedDict, deque
from datetime import UTC, datetime, timedelta
from decimal import Decimal
from math import nan
from types import MappingProxyType
from typing import Annotated, Any, NamedTuple, NotRequired, TypedDict

import annotated_types
import attrs
import msgspec
import pydantic
import pytest

from answerback import App
from answerback.types.output import Output
from answerback.types.problems import InvalidOutput


@dataclasses.dataclass
class Point:
    x: int
    y: int = 0


@dataclasses.dataclass
class Point3(Point):
    z: int = 0


class Shop(pydantic.BaseModel):
    name: str
    floors: Annotated[int, pydantic.Field(ge=1)]
    site: pydantic.HttpUrl | None = None


@dataclasses.dataclass
class Stamped:
    id: uuid.UUID
    at: str


@dataclasses.dataclass
class StampedTime:
    id: uuid.UUID
    at: datetime


@dataclasses.dataclass
class Holder:
    held: Any


class Movie(TypedDict):
    title: str
    year: NotRequired[int]


class Pair(NamedTuple):
    left: int
    right: int = 0


@attrs.define
class Account:
    number: Annotated[int, annotated_types.Ge(0)]


class Row(msgspec.Struct, array_like=True):
    key: int


class LongRow(Row):
    secret: str = ""


class Text(str):
    def __str__(self) -> str:
        return "something else"


class Whole(int):
    pass


class Colour(enum.Enum):
    RED = "red"


class User(pydantic.BaseModel):
    name: str = pydantic.Field(serialization_alias="userName")
    age: int = pydantic.Field(default=0, ge=0)

    @pydantic.computed_field  # type: ignore[prop-decorator]
    @property
    def adult(self) -> bool:
        return self.age >= 18


class Size(enum.Enum):
    SMALL = "small"

    @classmethod
    def _missing_(cls, value: object) -> "Size":
        return cls.SMALL


class Reading(pydantic.BaseModel):
    value: float | None = None
    more: Any = None


class Admin(User):
    password: str = "secret"


@dataclasses.dataclass
class Team:
    lead: User
    members: list[User | str]


class Broken:
    def __init__(self) -> None:
        self.x = 1


def _text(annotation: Any, value: Any) -> str:
    return Output(annotation).encode(value)[0].decode()


def _fault(annotation: Any, value: Any) -> InvalidOutput:
    with pytest.raises(InvalidOutput) as caught:
        Output(annotation).encode(value)
    return caught.value


def _cycle() -> list[Any]:
    cycle: list[Any] = []
    cycle.append([cycle])
    return cycle


def _nested(levels: int) -> list[Any]:
    nest: list[Any] = []
    for _ in range(levels - 1):
        nest = [nest]
    return nest


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (int, 3, "3"),
        (float, 1, "1"),
        (int, 1.0, "1"),
        (None, None, "null"),
        (str, Text("a"), '"a"'),
        (int, Whole(3), "3"),
        (str, Colour.RED, '"red"'),
        (Colour, Colour.RED, '"red"'),
        (list[int], (1, 2), "[1,2]"),
        (tuple[int, str], [1, "a"], '[1,"a"]'),
        (set[int], [1], "[1]"),
        (dict[int, str], {1: "a"}, '{"1":"a"}'),
        (dict[str, int], OrderedDict(a=1), '{"a":1}'),
        (bytes, b"abc", '"YWJj"'),
        (Decimal, Decimal("1.50"), '"1.50"'),
        (timedelta, timedelta(days=1, seconds=5), '"P1DT5S"'),
        (datetime, datetime(2020, 1, 1, tzinfo=UTC), '"2020-01-01T00:00:00Z"'),
        (Point, Point(1), '{"x":1,"y":0}'),
        (Point, {"x": 1}, '{"x":1}'),
        (Pair, Pair(1), "[1,0]"),
        (Account, Account(1), '{"number":1}'),
        (Any, [Point(1), None, "é"], '[{"x":1,"y":0},null,"é"]'),
        (object, {"a": {1}}, '{"a":[1]}'),
        (Point | dict[str, int], {"a": 1}, '{"a":1}'),
    ],
)
def test_a_value_is_encoded_as_its_type_declares(annotation: Any, value: Any, text: str) -> None:
    assert _text(annotation, value) == text


@pytest.mark.parametrize(
    ("annotation", "value", "text"),
    [
        (Movie, {"title": "a", "password": "p"}, '{"title":"a"}'),
        (list[Movie], [{"title": "a", "password": "p"}], '[{"title":"a"}]'),
        (Point, Point3(1, 2, 3), '{"x":1,"y":2}'),
        (dict[str, Point], {"a": Point3(1, 2, 3)}, '{"a":{"x":1,"y":2}}'),
        (Account, {"number": 1, "password": "p"}, '{"number":1}'),
        (Row, LongRow(1, "p"), "[1]"),
        (Point | Account, Point3(1, 2, 3), '{"x":1,"y":2}'),
        (User, Admin(name="a"), '{"userName":"a","age":0,"adult":false}'),
        (list[User], [Admin(name="a")], '[{"userName":"a","age":0,"adult":false}]'),
    ],
)
def test_undeclared_keys_and_fields_are_not_sent(annotation: Any, value: Any, text: str) -> None:
    assert _text(annotation, value) == text


def test_declared_values_stay_unchanged_when_an_undeclared_key_is_removed() -> None:
    value = {"id": str(uuid.UUID(int=171)).upper(), "at": "2020-01-01T00:00:00+00:00", "z": 1}

    assert _text(Stamped | StampedTime, value) == (
        '{"id":"00000000-0000-0000-0000-0000000000AB","at":"2020-01-01T00:00:00+00:00"}'
    )


def test_the_checked_value_is_a_new_object_of_the_declared_type() -> None:
    given = [Point3(1, 2, 3)]

    _, checked = Output(list[Point]).encode(given)

    assert checked == [Point(1, 2)]
    assert type(checked[0]) is Point


@pytest.mark.parametrize(
    ("annotation", "value", "path"),
    [
        (int, "secret", ""),
        (int, 1.5, ""),
        (int, True, ""),
        (list[int], [1, "secret"], "[1]"),
        (Point, Point("secret"), "x"),  # type: ignore[arg-type]
        (dict[str, Point], {"a": {"y": 1}}, "[key 'a'].x"),
        (Movie, {"title": "a", "year": "secret"}, "year"),
        (tuple[int, int], (1,), ""),
        (Account, Account(-1), "number"),
        (Pair, (1, "secret"), "[1]"),
        (Point | Account, {"z": "secret"}, "x"),
        (Point | int, "secret", ""),
        (None, "secret", ""),
        (uuid.UUID, "secret", ""),
    ],
)
def test_a_value_that_does_not_fit_is_refused_with_its_path(
    annotation: Any, value: Any, path: str
) -> None:
    fault = _fault(annotation, value)

    assert fault.path == path
    assert "secret" not in str(fault)


@pytest.mark.parametrize(
    ("annotation", "value", "path"),
    [
        (float, float("nan"), ""),
        (float | None, float("inf"), ""),
        (Any, {"a": [1.0, float("nan")]}, "[key 'a'][1]"),
        (Decimal, Decimal("NaN"), ""),
        (Any, [Decimal("Infinity")], "[0]"),
        (dict[str, float | None], {"a": float("-inf")}, "[key 'a']"),
        (Holder, Holder([float("nan")]), "held[0]"),
        (Any, {"user": User.model_construct(name="a", age=float("nan"))}, "[key 'user'].age"),
        (Reading, Reading(value=float("nan")), "value"),
        (list[Reading], [Reading(more=[float("inf")])], "[0].more[0]"),
    ],
)
def test_a_number_that_is_not_finite_is_never_sent(annotation: Any, value: Any, path: str) -> None:
    assert _fault(annotation, value).path == path


@pytest.mark.parametrize(
    ("value", "path"),
    [
        ({"items": [0, 1, 2, {"owner": object()}]}, "[key 'items'][3][key 'owner']"),
        ({"a": Holder(Broken())}, "[key 'a'].held"),
        (_cycle(), "[0][0]"),
        ({"a": "\ud800"}, "[key 'a']"),
        ({"a": {(1, 2): 3}}, "[key 'a'][key '(1, 2)']"),
        ({"a": {None: 3}}, "[key 'a'][key 'None']"),
        ([10**5000], "[0]"),
        ([iter([])], "[0]"),
        ({"a b": [object]}, "[key 'a b'][0]"),
    ],
)
def test_a_value_that_json_cannot_represent_is_refused_with_its_path(value: Any, path: str) -> None:
    assert _fault(Any, value).path == path
    assert _fault(dict[str, Any] if isinstance(value, dict) else list[Any], value).path == path


@pytest.mark.parametrize(
    ("value", "text"),
    [
        (deque([1, 2]), "[1,2]"),
        (range(3), "[0,1,2]"),
        ({"a": 1}.keys(), '["a"]'),
        ({"a": 1}.values(), "[1]"),
        (MappingProxyType({"a": 1}), '{"a":1}'),
        (ChainMap[str, Any]({"a": 1}, {"b": deque([range(1)])}), '{"b":[[0]],"a":1}'),
    ],
)
def test_every_plain_collection_is_written(value: Any, text: str) -> None:
    assert _text(Any, value) == text
    assert _text(dict[str, Any], {"in": value}) == '{"in":' + text + "}"
    assert _fault(Any, [value, object()]).path == "[1]"
    assert _fault(Any, MappingProxyType({"a": deque([nan])})).path == "[key 'a'][0]"


def test_a_failure_in_another_mapping_than_a_dict_is_a_failure() -> None:
    app = App("test")
    app.add_tool(lambda: MappingProxyType({"success": False, "error": "gone"}), name="look")

    error = asyncio.run(app.call("look")).error
    assert error is not None
    assert error.message == "gone"


@pytest.mark.parametrize("value", [(n for n in ""), map(str, []), filter(None, []), iter([])])
def test_an_iterator_is_refused_with_what_to_write(value: Any) -> None:
    kind = type(value).__name__

    assert _fault(Any, {"a": value}).message == (
        f"{kind} cannot be written as JSON; wrap it in list(…)"
    )


def test_a_coroutine_is_refused_with_what_to_write() -> None:
    async def look() -> int:
        return 1

    coroutine = look()
    message = _fault(Any, {"a": coroutine}).message
    coroutine.close()

    assert message == "coroutine cannot be written as JSON; write await before the call"


def test_two_hundred_levels_are_written_and_one_more_is_not() -> None:
    assert _text(Any, _nested(200)) == "[" * 200 + "]" * 200
    assert "200" in _fault(Any, _nested(201)).message
    assert "200" in _fault(Any, _nested(5000)).message


def test_the_same_object_twice_is_not_a_reference_cycle() -> None:
    point = Point(1)

    assert _text(list[Any], [point, point]) == '[{"x":1,"y":0},{"x":1,"y":0}]'


def test_an_enum_is_written_as_one_of_its_values() -> None:
    assert _text(Size, "small") == '"small"'
    assert _fault(Size, "SMALL").path == ""


def test_a_property_that_raises_is_an_invalid_output() -> None:
    class Sly(dict[str, int]):
        def items(self) -> Any:
            raise RuntimeError("secret")

    fault = _fault(Any, {"a": [object(), Sly(a=1)]})

    assert "secret" not in str(fault)


def test_a_model_is_written_by_pydantic_with_its_aliases() -> None:
    encoded, checked = Output(Team).encode(Team(User(name="a", age=20), [User(name="b"), "c"]))

    assert msgspec.json.decode(encoded) == {
        "lead": {"userName": "a", "age": 20, "adult": True},
        "members": [{"userName": "b", "age": 0, "adult": False}, "c"],
    }
    assert checked == Team(User(name="a", age=20), [User(name="b"), "c"])


def test_a_dict_is_validated_and_sent_as_the_declared_model() -> None:
    encoded, checked = Output(User).encode({"name": "a"})

    assert msgspec.json.decode(encoded) == {"userName": "a", "age": 0, "adult": False}
    assert checked == User(name="a")


@pytest.mark.parametrize(
    ("annotation", "value", "path"),
    [
        (User, User.model_construct(name="secret", age=-1), "age"),
        (User, User.model_construct(name=3, age=1), "name"),
        (User, {"name": "secret", "age": "secret"}, "age"),
        (User, 3, ""),
        (list[User], [User(name="a"), "secret"], "[1]"),
        (User | int, "secret", ""),
        (Team, Team(User(name="a"), [3]), "members[0]"),  # type: ignore[list-item]
        (Team, {"lead": {"name": "a"}}, "members"),
        (dict[str, User], {"a": User.model_construct(name="b", age="secret")}, "[key 'a'].age"),
    ],
)
def test_an_invalid_model_is_refused_with_its_path(annotation: Any, value: Any, path: str) -> None:
    fault = _fault(annotation, value)

    assert fault.path == path
    assert "secret" not in str(fault)


@pytest.mark.parametrize(
    ("value", "message"),
    [
        ({"name": "x", "floors": "many"}, "floors: expected a valid integer, got str"),
        ({"name": "x", "floors": 0}, "floors: expected greater than or equal to 1, got int"),
        ({"name": "x"}, "floors: missing"),
        ({"name": 1, "floors": 1}, "name: expected a valid string, got int"),
        ({"name": "x", "floors": 1, "site": "hunter2"}, "site: does not fit Shop (url_parsing)"),
        ([], "expected an object, got list"),
        (
            Shop.model_construct(name="x", floors="many"),
            "floors: expected a valid integer, got str",
        ),
    ],
)
def test_the_message_about_an_invalid_model_does_not_contain_the_value(
    value: Any, message: str
) -> None:
    with pytest.raises(InvalidOutput) as caught:
        Output(Shop).encode(value)

    assert str(caught.value) == message


@pytest.mark.parametrize("annotation", [str, str | None, Any])
def test_a_text_is_encoded_without_a_copy_for_the_check(annotation: Any) -> None:
    text = "ä\n" * 1000

    encoded, checked = Output(annotation).encode(text)

    assert msgspec.json.decode(encoded) == text
    assert checked is text


@pytest.mark.parametrize("annotation", [str, str | None, Any])
def test_a_text_with_half_a_surrogate_pair_is_refused(annotation: Any) -> None:
    with pytest.raises(InvalidOutput):
        Output(annotation).encode("\ud800")


class _LongNote(TypedDict):
    id: int
    text: str


@dataclasses.dataclass
class _LongData:
    id: int
    text: str


LONG = "ä\n" * 100_000


@pytest.mark.parametrize(
    ("annotation", "value"),
    [(_LongNote, {"id": 1, "text": LONG}), (_LongData, _LongData(1, LONG))],
)
def test_a_large_record_of_texts_and_numbers_is_not_decoded_again(
    annotation: Any, value: Any
) -> None:
    encoded, checked = Output(annotation).encode(value)

    assert msgspec.json.decode(encoded) == {"id": 1, "text": LONG}
    assert checked is value


def test_a_large_record_loses_the_keys_that_it_does_not_declare() -> None:
    encoded, _ = Output(_LongNote).encode({"id": 1, "text": LONG, "password": "x"})

    assert msgspec.json.decode(encoded) == {"id": 1, "text": LONG}


@pytest.mark.parametrize(
    ("annotation", "value"),
    [
        (_LongNote, {"id": "1", "text": LONG}),
        (_LongNote, {"text": LONG}),
        (_LongNote, {"id": True, "text": LONG}),
        (_LongData, _LongData("1", LONG)),  # type: ignore[arg-type]  # the subject of the test
    ],
)
def test_a_large_record_with_a_wrong_field_is_refused(annotation: Any, value: Any) -> None:
    with pytest.raises(InvalidOutput, match="id"):
        Output(annotation).encode(value)


def test_a_described_model_is_written_with_its_aliases() -> None:
    class Renamed(pydantic.BaseModel):
        name: str = pydantic.Field(validation_alias="in", serialization_alias="out")

    described = Annotated[Renamed, "A person."]

    encoded, _ = Output(described).encode(Renamed.model_validate({"in": "Ada"}))

    assert encoded == b'{"out":"Ada"}'


@pytest.mark.parametrize("levels", [150, 3_000])
def test_the_path_of_a_deep_value_is_cut_in_the_middle(levels: int) -> None:
    value: Any = object()
    for _ in range(levels):
        value = {"key": [value]}

    with pytest.raises(InvalidOutput) as caught:
        Output(Any).encode(value)

    for text in (str(caught.value), caught.value.for_caller()):
        path = text.partition(": ")[0]
        assert len(path) <= 220
        assert path.startswith("[key")
        assert " characters)…" in path
        assert path.endswith("[0]")
