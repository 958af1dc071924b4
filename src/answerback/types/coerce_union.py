"""Chooses a union's member for a value: the possible ones, and the best of those that fit."""

from __future__ import annotations

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from . import nodes
from .nodes import Node
from .problems import MemberAttempt


def candidates(node: nodes.Union, value: Any) -> list[Node]:
    """Return the members that accept the JSON kind of *value*."""
    kind = nodes.kind_of(value)
    if kind not in node.members_by_kind:
        node.members_by_kind[kind] = [each for each in node.members if kind in nodes.kinds(each)]
    members = node.members_by_kind[kind]
    if kind != "object" or not any(map(nodes.tag_of, members)):
        return members
    return [member for member in members if nodes.tag_of(member) in (None, *value)]


def quick_member(members: list[Node], value: Any) -> tuple[Node, int] | None:
    """Return the member that fits an object best, and its number of key differences.

    Returns None if comparing keys and plain fields is not enough to decide.
    """
    if type(value) is not dict:
        return None
    best: tuple[Node, int] | None = None
    for each in members:
        node = nodes.without_notes(each)
        if not isinstance(node, nodes.Record) or node.array or node.tag is not None:
            return None
        differences = _key_differences(node, value)
        if differences is None:
            return None
        if differences >= 0 and (best is None or differences < best[1]):
            best = (each, differences)
    return best


def _key_differences(record: nodes.Record, value: dict[str, Any]) -> int | None:
    """Return how many keys are absent or undeclared.

    Returns -1 if the record cannot fit, and None if comparing keys is not enough to decide.
    """
    found = 0
    for field in record.fields:
        if field.json_name in value:
            node = field.node
            if not isinstance(node, nodes.Scalar) or node.limits is not nodes.NO_LIMITS:
                return None
            if type(value[field.json_name]) is not node.kind:
                return None
            found += 1
        elif field.required:
            return -1
    undeclared = len(value) - found
    if undeclared and record.closed:
        return -1
    return len(record.fields) - found + undeclared


def best_attempt(path: str, attempts: list[MemberAttempt]) -> MemberAttempt | None:
    """Return the closest of the members that fit, or the nearest member's problems.

    Returns None if no member fits and none is clearly the nearest.
    """
    fitting = [attempt for attempt in attempts if not attempt.coercion.problems]
    if fitting:
        return min(fitting, key=_distance)
    # Problems inside the value are more useful than "expected A | B", which is at *path*.
    inside = [each for each in attempts if all(p.path != path for p in each.coercion.problems)]
    useful = inside or (attempts if len(attempts) == 1 else [])
    if not useful:
        return None
    nearest = min(useful, key=lambda attempt: len(attempt.coercion.problems))
    return MemberAttempt(nearest.value, nearest.value, nearest.coercion)


# Lower is better. A string in the form of a UUID or a date is hardly meant as text, but many
# words are also base64 or, as a Decimal, a number.
_RANK: dict[type, int] = {
    UUID: 1,
    datetime: 1,
    date: 1,
    time: 1,
    timedelta: 1,
    str: 2,
    Decimal: 3,
    **dict.fromkeys(nodes.BYTES_TYPES, 4),
}
_LAST_RANK = 9


def _distance(attempt: MemberAttempt) -> tuple[int, int, int]:
    node = nodes.without_notes(attempt.member) if attempt.member is not None else None
    rank = 0
    if isinstance(node, nodes.Scalar):
        rank = _RANK.get(node.kind, 1)
    elif isinstance(node, nodes.Custom):
        rank = _RANK[str] if node.codec.is_free_text else 1
    elif isinstance(node, nodes.Anything | nodes.Mapping):
        # They accept nearly every value or object, so a class that fits is a better choice.
        rank = _LAST_RANK
    coercion = attempt.coercion
    return (coercion.repairs, coercion.key_differences if rank < _LAST_RANK else 0, rank)
