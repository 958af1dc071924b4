"""The pytest plugin: `assert_valid_reply` and the fixture `answerback_client`."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

from answerback import Reply, failure, success, testing, validate
from answerback.testing import DisplayClient, assert_valid_reply

GOOD = {
    "success": True,
    "timestamp": "2026-01-31T12:00:00Z",
    "content": [{"type": "text", "text": "started"}],
}
BAD = {"success": False, "timestamp": "2026-01-31T12:00:00Z", "content": []}

SUITE = """
from answerback.testing import assert_valid_reply

GOOD = {good}

def test_good(answerback_client):
    assert_valid_reply(GOOD)
    answerback_client.process_response(GOOD)
    assert answerback_client.displayed_text == "started"

def test_bad(assert_valid_reply):
    assert_valid_reply({bad})
"""


@pytest.mark.parametrize(
    "reply", [GOOD, success("fine"), failure("no such city", code="NOT_FOUND")]
)
def test_a_valid_reply_passes(reply: object) -> None:
    assert_valid_reply(reply)

    assert [each for each in validate(reply) if each.severity != "note"] == []


def test_an_invalid_reply_fails_with_all_findings() -> None:
    with pytest.raises(AssertionError) as caught:
        assert_valid_reply(BAD)

    assert "Empty content array" in str(caught.value)
    assert "Error response missing error object" in str(caught.value)


@pytest.mark.parametrize(
    "reply",
    [
        {
            "success": False,
            "timestamp": "2026-01-31T12:00:00Z",
            "content": [{"type": "text", "text": "Error: no such instance"}],
            "error": {"code": "INSTANCE_NOT_FOUND", "message": "no such instance"},
        },
        failure("no such instance", code="INSTANCE_NOT_FOUND"),
    ],
    ids=["envelope", "Reply"],
)
def test_the_client_displays_a_failure_as_an_error(reply: object) -> None:
    client = DisplayClient()

    client.process_response(reply)

    assert client.displayed_error is True
    assert client.error_code == "INSTANCE_NOT_FOUND"
    assert "no such instance" in client.displayed_text


@pytest.mark.parametrize(
    "reply", [GOOD, Reply(data=7), b'{"content":[{"type":"text","text":"x"}]}']
)
def test_the_client_displays_a_success_without_an_error(reply: object) -> None:
    client = DisplayClient()

    client.process_response(reply)

    assert client.displayed_error is False
    assert client.error_code is None
    assert client.displayed_text


def test_a_client_without_a_reply_fails_with_advice() -> None:
    with pytest.raises(AssertionError, match="process_response"):
        _ = DisplayClient().displayed_text


def test_a_test_suite_can_use_the_plugin_and_sees_the_findings(tmp_path: Path) -> None:
    (tmp_path / "test_suite.py").write_text(SUITE.format(good=GOOD, bad=BAD))
    plain = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider"]

    done = subprocess.run([*plain, "."], cwd=tmp_path, capture_output=True, text=True, timeout=60)

    assert "1 failed, 1 passed" in done.stdout
    assert "Empty content array" in done.stdout


# pytest-flask and pytest-django define fixtures with these names.
OTHERS = """
import pytest

@pytest.fixture
def client():
    return "the client of another plugin"

@pytest.fixture
def context():
    return "the context of another plugin"
"""
USES_OTHERS = """
def test_others(client, context):
    assert client == "the client of another plugin"
    assert context == "the context of another plugin"
"""


def test_the_plugin_takes_no_fixture_name_of_another_plugin(tmp_path: Path) -> None:
    (tmp_path / "others.py").write_text(OTHERS)
    (tmp_path / "test_suite.py").write_text(USES_OTHERS)
    plain = [sys.executable, "-m", "pytest", "-p", "no:cacheprovider", "-p", "others"]
    # Our plugin and none of the others that are installed, which take a second to load.
    environ = {"PYTEST_DISABLE_PLUGIN_AUTOLOAD": "1", "PYTEST_PLUGINS": "answerback.testing"}

    done = subprocess.run(
        [*plain, "."],
        cwd=tmp_path,
        env=os.environ | environ,
        capture_output=True,
        text=True,
        timeout=60,
    )

    assert "1 passed" in done.stdout


def test_all_fixtures_of_the_plugin_have_names_of_their_own() -> None:
    names = {
        name
        for name in vars(testing)
        if type(vars(testing)[name]).__name__ == "FixtureFunctionDefinition"
    }

    assert names == {"answerback_client", "answerback_context", "_assert_valid_reply"}
