"""The tools that are sent follow the published rules of each provider."""

from __future__ import annotations

import json
from collections.abc import Callable
from copy import deepcopy
from pathlib import Path
from time import process_time
from typing import Any

import pytest
from tests.models.provider_checkers import CHECKERS

from answerback import App
from answerback.models import (
    ModelTools,
    to_anthropic,
    to_gemini,
    to_openai,
    to_openai_responses,
)

ROOT = Path(__file__).parent.parent.parent
LISTS = sorted((Path(__file__).parent / "tool_lists").glob("*.json"))
EXAMPLES = sorted(
    path.stem for path in (ROOT / "examples").glob("*.py") if "app.run()" in path.read_text()
)
CONVERSIONS: dict[str, Callable[[Any], ModelTools]] = {
    "openai": to_openai,
    "openai strict": lambda tools: to_openai(tools, strict=True),
    "responses strict": lambda tools: to_openai_responses(tools, strict=True),
    "anthropic": to_anthropic,
    "anthropic strict": lambda tools: to_anthropic(tools, strict=True),
    "gemini": to_gemini,
}

every_conversion = pytest.mark.parametrize("how", CONVERSIONS)


def faults(kit: ModelTools) -> list[str]:
    return CHECKERS[kit.rules.provider](kit.tools)


def tool(schema: dict[str, Any], name: str = "t") -> dict[str, Any]:
    return {"name": name, "description": "A tool.", "inputSchema": schema}


def of(properties: dict[str, Any], *required: str, **more: Any) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*required], **more}


@every_conversion
@pytest.mark.parametrize("name", EXAMPLES)
def test_every_tool_of_the_examples_follows_the_rules(
    name: str, how: str, example: Callable[[str], App]
) -> None:
    app = example(name)

    kit = CONVERSIONS[how](app)

    assert len(kit.tools) == len(app.tools)
    assert faults(kit) == []


@every_conversion
@pytest.mark.parametrize("path", LISTS, ids=lambda path: path.stem)
def test_every_tool_of_a_real_server_follows_the_rules(path: Path, how: str) -> None:
    tools = json.loads(path.read_text())

    kit = CONVERSIONS[how](tools)

    assert len(kit.tools) == len(tools)
    assert faults(kit) == []


@every_conversion
def test_every_tool_of_the_app_with_all_cases_follows_the_rules(how: str, everything: App) -> None:
    kit = CONVERSIONS[how](everything)

    assert len(kit.tools) == len(everything.tools)
    assert faults(kit) == []


