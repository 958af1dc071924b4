"""Authors of FastMCP and SDK servers write names that do not exist here; messages say what does."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from answerback import App, Context


@pytest.mark.parametrize(
    ("option", "advice"),
    [
        ("instructions", "write description="),
        ("mask_error_details", "raise a ToolError"),
        ("strict_input_validation", "write lenient=False"),
        ("log_level", "serve --log-level"),
        ("auth", "docs/deployment.md"),
    ],
)
def test_an_option_of_another_framework_names_the_one_to_write(option: str, advice: str) -> None:
    options: dict[str, Any] = {option: "x"}

    with pytest.raises(TypeError, match=f"no option is named '{option}'; .*{advice}"):
        App("tools", **options)


def test_an_option_of_a_tool_of_another_framework_names_the_one_to_write() -> None:
    app = App("tools")
    options: dict[str, Any] = {"annotations": {"readOnlyHint": True}}

    with pytest.raises(TypeError, match="no option is named 'annotations'; write read_only="):
        app.tool(**options)(lambda: 1)


@pytest.mark.parametrize(
    ("options", "advice"),
    [
        ({"transport": "stdio"}, r"app\.run takes no transport=; .*`python file\.py mcp` is stdio"),
        (
            {"port": 1, "transport": "http"},
            r"app\.run takes no port=; app\.run\(\['serve', '--port'",
        ),
        ({"show_banner": False}, r"app\.run takes no show_banner=; write the words"),
    ],
)
def test_run_with_keywords_says_which_command_to_use(options: Any, advice: str) -> None:
    with pytest.raises(TypeError, match=advice):
        App("tools").run(**options)


def test_run_with_a_string_says_to_write_a_list() -> None:
    with pytest.raises(TypeError, match=r"write|app\.run\(\['mcp'\]\)"):
        App("tools").run("mcp")


def test_an_untyped_ctx_is_suggested_as_a_context() -> None:
    def look(ctx):  # type: ignore[no-untyped-def]  # that is the mistake
        return 1

    with pytest.raises(
        TypeError, match="parameter 'ctx' of tool 'look' has no type; write ctx: Con"
    ):
        App("tools").add_tool(look)


@pytest.mark.parametrize(
    ("name", "advice"),
    [
        ("info", r'write ctx\.log\(message, "info"\), without await'),
        ("report_progress", r"write ctx\.progress\(done, total, message\)"),
        ("request_context", r"write ctx\.request .*ctx\.state"),
        ("nothing_known", r"a Context has no 'nothing_known'$"),
    ],
)
def test_a_member_of_another_context_names_the_one_to_write(name: str, advice: str) -> None:
    app = App("tools")
    raised: list[AttributeError] = []

    @app.tool
    async def look(ctx: Context) -> int:
        try:
            getattr(ctx, name)
        except AttributeError as exc:
            raised.append(exc)
        return 1

    asyncio.run(app.call("look"))

    with pytest.raises(AttributeError, match=advice):
        raise raised[0]
