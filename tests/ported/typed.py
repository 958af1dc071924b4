"""`python -m tests.ported.typed [NAME…]` infers types from the replies of published servers.

For each server: the generated module type-checks, and every recorded reply fits its type. Failures,
and replies with only images, have no type.
"""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path

from tests.inference.judging import loaded, misfits, typed
from tests.ported.comparison import ENVIRONMENTS
from tests.ported.recordings import Recorded, record_all

from answerback.inference.recorded_replies import read_replies

_HEAD = f"{'server':34} replies  typed  tools  classes  mypy    fit"


def main(names: list[str]) -> int:
    folder = ENVIRONMENTS / "replies"
    folder.mkdir(parents=True, exist_ok=True)
    rows, faults = [_HEAD], 0
    for recorded in asyncio.run(record_all(names)):
        row, is_good = _typed(recorded, folder)
        rows.append(row)
        faults += not is_good
    sys.stdout.write("\n".join([*rows, ""]))
    return min(1, faults)


def _typed(recorded: Recorded, folder: Path) -> tuple[str, bool]:
    replies = folder / f"{recorded.name}.jsonl"
    module = folder / f"{recorded.name.replace('-', '_')}_types.py"
    replies.write_text("".join(f"{json.dumps(line)}\n" for line in recorded.lines))
    inferred = _run("-m", "answerback", "types", str(replies))
    module.write_text(inferred.stdout)
    mypy = _run("-m", "mypy", "--strict", "--config-file=", str(module))
    with replies.open("rb") as file:
        found = typed(read_replies(file, replies.name))
    problems = misfits(found, loaded(inferred.stdout)) if inferred.returncode == 0 else []
    fitting = len({each.place for each in found} - {each.partition(": ")[0] for each in problems})
    tools = len({line["tool"] for line in recorded.lines})
    classes = inferred.stdout.count("TypedDict)") + inferred.stdout.count("TypedDict(\n")
    row = (
        f"{recorded.package:34} {len(recorded.lines):7} {len(found):6} {tools:6} {classes:8}  "
        f"{'ok' if mypy.returncode == 0 else 'FAILED':6}  {fitting} of {len(found)}"
    )
    is_good = inferred.returncode == mypy.returncode == 0 and not problems
    if not is_good:
        sys.stderr.write("\n".join([inferred.stderr, mypy.stdout, *problems, ""]))
    return row, is_good


def _run(*command: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([sys.executable, *command], capture_output=True, text=True)


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))
