"""Small things that a user of the client reads: names, versions, and what was wrong."""

from __future__ import annotations

import logging
import math
from typing import Any

import pytest
from tests.client.canned_server import command
from tests.client.conftest import SERVED
from tests.conftest import load_app, serving

from answerback import connect
from answerback.client import BadTarget, ConnectError

TEXT = {"content": [{"type": "text", "text": "hi"}]}


def test_the_log_names_the_server_that_sent_a_line_that_is_not_a_message(
    caplog: pytest.LogCaptureFixture,
) -> None:
    with (
        caplog.at_level(logging.WARNING, "answerback.client"),
        connect(command(call=TEXT, line="starting up")) as server,
    ):
        assert server.call("act").ok

    [record] = caplog.records
    assert "canned_server.py" in record.getMessage()
    assert "starting up" in record.getMessage()


def test_the_info_has_the_servers_name_and_a_version_that_reads_as_its_date() -> None:
    with connect(command()) as server:
        info = server.info

    assert info.name == "canned"
    assert str(info.version) == f"{info.version}" == "2025-11-25"
    assert info.version == "2025-11-25"
    assert info.version != "2026-07-28"
    assert info.version in {"2025-06-18", "2025-11-25"}
    assert info.version.name == "2025-11-25"


@pytest.mark.parametrize("number", [math.nan, math.inf, -math.inf])
@pytest.mark.parametrize("transport", ["memory", "rest"])
def test_an_argument_that_json_cannot_express_is_refused(number: float, transport: str) -> None:
    def replies(target: Any, **options: Any) -> list[Any]:
        with connect(target, **options) as server:
            return [
                server.call("wait", {"seconds": number}),
                server.call("wait", {"seconds": {"of": [0, number]}}),
            ]

    if transport == "rest":
        with serving(SERVED) as served:
            found = replies(served.url, transport="rest")
    else:
        found = replies(load_app(SERVED))

    assert [reply.error.code for reply in found] == ["INVALID_ARGUMENTS"] * 2
    assert [reply.error.details["may_have_run"] for reply in found] == [False, False]
    assert found[0].error.message.startswith("seconds: ")
    assert "not finite" in found[1].error.message


def test_an_argument_that_is_null_or_holds_the_word_is_sent() -> None:
    with connect(command(call=TEXT)) as server:
        assert server.call("act", x=None, text="null", number=1.5).ok


@pytest.mark.parametrize("target", [5, 1.5, object()])
def test_a_target_of_another_type_is_a_type_error_that_says_what_to_give(target: Any) -> None:
    with pytest.raises(TypeError, match="takes a command, a URL, an App"), connect(target):
        pass


@pytest.mark.parametrize("target", ["", [], [1], {"servers": 1}, "none.json"])
def test_a_target_that_cannot_be_understood_is_a_connect_error(target: Any) -> None:
    with pytest.raises(ConnectError) as raised, connect(target):
        pass

    assert isinstance(raised.value, BadTarget)
    assert isinstance(raised.value, ValueError)
    assert raised.value.code == "BAD_TARGET"
