"""What a server does besides replying: questions, progress, messages, tasks, resources, prompts."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Server, serving
from tests.console.acting import Person
from tests.widgets.browser_driver import Browser

WORKING = Path(__file__).with_name("working.py")
ERAS = ["2025-11-25", "2026-07-28"]


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(WORKING) as started:
        yield started


@pytest.fixture
def person(browser: Browser, server: Server) -> Iterator[Person]:
    yield Person(browser, server.url)
    assert browser.errors() == []


@pytest.mark.parametrize("era", ERAS)
def test_a_question_is_answered_where_the_call_was_made(person: Person, era: str) -> None:
    person.choose("bake")
    person.pick(f"MCP {era}")
    person.press("Call")
    person.reads("Which topping?", ".question")
    person.fill("name", "olives")
    person.browser.choose(".question select", "much")
    person.press("Answer")
    person.reads("A pizza with much olives", ".wire")
    assert person.no_longer_sees(".question")


def test_what_is_wrong_with_an_answer_stands_at_its_field_and_is_not_sent(person: Person) -> None:
    person.choose("bake")
    person.press("Call")
    person.reads("Which topping?", ".question")
    person.press("Answer")
    person.reads("required", ".question .problem")
    assert person.browser.run("document.activeElement.closest('.question') !== null")


def test_a_declined_question_is_said_to_the_tool(person: Person) -> None:
    person.choose("bake")
    person.press("Call")
    person.press("Decline", ".question")
    assert person.reads("The call failed")


@pytest.mark.parametrize("era", ERAS)
def test_progress_and_log_messages_are_shown_while_the_call_runs(person: Person, era: str) -> None:
    person.choose("bake")
    person.pick(f"MCP {era}")
    person.press("Call")
    person.reads("kneading · 3 of 10", ".progress")
    person.reads("The oven is hot", ".activity .log")
    assert person.browser.run("document.querySelector('progress').value") == pytest.approx(0.3)
    person.view("Log")
    assert "warning" in person.reads("The oven is hot", ".log")


def test_a_question_of_another_view_is_announced_and_leads_back(person: Person) -> None:
    person.choose("bake")
    person.press("Call")
    person.sees(".question")
    person.view("Prompts")
    person.reads("The server asks: Which topping?", ".other-questions")
    person.press("Answer", ".other-questions")
    assert person.sees(".detail .question")


@pytest.mark.parametrize("wire", ["REST", *(f"MCP {era}" for era in ERAS)])
def test_a_running_call_is_cancelled(person: Person, wire: str) -> None:
    person.choose("wait")
    person.pick(wire)
    person.press("Call")
    person.sees(".activity progress")
    person.press("Cancel")
    person.reads("The call was cancelled")
    assert person.no_longer_sees("progress")


def test_cancelling_withdraws_the_questions_of_a_call(person: Person) -> None:
    person.choose("bake")
    person.pick("MCP 2026-07-28")
    person.press("Call")
    person.sees(".question")
    person.press("Cancel")
    person.reads("The call was cancelled")
    assert person.no_longer_sees(".question")


def test_a_reply_is_fetched_after_the_server_closed_the_stream(person: Person) -> None:
    person.choose("deliver")
    person.pick("MCP 2025-11-25")
    person.press("Call")
    assert person.reads("delivered", ".wire")


@pytest.mark.parametrize("wire", ["REST", *(f"MCP {era}" for era in ERAS)])
def test_a_task_is_watched_and_answered_over_every_wire(person: Person, wire: str) -> None:
    person.choose("ferment")
    person.fill("days", "3")
    person.pick(wire)
    person.pick("Run as a task")
    person.press("Call")
    person.reads("Which yeast?", ".question")
    person.view("Tasks")
    person.reads("Waiting for an answer", ".task")
    person.fill("kind", "wild")
    person.press("Answer")
    person.reads("Completed", ".task .verdict")
    assert '"wild"' in person.reads("days", ".task .wire")
    person.view("Tools")
    person.reads("The call succeeded")
    assert person.browser.run("document.querySelector('.task-choice input').checked")


@pytest.mark.parametrize("wire", ["REST", *(f"MCP {era}" for era in ERAS)])
def test_a_task_is_cancelled(person: Person, wire: str) -> None:
    person.choose("mature")
    person.reads("This tool runs only as a task")
    person.pick(wire)
    person.press("Call")
    person.reads("turning", ".progress")
    person.view("Tasks")
    person.press("Cancel the task")
    person.reads("Cancelled", ".task .verdict")
    person.view("Tools")
    assert person.reads("The call was cancelled")


def test_a_tool_that_may_run_as_a_task_runs_without_one_unless_it_is_asked(person: Person) -> None:
    person.choose("ferment")
    person.fill("days", "1")
    person.pick("MCP 2026-07-28")
    person.press("Call")
    person.fill("kind", "wild")
    person.press("Answer")
    person.reads("The call succeeded")
    person.view("Tasks")
    assert person.reads("No tasks yet")


def test_a_task_is_found_by_its_id(person: Person, server: Server) -> None:
    person.choose("mature")
    person.pick("MCP 2025-11-25")
    person.press("Call")
    person.sees(".progress")
    person.view("Tasks")
    found = person.browser.until("document.querySelector('.task code')?.innerText")
    other = Person(person.browser, server.url)
    other.view("Tasks")
    other.browser.click("summary")
    other.fill("Id", "unknown")
    other.press("Find")
    other.reads("Unknown task", ".find-task")
    other.fill("Id", found)
    other.press("Find")
    other.reads("turning", ".task")
    other.press("Cancel the task")
    assert other.reads("Cancelled", ".task .verdict")


def test_a_resource_is_read(person: Person) -> None:
    person.view("Resources")
    person.choose("The menu")
    person.press("Read")
    assert '"bread": 4.5' in person.reads("bread", ".content")


def test_a_picture_is_shown_as_one(person: Person) -> None:
    person.view("Resources")
    person.choose("sign")
    person.press("Read")
    assert person.browser.until("document.querySelector('.content img')?.naturalWidth === 1")


@pytest.mark.parametrize("era", ERAS)
def test_a_template_is_filled_in_with_suggestions_and_read(person: Person, era: str) -> None:
    person.view("Resources")
    person.choose("order")
    person.pick(f"MCP {era}")
    person.fill("customer", "An")
    person.reads("Anton", ".examples")
    person.press("Anna Berg")
    person.fill("number", "7")
    person.reads("bakery://orders/Anna%20Berg/7", ".uri")
    person.press("Read")
    assert person.reads("Anna Berg ordered bread as number 7", ".content")


def test_an_unknown_resource_shows_the_error(person: Person) -> None:
    person.view("Resources")
    person.choose("order")
    person.fill("customer", "Bo")
    person.fill("number", "many")
    person.press("Read")
    assert person.sees(".reply [role=alert]")


def test_a_new_resource_appears_in_the_list(person: Person) -> None:
    person.choose("add_recipe")
    person.fill("name", "rye")
    person.press("Call")
    person.reads("The call succeeded")
    person.view("Resources")
    assert person.reads("rye", ".list")


@pytest.mark.parametrize("era", ERAS)
def test_a_prompt_is_filled_in_with_suggestions(person: Person, era: str) -> None:
    person.view("Prompts")
    person.choose("Describe a cake")
    person.pick(f"MCP {era}")
    person.press("Get")
    person.reads("required", ".problem")
    person.fill("cake", "c")
    person.reads("cherry", ".examples")
    person.press("carrot")
    person.press("Get")
    person.reads("Describe the cake carrot in a plain tone.", ".prompt-messages")
    person.reads("It is sweet.", ".prompt-message.assistant")
    assert person.browser.until("document.querySelector('.prompt-message img')?.naturalWidth === 1")


def test_a_prompts_question_is_answered_in_place(person: Person) -> None:
    person.view("Prompts")
    person.choose("order_form")
    person.press("Get")
    person.reads("How many?", ".question")
    person.browser.fill(".question input", "4")
    person.press("Answer")
    assert person.reads("Order 4 loaves.", ".prompt-messages")
