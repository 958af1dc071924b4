"""Decoded JSON with many values: looked at and freed so that other threads can run in between."""

from __future__ import annotations

from typing import Any

# The number of items of a long array that are checked, built or freed at once.
STEP = 1_000
# msgspec builds so many in some milliseconds.
_FEW_VALUES = 10_000
_CONTAINERS = frozenset({dict, list})


def is_heavy(value: Any) -> bool:
    """Return whether there are many values in decoded JSON, at any depth."""
    count, level = 0, _containers_in([[value]])
    while level:
        count += sum(map(len, level))
        if count > _FEW_VALUES:
            return True
        level = _containers_in(level)
    return False


def _containers_in(containers: list[Any]) -> list[Any]:
    """Return the containers directly inside the containers, without empty ones."""
    return [
        each
        for inside in containers
        for each in (inside.values() if type(inside) is dict else inside)
        if type(each) in _CONTAINERS and each
    ]


def discard(values: list[Any]) -> None:
    """Free decoded JSON or built values in small steps; the list is empty afterwards."""
    pending: list[Any] = [values]
    while pending:
        value = pending.pop()
        if type(value) is dict:
            pending.append(list(value.values()))
            while value:
                value.popitem()
        while value:
            step = value[-STEP:]
            del value[-STEP:]
            if is_heavy(step):
                pending += _containers_in([step])
