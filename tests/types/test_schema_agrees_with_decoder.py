"""The JSON Schema and the decoder accept the same values, for arguments and for output."""

import dataclasses
import enum
import re
import uuid
from collections.abc import Callable, Iterator, Mapping, Sequence
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import (
    Annotated,
    Any,
    Generic,
    Literal,
    NamedTuple,
    NewType,
    NotRequired,
    Optional,
    TypedDict,
    TypeVar,
)

import annotated_types
import attrs
import msgspec
import pydantic
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st
from jsonschema import (  # type: ignore[import-untyped]
    Draft202012Validator,
    FormatChecker,
    ValidationError,
    validators,
)

from answerback.types.arguments import Arguments, Parameter
from answerback.types.json_schema import arguments_schema, format_keyword, output_schema, pattern_of
from answerback.types.nodes import Scalar, ValueLimits
from answerback.types.output import Output
from answerback.types.problems import InvalidArguments, InvalidOutput

T = TypeVar("T")
UserId = NewType("UserId", int)


class Colour(enum.Enum):
    RED = "red"
    BLUE = "blue"


class Level(enum.IntEnum):
    LOW = 1
    HIGH = 2


class Mixed(enum.Enum):
    NONE = None
    HALF = 0.5
    YES = True
    WORD = "word"


@dataclasses.dataclass
class Point:
    x: int
    y: float = 0.0


@dataclasses.dataclass
class Place:
    name: Annotated[str, pydantic.Field(min_length=1, max_length=8)]
    at: Point
    tags: list[str] = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Tree:
    value: int
    children: "list[Tree]" = dataclasses.field(default_factory=list)


@dataclasses.dataclass
class Chain:
    link: "Chain | Point | None"


@dataclasses.dataclass
class Box(Generic[T]):
    item: T


class Movie(TypedDict):
    title: str
    year: NotRequired[Annotated[int, annotated_types.Ge(1900)]]


class Pair(NamedTuple):
    left: int
    right: str = ""


class LimitedPair(NamedTuple):
    left: Annotated[int, annotated_types.Gt(0)]
    right: Decimal = Decimal(0)


@attrs.define
class Account:
    number: int
    owner: str = "nobody"


@attrs.define
class Limited:
    number: Annotated[int, annotated_types.Interval(ge=0, lt=10)]


class Cat(msgspec.Struct, tag=True):
    lives: int = 9


class Dog(msgspec.Struct, tag="dog"):
    name: str


class Renamed(msgspec.Struct, rename="camel", forbid_unknown_fields=True):
    first_name: str
    last_seen: date | None = None


class Row(msgspec.Struct, array_like=True):
    key: int
    value: str = ""


class ClosedRow(msgspec.Struct, array_like=True, forbid_unknown_fields=True, tag="row"):
    key: Annotated[int, annotated_types.Ge(0)]
    value: str = ""


class User(pydantic.BaseModel):
    name: str
    age: int = pydantic.Field(default=0, ge=0, alias="yearsOld")
    friends: "list[User]" = []


class Numbers(pydantic.RootModel[list[int]]):
    pass