NODE = {
    "type": "object",
    "properties": {"value": {"type": "integer"}, "next": {"$ref": "#/$defs/Node"}},
    "required": ["value"],
    "additionalProperties": False,
}
SCHEMAS: dict[str, dict[str, Any]] = {
    "no schema": {},
    "an object alone": {"type": "object"},
    "a root reference": {"$ref": "#/$defs/Node", "$defs": {"Node": NODE}},
    "recursion": of({"node": {"$ref": "#/$defs/Node"}}, "node", **{"$defs": {"Node": NODE}}),
    "root alternatives": {
        "oneOf": [of({"a": {"type": "string"}}, "a"), of({"b": {"type": "integer"}}, "b")]
    },
    "root parts": {"allOf": [of({"a": {"type": "string"}}, "a"), of({"b": {"type": "integer"}})]},
    "alternatives": of({"x": {"oneOf": [{"type": "string"}, {"type": "integer"}]}}, "x"),
    "a reference with a description": of(
        {"node": {"$ref": "#/$defs/Node", "description": "The first."}}, **{"$defs": {"Node": NODE}}
    ),
    "old definitions": of({"e": {"$ref": "#/definitions/E"}}, definitions={"E": {"enum": ["a"]}}),
    "formats": of(
        {"u": {"type": "string", "format": "uri"}, "t": {"type": "string", "format": "x"}}
    ),
    "defaults": of({"n": {"type": "integer", "default": 5}}),
    "nullable": of({"n": {"type": ["integer", "null"], "default": None}}),
    "nullable of OpenAPI": of({"n": {"type": "integer", "nullable": True, "default": None}}),
    "an optional object": of({"o": of({"a": {"type": "string"}})}),
    "an empty object": of({"o": {"type": "object", "properties": {}}}),
    "a map": of({"m": {"type": "object", "additionalProperties": {"type": "integer"}}}),
    "a map by pattern": of(
        {"m": {"type": "object", "patternProperties": {"^x": {}}, "additionalProperties": False}}
    ),
    "a tuple": of(
        {"t": {"type": "array", "prefixItems": [{"type": "string"}], "items": False, "minItems": 1}}
    ),
    "an old tuple": of({"t": {"type": "array", "items": [{"type": "string"}, {"type": "null"}]}}),
    "an array of anything": of({"a": {"type": "array"}}),
    "patterns": of({"p": {"type": "string", "pattern": "(?=a)b"}, "q": {"pattern": "^a+$"}}),
    "constants": of({"c": {"const": True}, "d": {"const": "a"}, "e": {"enum": ["a", None, 1]}}),
    "objects in an enum": of({"e": {"enum": [{"a": 1}, "b"]}}),
    "bounds": of({"n": {"type": "integer", "exclusiveMinimum": 0, "maximum": 9}}),
    "several types": of({"v": {"type": ["string", "object", "array"], "minLength": 1}}),
    "conditions": of({"a": {"type": "string"}}, "a", **{"if": {"required": ["a"]}, "then": {}}),
    "names": of({"a b": {"type": "string"}, "a/b": {"type": "string"}, "9": {"type": "string"}}),
    "required without a schema": of({"a": {"type": "string"}}, "a", "b"),
    "a reference to nowhere": of({"x": {"$ref": "#/$defs/Gone"}}),
    "a reference to the web": of({"x": {"$ref": "https://example.com/x.json"}}),
    "properties with the names of keywords": of(
        {"properties": {"type": "string"}, "enum": {"type": "string"}, "$ref": {"type": "string"}}
    ),
    "dialects": of({}, **{"$schema": "http://json-schema.org/draft-07/schema#", "x-own": 1}),
    "boolean schemas": of({"a": True, "b": False}),
}


@every_conversion
@pytest.mark.parametrize("case", SCHEMAS)
def test_any_schema_becomes_one_that_follows_the_rules(case: str, how: str) -> None:
    given = tool(SCHEMAS[case])
    before = deepcopy(given)

    kit = CONVERSIONS[how]([given])

    assert faults(kit) == []
    assert given == before


TEXT = {"type": "string"}
PAIRS = {"type": "array", "items": of({"key": TEXT, "value": TEXT}, "key", "value")}


def strict_report(schema: dict[str, Any], **more: Any) -> Any:
    return to_openai([tool(schema)], strict=True, **more).report.tools[0]


@pytest.mark.parametrize(
    ("schema", "reason"),
    [
        (of({"a": {}}), "arguments.a: accepts a value of any type"),
        (of({"a": {"type": "array"}}), "arguments.a: accepts items of any type"),
        (of({"a": {"type": "object"}}), "arguments.a: accepts an object with any members"),
        (
            of({"a": {"type": "string"}}, additionalProperties=True),
            "arguments: allows properties other than those it names",
        ),
        (
            of({"a": {"type": ["string", "null"]}}),
            "arguments.a: may be null or left out, and strict mode uses null for both",
        ),
        (of({"a": {"type": "string", "not": {"const": "b"}}}), "arguments.a: uses not"),
        (
            of({"a": {"anyOf": [PAIRS, {"type": "object", "additionalProperties": TEXT}]}}),
            "arguments.a: has alternatives that cannot be told apart",
        ),
    ],
)
def test_a_tool_that_would_lose_arguments_is_not_strict_and_the_report_says_why(
    schema: dict[str, Any], reason: str
) -> None:
    report = strict_report(schema)

    assert not report.strict
    assert report.reason == reason


def test_a_tool_that_is_not_strict_keeps_its_schema() -> None:
    schema = of({"a": {"description": "Anything."}}, "a")

    kit = to_openai([tool(schema)], strict=True)

    assert kit.tools[0]["function"]["parameters"] == schema
    assert "strict" not in kit.tools[0]["function"]


