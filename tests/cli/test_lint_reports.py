"""The formats in which `lint` reports its findings."""

from __future__ import annotations

import json
import re
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from answerback.rules.catalogue import RULES

from .recorded_replies import GOOD, HIDDEN, NO_CONTENT, NULLS

Run = Callable[..., Any]


def test_json_has_one_object_for_each_finding_and_line(answerback: Run, recorded: Run) -> None:
    recorded(GOOD, HIDDEN)

    done = answerback("lint", "--format", "json", "replies.jsonl")

    assert [json.loads(line) for line in done.stdout.splitlines()] == [
        {
            "file": "replies.jsonl",
            "line": 2,
            "rule": "AB201",
            "name": "error-hidden-in-text",
            "severity": "warning",
            "pointer": "/content/0/text",
            "message": "a failure without isError: 'Error: 401 Unauthorized'",
            "hint": "set isError: true, so that the model and its host know that the call failed",
        }
    ]


@pytest.mark.parametrize("lines", [(GOOD,), (HIDDEN, NO_CONTENT)])
def test_sarif_names_every_rule_and_every_finding(
    answerback: Run, recorded: Run, lines: tuple[str, ...]
) -> None:
    recorded(*lines)

    done = answerback("lint", "--format", "sarif", "replies.jsonl")

    (run,) = json.loads(done.stdout)["runs"]
    rules = run["tool"]["driver"]["rules"]
    assert [rule["id"] for rule in rules] == list(RULES)
    assert len(run["results"]) == (0 if lines == (GOOD,) else 3)
    for result in run["results"]:
        assert rules[result["ruleIndex"]]["id"] == result["ruleId"]
        place = result["locations"][0]["physicalLocation"]
        assert place["artifactLocation"]["uri"] == "replies.jsonl"
        assert place["region"]["startLine"] in (1, 2)


def test_sarif_messages_are_sentences(answerback: Run, recorded: Run) -> None:
    recorded(HIDDEN, NULLS)

    done = answerback("lint", "--format", "sarif", "replies.jsonl")

    texts = [each["message"]["text"] for each in json.loads(done.stdout)["runs"][0]["results"]]
    assert texts[0] == (
        "A failure without isError: 'Error: 401 Unauthorized'. "
        "Set isError: true, so that the model and its host know that the call failed."
    )
    assert texts[1:] == [
        "structuredContent is null. Leave out a member that has no value.",
        "_meta is null. Leave out a member that has no value.",
    ]


@pytest.mark.skipif(not Path("/dev/full").exists(), reason="there is no full device here")
def test_a_report_that_cannot_be_written_is_an_error(recorded: Run, tmp_path: Path) -> None:
    recorded(NO_CONTENT)

    with Path("/dev/full").open("wb") as full:
        done = subprocess.run(
            [sys.executable, "-m", "answerback", "lint", "replies.jsonl"],
            cwd=tmp_path,
            stdout=full,
            stderr=subprocess.PIPE,
            check=False,
        )

    assert done.returncode != 0
    assert b"No space left on device" in done.stderr
    assert b"cannot read" not in done.stderr


def test_a_terminal_shows_the_line_of_a_finding_with_carets(
    on_a_terminal: Run, recorded: Run
) -> None:
    recorded(GOOD, HIDDEN)

    done = on_a_terminal("lint", "replies.jsonl")

    plain = without_colours(done.stdout).splitlines()
    assert plain[0] == "replies.jsonl:2 warning AB201 error-hidden-in-text"
    shown, carets = plain[2], plain[3]
    assert shown[carets.index("^") : carets.rindex("^") + 1] == '"Error: 401 Unauthorized"'
    assert plain[-1] == "1 warning in 2 replies"


def test_control_characters_of_a_reply_do_not_reach_the_terminal(
    on_a_terminal: Run, recorded: Run
) -> None:
    recorded(json.dumps({"content": [{"type": "text", "text": "Error: \x1b[2J\x07 no"}]}))

    assert "\x1b[2J" not in on_a_terminal("lint", "replies.jsonl").stdout


def test_a_progress_bar_is_shown_for_a_long_file(on_a_terminal: Run, tmp_path: Path) -> None:
    line = json.dumps({"content": [{"type": "text", "text": "A line of prose. " * 5_000}]}) + "\n"
    (tmp_path / "long.jsonl").write_text(line * 260)

    seen = on_a_terminal("lint", "long.jsonl").stdout

    assert "long.jsonl ━" in without_colours(seen)
    assert without_colours(seen).rstrip().endswith("no findings in 260 replies")


def without_colours(text: str) -> str:
    return re.sub(r"\x1b\[[\d;?]*[A-Za-z]", "", text)


@pytest.mark.parametrize("form", ["text", "json", "sarif"])
def test_no_report_quotes_a_secret(form: str, answerback: Run, recorded: Run) -> None:
    secret = "hunter2-Zk3vQ9"
    key = "ghp_1a2B3c4D5e6F7g8H9i0J1k2L3m4N5o6P7q8R"
    text = {"type": "text", "text": f"no login with password={secret}"}
    recorded(
        json.dumps({"content": [text], "isError": True}),
        json.dumps({"content": [], "structuredContent": {key: f"Bearer {key}"}}),
    )

    done = answerback("lint", "--format", form, "replies.jsonl")

    assert "AB506" in done.stdout
    assert "AB505" in done.stdout
    assert secret not in done.stdout
    assert key not in done.stdout
