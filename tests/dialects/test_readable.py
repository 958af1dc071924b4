"""JSON data rendered as text for people."""

import math
from collections.abc import Callable
from time import perf_counter
from typing import Any
from unicodedata import category

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerback.dialects.readable import render


def test_seed_000_an_instance_reads_as_its_name_and_status() -> None:
    data = {"instance": {"name": "vscode-instance-1", "status": {"current": "running"}}}

    assert render(data) == "Instance: vscode-instance-1\nStatus: running"


def test_seed_000_an_instance_without_a_name_reads_as_its_id() -> None:
    data = {"instance": {"id": "instance-1", "name": "", "status": "running"}}

    assert render(data) == "Instance: instance-1\nName: (empty)\nStatus: running"


def test_seed_000_an_instance_reads_as_one_line_a_member() -> None:
    data = {
        "instance": {
            "id": "instance-1",
            "name": "vscode-instance-1",
            "status": "running",
            "provider": "docker",
        }
    }

    assert render(data) == (
        """\
Instance: vscode-instance-1
ID: instance-1
Status: running
Provider: docker"""
    )


def test_seed_000_instances_read_as_a_count_and_a_table() -> None:
    data = {
        "instances": [
            {"id": "instance-1", "name": "web", "status": "running", "provider": "docker"},
            {"id": "instance-2", "name": "db", "status": "stopped", "provider": "podman"},
        ]
    }

    assert render(data) == (
        """\
Found 2 instances

ID          Name  Status   Provider
-----------------------------------
instance-1  web   running  docker
instance-2  db    stopped  podman"""
    )


def test_seed_000_a_text_for_metrics_is_indented_by_level() -> None:
    data = {"instanceId": "instance-1", "metrics": {"cpu": {"average": 45, "peak": 87}}}

    assert render(data) == (
        """\
Instance ID: instance-1
Metrics:
  CPU:
    Average: 45
    Peak: 87"""
    )


def test_a_record_with_nested_members_is_rendered() -> None:
    data = {
        "order": {
            "id": 7,
            "customer": {"name": "Ann", "email": "ann@example.com"},
            "paid": True,
            "coupon": None,
            "status": {"current": "packed", "since": "2025-11-25"},
            "tags": ["gift", "fragile"],
            "returns": [],
            "lines": [
                {"sku": "A-1", "quantity": 2, "unit_price": 9.5},
                {"sku": "B-12", "quantity": 12, "unit_price": 0.1 + 0.2},
            ],
            "note": "Ring twice.\n\n  Then wait.\n",
            "addresses": ["1 High Street, Oxford", "Box 5"],
        }
    }

    assert render(data) == (
        """\
Order: 7
Customer: Ann
  Email: ann@example.com
Paid: yes
Coupon: none
Status: packed
  Since: 2025-11-25
Tags: gift, fragile
Returns: none
Lines: 2 items
  SKU   Quantity  Unit price
  --------------------------
  A-1          2         9.5
  B-12        12         0.3
Note:
  Ring twice.

    Then wait.
Addresses: 2 items
  - 1 High Street, Oxford
  - Box 5"""
    )


def test_members_beside_a_list_of_records_come_before_the_table() -> None:
    data = {
        "accounts": [
            {"id": 9, "owner": {"name": "Ann"}, "labels": ["new", "vip"]},
            {"id": 10, "owner": None, "limits": {"day": 100, "month": 900}},
        ],
        "total": 57,
        "nextPage": "abc",
    }

    assert render(data) == (
        """\
Total: 57
Next page: abc

Found 2 accounts

ID  Owner  Labels    Limits
-----------------------------------------
 9  Ann    new, vip
10  —                day: 100, month: 900"""
    )


def test_two_lists_of_records_give_two_tables() -> None:
    data = {"users": [{"name": "Ann"}], "history": [{"day": "Monday"}, {"day": "Friday"}]}

    assert render(data) == (
        """\
Found 1 user

Name
----
Ann

History: 2 items

Day
------
Monday
Friday"""
    )


