"""Checks data against a JSON Schema, with jsonschema-rs, in bounded time.

The cost of the schema and the data is estimated before each check.
"""

from __future__ import annotations

import marshal
import re
from collections.abc import Callable, Iterator
from functools import lru_cache, partial
from graphlib import CycleError, TopologicalSorter
from itertools import islice
from math import prod
from typing import Any

import msgspec

from ..core.secrets import is_secret_name, mask
from ..errors import needs_extra
from .schema_references import path_to

with needs_extra("lint"):
    import jsonschema_rs


_MAX_CHECKS = 3_000_000
"""How many times schemas may be applied to values; each time takes about 50 nanoseconds."""
_MAX_SCHEMAS, _MAX_SCHEMA_VALUES, _MAX_LITERAL_VALUES, _MIN_FACTOR = 2_000, 20_000, 100, 1e-9
_MAX_PATTERNS = 10_000
"""The limit for all patterns: the sum of (characters plus 100) times (backslashes plus one)."""
_MAX_NUMBERS = 100_000
"""How many counts may be calculated: one for each schema at each depth of the data."""
_SLOW = 40
"""A slow keyword, such as `pattern`, counts as this many schemas."""
_BACKTRACKING = 60
"""How much slower a pattern with look-around or back-references is: it takes quadratic time."""
_BACKTRACKS = re.compile(r"\(\?(?!:)|\\[1-9kKgGRX]|[*+?}]\+")
_FIRST_LOOKAHEADS = re.compile(r"\^(?:\(\?[=!][^()|]*\))+(?![*+?{])")
"""Look-aheads at the start, which are tried only once, as in patterns for e-mail addresses."""
_REPEATS = re.compile(r"\{(?:\d{1,6},)?(\d{1,6}),?\}")
_MAX_REPEATS = 5_000
_SLOW_FORMATS = ("idn-hostname", "idn-email", "iri", "iri-reference")
_TEXT, _LONG_TEXT, _LONG_NUMBER, _USUAL_DEPTH = 16, 1_000, 1 << 64, 8
_BOUNDS = ("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum")
_SAME_VALUE = ("allOf", "anyOf", "oneOf", "not", "if", "then", "else")
_NAMES = ("required", "dependentRequired", "dependencies")
_ALL_BELOW: dict[str, Any] = {}
"""A schema for all nested values, which `uniqueItems` compares."""
_ALL_BELOW |= {"additionalProperties": _ALL_BELOW, "items": _ALL_BELOW}


class TooCostly(Exception):
    """The schema is not checked; the message says why."""

    def __init__(self, why: str = "") -> None:
        reason = f"the schema cannot be checked: {why}"
        super().__init__(reason if why else "the schema is too large to be checked")


class _Node(msgspec.Struct):
    """A schema; at most one of the schemas in a group applies to any one member or item."""

    weight: int
    same_value: list[int]
    """Indexes of the schemas that apply to the same value."""
    members: list[list[int]]
    items: list[list[int]]


