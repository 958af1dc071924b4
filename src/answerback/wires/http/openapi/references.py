"""References among schemas: which are followed, and how they are renamed."""

from __future__ import annotations

import re
from collections.abc import Collection, Iterator
from typing import Any

Schema = dict[str, Any]

_UNFIT = re.compile(r"[^A-Za-z0-9._-]")


def used(start: Any, components: dict[str, Schema], root: str) -> dict[str, Schema]:
    """The components that *start* refers to under *root*, at any remove, by name in order."""
    waiting = list(_refs(start, root))
    found: set[str] = set()
    while waiting:
        name = waiting.pop()
        # What looks like a reference may stand in somebody's example.
        if name in components and name not in found:
            found.add(name)
            waiting.extend(_refs(components[name], root))
    return {name: components[name] for name in sorted(found)}


def free_name(name: str, taken: Collection[str]) -> str:
    """*name* as a component may have it, with a number where it is taken."""
    fit = _UNFIT.sub("_", name) or "Type"
    numbered = (f"{fit}_{number}" for number in range(2, len(taken) + 3))
    return next(each for each in (fit, *numbered) if each not in taken)


def _refs(node: Any, root: str) -> Iterator[str]:
    if isinstance(node, list):
        for item in node:
            yield from _refs(item, root)
    elif isinstance(node, dict):
        target = node.get("$ref")
        if isinstance(target, str) and target.startswith(root):
            yield target.removeprefix(root)
        for value in node.values():
            yield from _refs(value, root)