TYPES: dict[str, Any] = {
    "int": int,
    "float": float,
    "bool": bool,
    "str": str,
    "none": None,
    "any": Any,
    "bytes": bytes,
    "limited bytes": Annotated[bytes, msgspec.Meta(min_length=2, max_length=7)],
    "datetime": datetime,
    "aware datetime": Annotated[datetime, msgspec.Meta(tz=True)],
    "naive datetime": Annotated[datetime, msgspec.Meta(tz=False)],
    "date": date,
    "time": time,
    "aware time": Annotated[time, msgspec.Meta(tz=True)],
    "timedelta": timedelta,
    "uuid": uuid.UUID,
    "decimal": Decimal,
    "int limits": Annotated[int, msgspec.Meta(ge=0, lt=10)],
    "int beyond 64 bits": Annotated[int, annotated_types.Le(2**70)],
    "int multiple": Annotated[int, pydantic.Field(multiple_of=3)],
    "int with float limits": Annotated[int, pydantic.Field(gt=0.5, le=3.5)],
    "float limits": Annotated[float, annotated_types.Interval(gt=0, le=1.5)],
    "str limits": Annotated[str, annotated_types.Len(1, 3)],
    "str pattern": Annotated[str, pydantic.Field(pattern="^[a-c]+")],
    "positive int": pydantic.PositiveInt,
    "newtype": UserId,
    "list": list[int],
    "bare list": list,
    "sequence": Sequence[float],
    "limited list": Annotated[list[int], pydantic.Field(min_length=1, max_length=2)],
    "list of limited": list[Annotated[int, annotated_types.Ge(0)]],
    "set": set[int],
    "frozenset": frozenset[str],
    "tuple": tuple[int, str],
    "empty tuple": tuple[()],
    "tuple of any length": tuple[int, ...],
    "bare tuple": tuple,
    "dict": dict[str, int],
    "bare dict": dict,
    "mapping": Mapping[str, bool],
    "limited dict": Annotated[dict[str, int], annotated_types.MaxLen(1)],
    "dict of int keys": dict[int, str],
    "dict of uuid keys": dict[uuid.UUID, int],
    "dict of date keys": dict[date, int],
    "dict of literal keys": dict[Literal["a", "b"], int],
    "dict of enum keys": dict[Level, int],
    "literal": Literal["a", "b"],
    "literal ints": Literal[1, 2],
    "literal mixed": Literal["a", 1, None, True],
    "enum": Colour,
    "int enum": Level,
    "mixed enum": Mixed,
    "literal of enum": Literal[Colour.RED],
    "optional": Optional[int],  # noqa: UP045 - authors still use the old spelling
    "limited optional": Annotated[int | None, pydantic.Field(ge=0)],
    "union": int | str | list[int],
    "dataclass": Point,
    "dataclass with field limits": Place,
    "generic dataclass": Box[int],
    "generic of limited": Box[Annotated[int, annotated_types.Ge(0)]],
    "unfilled generic": Box,
    "recursive dataclass": Tree,
    "recursive union": Chain,
    "typed dict": Movie,
    "named tuple": Pair,
    "limited named tuple": LimitedPair,
    "attrs": Account,
    "limited attrs": Limited,
    "tagged structs": Cat | Dog,
    "tagged struct": Dog,
    "renamed struct": Renamed,
    "array struct": Row,
    "closed array struct": ClosedRow,
    "two dataclasses": Point | Tree,
    "dict or dataclass": dict[str, int] | Point,
    "str or uuid": str | uuid.UUID,
    "date or datetime": date | datetime,
    "list or set": list[int] | set[str],
    "list of unions": list[Point | Account],
    "dict of unions": dict[str, uuid.UUID | date],
    "decimal or none": Decimal | None,
    "bytes or int": bytes | int,
    "model": User,
    "root model": Numbers,
    "model or int": User | int,
    "list of models": list[User],
}

