"""The OpenAPI document is valid, and its schemas match the bodies that are sent."""

from __future__ import annotations

import asyncio
import json
import subprocess
import sys
from pathlib import Path
from typing import Any

import httpx
import pytest
from jsonschema import Draft202012Validator  # type: ignore[import-untyped]  # it ships no types
from openapi_spec_validator import OpenAPIV31SpecValidator
from tests.server.openapi_samples import (
    CALLS,
    CityUnknown,
    Order,
    Point,
    Uncountable,
    described,
    media_of,
    nothing,
    post,
    references,
    resolved,
    response,
    rich,
    schema_errors,
)

from answerback import (
    App,
    Conflict,
    NotFound,
    RateLimited,
    Reply,
    ToolError,
    failure,
)
from answerback.contract import PRESETS
from answerback.dialects import write
from answerback.dialects.accept import MEDIA_TYPES
from answerback.registry.declarations import registry_of
from answerback.server.http.openapi import document, document_json
from answerback.server.http.routes import function_list

CONTRACTS = list(PRESETS)
REST = [name for name, preset in PRESETS.items() if preset.http == "rest"]
SEED_001_ERROR = {
    "type": "object",
    "properties": {"error": {"type": "string"}},
    "required": ["error"],
}


@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_document_of_every_contract_is_valid_openapi(contract: str) -> None:
    found = rich(contract).openapi()

    assert found["openapi"].startswith("3.1.")
    assert [error.message for error in OpenAPIV31SpecValidator(found).iter_errors()] == []


def test_an_app_without_tools_has_a_valid_document() -> None:
    found = App("empty").openapi()

    assert [error.message for error in OpenAPIV31SpecValidator(found).iter_errors()] == []
    assert list(found["paths"]) == ["/functions", "/openapi.json", "/healthz", "/readyz"]


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize(("name", "arguments"), CALLS)
def test_every_body_matches_its_schema_in_every_dialect(
    contract: str, name: str, arguments: dict[str, Any]
) -> None:
    """This holds for success and failure."""
    app, whole = described(contract)
    tool = app.tools[name]
    reply = asyncio.run(app.call(name, **arguments))
    own = {"application/json": app.contract.http}

    for media_type, dialect in {**own, **MEDIA_TYPES}.items():
        if (dialect == "problem" and reply.ok) or (
            dialect == app.contract.http and media_type in MEDIA_TYPES
        ):
            continue
        written = write(reply, dialect, tool.shape, app.contract)
        declared = response(whole, name, written.status)
        if written.media_type.startswith(("image", "audio")):
            assert media_of(written.media_type, declared["content"]) == {}
            assert f"{written.media_type.partition('/')[0]}/*" in declared["content"]
        else:
            schema = declared["content"][media_type]["schema"]
            assert schema_errors(schema, whole, json.loads(written.body)) == []
        assert {header for header, _ in written.headers} <= {
            *declared.get("headers", {}),
            "X-Content-Type-Options",
        }


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize("code", ["TOO_LARGE", "UNSUPPORTED_MEDIA_TYPE", "INVALID_JSON"])
def test_a_refusal_of_the_wire_matches_its_schema(contract: str, code: str) -> None:
    app, whole = described(contract)
    refused = failure("no", code=code, hint="try otherwise")

    written = write(refused, app.contract.http, app.tools["nothing"].shape, app.contract)

    declared = response(whole, "nothing", written.status)
    schema = declared["content"]["application/json"]["schema"]
    assert schema_errors(schema, whole, json.loads(written.body)) == []


def test_a_contract_with_problem_has_problem_details_for_errors_only() -> None:
    whole = rich(PRESETS["standard"].derive(name="own", http="problem")).openapi()

    assert [error.message for error in OpenAPIV31SpecValidator(whole).iter_errors()] == []
    assert "application/json" in response(whole, "find", 200)["content"]
    assert "application/problem+json" not in response(whole, "find", 200)["content"]
    assert "application/json" not in response(whole, "find", 404)["content"]
    assert "application/problem+json" in response(whole, "find", 404)["content"]


