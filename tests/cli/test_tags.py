"""`--tag` and `--exclude-tag` of the commands that load an App."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

TAGGED = """
from answerback import App

files = App("files")
app = App("office")
app.include(files)

@files.tool(tags={"read"})
def show() -> str:
    return "text"

@files.tool(tags=["write", "danger"])
def erase() -> str:
    return "erased"

@app.tool
def hello() -> str:
    return "hello"
"""


@pytest.fixture(autouse=True)
def office(tmp_path: Path) -> None:
    (tmp_path / "office.py").write_text(TAGGED)


@pytest.mark.parametrize(
    ("flags", "names"),
    [
        ([], ["hello", "show", "erase"]),
        (["--tag", "read"], ["show"]),
        (["--tag", "read", "--tag", "write"], ["show", "erase"]),
        (["--exclude-tag", "write"], ["hello", "show"]),
        (["--tag", "write", "--exclude-tag", "danger"], []),
    ],
)
def test_only_the_tools_that_the_tags_select_are_listed(
    answerback: Run, flags: list[str], names: list[str]
) -> None:
    listed = json.loads(answerback("list", "office.py", "--json", *flags).stdout)

    assert [tool["name"] for tool in listed] == names


def test_a_tool_that_the_tags_exclude_cannot_be_called(answerback: Run) -> None:
    refused = answerback("call", "office.py", "erase", "--exclude-tag", "write")
    served = answerback("call", "office.py", "erase", "--tag", "write")

    assert json.loads(refused.stderr)["code"] == "TOOL_NOT_FOUND"
    assert json.loads(served.stdout) == {"result": "erased"}


def test_the_openapi_document_has_only_the_tools_that_the_tags_select(answerback: Run) -> None:
    document = json.loads(answerback("openapi", "office.py", "--tag", "read").stdout)

    assert [path for path in document["paths"] if "/functions/" in path] == ["/functions/show"]


def test_cgi_answers_only_for_the_tools_that_the_tags_select(
    answerback: Run, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("REQUEST_METHOD", "POST")
    monkeypatch.setenv("PATH_INFO", "/erase")

    refused = answerback("cgi", "office.py", "--exclude-tag", "write")

    assert refused.stdout.startswith("Status: 404")


def test_mcp_serves_only_the_tools_that_the_tags_select(answerback: Run) -> None:
    request = b'{"jsonrpc": "2.0", "id": 1, "method": "tools/list"}\n'

    answer = json.loads(answerback("mcp", "office.py", "--tag", "read", stdin=request).stdout)

    assert [tool["name"] for tool in answer["result"]["tools"]] == ["show"]


def test_a_tag_that_nothing_has_is_refused_with_the_tags_that_there_are(answerback: Run) -> None:
    done = answerback("list", "office.py", "--exclude-tag", "wrte")

    assert done.stderr == (
        "error: nothing in office has the tag 'wrte'; the tags are danger, read, write\n"
    )
    assert done.exit == 2


def test_an_app_that_another_includes_needs_no_name_in_the_target(answerback: Run) -> None:
    done = answerback("call", "office.py", "hello")

    assert json.loads(done.stdout) == {"result": "hello"}
