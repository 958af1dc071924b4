"""Names and arguments of a model's call come back as the tool wants them."""

from __future__ import annotations

import re
from copy import deepcopy
from time import process_time
from types import SimpleNamespace
from typing import Any

import jsonschema_rs
import mcp_types
import msgspec
import pytest
from hypothesis import HealthCheck, assume, given, settings
from hypothesis import strategies as st

from answerback import App, InvalidInput, NotFound
from answerback.models import ModelTools, to_anthropic, to_gemini, to_openai

EXAMPLES = 40
CLOSED = {"additionalProperties": False}


def of(properties: dict[str, Any], *required: str) -> dict[str, Any]:
    return {"type": "object", "properties": properties, "required": [*required], **CLOSED}


def kit_of(schema: dict[str, Any], name: str = "t") -> ModelTools:
    return to_openai([{"name": name, "inputSchema": schema}], strict=True)


SCALARS = {
    "string": st.text(max_size=5),
    "integer": st.integers(-9, 9),
    "number": st.floats(-9, 9).map(lambda each: each + 0.0),
    "boolean": st.booleans(),
    "null": st.none(),
}


@st.composite
def schemas(draw: st.DrawFn, depth: int = 2) -> dict[str, Any]:
    kinds = [*SCALARS, "enum"] + (["object", "map", "array", "tuple", "union"] if depth else [])
    kind = draw(st.sampled_from(kinds))
    below = schemas(depth - 1) if depth else st.nothing()
    match kind:
        case "enum":
            return {"enum": draw(st.lists(st.sampled_from(["a", "b", 1, None]), min_size=1))}
        case "object":
            return draw(objects(depth - 1))
        case "map":
            return {"type": "object", "additionalProperties": draw(below)}
        case "array":
            return {"type": "array", "items": draw(below)}
        case "tuple":
            items = draw(st.lists(below, min_size=1, max_size=3))
            least = draw(st.integers(0, len(items)))
            return {"type": "array", "prefixItems": items, "items": False, "minItems": least}
        case "union":
            return {"anyOf": draw(st.lists(below, min_size=1, max_size=3))}
    return {"type": kind}


@st.composite
def objects(draw: st.DrawFn, depth: int = 1) -> dict[str, Any]:
    properties = draw(st.dictionaries(st.sampled_from("abcd"), schemas(depth), max_size=3))
    for name, each in properties.items():
        if draw(st.booleans()) and "default" not in each:
            properties[name] = {**each, "default": draw(st.sampled_from([None, "d"]))}
    required = [name for name in properties if draw(st.booleans())]
    return of(properties, *required)


def values(schema: dict[str, Any]) -> st.SearchStrategy[Any]:
    if "enum" in schema:
        return st.sampled_from(schema["enum"])
    if "anyOf" in schema:
        return st.one_of([values(each) for each in schema["anyOf"]])
    if "prefixItems" in schema:
        items = [values(each) for each in schema["prefixItems"]]
        return st.integers(schema["minItems"], len(items)).flatmap(
            lambda count: st.tuples(*items[:count]).map(list)
        )
    match schema["type"]:
        case "array":
            return st.lists(values(schema["items"]), max_size=3)
        case "object" if "properties" in schema:
            members = {name: values(each) for name, each in schema["properties"].items()}
            required = {name: members.pop(name) for name in schema["required"]}
            return st.fixed_dictionaries(required, optional=members)
        case "object":
            return st.dictionaries(
                st.text(max_size=3), values(schema["additionalProperties"]), max_size=3
            )
    return SCALARS[schema["type"]]


def is_valid(value: Any, schema: dict[str, Any]) -> bool:
    return bool(jsonschema_rs.is_valid(schema, value))


def as_strict_model(value: Any, schema: dict[str, Any]) -> Any:
    """The value as a model writes it under OpenAI's strict mode."""
    if "anyOf" in schema:
        branch = next(each for each in schema["anyOf"] if is_valid(value, each))
        return as_strict_model(value, branch)
    if "prefixItems" in schema:
        filled = value + [None] * (len(schema["prefixItems"]) - len(value))
        pairs = zip(filled, schema["prefixItems"], strict=True)
        return {
            f"item{at}": each if at >= len(value) else as_strict_model(each, inner)
            for at, (each, inner) in enumerate(pairs)
        }
    if isinstance(value, list):
        return [as_strict_model(each, schema["items"]) for each in value]
    if isinstance(value, dict) and "properties" in schema:
        return {
            name: as_strict_model(value[name], each) if name in value else each.get("default")
            for name, each in schema["properties"].items()
        }
    if isinstance(value, dict):
        inner = schema["additionalProperties"]
        return [{"key": key, "value": as_strict_model(each, inner)} for key, each in value.items()]
    return value


