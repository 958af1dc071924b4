"""NaN and infinity are found wherever they stand, without a walk through values that have none."""

from __future__ import annotations

import sys
from collections.abc import Callable
from dataclasses import dataclass, make_dataclass
from decimal import Decimal
from math import inf, nan
from typing import Any

import attrs
import msgspec
import pydantic
import pytest
from hypothesis import given
from hypothesis import strategies as st
from typing_extensions import TypedDict

from answerback import Page
from answerback.types.codecs import register_type
from answerback.types.output import Output
from answerback.types.problems import InvalidOutput


class Degrees:
    """A class that only its codec writes."""

    def __init__(self, value: float | None) -> None:
        self.value = value


register_type(Degrees, encode=lambda each: [each.value], decode=lambda each: Degrees(each[0]))


@dataclass
class Entry:
    id: int
    note: str | None = None


class Row(TypedDict):
    id: int
    note: str | None


class Item(msgspec.Struct):
    id: int
    note: str | None = None


class Model(pydantic.BaseModel):
    id: int
    note: str | None = None


FLOATS = [0.0, 1.5, -1e308, nan, inf, -inf]
DECIMALS = [Decimal(text) for text in ("0", "1e400", "NaN", "-sNaN12", "Infinity")]
# A text is not a number, whatever it says, and only JSON has integers above 64 bits.
OTHERS = [None, 0, 2**80, "", "NaN", "Infinity", "null", "é\x7f"]
LEAVES: list[tuple[Any, list[Any]]] = [
    (float, FLOATS),
    (float | None, [None, *FLOATS]),
    (Decimal, DECIMALS),
    (Decimal | str | None, [None, "NaN", *DECIMALS]),
    (Any, [*OTHERS, *FLOATS, *DECIMALS]),
    (Degrees, [Degrees(each) for each in (None, *FLOATS)]),
    (int | None, [None, 1, *FLOATS[3:]]),
    (str | None, [None, "NaN", *FLOATS[3:]]),
    (bytes | None, [None, b"\xcb\x7f\xf8", *FLOATS[3:]]),
]
MODEL_LEAVES = [*LEAVES[:5], (list[float | None], [[None, each] for each in FLOATS])]
RECORDS: list[Callable[[dict[str, Any]], Any]] = [
    lambda fields: make_dataclass("Made", list(fields.items())),
    lambda fields: attrs.make_class("Made", {k: attrs.field(type=t) for k, t in fields.items()}),
    lambda fields: msgspec.defstruct("Made", list(fields.items())),
    lambda fields: TypedDict("Made", fields),  # type: ignore[operator]  # the fields are generated
]


def _is_finite(value: Any) -> bool:
    value = value[-1] if isinstance(value, list) else getattr(value, "value", value)
    return not isinstance(value, float | Decimal) or Decimal(value).is_finite()


@st.composite
def _leaf(draw: st.DrawFn, leaves: list[tuple[Any, list[Any]]], finite: bool) -> Any:
    annotation, values = draw(st.sampled_from(leaves))
    value = draw(st.sampled_from([each for each in values if not finite or _is_finite(each)]))
    return annotation, value, _is_finite(value)


@st.composite
def _model(draw: st.DrawFn, finite: bool) -> Any:
    """A pydantic model with two members."""
    leaves = [draw(_leaf(MODEL_LEAVES, finite)) for _ in "ab"]
    fields: Any = {name: (each[0], ...) for name, each in zip("ab", leaves, strict=True)}
    model = pydantic.create_model("Made", **fields)
    value = model.model_construct(a=leaves[0][1], b=leaves[1][1])
    return model, value, all(each[2] for each in leaves)


@st.composite
def _around(draw: st.DrawFn, inner: Any) -> Any:
    """A container or record with two values of *inner*."""
    (one, a, a_is_finite), (two, b, b_is_finite) = draw(inner), draw(inner)
    kind: Any = draw(st.sampled_from([list, dict, tuple, *RECORDS]))
    if kind is list:
        return kind[one], [a, a], a_is_finite
    if kind is dict:
        return kind[str, one], {"x": a}, a_is_finite
    if kind is tuple:
        return kind[one, two], (a, b), a_is_finite and b_is_finite
    return (made := kind({"a": one, "b": two})), made(a=a, b=b), a_is_finite and b_is_finite


def _typed_values(finite: bool) -> Any:
    """A type, a value of it, and whether all numbers in it are finite."""
    return st.recursive(_leaf(LEAVES, finite) | _model(finite), _around, max_leaves=6)


@given(st.booleans().flatmap(_typed_values))
def test_nan_and_infinity_are_found_at_every_place_and_nothing_else_is(
    generated: tuple[Any, Any, bool],
) -> None:
    annotation, value, is_finite = generated
    if is_finite:
        Output(annotation).encode(value)
        return
    with pytest.raises(InvalidOutput):
        Output(annotation).encode(value)


def _python_calls(annotation: Any, value: Any) -> int:
    output, calls = Output(annotation), 0
    output.encode(value)

    def count(frame: Any, event: str, argument: Any) -> None:
        nonlocal calls
        calls += event == "call"

    sys.setprofile(count)
    try:
        output.encode(value)
    finally:
        sys.setprofile(None)
    return calls


@pytest.mark.parametrize("record", [Entry, Row, Item])
def test_null_members_cost_no_python_call_for_each_record(record: Any) -> None:
    records = [record(id=n, note=None) for n in range(1000)]

    assert _python_calls(list[record], records) < 100


def test_null_members_of_models_cost_few_python_calls_for_each() -> None:
    models = [Model(id=n) for n in range(1000)]
    without_null = [Model(id=n, note="a") for n in range(1000)]

    calls = _python_calls(list[Model], models) - _python_calls(list[Model], without_null)

    assert calls < 4_000


def test_the_items_of_a_page_without_a_next_one_cost_no_python_call_each() -> None:
    assert _python_calls(Page[int], Page(items=list(range(1000)))) < 100
