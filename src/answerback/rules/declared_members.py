"""Which members of a reply's data the tool's output schema declares."""

from __future__ import annotations

from typing import Any

from ..dialects.verdicts import is_failure_json
from ..errors import MissingExtraError


def is_declared(data: Any, schema: dict[str, Any]) -> bool:
    """Return whether data keeps a schema that names the members that say that a call failed."""
    if not isinstance(data, dict):
        return False
    members: dict[str, Any] = data
    own: Any = schema
    if data.keys() == {"result"} and isinstance(data["result"], dict):
        properties = schema.get("properties")
        members = data["result"]
        own = properties.get("result") if isinstance(properties, dict) else None
    named = named_members(own, schema)
    others = {name: each for name, each in members.items() if name not in named}
    return not is_failure_json(others) and _keeps(data, schema)


def named_members(schema: Any, root: dict[str, Any]) -> set[str]:
    """Return the members that a schema of *root* names, also by reference or in a union."""
    names: set[str] = set()
    seen: set[int] = set()
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if not isinstance(each, dict) or id(each) in seen:
            continue
        seen.add(id(each))
        if isinstance(properties := each.get("properties"), dict):
            names |= properties.keys()
        for union in ("allOf", "anyOf", "oneOf"):
            if isinstance(options := each.get(union), list):
                waiting += options
        definitions = root.get("$defs")
        if isinstance(reference := each.get("$ref"), str) and isinstance(definitions, dict):
            waiting.append(definitions.get(reference.removeprefix("#/$defs/")))
    return names


def _keeps(data: Any, schema: dict[str, Any]) -> bool:
    """Return whether data keeps the schema; True without the extra that checks it."""
    try:
        from ..types.schema_check import schema_check

        return not schema_check(schema)(data)
    except MissingExtraError:
        return True
