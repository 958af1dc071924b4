"""Unions that msgspec crashes on, or whose members' limits it mixes up."""

import asyncio
import enum
import json
import subprocess
import sys
from pathlib import Path
from typing import Annotated, Any, Literal

import pytest
from msgspec import Meta

from answerback import App
from answerback.types.arguments import Arguments, Parameter
from answerback.types.problems import InvalidArguments

PROGRAM = Path(__file__).with_name("misread_unions.py")


@pytest.mark.parametrize("way", ["is_accepted", "is_returned"])
@pytest.mark.parametrize("place", ["by_itself", "in_a_dataclass", "in_a_list", "in_a_dict"])
def test_unions_that_msgspec_crashes_on_are_served(place: str, way: str) -> None:
    command = [sys.executable, str(PROGRAM), place, way]

    ran = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert ran.returncode == 0
    outcomes = dict(json.loads(line) for line in ran.stdout.splitlines())
    assert len(outcomes) == 52
    # Fits the limited member, breaks its limit, fits the other member, fits neither.
    assert {str(each) for each in outcomes.values()} == {"[True, False, True, False]"}


SEARCH = Path(__file__).with_name("search_unions.py")


@pytest.mark.slow
def test_no_union_of_a_generated_search_ends_the_process() -> None:
    command = [sys.executable, str(SEARCH)]

    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    assert ran.returncode == 0, ran.stderr
    assert json.loads(ran.stdout) == {"searched": 1020, "bad": {}}


def test_the_search_finds_the_unions_that_msgspec_crashes_on() -> None:
    command = [sys.executable, str(SEARCH), "msgspec"]

    ran = subprocess.run(command, capture_output=True, text=True, timeout=300, check=False)

    crashed = {name for name, code in json.loads(ran.stdout)["bad"].items() if code < 0}
    assert any("pattern" in name and "list[str]" in name for name in crashed)
    assert any("ge=1" in name and "tuple[()]" in name for name in crashed)


class Level(enum.IntEnum):
    LOW = 1


FAR = Annotated[int, Meta(ge=10)] | Annotated[int, Meta(le=-10)]
WORD = Annotated[str, Meta(pattern="^a+$")] | Literal["b", "c"]
SHORT_OR_LONG = Annotated[str, Meta(max_length=1)] | Annotated[str, Meta(min_length=3)]
COUNT_OR_SHARE = Annotated[int, Meta(ge=10)] | Annotated[float, Meta(le=1.0)]


@pytest.mark.parametrize(
    ("union", "fitting", "wrong"),
    [
        (FAR, [15, -15], [0, "15"]),
        (list[FAR], [[15, -15]], [[15, 0]]),
        (WORD, ["aa", "b", "c"], ["d", ""]),
        (SHORT_OR_LONG, ["", "a", "abc"], ["ab"]),
        (COUNT_OR_SHARE, [15, 0, 0.5], [5, 1.5]),
        (float | Annotated[int, Meta(ge=10)], [5, 15, 0.5], ["5"]),
        (float | Literal[1, 2], [1, 5, 0.5], ["1"]),
        (float | Level, [1, 5, 0.5], ["1"]),
    ],
)
def test_each_member_of_a_union_has_only_its_own_limits(
    union: Any, fitting: list[Any], wrong: list[Any]
) -> None:
    arguments = Arguments([Parameter(name="x", annotation=union)])

    assert [arguments.decode(b'{"x":%s}' % json.dumps(x).encode())["x"] for x in fitting] == fitting
    for value in wrong:
        with pytest.raises(InvalidArguments):
            arguments.decode(b'{"x":%s}' % json.dumps(value).encode())


FieldValue = bytes | bytearray | memoryview | str | int | float


@pytest.mark.parametrize("sent", ["hello!", 3, 1.5])
def test_bytes_of_every_kind_may_be_in_a_union(sent: Any) -> None:
    app = App("unions")

    @app.tool
    def show(value: FieldValue) -> FieldValue:
        return value

    reply = asyncio.run(app.call("show", value=sent))

    assert reply.data == sent


@pytest.mark.parametrize("kind", [bytes, bytearray, memoryview])
def test_bytes_of_every_kind_are_base64_in_json(kind: Any) -> None:
    app = App("unions")
    default = kind(b"ab")

    def show(value: Any = default) -> Any:
        return value if bytes(value) == b"ab" else None

    show.__annotations__ = {"value": kind, "return": kind}
    app.add_tool(show)

    replies = [asyncio.run(app.call("show", **sent)) for sent in ({"value": "YWI="}, {})]

    assert [app.write(reply) for reply in replies] == [{"result": "YWI="}] * 2