@pytest.mark.parametrize("contract", CONTRACTS)
def test_a_wrong_body_does_not_match_the_schemas(contract: str) -> None:
    """This shows that the tests above can fail."""
    _, whole = described(contract)

    for media_type, media in response(whole, "move", 200)["content"].items():
        assert schema_errors(media["schema"], whole, {"x": "one"}), media_type
        assert schema_errors(media["schema"], whole, {"error": "no"}), media_type
    for media_type, media in response(whole, "move", 400)["content"].items():
        assert schema_errors(media["schema"], whole, {"x": 1, "y": 2}), media_type


@pytest.mark.parametrize("contract", REST)
def test_seed_001_scenario_5_every_operation_has_400_and_500_with_the_error_schema(
    contract: str,
) -> None:
    """The seed reads the schema in the operation itself and follows no references."""
    paths = rich(contract).openapi()["paths"]
    operations = [path["post"] for path in paths.values() if "post" in path]

    assert operations
    for operation in operations:
        for status, description in (("400", "Invalid request"), ("500", "Internal server error")):
            declared = operation["responses"][status]
            assert declared["description"] == description
            assert declared["content"]["application/json"]["schema"] == SEED_001_ERROR
        assert operation["responses"]["200"]["description"] == "Successful execution"


def test_seed_001_results_have_the_structure_of_the_seed() -> None:
    whole = rich("aligned").openapi()

    def properties(name: str) -> list[str]:
        schema = response(whole, name, 200)["content"]["application/json"]["schema"]
        return list(schema.get("properties", {}))

    assert properties("paint") == ["result"]
    assert properties("move") == ["result"]
    assert properties("two") == ["result0", "result1"]
    assert properties("nothing") == []


@pytest.mark.parametrize("contract", CONTRACTS)
def test_every_component_is_used_and_every_reference_resolves(contract: str) -> None:
    _, whole = described(contract)
    components = {
        f"#/components/{kind}/{name}"
        for kind, named in whole["components"].items()
        for name in named
    }

    assert set(references(whole)) == components


def test_components_have_the_name_of_their_class_and_the_module_if_two_share_it() -> None:
    names = rich().openapi()["components"]["schemas"].keys()

    assert {"Tree", "Problem", "somewhere.else_.Point"} <= names
    assert "Point" not in names
    assert len([name for name in names if name.endswith("Point")]) == 2


def test_a_class_with_the_name_of_a_reserved_component_gets_another_name() -> None:
    _, whole = described("standard")

    theirs = response(whole, "our_problem", 200)["content"]["application/json"]["schema"]
    ours = response(whole, "our_problem", 400)["content"]["application/problem+json"]["schema"]

    assert "which" in resolved(theirs, whole)["properties"]
    assert "detail" in resolved(ours, whole)["properties"]


def test_a_class_used_by_several_tools_is_one_component() -> None:
    app = App("shared")

    @app.tool
    def swap(point: Point) -> Point:
        return point

    @app.tool
    def collect(points: list[Point]) -> dict[str, Point]:
        return {str(point.x): point for point in points}

    text = document_json(registry_of(app)).decode()

    assert text.count("Where something is.") == 1


def test_a_model_whose_input_and_output_differ_is_two_components() -> None:
    """Pydantic accepts a decimal as a number or a string, and sends it as a string."""
    app = App("forms")

    @app.tool
    def echo(order: Order) -> Order:
        return order

    whole = app.openapi()
    input_schema = post(whole, "echo")["requestBody"]["content"]["application/json"]["schema"]
    output_schema = response(whole, "echo", 200)["content"]["application/json"]["schema"]
    order = {"basket": {"price": 1.5}}

    assert schema_errors(input_schema, whole, {"order": order}) == []
    assert schema_errors(output_schema, whole, order) != []
    assert {"Basket", "BasketOutput"} <= whole["components"]["schemas"].keys()


def test_the_order_of_tools_does_not_change_the_names() -> None:
    app = App("Größen & more")
    for tool in reversed(rich().tools.values()):
        app.add_tool(tool.fn)

    assert app.openapi()["components"]["schemas"] == rich().openapi()["components"]["schemas"]


def test_a_body_is_required_only_if_an_argument_is() -> None:
    _, whole = described("standard")

    required = {name: post(whole, name)["requestBody"]["required"] for name in rich().tools}

    assert required["move"]
    assert not required["nothing"]
    assert not required["two"]


