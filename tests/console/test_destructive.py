"""A destructive tool in the console: never opened unasked, never called without a question."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Server, serving
from tests.console.acting import Person
from tests.widgets.browser_driver import Browser

WAREHOUSE = """
from typing import Literal
from answerback import App

app = App("warehouse")
wiped = []

@app.tool(destructive=True, tags=["admin"])
def wipe(confirm: Literal["yes, all of it"]) -> str:
    wiped.append(confirm)
    return "wiped"

@app.tool(tags=["admin"])
def order(item: str = "pens") -> str:
    return f"ordered {item}"

@app.tool(read_only=True, tags=["stock"])
def times_wiped() -> dict[str, int]:
    return {"times": len(wiped)}

app.run()
"""
ONLY_DESTRUCTIVE = """
from answerback import App

app = App("shredder")

@app.tool(destructive=True)
def shred() -> str:
    return "shredded"

app.run()
"""


@pytest.fixture
def server(tmp_path: Path) -> Iterator[Server]:
    (tmp_path / "warehouse.py").write_text(WAREHOUSE)
    with serving(tmp_path / "warehouse.py") as started:
        yield started


@pytest.fixture
def person(browser: Browser, server: Server) -> Iterator[Person]:
    yield Person(browser, server.url)
    assert browser.errors() == []


def times_wiped(person: Person) -> object:
    person.choose("times_wiped")
    person.press("Call")
    person.reads("All 3 wires send the same data.")
    return json.loads(person.browser.run("document.querySelector('.wire .json').innerText"))


def test_the_console_opens_a_tool_that_only_reads(person: Person) -> None:
    assert person.browser.run("document.querySelector('.detail h2').innerText") == "times_wiped"


def test_a_lone_destructive_tool_is_not_opened(browser: Browser, tmp_path: Path) -> None:
    (tmp_path / "shredder.py").write_text(ONLY_DESTRUCTIVE)
    with serving(tmp_path / "shredder.py") as started:
        person = Person(browser, started.url)

        assert person.reads("Choose a tool.", ".detail")
        assert not browser.run("document.querySelector('.call-form') && true")


def test_a_required_argument_with_one_value_is_chosen_by_the_user(person: Person) -> None:
    person.choose("wipe")
    assert person.browser.run("document.querySelector('#arguments-json').value") == "{}"
    person.press("Call wipe …")
    person.reads("required", ".field .problem")

    person.browser.choose("[data-path=confirm]", "yes, all of it")

    shown = person.browser.run("document.querySelector('#arguments-json').value")
    assert '"confirm": "yes, all of it"' in shown


@pytest.mark.parametrize("answer", ["Do not call", "Escape"])
def test_a_refused_question_calls_nothing(person: Person, answer: str) -> None:
    person.choose("wipe")
    person.browser.choose("[data-path=confirm]", "yes, all of it")
    person.press("Call wipe …")
    person.reads("Call wipe?", "dialog[open]")

    if answer == "Escape":
        person.browser.press("Escape")
    else:
        person.press(answer)

    person.no_longer_sees("dialog[open]")
    assert times_wiped(person) == {"times": 0}


def test_a_destructive_tool_is_called_after_one_question(person: Person) -> None:
    person.choose("wipe")
    person.browser.choose("[data-path=confirm]", "yes, all of it")
    person.press("Call wipe …")
    person.reads("Call wipe?", "dialog[open]")
    person.press("Call wipe", "dialog[open]")
    person.reads("The call succeeded")
    assert times_wiped(person) == {"times": 1}

    person.view("History")
    person.browser.click("tr:has(th:text-is('wipe')) >> role=button[name='Repeat']")
    person.reads("Call wipe?", "dialog[open]")
    person.press("Do not call")
    person.no_longer_sees("dialog[open]")
    assert times_wiped(person) == {"times": 1}
