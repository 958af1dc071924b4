"""docs/reference/clients.md and the expectations of `make clients`."""

from __future__ import annotations

import re
from pathlib import Path
from typing import Any

import pytest
from tests.clients.calls import CALLS, ClientCall, faults
from tests.clients.packages import read_clients

ROOT = Path(__file__).parent.parent.parent
PAGE = (ROOT / "docs" / "reference" / "clients.md").read_text()
DRIVERS = ROOT / "tests" / "clients" / "drivers"


def _full_answer(call: ClientCall) -> dict[str, Any]:
    answer: dict[str, Any] = {"error": bool(call.codes), "text": call.text}
    answer |= {"data": call.data} if call.data is not None else {}
    answer |= {"code": call.codes[0]} if call.codes else {}
    answer |= {"image": call.image} if call.image else {}
    return answer | ({"link": call.link} if call.link else {})


def test_the_page_has_the_row_of_every_client_with_all_calls_answered() -> None:
    calls = f"{len(CALLS)}/{len(CALLS)}"
    rows = [
        each.row(dict.fromkeys(each.wires, "ok" if each.judge else calls))
        for each in read_clients()
    ]

    assert [row for row in rows if row not in PAGE] == []


def test_every_package_of_a_client_has_an_exact_version() -> None:
    packages = [package for each in read_clients() for package in (*each.pip, *each.npm)]

    assert packages
    assert [each for each in packages if not re.search(r"(==|.@)\d+(\.\d+)*$", each)] == []


def test_every_client_has_its_driver() -> None:
    drivers = [DRIVERS / each.driver for each in read_clients()]

    assert [driver.name for driver in drivers if not driver.is_file()] == []


def test_each_client_makes_thirty_calls_and_each_call_expects_an_answer() -> None:
    expected = [call for call in CALLS if call.text or call.image]

    assert len(CALLS) == len(expected) == 30


@pytest.mark.parametrize("call", CALLS, ids=lambda call: call.tool)
def test_only_the_expected_answer_passes(call: ClientCall) -> None:
    answer = _full_answer(call)
    wrong: list[tuple[str, Any]] = [
        ("error", not answer["error"]),
        ("text", "another text"),
        ("data", {"result": "another"}),
        ("code", "ANOTHER"),
        ("image", "another"),
        ("link", "https://example.com/another"),
    ]

    assert faults(call, answer, ()) == []
    for part, value in wrong:
        name = "message" if part == "text" and call.codes else part
        assert faults(call, answer | {part: value}, ()) == [name]
        assert faults(call, answer | {part: value}, [f"{call.tool}.{name}"]) == []
        assert faults(call, answer | {part: value}, ["another.part"]) == [name]


def test_a_secret_in_an_answer_is_a_fault_whatever_the_client_lacks() -> None:
    answer = {"error": True, "text": "The tool failed unexpectedly (reference 1): hunter2"}
    (broken,) = (call for call in CALLS if call.tool == "broken")

    assert faults(broken, answer, ["code"]) == ["secret"]
