"""Types and large values of them, made from a number: the same number makes the same."""

from __future__ import annotations

import random
from collections.abc import Callable
from dataclasses import make_dataclass
from datetime import UTC, datetime
from types import GenericAlias
from typing import Annotated, Any, Literal, NamedTuple, Optional, TypedDict

import msgspec
import pydantic

of: Any = GenericAlias
Made = tuple[Any, Callable[[], Any]]
"""A type, and a function that makes another value of it each time."""

TOP = 3
"""The depth of a reply's own type; lists in others are short."""
NAMES = ["items", "rows", "a.b", "count", "text", "0", "é", "message", "next"]
WORDS = ["", "word", 'quoted "word"', "back\\slash", "line\n", "grüße", "日本", "\U0001f600", "\t"]


class Values:
    """Makes types and values."""

    def __init__(self, seed: int) -> None:
        self.random = random.Random(seed)
        self._classes = 0

    def make(self, depth: int) -> Made:
        """Return a type, and what makes its values."""
        kinds = SCALARS if depth == 0 else SCALARS + CONTAINERS * 2
        return self.random.choice(kinds)(self, depth)

    def top(self) -> Made:
        """Return a type whose values are large, usually."""
        return self.random.choice([*CONTAINERS, Values.long_text, Values.limited_text])(self, TOP)

    def number(self, depth: int) -> Made:
        return int, lambda: self.random.randrange(10**6)

    def word(self, depth: int) -> Made:
        return str, lambda: self.random.choice(WORDS) * self.random.randrange(4)

    def long_text(self, depth: int) -> Made:
        return str, self.text

    def text(self) -> str:
        lines = self.random.choice(["\n", " ", "\n\n"])
        count = self.random.choice([1, 20, 300])
        return lines.join(self.random.choice(WORDS) for _ in range(count))

    def limited_text(self, depth: int) -> Made:
        least = self.random.choice([1, 300, 2000])
        kind = Annotated[str, msgspec.Meta(min_length=least)]
        return kind, lambda: self.text().ljust(least, "x")

    def fixed_text(self, depth: int) -> Made:
        kind = Annotated[str, msgspec.Meta(pattern="^a*$")]
        return kind, lambda: "a" * self.random.choice([1, 300])

    def other_scalar(self, depth: int) -> Made:
        return self.random.choice(
            [
                (Literal["x", "y"], lambda: self.random.choice("xy")),
                (datetime, lambda: datetime(2026, 1, self.random.randrange(1, 28), tzinfo=UTC)),
                (bytes, lambda: b"\x00" * self.random.choice([2, 400])),
                (float, lambda: self.random.random()),
                (bool, lambda: True),
            ]
        )

    def list(self, depth: int) -> Made:
        kind, value = self.make(depth - 1)
        count = self.random.choice([0, 1, 3, 40, 200] if depth == TOP else [0, 1, 3, 8])
        return of(list, kind), lambda: [value() for _ in range(count)]

    def limited_list(self, depth: int) -> Made:
        kind, value = self.make(0)
        least = self.random.choice([1, 5, 200])
        listed = of(list, kind)
        limited: Any = Annotated.__class_getitem__((listed, msgspec.Meta(min_length=least)))  # type: ignore[attr-defined] # a type made here
        return limited, lambda: [value() for _ in range(least + self.random.choice([0, 90]))]

    def set(self, depth: int) -> Made:
        return set[int], lambda: {self.random.randrange(10**6) for _ in range(200)}

    def tuple(self, depth: int) -> Made:
        (one, first), (other, second) = self.make(depth - 1), self.make(depth - 1)
        return of(tuple, (one, other)), lambda: (first(), second())

    def dict(self, depth: int) -> Made:
        kind, value = self.make(depth - 1)
        count = self.random.choice([1, 5, 60] if depth == TOP else [1, 3])
        return (
            of(dict, (str, kind)),
            lambda: {f"{self.random.choice(NAMES)}{n}": value() for n in range(count)},
        )

    def untyped(self, depth: int) -> Made:
        _, value = self.make(depth - 1)
        return Any, lambda: msgspec.to_builtins(value(), enc_hook=_dumped)

    def optional(self, depth: int) -> Made:
        kind, value = self.make(depth - 1)
        return Optional[kind], lambda: value() if self.random.random() < 0.9 else None  # noqa: UP045 -- a type made here

    def columns(self, depth: int) -> Made:
        """Return a record of lists that are equally long."""
        (one, first), (other, second) = self.make(0), self.make(0)
        count = self.random.choice([3, 100])
        members = {"x": of(list, one), "y": of(list, other), "n": int}
        cls = TypedDict("Columns", members)  # type: ignore[misc] # a type made here

        def make() -> Any:
            return {
                "x": [first() for _ in range(count)],
                "y": [second() for _ in range(count)],
                "n": count,
            }

        return cls, make

    def record(self, depth: int) -> Made:
        self._classes += 1
        name = f"Record{self._classes}"
        fields = [(f"m{n}", *self.make(depth - 1)) for n in range(self.random.randrange(1, 5))]
        kinds = [(field, kind) for field, kind, _ in fields]
        make: Any = self.random.choice([_struct, make_dataclass, NamedTuple])
        cls = make(name, kinds)
        return cls, lambda: cls(**{field: value() for field, _, value in fields})

    def model(self, depth: int) -> Made:
        """Return a pydantic model with lists and texts."""
        self._classes += 1
        cls = pydantic.create_model(
            f"Model{self._classes}",
            rows=(list[dict[str, int]], pydantic.Field(min_length=2, alias="Rows")),
            text=(str, ...),
            site=(pydantic.HttpUrl, ...),
        )
        count = self.random.choice([2, 100])
        site = pydantic.HttpUrl(f"https://example.org/{'x' * 300}")
        rows = [{"n": self.random.randrange(10**6)} for _ in range(count)]
        return cls, lambda: cls(Rows=rows, text=self.text(), site=site)

    def tagged(self, depth: int) -> Made:
        """Return a union of two classes with tags."""
        kind, value = self.make(depth - 1)
        self._classes += 1
        one = msgspec.defstruct(f"One{self._classes}", [("items", of(list, kind))], tag=True)
        other = msgspec.defstruct(
            f"Other{self._classes}", [("items", of(tuple, (kind,)))], tag=True
        )
        return one | other, lambda: self.random.choice(
            [one([value() for _ in range(20)]), other((value(),))]
        )


def _struct(name: str, fields: Any) -> Any:
    return msgspec.defstruct(name, fields, rename="camel")


def _dumped(model: pydantic.BaseModel) -> dict[str, Any]:
    return model.model_dump(mode="json", by_alias=True)


SCALARS: list[Callable[[Values, int], Made]] = [
    Values.number,
    Values.word,
    Values.long_text,
    Values.limited_text,
    Values.fixed_text,
    Values.other_scalar,
]
CONTAINERS: list[Callable[[Values, int], Made]] = [
    Values.list,
    Values.list,
    Values.limited_list,
    Values.set,
    Values.tuple,
    Values.dict,
    Values.untyped,
    Values.optional,
    Values.columns,
    Values.record,
    Values.record,
    Values.tagged,
    Values.model,
]