def test_arguments_have_descriptions_and_defaults_and_no_others_are_allowed() -> None:
    _, whole = described("standard")

    body = post(whole, "grow")["requestBody"]["content"]["application/json"]["schema"]
    dates = post(whole, "dated")["requestBody"]["content"]["application/json"]["schema"]

    assert body["additionalProperties"] is False
    assert body["required"] == ["tree"]
    assert body["properties"]["tree"]["description"] == "What grows — ein Baum."
    assert body["properties"]["colours"]["default"] == ["rot"]
    assert dates["properties"]["on"]["default"] == "2026-01-01"
    assert dates["properties"]["raw"]["default"] == "/w=="


def test_the_schema_of_arguments_agrees_with_the_one_for_mcp() -> None:
    app = rich()
    whole = app.openapi()

    for name, arguments in CALLS:
        body = post(whole, name)["requestBody"]["content"]["application/json"]["schema"]
        listed = list(Draft202012Validator(app.tools[name].input_schema).iter_errors(arguments))
        assert bool(schema_errors(body, whole, arguments)) == bool(listed), name


def test_the_examples_of_a_tool_are_in_its_request_body() -> None:
    _, whole = described("standard")

    media = post(whole, "find")["requestBody"]["content"]["application/json"]

    values = [example["value"] for example in media["examples"].values()]
    assert values == [{"city": "Tromsø"}, {"city": "東京", "on": "2026-01-01"}]
    assert [schema_errors(media["schema"], whole, value) for value in values] == [[], []]


def test_an_example_that_is_not_json_is_refused() -> None:
    app = App("examples")
    app.add_tool(nothing, examples=[{"handle": object()}])

    with pytest.raises(ValueError, match="an example of tool 'nothing' is not JSON"):
        app.openapi()


def test_the_summary_is_the_title_or_the_first_line_of_the_docstring() -> None:
    _, whole = described("standard")

    assert post(whole, "find")["summary"] == "Find a city"
    assert post(whole, "find")["description"] == "Find a city.\n\nIt may be anywhere."
    assert post(whole, "move")["summary"] == "Move a point."
    assert "summary" not in post(whole, "measure")


def test_operation_ids_are_those_of_seed_001_and_unique() -> None:
    paths = rich().openapi()["paths"]

    ids = [operation["operationId"] for path in paths.values() for operation in path.values()]

    assert "functions.move" in ids
    assert len(set(ids)) == len(ids)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_tools_are_at_the_route_of_the_contract(contract: str) -> None:
    route = PRESETS[contract].route

    assert f"{route}move" in rich(contract).openapi()["paths"]


def raising(city: str) -> str:
    """Fail in ways of its own.

    Raises:
        answerback.RateLimited: If it is asked too often.
        RateLimited: Or too loudly.
        ValueError: Never seen by a caller.
    """
    raise CityUnknown(city)


def returning() -> Reply[int]:
    return failure("later", code="TIMED_OUT")


def harmless() -> str:
    return "CONFLICT"


def test_statuses_come_from_the_errors_in_options_and_docstring() -> None:
    app = App("raising")
    app.add_tool(raising)
    app.add_tool(raising, name="declared", raises=[NotFound, Uncountable])
    app.add_tool(returning)
    app.add_tool(harmless, raises=[Conflict, CityUnknown, RateLimited, ToolError])
    app.add_tool(harmless, name="unharmed")
    whole = app.openapi()
    always = {"200", "400", "413", "415", "500", "503", "default"}

    def more(name: str) -> set[str]:
        return set(post(whole, name)["responses"]) - always

    assert more("raising") == {"429"}
    assert more("declared") == {"404", "409", "429"}
    assert more("returning") == set()
    assert more("harmless") == {"404", "409", "429"}
    assert more("unharmed") == set()
    assert all(always <= post(whole, name)["responses"].keys() for name in app.tools)


@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_default_response_of_every_operation_is_an_error(contract: str) -> None:
    whole = rich(contract).openapi()
    operations = [each for path in whole["paths"].values() for each in path.values()]

    assert len(operations) > len(CALLS) // 2
    for operation in operations:
        assert list(operation["responses"])[-1] == "default"
        declared = resolved(operation["responses"]["default"], whole)
        refused = resolved(operation["responses"]["400"], whole)
        assert declared["content"] == refused["content"]
        assert "Retry-After" in declared["headers"]


