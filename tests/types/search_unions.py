"""Decodes and encodes generated unions, each in a process of its own, and prints which crashed.

`test_unions.py` runs it. With the argument `msgspec` the unions are decoded by msgspec alone.
"""

import dataclasses
import enum
import gc
import itertools
import json
import os
import random
import sys
from collections.abc import Callable, Iterator, Sequence
from datetime import date, datetime
from decimal import Decimal
from typing import Annotated, Any, Literal, NamedTuple, TypedDict, Union
from uuid import UUID

import msgspec
from msgspec import Meta

from answerback.types.arguments import Arguments, Parameter
from answerback.types.output import Output
from answerback.types.problems import InvalidArguments, InvalidOutput


class Record(msgspec.Struct):
    a: int


class ArrayRecord(msgspec.Struct, array_like=True):
    a: int


class Color(enum.Enum):
    RED = "red"


class Pair(NamedTuple):
    a: int
    b: str


class Keys(TypedDict):
    a: int


@dataclasses.dataclass
class Data:
    a: int = 1


MEMBERS: list[Any] = [
    *(None, bool, int, float, str, bytes, Decimal, UUID, date, datetime),
    *(Literal["a", "b"], Literal[1, 2], Color, Record, ArrayRecord, Pair, Keys, Data),
    *(list[str], list[int], set[str], frozenset[int], tuple[str, ...], tuple[int, str], tuple[()]),
    *(dict[str, str], dict[int, str]),
    *(Annotated[int, Meta(ge=1)], Annotated[int, Meta(lt=9)], Annotated[int, Meta(multiple_of=2)]),
    *(Annotated[float, Meta(gt=0.5)], Annotated[float, Meta(le=9.5)]),
    *(Annotated[str, Meta(pattern="^[a-z]+$")], Annotated[str, Meta(min_length=1)]),
    Annotated[str, Meta(pattern="^[a-z]+$", min_length=1, max_length=3)],
    *(Annotated[bytes, Meta(min_length=1)], Annotated[list[int], Meta(max_length=2)]),
    *(
        Annotated[tuple[int, ...], Meta(min_length=1)],
        Annotated[dict[str, int], Meta(max_length=1)],
    ),
    *(Annotated[datetime, Meta(tz=True)], Annotated[set[int], Meta(min_length=1)]),
]
VALUES = [None, True, 1, -5, 1.5, "", "abc", "ABC", "YWI=", [], [1], [1, "a"], {}, {"a": 1}]
TRIPLES = 200
# So many unions share a process; if it does not end well, each gets one of its own.
BATCH = 20


def in_a_dataclass(union: Any) -> Any:
    return dataclasses.make_dataclass("Holder", [("held", union)])


PLACES: list[tuple[Callable[[Any], Any], Callable[[Any], Any]]] = [
    (lambda union: union, lambda value: value),
    (list.__class_getitem__, lambda value: [value]),
    (lambda union: dict.__class_getitem__((str, union)), lambda value: {"k": value}),
    (in_a_dataclass, lambda value: {"held": value}),
]


def unions() -> Iterator[tuple[str, Any]]:
    pairs = list(itertools.combinations(MEMBERS, 2))
    triples = random.Random(9).sample(list(itertools.combinations(MEMBERS, 3)), TRIPLES)
    for members in (*pairs, *triples):
        yield " | ".join(map(str, members)), Union[members]  # noqa: UP007 - made at run time


def use(union: Any) -> None:
    """Decode and encode values of the union, in each place."""
    for annotate, put in PLACES:
        annotation = annotate(union)
        arguments = Arguments([Parameter(name="x", annotation=annotation)])
        output = Output(annotation)
        for value in map(put, VALUES):
            try:
                output.encode(arguments.decode(msgspec.json.encode({"x": value}))["x"])
            except (InvalidArguments, InvalidOutput):
                continue
    gc.collect(0)


def use_msgspec(union: Any) -> None:
    """Decode values of the union with msgspec alone."""
    try:
        # Many, because some crash only when the memory of a freed one is used again.
        for _ in range(200):
            decoder = msgspec.json.Decoder(union)
            gc.collect(0)
    except TypeError:
        return
    for value in VALUES:
        try:
            decoder.decode(msgspec.json.encode(value))
        except msgspec.ValidationError:
            continue


def ending(work: Callable[[Any], None], batch: Sequence[Any]) -> int:
    """Do the work in another process; returns its exit code, negative for a signal."""
    child = os.fork()
    if child == 0:
        code = 1
        try:
            for union in batch:
                work(union)
            code = 0
        finally:
            os._exit(code)
    return os.waitstatus_to_exitcode(os.waitpid(child, 0)[1])


def main() -> None:
    work = use_msgspec if sys.argv[1:] == ["msgspec"] else use
    searched = list(unions())
    bad: dict[Any, Any] = {}
    for start in range(0, len(searched), BATCH):
        batch = searched[start : start + BATCH]
        if ending(work, [union for _, union in batch]):
            endings = {name: ending(work, [union]) for name, union in batch}
            bad |= {name: code for name, code in endings.items() if code}
    sys.stdout.write(json.dumps({"searched": len(searched), "bad": bad}))


main()
