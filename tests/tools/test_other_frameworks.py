"""Names of FastMCP and the official SDK, and misspelt ones: each error says what to write."""

from __future__ import annotations

import asyncio
import copy
import inspect
import pickle
import re
import subprocess
import sys
from abc import ABC
from pathlib import Path
from typing import Any

import pytest
from tests.test_public_names import MODULES, SHARED

import answerback
from answerback import App, Context
from answerback.app import AppOptions
from answerback.calls.context import Context as ContextClass
from answerback.tools.other_frameworks import HINTS, HOMES
from answerback.tools.tool_options import ToolOptions

# mypy is right about these names.
# mypy: disable-error-code="attr-defined"


def members(kind: type[Any]) -> set[str]:
    return {name for name in dir(kind) if not name.startswith("_")}


def test_there_are_forty_hints_and_none_is_about_a_name_that_exists() -> None:
    both = ToolOptions.__annotations__.keys() & AppOptions.__annotations__.keys()

    assert sum(map(len, HINTS.values())) == 40
    assert members(App) & HINTS["App"].keys() == set()
    assert members(ContextClass) & HINTS["Context"].keys() == set()
    assert set(answerback.__all__) & HINTS["from answerback import"].keys() == set()
    assert both & HINTS["option"].keys() == set()


def test_the_modules_of_public_names_are_complete() -> None:
    here = {name: set(names.split()) for name, names in HOMES.items()}
    public = {**MODULES, "answerback.contract": SHARED["answerback.contract"]}

    for module, names in public.items():
        assert names - set(answerback.__all__) <= here[module], module


@pytest.mark.parametrize("name", HINTS["App"])
def test_a_method_of_others_names_what_to_write(name: str) -> None:
    with pytest.raises(AttributeError) as caught:
        getattr(App("hints"), name)

    assert str(caught.value) == f"'App' object has no attribute {name!r}; {HINTS['App'][name]}"


def test_an_app_may_be_an_abstract_class_too() -> None:
    class Shop(App, ABC): ...

    assert Shop("shop").tools == {}


def test_a_misspelt_member_is_suggested() -> None:
    with pytest.raises(AttributeError, match=r"no attribute 'tol'; did you mean 'tool'\?"):
        App("hints").tol  # noqa: B018 -- reading it is the test


def test_a_member_that_resembles_nothing_is_only_said_to_be_missing() -> None:
    with pytest.raises(AttributeError) as caught:
        App.websocket("/feed")

    assert str(caught.value) == "'App' object has no attribute 'websocket'"


def test_a_missing_member_is_still_missing_for_hasattr_copy_and_pickle() -> None:
    app = App("hints")

    assert not hasattr(app, "mount")
    assert getattr(app, "http_app", None) is None
    assert not hasattr(App, "from_openapi")
    assert not hasattr(answerback, "FastMCP")
    assert copy.copy(app).tools is app.tools
    assert pickle.loads(pickle.dumps(App)) is App
    assert not inspect.iscoroutinefunction(app)


def test_the_session_of_the_sdk_s_context_names_what_to_write() -> None:
    app = App("hints")
    seen: list[str] = []

    @app.tool
    def ask(ctx: Context) -> None:
        for name in ("session", "request_context", "elicitt"):
            try:
                getattr(ctx, name)
            except AttributeError as exc:
                seen.append(str(exc))

    asyncio.run(app.call("ask"))

    assert seen == [
        "'Context' object has no attribute 'session'; write ctx.request for the request, "
        "await ctx.sample(…) and await ctx.roots() for questions",
        "'Context' object has no attribute 'request_context'; write ctx.request for the request, "
        "or ctx.state for what the lifespan yielded",
        "'Context' object has no attribute 'elicitt'; did you mean 'elicit'?",
    ]


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("FastMCP", "write from answerback import App"),
        ("Client", "write from answerback import connect, and async with connect(app) as server:"),
        ("ToolResult", "write success('text', data), or return the value or the blocks themselves"),
        ("Retry", "write from answerback.resilience import Retry"),
        ("ApiKeys", "write from answerback.auth import ApiKeys"),
        ("login", "write from answerback.gates import login"),
        ("TestContext", "write from answerback.testing import TestContext"),
        ("sucess", "did you mean 'success'?"),
    ],
)
def test_an_import_of_another_name_says_what_to_write(name: str, advice: str) -> None:
    with pytest.raises(ImportError) as caught:
        exec(f"from answerback import {name}", {})

    assert str(caught.value) == f"cannot import name {name!r} from 'answerback'; {advice}"
    with pytest.raises(AttributeError) as read:
        getattr(answerback, name)
    assert str(read.value) == f"module 'answerback' has no attribute {name!r}; {advice}"


PAGE = Path(__file__).parents[2] / "docs" / "reference" / "conventions.md"
NAMED = re.findall(
    r"^\| `(?:await )?([A-Za-z]\w*)(?:\([^`]*\))?`.* \|", PAGE.read_text(), re.MULTILINE
)
NOT_IMPORTED = {
    *("text", "inputSchema", "session", "isError", "timestamp", "data", "content", "annotations"),
    *("textContent", "securitySchemes", "userId", "handleCreateEntities", "myTool"),
    *("getAllInstanceIds", "hasActiveSubscription", "UNKNOWN_ERROR", "audio", "width"),
    *("CreateEntitiesOutputSchema", "widgetDescription"),
}
"""Members, and functions that stay the author's own."""


@pytest.mark.parametrize("name", sorted({*NAMED} - NOT_IMPORTED))
def test_a_name_of_the_conventions_is_answered_with_the_one_to_use(name: str) -> None:
    snake = re.sub("(?<=[a-z])(?=[A-Z])", "_", name).lower()
    for spelling in {name, snake}:
        with pytest.raises(ImportError, match=r"; (write|return|raise|run) .*conventions\.md"):
            exec(f"from answerback import {spelling}", {})


def test_a_name_like_none_is_missing_as_in_any_module() -> None:
    with pytest.raises(ImportError, match=r"cannot import name 'zzz' from 'answerback' \("):
        exec("from answerback import zzz", {})


def test_a_module_of_the_package_can_be_imported_by_its_name() -> None:
    program = "from answerback import auth, client, errors, reading, records, tasks, types"

    assert subprocess.run([sys.executable, "-c", program]).returncode == 0


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"inputSchema": {}}, "write input_schema="),
        ({"_meta": {}}, "write meta="),
        ({"readOnlyHint": True}, "did you mean 'read_only'?"),
        ({"securitySchemes": []}, "write meta={'securitySchemes': [{'type': 'noauth'}]}"),
        ({"openWorld": True}, "write open_world="),
        ({"read_onyl": True}, "did you mean 'read_only'?"),
    ],
)
def test_a_near_miss_of_a_tool_s_option_says_what_to_write(
    options: dict[str, Any], advice: str
) -> None:
    with pytest.raises(TypeError) as caught:
        App("hints").tool(**options)(print)

    assert str(caught.value) == f"no option is named {min(options)!r}; {advice}"


def test_importing_the_package_and_making_an_app_does_not_load_the_words() -> None:
    program = (
        "import sys, answerback; answerback.App('x')\n"
        "sys.exit('answerback.tools.other_frameworks' in sys.modules)"
    )

    assert subprocess.run([sys.executable, "-c", program]).returncode == 0
