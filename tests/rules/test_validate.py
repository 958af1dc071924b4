"""`validate`: its arguments, and its findings."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec
import pytest

from answerback import Image, Reply, failure, success, validate
from answerback.errors import MissingExtraError
from answerback.rules import Finding

WEATHER = {"temperature": 22.5, "humidity": 65}


def text(words: str, **members: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": words}], **members}


@pytest.mark.parametrize("dialect", ["mcp", "envelope", "rest"])
@pytest.mark.parametrize(
    "reply",
    [
        success("It is warm.", WEATHER),
        success(data=[1, 2]),
        success("Done"),
        success(content=[Image(b"\x89PNG\r\n\x1a\n", "image/png")]),
        failure("no such city: Olso", code="NOT_FOUND", details={"near": ["Oslo"]}),
    ],
)
def test_a_correct_reply_object_has_no_findings_in_any_dialect(
    reply: Reply[Any], dialect: Any
) -> None:
    assert validate(reply, dialect) == ()


def test_a_reply_object_is_checked() -> None:
    found = validate(failure("Error occurred"))

    assert [each.rule for each in found] == ["AB204"]


def test_a_finding_has_a_pointer_a_message_and_a_hint() -> None:
    found = validate(text("fine", isError="no"))

    assert found == (
        Finding(
            rule="AB115",
            name="is-error-not-boolean",
            severity="error",
            pointer="/isError",
            message="isError is text, not true or false",
            hint="write true or false, without quotes",
        ),
    )


@pytest.mark.parametrize(
    "make", [msgspec.json.encode, lambda reply: msgspec.json.encode(reply).decode()]
)
def test_json_is_accepted_as_bytes_and_as_text(make: Any) -> None:
    assert [each.rule for each in validate(make(text("fine", _meta=[])))] == ["AB122"]


def test_an_object_with_success_is_an_envelope_and_any_other_an_mcp_result() -> None:
    assert [each.rule for each in validate({"success": True, **text("fine")})] == ["AB105"]
    assert validate(text("fine")) == ()


def test_an_mcp_result_that_is_an_envelope_too_is_an_mcp_result() -> None:
    """So the envelope contract sends them over MCP, where blocks have MCP's form."""
    assert validate({"success": True, "isError": False, **text("fine")}) == ()


def test_a_given_dialect_overrides_the_detected_one() -> None:
    assert "AB101" in [each.rule for each in validate(text("fine"), "envelope")]


def test_an_unknown_version_is_refused() -> None:
    with pytest.raises(ValueError, match="there is no MCP version '2020-01-01'"):
        validate(text("fine"), version="2020-01-01")


def test_an_invalid_output_schema_is_reported_as_such() -> None:
    found = validate(text("{}", structuredContent={}), schema={"type": "nonsense"})

    assert [each.rule for each in found] == ["AB320"]
    assert "the output schema itself is broken" in found[0].message


def test_a_remote_reference_in_a_schema_is_not_followed() -> None:
    schema = {"$ref": "http://127.0.0.1:9/schema.json"}

    found = validate(text("{}", structuredContent={}), schema=schema)

    assert "is not followed" in found[0].message