class SchemaCost:
    """Counts how many schemas apply to how many values."""

    def __init__(self, root: dict[str, Any]) -> None:
        """Raise TooCostly if compiling the schema would take too long."""
        if sum(_values_by_depth(root)) > _MAX_SCHEMA_VALUES:
            raise TooCostly
        self._root = root
        self._schemas = [root]
        self._indexes = {id(root): 0}
        self._unevaluated: list[int] = []
        self._has_reference = self._has_inner_id = False
        # `_node` appends the schemas that it finds to the list.
        self._nodes = [self._node(schema) for schema in self._schemas]
        if self._has_reference and self._has_inner_id:
            raise TooCostly("references next to an inner $id are not followed")
        patterns = {str(each["pattern"]) for each in self._schemas if "pattern" in each}
        if sum((100 + len(each)) * (1 + each.count("\\")) for each in patterns) > _MAX_PATTERNS:
            raise TooCostly
        inner = {at: node.same_value for at, node in enumerate(self._nodes)}
        try:
            # Each index comes after those of the schemas for the same value.
            self._order = list(TopologicalSorter(inner).static_order())
        except CycleError:
            raise TooCostly("it contains itself") from None
        self._levels = [self._next_level([])]
        # The validator compiles the schemas next to `unevaluatedProperties` a second time.
        if sum(self._levels[0][each] for each in self._unevaluated) > _MAX_SCHEMAS:
            raise TooCostly
        self.has_choices = any("anyOf" in each or "oneOf" in each for each in self._schemas)
        most = max(map(self._schemas_at, range(_USUAL_DEPTH)))
        # Each bit of a long number counts as a value.
        self.small = 0 if any(self._levels[-1]) else _MAX_CHECKS // (8 * most)
        """Data of at most this many bytes is never too costly."""

    def checks(self, data: Any) -> tuple[int, int]:
        """Return how many times schemas apply, and how many values their errors would quote.

        Raises TooCostly if that would take too long. An error quotes a value and all values in it.
        """
        checks = quoted = above = 0
        for depth, count in enumerate(_values_by_depth(data)):
            schemas = self._schemas_at(depth)
            above += schemas
            checks += count * schemas
            quoted += count * above
            if checks > _MAX_CHECKS:
                raise TooCostly
        return checks, quoted

    def _schemas_at(self, depth: int) -> int:
        """Return the maximum number of schemas that apply to one value at this depth."""
        while len(self._levels) <= depth and any(self._levels[-1]):
            if len(self._levels) * len(self._nodes) > _MAX_NUMBERS:
                raise TooCostly
            self._levels.append(self._next_level(self._levels[-1]))
        return self._levels[depth][0] if depth < len(self._levels) else 0

    def _next_level(self, above: list[int]) -> list[int]:
        """Return how many schemas each schema applies to a value one level deeper.

        Without a level above, return how many it applies to its own value.
        """
        members, items = [0] * len(self._nodes), [0] * len(self._nodes)
        for at in self._order:
            node = self._nodes[at]
            for counts, groups in ((members, node.members), (items, node.items)):
                count = node.weight
                if above:
                    count = sum(max(above[each] for each in group) for group in groups)
                counts[at] = count + sum(counts[each] for each in node.same_value)
        # A value is an object or an array. Without `min`, counts could have thousands of digits.
        return [min(max(each), _MAX_CHECKS + 1) for each in zip(members, items, strict=True)]

    def _node(self, schema: dict[str, Any]) -> _Node:
        same_value = self._group(
            [
                *_several(schema, *_SAME_VALUE),
                *_named(schema, "dependentSchemas").values(),
                *_named(schema, "dependencies").values(),
                *self._target(schema),
            ]
        )
        patterns = _named(schema, "patternProperties")
        member_schemas: list[list[Any]] = [
            [*_named(schema, "properties").values(), schema.get("additionalProperties")],
            *([each] for each in patterns.values()),
            # Each member's name is matched against all patterns.
            *([{"pattern": each}] for each in patterns),
            [schema.get("propertyNames")],
            [schema.get("unevaluatedProperties")],
        ]
        item_schemas: list[list[Any]] = [
            _several(schema, "prefixItems", "items", "additionalItems"),
            [schema.get("contains")],
            [schema.get("unevaluatedItems")],
            # Comparing two values takes as long as four checks.
            *([_ALL_BELOW] for _ in range(4 if "uniqueItems" in schema else 0)),
        ]
        members = [found for each in member_schemas if (found := self._group(each))]
        items = [found for each in item_schemas if (found := self._group(each))]
        if "unevaluatedProperties" in schema or "unevaluatedItems" in schema:
            self._unevaluated.append(self._indexes[id(schema)])
            # The validator checks all of them three times, and looks up each member in them.
            groups = [[each] for each in same_value]
            members, items = 3 * (members + groups), 3 * (items + groups)
            same_value *= 3
        return _Node(_weight(schema), same_value, members, items)

    def _group(self, found: list[Any]) -> list[int]:
        """Return the schemas' indexes; `true`, `false` and malformed schemas have none."""
        schemas = [each for each in found if isinstance(each, dict)]
        for schema in schemas:
            if id(schema) not in self._indexes:
                self._indexes[id(schema)] = len(self._schemas)
                self._schemas.append(schema)
                self._notice_id(schema)
        if len(self._schemas) > _MAX_SCHEMAS:
            raise TooCostly
        return [self._indexes[id(each)] for each in schemas]

    def _target(self, schema: dict[str, Any]) -> list[Any]:
        if "$dynamicRef" in schema or "$recursiveRef" in schema:
            raise TooCostly("a dynamic reference is not followed")
        reference = schema.get("$ref")
        if not isinstance(reference, str):
            return []
        self._has_reference = True
        path = path_to(reference, self._root)
        if path is None:
            raise TooCostly(f"a reference to {reference[:200]} is not followed")
        for each in path:
            self._notice_id(each)
        # None if there is no such schema, which the validator reports.
        return path[-1:]

    def _notice_id(self, schema: Any) -> None:
        """Note an `$id` below the root: references there point elsewhere."""
        if isinstance(schema, dict) and schema is not self._root:
            self._has_inner_id |= any(isinstance(schema.get(each), str) for each in ("$id", "id"))


