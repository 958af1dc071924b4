"""Works out how long a check against a schema may take, before the schema is compiled.

The validator holds the interpreter's lock, so no time-out could end a check. All costs are in units
of about 50 nanoseconds, and are measured; they are what the worst schema of that kind takes.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Iterator
from graphlib import CycleError, TopologicalSorter
from math import inf
from typing import Any

import msgspec

from .schema_graph import SchemaGraph, SchemaNode, count_values

MAX_COST = 2_000_000
_MAX_ERRORS_COST = 4_000_000
_MAX_COMPILATION = 1_000_000
_MAX_SCHEMAS = 2_000
_MAX_NUMBERS = 100_000
"""How many numbers are worked out for one schema."""
_VALUE, _REFERENCE, _PATTERN, _CHARACTER, _REPETITION = 50, 400, 2_000, 6, 100
_LARGEST_PATTERN = 400_000
_COPY = 1_000
"""What a schema costs that is compiled once more, for `unevaluatedProperties` beside it."""
_UNEVALUATED = 3
"""How often a schema is checked that stands beside `unevaluatedProperties`."""
_ERROR, _QUOTED = 400, 4
"""What an error costs, and each value that its message quotes."""
_USUAL_DEPTH = 8
_BYTE = 16
"""What a byte of data costs at most; it is one of a long number."""
_WITHOUT_REFERENCES = 2
"""The version of `marshal` that writes equal texts each time."""
_LONG_TEXT, _LONG_NUMBER = 64, 1 << 64
_TINY, _VAST, _EXTREME = 1e-30, 1e30, 20
_COUNTS = re.compile(r"\{\d{0,6},?(\d{1,6})\}")


class TooCostly(Exception):
    """A schema cannot be checked within the limit; the message says why."""

    def __init__(self, why: str = "the schema is too large to be checked") -> None:
        super().__init__(why)


class _Counts(msgspec.Struct):
    """How many schemas apply to one value: to an object's member, and to an item of an array."""

    member: int
    item: int

    @property
    def most(self) -> int:
        return max(self.member, self.item)


