"""Clients get the tags of tools, resources and prompts in the lists."""

from __future__ import annotations

from typing import Any

import pytest

from answerback import App, connect

app = App("office")


@app.tool(tags={"write", "admin"}, meta={"example.org/owner": "ada"})
def erase() -> str:
    return "erased"


@app.tool
def hello() -> str:
    return "hello"


@app.resource("office://rooms", tags=["read"])
def rooms() -> str:
    return "two"


@app.prompt(tags=["read"])
def greet() -> str:
    return "Greet somebody."


@pytest.mark.parametrize(
    ("method", "expected"),
    [
        ("tools", [{"answerback/tags": ["admin", "write"], "example.org/owner": "ada"}, None]),
        ("resources", [{"answerback/tags": ["read"]}]),
        ("prompts", [{"answerback/tags": ["read"]}]),
    ],
)
def test_an_entry_is_listed_with_its_tags(method: str, expected: list[Any]) -> None:
    with connect(app) as server:
        listed = getattr(server, method)()

    assert [each.meta or None for each in listed] == expected
