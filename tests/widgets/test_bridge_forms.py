"""The bridge in a browser: a form of a widget, in a sandbox that does not allow forms."""

from __future__ import annotations

from tests.widgets.conftest import CONNECT, HostPage

FORM = '<form><input name="text" required><button>Add</button></form>'
SUBMITTED = """
const submitted = [];
document.forms[0].onsubmit = (event) => {
  event.preventDefault();
  submitted.push([event.target.text.value, event.submitter.textContent]);
};
"""
LATER = "new Promise((done) => setTimeout(() => done(submitted), 50))"


def show_form(host: HostPage, text: str) -> None:
    host.show(CONNECT + SUBMITTED, FORM)
    host.run(f"document.forms[0].text.value = {text!r}")


def test_a_click_on_the_button_submits_the_form_once(host: HostPage) -> None:
    show_form(host, "milk")

    host.browser.click("text=Add", "widget")
    host.until("submitted.length")

    assert host.run(LATER) == [["milk", "Add"]]


def test_a_form_that_is_not_valid_is_not_submitted(host: HostPage) -> None:
    show_form(host, "")

    host.browser.click("text=Add", "widget")

    assert host.run(LATER) == []
    assert host.run("document.activeElement.name") == "text"


def test_a_form_that_the_sandbox_allows_is_not_submitted_again(host: HostPage) -> None:
    show_form(host, "milk")
    # The browser of a host that allows forms raises the event itself.
    host.run(
        "document.forms[0].addEventListener('click', (event) => event.target.form"
        ".dispatchEvent(new SubmitEvent('submit', {cancelable: true, submitter: event.target})))"
    )

    host.browser.click("text=Add", "widget")

    assert host.run(LATER) == [["milk", "Add"]]


def test_a_click_that_the_page_prevents_submits_nothing(host: HostPage) -> None:
    show_form(host, "milk")
    host.run("document.forms[0].onclick = (event) => event.preventDefault()")

    host.browser.click("text=Add", "widget")

    assert host.run(LATER) == []