def test_a_schema_without_the_lint_extra_raises_an_install_hint(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    monkeypatch.delitem(sys.modules, "answerback.types.schema_check", raising=False)

    with pytest.raises(MissingExtraError, match=r"pip install 'answerback\[lint\]'"):
        validate(text("{}", structuredContent={}), schema={"type": "object"})


def test_without_the_lint_extra_all_other_rules_are_checked() -> None:
    probe = (
        "import sys; sys.modules['jsonschema_rs'] = sys.modules['rich'] = None\n"
        "from answerback import validate\n"
        "sys.exit(len(validate({'content': 'x'})))"
    )

    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 1


def test_values_that_json_cannot_express_do_not_raise() -> None:
    cycle: dict[str, Any] = text("fine")
    cycle["structuredContent"] = cycle

    assert validate(cycle) is not None
    assert validate({**cycle, "null": "postgres://a:hunter22@b"}) is not None
    assert validate(text("a lone \ud800 surrogate")) == ()
    assert validate(text("fine", structuredContent={"when": object()})) is not None


def test_validate_does_not_change_the_reply() -> None:
    reply = text("fine", structuredContent=None, is_error=True)
    before = msgspec.json.encode(reply)

    validate(reply)

    assert msgspec.json.encode(reply) == before


def test_importing_the_rules_loads_no_optional_dependency() -> None:
    probe = (
        "import answerback.rules, sys; sys.exit(bool({'rich', 'jsonschema_rs'} & {*sys.modules}))"
    )

    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0


def test_an_unknown_dialect_is_refused() -> None:
    with pytest.raises(ValueError, match="no dialect is called 'MCP'"):
        validate({}, dialect="MCP")  # type: ignore[arg-type]  # the error is what is tested


@pytest.mark.parametrize(
    ("number", "name"), [("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")]
)
def test_nan_and_infinity_are_named_as_in_javascript(number: str, name: str) -> None:
    found = validate({"content": [], "structuredContent": {"mean": float(number)}})

    assert [each.message for each in found if each.rule == "AB304"] == [f"{name} is not JSON"]


@pytest.mark.parametrize(
    ("message", "path"),
    [
        ("cannot open /home/ada/shop/settings.json", "/home/ada/shop/settings.json"),
        ("no such file: '/home/ada/notes.txt'.", "/home/ada/notes.txt"),
        ("boom (/srv/app/server.py:41)", "/srv/app/server.py"),
        ("/opt/shop/conf/shop.yaml: no such key", "/opt/shop/conf/shop.yaml"),
        ("see /root/.ssh, please", "/root/.ssh"),
    ],
)
def test_a_path_in_an_error_is_quoted_whole_and_alone(message: str, path: str) -> None:
    found = validate({"content": [{"type": "text", "text": message}], "isError": True})

    assert [each.message for each in found] == [f"the error shows a path: {path!r}"]


def test_a_long_text_is_quoted_up_to_a_limit() -> None:
    text = "Error: " + "no luck today " * 20
    (found,) = validate({"content": [{"type": "text", "text": text}]})

    assert found.message.endswith("…'")
    assert len(found.message) < 120


PROBLEM_SCHEMA = {
    "type": "object",
    "properties": {"status": {"type": "integer"}, "title": {"type": "string"}},
}


@pytest.mark.parametrize(("schema", "rules"), [(None, ["AB202"]), (PROBLEM_SCHEMA, [])])
def test_an_error_object_that_the_output_schema_describes_is_data(
    schema: Any, rules: list[str]
) -> None:
    problem = {"status": 404, "title": "Not Found"}
    text = {"type": "text", "text": '{"status":404,"title":"Not Found"}'}

    found = validate({"content": [text], "structuredContent": problem}, "mcp", schema)

    assert [each.rule for each in found] == rules


def test_a_version_without_structured_content_needs_none_for_an_output_schema() -> None:
    reply = {"content": [{"type": "text", "text": '{"status":404}'}]}

    assert validate(reply, "mcp", PROBLEM_SCHEMA, "2025-03-26") == ()
    assert [each.rule for each in validate(reply, "mcp", PROBLEM_SCHEMA)] == ["AB321"]


@pytest.mark.parametrize("error", ["", " ", None, 0.05, [None], {}])
def test_an_error_of_a_rest_reply_that_is_empty_or_a_number_is_data(error: Any) -> None:
    assert validate({"error": error}, "rest") == ()


def test_a_reply_object_is_not_judged_by_what_hosts_would_lose() -> None:
    """The tool that returns it decides whether the data has the text too."""
    reply = success("Found one city.", {"name": "Oslo"})

    assert validate(reply) == ()
    assert [each.rule for each in validate(reply.to("mcp"))] == ["AB313"]
