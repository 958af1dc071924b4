"""The bridge in a browser: refusals, and the prompt that is drawn for them."""

from __future__ import annotations

from typing import Any

import pytest
from tests.widgets.conftest import CONNECT, INITIALIZED, HostPage

LINK = "https://shop.example/plans?n=1"
REFUSAL = {
    "code": "SUBSCRIPTION_REQUIRED",
    "message": "This needs the plan <b>pro</b>.",
    "hint": "Choose a plan, then ask again.",
    "url": LINK,
    "feature": "pro",
}
PROMPT = "document.querySelector('[data-answerback=refusal]')"
ON_REFUSED = f"{CONNECT} const refused = []; app.onRefused((refusal) => refused.push(refusal));"
SHOWN = "document.querySelector('main').offsetHeight > 0"


def refuse(host: HostPage, refusal: dict[str, Any] = REFUSAL) -> None:
    host.show_result(isError=True, _meta={"answerback/refusal": refusal})


def test_a_refusal_is_drawn_as_an_alert_with_a_button(host: HostPage) -> None:
    host.show(body="<main>Loading</main>")

    refuse(host)

    host.until(PROMPT)
    assert host.browser.accessible("body", "widget").splitlines() == [
        "- alert:",
        '  - heading "A subscription is needed" [level=2]',
        "  - paragraph: This needs the plan <b>pro</b>.",
        "  - paragraph: Choose a plan, then ask again.",
        '  - button "See plans"',
    ]
    assert host.run("seen") == []


def test_the_button_of_the_prompt_opens_the_link_through_the_host(host: HostPage) -> None:
    host.answer("ui/open-link", result={})
    host.show()
    refuse(host)
    host.until(PROMPT)

    host.browser.click("button", "widget")

    assert host.wait_for("ui/open-link") == {"url": LINK}


def test_the_prompt_shows_the_address_if_the_host_does_not_open_it(host: HostPage) -> None:
    host.answer("ui/open-link", result={"isError": True})
    host.show()
    refuse(host)
    host.until(PROMPT)

    host.browser.click("button", "widget")

    assert host.until("document.querySelector('code')?.textContent") == LINK


def test_a_message_that_ends_with_the_link_is_drawn_without_it(host: HostPage) -> None:
    host.show()

    refuse(host, {"code": "LINK_REQUIRED", "message": f"Link one first: {LINK}", "url": LINK})

    host.until(PROMPT)
    assert host.browser.accessible("body", "widget").splitlines() == [
        "- alert:",
        '  - heading "Link an account to continue" [level=2]',
        "  - paragraph: Link one first.",
        '  - button "Link account"',
    ]


def test_after_the_link_the_user_can_try_the_call_again(host: HostPage) -> None:
    host.answer("ui/open-link", result={})
    host.answer("tools/call", result={"content": [], "structuredContent": {"balance": 1}})
    context = {"toolInfo": {"tool": {"name": "accounts"}}}
    host.answer("ui/initialize", result={**INITIALIZED, "hostContext": context})
    host.show()
    host.post("ui/notifications/tool-input", {"arguments": {"owner": "Bob"}})
    refuse(host)
    host.until(PROMPT)
    host.browser.click("text=See plans", "widget")

    host.browser.click("text=Try again", "widget")

    assert host.until("seen.length && seen[0].data") == {"balance": 1}
    assert host.wait_for("tools/call") == {"name": "accounts", "arguments": {"owner": "Bob"}}
    assert host.run(PROMPT) is None


def test_a_host_that_does_not_name_the_tool_offers_no_second_try(host: HostPage) -> None:
    host.answer("ui/open-link", result={})
    host.show()
    refuse(host)
    host.until(PROMPT)

    host.browser.click("text=See plans", "widget")

    host.wait_for("ui/open-link")
    assert host.run("document.querySelectorAll('button').length") == 1


@pytest.mark.parametrize("url", ["javascript:alert(1)", "data:text/html,x", "plans", 7, None])
def test_a_link_that_is_no_web_address_gets_no_button(host: HostPage, url: Any) -> None:
    host.show()

    refuse(host, {**REFUSAL, "url": url})

    host.until(PROMPT)
    assert host.run("document.querySelector('button')") is None


def test_the_prompt_takes_the_colors_of_the_host(host: HostPage) -> None:
    host.show()
    variables = {"--color-background-primary": "rgb(1, 2, 3)", "--color-text-primary": "#040506"}
    host.post("ui/notifications/host-context-changed", {"styles": {"variables": variables}})

    refuse(host)

    host.until(PROMPT)
    style = "(({backgroundColor, color}) => [backgroundColor, color])(getComputedStyle"
    assert host.run(f"{style}({PROMPT}))") == ["rgb(1, 2, 3)", "rgb(4, 5, 6)"]


def test_the_listener_of_the_author_replaces_the_prompt(host: HostPage) -> None:
    host.show(ON_REFUSED)

    refuse(host)

    assert host.until("refused.length && refused") == [REFUSAL]
    assert host.run(PROMPT) is None


