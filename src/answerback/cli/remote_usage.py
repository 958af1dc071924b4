"""A server's tools and prompts on the command line: their usage, and how arguments are read."""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Sequence
from typing import Any

import msgspec

from ..client.results import RemotePrompt, RemoteTool
from ..core.json_value import Json, JsonObject
from ..core.reply import Reply, failure
from .call_arguments import UnreadableArgument, read_content, read_value
from .program import printable_line
from .tool_help import usage_table

_MAX_CHOICES = 30


def tool_table(tools: Iterable[RemoteTool]) -> str:
    rows = [(_usage(tool), (tool.description or "").strip().partition("\n")[0]) for tool in tools]
    return usage_table(rows) if rows else "the server has no tools"


def _fields(tool: RemoteTool) -> JsonObject:
    schema = tool.input_schema if isinstance(tool.input_schema, dict) else {}
    found = schema.get("properties")
    return found if isinstance(found, dict) else {}


def _usage(tool: RemoteTool) -> str:
    schema = tool.input_schema if isinstance(tool.input_schema, dict) else {}
    required = schema.get("required") or ()
    words = [
        f"{name}={_type_word(field)}" if name in required else f"[{name}={_type_word(field)}]"
        for name, field in _fields(tool).items()
    ]
    return " ".join([tool.name, *words])


def _type_word(field: Json) -> str:
    match field:
        case {"enum": [*values]} if all(isinstance(each, str) for each in values):
            choices = "|".join(values)
            return choices if len(choices) <= _MAX_CHOICES else "TEXT"
    kind = _kind(field)
    return "TEXT" if kind == "string" else (kind or "VALUE").upper()


def _kind(field: Json) -> str | None:
    """Return a value's type, which may also be null; None if there are several or none."""
    match field:
        case {"type": str(kind)}:
            return kind
        case {"type": list(kinds)}:
            found = {each for each in kinds if isinstance(each, str)}
        case {"anyOf": list(branches)} | {"oneOf": list(branches)}:
            found = {str(each.get("type")) for each in branches if isinstance(each, dict)}
        case _:
            return None
    found.discard("null")
    return found.pop() if len(found) == 1 and "None" not in found else None


def prompt_usage(prompt: RemotePrompt) -> str:
    """Return how to fill in a prompt: `greet name=TEXT [style=TEXT]`."""
    given = prompt.arguments if isinstance(prompt.arguments, list | tuple) else ()
    words = [
        f"{each['name']}=TEXT" if each.get("required") else f"[{each['name']}=TEXT]"
        for each in given
        if isinstance(each, dict) and "name" in each
    ]
    return " ".join([prompt.name, *words])


def tool_help_text(tool: RemoteTool) -> str:
    schema = msgspec.json.format(msgspec.json.encode(tool.input_schema), indent=2).decode()
    parts = (printable_line(_usage(tool)), tool.description, schema)
    return "\n\n".join(each for each in parts if each)


def read_tool_arguments(
    tool: RemoteTool | None, pairs: Sequence[str], given: str | None, stdin: int
) -> JsonObject | Reply[Any]:
    """Read the arguments; a value is JSON if the schema allows more than a string."""
    found: JsonObject = {}
    if given is not None:
        try:
            found = msgspec.json.decode(read_content(given, stdin), type=dict[str, Any])
        except msgspec.DecodeError as exc:
            return failure(f"--json is not a JSON object: {exc}", "INVALID_JSON")
    fields = {} if tool is None else _fields(tool)
    return found | {name: _value(text, fields.get(name)) for name, text in read_pairs(pairs, stdin)}


def read_pairs(words: Sequence[str], stdin: int) -> Iterator[tuple[str, str]]:
    """Yield the name and the value of each word `name=value`."""
    for word in words:
        name, equals, text = word.partition("=")
        if not equals or not name:
            raise UnreadableArgument(f"{word!r} is not name=value")
        value = read_value(text, stdin)
        yield name, value if isinstance(value, str) else value.decode(errors="replace")


def _value(text: str, field: Json) -> Json:
    kind = _kind(field)
    if kind == "string":
        return text
    if kind == "boolean" and text.lower() in ("yes", "no", "on", "off"):
        return text.lower() in ("yes", "on")
    try:
        return msgspec.json.decode(text)
    except ValueError:
        pass
    return text.split(",") if kind == "array" else text
