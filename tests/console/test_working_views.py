"""The views of questions, tasks, resources, prompts and logins: accessible, also when narrow."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from pathlib import Path

import pytest
from tests.conftest import Server, serving
from tests.console.acting import Person
from tests.widgets.browser_driver import Browser

HERE = Path(__file__).parent


@pytest.fixture(scope="module")
def bakery() -> Iterator[Server]:
    with serving(HERE / "working.py") as started:
        yield started


@pytest.fixture(scope="module")
def bank() -> Iterator[Server]:
    with serving(HERE / "guarded.py", "--dev-auth") as started:
        yield started


def a_question_with_progress_and_messages(person: Person) -> None:
    person.choose("bake")
    person.press("Call")
    person.sees(".question")
    person.sees(".activity .log")


def the_log(person: Person) -> None:
    a_question_with_progress_and_messages(person)
    person.view("Log")
    person.sees(".log")


def a_template(person: Person) -> None:
    person.view("Resources")
    person.choose("order")
    person.fill("customer", "An")
    person.sees(".examples")
    person.fill("number", "7")
    person.press("Read")
    person.sees(".content")


def a_prompt(person: Person) -> None:
    person.view("Prompts")
    person.choose("Describe a cake")
    person.fill("cake", "plum")
    person.press("Get")
    person.sees(".prompt-message")


def a_task(person: Person) -> None:
    person.choose("ferment")
    person.fill("days", "3")
    person.pick("Run as a task")
    person.press("Call")
    person.view("Tasks")
    person.sees(".task .question")


STATES: list[Callable[[Person], None]] = [
    a_question_with_progress_and_messages,
    the_log,
    a_template,
    a_prompt,
    a_task,
]


@pytest.mark.parametrize("colours", ["light", "dark"])
@pytest.mark.parametrize("show", STATES, ids=[state.__name__ for state in STATES])
def test_axe_finds_nothing_serious_while_an_app_works(
    browser: Browser, bakery: Server, show: Callable[[Person], None], colours: str
) -> None:
    person = Person(browser, bakery.url)
    browser.scheme(colours)
    show(person)
    found = {width: problems(browser, width) for width in (1280, 360)}
    browser.scheme("light")
    browser.viewport(640, 480)

    assert found == {1280: [], 360: []}


@pytest.mark.parametrize("colours", ["light", "dark"])
def test_axe_finds_nothing_serious_in_a_refusal_and_a_login(
    browser: Browser, bank: Server, colours: str
) -> None:
    person = Person(browser, bank.url)
    browser.scheme(colours)
    person.choose("balance")
    person.press("Call")
    person.sees(".refusal")
    refused = {width: problems(browser, width) for width in (1280, 360)}
    person.press("Log in", ".refusal")
    asked = {width: problems(browser, width) for width in (1280, 360)}
    browser.scheme("light")
    browser.viewport(640, 480)

    assert refused == asked == {1280: [], 360: []}


def problems(browser: Browser, width: int) -> list[str]:
    browser.viewport(width, 740)
    found = browser.axe("serious", "critical")
    if browser.run("document.documentElement.scrollWidth > innerWidth"):
        found.append("wider than the window")
    return found