def test_wide_characters_keep_the_columns_straight() -> None:
    data = [{"city": "東京", "people": 14}, {"city": "Zürich", "people": 0.4}]

    assert render(data) == (
        """\
Found 2 items

City    People
--------------
東京        14
Zürich     0.4"""
    )


def test_records_with_many_members_are_a_list() -> None:
    data = {"hosts": [{"name": "web"} | {f"port_{n}": n for n in range(8)}, {"name": "db"}]}

    assert render(data) == (
        """\
Found 2 hosts

- web
  Port 0: 0
  Port 1: 1
  Port 2: 2
  Port 3: 3
  Port 4: 4
  Port 5: 5
  Port 6: 6
  Port 7: 7
- db"""
    )


def test_nested_lists_are_bulleted() -> None:
    data = {"matrix": [[1, 2], [3, 4]], "mixed": [1, {"name": "Ann", "age": 3}, "two\nlines"]}

    assert render(data) == (
        """\
Matrix: 2 items
  - 1, 2
  - 3, 4
Mixed: 3 items
  - 1
  - Ann
    Age: 3
  - two
    lines"""
    )


def test_data_below_the_depth_limit_is_on_one_line() -> None:
    data = {"a": {"b": {"c": {"d": {"e": {"f": {"g": {"h": {"i": [1, {"j": {}}]}}}}}}}}}

    assert render(data) == (
        """\
A:
  B:
    C:
      D:
        E:
          F:
            G: {h: {i: [1, {…}]}}"""
    )


@pytest.mark.parametrize(
    ("data", "text"),
    [
        (10, "10"),
        (True, "yes"),
        (False, "no"),
        (None, "none"),
        ({}, "Done"),
        ([], "None found"),
        ({"result": 10}, "Result: 10"),
        ({"instances": []}, "Found 0 instances"),
        ({"instances": [{}]}, "Found 1 instance\n\n- none"),
        ({"history": []}, "History: none"),
        ({"status": {}}, "Status: none"),
        (["red", "green"], "red, green"),
        (["Paris, France", "Rome"], "- Paris, France\n- Rome"),
        ({"sensor": {"name": "t1", "current": 21.5}}, "Sensor: t1\nCurrent: 21.5"),
        ({"now": {"current": {"sun": True}}}, "Now:\n  Current:\n    Sun: yes"),
    ],
)
def test_small_data_is_a_short_text(data: Any, text: str) -> None:
    assert render(data) == text


@pytest.mark.parametrize(
    ("number", "text"),
    [
        (0.1 + 0.2, "0.3"),
        (10.0, "10"),
        (-0.0, "0"),
        (1e-9, "1e-09"),
        (1e300, "1e+300"),
        (1751234567890.5, "1751234567890.5"),
        (12345678901234567890, "12345678901234567890"),
        (math.inf, "inf"),
    ],
)
def test_numbers_are_shown_without_rounding_errors(number: float, text: str) -> None:
    assert render(number) == text


def test_an_integer_too_large_for_python_to_print_is_described() -> None:
    assert render(10**5000) == "an integer of 16610 bits"


@pytest.mark.parametrize(
    ("key", "label"),
    [
        ("instanceId", "Instance ID"),
        ("wind_speed", "Wind speed"),
        ("cpu", "CPU"),
        ("userIDs", "User IDs"),
        ("HTTPServer", "HTTP server"),
        ("API_URL", "API URL"),
        ("MAX_SIZE", "Max size"),
        ("USD", "USD"),
        ("vitaminC", "Vitamin C"),
        ("größe", "Größe"),
        ("_", "_"),
        ("", "(empty)"),
        ("i-0ab12", "i-0ab12"),
        ("src/main.py", "src/main.py"),
        ("k\x1b[2J", r"k\x1b[2J"),
        ("k" * 100, "k" * 59 + "…"),
    ],
)
def test_identifiers_become_readable_labels(key: str, label: str) -> None:
    assert render({key: 1}) == f"{label}: 1"


