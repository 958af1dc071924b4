"""Coerces decoded JSON to fit a tree of nodes, and collects every problem with its path.

The result is JSON again. A value is repaired if its type's JSON Schema accepts it but msgspec
does not (`1.0` for an int). With *lenient*, numbers, booleans, arrays and objects in strings
are accepted; with *prune*, keys that a record does not declare are removed. Coercion is slower
than msgspec, so it runs only if msgspec has refused the value.
"""

from __future__ import annotations

import math
import re
from collections.abc import Callable
from datetime import date, datetime, time, timedelta
from decimal import Decimal
from typing import Any
from uuid import UUID

import msgspec

from . import nodes
from .json_schema import read_scalar
from .json_text import has_more_values, load
from .nodes import Node
from .problems import (
    Coercion,
    InvalidJson,
    MemberAttempt,
    TooManyProblems,
    describe,
    dict_item,
    item,
    member,
)

# Not compiled here, because only a string in place of a number needs it.
_NUMBER = r"-?(?:0|[1-9][0-9]*)(?:\.[0-9]+)?(?:[eE][+-]?[0-9]+)?"
_BOOLEANS = {"true": True, "false": False}
# Longer numbers are never intended, and take a long time to read.
_MAX_DIGITS = 400
# No model sends a string with more values than this.
_MAX_VALUES = 50_000


def read_text(kind: type, text: str) -> bool | int | float | None:
    """Return the number or boolean of *kind* that *text* contains as JSON, or None."""
    text = text.strip()
    if kind is bool:
        return _BOOLEANS.get(text.lower())
    if kind not in (int, float) or len(text) > _MAX_DIGITS or not re.fullmatch(_NUMBER, text):
        return None
    if kind is int and text.lstrip("-").isdigit():
        return int(text)
    number = float(text)
    if not math.isfinite(number):
        return None
    if kind is float:
        return number
    return int(number) if number.is_integer() else None


def is_null(text: str) -> bool:
    """Return whether *text* is `null`."""
    return text.strip().lower() == "null"


def is_text_of(choice: Any, text: str) -> bool:
    """Return whether *text* stands for *choice*, a Literal's or an Enum's value."""
    if choice is None:
        return is_null(text)
    return not isinstance(choice, str) and read_text(type(choice), text) == choice


def unpack(value: Any, coercion: Coercion) -> Any:
    """Return the array or object that a string contains as JSON, or *value* itself.

    The same string always yields the same object, so that a union tries each object once.
    """
    if not coercion.lenient or not isinstance(value, str):
        return value
    if not value.lstrip().startswith(("[", "{")):
        return value
    unpacked = coercion.texts.unpacked
    if id(value) not in unpacked:
        if not coercion.texts.take():
            return value
        # The string is kept so that its id is not reused.
        unpacked[id(value)] = (value, container_in(value))
    inside = unpacked[id(value)][1]
    return value if inside is None else inside


def container_in(text: str) -> list[Any] | dict[str, Any] | None:
    """Return the array or object written in *text*; None if there is none, or it is too large."""
    raw = text.encode("utf-8", "surrogatepass")
    try:
        inside = None if has_more_values(raw, _MAX_VALUES) else load(raw)
    except (InvalidJson, msgspec.ValidationError):
        return None
    return inside if isinstance(inside, list | dict) else None


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
    # Problems inside the value are more useful than "expected A | B" at *path*.
    inside = [each for each in attempts if all(p.path != path for p in each.coercion.problems)]
    useful = inside or (attempts if len(attempts) == 1 else [])
    if not useful:
        return None
    nearest = min(useful, key=lambda attempt: len(attempt.coercion.problems))
    return MemberAttempt(nearest.value, nearest.value, nearest.coercion)


# Lower is better. A string that looks like a UUID or a date is rarely meant as text, but many
# words are also valid base64 or, as a Decimal, a number.
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
        # These accept nearly any value or object, so a class that fits is a better choice.
        rank = _LAST_RANK
    coercion = attempt.coercion
    return (coercion.repairs, coercion.key_differences if rank < _LAST_RANK else 0, rank)


def coerce(node: Node, value: Any, path: str, coercion: Coercion) -> Any:
    """Return *value* as JSON that *node* accepts; *coercion* collects the problems.

    Raises TooManyProblems if *coercion* already has MAX_PROBLEMS.
    """
    return _COERCE[type(node)](node, value, path, coercion)


def fits(node: Node, value: Any) -> bool:
    """Return whether *node* accepts *value*, which is decoded JSON."""
    coercion = Coercion()
    try:
        coerce(node, value, "", coercion)
    except TooManyProblems:
        return False
    return not coercion.problems


def _scalar(node: nodes.Scalar, value: Any, path: str, coercion: Coercion) -> Any:
    # A fast path for items in long arrays.
    if type(value) is node.kind and node.limits is nodes.NO_LIMITS:
        return value
    if coercion.repair and node.kind is int and type(value) is float and value.is_integer():
        coercion.repairs += 1
        return _scalar(node, int(value), path, coercion)
    if _scalar_fits(node, value):
        return value
    if coercion.may_read(value):
        parsed = read_text(node.kind, value)
        if parsed is not None and _scalar_fits(node, parsed):
            coercion.repairs += 1
            return parsed
    return coercion.report_mismatch(node, value, path)


