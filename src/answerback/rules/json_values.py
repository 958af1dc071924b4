"""Small words about JSON values, and where a fix finds them."""

from __future__ import annotations

from typing import Any


def kind(value: Any) -> str:
    """What sort of JSON value it is, for a sentence."""
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


def quoted(value: Any, most: int = 60) -> str:
    """A text in quotes, or any other value; of a long one the beginning."""
    if isinstance(value, str):
        return repr(value if len(value) <= most else value[: most - 1] + "…")
    shown = repr(value)
    return shown if len(shown) <= most else shown[: most - 1] + "…"


def block_at(found: dict[str, Any], pointer: str) -> dict[str, Any]:
    """The content block that a pointer such as `/content/0/data` leads into."""
    block: dict[str, Any] = found["content"][int(pointer.split("/")[2])]
    return block


def parent_of(found: Any, pointer: str) -> tuple[Any, str]:
    """What holds the value that *pointer* leads to, and its name there."""
    *path, name = [step.replace("~1", "/").replace("~0", "~") for step in pointer.split("/")[1:]]
    for step in path:
        found = found[int(step)] if isinstance(found, list) else found[step]
    return found, name