@pytest.mark.parametrize(
    ("plural", "singular"),
    [
        ("cities", "city"),
        ("addresses", "address"),
        ("statuses", "status"),
        ("databases", "database"),
        ("boxes", "box"),
        ("people", "person"),
        ("searchMatches", "search match"),
        ("URLs", "URL"),
    ],
)
def test_one_record_is_counted_in_the_singular(plural: str, singular: str) -> None:
    assert render({plural: [{"a": 1}]}).splitlines()[0] == f"Found 1 {singular}"


def test_a_string_is_its_own_text() -> None:
    text = "  kept\tas it is,  \n" + "long " * 1000

    assert render(text) == text


def test_control_characters_and_bidi_marks_are_escaped() -> None:
    evil = "\x1b[31mred\r\x00\x9b\u202edoc\ud800"

    assert render(evil) == r"\x1b[31mred\r\x00\x9b\u202edoc\ud800"
    assert render({"name": "\x1b]0;title\x07"}) == r"Name: \x1b]0;title\x07"
    assert render([{"name": "\x1b[2J"}]).endswith("\n\\x1b[2J")
    assert render({"log": "one\n\ttwo\x08"}) == "Log:\n  one\n      two\\x08"


def test_long_values_are_shortened() -> None:
    line = render({"text": "x" * 1000})
    header, _, row = render([{"a": "x" * 200, "b": "y" * 200, "c": 1}]).splitlines()[2:]

    assert line == "Text: " + "x" * 499 + "…"
    assert row == "x" * 56 + "…  " + "y" * 57 + "…  1"
    assert len(header) <= 120


def test_long_lists_tables_objects_and_texts_show_how_much_is_left_out() -> None:
    assert render([{"n": n} for n in range(90)]).endswith("\n49\n… and 40 more")
    assert render(list(range(90))).endswith("\n- 49\n… and 40 more")
    assert render({f"k-{n}": n for n in range(140)}).endswith("\nk-99: 99\n… and 40 more")
    assert render({"log": "line\n" * 80}).endswith("\n  line\n  … and 40 more")
    assert render({f"k-{n}": "a\nb\nc" for n in range(90)}).endswith("\n… more lines not shown")


@pytest.mark.parametrize(
    "build",
    [
        lambda: {f"key{n}": n for n in range(300_000)},
        lambda: [{"a": n, "b": [1, 2]} for n in range(200_000)],
        lambda: [[[n] for n in range(1000)] for _ in range(500)],
        lambda: {"text": "x\n" * 2_500_000, "line": "x" * 5_000_000, "marks": "\u0301" * 1_000_000},
        lambda: [{f"key{n}": n for n in range(100_000)} for _ in range(3)],
    ],
    ids=["members", "records", "lists", "strings", "columns"],
)
def test_megabytes_are_rendered_quickly_and_briefly(build: Callable[[], Any]) -> None:
    # Built here, because every worker would keep it from the collection to the end.
    data = build()

    began = perf_counter()
    text = render(data)

    assert perf_counter() - began < 5
    assert len(text) < 50_000


JSON = st.recursive(
    st.none() | st.booleans() | st.integers() | st.floats() | st.text(),
    lambda inner: (
        st.lists(inner)
        | st.dictionaries(st.text() | st.sampled_from(["name", "id", "items", "current"]), inner)
        | st.lists(st.dictionaries(st.sampled_from(["a", "b", "name"]), inner))
    ),
    max_leaves=60,
)


@given(JSON.filter(lambda data: not isinstance(data, str)))
def test_any_data_is_rendered_as_bounded_lines_without_control_characters(data: Any) -> None:
    lines = render(data).split("\n")

    assert lines[0] != ""
    assert len(lines) <= 201
    assert [line for line in lines if line != line.rstrip() or len(line) > 2100] == []
    assert {category(char) for line in lines for char in line}.isdisjoint({"Cc", "Cs", "Zl", "Zp"})


@given(st.text())
def test_any_string_is_rendered_without_control_characters(text: str) -> None:
    kinds = {category(char) for char in render(text) if char not in "\n\t"}

    assert kinds.isdisjoint({"Cc", "Cs"})