class SchemaCost:
    """How much work a check of data against a schema is.

    A value is checked only by the schemas that are as deep in the schema as the value is in the
    data. So the values of each depth are counted, and multiplied by the number of schemas that
    apply to one value of that depth, with every `$ref` followed.
    """

    def __init__(self, schema: dict[str, Any]) -> None:
        """Raise TooCostly if it takes too long to compile the schema."""
        values = count_values(schema, _MAX_COMPILATION // _VALUE)
        if values * _VALUE >= _MAX_COMPILATION:
            raise TooCostly
        self._graph = SchemaGraph(schema, _MAX_SCHEMAS)
        if len(self._graph.nodes) > _MAX_SCHEMAS:
            raise TooCostly
        if self._graph.not_followed:
            raise TooCostly(f"the schema cannot be checked: {self._graph.not_followed}")
        self._order = _in_order(self._graph.nodes)
        self._levels = [self._first_level()]
        self._ended = False
        if self._compilation(values) > _MAX_COMPILATION:
            raise TooCostly
        self.has_choices = any(each.has_choices for each in self._graph.nodes)
        self._small = self._small_size()

    def check(self, data: Any) -> None:
        """Raise TooCostly if it takes too long to tell whether *data* fits."""
        if _size(data) <= self._small:
            return
        cost = 0
        for depth, count in enumerate(_values_by_depth(data)):
            cost += count * self._schemas_at(depth)
            if cost > MAX_COST:
                raise TooCostly
            if not self._schemas_at(depth + 1) and self._ended:
                return

    def has_few_errors(self, data: Any) -> bool:
        """Return whether all errors in *data* can be reported; each of them quotes a value."""
        cost = above = 0
        for depth, count in enumerate(_values_by_depth(data)):
            at_depth = self._schemas_at(depth)
            above += at_depth
            cost += count * (_ERROR * at_depth + _QUOTED * above)
            if cost > _MAX_ERRORS_COST:
                return False
        return True

    def _small_size(self) -> int:
        """Return how many bytes of data cannot cost too much, whatever they are."""
        widest = max(self._schemas_at(depth) for depth in range(_USUAL_DEPTH))
        return MAX_COST // (widest * _BYTE) if self._ended and widest else 0

    def _schemas_at(self, depth: int) -> int:
        """Return how many schemas apply to one value of a depth, at most."""
        while len(self._levels) <= depth and not self._ended:
            if len(self._levels) * len(self._order) > _MAX_NUMBERS:
                raise TooCostly
            self._levels.append(self._next_level())
            self._ended = not any(each.most for each in self._levels[-1])
        return self._levels[depth][0].most if depth < len(self._levels) else 0

    def _first_level(self) -> list[_Counts]:
        level = [_Counts(0, 0)] * len(self._order)
        for at in self._order:
            node = self._graph.nodes[at]
            count = node.weight + sum(level[each].most for each in node.in_place)
            level[at] = _capped(node, count, count)
        return level

    def _next_level(self) -> list[_Counts]:
        before = self._levels[-1]
        level = [_Counts(0, 0)] * len(self._order)
        for at in self._order:
            node = self._graph.nodes[at]
            # Each member is looked up in all schemas beside `unevaluatedProperties`.
            own = node.deep
            if node.unevaluated and len(self._levels) == 1:
                own += before[at].most
            member = own + sum(max(before[each].most for each in group) for group in node.members)
            item = own + sum(max(before[each].most for each in group) for group in node.items)
            member += sum(level[each].member for each in node.in_place)
            item += sum(level[each].item for each in node.in_place)
            level[at] = _capped(node, member, item)
        return level

    def _compilation(self, values: int) -> int:
        """Return what it costs to compile the schema."""
        cost = values * _VALUE + self._graph.references * _REFERENCE
        cost += sum(map(_pattern_cost, self._graph.patterns))
        for node, counts in zip(self._graph.nodes, self._levels[0], strict=True):
            if node.unevaluated:
                cost += counts.most * _COPY
        return cost


def _capped(node: SchemaNode, member: int, item: int) -> _Counts:
    if node.unevaluated:
        member, item = member * _UNEVALUATED, item * _UNEVALUATED
    # The numbers of a hostile schema would have thousands of digits.
    return _Counts(min(member, MAX_COST + 1), min(item, MAX_COST + 1))


def _in_order(nodes: list[SchemaNode]) -> list[int]:
    """Return the schemas' numbers, each after those that apply to the same value."""
    sorter = TopologicalSorter({at: node.in_place for at, node in enumerate(nodes)})
    try:
        return list(sorter.static_order())
    except CycleError:
        raise TooCostly("the schema cannot be checked: it contains itself") from None


def _pattern_cost(pattern: str) -> int:
    repeated = 0
    for count in map(int, _COUNTS.findall(pattern)):
        # A repeated group multiplies the repetitions in it.
        repeated = max(repeated, 1) * count if "){" in pattern else repeated + count
        if repeated * _REPETITION > _LARGEST_PATTERN:
            break
    if repeated and r"\p" in pattern.lower():
        repeated = _LARGEST_PATTERN
    return _PATTERN + len(pattern) * _CHARACTER + min(repeated * _REPETITION, _LARGEST_PATTERN)


def _size(data: Any) -> float:
    """Return how many bytes data has; `marshal`, because JSON is slow for long numbers."""
    try:
        return len(marshal.dumps(data, _WITHOUT_REFERENCES))
    except ValueError:
        return inf


def _values_by_depth(data: Any) -> Iterator[int]:
    """Yield the number of values of each depth; long texts and numbers count as several."""
    level, names = [data], 0
    while level:
        count, names = len(level) + names // _LONG_TEXT, 0
        below: list[Any] = []
        for value in level:
            kind = type(value)
            if kind is dict:
                below.extend(value.values())
                names += sum(map(len, value))
            elif kind is list or kind is tuple:
                below.extend(value)
            elif kind is str:
                count += len(value) // _LONG_TEXT
            elif kind is int:
                if not -_LONG_NUMBER < value < _LONG_NUMBER:
                    count += 2 * value.bit_length()
            elif kind is float and value and not _TINY < abs(value) < _VAST:
                count += _EXTREME
        yield count
        level = below
