"""Decodes JSON text with many values in small steps, so that other threads can run in between.

msgspec and the garbage collector keep the interpreter to themselves until they return, which
takes up to a second for four megabytes of small values. Between two calls of a Python function
the interpreter lets another thread run.
"""

from __future__ import annotations

import gc
import sys
import threading
from collections.abc import Iterable, Iterator
from contextlib import contextmanager
from itertools import islice
from typing import Any

from . import nodes
from .coerce import STEP, length_fits
from .json_text import has_many_values, load
from .msgspec_types import MsgspecTypes, StandIn
from .nodes import Node
from .value_builder import make_record

_lock = threading.Lock()
# Whether the collector was enabled, and the switch interval, before each text that is decoded now.
_pauses: list[tuple[bool, float]] = []
_SHORT_INTERVAL = 0.0005


@contextmanager
def other_threads_first() -> Iterator[None]:
    """Let other threads run often, and pause the garbage collector.

    Decoded JSON has no reference cycles to look for. A call needs the interpreter several times,
    and each time it waits for the switch interval, which is 5 milliseconds in Python.
    """
    with _lock:
        interval = sys.getswitchinterval()
        _pauses.append((gc.isenabled(), interval))
        gc.disable()
        sys.setswitchinterval(min(interval, _SHORT_INTERVAL))
    try:
        yield
    finally:
        with _lock:
            # The settings of the first text are restored, whichever text is done last.
            is_last = len(_pauses) == 1
            was_enabled, interval = _pauses.pop()
            if is_last:
                sys.setswitchinterval(interval)
                if was_enabled:
                    gc.enable()


def discard(values: list[Any]) -> None:
    """Free decoded JSON or built values in small steps; the list is empty afterwards."""
    pending: list[Any] = [values]
    while pending:
        value = pending.pop()
        inside = value.values() if isinstance(value, dict) else value
        least = 0 if len(value) <= STEP else STEP
        pending.extend(each for each in inside if type(each) in _CONTAINERS and len(each) > least)
        if isinstance(value, dict):
            while value:
                value.popitem()
        while value:
            del value[-STEP:]


_CONTAINERS = frozenset({dict, list})


class _Unchanged(StandIn):
    """Any JSON value; msgspec calls the hook for it, and the hook returns it."""

    node = nodes.Anything()


_SCALARS = str | int | float | bool | None
_VALUE = list[_Unchanged] | dict[str, _Unchanged] | _SCALARS
_OBJECT: Any = dict[str, _VALUE]
_OBJECT_OF_RECORDS: Any = dict[str, list[_Unchanged] | dict[str, _VALUE] | _SCALARS]


def load_in_steps(raw: bytes, *, has_records: bool) -> Any:
    """Decode an object of arguments as `json_text.load` does, the items of containers one by one.

    With *has_records* the items of containers in an argument's fields are meant too. Raises
    InvalidJson, or msgspec.ValidationError for a huge number.
    """
    if has_many_values(raw) and raw.lstrip(b" \t\r\n").startswith(b"{"):
        kind = _OBJECT_OF_RECORDS if has_records else _OBJECT
        return load(raw, type=kind, dec_hook=lambda kind, value: value)
    return load(raw)


class StepBuilder:
    """Builds typed arguments from decoded JSON, some items of a long container at a time.

    One builder is for one text: it remembers how many items of each long array were built.
    """

    def __init__(self, types: MsgspecTypes) -> None:
        self._types = types
        self.accepted: dict[int, int] = {}
        self._lists: dict[int, tuple[Node, Any]] = {}

    def accepts(self, node: Node, values: list[Any]) -> bool:
        """Return whether *node* accepts each of the values as it is."""
        try:
            self._types.convert(values, self._list_of(node))
        except Exception:  # noqa: BLE001 - an author's __post_init__ may raise any exception
            return False
        return True

    def build(self, node: Node, value: Any) -> Any:
        """Return the typed value; raises any exception if it does not fit."""
        match node:
            case nodes.Noted(inner=inner):
                return self.build(inner, value)
            case nodes.Union(members=(member, nodes.Null())) if value is not None:
                return self.build(member, value)
            case nodes.Array() if type(value) is list and len(value) > STEP:
                return self._array(node, value)
            case nodes.Mapping() if type(value) is dict and len(value) > STEP:
                return self._mapping(node, value)
            case nodes.Record() if type(value) is dict and _is_plain(node, value):
                return self._record(node, value)
        return self._types.convert(value, self._types.type_of(node))

    def _list_of(self, node: Node) -> Any:
        if id(node) not in self._lists:
            # The node is kept so that no other gets its id.
            self._lists[id(node)] = (node, list[self._types.type_of(node)])  # type: ignore[misc]  # made at run time
        return self._lists[id(node)][1]

    def _array(self, node: nodes.Array, value: list[Any]) -> Any:
        _check_length(node.limits, value)
        kind, items = self._list_of(node.item), list[Any]()
        try:
            for start in range(0, len(value), STEP):
                items += self._types.convert(value[start : start + STEP], kind)
                self.accepted[id(value)] = start + STEP
        except Exception:
            discard(items)
            raise
        return items if node.container is list else node.container(items)

    def _mapping(self, node: nodes.Mapping, value: dict[str, Any]) -> Any:
        _check_length(node.limits, value)
        # mypy cannot check a type that is made at run time.
        kind: Any = dict[self._types.type_of(node.key), self._types.type_of(node.value)]  # type: ignore[misc]
        entries, built = iter(value.items()), dict[Any, Any]()
        while step := dict(islice(entries, STEP)):
            built |= self._types.convert(step, kind)
        return built

    def _record(self, node: nodes.Record, value: dict[str, Any]) -> Any:
        values = {
            field.name: self.build(field.node, value[field.json_name])
            for field in node.fields
            if field.json_name in value
        }
        return make_record(node, values)


def _is_plain(record: nodes.Record, value: dict[str, Any]) -> bool:
    """Return whether the fields of the record can be built one by one."""
    if record.array or record.tag is not None:
        return False
    declared = {field.json_name for field in record.fields}
    required = {field.json_name for field in record.fields if field.required}
    return required <= value.keys() and (not record.closed or value.keys() <= declared)


def _check_length(limits: nodes.ValueLimits, value: list[Any] | dict[str, Any]) -> None:
    if not length_fits(limits, value):
        raise ValueError("exceeds its limits")


# msgspec decodes a million of them in 25 milliseconds.
_QUICK = frozenset({int, str, bool})


_MANY_QUICK = 1_000_000


def are_quick(raw: bytes, trees: Iterable[Node]) -> bool:
    """Return whether msgspec decodes the text for these types in less than 25 milliseconds."""
    return raw.count(b",") < _MANY_QUICK and all(map(_is_quick, trees))


def _is_quick(node: Node) -> bool:
    node = nodes.without_notes(node)
    if isinstance(node, nodes.Array):
        node = nodes.without_notes(node.item)
    return isinstance(node, nodes.Scalar) and node.kind in _QUICK and not node.limits.pattern
