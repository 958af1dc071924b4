"""Whatever JSON goes in: the generated module is valid Python, and every value fits its type.

`ANSWERBACK_TYPES=5000` tries so many sets of replies.
"""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from hypothesis import HealthCheck, Phase, given, settings
from hypothesis import strategies as st
from tests.inference.judging import loaded, misfits

from answerback.inference.inferred_types import SeenReplies, module_source
from answerback.inference.recorded_replies import RecordedReply, ReplyData

# Shrinking takes minutes, and adds little: the values are small.
PHASES = [Phase.explicit, Phase.reuse, Phase.generate]
EXAMPLES = int(os.environ.get("ANSWERBACK_TYPES", "60"))
NAMES = st.sampled_from(
    [
        *("id", "name", "items", "children", "next", "list", "date", "Any", "class", "two words"),
        *("2024-01-01", "7", "a/b.py", "__x", "é", "", "'", '"', "\\", "\n", "GetReply", "None"),
    ]
) | st.text(max_size=5)
TEXTS = st.sampled_from(
    ["open", "done", "2024-02-30", "2024-02-29", "2024-01-01T00:00:00Z", "2024-01-01 10:00:00+0100"]
) | st.text(max_size=8)
SCALARS = (
    st.none() | st.booleans() | st.integers() | st.floats(allow_nan=False, allow_infinity=False)
) | TEXTS
JSON = st.recursive(
    SCALARS,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(NAMES, inner, max_size=5),
    max_leaves=25,
)
RECORDS = st.lists(st.fixed_dictionaries({"id": st.integers()}, optional={"n": JSON, "next": JSON}))
TOOLS = st.dictionaries(NAMES, st.lists(JSON | RECORDS, min_size=1, max_size=6), max_size=3)


def recorded(replies: dict[str, list[Any]]) -> list[RecordedReply]:
    return [
        RecordedReply(tool, ReplyData("data", value), "here")
        for tool, values in replies.items()
        for value in values
    ]


def generated(replies: dict[str, list[Any]], *, dataclasses: bool = False) -> str:
    seen = SeenReplies()
    for each in recorded(replies):
        seen.add(each)
    module = module_source(seen.types(), dataclasses=dataclasses)
    assert module_source(seen.types(), dataclasses=dataclasses) == module, "the second time"
    return module


@settings(
    max_examples=EXAMPLES,
    deadline=None,
    phases=PHASES,
    suppress_health_check=[HealthCheck.too_slow],
)
@given(TOOLS, st.booleans())
def test_every_value_fits_the_type_that_was_inferred_from_it(
    replies: dict[str, list[Any]], dataclasses: bool
) -> None:
    source = generated(replies, dataclasses=dataclasses)

    assert misfits(recorded(replies), loaded(source)) == []


@pytest.mark.slow
@settings(max_examples=20, deadline=None, suppress_health_check=[HealthCheck.too_slow])
@given(TOOLS)
def test_the_order_of_the_tools_does_not_change_the_module(replies: dict[str, list[Any]]) -> None:
    backwards = dict(reversed(replies.items()))

    assert generated(backwards) == generated(replies)


SAMPLES: list[dict[str, list[Any]]] = [
    {"tree": [{"name": "a", "children": [{"name": "b", "children": []}]}]},
    {"list": [{"value": 1, "next": {"value": 2, "next": None}}]},
    {"odd names": [{"class": 1, "two words": {"x": 1, "y": None}, "list": [1], "date": "x"}]},
    {"method of classes": [{"mro": "a", "b": 1}]},
    {"dates": [[{"day": f"2024-01-0{n}", "date": "2024-01-01T00:00:00Z"} for n in range(1, 9)]]},
    {"words": [[{"state": word} for word in ("open", "done", "sent") * 9]] * 6},
    {"union": [1, "x", None, [1, "y"], {"a": {"b": 1}, "c": True}, {"a": {"b": "z"}}]},
    {"free keys": [{"2024-01-01": {"n": 1, "m": 2}, "2024-01-02": {"n": 2.5, "m": 3}}]},
    {"not": [{"required": {"a": 1, "b": 2}}], "typed": [{"dict": {"a": 1, "b": 2}}]},
    {"x\nimport os": [{"a\nb": {"c": 1, "d": 2}}], "'''": [{'"': 1}], "7": [{"a": 1}]},
]


@pytest.mark.slow
def test_generated_modules_type_check(tmp_path: Path) -> None:
    for number, sample in enumerate(SAMPLES):
        for dataclasses in (False, True):
            name = f"generated_{number}_{'dataclasses' if dataclasses else 'dicts'}.py"
            source = generated(sample, dataclasses=dataclasses)
            (tmp_path / name).write_text(source)
            assert misfits(recorded(sample), loaded(source)) == []

    command = [sys.executable, "-m", "mypy", "--strict", "--config-file=", "."]
    checked = subprocess.run(command, cwd=tmp_path, capture_output=True, text=True)

    assert checked.stdout.splitlines()[-1].startswith("Success"), checked.stdout
