"""Says in a few words what a tool takes, from its schema."""

from __future__ import annotations

from typing import Any

from ..tool import Tool

_FORMATS = {
    "date": ("date", "2026-01-31"),
    "date-time": ("date and time", "2026-01-31T12:00:00Z"),
    "time": ("time", "12:00:00"),
    "duration": ("duration", "PT1H30M"),
    "uuid": ("uuid", "00000000-0000-4000-8000-000000000000"),
    "decimal": ("decimal", "1.50"),
}
_TYPES = {
    "integer": ("integer", "1"),
    "number": ("number", "1.5"),
    "string": ("text", "text"),
    "boolean": ("yes/no", "yes"),
    "null": ("null", "null"),
    "object": ("object", "{}"),
}


def usage(tool: Tool) -> str:
    """The tool as it is called: `greet name=TEXT [times=INTEGER]`."""
    required = tool.input_schema.get("required", [])
    pairs = [
        pair if name in required else f"[{pair}]"
        for name, schema in tool.input_schema.get("properties", {}).items()
        for pair in [f"{name}={_placeholder(schema, tool.input_schema)}"]
    ]
    return " ".join([tool.name, *pairs])


def kind(schema: Any, root: dict[str, Any]) -> str:
    """What sort of value a schema describes."""
    schema = _resolved(schema, root)
    match schema:
        case {"const": value}:
            return _literal(value)
        case {"enum": values}:
            return " or ".join(map(_literal, values))
        case {"anyOf": options} | {"oneOf": options}:
            kinds = [word for option in options for word in kind(option, root).split(" or ")]
            return " or ".join(dict.fromkeys(word for word in kinds if word != "null"))
        case {"type": "array", "items": items} if items:
            return f"list of {kind(items, root)}"
        case {"type": "array"}:
            return "list"
        case {"contentEncoding": _}:
            return "text or @file"
        case {"type": "string"} if (form := _form(schema)) is not None:
            return _FORMATS[form][0]
        case {"type": str(name)} if name in _TYPES:
            return _TYPES[name][0]
    return "value"


def example(name: str, schema: Any, root: dict[str, Any]) -> str:
    """A value that could be given, as it is written in a shell."""
    schema = _resolved(schema, root)
    match schema:
        case {"examples": [value, *_]} | {"const": value} | {"enum": [value, *_]}:
            return _literal(value)
        case {"anyOf": [option, *_]} | {"oneOf": [option, *_]}:
            return example(name, option, root)
        case {"type": "array", "items": items} if items:
            one = example(name, items, root)
            return f"[{one}]" if one.startswith(("{", "[")) else one
        case {"contentEncoding": _}:
            return "@file"
        case {"type": "string"} if (form := _form(schema)) is not None:
            return _FORMATS[form][1]
        case {"type": "integer" | "number", "minimum": least}:
            return _literal(least)
        case {"type": str(word)} if word in _TYPES:
            return _TYPES[word][1]
    return name.lower()


def _form(schema: dict[str, Any]) -> str | None:
    """The form of a string, by its name or by the pattern of a type that has no such name."""
    if schema.get("format") in _FORMATS:
        return str(schema["format"])
    from ..types.scalars import form_of_pattern

    return form_of_pattern(schema.get("pattern"))


def _resolved(schema: Any, root: dict[str, Any]) -> Any:
    """The schema that a reference leads to; one that leads in a circle is an object."""
    for _ in range(10):
        if not isinstance(schema, dict) or "$ref" not in schema:
            return schema
        schema = root.get("$defs", {}).get(schema["$ref"].rpartition("/")[2], {})
    return {"type": "object"}


def _literal(value: Any) -> str:
    if isinstance(value, str):
        return value
    import msgspec

    return msgspec.json.encode(value).decode()


def _placeholder(schema: Any, root: dict[str, Any]) -> str:
    """One word for the usage, where a long choice would hide the rest."""
    words = kind(schema, root)
    if len(words) > 30:
        return "VALUE"
    # Values to choose from are written as they are given, kinds of value are not.
    chosen = isinstance(found := _resolved(schema, root), dict) and found.keys() & {"enum", "const"}
    options = words.split(" or ")
    return "|".join(options if chosen else [word.upper().replace(" ", "-") for word in options])
