"""Questions of a server that the client has no handler for."""

from __future__ import annotations

import pytest
from tests.client.conftest import SERVED
from tests.conftest import load_app

from answerback import connect


@pytest.mark.parametrize("tool", ["greet", "think", "folders"])
def test_a_call_that_needs_a_handler_says_so_in_both_eras(tool: str, version: str) -> None:
    with connect(load_app(SERVED), version=version) as server:
        error = server.call(tool).error

    assert error is not None
    assert error.code == "INPUT_REQUIRED"
    assert "does not offer" in error.message


@pytest.mark.parametrize(
    ("tool", "option"), [("greet", "elicit"), ("think", "sample"), ("folders", "roots")]
)
def test_the_hint_names_the_option_of_connect(tool: str, option: str) -> None:
    with connect(load_app(SERVED), version="2026-07-28") as server:
        error = server.call(tool).error

    assert error is not None
    assert error.details["may_have_run"] is False
    assert error.hint == f"connect(…, {option}=…) answers the server's questions"


def test_an_answer_without_a_required_field_is_not_sent_as_accepted(
    caplog: pytest.LogCaptureFixture,
) -> None:
    wrong = {"name": "Ada"}

    with connect(load_app(SERVED), version="2026-07-28", elicit=lambda _: wrong) as server:
        error = server.call("greet").error

    assert error is not None
    assert error.code == "INPUT_REQUIRED"
    assert "the field 'value' is missing" in error.message
    assert "the field 'value' is missing" in caplog.text
