import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

Run = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("tools")


def test_the_tools_are_listed_in_columns(answerback: Run) -> None:
    lines = answerback("list", "tools.py").stdout.splitlines()

    assert "add x=INTEGER [y=INTEGER]   Add two numbers." in lines
    assert "city                        Give a record." in lines
    assert "size_of content=TEXT|@FILE" in lines


def test_a_long_usage_has_its_description_in_the_next_line(answerback: Run) -> None:
    lines = answerback("list", "tools.py").stdout.splitlines()

    at = lines.index("describe tags=LIST-OF-TEXT when=DATE [loud=YES/NO] [size=small|big]")
    assert lines[at + 1].strip() == "Describe what was given."


def test_json_output_has_names_descriptions_and_schemas(answerback: Run) -> None:
    listed = json.loads(answerback("list", "tools.py", "--json").stdout)

    add = next(entry for entry in listed if entry["name"] == "add")
    assert add["description"].startswith("Add two numbers.")
    assert add["inputSchema"]["required"] == ["x"]
    assert add["outputSchema"]["properties"] == {"result": {"type": "integer"}}


def test_an_app_without_tools_is_reported(answerback: Run, tmp_path: Path) -> None:
    (tmp_path / "empty.py").write_text("from answerback import App\napp = App('empty')")

    assert answerback("list", "empty.py").stdout == "empty has no tools\n"


def test_text_printed_by_the_module_goes_to_stderr(answerback: Run) -> None:
    done = answerback("list", "tools.py")

    assert "printed" not in done.stdout
    assert "printed" in done.stderr


CONTAINS_ITSELF = """
from answerback import App

app = App("endless")
ITSELF = {"anyOf": [{"type": "integer"}, {"type": "array", "items": {"$ref": "#/$defs/itself"}}]}
SCHEMA = {
    "type": "object",
    "properties": {"tree": {"$ref": "#/$defs/itself"}},
    "$defs": {"itself": ITSELF},
}

@app.tool(input_schema=SCHEMA)
def count(tree: list) -> int:
    return len(tree)
"""


def test_an_argument_whose_schema_contains_itself_is_listed(
    answerback: Run, tmp_path: Path
) -> None:
    (tmp_path / "endless.py").write_text(CONTAINS_ITSELF)

    assert answerback("list", "endless.py").stdout.startswith("count [tree=")
