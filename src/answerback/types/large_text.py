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
from itertools import islice, repeat
from typing import Any

from . import nodes
from .coerce import length_fits
from .coerce_union import candidates
from .decoded_json import STEP, discard, is_heavy
from .json_text import has_many_values, load
from .msgspec_types import MsgspecTypes
from .nodes import Node
from .text_pieces import load_in_pieces
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


def load_in_steps(raw: bytes) -> Any:
    """Decode JSON as `json_text.load` does, but text with many values in small pieces.

    Text with many values must be one that `json_text.refuse_bad_text` accepts. Raises
    InvalidJson, or for a huge number msgspec.ValidationError or NumberOutOfRange.
    """
    return load_in_pieces(raw) if has_many_values(raw) else load(raw)


class StepBuilder:
    """Builds typed arguments from decoded JSON, some values at a time.

    One builder is for one text: it remembers how many items of each long array were built, and
    which large values did not fit. With *keeps_json*, built values may contain the decoded JSON.
    """

    def __init__(self, types: MsgspecTypes, *, keeps_json: bool) -> None:
        self._types = types
        self._keeps_json = keeps_json
        self.accepted: dict[int, int] = {}
        self._refused: set[tuple[int, int]] = set()
        # By the id of a node: the type of a list of such items, and whether they are flat.
        self._lists: dict[int, tuple[Node, Any, bool]] = {}

    def accepts(self, node: Node, values: list[Any]) -> bool:
        """Return whether *node* accepts each of the values as it is."""
        if any((id(node), id(each)) in self._refused for each in values):
            return False
        try:
            self._build_all(node, values)
        except Exception:  # noqa: BLE001 - an author's __post_init__ may raise any exception
            return False
        return True

    def build(self, node: Node, value: Any) -> Any:
        """Return the typed value; raises any exception if it does not fit."""
        if not is_heavy(value):
            return self._types.convert(value, self._types.type_of(node))
        if (id(node), id(value)) in self._refused:
            raise ValueError("was refused before")
        try:
            # Few frames for each level, because recursive types nest as deep as the text may.
            match _only_possible(node, value):
                case nodes.Array() as array if type(value) is list:
                    return self._array(array, value)
                case nodes.Fixed(items=items) if type(value) is list and len(value) == len(items):
                    return tuple(map(self.build, items, value))
                case nodes.Mapping() as mapping if type(value) is dict:
                    return self._mapping(mapping, value)
                case nodes.Record() as record if type(value) is dict and _is_plain(record, value):
                    return self._record(record, value)
                case nodes.Model() as model:
                    from .pydantic_types import build_heavy_model

                    return build_heavy_model(model, value)
            return self._types.convert(value, self._types.type_of(node))
        except Exception:
            self._refused.add((id(node), id(value)))
            raise

    def _build_all(self, node: Node, values: list[Any]) -> list[Any]:
        if id(node) not in self._lists:
            # The node is kept so that no other gets its id. mypy cannot check a type that is made
            # at run time.
            kind: Any = list[self._types.type_of(node)]  # type: ignore[misc]
            self._lists[id(node)] = (node, kind, _is_flat(node))
        _, kind, is_flat = self._lists[id(node)]
        if not is_flat and is_heavy(values):
            return list(map(self.build, repeat(node), values))
        built: list[Any] = self._types.convert(values, kind)
        return built

    def _array(self, node: nodes.Array, value: list[Any]) -> Any:
        _check_length(node.limits, value)
        items = list[Any]()
        try:
            for start in range(0, len(value), STEP):
                items += self._build_all(node.item, value[start : start + STEP])
                self.accepted[id(value)] = start + STEP
        except Exception:
            if not self._keeps_json:
                discard(items)
            raise
        return items if node.container is list else node.container(items)

    def _mapping(self, node: nodes.Mapping, value: dict[str, Any]) -> Any:
        _check_length(node.limits, value)
        # mypy cannot check a type that is made at run time.
        keys: Any = dict[self._types.type_of(node.key), Any]  # type: ignore[misc]
        entries, built = iter(value.items()), dict[Any, Any]()
        try:
            while step := dict(islice(entries, STEP)):
                values = self._build_all(node.value, list(step.values()))
                step_keys = self._types.convert(dict.fromkeys(step), keys)
                built.update(zip(step_keys, values, strict=True))
        except Exception:
            if not self._keeps_json:
                discard([built])
            raise
        return built

    def _record(self, node: nodes.Record, value: dict[str, Any]) -> Any:
        values = {}
        for field in node.fields:
            if field.json_name in value:
                values[field.name] = self.build(field.node, value[field.json_name])
        return make_record(node, values)


def keeps_json(trees: Iterable[Node]) -> bool:
    """Return whether typed values may contain the containers of the decoded JSON itself."""
    kinds = nodes.Anything | nodes.Custom
    return any(isinstance(each, kinds) for tree in trees for each in nodes.reachable(tree))


def _is_flat(node: Node) -> bool:
    """Return whether no value of *node* has a container inside; others are refused quickly."""
    node = nodes.without_notes(node)
    return isinstance(node, nodes.Scalar) or (
        isinstance(node, nodes.Record)
        and all(isinstance(nodes.without_notes(each.node), nodes.Scalar) for each in node.fields)
    )


def _only_possible(node: Node, value: Any) -> Node:
    """Return the member of a union that *value* may fit, if there is only one, without notes."""
    node = nodes.without_notes(node)
    while isinstance(node, nodes.Union) and len(members := candidates(node, value)) == 1:
        node = nodes.without_notes(members[0])
    return node


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