def _scalar_fits(node: nodes.Scalar, value: Any) -> bool:
    try:
        read_scalar(node, value)
    except (ValueError, ArithmeticError):
        return False
    return True


def _null(node: nodes.Null, value: Any, path: str, coercion: Coercion) -> Any:
    if value is None:
        return value
    if coercion.may_read(value) and is_null(value):
        coercion.repairs += 1
        return None
    return coercion.report_mismatch(node, value, path)


def _choice(node: nodes.Choice, value: Any, path: str, coercion: Coercion) -> Any:
    for choice, _ in node.values:
        if choice == value and type(choice) is type(value):
            return value
    may_read = coercion.may_read(value)
    for choice, _ in node.values:
        is_equal = choice == value and nodes.kind_of(choice) == nodes.kind_of(value)
        if (coercion.repair and is_equal) or (may_read and is_text_of(choice, value)):
            coercion.repairs += 1
            return choice
    return coercion.report_mismatch(node, value, path)


def _unpack_as(wanted: type, value: Any, coercion: Coercion) -> Any:
    """Return the array or object that a string contains as JSON text, if *lenient* allows it."""
    inside = unpack(value, coercion)
    if inside is value or not isinstance(inside, wanted):
        return value
    coercion.repairs += 1
    return inside


def _array(node: nodes.Array, value: Any, path: str, coercion: Coercion) -> Any:
    value = _unpack_as(list, value, coercion)
    if not isinstance(value, list) or not _length_fits(node.limits, value):
        return coercion.report_mismatch(node, value, path)
    kind, coerce_item = node.item, _COERCE[type(node.item)]
    # Without limits, comparing types is enough; building a path for every item takes time.
    plain = None
    if isinstance(kind, nodes.Scalar) and kind.limits is nodes.NO_LIMITS:
        plain = kind.kind
    items = []
    for n, each in enumerate(value):
        if type(each) is plain:
            items.append(each)
        elif plain is int and coercion.repair and type(each) is float and each.is_integer():
            coercion.repairs += 1
            items.append(int(each))
        else:
            items.append(coerce_item(kind, each, item(path, n), coercion))
    return items


def _length_fits(limits: nodes.ValueLimits, value: list[Any] | dict[str, Any]) -> bool:
    minimum, maximum = limits.min_length or 0, limits.max_length
    return minimum <= len(value) and (maximum is None or len(value) <= maximum)


def _fixed(node: nodes.Fixed, value: Any, path: str, coercion: Coercion) -> Any:
    value = _unpack_as(list, value, coercion)
    if not isinstance(value, list) or len(value) != len(node.items):
        return coercion.report_mismatch(node, value, path)
    pairs = enumerate(zip(node.items, value, strict=True))
    return [_COERCE[type(kind)](kind, each, item(path, n), coercion) for n, (kind, each) in pairs]


def _mapping(node: nodes.Mapping, value: Any, path: str, coercion: Coercion) -> Any:
    value = _unpack_as(dict, value, coercion)
    if not isinstance(value, dict) or not _length_fits(node.limits, value):
        return coercion.report_mismatch(node, value, path)
    coerce_value = _COERCE[type(node.value)]
    path_of = member if coercion.show_values else dict_item
    coerced = {}
    for key, each in value.items():
        if not _key_fits(node.key, key):
            coercion.report(path_of(path, key), f"expected a key that is {describe(node.key)}")
        coerced[key] = coerce_value(node.value, each, path_of(path, key), coercion)
    return coerced


def _key_fits(node: Node, key: str) -> bool:
    node = nodes.without_notes(node)
    if isinstance(node, nodes.Choice):
        return any(str(choice) == key for choice, _ in node.values)
    if isinstance(node, nodes.Scalar) and node.kind is int:
        digits = key.removeprefix("-")
        plain = digits.isascii() and digits.isdigit() and (digits == "0" or digits[0] != "0")
        return plain and len(digits) < 4000 and _scalar_fits(node, int(key))
    return isinstance(node, nodes.Scalar) and _scalar_fits(node, key)


def _record(node: nodes.Record, value: Any, path: str, coercion: Coercion) -> Any:
    if node.array:
        return _array_record(node, value, path, coercion)
    value = _unpack_as(dict, value, coercion)
    if not isinstance(value, dict):
        return coercion.report_mismatch(node, value, path)
    coerced = dict(value)
    # Outside a union, msgspec accepts an object without its tag.
    if node.tag is not None and value.get(node.tag[0], node.tag[1]) != node.tag[1]:
        coercion.report(member(path, node.tag[0]), f"expected {node.tag[1]!r}")
    for field in node.fields:
        key = field.json_name
        if key in value:
            coerce_field = _COERCE[type(field.node)]
            coerced[key] = coerce_field(field.node, value[key], member(path, key), coercion)
        elif field.required:
            expected = describe(field.node)
            coercion.report(member(path, key), "missing", expected=expected, got=None)
        else:
            coercion.key_differences += 1
    declared = {field.json_name for field in node.fields}
    if node.tag is not None:
        declared.add(node.tag[0])
    for key in coerced.keys() - declared:
        coercion.key_differences += 1
        if coercion.prune:
            del coerced[key]
        elif node.closed:
            coercion.report(member(path, key), "unknown")
    return coerced


