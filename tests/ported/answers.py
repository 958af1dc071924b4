"""An answer of a server, and the ways to compare the answers of two servers."""

from __future__ import annotations

import ast
import base64
import json
from collections.abc import Callable
from dataclasses import dataclass, field
from datetime import datetime, timedelta
from typing import Any


@dataclass
class Answer:
    """The result of one tool call, as the official client read it."""

    is_error: bool
    text: str
    data: Any = None
    meta: dict[str, Any] = field(default_factory=dict)

    @property
    def failed(self) -> bool:
        """Some servers say in their text alone that a call failed."""
        return self.is_error or self.text.startswith(("Error:", "Database error:"))


Compare = Callable[[Answer, Answer], bool]
"""Returns whether our answer, the second, has the information of theirs."""


@dataclass
class ToolCall:
    tool: str
    arguments: dict[str, Any]
    same: Compare | None = None
    """None: both calls must fail."""
    words: str = ""
    """The words that our error must have."""


def same_data(theirs: Answer, ours: Answer) -> bool:
    return bool(theirs.data == ours.data)


def same_text(theirs: Answer, ours: Answer) -> bool:
    return theirs.text.strip() == ours.text.strip()


def same_lines(theirs: Answer, ours: Answer) -> bool:
    """Each line of theirs is in ours; a text of ours may have more."""
    return set(map(str.strip, theirs.text.splitlines())) - {""} <= set(
        map(str.strip, ours.text.splitlines())
    )


def same_moment(theirs: Answer, ours: Answer) -> bool:
    """The two servers were asked one after the other."""
    apart = _time(ours) - _time(theirs)
    equal = ("timezone", "is_dst")
    return abs(apart) < timedelta(seconds=30) and all(
        theirs.data[key] == ours.data[key] for key in equal
    )


def _time(answer: Answer) -> datetime:
    return datetime.fromisoformat(answer.data["datetime"])


def same_rows(theirs: Answer, ours: Answer) -> bool:
    """Theirs is the text of Python objects, ours is JSON with bytes in base64."""
    return bool(_as_json(ast.literal_eval(theirs.text)) == ours.data["result"])


def same_change(theirs: Answer, ours: Answer) -> bool:
    return bool(ast.literal_eval(theirs.text) == [ours.data])


def same_names(theirs: Answer, ours: Answer) -> bool:
    names = [row["name"] for row in ast.literal_eval(theirs.text)]
    return bool(names == ours.data["result"])


def same_log(theirs: Answer, ours: Answer) -> bool:
    """The hashes, authors and messages of the commits, in the same order."""
    lines = theirs.text.splitlines()
    hashes = [line.removeprefix("Commit: ") for line in lines if line.startswith("Commit: ")]
    messages = [line.removeprefix("Message: ") for line in lines if line.startswith("Message: ")]
    commits = ours.data["result"]
    return [each["hash"] for each in commits] == hashes and [
        each["message"].splitlines()[0] for each in commits
    ] == messages


def _as_json(value: Any) -> Any:
    return json.loads(json.dumps(value, default=lambda raw: base64.b64encode(raw).decode()))
