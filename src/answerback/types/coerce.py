"""Decoded JSON against the typed tree, slowly: all that is wrong, and where.

JSON goes in and JSON comes out, repaired where the JSON Schema of the type allows what
msgspec does not (`1.0` for an int), read more kindly if *lenient*, and with the keys that a
record does not declare left out if *prune*.
"""

import math
from collections.abc import Callable
from typing import Any

from . import nodes
from .coerce_union import best, candidates
from .describe import describe
from .nodes import Node
from .problems import InvalidJson, item, member
from .scalars import read_scalar
from .walk import TooManyProblems, Verdict, Walk


def settle(node: Node, value: Any, path: str, walk: Walk) -> Any:
    """The JSON that *node* takes for *value*; what is wrong is noted in *walk*.

    Raises TooManyProblems where *walk* has no room for more.
    """
    return _SETTLE[type(node)](node, value, path, walk)


def fits(node: Node, value: Any) -> bool:
    """Whether *value* is JSON that *node* takes."""
    walk = Walk()
    try:
        settle(node, value, "", walk)
    except TooManyProblems:
        return False
    return not walk.problems


def _scalar(node: nodes.Scalar, value: Any, path: str, walk: Walk) -> Any:
    # Most values of a long array end here.
    if type(value) is node.kind and node.limits is nodes.NO_LIMITS:
        return value
    if _fits(node, value):
        return value
    if walk.repair and node.kind is int and isinstance(value, float) and value.is_integer():
        walk.repairs += 1
        return _scalar(node, int(value), path, walk)
    if walk.lenient and isinstance(value, str):
        kinder = read_kindly(node.kind, value)
        if kinder is not None and _fits(node, kinder):
            walk.repairs += 1
            return kinder
    return walk.wrong(node, value, path)


def _fits(node: nodes.Scalar, value: Any) -> bool:
    try:
        read_scalar(node, value)
    except (ValueError, ArithmeticError):
        return False
    return True


def read_kindly(kind: type, text: str) -> bool | int | float | None:
    """The number or boolean that *text* plainly stands for, or None."""
    text = text.strip()
    try:
        if kind is bool:
            return {"true": True, "false": False}.get(text.lower())
        if kind is int:
            number = float(text) if "." in text or "e" in text.lower() else int(text)
            return int(number) if number == int(number) else None
        if kind is float:
            return float(text) if math.isfinite(float(text)) else None
        return None
    except (ValueError, OverflowError):
        return None


def _null(node: nodes.Null, value: Any, path: str, walk: Walk) -> Any:
    if value is None:
        return value
    if walk.lenient and isinstance(value, str) and value.strip().lower() == "null":
        walk.repairs += 1
        return None
    return walk.wrong(node, value, path)


def _choice(node: nodes.Choice, value: Any, path: str, walk: Walk) -> Any:
    for given, _ in node.values:
        if given == value and type(given) is type(value):
            return value
    for given, _ in node.values:
        if walk.repair and given == value and nodes.kind_of(given) == nodes.kind_of(value):
            walk.repairs += 1
            return given
        if walk.lenient and isinstance(value, str) and _reads_as(given, value):
            walk.repairs += 1
            return given
    return walk.wrong(node, value, path)


def _reads_as(given: Any, text: str) -> bool:
    if given is None:
        return text.strip().lower() == "null"
    return not isinstance(given, str) and read_kindly(type(given), text) == given


def _unpacked(value: Any, wanted: type, walk: Walk) -> Any:
    """The array or object that a string holds as JSON text, if that is allowed."""
    if not walk.lenient or not isinstance(value, str):
        return value
    from .json_text import load

    if not value.lstrip().startswith("[" if wanted is list else "{"):
        return value
    try:
        inside = load(value.encode("utf-8", "surrogatepass"))
    except InvalidJson:
        return value
    walk.repairs += isinstance(inside, wanted)
    return inside if isinstance(inside, wanted) else value


def _array(node: nodes.Array, value: Any, path: str, walk: Walk) -> Any:
    value = _unpacked(value, list, walk)
    if not isinstance(value, list) or not _sized(node.limits, value):
        return walk.wrong(node, value, path)
    step = _SETTLE[type(node.item)]
    settled = []
    for n, each in enumerate(value):
        settled.append(step(node.item, each, item(path, n), walk))
    return settled


def _sized(limits: nodes.Limits, value: list[Any] | dict[str, Any]) -> bool:
    least, most = limits.min_length or 0, limits.max_length
    return least <= len(value) and (most is None or len(value) <= most)


def _fixed(node: nodes.Fixed, value: Any, path: str, walk: Walk) -> Any:
    value = _unpacked(value, list, walk)
    if not isinstance(value, list) or len(value) != len(node.items):
        return walk.wrong(node, value, path)
    pairs = enumerate(zip(node.items, value, strict=True))
    return [_SETTLE[type(kind)](kind, each, item(path, n), walk) for n, (kind, each) in pairs]


def _mapping(node: nodes.Mapping, value: Any, path: str, walk: Walk) -> Any:
    value = _unpacked(value, dict, walk)
    if not isinstance(value, dict) or not _sized(node.limits, value):
        return walk.wrong(node, value, path)
    step = _SETTLE[type(node.value)]
    settled = {}
    for key, each in value.items():
        if not _fits_key(node.key, key):
            walk.report(member(path, key), f"expected a key that is {describe(node.key)}")
        settled[key] = step(node.value, each, member(path, key), walk)
    return settled


