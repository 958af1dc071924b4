"""Generated values of pydantic models as decoded JSON: the results and errors of pydantic."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pydantic
from hypothesis import given, settings
from hypothesis import strategies as st
from pydantic import Field
from pydantic_core import PydanticCustomError, SchemaValidator

from answerback.types.large_models import build_large, large_validator, with_fail_fast


class Item(pydantic.BaseModel):
    n: int = 0


class Odd(pydantic.BaseModel):
    n: int = 1

    @pydantic.field_validator("n")
    @classmethod
    def _check(cls, value: int) -> int:
        if value % 2 == 0:
            raise PydanticCustomError("even", "{n} is even", {"n": value})
        return value


class Inner(pydantic.BaseModel):
    model_config = pydantic.ConfigDict(extra="forbid", populate_by_name=True)

    rows: list[list[Item]] = Field(alias="Rows", default=[])
    odd: tuple[Odd, ...] = ()


class Outer(pydantic.BaseModel):
    name: str = "none"
    limited: Annotated[list[Item], Field(min_length=1, max_length=6)]
    by_number: Annotated[dict[int, Item], Field(max_length=5)] = {}
    numbers: Annotated[set[int] | None, Field(min_length=2)] = None
    frozen: frozenset[int] = frozenset()
    inner: Inner | None = None
    inners: dict[str, Inner] = {}
    pair: tuple[int, list[int]] | None = None


NUMBER = st.integers(0, 9) | st.just("x")
ITEM = st.fixed_dictionaries({}, optional={"n": NUMBER}) | st.just(1)
INNER = st.fixed_dictionaries(
    {},
    optional={
        "rows": st.lists(st.lists(ITEM, max_size=5), max_size=5),
        "Rows": st.lists(st.lists(ITEM, max_size=5), max_size=5),
        "odd": st.lists(ITEM, max_size=8),
        "other": st.just([1, 2, 3, 4, 5]),
    },
)
OUTER = st.fixed_dictionaries(
    {},
    optional={
        "name": st.just("a") | st.lists(NUMBER, max_size=8),
        "limited": st.lists(ITEM, max_size=9) | st.just({"a": 1, "b": 2, "c": 3, "d": 4}),
        "by_number": st.dictionaries(st.sampled_from("1234567"), ITEM, max_size=7),
        "numbers": st.lists(NUMBER, max_size=9) | st.none(),
        "frozen": st.lists(NUMBER, max_size=9),
        "inner": INNER | st.none(),
        "inners": st.dictionaries(st.sampled_from("abcdefgh"), INNER, max_size=5),
        "pair": st.tuples(NUMBER, st.lists(NUMBER, max_size=6)),
        "other": st.lists(NUMBER, max_size=9),
    },
)


def whole_validator(model: type[pydantic.BaseModel]) -> SchemaValidator:
    schema = with_fail_fast(pydantic.TypeAdapter(model).core_schema)
    return SchemaValidator(schema, _use_prebuilt=False)


WHOLE = whole_validator(Outer)


def outcome(validate: Any) -> Any:
    """Return the object and the names of its fields that were sent, or the errors."""
    try:
        made = validate()
    except pydantic.ValidationError as error:
        found = error.errors(include_url=False, include_input=False)
        return [(each["type"], each["loc"], each["msg"]) for each in found]
    return made, made.model_fields_set, list(made.__dict__), repr(made)


@settings(max_examples=300, deadline=None)
@given(OUTER)
def test_a_model_of_decoded_json_is_what_pydantic_makes_of_the_json(sent: Any) -> None:
    encoded = msgspec.json.encode(sent)

    built = outcome(lambda: build_large(large_validator(Outer), sent))

    assert built == outcome(lambda: WHOLE.validate_json(encoded, strict=True))


class Watched(pydantic.BaseModel):
    items: list[Item] = []
    count: int = 0

    @pydantic.field_validator("count")
    @classmethod
    def _check(cls, value: int, info: pydantic.ValidationInfo) -> int:
        return value + len(info.data["items"])


def test_a_validator_that_reads_other_fields_sees_the_whole_list() -> None:
    made = build_large(large_validator(Watched), {"items": [{}] * 9, "count": 1})

    assert made.count == 10


def test_a_key_that_does_not_fit_is_named_as_pydantic_names_it() -> None:
    sent = {"limited": [{}], "by_number": {"1": {}, "2": {}, "3": {}, "x": {}}}

    built = outcome(lambda: build_large(large_validator(Outer), sent))

    assert built[0][:2] == ("int_parsing", ("by_number", "x", "[key]"))
    assert built == outcome(lambda: WHOLE.validate_json(msgspec.json.encode(sent), strict=True))