def with_defaults(value: Any, schema: dict[str, Any]) -> Any:
    """The value with null and the default put in: a tool takes both for a property left out."""
    if "anyOf" in schema:
        branch = next((each for each in schema["anyOf"] if is_valid(value, each)), None)
        return value if branch is None else with_defaults(value, branch)
    if "prefixItems" in schema:
        pairs = zip(value, schema["prefixItems"], strict=False)
        return [with_defaults(each, inner) for each, inner in pairs]
    if isinstance(value, list):
        return [with_defaults(each, schema["items"]) for each in value]
    if isinstance(value, dict) and "properties" in schema:
        return {
            name: with_defaults(value[name], each) if name in value else each.get("default")
            for name, each in schema["properties"].items()
        }
    if isinstance(value, dict):
        inner = schema["additionalProperties"]
        return {key: with_defaults(each, inner) for key, each in value.items()}
    return value


@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), schema=objects())
def test_any_arguments_of_a_strict_tool_come_back_equal(
    data: st.DataObject, schema: dict[str, Any]
) -> None:
    kit = kit_of(schema)
    assume(kit.report.tools[0].strict)
    wanted = data.draw(values(schema))
    sent = as_strict_model(wanted, schema)
    before = deepcopy(sent)
    # A default may be a value that the property does not take.
    assume(is_valid(sent, kit.tools[0]["function"]["parameters"]))

    decoded = kit.arguments("t", sent)

    assert is_valid(decoded, schema)
    assert with_defaults(decoded, schema) == with_defaults(wanted, schema)
    assert sent == before


ODD_NAMES = ["a b", "a/b", "a_b", "x-y", "9", "žluť", "$ref", "q" * 70]


@st.composite
def with_odd_names(draw: st.DrawFn) -> dict[str, Any]:
    """An object with property names that providers refuse, also in its inner objects."""
    inner = of({name: {"type": "integer"} for name in draw(st.sets(st.sampled_from(ODD_NAMES)))})
    kinds: dict[str, Any] = {"text": {"type": "string"}, "inner": inner, "list": inner}
    kinds["list"] = {"type": "array", "items": inner}
    names = draw(st.lists(st.sampled_from(ODD_NAMES), unique=True, max_size=4))
    properties = {name: kinds[draw(st.sampled_from(sorted(kinds)))] for name in names}
    return of(properties, *(name for name in names if draw(st.booleans())))


def renamed(value: Any, schema: dict[str, Any], converted: dict[str, Any]) -> Any:
    """The value as a model writes it: under the names of the converted schema, in their order."""
    if isinstance(value, list):
        inner = converted["items"]
        return [renamed(each, schema["items"], inner) for each in value]
    if not isinstance(value, dict):
        return value
    names = dict(zip(schema["properties"], converted["properties"], strict=True))
    return {
        names[name]: renamed(each, schema["properties"][name], converted["properties"][names[name]])
        for name, each in value.items()
    }


@pytest.mark.parametrize("convert", [to_gemini, lambda tools: to_anthropic(tools, strict=True)])
@settings(max_examples=EXAMPLES, deadline=None, suppress_health_check=list(HealthCheck))
@given(data=st.data(), schema=with_odd_names())
def test_arguments_come_back_under_the_names_of_the_tool(
    convert: Any, data: st.DataObject, schema: dict[str, Any]
) -> None:
    kit = convert([{"name": "t", "inputSchema": schema}])
    converted = kit.tools[0].get("input_schema") or kit.tools[0]["parametersJsonSchema"]
    wanted = data.draw(values(schema))
    sent = renamed(wanted, schema, converted)

    assert is_valid(sent, converted)
    assert kit.arguments("t", sent) == wanted


@settings(max_examples=EXAMPLES, deadline=None)
@given(st.lists(st.text(max_size=80), unique=True, max_size=8))
def test_any_names_of_tools_are_mapped_there_and_back(names: list[str]) -> None:
    tools = [{"name": name, "inputSchema": {}} for name in names]

    for kit, pattern in (
        (to_openai(tools), r"[a-zA-Z0-9_-]{1,64}"),
        (to_gemini(tools), r"[a-zA-Z_][a-zA-Z0-9_.:-]{0,127}"),
    ):
        sent = [(each.get("function") or each)["name"] for each in kit.tools]
        assert [kit.name_of(name) for name in sent] == names
        assert all(re.fullmatch(pattern, name) for name in sent)


