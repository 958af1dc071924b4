"""Says in a few words what a tool takes, from its schema."""

from __future__ import annotations

from typing import Any

from ..tools.tool import Tool

_FORMS = {
    "date": "date",
    "date-time": "date and time",
    "time": "time",
    "duration": "duration",
    "uuid": "uuid",
    "decimal": "decimal",
}
_TYPES = {"string": "text", "boolean": "yes/no"}


def usage(tool: Tool) -> str:
    """The tool as it is called: `greet name=TEXT [times=INTEGER]`."""
    required = tool.input_schema.get("required", [])
    pairs = [
        pair if name in required else f"[{pair}]"
        for name, schema in tool.input_schema.get("properties", {}).items()
        for pair in [f"{name}={_placeholder(schema, tool.input_schema)}"]
    ]
    return " ".join([tool.name, *pairs])


def kind(schema: Any, root: dict[str, Any], *, told: bool = False) -> str:
    """What sort of value a schema describes; the members of an object are *told*, or are not."""
    schema = resolved(schema, root)
    match schema:
        case {"const": value}:
            return literal(value)
        case {"enum": values}:
            return " or ".join(map(literal, values))
        case {"anyOf": options} | {"oneOf": options}:
            kinds = " or ".join(kind(option, root, told=told) for option in options)
            return " or ".join(dict.fromkeys(w for w in kinds.split(" or ") if w != "null"))
        case {"type": "array"}:
            return _list(schema, root, told)
        case {"contentEncoding": _}:
            return "text or @file"
        case {"type": "string"} if (form := form_of(schema)) is not None:
            return _FORMS[form]
        case {"type": "object", "properties": members} if members and told:
            return f"object with {', '.join(members)}"
        case {"type": str(name)}:
            return _TYPES.get(name, name)
    return "value"


def _list(schema: dict[str, Any], root: dict[str, Any], told: bool) -> str:
    if schema.get("items"):
        return f"list of {kind(schema['items'], root, told=told)}"
    items = schema.get("prefixItems", ()) if told else ()
    return f"list of {', '.join(kind(item, root) for item in items)}" if items else "list"


def form_of(schema: dict[str, Any]) -> str | None:
    """The form of a string, by its name or by the pattern of a type that has no such name."""
    if schema.get("format") in _FORMS:
        return str(schema["format"])
    from ..types.scalars import format_of_pattern

    return format_of_pattern(schema.get("pattern"))


def resolved(schema: Any, root: dict[str, Any]) -> Any:
    """The schema that a reference leads to; one that leads in a circle is an object."""
    for _ in range(10):
        if not isinstance(schema, dict) or "$ref" not in schema:
            return schema
        schema = root.get("$defs", {}).get(schema["$ref"].rpartition("/")[2], {})
    return {"type": "object"}


def literal(value: Any) -> str:
    """The value as it is written in a shell."""
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
    chosen = isinstance(found := resolved(schema, root), dict) and found.keys() & {"enum", "const"}
    options = words.split(" or ")
    return "|".join(options if chosen else [word.upper().replace(" ", "-") for word in options])
