"""Checks data against a tool's output schema, with jsonschema-rs, in a bounded time."""

from __future__ import annotations

import marshal
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import islice
from math import inf
from typing import Any

import msgspec

from ..core.secrets.mask import mask
from ..core.secrets.secret_names import is_secret_name
from ..errors import needs_extra
from .json_values import pointer_token
from .schema_cost import SchemaCost, TooCostly

with needs_extra("lint"):
    import jsonschema_rs

_MAX_FAULTS = 5
_MAX_BYTES = 512 * 1024
_MAX_ERROR_CHECKS, _MAX_QUOTED = 10_000, 1_000_000
"""How many checks may fail, and how many values their errors may quote, to report all errors."""
_PATTERN_LIMITS = {"backtrack_limit": 1_000, "size_limit": 300_000}
_WITHOUT_REFERENCES = 2
"""The version of `marshal` that writes equal texts each time."""
_MAX_MASKED, _MAX_MESSAGE = 4096, 1000
"""How many characters of an error message are masked, because it quotes data, and then shown."""

SchemaCheck = Callable[[Any], list[tuple[str, str]]]
"""Takes data, and returns the pointer and the message of each violation of the schema."""


def schema_check(schema: dict[str, Any]) -> SchemaCheck:
    """Return a function that checks data against *schema*; needs the extra `lint`.

    Its work is bounded: the only violation of a schema that would take too long is that it is not
    checked.
    """
    try:
        encoded = msgspec.json.encode(schema, order="sorted")
    except RecursionError:
        return _not_checked(TooCostly())
    return _compiled(encoded) if len(encoded) <= _MAX_BYTES else _not_checked(TooCostly())


@lru_cache(maxsize=256)
def _compiled(encoded: bytes) -> SchemaCheck:
    schema = msgspec.json.decode(encoded)
    try:
        cost = SchemaCost(schema)
        validator = jsonschema_rs.validator_for(
            schema,
            retriever=_refuse_reference,
            pattern_options=jsonschema_rs.FancyRegexOptions(**_PATTERN_LIMITS),
        )
    except TooCostly as exc:
        return _not_checked(exc)
    except (ValueError, jsonschema_rs.ReferencingError) as exc:
        reason = str(exc).partition("\n")[0]
        if reason.endswith('is not a "regex"'):
            reason += ", or a very large one"
        return lambda _: [("", f"the output schema itself is broken: {reason}")]
    return partial(_violations, validator, cost)


def _not_checked(reason: TooCostly) -> SchemaCheck:
    violation = ("", str(reason))
    return lambda _: [violation]


def _refuse_reference(uri: str) -> Any:
    # The schema may come from an untrusted log: it must not cause network requests.
    raise ValueError(f"a reference to {uri} is not followed")


def _violations(validator: Any, cost: SchemaCost, data: Any) -> list[tuple[str, str]]:
    is_small = _size(data) <= cost.small
    if is_small and validator.is_valid(data):
        return []
    try:
        checks, quoted = cost.checks(data)
    except TooCostly as exc:
        return [("", str(exc))]
    if not is_small and validator.is_valid(data):
        return []
    try:
        if checks <= _MAX_ERROR_CHECKS and quoted <= _MAX_QUOTED:
            return [_violation(each) for each in islice(validator.iter_errors(data), _MAX_FAULTS)]
        # The error of an `anyOf` holds all errors of all its schemas.
        if not cost.has_choices:
            validator.validate(data)
    except jsonschema_rs.ValidationError as exc:
        return [_violation(exc)]
    except ValueError:
        # The data is nested too deeply for a message that quotes it.
        pass
    return [("", "the data breaks the schema; it is too large to say where")]


def _size(data: Any) -> float:
    """Return how many bytes data has; `marshal`, because JSON is slow for long numbers."""
    try:
        return len(marshal.dumps(data, _WITHOUT_REFERENCES))
    except ValueError:
        return inf


def _violation(error: Any) -> tuple[str, str]:
    path = "".join(f"/{pointer_token(str(step))}" for step in error.instance_path)
    if any(is_secret_name(str(step)) for step in error.instance_path):
        # The library's message quotes the value.
        return path, f"it breaks {error.schema_path[-1]!r} of the schema"
    message: str = error.message
    if len(message) > _MAX_MESSAGE:
        message = mask(message[:_MAX_MASKED])[:_MAX_MESSAGE] + "…"
    return path, message