def test_the_report_lists_each_change_by_its_path() -> None:
    report = strict_report(of({"n": {"type": "string", "minLength": 2, "default": "ab"}}))

    assert report.strict
    assert report.changes == (
        "arguments: additional properties cannot be sent",
        'arguments.n: the description says (minLength: 2, default: "ab")',
    )


def test_the_description_beside_a_reference_is_kept() -> None:
    kit = to_openai([tool(SCHEMAS["a reference with a description"])], strict=True)

    node = kit.tools[0]["function"]["parameters"]["properties"]["node"]
    assert node == {
        "description": "The first.",
        "anyOf": [{"$ref": "#/$defs/Node"}, {"type": "null"}],
    }


def test_strict_mode_can_be_asked_for_by_name() -> None:
    tools = [tool(of({}), "one"), tool(of({}), "two")]

    kit = to_openai(tools, strict=["two"])

    assert [each.strict for each in kit.report.tools] == [False, True]
    with pytest.raises(ValueError, match="strict= names 'three', which is not one of the tools"):
        to_openai(tools, strict=["three"])


def test_only_as_many_tools_are_strict_as_the_provider_takes_in_a_request() -> None:
    tools = [tool(of({}), f"tool{number}") for number in range(25)]

    reports = to_anthropic(tools, strict=True).report.tools

    assert [each.strict for each in reports] == [True] * 20 + [False] * 5
    assert reports[20].reason == "21 strict tools in a request, but the provider allows only 20"


def test_the_optional_properties_of_all_strict_tools_are_counted_together() -> None:
    ten = of({f"p{number}": {"type": "string"} for number in range(10)})

    reports = to_anthropic([tool(ten, name) for name in "abc"], strict=True).report.tools

    assert [each.strict for each in reports] == [True, True, False]


def nested(levels: int) -> dict[str, Any]:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(levels):
        schema = of({"x": schema}, "x", additionalProperties=False)
    return schema


def with_enum(count: int, length: int) -> dict[str, Any]:
    values = [f"{number:0{length}}" for number in range(count)]
    return of({"e": {"type": "string", "enum": values}}, "e")


def with_properties(count: int, length: int = 1) -> dict[str, Any]:
    names = [f"p{number:0{length}}" for number in range(count)]
    return of({name: {"type": "string"} for name in names}, *names)


@pytest.mark.parametrize(
    ("within", "beyond", "reason"),
    [
        (
            nested(10),
            nested(11),
            "11 levels of objects in a schema, but the provider allows only 10",
        ),
        (
            with_properties(5000),
            with_properties(5001),
            "5001 properties in a schema, but the provider allows only 5000",
        ),
        (
            with_enum(1000, 4),
            with_enum(1001, 4),
            "1001 enum values in a schema, but the provider allows only 1000",
        ),
        (
            with_enum(250, 61),
            with_enum(251, 60),
            "15060 characters in a large enum, but the provider allows only 15000",
        ),
        (
            with_properties(100, 1198),
            with_properties(100, 1200),
            "120100 name and value characters in a schema, but the provider allows only 120000",
        ),
    ],
)
def test_a_schema_is_strict_up_to_the_published_limits_of_openai(
    within: dict[str, Any], beyond: dict[str, Any], reason: str
) -> None:
    assert strict_report(within).strict
    assert strict_report(beyond).reason == reason


def test_the_unions_of_all_strict_tools_are_counted_together() -> None:
    union = {"anyOf": [{"type": "string"}, {"type": "integer"}]}
    eight = of(dict.fromkeys("abcdefgh", union), *"abcdefgh")

    reports = to_anthropic([tool(eight, name) for name in "xyz"], strict=True).report.tools

    assert [each.strict for each in reports] == [True, True, False]
    assert reports[2].reason == (
        "24 properties with a union of types in all strict tools, but the provider allows only 16"
    )


def test_a_deep_schema_is_not_strict() -> None:
    schema: dict[str, Any] = {"type": "string"}
    for _ in range(11):
        schema = of({"x": schema}, "x", additionalProperties=False)

    report = strict_report(schema)

    assert report.reason == "11 levels of objects in a schema, but the provider allows only 10"


