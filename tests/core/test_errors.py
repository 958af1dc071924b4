"""The table of error codes, the tree of exceptions, and the hint about a missing extra."""

import ast
import asyncio
import re
import tomllib
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest

import answerback
from answerback import App, NotFound, Reply, ToolError, failure
from answerback.core.reply import Error
from answerback.errors import (
    BUILT_IN,
    CODES,
    AnswerbackError,
    Code,
    MissingExtraError,
    find_code,
    needs_extra,
)

SRC = Path(answerback.__file__).parent
NEVER_SENT = {"CANCELLED"}
"""Codes of calls whose client no longer waits for a reply."""
OURS = {"ToolError", *(error.__name__ for error in ToolError.__subclasses__())}


@pytest.mark.parametrize("code", CODES)
def test_every_code_has_a_valid_status_on_each_wire(code: str) -> None:
    row = CODES[code]

    assert re.fullmatch("[A-Z][A-Z_]*[A-Z]", code)
    assert 400 <= row.status < 600
    assert row.exit in {1, 2} or 64 <= row.exit <= 78
    assert row.rpc is None or -32768 <= row.rpc <= -32000


def test_only_temporary_failures_are_retryable() -> None:
    # Apps of other tests may have added codes of their own.
    assert {code for code in BUILT_IN if CODES[code].retryable} == {
        "RATE_LIMITED",
        "UNAVAILABLE",
        "TIMED_OUT",
    }


def test_only_invalid_json_and_unknown_tools_are_json_rpc_errors() -> None:
    # Apps of other tests may have added codes of their own.
    assert {code: CODES[code].rpc for code in BUILT_IN if CODES[code].rpc is not None} == {
        "INVALID_JSON": -32700,
        "TOOL_NOT_FOUND": -32602,
    }


@pytest.mark.parametrize("code", ["INVALID_RESPONSE_FORMAT", "RESPONSE_VALIDATION_ERROR"])
def test_the_codes_of_the_seeds_keep_their_names(code: str) -> None:
    assert find_code(code).status == 500


def test_an_unknown_code_is_a_500_unless_it_has_a_kind() -> None:
    assert find_code("CITY_UNKNOWN").status == 500
    assert find_code("CITY_UNKNOWN", "NOT_FOUND").status == 404
    assert find_code("CITY_UNKNOWN", "NO_SUCH_KIND").status == 500
    assert find_code("CONFLICT", "NOT_FOUND").status == 409


def tree(root: type[AnswerbackError]) -> Iterator[type[AnswerbackError]]:
    for error in root.__subclasses__():
        if error.__module__.startswith("answerback."):
            yield error
            yield from tree(error)


def test_every_subclass_of_tool_error_is_in_the_table() -> None:
    kinds = {error.kind for error in tree(ToolError) if issubclass(error, ToolError)}

    assert "NOT_FOUND" in kinds
    assert kinds <= set(CODES)


def codes_in(path: Path) -> Iterator[str]:
    """Yield the codes in a module: keyword arguments, calls of Error(...), ToolError classes."""
    for node in ast.walk(ast.parse(path.read_text())):
        match node:
            case ast.keyword(arg="code" | "kind", value=ast.Constant(value=str(code))):
                yield code
            case ast.Call(func=ast.Name(id="Error"), args=[ast.Constant(value=str(code)), *_]):
                yield code
            case ast.ClassDef(bases=bases, body=body) if OURS & set(map(ast.unparse, bases)):
                yield from filter(None, map(own_code, body))


def own_code(line: ast.stmt) -> str | None:
    match line:
        case ast.Assign(targets=[ast.Name(id="code"), *_], value=ast.Constant(value=str(code))):
            return code
    return None


def test_every_code_that_is_used_is_in_the_table() -> None:
    used = {code: path.name for path in sorted(SRC.rglob("*.py")) for code in codes_in(path)}

    assert {"NOT_FOUND", "TOO_LARGE", "INPUT_DECLINED"} <= set(used)
    missing = {code: where for code, where in used.items() if code.isupper() and code not in CODES}
    assert set(missing) <= NEVER_SENT


def test_the_value_of_each_code_constant_is_its_name() -> None:
    module = vars(answerback.errors)
    constants = {name: value for name, value in module.items() if name in CODES}

    assert constants
    assert all(name == value for name, value in constants.items())


