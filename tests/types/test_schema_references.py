"""References in schemas: JSON pointers, cycles, long chains, and other documents."""

from __future__ import annotations

from itertools import islice, product
from typing import Any
from urllib.parse import quote

import jsonschema_rs
import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerback.types.schema_references import follow, path_to, same_value_schemas, target

NAMES = st.sampled_from(["", "a", "0", "/", "~", "~1", "%", "%2F", "a/b~c", "é", "#", " ", "$ref"])
DOCUMENTS = st.dictionaries(
    NAMES,
    st.recursive(
        st.integers(),
        lambda inner: st.lists(inner, max_size=3) | st.dictionaries(NAMES, inner, max_size=3),
        max_leaves=12,
    ),
    max_size=4,
)
ODD_STEPS = (
    *("$defs", "%24defs", "a~1b", "a%7E1b", "a%2Fb", "%C3%A9", "%E9", "~01", "~0", "~", "~2", ""),
    *("list", "allOf", "0", "00", "01", "+1", "%2B1", "-1", "-", "1_0", "%201", "%D9%A1", "2"),
)
POINTED_TO: dict[str, Any] = {
    "$defs": {
        **{name: {"const": at} for at, name in enumerate(["a/b", "é", "~1", "~", "~2", "", "0"])},
        "list": {"allOf": [{"const": 7}, {"const": 8, "$defs": {"0": {"const": 9}}}]},
    }
}


def all_pointers(value: Any, pointer: str = "") -> list[tuple[str, Any]]:
    found = [(pointer, value)]
    inner = value.items() if isinstance(value, dict) else ()
    for name, each in enumerate(value) if isinstance(value, list) else inner:
        step = str(name).replace("~", "~0").replace("/", "~1")
        found += all_pointers(each, f"{pointer}/{step}")
    return found


@given(DOCUMENTS)
def test_every_value_is_found_by_its_escaped_pointer(document: dict[str, Any]) -> None:
    for pointer, value in all_pointers(document):
        assert target(f"#{quote(pointer, safe='/')}", document) is value
        if "%" not in pointer:
            assert target(f"#{pointer}", document) is value


@pytest.mark.parametrize("start", ["#", "#/$defs", "#/$defs/list/allOf"])
def test_what_the_validator_finds_is_found_here_too(start: str) -> None:
    """Contract: the cost of a check includes every schema that jsonschema-rs follows."""
    found = 0
    for steps in [(), *product(ODD_STEPS), *product(ODD_STEPS, repeat=2)]:
        reference = "/".join([start, *steps])
        schema = {**POINTED_TO, "properties": {"value": {"$ref": reference}}}
        try:
            validator = jsonschema_rs.validator_for(schema)
        except (ValueError, jsonschema_rs.ReferencingError):
            continue
        allowed = [each for each in range(10) if validator.is_valid({"value": each})]
        pointed_to = target(reference, schema)
        assert isinstance(pointed_to, dict), reference
        if "const" in pointed_to:
            assert allowed == [pointed_to["const"]]
        found += 1

    assert found


@pytest.mark.parametrize(
    "reference",
    [
        *("https://x.test/a", "https://x.test/a#/$defs/a", "file:///etc/passwd", "//x.test#"),
        *("a.json#", "a", "?#", "#a", "#$defs/a", "#/" + "a" * 1_000, "#" + "/" * 1_000),
        *(None, 5, ["#"]),
    ],
)
def test_a_reference_that_leaves_the_document_is_refused(reference: object) -> None:
    document = {"$id": "https://x.test/", "$defs": {"a": {"type": "object"}}, "a": {}, "": {}}

    assert path_to(reference, document) is None
    assert target(reference, document) is None
    assert follow({"$ref": reference}, document) is None
    assert [*same_value_schemas({"$ref": reference}, document)] == [{"$ref": reference}]


@pytest.mark.parametrize("base", ["", "https://x.test/"])
def test_the_document_may_be_named_by_its_own_id(base: str) -> None:
    document = {"$id": "https://x.test/#", "$defs": {"a": {"type": "object"}}}

    assert target(f"{base}#/$defs/a", document) == {"type": "object"}
    assert target(base, document) is document


@pytest.mark.parametrize(
    "reference", ["#/b", "#/a/b", "#/list/1", "#/list/-1", "#/list/a", "#/text/0"]
)
def test_a_pointer_to_nothing_has_no_target(reference: str) -> None:
    document = {"a": {}, "list": [{}], "text": "abc"}

    path = path_to(reference, document)

    assert path is not None
    assert path[0] is document
    assert path[-1] is None


@given(st.integers(1, 300))
def test_a_cycle_of_references_ends(length: int) -> None:
    schema = {str(at): {"$ref": f"#/{(at + 1) % length}"} for at in range(length)}

    assert follow({"$ref": "#/0"}, schema) is None
    assert len([*same_value_schemas(schema["0"], schema)]) == length


@pytest.mark.parametrize(
    ("length", "is_found"), [(1, True), (99, True), (100, False), (50_000, False)]
)
def test_a_chain_is_followed_up_to_a_limit(length: int, is_found: bool) -> None:
    schema: dict[str, Any] = {str(at): {"$ref": f"#/{at + 1}"} for at in range(1, length)}
    schema[str(length)] = {"type": "object"}

    found = follow({"$ref": "#/1"}, schema)

    assert found == ({"type": "object"} if is_found else None)


def test_each_schema_of_a_value_is_walked_once_however_many_unions_lead_to_it() -> None:
    schema: dict[str, Any] = {
        str(at): {"anyOf": [{"$ref": f"#/{at + 1}"}] * 2, "oneOf": [{"$ref": f"#/{at + 1}"}, True]}
        for at in range(60)
    }
    schema["60"] = {"anyOf": [{"$ref": "#/0"}, {"type": "null"}]}

    walked = [*islice(same_value_schemas({"$ref": "#/0"}, schema), 10_000)]

    assert len(walked) < 1_000
    assert {"type": "null"} in walked


@pytest.mark.parametrize("schema", [False, None, [], "a", {"$ref": "#/not"}])
def test_what_allows_nothing_or_is_no_schema_leads_nowhere(schema: object) -> None:
    assert follow(schema, {"not": False}) is None