BORDERLINE: list[Any] = [
    *(0, 1, 2, -1, 3, 10, 1.0, 2.0, 0.5, 1.5, -0.0, 1e300, 2**63, 2**64, 10**30, True, False, None),
    *(
        "",
        "a",
        "b",
        "abc",
        "red",
        "dog",
        "row",
        "1",
        "1.0",
        "-0",
        "01",
        "true",
        "null",
        "[1]",
        "1e5",
    ),
    *("2020-01-01", "2020-13-01", "20200101", "2020-01-01\n", "12:00:00", "12:00", "12:00:00Z"),
    *("24:00:00", "12:00:00.123456789", "12:00:00+01:00", "12:00:00+0100", "12:00:00-24:00"),
    *("2020-01-01T00:00:00", "2020-01-01 00:00:00", "2020-01-01T00:00:00Z", "2020-01-01t00:00:00z"),
    *("2020-01-01T00:00:00+0100", "2020-01-01T00:00:00+01:00", "2020-01-01T00:00:60Z"),
    *("P1D", "PT1S", "P1DT1H1M1.5S", "-P1D", "P", "PT", "P1DT", "p1d", "P1W", "PT1.5H", "P1.5D"),
    *("NaN", "Infinity", "-1.50", "+1", "1.", ".5", ".", "1e", " 1", "1_0", "\u0661", "1\n"),
    *("6b1d1a3e-5d3f-4b8e-9a55-0d3f1c2b4a5e", "6b1d1a3e5d3f4b8e9a550d3f1c2b4a5e"),
    *("YQ==", "YWI=", "YWJj", "YQ", "YR==", "Y Q=", "YQ==\n", "-_==", "YWJjZGVmZ2g="),
    *(
        [],
        [1],
        [1, 1],
        [1, "a"],
        [1.0],
        [1, 2, 3],
        ["row", 1],
        ["row", -1],
        ["row", 1, "a", 2],
        [None],
    ),
    *({}, {"x": 1}, {"x": 1.0, "y": 2}, {"x": 1, "z": 1}, {"1": "a"}, {"01": "a"}, {"-0": "a"}),
    *({"type": "Cat"}, {"type": "dog", "name": "x"}, {"name": "x"}, {"name": "x", "yearsOld": 3}),
    *({"firstName": "a"}, {"firstName": "a", "x": 1}, {"name": "x", "age": 3}, {"item": 1}),
    *(
        {"link": None},
        {"link": {"x": 1}},
        {"link": {"link": {"x": 1}}},
        {"a": 1},
        {"c": 1},
        {"2": 1},
    ),
    *({"value": 1, "children": [{"value": 2.0}]}, {"value": 1, "children": [{"value": "2"}]}),
    *({"name": "x", "at": {"x": 1}}, {"name": "", "at": {"x": 1}}, {"title": "t", "year": 1899}),
    *({"number": 3}, {"number": 10}, {"name": "x", "friends": [{"name": "y", "yearsOld": -1}]}),
]

JSON = st.recursive(
    st.sampled_from(BORDERLINE) | st.integers() | st.floats(allow_nan=False, allow_infinity=False),
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(st.sampled_from("axy1"), inner),
    max_leaves=4,
)
QUICK = settings(
    max_examples=25,
    derandomize=True,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)


def _values(schema: dict[str, Any], root: dict[str, Any], depth: int = 0) -> st.SearchStrategy[Any]:
    """Generate values that *schema* accepts, for the keywords that our schemas use."""
    if "$ref" in schema:
        return _values(root["$defs"][schema["$ref"].rpartition("/")[2]], root, depth + 1)
    if "anyOf" in schema:
        # The last member of a recursive type is not recursive.
        members = schema["anyOf"] if depth < 3 else schema["anyOf"][-1:]
        return st.one_of(*(_values(member, root, depth) for member in members))
    if "enum" in schema or "const" in schema:
        return st.sampled_from(schema.get("enum", [schema.get("const")]))
    match schema.get("type"):
        case "array":
            return _arrays(schema, root, depth)
        case "object":
            return _objects(schema, root, depth)
        case "string":
            return _strings(schema)
        case "integer" | "number":
            return _numbers(schema)
        case "boolean":
            return st.booleans()
        case "null":
            return st.none()
    return JSON


def _arrays(schema: dict[str, Any], root: dict[str, Any], depth: int) -> st.SearchStrategy[Any]:
    head = [_values(each, root, depth) for each in schema.get("prefixItems", [])]
    least = schema.get("minItems", 0)
    if head:
        longest = st.tuples(*head).map(list)
        return st.builds(lambda items, cut: items[: max(cut, least)], longest, st.integers(0, 4))
    most = min(schema.get("maxItems", 3), 3 if depth < 3 else 0)
    item = _values(schema.get("items", {}), root, depth + 1) if depth < 4 else st.none()
    return st.lists(item, min_size=least, max_size=max(least, most))