@pytest.mark.parametrize(
    ("schema", "sent", "wanted"),
    [
        (of({"a": {"type": "string"}}), {"a": None}, {}),
        (of({"a": {"type": ["string", "null"], "default": "x"}}), {"a": None}, {"a": None}),
        (of({"a": {"type": ["string", "null"], "default": None}}), {"a": None}, {}),
        (
            of({"m": {"type": "object", "additionalProperties": {"type": "integer"}}}, "m"),
            {"m": [{"key": "x", "value": 1}, {"key": "y", "value": 2}]},
            {"m": {"x": 1, "y": 2}},
        ),
        (
            of({"t": {"prefixItems": [{"type": "integer"}] * 2, "items": False, "minItems": 1}}),
            {"t": {"item0": 1, "item1": None}},
            {"t": [1]},
        ),
        (
            of({"s": {"oneOf": [of({"a": {"type": "string"}}), of({"b": {"type": "string"}})]}}),
            {"s": {"b": None}},
            {"s": {}},
        ),
        (of({"o": of({"p": of({"q": {"type": "string"}})})}), {"o": {"p": None}}, {"o": {}}),
    ],
)
def test_the_forms_of_strict_mode_are_undone(
    schema: dict[str, Any], sent: dict[str, Any], wanted: dict[str, Any]
) -> None:
    kit = kit_of(schema)

    assert kit.report.tools[0].strict
    assert kit.arguments("t", msgspec.json.encode(sent)) == wanted


def test_nulls_are_removed_at_each_level_of_a_recursive_value() -> None:
    node = of({"value": {"type": "integer"}, "next": {"$ref": "#/$defs/Node"}}, "value")
    kit = kit_of({**of({"list": {"$ref": "#/$defs/Node"}}, "list"), "$defs": {"Node": node}})

    decoded = kit.arguments("t", {"list": {"value": 1, "next": {"value": 2, "next": None}}})

    assert decoded == {"list": {"value": 1, "next": {"value": 2}}}


def kit_of_nested_alternatives() -> ModelTools:
    branches = [
        of({"tag": {"const": tag}, "one": NODE_REF, "note": {"type": "string"}}, "tag")
        for tag in "abc"
    ]
    schema = of({"x": NODE_REF}, "x") | {"$defs": {"Node": {"anyOf": branches}}}
    return kit_of(schema)


NODE_REF = {"$ref": "#/$defs/Node"}


def nested_value(levels: int) -> dict[str, Any]:
    value: dict[str, Any] = {"tag": "c", "one": None, "note": None}
    for _ in range(levels):
        value = {"tag": "c", "one": value, "note": None}
    return value


def test_alternatives_that_contain_themselves_are_decoded_in_bounded_time() -> None:
    kit = kit_of_nested_alternatives()
    before = process_time()

    decoded = kit.arguments("t", {"x": nested_value(40)})

    assert process_time() - before < 5
    assert "note" not in decoded["x"]["one"]["one"]


def test_arguments_that_are_nested_too_deeply_are_refused() -> None:
    with pytest.raises(InvalidInput, match="nested too deeply"):
        kit_of_nested_alternatives().arguments("t", {"x": nested_value(500)})


def test_the_hint_about_an_unknown_name_is_not_as_long_as_the_list_of_tools() -> None:
    kit = to_openai([{"name": f"tool{number}", "inputSchema": {}} for number in range(1000)])

    with pytest.raises(NotFound) as refused:
        kit.name_of("x" * 100_000)

    assert str(refused.value.hint).endswith("and 950 others")
    assert len(refused.value.message) < 200


def test_a_key_twice_in_a_list_of_pairs_is_refused() -> None:
    kit = kit_of(of({"m": {"type": "object", "additionalProperties": {"type": "integer"}}}, "m"))

    with pytest.raises(InvalidInput, match="the key 'x' appears twice in the list"):
        kit.arguments("t", {"m": [{"key": "x", "value": 1}, {"key": "x", "value": 2}]})


def test_a_value_that_does_not_fit_is_left_for_the_tool_to_refuse() -> None:
    kit = kit_of(of({"m": {"type": "object", "additionalProperties": {"type": "integer"}}}, "m"))

    assert kit.arguments("t", {"m": 7, "other": None}) == {"m": 7, "other": None}


