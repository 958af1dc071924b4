import json
from collections.abc import Callable
from typing import Any

import pytest

Run = Callable[..., Any]

pytestmark = pytest.mark.usefixtures("tools")


def test_the_openapi_document_is_printed_as_indented_json(answerback: Run) -> None:
    done = answerback("openapi", "tools.py")

    assert json.loads(done.stdout)["openapi"].startswith("3.1")
    assert done.stdout.startswith("{\n  ")
    assert done.stdout.endswith("}\n")


def test_the_media_types_of_all_dialects_are_printed_on_request(answerback: Run) -> None:
    default = answerback("openapi", "tools.py").stdout
    all_dialects = answerback("openapi", "tools.py", "--dialects").stdout

    assert "application/vnd.answerback.mcp+json" not in default
    assert "application/vnd.answerback.mcp+json" in all_dialects
    assert json.loads(default)["servers"] == [{"url": "/"}]
