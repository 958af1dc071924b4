from __future__ import annotations

import json
import sys
from collections.abc import Callable
from functools import cache
from pathlib import Path
from types import FrameType
from typing import Any

import jsonschema  # type: ignore[import-untyped]  # it ships no types
import pytest

SCHEMAS = Path(__file__).parents[2].parent / "shared" / "mcp-schemas"
"""The schemas of MCP; without them, results are not validated."""


@cache
def _validator(version: str) -> Any:
    schema = json.loads((SCHEMAS / f"{version}.json").read_bytes())
    definitions = "$defs" if "$defs" in schema else "definitions"
    kind = jsonschema.validators.validator_for(schema)
    return kind(schema | {"$ref": f"#/{definitions}/CallToolResult"})


def _validate(result: bytes, version: str) -> None:
    if SCHEMAS.is_dir():
        _validator(version).validate(json.loads(result))


@pytest.fixture(scope="session")
def validate_result() -> Callable[[bytes, str], None]:
    """Return a function that raises unless bytes are a CallToolResult of a version of MCP."""
    return _validate


def _modules_entered(work: Callable[[], object]) -> set[str]:
    entered = set()

    def note(frame: FrameType, event: str, _: object) -> None:
        if event == "call":
            entered.add(frame.f_globals["__name__"])

    before = sys.getprofile()
    sys.setprofile(note)
    try:
        work()
    finally:
        sys.setprofile(before)
    return {name for name in entered if name.startswith("answerback.")}


@pytest.fixture(scope="session")
def modules_entered() -> Callable[[Callable[[], object]], set[str]]:
    """Return a function that calls another and returns our modules whose functions ran."""
    return _modules_entered