def test_the_docstring_describes_the_status_of_an_error() -> None:
    app = App("raising")
    app.add_tool(raising, raises=[NotFound])
    whole = app.openapi()

    assert response(whole, "raising", 429)["description"] == (
        "If it is asked too often.; Or too loudly."
    )
    assert response(whole, "raising", 404)["description"] == "Not found"


def test_error_responses_declare_the_error_code_header() -> None:
    _, whole = described("standard")

    for path in whole["paths"].values():
        for status, declared in path.get("post", {"responses": {}})["responses"].items():
            headers = resolved(declared, whole).get("headers", {})
            assert ("X-Error-Code" in headers) == (status != "200")


@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_pages_match_their_schemas(contract: str) -> None:
    app, whole = described(contract)

    async def get(path: str) -> httpx.Response:
        transport = httpx.ASGITransport(app.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://localhost") as client:
            return await client.get(path)

    for path in ("/functions", "/openapi.json", "/healthz", "/readyz"):
        page = asyncio.run(get(path))
        declared = whole["paths"][path]["get"]["responses"][str(page.status_code)]["content"]
        schema = declared[page.headers["content-type"]]["schema"]
        assert schema_errors(schema, whole, page.json()) == []
    assert asyncio.run(get("/openapi.json")).content == document_json(registry_of(app))
    assert asyncio.run(get("/functions")).json() == json.loads(function_list(registry_of(app)))


def test_the_document_is_cached_until_a_tool_is_added() -> None:
    app = rich()
    first = document_json(registry_of(app))

    assert document_json(registry_of(app)) is first
    app.add_tool(nothing, name="another")
    assert b"functions.another" in document_json(registry_of(app))


def test_the_document_names_the_prefix_of_a_mounted_app_as_its_server() -> None:
    app = rich()

    assert document(registry_of(app), "/tools")["servers"] == [{"url": "/tools"}]
    assert app.openapi()["servers"] == [{"url": "/"}]


def test_changing_a_document_does_not_change_the_next_one() -> None:
    app = rich()
    app.openapi()["paths"].clear()

    assert app.openapi()["paths"]


def test_the_document_is_compact_json() -> None:
    app = rich()

    compact = json.dumps(app.openapi(), ensure_ascii=False, separators=(",", ":"))

    assert document_json(registry_of(app)).decode() == compact


@pytest.mark.parametrize("heavy", ["starlette", "uvicorn", "asyncio", "pydantic", "http.client"])
def test_printing_the_document_imports_nothing_heavy(heavy: str) -> None:
    """CGI and the command line print the document too, and start a process for each request."""
    example = Path(__file__).parents[2] / "examples" / "aligned.py"
    probe = f"""
import runpy, sys
from answerback.registry.declarations import registry_of
from answerback.server.http.openapi import document, document_json
document_json(registry_of(runpy.run_path({str(example)!r})["app"]))
sys.exit({heavy!r} in sys.modules)
"""

    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0


def test_operations_have_the_tags_of_their_tools() -> None:
    app = App("shop")

    @app.tool(tags={"orders", "admin"})
    def cancel(id: int) -> None: ...

    @app.tool(tags={"orders"}, task="optional")
    def order(item: str) -> int:
        return len(item)

    @app.tool
    def ping() -> None: ...

    document = app.openapi()
    paths = document["paths"]

    assert paths["/functions/cancel"]["post"]["tags"] == ["admin", "orders"]
    assert paths["/functions/ping"]["post"]["tags"] == ["functions"]
    tasks = [path for path in paths if "/order/tasks/" in path]
    assert tasks
    assert all(
        each["tags"] == ["orders"]
        for path in tasks
        for name, each in paths[path].items()
        if name != "parameters"
    )
    assert [tag["name"] for tag in document["tags"]] == ["admin", "orders", "functions", "service"]


def test_the_tag_of_functions_is_left_out_if_every_tool_has_its_own() -> None:
    app = App("shop")
    app.add_tool(len_of, tags=["text"])

    assert [tag["name"] for tag in app.openapi()["tags"]] == ["text", "service"]


def len_of(text: str) -> int:
    return len(text)
