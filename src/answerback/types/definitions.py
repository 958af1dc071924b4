"""Which classes a schema defines once and refers to, and by what names."""

import re
from collections import Counter
from collections.abc import Sequence
from typing import Any

from . import nodes
from .nodes import Node


class Names:
    """The names of the classes in some trees; the same for the same trees, whatever their order.

    A class goes by its own name, or with its module where two share one.
    """

    def __init__(self, trees: Sequence[Node], *, name_all: bool) -> None:
        uses: Counter[Any] = Counter()
        for tree in trees:
            uses.update(_uses(tree))
        named = [annotation for annotation in uses if name_all or uses[annotation] > 1]
        short = Counter(map(_short_name, named))
        self._names: dict[Any, str] = {}
        for annotation in named:
            name = _short_name(annotation)
            self._names[annotation] = self._free(
                name if short[name] == 1 else _long_name(annotation)
            )

    def _free(self, name: str) -> str:
        number, free = 1, name
        while free in self._names.values():
            number += 1
            free = f"{name}_{number}"
        return free

    def of(self, record: nodes.Record) -> str | None:
        """The name of a record that is to be a definition."""
        return self._names.get(record.annotation)

    def all(self) -> set[str]:
        """Every name given."""
        return set(self._names.values())


def _uses(tree: Node) -> Counter[Any]:
    """How often each record is mentioned; one that leads back to itself counts twice."""
    uses: Counter[Any] = Counter()
    seen: set[int] = set()
    waiting = [tree]
    while waiting:
        node = waiting.pop()
        if isinstance(node, nodes.Record):
            uses[node.annotation] += 1
            if id(node) in seen:
                continue
            seen.add(id(node))
        waiting.extend(nodes.children(node))
    return uses


def _clean(name: str) -> str:
    return re.sub(r"[^A-Za-z0-9.]+", "_", name).strip("_")


def _short_name(annotation: Any) -> str:
    if isinstance(annotation, type):
        return _clean(annotation.__name__)
    # A filled-in generic: Box[int] is Box_int.
    return _clean(re.sub(r"[\w.<>]+\.", "", str(annotation)))


def _long_name(annotation: Any) -> str:
    if isinstance(annotation, type):
        return _clean(f"{annotation.__module__}.{annotation.__qualname__}")
    return _clean(str(annotation))


def describe_class(cls: Any) -> str | None:
    """The first paragraph of the class's own docstring, if its author wrote one."""
    text = cls.__dict__.get("__doc__")
    # dataclass and NamedTuple write the signature there.
    if not isinstance(text, str) or text.startswith(f"{cls.__name__}("):
        return None
    paragraph = text.strip().split("\n\n")[0]
    return " ".join(paragraph.split()) or None


def rename_refs(schema: Any, refs: dict[str, str]) -> Any:
    """The schema with its references replaced."""
    if isinstance(schema, list):
        return [rename_refs(each, refs) for each in schema]
    if not isinstance(schema, dict):
        return schema
    return {
        key: refs.get(value, value)
        if key == "$ref" and isinstance(value, str)
        else rename_refs(value, refs)
        for key, value in schema.items()
    }
