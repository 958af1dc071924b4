"""Integers above 2^53 in the console: shown, compared and sent exactly."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Server, serving
from tests.console.acting import Person
from tests.widgets.browser_driver import Browser, chromium

LARGE = """
from typing import Annotated
from msgspec import Meta
from answerback import App

app = App("large")
calls = []

Large = Annotated[int, Meta(ge=-(2**62), le=2**63 - 1)]

@app.tool(read_only=True)
def send(n: Large = 9007199254740993) -> dict[str, object]:
    return {"n": n, "text": str(n), "more": [-n, 1e300]}

@app.tool(read_only=True)
def other_each_time() -> dict[str, int]:
    calls.append(1)
    return {"id": 2**53 + len(calls) % 2}

app.run()
"""
JSON = "document.querySelector('#arguments-json').value"


@pytest.fixture(scope="module")
def server(tmp_path_factory: pytest.TempPathFactory) -> Iterator[Server]:
    path: Path = tmp_path_factory.mktemp("large") / "large.py"
    path.write_text(LARGE)
    with serving(path) as started:
        yield started


@pytest.fixture
def person(browser: Browser, server: Server) -> Iterator[Person]:
    yield Person(browser, server.url)
    assert browser.errors() == []


def test_a_large_default_is_shown_exactly(person: Person) -> None:
    person.choose("send")
    field = "document.querySelector('[data-path=n]').placeholder"
    assert person.browser.run(field) == "default: 9007199254740993"
    assert "9223372036854775807" in person.reads("integer", ".field-type")


@pytest.mark.parametrize("typed", ["9007199254740995", "-9007199254740997"])
def test_a_large_integer_is_sent_and_shown_exactly_over_every_wire(
    person: Person, typed: str
) -> None:
    person.choose("send")
    person.fill("n", typed)
    assert f'"n": {typed}' in person.browser.run(JSON)
    person.press("Call")
    person.reads("All 3 wires send the same data.")

    shown = person.browser.run(
        "[...document.querySelectorAll('.wire .json')].map((each) => each.innerText)"
    )
    assert len(shown) == 3
    for text in shown:
        assert f'"n": {typed}' in text
        assert f'"text": "{typed}"' in text
    person.browser.click("role=tab[name='Code']")
    assert f"n={typed}" in person.reads("answerback", ".samples")


def test_a_large_integer_in_the_json_is_checked_by_the_schema(person: Person) -> None:
    person.choose("send")
    person.browser.fill("#arguments-json", '{"n": 9223372036854775808}')
    person.press("Call")
    assert person.reads("expected at most 9223372036854775807", ".field .problem")


def test_integers_that_differ_only_above_2_to_the_53_are_not_called_equal(person: Person) -> None:
    person.choose("other_each_time")
    person.press("Call")
    assert person.reads("The wires send different data")


def test_a_browser_that_rounds_integers_says_so(server: Server) -> None:
    with chromium() as old:
        old.before("delete JSON.rawJSON")
        person = Person(old, server.url)
        person.choose("send")
        person.press("Call")
        person.reads("This browser rounds integers above 9,007,199,254,740,991", ".reply")

        person.fill("n", "9007199254740995")
        person.press("Call")
        assert person.reads("this browser cannot send such a large integer", ".field .problem")
