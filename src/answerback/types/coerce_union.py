"""Which member of a union a value is: the kinds that may be, and the best of those that fit."""

from collections.abc import Iterator
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from itertools import combinations
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


def is_misread(union: nodes.Union) -> bool:
    """Whether msgspec must not decode the union: it would crash, or mix its members' limits."""
    members = list(_flat(union))
    return _crashes(members) or any(_is_mixed(*pair) for pair in combinations(members, 2))


def _flat(node: Node) -> Iterator[Node]:
    """The members of a union and of the unions in it."""
    node = nodes.plain(node)
    if isinstance(node, nodes.Union):
        for member in node.members:
            yield from _flat(member)
    else:
        yield node


def _limits(node: Node) -> set[str]:
    limits = getattr(node, "limits", nodes.NO_LIMITS)
    # Whether a time has an offset is not a number that msgspec keeps beside the type.
    return set(limits.given()) - {"tz"}


def _crashes(members: list[Node]) -> bool:
    """Whether msgspec (0.20 to 0.22) would mistake one detail of the type for another.

    It frees a pattern as if it were the type of an item, and looks for the items of a
    fixed-length tuple behind the other limits although it puts them before.
    """
    limits = set().union(*map(_limits, members))
    if "pattern" in limits and any(isinstance(m, nodes.Array | nodes.Mapping) for m in members):
        return True
    return bool(limits - {"pattern"}) and any(isinstance(m, nodes.Fixed) for m in members)


def _is_mixed(one: Node, other: Node) -> bool:
    """Whether msgspec would hold values of *one* to the limits or the choices of *other*."""
    shared = nodes.kinds(one) & nodes.kinds(other)
    if "number" in shared and isinstance(one, nodes.Choice) != isinstance(other, nodes.Choice):
        return True
    return bool(shared) and bool(_limits(one) or _limits(other))