def test_a_listener_that_comes_after_the_refusal_gets_it_and_removes_the_prompt(
    host: HostPage,
) -> None:
    host.show()
    refuse(host)
    host.until(PROMPT)

    host.run("{ window.late = []; app.onRefused((refusal) => late.push(refusal)); }")

    assert host.until("late.length && late") == [REFUSAL]
    assert host.run(PROMPT) is None


def test_the_author_can_draw_the_prompt_from_the_listener(host: HostPage) -> None:
    host.show(
        f"{CONNECT} app.onRefused((refusal) => app.showRefusal({{...refusal, hint: 'Mine.'}}));"
    )

    refuse(host)

    assert host.until(f"{PROMPT}?.textContent.includes('Mine.')")


def test_no_prompt_is_drawn_if_the_author_wants_none(host: HostPage) -> None:
    host.show(f"answerback.connect({{prompt: false}}); {CONNECT}")

    refuse(host)
    # The answer to a later request comes after the refusal was worked on.
    host.post("ping", {}, id=71)
    host.browser.until("received.some((one) => one.id === 71)")

    assert host.run(PROMPT) is None


def test_data_after_a_refusal_removes_the_prompt_and_shows_the_page_again(host: HostPage) -> None:
    host.show(body="<main style='display: block'>Accounts</main>")
    refuse(host)
    host.until(PROMPT)
    hidden = not host.run(SHOWN)

    host.show_result(structuredContent={"balance": 1})

    host.until("seen.length")
    assert hidden
    assert host.run(SHOWN)
    assert host.run(PROMPT) is None


def test_a_refusal_before_the_page_is_complete_hides_all_of_it(host: HostPage) -> None:
    openai = {"toolOutput": None, "toolResponseMetadata": {"answerback/refusal": REFUSAL}}
    host.show(f"{CONNECT}</script><main>Loading</main><script>", openai=openai)

    host.until(PROMPT)

    assert not host.run(SHOWN)


def test_data_before_the_page_is_complete_leaves_no_prompt(host: HostPage) -> None:
    openai = {"toolOutput": None, "toolResponseMetadata": {"answerback/refusal": REFUSAL}}
    change = "new CustomEvent('openai:set_globals', {detail: {globals: {toolOutput: {balance: 1}, "
    change += "toolResponseMetadata: {}}}})"
    host.show(f"{CONNECT}</script><script>dispatchEvent({change})", openai=openai)

    host.until("seen.length")

    assert host.run(PROMPT) is None


@pytest.mark.parametrize(
    ("meta", "code"),
    [
        ({"answerback/error": {"code": "NOT_FOUND"}}, "NOT_FOUND"),
        ({}, "TOOL_EXECUTION_ERROR"),
    ],
    ids=["with a code", "without"],
)
def test_a_failed_call_is_a_refusal_with_the_text_of_the_failure(
    host: HostPage, meta: dict[str, Any], code: str
) -> None:
    host.show(ON_REFUSED)

    host.show_result(isError=True, content=[{"type": "text", "text": "no account 7"}], _meta=meta)

    assert host.until("refused.length && refused") == [{"code": code, "message": "no account 7"}]


def test_a_failed_call_is_drawn_without_a_button(host: HostPage) -> None:
    host.show()

    host.show_result(isError=True, content=[{"type": "text", "text": "no account 7"}])

    host.until(PROMPT)
    assert host.browser.accessible("body", "widget").splitlines() == [
        "- alert:",
        '  - heading "This did not work" [level=2]',
        "  - paragraph: No account 7.",
    ]


def test_a_refusal_without_a_code_is_still_a_refusal(host: HostPage) -> None:
    host.show(ON_REFUSED)

    refuse(host, {})

    assert host.until("refused.length && refused") == [{"code": "REFUSED", "message": "REFUSED"}]


def test_a_cancelled_call_is_a_refusal(host: HostPage) -> None:
    host.show(ON_REFUSED)

    host.post("ui/notifications/tool-cancelled", {"reason": "The user stopped it."})

    expected = [{"code": "CANCELLED", "message": "The user stopped it."}]
    assert host.until("refused.length && refused") == expected


def test_a_refused_call_of_the_widget_is_drawn_above_its_page(host: HostPage) -> None:
    answer = {"content": [], "isError": True, "_meta": {"answerback/refusal": REFUSAL}}
    host.answer("tools/call", result=answer)
    host.show(body="<main>Accounts</main>")

    result = host.run("app.call('export', {})")

    assert result["error"] == REFUSAL
    assert host.run(f"{PROMPT}.dataset.code") == "SUBSCRIPTION_REQUIRED"
    assert host.run(SHOWN)


def test_a_failed_call_of_the_widget_draws_nothing(host: HostPage) -> None:
    failure = {"content": [{"type": "text", "text": "no account 7"}], "isError": True}
    host.answer("tools/call", result=failure)
    host.show()

    result = host.run("app.call('export')")

    assert result["error"] == {"code": "TOOL_EXECUTION_ERROR", "message": "no account 7"}
    assert host.run(PROMPT) is None
