"""The closed table of strings that are read as numbers, booleans, arrays and objects."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import time
from collections.abc import Iterator
from pathlib import Path
from typing import Any, Protocol

import pytest
from tests.apps.lenient import app, strict
from tests.forked import run as run_forked
from tests.wires import Failed, calls_over

from answerback import App

TARGET = Path(__file__).parent.parent / "apps" / "lenient.py"
REFUSED = "INVALID_ARGUMENTS"

READ: list[tuple[str, Any, str]] = [
    ("int", "7", "7"),
    ("int", " -7 ", "-7"),
    ("int", "7.0", "7"),
    ("float", "1.5", "1.5"),
    ("float", "1e3", "1000.0"),
    ("bool", "true", "True"),
    ("bool", "False", "False"),
    ("int-or-null", "null", "None"),
    ("int-or-null", "7", "7"),
    ("int-or-bool", "true", "True"),
    ("literal", "2", "2"),
    ("list", "[1, 2]", "[1, 2]"),
    ("list", ["1", "2"], "[1, 2]"),
    ("list", '["1"]', "[1]"),
    ("tuple", '["1", "true"]', "(1, True)"),
    ("dict", '{"a": "1"}', "{'a': 1}"),
    ("record", '{"x": "1"}', "Point(x=1)"),
    ("records", '[{"x": 1}]', "[Point(x=1)]"),
    ("model", '{"age": "3", "tags": "[\\"1\\"]"}', "User(age=3, tags=[1])"),
    ("model", {"age": "3", "tags": ["1"]}, "User(age=3, tags=[1])"),
]
KEPT: list[tuple[str, Any, str]] = [
    ("str", "7", "'7'"),
    ("str", "[1]", "'[1]'"),
    ("int-or-str", "7", "'7'"),
    ("strings", ["[1]"], "['[1]']"),
    ("anything", "7", "'7'"),
]
WRONG: list[tuple[str, Any]] = [
    ("int", "seven"),
    ("int", "1.5"),
    ("int", "+7"),
    ("int", "1_000"),
    ("int", "07"),
    ("int", "0x7"),
    ("int", "\u0667"),
    ("int", ""),
    ("int", "true"),
    ("int", True),
    ("float", "NaN"),
    ("float", "1,5"),
    ("float", "1e999"),
    ("bool", "yes"),
    ("bool", "1"),
    ("bool", 1),
    ("int-or-null", "None"),
    ("list", "1,2"),
    ("list", "7"),
    ("dict", "[1]"),
    ("record", "x=1"),
    ("model", {"age": "three"}),
    ("model", {"age": "7,0"}),
]


class Wire(Protocol):
    """Calls a tool, and returns the text of its result or the code of its error."""

    def __call__(self, tool: str, value: Any) -> str: ...


def _in_memory(tool: str, value: Any) -> str:
    reply = asyncio.run(app.call(tool, value=value))
    return str(reply.data) if reply.error is None else reply.error.code


def _on_the_command_line(tool: str, value: Any) -> str:
    command = [str(TARGET), "call", tool, "--json", json.dumps({"value": value})]
    done = run_forked(command, loaded="pydantic")
    if done.returncode == 0:
        return str(json.loads(done.stdout)["result"])
    return str(json.loads(done.stderr)["code"])


@pytest.fixture(scope="module", params=["memory", "rest", "stdio", "http", "cgi", "call"])
def wire(request: pytest.FixtureRequest) -> Iterator[Wire]:
    match request.param:
        case "memory":
            yield _in_memory
        case "call":
            yield _on_the_command_line
        case _:
            with calls_over(request.param, TARGET, loaded="pydantic") as call:

                def result_or_code(tool: str, value: Any) -> str:
                    found = call(tool, {"value": value})
                    return found.code if isinstance(found, Failed) else str(found)

                yield result_or_code


@pytest.mark.parametrize(("tool", "sent", "value"), [*READ, *KEPT])
def test_a_string_is_read_where_the_type_allows_no_string(
    wire: Wire, tool: str, sent: Any, value: str
) -> None:
    assert wire(tool, sent) == value


# Few on every wire, because the processes take time; the rest is tested in memory.
@pytest.mark.parametrize(("tool", "sent"), WRONG[:2])
def test_a_string_that_is_not_in_the_table_is_refused_on_every_wire(
    wire: Wire, tool: str, sent: Any
) -> None:
    assert wire(tool, sent) == REFUSED


@pytest.mark.parametrize(("tool", "sent"), WRONG)
def test_a_value_that_is_not_in_the_table_is_refused(tool: str, sent: Any) -> None:
    assert _in_memory(tool, sent) == REFUSED


@pytest.mark.parametrize(("tool", "sent"), [("model", {"age": True}), ("model", {"age": "07"})])
def test_a_field_of_a_model_is_read_as_pydantics_lax_mode_reads_it(tool: str, sent: Any) -> None:
    reply = asyncio.run(strict.call(tool, value=sent))

    assert _in_memory(tool, sent).startswith("User(age=")
    assert reply.error is not None


def test_a_strict_tool_refuses_strings_on_every_wire(wire: Wire) -> None:
    assert wire("strict-int", "7") == REFUSED
    assert wire("strict-int", 7) == "7"


@pytest.mark.parametrize(("tool", "sent", "value"), READ)
def test_a_strict_app_refuses_every_string_of_the_table(tool: str, sent: Any, value: str) -> None:
    reply = asyncio.run(strict.call(tool, value=sent))

    assert reply.error is not None
    assert reply.error.code == REFUSED


def test_the_schema_is_the_same_for_a_strict_tool() -> None:
    assert app.tools["list"].input_schema == app.tools["strict-list"].input_schema


def test_no_more_than_a_thousand_strings_of_a_call_are_read() -> None:
    """Each takes time, and a caller could send millions."""
    many = _in_memory("list", ["7"] * 1_000)
    too_many = _in_memory("list", ["7"] * 1_001)
    in_one_text = _in_memory("list", json.dumps([7] * 5_000))

    assert many == repr([7] * 1_000)
    assert too_many == REFUSED
    assert in_one_text == repr([7] * 5_000)


@dataclasses.dataclass
class Leaf:
    value: int


@dataclasses.dataclass
class One:
    next: One | Two | Three | Leaf


@dataclasses.dataclass
class Two:
    next: One | Two | Three | Leaf
    second: int = 0


@dataclasses.dataclass
class Three:
    next: One | Two | Three | Leaf
    third: int = 0


def depth(tree: One | Two | Three | Leaf) -> int:
    return 0 if isinstance(tree, Leaf) else 1 + depth(tree.next)


def test_json_text_in_json_text_of_a_recursive_union_is_read_in_linear_time() -> None:
    """Each member of a union could try the text again, at each of 16 levels: 3 ** 16 times."""
    text = json.dumps({"value": "7"})
    for _ in range(16):
        text = json.dumps({"next": text})
    nested = App("nested")
    nested.add_tool(depth)

    started = time.process_time()
    reply = asyncio.run(nested.call("depth", tree=text))

    assert reply.data == 16
    assert time.process_time() - started < 5