def test_too_many_tools_for_a_request_are_a_warning() -> None:
    kit = to_openai([tool(of({}), f"tool{number}") for number in range(129)])

    assert kit.report.warnings == ("129 tools, but the provider allows only 128 in a request",)


def test_a_long_description_is_a_warning_and_is_not_cut() -> None:
    long, short = ({**tool(of({}), name), "description": "d" * size} for name, size in LENGTHS)

    kit = to_openai([long, short])

    assert kit.report.warnings == (
        "'long' has a description of 1025 characters, but some models refuse more than 1024",
    )
    assert kit.tools[0]["function"]["description"] == long["description"]


LENGTHS = (("long", 1025), ("short", 1024))


def test_responses_says_of_each_tool_whether_it_is_strict() -> None:
    """Without the member the API makes a schema strict by itself."""
    assert to_openai_responses([tool(of({}))]).tools[0]["strict"] is False


def test_a_tool_that_only_a_widget_may_call_is_left_out_with_a_warning() -> None:
    hidden = tool(of({}), "hidden") | {"_meta": {"ui": {"visibility": ["app"]}}}

    kit = to_openai([hidden, tool(of({}), "shown")])

    assert [each["function"]["name"] for each in kit.tools] == ["shown"]
    assert kit.report.warnings == ("'hidden' was left out because only a widget may call it",)


LOOP = {"A": {"$ref": "#/$defs/A"}, "B": {"anyOf": [{"$ref": "#/$defs/A"}, {"type": "object"}]}}
WIDE: dict[str, Any] = {
    f"D{at}": of({name: {"$ref": f"#/$defs/D{at + 1}", "description": name} for name in "ab"})
    for at in range(30)
} | {"D30": {"type": "string"}}
SELF = {"N": {"type": "object", "anyOf": [{"$ref": "#/$defs/N"}, of({"a": {"type": "string"}})]}}
CHAIN = {f"D{at}": of({"n": {"$ref": f"#/$defs/D{at + 1}"}}) for at in range(3000)}
DOUBLED = {
    f"T{at}": {"anyOf": [{"$ref": f"#/$defs/T{at + 1}"}, {"$ref": f"#/$defs/T{at + 1}"}]}
    for at in range(22)
} | {"T22": {"type": "string"}}
REPEATED = {
    f"A{at}": {"allOf": [{"$ref": f"#/$defs/A{at + 1}"}, {"$ref": f"#/$defs/A{at + 1}"}]}
    for at in range(40)
} | {"A40": of({"a": {"type": "string"}})}
HOSTILE = {
    "a definition that is itself": of({"x": {"$ref": "#/$defs/B"}}, "x", **{"$defs": LOOP}),
    "a definition that doubles with each level": of(
        {"x": {"$ref": "#/$defs/D0"}}, "x", **{"$defs": WIDE}
    ),
    "alternatives that contain themselves": of({"x": {"$ref": "#/$defs/N"}}, **{"$defs": SELF}),
    "definitions in a long chain": of({"x": {"$ref": "#/$defs/D0"}}, **{"$defs": CHAIN}),
    "a reference to the whole in each property": of({f"p{at}": {"$ref": "#"} for at in range(900)}),
    "schemas nested very deeply": nested(900),
    "alternatives that lead twice to the next": of(
        {"x": {"$ref": "#/$defs/T0"}}, **{"$defs": DOUBLED}
    ),
    "an allOf that doubles with each level": of(
        {"x": {"$ref": "#/$defs/A0"}}, **{"$defs": REPEATED}
    ),
    "a root that is an allOf that doubles": {"$ref": "#/$defs/A0", "$defs": REPEATED},
    "an allOf with thousands of parts": of(
        {"x": {"allOf": [{"$ref": "#/$defs/A"}] * 3000}},
        **{"$defs": {"A": {"allOf": [{"$ref": "#/$defs/B"}] * 3000}, "B": {"type": "string"}}},
    ),
    "objects in 300 levels": nested(300),
    "a large enum": of({"e": {"enum": [f"value {at}" for at in range(50_000)]}}),
    "a definition that refers to nowhere": of(
        {"x": {"$ref": "#/$defs/M"}}, **{"$defs": {"M": of({"y": {"$ref": "#/$defs/Gone"}})}}
    ),
}


