"""Hostile output schemas, and data that they check: odd ones, and some that take long."""

from __future__ import annotations

import json
import random
from collections.abc import Callable
from typing import Any

from tests.attack.hostile_messages import Spoiler
from tests.fuzz.frames import encoded

_SCHEMAS: list[Any] = [
    {"type": "object", "properties": {"a": {"type": "integer", "minimum": 0, "multipleOf": 2}}},
    {"type": "object", "properties": {"a": {"items": {"enum": [1, "b", {"c": 2}]}}}},
    {"$ref": "#/$defs/a", "$defs": {"a": {"allOf": [{"$ref": "#/$defs/b"}]}, "b": {"not": {}}}},
    {"patternProperties": {"^(a|a)*$": {"type": "string"}}, "additionalProperties": False},
    {"properties": {"a": {"pattern": "^(a+)+$", "format": "date-time", "minLength": 10}}},
    {"$schema": "https://json-schema.org/draft/2020-12/schema", "$dynamicRef": "#x"},
    {"$ref": "file:///etc/passwd"},
    {"unevaluatedProperties": False, "anyOf": [{"properties": {"a": True}}, {"required": ["b"]}]},
]
_DATA: list[Any] = [{"a": 3}, {"a": ["b", {"c": 2}, 1.5]}, {"a": "a" * 40 + "!"}, {"result": [1]}]


def odd_schema(chance: random.Random) -> tuple[str, bytes, bytes]:
    """Return a malformed schema, and data."""
    schema = Spoiler(chance).malformed(json.loads(json.dumps(chance.choice(_SCHEMAS))))
    data = json.dumps(chance.choice(_DATA)).encode()
    return "an odd schema", encoded(schema).encode("utf-8", "replace"), data


def costly_schema(chance: random.Random) -> tuple[str, Callable[[], tuple[Any, Any]]]:
    """Return a function that builds a schema whose check takes long, and data."""
    name = chance.choice(list(_COSTLY))
    size = chance.choice([8, 20, 40, 300, 5_000, 50_000])
    return f"{name}, {size}", lambda: _COSTLY[name](size)


def _chain(length: int, link: Callable[[Any], Any]) -> Any:
    """A schema whose definitions refer to each other, the last to none."""
    defs = {f"d{at}": link({"$ref": f"#/$defs/d{at + 1}"}) for at in range(length)}
    return {"$ref": "#/$defs/d0", "$defs": {**defs, f"d{length}": {"type": "object"}}}


def _recursion(size: int) -> tuple[Any, Any]:
    data: Any = 1
    for _ in range(min(size, 150)):
        data = {"a": data}
    return {"properties": {"a": {"allOf": [{"$ref": "#"}, {"$ref": "#"}]}}}, data


_COSTLY: dict[str, Callable[[int], tuple[Any, Any]]] = {
    "allOf": lambda n: (_chain(n, lambda ref: {"allOf": [ref, ref]}), {}),
    "anyOf": lambda n: (_chain(n, lambda ref: {"anyOf": [ref, ref]}), {}),
    "oneOf": lambda n: (_chain(n, lambda ref: {"oneOf": [ref, {"not": ref}]}), {}),
    "a chain": lambda n: (_chain(n, lambda ref: {"allOf": [ref]}), {}),
    "recursion": _recursion,
    "an enum": lambda n: (
        {"properties": {"a": {"items": {"enum": [{"k": at} for at in range(n)]}}}},
        {"a": [{"k": -1}] * 2_000},
    ),
    "patterns": lambda n: (
        {"patternProperties": {f"^x{at}.*y$": True for at in range(n)}},
        {f"x{at}": 1 for at in range(1_000)},
    ),
    "uniqueItems": lambda n: (
        {"properties": {"a": {"uniqueItems": True}}},
        {"a": [{"k": at} for at in range(n)]},
    ),
    "an enum of fractions": lambda n: (
        {"properties": {"a": {"items": {"not": {"enum": [at + 0.5 for at in range(n)]}}}}},
        {"a": [0.25] * 3_000},
    ),
    "bounds of fractions": lambda n: (
        {"properties": {"a": {"items": {"minimum": 1e-300, "multipleOf": 0.5}}}},
        {"a": [1e300] * n},
    ),
    "a pattern that looks ahead": lambda n: (
        {"properties": {"a": {"items": {"not": {"pattern": "(?=[ab]*a.{60}c)d"}}}}},
        {"a": ["ab" * (n // 2)] * 100},
    ),
    "a pattern with many states": lambda n: (
        {"properties": {"a": {"items": {"not": {"pattern": "a[ab]{900}c"}}}}},
        {"a": ["ab" * 100] * n},
    ),
    "many errors": lambda n: (
        {"properties": {"a": {"items": {"type": "string"}}}},
        {"a": list(range(10 * n))},
    ),
    "more members": lambda n: (
        {"additionalProperties": False},
        {str(at): 1 for at in range(5 * n)},
    ),
}
