"""Checks data against a JSON Schema, with jsonschema-rs, in a bounded time."""

from __future__ import annotations

import marshal
from collections.abc import Callable
from functools import lru_cache, partial
from itertools import islice
from math import inf
from typing import Any

import msgspec

from ..core.secrets import is_secret_name, mask
from ..errors import needs_extra
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


class BrokenSchema(ValueError):
    """A value is not a JSON Schema; the message says why."""


class CompiledSchema:
    """A schema that values can be checked against; raises TooCostly if that takes too long."""

    def __init__(self, schema: dict[str, Any]) -> None:
        self._cost = SchemaCost(schema)
        self._validator: Any = jsonschema_rs.validator_for(
            schema,
            retriever=_refuse_reference,
            pattern_options=jsonschema_rs.FancyRegexOptions(**_PATTERN_LIMITS),
        )

    def errors(self, data: Any, most: int) -> list[Any] | None:
        """Return the first errors of jsonschema-rs, none for valid data.

        None means that the data is not valid, and that it takes too long to say why.
        """
        validator, cost = self._validator, self._cost
        is_small = _size(data) <= cost.small
        if is_small and validator.is_valid(data):
            return []
        checks, quoted = cost.checks(data)
        if not is_small and validator.is_valid(data):
            return []
        try:
            if checks <= _MAX_ERROR_CHECKS and quoted <= _MAX_QUOTED:
                return list(islice(validator.iter_errors(data), most))
            # The error of an `anyOf` holds all errors of all its schemas.
            if not cost.has_choices:
                validator.validate(data)
        except jsonschema_rs.ValidationError as exc:
            return [exc]
        except ValueError:
            # The data is nested too deeply for a message that quotes it.
            pass
        return None


def compile_schema(schema: dict[str, Any]) -> CompiledSchema:
    """Return the schema for checks; raise BrokenSchema or TooCostly. Needs the extra `lint`."""
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
    """Return a function that checks data against *schema*; needs the extra `lint`.

    Its work is bounded: the only violation of a schema that would take too long is that it is not
    checked.
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
    """Return the schema, or the reason why it cannot be used: reasons are kept too."""
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
        return [("", "the data breaks the schema; it is too large to say where")]
    return [_violation(each) for each in errors]


def _size(data: Any) -> float:
    """Return how many bytes data has; `marshal`, because JSON is slow for long numbers."""
    try:
        return len(marshal.dumps(data, _WITHOUT_REFERENCES))
    except ValueError:
        return inf


def _violation(error: Any) -> tuple[str, str]:
    path = _pointer(error.instance_path)
    if any(is_secret_name(str(step)) for step in error.instance_path):
        # The library's message quotes the value.
        return path, f"it breaks {error.schema_path[-1]!r} of the schema"
    return path, shown_message(error)


def shown_message(error: Any) -> str:
    """Return the library's message, which quotes data, without secrets and cut."""
    message: str = error.message
    if len(message) > _MAX_MESSAGE:
        message = mask(message[:_MAX_MASKED])[:_MAX_MESSAGE] + "…"
    return message


def _pointer(steps: list[Any]) -> str:
    return "".join(f"/{str(step).replace('~', '~0').replace('/', '~1')}" for step in steps)