def _several(schema: dict[str, Any], *keywords: str) -> list[Any]:
    """Return all values of keywords that have one value or a list of them."""
    values = [schema[each] for each in keywords if each in schema]
    return [each for value in values for each in (value if isinstance(value, list) else [value])]


def _named(schema: dict[str, Any], keyword: str) -> dict[str, Any]:
    value = schema.get(keyword)
    return value if isinstance(value, dict) else {}


def _weight(schema: dict[str, Any]) -> int:
    """Return how many schemas this one counts as, for one value."""
    literals = [*_several(schema, "enum"), schema.get("const")]
    containers = [each for each in literals if isinstance(each, dict | list)]
    factor = schema.get("multipleOf")
    tiny = isinstance(factor, float) and abs(factor) < _MIN_FACTOR
    inner = sum(_values_by_depth(containers)) if containers else 0
    if tiny or inner > _MAX_LITERAL_VALUES:
        raise TooCostly
    names = sum(_values_by_depth([schema[each] for each in _NAMES if each in schema]))
    quick = len(literals) // 4 + 4 * inner + 4 * ("format" in schema)
    # Comparing a number with a fraction takes a microsecond.
    quick += _numbers(literals) * (4 if schema.get("type") == "integer" else _SLOW)
    slow = 0
    for bound in map(schema.get, _BOUNDS):
        is_long = isinstance(bound, int) and not -_LONG_NUMBER < bound < _LONG_NUMBER
        slow += is_long or isinstance(bound, float)
    slow += ("multipleOf" in schema) + ("contentMediaType" in schema) + bool(containers)
    slow += schema.get("format") in _SLOW_FORMATS
    pattern = _pattern_weight(str(schema["pattern"])) if "pattern" in schema else 0
    return names + quick + slow * _SLOW + pattern


def _numbers(value: Any) -> int:
    """Count the numbers in an `enum` or a `const`."""
    if isinstance(value, dict | list):
        return sum(map(_numbers, value.values() if isinstance(value, dict) else value))
    return isinstance(value, int | float) and not isinstance(value, bool)


def _pattern_weight(pattern: str) -> int:
    """Estimate how many states the pattern has: `{9}` makes nine copies of the part it repeats."""
    repeats = [max(1, int(each)) for each in _REPEATS.findall(pattern)]
    states = prod(repeats) if "){" in pattern else sum(repeats)
    lookarounds = pattern.count("(?=") + pattern.count("(?!") + pattern.count("(?<")
    weight = _SLOW * (1 + lookarounds) + len(pattern) // 4 + 2 * min(states, _MAX_REPEATS)
    start = _FIRST_LOOKAHEADS.match(pattern)
    if start and "|" not in pattern[start.end() :]:
        once = start[0].replace("(?=", "(?:").replace("(?!", "(?:")
        pattern = once + pattern[start.end() :]
    return weight * _BACKTRACKING if _BACKTRACKS.search(pattern) else weight


def _values_by_depth(data: Any) -> Iterator[int]:
    """Yield the number of values at each depth; long strings and numbers count as several."""
    level, names = [data], 0
    while level:
        count, names = len(level) + names // _TEXT, 0
        below: list[Any] = []
        for value in level:
            kind = type(value)
            if kind is dict:
                below.extend(value.values())
                is_long = max(map(len, value), default=0) >= _LONG_TEXT
                names += sum(map(len, value)) * (4 if is_long else 1)
            elif kind is list or kind is tuple:
                below.extend(value)
            elif kind is str:
                # Patterns take longest on long strings.
                count += len(value) // (_TEXT if len(value) < _LONG_TEXT else 4)
            elif kind is int and not -_LONG_NUMBER < value < _LONG_NUMBER:
                count += value.bit_length()
            elif kind is float and value and not 1 / _LONG_NUMBER < abs(value) < _LONG_NUMBER:
                count += _TEXT
        yield count
        level = below


_MAX_FAULTS = 5
_MAX_BYTES = 512 * 1024
_MAX_ERROR_CHECKS, _MAX_QUOTED = 10_000, 1_000_000
"""All errors are reported if there are at most this many checks and quoted values."""
_PATTERN_LIMITS = {"backtrack_limit": 1_000, "size_limit": 300_000}
_WITHOUT_REFERENCES = 2
"""The `marshal` version that writes equal strings in full every time."""
_MAX_MASKED, _MAX_MESSAGE = 4096, 1000
"""How many characters of an error message, which quotes data, are masked, and how many are kept."""

SchemaCheck = Callable[[Any], list[tuple[str, str]]]
"""Takes data, and returns the pointer and message of each schema violation."""