def test_a_tool_error_can_be_raised_with_a_message_alone() -> None:
    error = NotFound("no such city")

    assert str(error) == error.message == "no such city"
    assert (error.code, error.details, error.retryable, error.hint) == (
        "NOT_FOUND",
        None,
        None,
        None,
    )


def test_a_missing_extra_names_the_package_to_install() -> None:
    hint = r"starlette is not installed; run: pip install 'answerback\[serve\]'"

    with pytest.raises(MissingExtraError, match=hint), needs_extra("serve"):
        raise ModuleNotFoundError("no", name="starlette")


def test_every_extra_that_a_hint_names_exists() -> None:
    project = tomllib.loads(Path(__file__).parents[2].joinpath("pyproject.toml").read_text())
    hint = re.compile(r'needs_extra\("(.+?)"\)')

    named = {name for path in SRC.rglob("*.py") for name in hint.findall(path.read_text())}

    assert len(named) >= 5
    assert named <= project["project"]["optional-dependencies"].keys()


def test_other_failures_while_an_extra_is_imported_are_not_changed() -> None:
    with pytest.raises(ZeroDivisionError), needs_extra("serve"):
        raise ZeroDivisionError


@pytest.fixture
def table() -> Iterator[None]:
    """Removes the codes that a test adds to the table."""
    yield
    for code in CODES.keys() - BUILT_IN:
        del CODES[code]


def raise_or_return(app: App, reply: Any) -> Any:
    async def fail() -> Any:
        return reply

    app.add_tool(fail)
    return asyncio.run(app.call("fail")).error


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("value", "row"),
    [
        (404, Code(404, exit=66)),
        (503, Code(503, exit=69, retryable=True)),
        (418, Code(418, exit=1)),
        (Code(410, exit=66, retryable=True), Code(410, exit=66, retryable=True)),
    ],
)
def test_an_app_adds_codes_of_its_own_to_the_table(value: Any, row: Code) -> None:
    app = App("test", codes={"INSTANCE_NOT_FOUND": value})

    error = raise_or_return(app, failure("gone", code="INSTANCE_NOT_FOUND"))

    assert error.row == row
    assert app.write(Reply(error=error), "envelope")["error"].keys() <= {
        *("code", "message", "retryable"),
    }


@pytest.mark.usefixtures("table")
def test_two_apps_may_add_the_same_code_if_they_mean_the_same() -> None:
    App("one", codes={"CITY_UNKNOWN": 404})
    App("two", codes={"CITY_UNKNOWN": 404})

    with pytest.raises(ValueError, match="'CITY_UNKNOWN' already has the status 404"):
        App("three", codes={"CITY_UNKNOWN": 409})


@pytest.mark.usefixtures("table")
@pytest.mark.parametrize(
    ("codes", "message"),
    [
        ({"NOT_FOUND": 410}, "'NOT_FOUND' is one of Answerback's own codes"),
        ({"not found": 404}, "'not found' should be a code in capitals"),
        ({"GONE": 200}, "the status of 'GONE' should be from 400 to 599, not 200"),
        ({"GONE": "404"}, "the status of 'GONE' should be from 400 to 599, not '404'"),
    ],
)
def test_a_code_that_cannot_be_in_the_table_is_refused(codes: Any, message: str) -> None:
    with pytest.raises(ValueError, match=message):
        App("test", codes=codes)


@pytest.mark.parametrize("kind", ["NOT_FOUND", NotFound])
def test_a_failure_with_a_kind_has_the_status_of_that_kind(kind: Any) -> None:
    error = failure("gone", code="INSTANCE_GONE", kind=kind).error

    assert error is not None
    assert (error.code, error.row.status, error.row.exit) == ("INSTANCE_GONE", 404, 66)


def test_a_kind_without_a_code_is_the_code() -> None:
    error = failure("gone", kind=NotFound).error

    assert error is not None
    assert (error.code, error.kind) == ("NOT_FOUND", None)


def test_a_kind_that_is_not_in_the_table_is_refused() -> None:
    with pytest.raises(ValueError, match="kind='MISSING' should be a code such as 'NOT_FOUND'"):
        failure("gone", kind="MISSING")


def test_an_error_without_a_kind_sends_none() -> None:
    error = raise_or_return(App("test"), failure("gone", code="INSTANCE_GONE"))
    raised = Error.of(ToolError("gone", code="INSTANCE_GONE"))

    assert error.kind is None
    assert "kind" not in Reply(error=raised).to("mcp")["_meta"]["answerback/error"]