def _objects(schema: dict[str, Any], root: dict[str, Any], depth: int) -> st.SearchStrategy[Any]:
    known = {
        name: _values(each, root, depth + 1) for name, each in schema.get("properties", {}).items()
    }
    needed = {name: each for name, each in known.items() if name in schema.get("required", [])}
    given_fields = st.fixed_dictionaries(
        needed, optional={name: each for name, each in known.items() if name not in needed}
    )
    others = schema.get("additionalProperties", {} if not known else False)
    if others is False or schema.get("maxProperties") == 0:
        return given_fields
    keys = _values({"type": "string", **schema.get("propertyNames", {})}, root)
    more = st.dictionaries(keys, _values(others, root, depth + 1), max_size=2)
    return st.builds(lambda a, b: {**b, **a}, given_fields, more)


def _strings(schema: dict[str, Any]) -> st.SearchStrategy[str]:
    match schema:
        case {"pattern": pattern}:
            return st.from_regex(pattern)
        case {"description": text} if text in TIME_PATTERNS:
            return st.from_regex(TIME_PATTERNS[text])
        case {"format": ("date-time" | "time" | "duration") as name}:
            return st.from_regex(TIME_PATTERNS[name])
        case {"format": "date"}:
            return st.dates().map(str)
        case {"format": "uuid"}:
            return st.uuids().map(str)
    most = schema.get("maxLength", 5)
    return st.text(
        st.characters(exclude_categories=["Cs"]), min_size=schema.get("minLength", 0), max_size=most
    )


