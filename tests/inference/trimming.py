"""Trims recorded replies to what their types need: short texts, and few items of each list.

`python -m tests.inference.trimming` writes the replies that `make types` recorded, trimmed, to
`replies/`. The shapes are those of the servers; their longer texts are not kept.
"""

from __future__ import annotations

import json
import re
from pathlib import Path
from typing import Any

REPLIES = Path(__file__).with_name("replies")
MAX_ITEMS = 4
_KEPT = re.compile(r"[\w.:/+-]{0,24}|\d{4}-\d\d-\d\d[T ][\d:.]+([Z+-][\d:]*)?")
"""Words, dates and times."""


def trimmed(value: Any) -> Any:
    match value:
        case dict():
            return {name: trimmed(each) for name, each in value.items()}
        case list():
            return [trimmed(each) for each in value[:MAX_ITEMS]]
        case str():
            return _trimmed_text(value)
    return value


def _trimmed_text(text: str) -> str:
    if text[:1] in ("{", "["):
        try:
            return json.dumps(trimmed(json.loads(text)))
        except ValueError:
            pass
    return text if _KEPT.fullmatch(text) else f"text of {len(text)} characters"


def main() -> None:
    recorded = Path(__file__).parents[2] / ".ported" / "replies"
    REPLIES.mkdir(exist_ok=True)
    for file in sorted(recorded.glob("*.jsonl")):
        lines = [json.loads(line) for line in file.read_text().splitlines()]
        kept = (json.dumps(trimmed(line)) + "\n" for line in lines if not line["reply"]["isError"])
        (REPLIES / file.name).write_text("".join(kept))


if __name__ == "__main__":
    main()
