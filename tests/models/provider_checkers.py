"""The published rules of the providers as checkers of what is sent, written apart from the code.

Sources, read on 2026-11-16:

- OpenAI: the guide on structured outputs, "Supported schemas"; `FunctionDefinition` of
  openai 3.49.0
- Anthropic: the guide on structured outputs, "JSON Schema limitations"; `transform_schema` of
  anthropic 2.8.0
- Gemini: `FunctionDeclaration` and `response_json_schema` in the types of google-genai 3.1.0
"""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator
from typing import Any

OPENAI_KEYWORDS = {
    *("type", "title", "description", "enum", "const", "anyOf", "properties", "required"),
    *("additionalProperties", "items", "$ref", "$defs", "format", "pattern", "multipleOf"),
    *("minimum", "maximum", "exclusiveMinimum", "exclusiveMaximum", "minItems", "maxItems"),
}
OPENAI_FORMATS = {
    *("date-time", "time", "date", "duration", "email"),
    *("hostname", "ipv4", "ipv6", "uuid"),
}
ANTHROPIC_KEYWORDS = {
    *("type", "title", "description", "enum", "const", "anyOf", "properties", "required"),
    *("additionalProperties", "items", "$ref", "$defs", "format", "minItems"),
}
GEMINI_KEYWORDS = {
    *("type", "title", "description", "enum", "anyOf", "properties", "required", "items"),
    *("additionalProperties", "prefixItems", "minItems", "maxItems", "minimum", "maximum"),
    *("$ref", "$defs", "format"),
}


def nodes(schema: Any) -> Iterator[dict[str, Any]]:
    """All schemas in a schema, its root first."""
    if not isinstance(schema, dict):
        return
    yield schema
    for keyword in ("properties", "$defs"):
        for each in schema.get(keyword, {}).values():
            yield from nodes(each)
    for keyword in ("anyOf", "prefixItems"):
        for each in schema.get(keyword, ()):
            yield from nodes(each)
    for keyword in ("items", "additionalProperties"):
        yield from nodes(schema.get(keyword))


def is_object(schema: dict[str, Any]) -> bool:
    return schema.get("type") == "object"


def openai_strict(schema: dict[str, Any]) -> Iterator[str]:
    if not is_object(schema) or "anyOf" in schema:
        yield "the root is no object"
    for each in nodes(schema):
        yield from (f"keyword {key}" for key in each.keys() - OPENAI_KEYWORDS)
        yield from closed_objects(each)
        if is_object(each) and set(each.get("required", ())) != set(each["properties"]):
            yield "not all properties are required"
        if "$ref" in each and len(each) > 1:
            yield "$ref has siblings"
        if each.get("format", "date") not in OPENAI_FORMATS:
            yield f"format {each['format']}"
        if re.search(r"\(\?[=!<]", each.get("pattern", "")):
            yield "look-around"
        yield from typed(each)
    yield from sizes(schema)


def sizes(schema: dict[str, Any]) -> Iterator[str]:
    enums = [len(each["enum"]) for each in nodes(schema) if "enum" in each]
    if sum(enums) > 1000:
        yield "more than 1,000 enum values"
    if sum(len(each.get("properties", ())) for each in nodes(schema)) > 5000:
        yield "more than 5,000 properties"


def closed_objects(schema: dict[str, Any]) -> Iterator[str]:
    if is_object(schema) and schema.get("additionalProperties") is not False:
        yield "additionalProperties is not false"
    if is_object(schema) and not isinstance(schema.get("properties"), dict):
        yield "an object without properties"


def typed(schema: dict[str, Any]) -> Iterator[str]:
    if not schema.keys() & {"type", "anyOf", "$ref", "enum", "const"}:
        yield "a value of any type"
    if schema.get("type") == "array" and not isinstance(schema.get("items"), dict):
        yield "an array without items"


