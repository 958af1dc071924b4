"""Calls do not share a mutable default."""

from __future__ import annotations

import asyncio
import dataclasses
from typing import Any

import pytest

from answerback import App


@dataclasses.dataclass
class Box:
    items: list[int] = dataclasses.field(default_factory=list)


def _append(box: Any) -> int:
    target = box.items if isinstance(box, Box) else box.setdefault("a", []) if box == {} else box
    if isinstance(target, dict):
        target = target["a"]
    target.append(1)
    return len(target)


def _app() -> App:
    app = App("defaults")

    @app.tool
    def add_to_list(items: list[int] = []) -> int:  # noqa: B006 - the subject of the test
        return _append(items)

    @app.tool
    def add_to_dict(items: dict[str, list[int]] = {}) -> int:  # noqa: B006 - the same
        return _append(items)

    @app.tool
    def add_to_record(items: Box = Box()) -> int:  # noqa: B008 - the same
        return _append(items)

    return app


@pytest.mark.parametrize("tool", ["add_to_list", "add_to_dict", "add_to_record"])
def test_a_tool_that_changes_its_default_answers_each_call_the_same(tool: str) -> None:
    app = _app()

    answers = [asyncio.run(app.call(tool)).data for _ in range(3)]

    assert answers == [1, 1, 1]