def test_ten_thousand_tools_are_converted_in_bounded_time() -> None:
    before = process_time()

    kit = to_openai([tool({}, f"tool/{number}") for number in range(10_000)])

    assert process_time() - before < 5
    assert len(kit.tools) == 10_000


MALFORMED: dict[str, Any] = {
    "type": 5,
    "properties": {
        "a": "string",
        "b": {"type": {"no": "type"}, "enum": "abc", "minItems": "two"},
        "c": {"anyOf": [True, 7, "x"], "allOf": "all", "required": 3},
        "d": {"$ref": ["#"], "items": None, "properties": [1], "format": {}},
        "e": {"$ref": "#/required"},
        "f": {"default": "\ud800", "pattern": 7, "description": ["no", "text"]},
        "g": {"$ref": "#/x-own/inner"},
    },
    "required": [{}, "a"],
    "x-own": {"inner": {"allOf": [5], "type": [[]]}},
}


@every_conversion
def test_one_malformed_tool_does_not_stop_the_others(how: str) -> None:
    good = tool(of({"x": {"type": "integer"}}, "x"), "good")

    kit = CONVERSIONS[how]([tool(MALFORMED, "bad"), good])

    assert faults(kit) == []
    assert len(kit.tools) == 2
    assert kit.arguments("good", {"x": 1}) == {"x": 1}
    assert any("malformed" in change for change in kit.report.tools[0].changes)


@every_conversion
def test_a_bound_that_no_float_can_hold_is_malformed(how: str) -> None:
    schema = of({"x": {"type": "integer", "minimum": 10**400, "maximum": -(10**400)}}, "x")

    kit = CONVERSIONS[how]([tool(schema)])

    assert faults(kit) == []
    assert str(kit.report.tools[0].changes).count("malformed") == 2
    assert kit.arguments("t", {"x": 1}) == {"x": 1}


@every_conversion
@pytest.mark.parametrize("schema", [True, "object", [1]])
def test_a_tool_whose_schema_is_no_object_does_not_stop_the_others(schema: Any, how: str) -> None:
    good = tool(of({"x": {"type": "integer"}}, "x"), "good")

    kit = CONVERSIONS[how]([{"name": "bad", "inputSchema": schema}, good])

    assert faults(kit) == []
    assert len(kit.tools) == 2
    assert any("malformed" in change for change in kit.report.tools[0].changes)


def test_a_remote_reference_is_never_fetched(monkeypatch: pytest.MonkeyPatch) -> None:
    opened: list[Any] = []
    monkeypatch.setattr("socket.socket.connect", lambda *given: opened.append(given))
    schema = of({"x": {"$ref": "http://127.0.0.1:9/x.json"}, "y": {"$ref": "file:///etc/passwd"}})

    kits = [convert([tool(schema)]) for convert in CONVERSIONS.values()]

    assert [faults(kit) for kit in kits] == [[]] * len(kits)
    assert opened == []


@every_conversion
@pytest.mark.parametrize("case", HOSTILE)
def test_a_hostile_schema_is_converted_in_bounded_time(case: str, how: str) -> None:
    before = process_time()

    kit = CONVERSIONS[how]([tool(HOSTILE[case])])

    assert process_time() - before < 5
    assert faults(kit) == []
    assert kit.arguments("t", {"x": {"a": {}}}) == {"x": {"a": {}}}


@every_conversion
def test_a_schema_of_300_levels_does_not_stop_the_other_tools(how: str) -> None:
    good = tool(of({"x": {"type": "integer"}}, "x"), "good")

    kit = CONVERSIONS[how]([tool(nested(300), "deep"), good])

    assert faults(kit) == []
    assert [each.tool for each in kit.report.tools] == ["deep", "good"]
    assert kit.arguments("good", {"x": 1}) == {"x": 1}