def _fits_key(node: Node, key: str) -> bool:
    node = nodes.plain(node)
    if isinstance(node, nodes.Choice):
        return any(str(given) == key for given, _ in node.values)
    if isinstance(node, nodes.Scalar) and node.kind is int:
        digits = key.removeprefix("-")
        plain = digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0")
        return plain and len(digits) < 4000 and _fits(node, int(key))
    return isinstance(node, nodes.Scalar) and _fits(node, key)


def _record(node: nodes.Record, value: Any, path: str, walk: Walk) -> Any:
    if node.array:
        return _array_record(node, value, path, walk)
    value = _unpacked(value, dict, walk)
    if not isinstance(value, dict):
        return walk.wrong(node, value, path)
    settled = dict(value)
    # msgspec needs the tag only where there is something to tell apart.
    if node.tag is not None and value.get(node.tag[0], node.tag[1]) != node.tag[1]:
        walk.report(member(path, node.tag[0]), f"expected {node.tag[1]!r}")
    for field in node.fields:
        if field.wire in value:
            inner = _SETTLE[type(field.node)]
            settled[field.wire] = inner(
                field.node, value[field.wire], member(path, field.wire), walk
            )
        elif field.required:
            walk.report(
                member(path, field.wire), "missing", expected=describe(field.node), got=None
            )
        else:
            walk.strays += 1
    return _without_strays(node, settled, path, walk)


def _without_strays(
    node: nodes.Record, settled: dict[str, Any], path: str, walk: Walk
) -> dict[str, Any]:
    declared = {field.wire for field in node.fields}
    if node.tag is not None:
        declared.add(node.tag[0])
    for key in settled.keys() - declared:
        walk.strays += 1
        if walk.prune:
            del settled[key]
        elif node.closed:
            walk.report(member(path, key), "unknown")
    return settled


def _array_record(node: nodes.Record, value: Any, path: str, walk: Walk) -> Any:
    value = _unpacked(value, list, walk)
    shift = node.tag is not None
    most = len(node.fields) + shift
    if not isinstance(value, list) or len(value) < node.least:
        return walk.wrong(node, value, path)
    if len(value) > most and node.closed and not walk.prune:
        return walk.wrong(node, value, path)
    if node.tag is not None and value[0] != node.tag[1]:
        return walk.wrong(node, value, path)
    head = value[:1] if shift else []
    body = [
        _SETTLE[type(field.node)](field.node, each, item(path, n + shift), walk)
        for n, (field, each) in enumerate(zip(node.fields, value[shift:], strict=False))
    ]
    walk.strays += abs(len(value) - most)
    return head + body + ([] if walk.prune else value[most:])


def _model(node: nodes.Model, value: Any, path: str, walk: Walk) -> Any:
    from .pydantic_types import settle_model

    return settle_model(node, value, path, walk)


def choose(node: nodes.Union, value: Any, walk: Walk) -> Node | None:
    """The member that fits *value* best, if one does."""
    return decide(node, value, "", walk).member


def _union(node: nodes.Union, value: Any, path: str, walk: Walk) -> Any:
    verdict = decide(node, value, path, walk)
    walk.repairs += verdict.walk.repairs
    walk.strays += verdict.walk.strays
    for problem in verdict.walk.problems:
        more = {"expected": problem.expected, "got": problem.got, "hint": problem.hint}
        walk.report(problem.path, problem.message, **more)
    if verdict.walk.ended_early:
        walk.end()
    return verdict.data


def decide(node: nodes.Union, value: Any, path: str, walk: Walk) -> Verdict:
    """What becomes of *value*: the best of the members that fit, or what is wrong with it."""
    # A kinder reading may find another member.
    key = (id(node), id(value), walk.lenient)
    if key in walk.unions:
        return walk.unions[key]
    verdicts: list[Verdict] = []
    for lenient in (False, True) if walk.lenient else (False,):
        if not all(verdict.walk.problems for verdict in verdicts):
            break
        for kind in node.members if lenient else candidates(node, value):
            trial = walk.apart(lenient=lenient)
            # No function of its own: each frame counts when types are recursive.
            try:
                data = _SETTLE[type(kind)](kind, value, path, trial)
            except TooManyProblems:
                data = value
            verdicts.append(Verdict(value, data, trial, kind))
    verdict = best(path, verdicts) or Verdict(value, value, walk.apart())
    if verdict.member is None and not verdict.walk.problems:
        verdict.walk.wrong(node, value, path)
    # Only arrays and objects: they are met once each, and only they cost time.
    if isinstance(value, list | dict):
        walk.unions[key] = verdict
    return verdict


_SETTLE: dict[type[Node], Callable[[Any, Any, str, Walk], Any]] = {
    nodes.Anything: lambda node, value, path, walk: value,
    nodes.Null: _null,
    nodes.Scalar: _scalar,
    nodes.Choice: _choice,
    nodes.Array: _array,
    nodes.Fixed: _fixed,
    nodes.Mapping: _mapping,
    nodes.Record: _record,
    nodes.Union: _union,
    nodes.Model: _model,
    nodes.Noted: lambda node, value, path, walk: settle(node.inner, value, path, walk),
}
