"""Which member of a union a value is: the kinds that may be, and the best of those that fit."""

from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

from . import nodes
from .nodes import Node
from .walk import Verdict


def candidates(node: nodes.Union, value: Any) -> list[Node]:
    """The members that take JSON of the kind that *value* is."""
    kind = nodes.kind_of(value)
    if kind not in node.takers:
        node.takers[kind] = [each for each in node.members if kind in nodes.kinds(each)]
    fitting = node.takers[kind]
    if kind != "object":
        return fitting
    return [member for member in fitting if nodes.tag_of(member) in (None, *value)]


def best(path: str, verdicts: list[Verdict]) -> Verdict | None:
    """The closest of the members that fit, or what is wrong with the one that nearly does."""
    fitting = [verdict for verdict in verdicts if not verdict.walk.problems]
    if fitting:
        return min(fitting, key=_distance)
    # Problems inside the value tell more than that it is none of several types.
    inside = [v for v in verdicts if all(p.path != path for p in v.walk.problems)]
    telling = inside or (verdicts if len(verdicts) == 1 else [])
    if not telling:
        return None
    nearest = min(telling, key=lambda verdict: len(verdict.walk.problems))
    return Verdict(nearest.value, nearest.value, nearest.walk)


# A string that is a UUID is hardly meant as text, but any word may be base64 or a number.
_TELLING: dict[type, int] = {
    UUID: 1,
    datetime: 1,
    date: 1,
    time: 1,
    timedelta: 1,
    str: 2,
    Decimal: 3,
    bytes: 4,
    bytearray: 4,
}


def _distance(verdict: Verdict) -> tuple[int, int, int]:
    kind = nodes.plain(verdict.member) if verdict.member is not None else None
    telling = 0
    if isinstance(kind, nodes.Scalar):
        telling = _TELLING.get(kind.kind, 1)
    elif isinstance(kind, nodes.Anything | nodes.Mapping):
        # They take nearly everything; a class says more.
        telling = 9
    return (verdict.walk.repairs, verdict.walk.strays if telling < 9 else 0, telling)
