"""The check of a result with members that are null, as a multiple of the same without null."""

from __future__ import annotations

import time
from dataclasses import dataclass
from typing import Any

import msgspec
import pydantic
from typing_extensions import TypedDict

from answerback import Page
from answerback.types.output import Output

from .report import Figure

RECORDS, NUMBERS, ROUNDS = 5_000, 20_000, 15


@dataclass
class Entry:
    id: int
    note: str | None


@dataclass
class Measured:
    id: int
    value: float
    note: float | None


class EntryDict(TypedDict):
    id: int
    note: str | None


class MeasuredDict(TypedDict):
    id: int
    value: float
    note: float | None


class EntryStruct(msgspec.Struct):
    id: int
    note: str | None


class MeasuredStruct(msgspec.Struct):
    id: int
    value: float
    note: float | None


class EntryModel(pydantic.BaseModel):
    id: int
    note: str | None


class MeasuredModel(pydantic.BaseModel):
    id: int
    value: float
    note: float | None


KINDS: dict[str, tuple[Any, Any]] = {
    "dataclasses": (Entry, Measured),
    "TypedDicts": (EntryDict, MeasuredDict),
    "msgspec structs": (EntryStruct, MeasuredStruct),
    "pydantic models": (EntryModel, MeasuredModel),
}


def measure() -> list[Figure]:
    ids, floats = range(RECORDS), [n / 3 for n in range(NUMBERS)]
    found = []
    array: Any = list
    for name, (entry, measured) in KINDS.items():
        null, text = ([entry(id=n, note=note) for n in ids] for note in (None, "x"))
        found.append(_figure(f"{name} with null", (array[entry], null), (array[entry], text), 1.3))
        null, number = ([measured(id=n, value=1.5, note=note) for n in ids] for note in (None, 2.5))
        what = f"{name} with floats and null"
        found.append(_figure(what, (array[measured], null), (array[measured], number), 3))
    null, number = ([{"id": n, "note": note} for n in ids] for note in (None, 2.5))
    found.append(_figure("Any with null", (Any, null), (Any, number), 3))
    numbers = list(range(NUMBERS))
    # More than null: a page is written twice, to find undeclared members.
    page = (Page[int], Page(items=numbers))
    found.append(_figure("Page[int]", page, (list[int], numbers), 2, "list[int]"))
    page_of_floats = (Page[float], Page(items=floats))
    found.append(_figure("Page[float]", page_of_floats, (list[float], floats), 3, "list[float]"))
    return found


def _figure(
    what: str, one: tuple[Any, Any], other: tuple[Any, Any], limit: float, than: str = "without"
) -> Figure:
    outputs = [(Output(annotation), value) for annotation, value in (one, other)]
    times = [1.0, 1.0]
    for _ in range(ROUNDS):
        for number, (output, value) in enumerate(outputs):
            started = time.process_time()
            output.encode(value)
            times[number] = min(times[number], time.process_time() - started)
    detail = f"{times[0] * 1e3:.2f} against {times[1] * 1e3:.2f} ms"
    return Figure(f"{what}, times {than}", times[0] / times[1], limit, True, detail)
