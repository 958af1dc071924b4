"""Serves unions that msgspec crashes on, and prints as JSON whether each value was accepted.

`test_unions.py` runs it in a process of its own, because a crash of msgspec ends the process.
"""

import asyncio
import dataclasses
import json
import sys
from collections.abc import Callable
from typing import Annotated, Any

from msgspec import Meta

from answerback import App

PATTERN = Annotated[str, Meta(pattern="^[a-z]+$")]
BOUNDED_PATTERN = Annotated[str, Meta(pattern="^[a-z]+$", min_length=1, max_length=5)]
# Each limited type has a value that fits and a value that does not.
PATTERNS: list[tuple[Any, Any, Any]] = [(PATTERN, "abc", "ABC"), (BOUNDED_PATTERN, "abc", "ABC")]
CONTAINERS: list[tuple[Any, Any]] = [
    (list[str], ["a"]),
    (set[str], ["a"]),
    (frozenset[str], ["a"]),
    (tuple[str, ...], ["a"]),
    (Annotated[list[str], Meta(max_length=2)], ["a"]),
    (dict[str, str], {"a": "b"}),
    (Annotated[dict[str, str], Meta(max_length=2)], {"a": "b"}),
    (list[str] | dict[str, int], {"a": 1}),
]
LIMITED: list[tuple[Any, Any, Any]] = [
    (Annotated[int, Meta(ge=1)], 5, 0),
    (Annotated[int, Meta(lt=9)], 5, 9),
    (Annotated[int, Meta(multiple_of=5)], 5, 6),
    (Annotated[float, Meta(gt=1.5)], 5.5, 0.5),
    (Annotated[float, Meta(le=9.5)], 5.5, 10.5),
    (Annotated[float, Meta(multiple_of=0.5)], 5.5, 5.7),
    (Annotated[str, Meta(min_length=2)], "ab", "a"),
    (Annotated[str, Meta(max_length=2)], "ab", "abc"),
    (Annotated[bytes, Meta(min_length=2)], "YWJj", "YQ=="),
    (Annotated[bytes, Meta(max_length=2)], "YQ==", "YWJj"),
    (Annotated[dict[str, int], Meta(min_length=1)], {"a": 1}, {}),
    (Annotated[dict[str, int], Meta(max_length=1)], {"a": 1}, {"a": 1, "b": 2}),
]
TUPLES: list[tuple[Any, Any]] = [
    (tuple[int, str], [1, "a"]),
    (tuple[()], []),
    (tuple[int], [1]),
]
UNIONS = [
    (limited | other, [fits, wrong, also_fits, None])
    for ones, others in ((PATTERNS, CONTAINERS), (LIMITED, TUPLES))
    for limited, fits, wrong in ones
    for other, also_fits in others
]


def by_itself(union: Any) -> tuple[Any, Callable[[Any], Any]]:
    return union, lambda value: value


def in_a_dataclass(union: Any) -> tuple[Any, Callable[[Any], Any]]:
    holder = dataclasses.make_dataclass("Holder", [("held", union)])
    return holder, lambda value: {"held": value}


def in_a_list(union: Any) -> tuple[Any, Callable[[Any], Any]]:
    return list[union], lambda value: [value, value]


def in_a_dict(union: Any) -> tuple[Any, Callable[[Any], Any]]:
    return dict[str, union], lambda value: {"key": value}


PLACES = {each.__name__: each for each in (by_itself, in_a_dataclass, in_a_list, in_a_dict)}


async def is_accepted(annotation: Any, values: list[Any]) -> list[bool]:
    """Return for each of the values whether a tool accepts it as its argument."""

    def take(value: Any) -> None:
        return

    take.__annotations__ = {"value": annotation, "return": None}
    app = App("unions")
    app.add_tool(take)
    return [(await app.call("take", value=value)).ok for value in values]


async def is_returned(annotation: Any, values: list[Any]) -> list[bool]:
    """Return for each of the values whether a tool may return it."""
    returned = iter(values)

    def give() -> Any:
        return next(returned)

    give.__annotations__ = {"return": annotation}
    app = App("unions")
    app.add_tool(give)
    return [(await app.call("give")).ok for _ in values]


WAYS = {each.__name__: each for each in (is_accepted, is_returned)}


async def main(place: str, way: str) -> None:
    for union, values in UNIONS:
        annotation, put = PLACES[place](union)
        outcomes = await WAYS[way](annotation, [put(value) for value in values])
        sys.stdout.write(json.dumps([str(union), outcomes]) + "\n")
        sys.stdout.flush()


asyncio.run(main(*sys.argv[1:]))
