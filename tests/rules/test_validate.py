"""`validate`: what it takes, and what it gives."""

from __future__ import annotations

import subprocess
import sys
from typing import Any

import msgspec
import pytest

from answerback import Image, Reply, failure, success, validate
from answerback.errors import MissingExtraError
from answerback.rules import Finding
from answerback.rules.checks import ab32_output_schema

WEATHER = {"temperature": 22.5, "humidity": 65}


def text(said: str, **more: Any) -> dict[str, Any]:
    return {"content": [{"type": "text", "text": said}], **more}


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
def test_a_reply_of_ours_is_right_in_every_dialect(reply: Reply[Any], dialect: Any) -> None:
    assert validate(reply, dialect) == ()


def test_a_reply_of_ours_is_looked_into() -> None:
    found = validate(failure("Error occurred"))

    assert [each.rule for each in found] == ["AB204"]


def test_a_finding_says_where_it_is_and_what_to_do() -> None:
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
def test_json_is_taken_as_bytes_and_as_text(make: Any) -> None:
    assert [each.rule for each in validate(make(text("fine", _meta=[])))] == ["AB122"]


def test_an_object_with_success_is_an_envelope_and_any_other_an_mcp_result() -> None:
    assert [each.rule for each in validate({"success": True, **text("fine")})] == ["AB105"]
    assert validate(text("fine")) == ()


def test_an_mcp_result_that_is_an_envelope_too_is_an_mcp_result() -> None:
    """So the envelope contract sends them over MCP, where blocks have MCP's form."""
    assert validate({"success": True, "isError": False, **text("fine")}) == ()


def test_the_dialect_that_is_given_counts() -> None:
    assert "AB101" in [each.rule for each in validate(text("fine"), "envelope")]


def test_a_version_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="no version of MCP is called '2020-01-01'"):
        validate(text("fine"), version="2020-01-01")


def test_a_broken_output_schema_is_told_as_such() -> None:
    found = validate(text("{}", structuredContent={}), schema={"type": "nonsense"})

    assert [each.rule for each in found] == ["AB320"]
    assert "the output schema itself is broken" in found[0].message


def test_a_reference_to_another_machine_is_not_followed() -> None:
    schema = {"$ref": "http://127.0.0.1:9/schema.json"}

    found = validate(text("{}", structuredContent={}), schema=schema)

    assert "is not followed" in found[0].message


def test_without_the_extra_a_schema_asks_for_it(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setitem(sys.modules, "jsonschema_rs", None)
    ab32_output_schema._compiled.cache_clear()

    with pytest.raises(MissingExtraError, match=r"pip install 'answerback\[lint\]'"):
        validate(text("{}", structuredContent={}), schema={"type": "object"})


def test_without_the_extra_all_else_is_checked() -> None:
    probe = (
        "import sys; sys.modules['jsonschema_rs'] = sys.modules['rich'] = None\n"
        "from answerback import validate\n"
        "sys.exit(len(validate({'content': 'x'})))"
    )

    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 1


def test_what_json_cannot_say_is_no_reason_to_fail() -> None:
    cycle: dict[str, Any] = text("fine")
    cycle["structuredContent"] = cycle

    assert validate(cycle) is not None
    assert validate({**cycle, "null": "postgres://a:hunter22@b"}) is not None
    assert validate(text("a lone \ud800 surrogate")) == ()
    assert validate(text("fine", structuredContent={"when": object()})) is not None


def test_a_reply_is_not_changed_by_looking_at_it() -> None:
    reply = text("fine", structuredContent=None, is_error=True)
    before = msgspec.json.encode(reply)

    validate(reply)

    assert msgspec.json.encode(reply) == before


def test_importing_the_rules_loads_no_optional_dependency() -> None:
    probe = (
        "import answerback.rules, sys; sys.exit(bool({'rich', 'jsonschema_rs'} & {*sys.modules}))"
    )

    assert subprocess.run([sys.executable, "-c", probe], check=False).returncode == 0


def test_a_dialect_that_there_is_not_is_refused() -> None:
    with pytest.raises(ValueError, match="no dialect is called 'MCP'"):
        validate({}, dialect="MCP")  # type: ignore[arg-type]  # what is tested


@pytest.mark.parametrize(
    ("number", "name"), [("nan", "NaN"), ("inf", "Infinity"), ("-inf", "-Infinity")]
)
def test_a_number_that_is_none_is_called_as_javascript_calls_it(number: str, name: str) -> None:
    found = validate({"content": [], "structuredContent": {"mean": float(number)}})

    assert [each.message for each in found if each.rule == "AB304"] == [f"{name} is not JSON"]


@pytest.mark.parametrize(
    ("said", "path"),
    [
        ("cannot open /home/ada/shop/settings.json", "/home/ada/shop/settings.json"),
        ("no such file: '/home/ada/notes.txt'.", "/home/ada/notes.txt"),
        ("boom (/srv/app/server.py:41)", "/srv/app/server.py"),
        ("/opt/shop/conf/shop.yaml: no such key", "/opt/shop/conf/shop.yaml"),
        ("see /root/.ssh, please", "/root/.ssh"),
    ],
)
def test_a_path_is_shown_whole_and_without_what_stands_around_it(said: str, path: str) -> None:
    found = validate({"content": [{"type": "text", "text": said}], "isError": True})

    assert [each.message for each in found] == [f"the error shows a path: {path!r}"]


def test_a_long_text_is_quoted_to_the_end_of_its_beginning() -> None:
    text = "Error: " + "no luck today " * 20
    (found,) = validate({"content": [{"type": "text", "text": text}]})

    assert found.message.endswith("…'")
    assert len(found.message) < 120
