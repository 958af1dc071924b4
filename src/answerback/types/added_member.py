"""Whether a type has room for a member that is added after its values were checked."""

from __future__ import annotations

from typing import Any

from . import nodes
from .annotation_reader import read_type

_LIMITING = frozenset(
    {
        *("$ref", "$dynamicRef", "allOf", "anyOf", "oneOf", "not", "if", "const", "enum"),
        *("patternProperties", "propertyNames", "maxProperties", "unevaluatedProperties"),
        *("dependentSchemas", "dependentRequired"),
    }
)
"""The keywords by which a schema may refuse an object with one more member."""


def can_take_member(annotation: Any, name: str) -> bool:
    """Return whether the type is one class whose objects never have a member *name*."""
    match read_type(annotation):
        case nodes.Record(array=False, fields=fields, tag=tag):
            is_tag = tag is not None and tag[0] == name
            return not is_tag and all(each.json_name != name for each in fields)
        case nodes.Model() | nodes.Noted():
            from .json_schema import output_schema

            return _can_take(output_schema(annotation), name)
    return False


def _can_take(schema: dict[str, Any], name: str) -> bool:
    # Other members may be called anything.
    is_closed = schema.get("additionalProperties", False) is False
    return is_closed and _LIMITING.isdisjoint(schema) and name not in schema.get("properties", name)
