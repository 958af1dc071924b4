"""Functions on decoded JSON: naming and quoting values, JSON pointers, walking a value."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any

from ..core.secrets import mask

# Only the beginning of a text is quoted; no secret that begins there is recognised by its end.
_MAX_MASKED = 4096


def kind_name(value: Any) -> str:
    """Return the kind of a JSON value, in words that fit into a message."""
    match value:
        case None:
            return "null"
        case bool():
            return "true or false"
        case str():
            return "text"
        case int() | float():
            return "a number"
        case list() | tuple():
            return "a list"
    return "an object"


def quoted(value: Any, limit: int = 60) -> str:
    """Return the `repr` of a value with its secrets masked, cut after *limit* characters.

    A text is masked before it is cut, because half a secret would not be recognised.
    """
    if isinstance(value, str):
        text = mask(value[:_MAX_MASKED])
        return repr(text if len(text) <= limit else text[: limit - 1] + "…")
    text = mask(repr(value))
    return text if len(text) <= limit else text[: limit - 1] + "…"


def pointer_token(name: str) -> str:
    """Return a member's name, escaped for use in a JSON pointer."""
    return name.replace("~", "~0").replace("/", "~1") if "~" in name or "/" in name else name


def block_at(reply: dict[str, Any], pointer: str) -> dict[str, Any]:
    """Return the content block that a pointer such as `/content/0/data` leads into."""
    block: dict[str, Any] = reply["content"][int(pointer.split("/")[2])]
    return block


def parent_of(value: Any, pointer: str) -> tuple[Any, str]:
    """Return the object or array that holds the value at *pointer*, and the value's name in it."""
    *path, name = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    for step in path:
        value = value[int(step)] if isinstance(value, list) else value[step]
    return value, name


def walk_strings(value: Any, pointer: str) -> Iterator[tuple[str, str]]:
    """Yield every string in *value* with its pointer, except the `blob` of a resource."""
    for at, each in walk_values(value, pointer):
        if isinstance(each, str):
            yield at, each


def walk_values(value: Any, pointer: str) -> Iterator[tuple[str, Any]]:
    """Yield *value* and every value in it with its pointer, except the `blob` of a resource."""
    waiting, seen = [(pointer, value)], set[int]()
    while waiting:
        pointer, value = waiting.pop()
        yield pointer, value
        # A value that Python code built may contain itself, which decoded JSON cannot.
        if id(value) in seen:
            continue
        if isinstance(value, dict | list | tuple):
            seen.add(id(value))
        if isinstance(value, dict):
            waiting += [
                (f"{pointer}/{pointer_token(str(name))}", each)
                for name, each in value.items()
                if name != "blob"
            ]
        elif isinstance(value, list | tuple):
            waiting += [(f"{pointer}/{index}", each) for index, each in enumerate(value)]
