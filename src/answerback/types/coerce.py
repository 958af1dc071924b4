"""Coerces decoded JSON to the tree of nodes, and collects every problem with its path.

The result is JSON again. A value is repaired where its type's JSON Schema accepts it and
msgspec does not (`1.0` for an int). With *lenient*, numbers, booleans, arrays and objects in
strings are accepted; with *prune*, keys that a record does not declare are removed. It is
slower than msgspec, so it runs only where msgspec refused the value.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from typing import Any

from . import nodes
from .coerce_union import best_attempt, candidates, quick_member
from .describe import describe
from .lenient import is_null, is_text_of, read_text, unpack
from .nodes import Node
from .problems import Coercion, MemberAttempt, TooManyProblems, dict_item, item, member
from .scalars import read_scalar


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
    # The quick way for a long array's items.
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
        if coercion.repair and choice == value and nodes.kind_of(choice) == nodes.kind_of(value):
            coercion.repairs += 1
            return choice
        if may_read and is_text_of(choice, value):
            coercion.repairs += 1
            return choice
    return coercion.report_mismatch(node, value, path)


def _unpack(value: Any, wanted: type, coercion: Coercion) -> Any:
    """Return the array or object that a string contains as JSON text, if *lenient* allows it."""
    inside = unpack(value, coercion)
    if inside is value or not isinstance(inside, wanted):
        return value
    coercion.repairs += 1
    return inside


def _array(node: nodes.Array, value: Any, path: str, coercion: Coercion) -> Any:
    value = _unpack(value, list, coercion)
    if not isinstance(value, list) or not _length_fits(node.limits, value):
        return coercion.report_mismatch(node, value, path)
    return list(_coerce_items(node.item, value, path, coercion))


def _coerce_items(node: Node, values: list[Any], path: str, coercion: Coercion) -> Iterator[Any]:
    coerce_item = _COERCE[type(node)]
    # Without limits, the type says whether a scalar fits; a path for each would take time.
    kind = node.kind if isinstance(node, nodes.Scalar) and node.limits is nodes.NO_LIMITS else None
    for n, each in enumerate(values):
        if type(each) is kind:
            yield each
        elif kind is int and coercion.repair and type(each) is float and each.is_integer():
            coercion.repairs += 1
            yield int(each)
        else:
            yield coerce_item(node, each, item(path, n), coercion)


def _length_fits(limits: nodes.ValueLimits, value: list[Any] | dict[str, Any]) -> bool:
    """Return whether the container's length is within *limits*."""
    minimum, maximum = limits.min_length or 0, limits.max_length
    return minimum <= len(value) and (maximum is None or len(value) <= maximum)


def _fixed(node: nodes.Fixed, value: Any, path: str, coercion: Coercion) -> Any:
    value = _unpack(value, list, coercion)
    if not isinstance(value, list) or len(value) != len(node.items):
        return coercion.report_mismatch(node, value, path)
    pairs = enumerate(zip(node.items, value, strict=True))
    return [_COERCE[type(kind)](kind, each, item(path, n), coercion) for n, (kind, each) in pairs]


def _mapping(node: nodes.Mapping, value: Any, path: str, coercion: Coercion) -> Any:
    value = _unpack(value, dict, coercion)
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
    value = _unpack(value, dict, coercion)
    if not isinstance(value, dict):
        return coercion.report_mismatch(node, value, path)
    coerced = dict(value)
    # Outside a union msgspec accepts an object without its tag.
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
    return _check_undeclared(node, coerced, path, coercion)


def _check_undeclared(
    node: nodes.Record, coerced: dict[str, Any], path: str, coercion: Coercion
) -> dict[str, Any]:
    """Remove or report the keys that the record does not declare."""
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
    value = _unpack(value, list, coercion)
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
        value = _unpack(value, list if kinds == {"array"} else dict, coercion)
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
    """Coerce *value* to the member that fits best; if none fits, the result has the problems."""
    # A lenient coercion may choose another member.
    key = (id(node), id(value), coercion.lenient)
    if key in coercion.union_attempts:
        return coercion.union_attempts[key]
    attempts: list[MemberAttempt] = []
    possible = candidates(node, value)
    for lenient in (False, True) if coercion.lenient and coercion.texts.left > 0 else (False,):
        if not all(attempt.coercion.problems for attempt in attempts):
            break
        if lenient and (inside := unpack(value, coercion)) is not value:
            # Once for all members, so that nested text does not take exponential time.
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
    # Not for scalars: they are quick to coerce, and the same object may occur at several paths.
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