def _numbers(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    edges = [schema[name] + by for name in LIMIT_KEYWORDS if name in schema for by in (-1, 0, 1)]
    step = schema.get("multipleOf", 1)
    number = st.integers(-12, 12).map(lambda n: n * step) | st.integers()
    if schema["type"] == "number":
        number = number | st.floats(allow_nan=False, allow_infinity=False)
    return number | st.sampled_from(edges) if edges else number


LIMIT_KEYWORDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")


def _ecma_pattern(_: Any, pattern: str, value: Any, __: Any) -> Iterator[ValidationError]:
    # In ECMA-262 `$` matches only at the end; in Python's re also before a final newline.
    strict = re.sub(r"(?<!\\)\$$", r"\\Z", pattern)
    if isinstance(value, str) and not re.search(strict, value):
        yield ValidationError("pattern")


def _time_words(_: Any, text: Any, value: Any, schema: Any) -> Iterator[ValidationError]:
    # The words of a type have a fixed meaning, and the decoder has to agree with it.
    if text in TIME_PATTERNS:
        yield from _ecma_pattern(None, TIME_PATTERNS[text], value, schema)


def _time_format(name: str) -> Callable[[Any], bool]:
    return lambda value: not list(_ecma_pattern(None, TIME_PATTERNS[name], value, None))


def _time_patterns() -> dict[str, str]:
    """The patterns of times, by the keyword in the schema: a description or a format."""
    limits = [(kind, ValueLimits(tz=tz)) for kind in (datetime, time) for tz in (None, True, False)]
    found = {}
    for mode in ("validation", "serialization"):
        for kind, limit in [*limits, (timedelta, ValueLimits())]:
            (keyword,) = format_keyword(Scalar(kind, limit), mode).values()
            found[keyword] = str(pattern_of(kind, limit))
    return found


TIME_PATTERNS = _time_patterns()
FORMATS = FormatChecker()
for _name in ("date-time", "time", "duration"):
    FORMATS.checks(_name)(_time_format(_name))
Validator = validators.extend(
    Draft202012Validator, {"pattern": _ecma_pattern, "description": _time_words}
)


def _validator(schema: dict[str, Any]) -> Any:
    Draft202012Validator.check_schema(schema)
    return Validator(schema, format_checker=FORMATS)


# msgspec rounds to microseconds, so the last half microsecond of this day does not fit a datetime,
# although it matches the pattern.
LAST_DAY = b"9999-12-31"


def _decodes(arguments: Arguments, raw: bytes) -> bool:
    try:
        arguments.decode(raw)
    except InvalidArguments:
        return False
    return True


def _change(value: Any, other: Any, where: int) -> Any:
    """Put *other* in place of one part of *value*."""
    if isinstance(value, dict) and value:
        key = sorted(value)[where % len(value)]
        return {**value, key: _change(value[key], other, where // 2)}
    if isinstance(value, list) and value:
        spot = where % len(value)
        return [*value[:spot], _change(value[spot], other, where // 2), *value[spot + 1 :]]
    return other


@pytest.mark.parametrize("annotation", TYPES.values(), ids=TYPES.keys())
def test_the_decoder_accepts_exactly_what_the_schema_accepts(annotation: Any) -> None:
    parameters = [Parameter(name="value", annotation=annotation)]
    schema = arguments_schema(parameters)
    validator, arguments = _validator(schema), Arguments(parameters)
    valid = _values(schema, schema)
    values = valid | st.builds(_change, valid, JSON, st.integers(0, 9))

    @QUICK
    @given(values)
    def agree(value: Any) -> None:
        raw = msgspec.json.encode(value)
        assume(LAST_DAY not in raw)
        assert validator.is_valid(value) == _decodes(arguments, raw)

    agree()


@pytest.mark.parametrize("annotation", TYPES.values(), ids=TYPES.keys())
def test_schema_and_decoder_agree_about_borderline_values(annotation: Any) -> None:
    parameters = [Parameter(name="value", annotation=annotation)]
    validator, arguments = _validator(arguments_schema(parameters)), Arguments(parameters)

    verdicts = {
        repr(value): (
            validator.is_valid({"value": value}),
            _decodes(arguments, msgspec.json.encode({"value": value})),
        )
        for value in BORDERLINE
    }

    assert {value: both for value, both in verdicts.items() if both[0] != both[1]} == {}


@pytest.mark.parametrize("annotation", TYPES.values(), ids=TYPES.keys())
def test_encoded_output_is_valid_for_the_output_schema(annotation: Any) -> None:
    schema = output_schema(annotation)
    validator, output = _validator(schema), Output(annotation)
    arguments = Arguments([Parameter(name="value", annotation=annotation)])
    argument_schema = arguments_schema([Parameter(name="value", annotation=annotation)])

    @QUICK
    @given(
        _values(argument_schema, argument_schema) | st.builds(lambda value: {"value": value}, JSON)
    )
    def fits(given_value: Any) -> None:
        raw = msgspec.json.encode(given_value)
        assume(LAST_DAY not in raw)
        values = [given_value["value"]]
        if _decodes(arguments, raw):
            values.append(arguments.decode(raw)["value"])
        for value in values:
            try:
                encoded, _ = output.encode(value)
            except InvalidOutput:
                assert value is given_value["value"]
            else:
                assert validator.is_valid(msgspec.json.decode(encoded))

    fits()


@pytest.mark.parametrize("year", [0, 1, 4, 100, 400, 1900, 2000, 2023, 2024, 9999])
@pytest.mark.parametrize("month", [0, 1, 2, 4, 12, 13])
@pytest.mark.parametrize("day", [0, 1, 28, 29, 30, 31, 32])
def test_the_datetime_pattern_accepts_only_dates_of_the_calendar(
    year: int, month: int, day: int
) -> None:
    parameter = Parameter(name="when", annotation=datetime)
    pattern = str(pattern_of(datetime, ValueLimits()))
    text = f"{year:04}-{month:02}-{day:02}T12:00:00"

    try:
        Arguments([parameter]).decode(msgspec.json.encode({"when": text}))
        accepted = True
    except InvalidArguments:
        accepted = False

    assert (re.search(pattern, text) is not None) is accepted