class BrokenSchema(ValueError):
    """A value is not a JSON Schema; the message says why."""


class CompiledSchema:
    """A schema to check values against; raises TooCostly if that would take too long."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._cost = SchemaCost(schema)
        self._validator: Any = jsonschema_rs.validator_for(
            schema,
            retriever=_refuse_reference,
            pattern_options=jsonschema_rs.FancyRegexOptions(**_PATTERN_LIMITS),
        )

    def errors(self, data: Any, most: int) -> list[Any] | None:
        """Return the first errors from jsonschema-rs; an empty list for valid data.

        None means that the data is invalid, but finding out why would take too long.
        """
        validator, cost = self._validator, self._cost
        try:
            # With `marshal`, because JSON is slow for long numbers.
            is_small = len(marshal.dumps(data, _WITHOUT_REFERENCES)) <= cost.small
        except ValueError:
            is_small = False
        if is_small and validator.is_valid(data):
            return []
        checks, quoted = cost.checks(data)
        if not is_small and validator.is_valid(data):
            return []
        try:
            if checks <= _MAX_ERROR_CHECKS and quoted <= _MAX_QUOTED:
                return list(islice(validator.iter_errors(data), most))
            # An `anyOf` error holds all errors from all its schemas.
            if not cost.has_choices:
                validator.validate(data)
        except jsonschema_rs.ValidationError as exc:
            return [exc]
        except ValueError:
            # The data is nested too deeply for a message that quotes it.
            pass
        return None


def compile_schema(schema: dict[str, Any]) -> CompiledSchema:
    """Compile a schema for checks; raises BrokenSchema or TooCostly. Needs the `lint` extra."""
    try:
        encoded = msgspec.json.encode(schema, order="sorted")
    except RecursionError:
        raise TooCostly from None
    except (TypeError, ValueError) as exc:
        raise BrokenSchema(f"it is not JSON: {exc}") from None
    if len(encoded) > _MAX_BYTES:
        raise TooCostly
    found = _compiled(encoded)
    if isinstance(found, CompiledSchema):
        return found
    raise found.with_traceback(None)


def schema_check(schema: dict[str, Any]) -> SchemaCheck:
    """Return a function that checks data against *schema*; needs the `lint` extra.

    The check takes bounded time; for a schema that is too costly, the only violation says so.
    """
    try:
        compiled = compile_schema(schema)
    except TooCostly as exc:
        violation = ("", str(exc))
    except BrokenSchema as exc:
        violation = ("", f"the output schema itself is broken: {exc}")
    else:
        return partial(_violations, compiled)
    return lambda _: [violation]


@lru_cache(maxsize=256)
def _compiled(encoded: bytes) -> CompiledSchema | Exception:
    """Return the schema, or the reason it cannot be used; reasons are cached too."""
    try:
        return CompiledSchema(msgspec.json.decode(encoded))
    except TooCostly as exc:
        return exc
    except (ValueError, jsonschema_rs.ReferencingError) as exc:
        reason = str(exc).partition("\n")[0]
        if reason.endswith('is not a "regex"'):
            reason += ", or a very large one"
        # The meta-schema has an `anyOf` for the allowed types.
        value, is_choice, _ = reason.partition(" is not valid under any of the schemas")
        reason = f"{value} is not allowed" if is_choice else reason
        steps = getattr(exc, "instance_path", None)
        return BrokenSchema(f"{reason} (at {_pointer(steps)})" if steps else reason)


def _refuse_reference(uri: str) -> Any:
    # The schema may come from an untrusted log: it must not cause network requests.
    raise ValueError(f"a reference to {uri} is not followed")


def _violations(compiled: CompiledSchema, data: Any) -> list[tuple[str, str]]:
    try:
        errors = compiled.errors(data, _MAX_FAULTS)
    except TooCostly as exc:
        return [("", str(exc))]
    if errors is None:
        return [("", "the data does not match the schema, but is too large to say where")]
    found = []
    for error in errors:
        if any(is_secret_name(str(step)) for step in error.instance_path):
            # The library's message quotes the value.
            message = f"it violates the schema's {error.schema_path[-1]!r}"
        else:
            message = shown_message(error)
        found.append((_pointer(error.instance_path), message))
    return found


def shown_message(error: Any) -> str:
    """Return the library's message, which quotes data; a long one is truncated and masked."""
    message: str = error.message
    if len(message) > _MAX_MESSAGE:
        message = mask(message[:_MAX_MASKED])[:_MAX_MESSAGE] + "…"
    return message


def _pointer(steps: list[Any]) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)
