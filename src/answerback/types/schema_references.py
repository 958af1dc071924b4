"""Follows the references in a JSON Schema, and walks its schemas; never changes a schema.

Foreign schemas may be hostile: no function takes more than linear time, and references that leave
the document are not followed. An inner `$id`, which would change what references mean, is ignored.
Schemas are parsed JSON: dicts, lists and scalars.
"""

from __future__ import annotations

from collections.abc import Iterator, Mapping
from typing import Any
from urllib.parse import unquote

_MAX_CHARACTERS = 1_000
"""The maximum length of a reference, which also limits the steps of its pointer."""
_MAX_REFERENCES = 100
"""How many references in a row are followed; they may form a cycle."""


def path_to(reference: object, root: dict[str, Any]) -> list[Any] | None:
    """Return the values from *root* to the reference's target; the last is None if there is none.

    Return None for a reference that is too long or is not a JSON pointer into this document.
    """
    if not isinstance(reference, str) or len(reference) > _MAX_CHARACTERS:
        return None
    base, _, pointer = reference.partition("#")
    if base not in ("", str(root.get("$id", "")).rstrip("#")) or pointer[:1] not in ("", "/"):
        return None
    found: Any = root
    path = [found]
    for step in unquote(pointer).split("/")[1:]:
        name = step.replace("~1", "/").replace("~0", "~")
        if isinstance(found, dict):
            found = found.get(name)
        elif isinstance(found, list):
            # `schema_check` must find all that jsonschema-rs finds, which reads +1 and 01 as 1.
            digits = name.removeprefix("+")
            index = int(digits) if digits.isascii() and digits.isdecimal() else len(found)
            found = found[index] if index < len(found) else None
        else:
            found = None
        path.append(found)
    return path


def target(reference: object, root: dict[str, Any]) -> Any:
    """Return the value that a `$ref` in the document *root* points to, or None."""
    path = path_to(reference, root)
    return path[-1] if path else None


def follow(schema: Any, root: dict[str, Any]) -> dict[str, Any] | None:
    """Return the schema at the end of a chain of references; the keywords beside them are ignored.

    True becomes an empty schema. Return None for False, and if the chain leads to no schema.
    """
    for _ in range(_MAX_REFERENCES):
        if not isinstance(schema, dict):
            return {} if schema is True else None
        if "$ref" not in schema:
            return schema
        schema = target(schema["$ref"], root)
    return None


def same_value_schemas(
    schema: Any, root: dict[str, Any], unions: tuple[str, ...] = ("anyOf", "oneOf")
) -> Iterator[dict[str, Any]]:
    """Yield *schema* and the schemas for the same value that its references and unions lead to.

    Each is yielded once, however many references lead to it.
    """
    seen: set[int] = set()
    waiting = [schema]
    while waiting:
        each = waiting.pop()
        if each is True:
            each = {}
        if not isinstance(each, dict) or id(each) in seen:
            continue
        seen.add(id(each))
        yield each
        if "$ref" in each:
            waiting.append(target(each["$ref"], root))
        for union in unions:
            if isinstance(members := each.get(union), list):
                waiting += members


def alternatives(schema: Any, root: dict[str, Any]) -> Iterator[dict[str, Any]]:
    """Yield the schemas in a union, at any depth and by reference; a plain schema yields itself."""
    for each in same_value_schemas(schema, root):
        if not each.keys() & {"$ref", "anyOf", "oneOf"}:
            yield each


def inner_schemas(schema: Any) -> Iterator[dict[str, Any]]:
    """Yield all objects in *schema*, including itself; references are not followed."""
    waiting = [schema]
    while waiting:
        found = waiting.pop()
        if isinstance(found, dict):
            yield found
            waiting.extend(found.values())
        elif isinstance(found, list):
            waiting.extend(found)


def references(schema: Any) -> Iterator[str]:
    """Yield all references in *schema*."""
    for each in inner_schemas(schema):
        if isinstance(each.get("$ref"), str):
            yield each["$ref"]


def used_definitions(
    start: Any, definitions: Mapping[str, dict[str, Any]], prefix: str
) -> dict[str, dict[str, Any]]:
    """Return the definitions that *start* refers to, directly or indirectly, sorted by name.

    *prefix* is the part of a reference before the name.
    """
    waiting = [start]
    used: set[str] = set()
    while waiting:
        for each in references(waiting.pop()):
            name = each.removeprefix(prefix)
            # An author's example may have a "$ref" member that is not a reference.
            if name != each and name in definitions and name not in used:
                used.add(name)
                waiting.append(definitions[name])
    return {name: definitions[name] for name in sorted(used)}
