"""The cost of `validate` and `lint`, compared with jsonschema on the same replies."""

from __future__ import annotations

import io
import json
import time
from collections.abc import Callable
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it ships no types

from answerback import validate
from answerback.dialects.reply_schemas import dialect_schema
from answerback.rules.lint.linter import Linter, LintOptions
from answerback.rules.reports import LineReport

from .report import Figure

# The structured weather of seed 004.
WEATHER = {"temperature": 22.5, "conditions": "Partly cloudy", "humidity": 65}
REPLY: dict[str, Any] = {
    "content": [{"type": "text", "text": json.dumps(WEATHER, separators=(",", ":"))}],
    "structuredContent": WEATHER,
}
REPLIES = 2_000
ROUNDS = 5


def measure() -> list[Figure]:
    schema = dialect_schema("mcp")
    ours = _best(lambda: validate(REPLY), 3_000)
    theirs = _best(lambda: jsonschema.validate(REPLY, schema), 30)
    lint, loop = _best(lambda: _lint(_lines()), 1), _best(lambda: _loop(_lines(), schema), 1)
    per_reply = f"{lint / REPLIES * 1e6:.1f} µs a reply, the loop {loop / REPLIES * 1e6:.0f} µs"
    beside = f"{ours * 1e6:.1f} µs of {theirs * 1e6:.0f} µs"
    return [
        Figure("validate, in µs", ours * 1e6, 30, True, "an object of three members"),
        Figure("validate, of jsonschema.validate", ours / theirs, 0.2, True, beside),
        Figure("lint, times json and jsonschema", loop / lint, 5, False, per_reply),
    ]


def _best(work: Callable[[], object], number: int) -> float:
    """The CPU time of the work in seconds: the smallest of all rounds."""
    times = []
    for _ in range(ROUNDS):
        started = time.process_time()
        for _ in range(number):
            work()
        times.append((time.process_time() - started) / number)
    return min(times)


def _lines() -> io.BytesIO:
    return io.BytesIO((json.dumps(REPLY) + "\n").encode() * REPLIES)


def _lint(file: io.BytesIO) -> None:
    linter = Linter(LintOptions(), LineReport(io.BytesIO()))
    linter.lint("replies.jsonl", file, None, lambda _: None)
    assert linter.counts.replies == REPLIES
    assert linter.counts.by_severity.total() == 0


def _loop(file: io.BytesIO, schema: dict[str, Any]) -> None:
    """Checks each line with a validator that is made once."""
    validator = jsonschema.Draft202012Validator(schema)
    for line in file:
        assert not list(validator.iter_errors(json.loads(line)))