@pytest.mark.parametrize("raw", ["", b"", None, {}, "{}"])
def test_a_tool_without_arguments_takes_whatever_models_send_for_none(raw: Any) -> None:
    assert kit_of(of({})).arguments("t", raw) == {}


@pytest.mark.parametrize("raw", ["{", "[]", "7", '"x"'])
def test_arguments_that_are_no_object_are_refused(raw: str) -> None:
    with pytest.raises(InvalidInput) as refused:
        kit_of(of({})).arguments("t", raw)

    assert refused.value.code == "INVALID_ARGUMENTS"


def test_names_that_a_provider_refuses_are_mapped_there_and_back() -> None:
    names = ["functions.Add", "calculate-bmi", "a" * 70, "žluť", "get/x", "get x"]
    kit = to_openai([{"name": name, "inputSchema": {}} for name in names])

    sent = [each["function"]["name"] for each in kit.tools]
    assert sent[:2] == ["functions_Add", "calculate-bmi"]
    assert [kit.name_of(name) for name in sent] == names
    assert max(map(len, sent)) == 64


def test_names_that_collide_do_not_depend_on_their_order() -> None:
    names = ["a.b", "a/b", "a_b"]

    one = to_openai([{"name": name} for name in names])
    other = to_openai([{"name": name} for name in reversed(names)])

    sent = [each["function"]["name"] for each in one.tools]
    assert sent[2] == "a_b"
    assert len(set(sent)) == 3
    assert sent == [each["function"]["name"] for each in other.tools][::-1]


def test_property_names_that_a_provider_refuses_are_mapped_back() -> None:
    schema = of({"a b": {"type": "string"}, "ok": of({"x-y": {"type": "integer"}})}, "a b")
    tools = [{"name": "t", "inputSchema": schema}]

    anthropic, gemini = to_anthropic(tools), to_gemini(tools)

    assert anthropic.tools[0]["input_schema"]["required"] == ["a_b"]
    assert anthropic.arguments("t", {"a_b": "v"}) == {"a b": "v"}
    assert gemini.arguments("t", {"a_b": "v", "ok": {"x_y": 1}}) == {"a b": "v", "ok": {"x-y": 1}}


def test_a_name_that_the_model_made_up_is_not_found_and_the_hint_lists_the_tools() -> None:
    kit = kit_of(of({}))

    with pytest.raises(NotFound) as refused:
        kit.name_of("nope")

    assert (refused.value.code, refused.value.hint) == ("TOOL_NOT_FOUND", "the tools are t")


def test_of_two_tools_of_one_name_the_first_is_kept_and_the_report_names_the_other() -> None:
    convert: Any
    for convert in (to_openai, to_anthropic, to_gemini):
        kit = convert(
            [
                {"name": "a", "description": "the first"},
                {"name": "b"},
                {"name": "a", "description": "the second"},
                {"name": "a"},
            ]
        )

        assert [each.tool for each in kit.report.tools] == ["a", "b"]
        assert "the first" in str(kit.tools)
        assert "the second" not in str(kit.tools)
        assert kit.report.warnings == (
            "a second 'a' was left out; give one of the two tools a prefix",
        )


def test_an_app_a_list_of_sdk_objects_and_a_list_result_are_sets_of_tools() -> None:
    app = App("calculator")

    @app.tool
    def add(x: int, y: int = 3) -> int:
        """Add two numbers."""
        return x + y

    schema = app.tools["add"].input_schema
    entry = {"name": "add", "description": "Add two numbers.", "inputSchema": schema}
    sdk = mcp_types.Tool(name="add", description="Add two numbers.", input_schema=schema)
    fast = SimpleNamespace(name="add", description="Add two numbers.", parameters=schema)

    expected = to_openai([entry]).tools
    assert to_openai(app).tools == expected
    assert to_openai(app.tools).tools == expected
    assert to_openai({"tools": [entry]}).tools == expected
    assert to_openai(mcp_types.ListToolsResult(tools=[sdk])).tools == expected
    assert to_openai([sdk]).tools == expected
    assert to_openai([fast]).tools == expected


@pytest.mark.parametrize("tools", ["add", 7, {"name": "add", "inputSchema": {}}, [{"x": 1}]])
def test_something_else_than_a_set_of_tools_is_refused(tools: Any) -> None:
    with pytest.raises(TypeError):
        to_openai(tools)