def anthropic_strict(schema: dict[str, Any]) -> Iterator[str]:
    if not is_object(schema):
        yield "the root is no object"
    for each in nodes(schema):
        yield from (f"keyword {key}" for key in each.keys() - ANTHROPIC_KEYWORDS)
        yield from closed_objects(each)
        yield from typed(each)
        if each.get("format", "date") not in OPENAI_FORMATS | {"uri"}:
            yield f"format {each['format']}"
        if each.get("minItems", 0) > 1:
            yield "minItems above 1"
    if "$defs" in schema and any(recursive(schema, name) for name in schema["$defs"]):
        yield "recursion"


def recursive(schema: dict[str, Any], name: str) -> bool:
    seen: set[str] = set()
    waiting = [name]
    while waiting:
        for each in nodes(schema["$defs"][waiting.pop()]):
            found = each.get("$ref", "").rpartition("/")[2]
            if found == name:
                return True
            if found and found not in seen:
                seen.add(found)
                waiting.append(found)
    return False


def plain(schema: dict[str, Any]) -> Iterator[str]:
    """The rules for schemas that are not strict, of OpenAI and of Anthropic."""
    if not is_object(schema) or not isinstance(schema.get("properties"), dict):
        yield "the root is no object with properties"
    roots = ("anyOf", "oneOf", "allOf", "$ref")
    yield from (f"{key} at the root" for key in roots if key in schema)


def gemini(schema: dict[str, Any]) -> Iterator[str]:
    if not is_object(schema):
        yield "the root is no object"
    for each in nodes(schema):
        yield from (f"keyword {key}" for key in each.keys() - GEMINI_KEYWORDS)
        if "$ref" in each and len(each) > 1:
            yield "$ref has siblings"
        if not all(type(value) in (str, int, float) for value in each.get("enum", ())):
            yield "an enum of others than strings and numbers"
        for name in each.get("properties", ()):
            if not re.fullmatch(r"[A-Za-z_][A-Za-z0-9_]{0,63}", name):
                yield f"property {name}"
        if set(each.get("required", ())) - set(each.get("properties", ())):
            yield "requires a property that has no schema"


OPENAI_NAME = re.compile(r"[a-zA-Z0-9_-]{1,64}")
GEMINI_NAME = re.compile(r"[a-zA-Z_][a-zA-Z0-9_.-]{0,63}")


def _names(names: list[str], pattern: re.Pattern[str]) -> Iterator[str]:
    yield from (f"name {name}" for name in names if not pattern.fullmatch(name))
    if len(set(names)) < len(names):
        yield "a name twice"


def check_openai(tools: list[dict[str, Any]]) -> list[str]:
    functions = [each.get("function", each) for each in tools]
    return [*_names([each["name"] for each in functions], OPENAI_NAME)] + [
        f"{each['name']}: {fault}"
        for each in functions
        for fault in (openai_strict if each.get("strict") else plain)(each["parameters"])
    ]


def check_anthropic(tools: list[dict[str, Any]]) -> list[str]:
    faults = [*_names([each["name"] for each in tools], OPENAI_NAME)] + [
        f"{each['name']}: {fault}"
        for each in tools
        for fault in (anthropic_strict if each.get("strict") else plain)(each["input_schema"])
    ]
    strict = [each["input_schema"] for each in tools if each.get("strict")]
    objects = [node for schema in strict for node in nodes(schema) if is_object(node)]
    optional = sum(len(set(each["properties"]) - set(each["required"])) for each in objects)
    unions = sum(
        "anyOf" in each or isinstance(each.get("type"), list)
        for node in objects
        for each in node["properties"].values()
    )
    limits = {"strict tools": (len(strict), 20), "optional": (optional, 24), "unions": (unions, 16)}
    return faults + [name for name, (found, limit) in limits.items() if found > limit]


def check_gemini(tools: list[dict[str, Any]]) -> list[str]:
    return [*_names([each["name"] for each in tools], GEMINI_NAME)] + [
        f"{each['name']}: {fault}"
        for each in tools
        for fault in gemini(each["parametersJsonSchema"])
    ]


CHECKERS: dict[str, Callable[[list[dict[str, Any]]], list[str]]] = {
    "openai": check_openai,
    "openai_responses": check_openai,
    "anthropic": check_anthropic,
    "gemini": check_gemini,
}