def _array_record(node: nodes.Record, value: Any, path: str, coercion: Coercion) -> Any:
    value = _unpack_as(list, value, coercion)
    tag_length = int(node.tag is not None)
    max_items = len(node.fields) + tag_length
    if not isinstance(value, list) or len(value) < node.min_items:
        return coercion.report_mismatch(node, value, path)
    if len(value) > max_items and node.closed and not coercion.prune:
        return coercion.report_mismatch(node, value, path)
    if node.tag is not None and value[0] != node.tag[1]:
        return coercion.report_mismatch(node, value, path)
    fields = [
        _COERCE[type(field.node)](field.node, each, item(path, n + tag_length), coercion)
        for n, (field, each) in enumerate(zip(node.fields, value[tag_length:], strict=False))
    ]
    coercion.key_differences += abs(len(value) - max_items)
    undeclared = [] if coercion.prune else value[max_items:]
    return value[:tag_length] + fields + undeclared


def _model(node: nodes.Model, value: Any, path: str, coercion: Coercion) -> Any:
    from .pydantic_types import coerce_model

    return coerce_model(node, value, path, coercion)


def _custom(node: nodes.Custom, value: Any, path: str, coercion: Coercion) -> Any:
    kinds = nodes.kinds(node)
    if kinds in ({"array"}, {"object"}):
        value = _unpack_as(list if kinds == {"array"} else dict, value, coercion)
    if nodes.kind_of(value) not in kinds:
        return coercion.report_mismatch(node, value, path)
    try:
        if node.codec.decode is not None:
            node.codec.decode(value)
    except Exception:  # noqa: BLE001 -- an author's function may raise any exception
        return coercion.report_mismatch(node, value, path)
    return value


def choose_member(node: nodes.Union, value: Any, coercion: Coercion) -> Node | None:
    """Return the member that fits *value* best, or None if no member fits."""
    return _attempt_union(node, value, "", coercion).member


def _union(node: nodes.Union, value: Any, path: str, coercion: Coercion) -> Any:
    if not coercion.prune:
        quick = quick_member(candidates(node, value), value)
        if quick is not None:
            coercion.key_differences += quick[1]
            return value
    attempt = _attempt_union(node, value, path, coercion)
    coercion.repairs += attempt.coercion.repairs
    coercion.key_differences += attempt.coercion.key_differences
    for problem in attempt.coercion.problems:
        more = {"expected": problem.expected, "got": problem.got, "hint": problem.hint}
        coercion.report(problem.path, problem.message, **more)
    if attempt.coercion.stopped_early:
        coercion.stop()
    return attempt.data


def _attempt_union(node: nodes.Union, value: Any, path: str, coercion: Coercion) -> MemberAttempt:
    """Coerce *value* to the member that fits best; if none fits, the result holds the problems."""
    # A lenient coercion may choose a different member.
    key = (id(node), id(value), coercion.lenient)
    if key in coercion.union_attempts:
        return coercion.union_attempts[key]
    attempts: list[MemberAttempt] = []
    possible = candidates(node, value)
    for lenient in (False, True) if coercion.lenient and coercion.texts.left > 0 else (False,):
        if not all(attempt.coercion.problems for attempt in attempts):
            break
        if lenient and (inside := unpack(value, coercion)) is not value:
            # Unpacked once for all members, so that nested strings do not take exponential time.
            return _attempt_union(node, inside, path, coercion)
        for kind in node.members if lenient else possible:
            fork = coercion.fork(lenient=lenient)
            # Not in a separate function: recursive types may use up the stack.
            try:
                data = _COERCE[type(kind)](kind, value, path, fork)
            except TooManyProblems:
                data = value
            attempts.append(MemberAttempt(value, data, fork, kind))
    attempt = best_attempt(path, attempts) or MemberAttempt(value, value, coercion.fork())
    if attempt.member is None and not attempt.coercion.problems:
        attempt.coercion.report_mismatch(node, value, path)
    # Scalars are not cached: they are quick, and the same object may occur at several paths.
    if isinstance(value, list | dict):
        coercion.union_attempts[key] = attempt
    return attempt


_COERCE: dict[type[Node], Callable[[Any, Any, str, Coercion], Any]] = {
    nodes.Anything: lambda node, value, path, coercion: value,
    nodes.Null: _null,
    nodes.Scalar: _scalar,
    nodes.Choice: _choice,
    nodes.Array: _array,
    nodes.Fixed: _fixed,
    nodes.Mapping: _mapping,
    nodes.Record: _record,
    nodes.Union: _union,
    nodes.Model: _model,
    nodes.Custom: _custom,
    nodes.Noted: lambda node, value, path, coercion: coerce(node.inner, value, path, coercion),
}
