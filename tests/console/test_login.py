"""Logging in to the console, and the refusals of gates."""

from __future__ import annotations

from collections.abc import Iterator
from pathlib import Path

import pytest
from tests.conftest import Server, serving
from tests.console.acting import Person
from tests.widgets.browser_driver import Browser

GUARDED = Path(__file__).with_name("guarded.py")


@pytest.fixture(scope="module")
def server() -> Iterator[Server]:
    with serving(GUARDED, "--dev-auth") as started:
        yield started


@pytest.fixture
def person(browser: Browser, server: Server) -> Iterator[Person]:
    yield Person(browser, server.url)
    assert browser.errors() == []
    browser.run("sessionStorage.clear()")


# The page asks for a task's result before the task ends, and for its state meanwhile. With this
# script the result comes after the page has read that the task is completed.
LATE_RESULT = """
const send = window.fetch;
let release;
const completed = new Promise((resolve) => { release = resolve; });
window.fetch = async (address, options = {}) => {
  const { method } = JSON.parse(options.body || "{}");
  if (method === "tasks/result") await completed;
  const answer = await send(address, options);
  const isGet = method === "tasks/get";
  if (isGet && (await answer.clone().text()).includes('"completed"')) setTimeout(release, 100);
  return answer;
};
"""


def log_in(person: Person, user: str, scopes: str = "") -> None:
    person.press("Log in", "header")
    person.fill("User", user)
    person.fill("Scopes", scopes)
    person.press("Log in with a test token")
    person.reads(f"Logged in: {user}", "header")
    person.sees(".list li")


def test_a_gate_shows_its_refusal_and_a_test_token_lets_the_call_through(person: Person) -> None:
    person.choose("balance")
    person.reads("scope accounts:read", ".marks")
    person.press("Call")
    person.reads("LOGIN_REQUIRED", ".refusal")
    person.press("Log in", ".refusal")
    assert person.browser.run("document.querySelector('#login-scopes').value") == "accounts:read"
    person.fill("User", "anna")
    person.press("Log in with a test token")
    person.reads("Logged in: anna", "header")
    person.choose("balance")
    person.press("Call")
    person.reads("anna has 7 EUR", ".wire")
    person.no_longer_sees(".refusal")


def test_a_test_token_and_its_user_outlive_a_reload_but_a_token_of_ones_own_does_not(
    person: Person, server: Server
) -> None:
    log_in(person, "anna")
    again = Person(person.browser, server.url)
    again.reads("Logged in: anna", "header")
    again.press("Logged in: anna", "header")
    assert again.browser.run("document.querySelector('#login-user').value") == "anna"

    token = again.browser.run("sessionStorage.getItem('answerback-test-token')")
    again.browser.fill("#login-token", token)
    again.press("Use this token")
    again.no_longer_sees("dialog[open]")
    again = Person(person.browser, server.url)
    again.reads("Log in", "header .login")
    assert again.browser.run("document.querySelector('header .login').innerText") == "Log in"


def test_a_test_token_that_the_server_no_longer_takes_is_forgotten(
    person: Person, server: Server
) -> None:
    person.browser.run("sessionStorage.setItem('answerback-test-token', 'a.b.c')")
    again = Person(person.browser, server.url)
    again.reads("Log in", "header .login")
    again.choose("rates")
    assert again.browser.run("sessionStorage.getItem('answerback-test-token')") is None


def test_a_token_without_the_scope_is_refused(person: Person) -> None:
    log_in(person, "bo")
    person.choose("balance")
    person.press("Call")
    assert "accounts:read" in person.reads("SCOPE_REQUIRED", ".refusal")


def test_logging_out_forgets_the_token(person: Person) -> None:
    log_in(person, "anna", "accounts:read")
    person.press("Logged in: anna", "header")
    person.press("Log out")
    person.reads("Log in", "header .login")
    person.choose("balance")
    person.press("Call")
    assert person.reads("LOGIN_REQUIRED", ".refusal")


def test_a_wrong_token_is_said_to_be_wrong(person: Person) -> None:
    person.press("Log in", "header")
    person.fill("Token or API key", "wrong")
    person.press("Use this token")
    assert person.reads("Log in to use this server")


@pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])
def test_a_page_to_visit_is_shown_with_its_host_and_not_opened(person: Person, era: str) -> None:
    log_in(person, "anna")
    person.choose("accounts")
    person.pick(f"MCP {era}")
    person.press("Call")
    person.reads("bank.example.com", ".question")
    target = person.browser.run("document.querySelector('.question a').href")
    assert target.startswith("https://bank.example.com/link?token=")
    person.press("Continue")
    person.reads("Open bank.example.com", ".refusal")


def test_the_tasks_of_a_user_are_listed_after_a_reload(person: Person, server: Server) -> None:
    log_in(person, "carla")
    person.choose("statement")
    person.press("Call")
    person.reads("The call succeeded")
    again = Person(person.browser, server.url)
    again.reads("Logged in: carla", "header")
    again.view("Tasks")
    again.sees(".task")
    assert again.reads("The statement of carla", ".task .wire")


def test_a_task_whose_result_comes_after_its_last_state_succeeded(person: Person) -> None:
    log_in(person, "dora")
    person.choose("statement")
    person.browser.run(LATE_RESULT)
    person.press("Call")
    assert "The statement of dora" in person.reads("The call succeeded")


def test_a_server_for_known_users_only_asks_for_a_login_first(
    browser: Browser, tmp_path: Path
) -> None:
    closed = tmp_path / "closed.py"
    closed.write_text(GUARDED.read_text().replace("anonymous=True", "anonymous=False"))
    with serving(closed, "--dev-auth") as started:
        person = Person(browser, started.url, shows=".login-page")
        person.fill("User", "anna")
        person.press("Log in with a test token")
        person.choose("rates")
        person.press("Call")
        assert person.reads("All 3 wires send the same data")
