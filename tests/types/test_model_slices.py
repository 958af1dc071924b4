"""Long lists in pydantic models: validated in slices, with the same results."""

from __future__ import annotations

from typing import Annotated, Any

import msgspec
import pydantic
import pytest

from answerback.types.arguments import Arguments, Parameter
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
