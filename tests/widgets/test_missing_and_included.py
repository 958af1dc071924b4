"""Widgets that a tool names and nobody registered, and the widgets of included apps."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
from tests.widgets.mcp_requests import ask, content, result, tool, uri_of

from answerback import App
from answerback.gates import login
from answerback.registry.declarations import registry_of

PAGE = "<h1>Accounts</h1>"
PROGRAM = """
from answerback import App
from answerback.gates import login

app = App("bank")
app.widget("accounts", html="<h1>Accounts</h1>")
app.widget("history", html="<h1>History</h1>")

@app.tool(widget="{}", tags={{"read"}})
def accounts() -> int:
    '''Show the accounts.'''
    return 1

@app.tool
def add(x: int) -> int:
    return x

app.run()
"""


def with_tool(app: App, name: str, widget: str) -> App:
    app.add_tool(lambda: 1, name=name, widget=widget)
    return app


def run(folder: Path, widget: str, *arguments: str) -> subprocess.CompletedProcess[str]:
    file = folder / "bank.py"
    file.write_text(PROGRAM.format(widget))
    command = [sys.executable, str(file), *arguments]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, input="")


def test_a_widget_may_be_registered_after_its_tool() -> None:
    app = with_tool(App("bank"), "show", "accounts")
    app.widget("accounts", html=PAGE)

    assert asyncio.run(tool(app, "show"))["_meta"]["ui"]["resourceUri"] == uri_of("accounts")


@pytest.mark.parametrize(
    ("known", "hint"),
    [
        (["accounts", "history"], "did you mean 'accounts'?"),
        (["history"], "its widgets are history; write app.widget('acounts', path='acounts.html')"),
        ([], "it has none; write app.widget('acounts', path='acounts.html')"),
    ],
)
def test_an_app_with_a_missing_widget_is_not_served(known: list[str], hint: str) -> None:
    app = with_tool(App("bank"), "show", "acounts")
    for name in known:
        app.widget(name, html=PAGE)

    with pytest.raises(ValueError, match="names the widget 'acounts'") as caught:
        app.asgi()

    assert str(caught.value) == (
        f"tool 'show' names the widget 'acounts', which 'bank' does not have; {hint}"
    )


@pytest.mark.parametrize(
    "meta", [{"openai/outputTemplate": "ui://page"}, {"ui": {"resourceUri": "ui://page"}}]
)
def test_a_page_that_is_named_in_the_metadata_must_be_a_resource(meta: Any) -> None:
    app = App("bank")
    app.add_tool(lambda: 1, name="show", meta=meta)

    with pytest.raises(ValueError, match="names the page 'ui://page', which is not a resource"):
        app.asgi()

    app.resource("ui://page", name="page")(lambda: PAGE)
    app.asgi()


def test_the_list_says_which_widget_was_removed_while_the_app_was_served() -> None:
    app = with_tool(App("bank"), "show", "accounts")
    app.widget("accounts", html=PAGE)
    served = app.asgi()
    registry_of(app).remove("resources", uri_of("accounts"))

    answer = asyncio.run(ask(app, "tools/list", served=served))

    assert answer["error"]["code"] == -32603
    assert answer["error"]["message"].startswith("tool 'show' names the widget 'accounts', which")


def test_a_resource_of_the_author_s_own_can_be_the_page() -> None:
    app = with_tool(App("bank"), "show", "accounts")

    @app.resource(uri_of("accounts"), mime="text/html;profile=mcp-app")
    def page() -> str:
        return PAGE

    assert asyncio.run(content(app, "accounts"))["text"] == PAGE


@pytest.mark.parametrize("command", ["list", "mcp", "serve"])
def test_each_command_refuses_a_program_with_a_missing_widget(tmp_path: Path, command: str) -> None:
    done = run(tmp_path, "acounts", command)

    assert done.returncode != 0
    assert done.stdout == ""
    assert "which 'bank' does not have; did you mean 'accounts'?" in done.stderr
    assert "Traceback" not in done.stderr


def test_the_list_of_the_command_line_shows_the_widgets(tmp_path: Path) -> None:
    done = run(tmp_path, "accounts", "list")
    as_json = run(tmp_path, "accounts", "list", "--json")

    assert done.stdout.splitlines() == [
        "accounts       Show the accounts. (widget: accounts)",
        "add x=INTEGER",
    ]
    assert '"widget": "accounts"' in as_json.stdout
    assert as_json.stdout.count("widget") == 1


def test_a_widget_of_an_included_app_keeps_its_uri_and_its_keys() -> None:
    inner, outer = App("inner"), App("outer")
    inner.widget("accounts", html=PAGE, border=True)
    with_tool(inner, "show", "accounts")
    outer.include(inner, prefix="inner_")

    shown = asyncio.run(tool(outer, "inner_show"))
    read = asyncio.run(content(outer, "accounts"))

    assert shown["_meta"]["openai/outputTemplate"] == "ui://widget/accounts.html"
    assert read["_meta"]["ui"]["prefersBorder"] is True


def test_two_apps_with_a_widget_of_one_name_cannot_be_together() -> None:
    inner, outer = App("inner"), App("outer")
    inner.widget("accounts", html=PAGE)
    outer.widget("accounts", html=PAGE)

    with pytest.raises(ValueError, match=r"a widget 'ui://widget/accounts\.html' in 'outer'"):
        outer.include(inner)


def test_a_tool_does_not_find_the_widget_of_another_app() -> None:
    inner, outer = App("inner"), App("outer")
    with_tool(inner, "show", "accounts")
    outer.widget("accounts", html=PAGE)
    outer.include(inner)

    with pytest.raises(ValueError, match="widget 'accounts', which 'inner' does not have"):
        outer.asgi()


def test_a_disabled_tool_does_not_need_its_widget() -> None:
    app = with_tool(App("bank"), "show", "accounts")
    app.disable("show")

    assert asyncio.run(result(app, "tools/list"))["tools"] == []


def test_tags_that_select_a_tool_leave_its_widget(tmp_path: Path) -> None:
    read = (
        '{"jsonrpc": "2.0", "id": 1, "method": "resources/read", "params": '
        '{"uri": "ui://widget/accounts.html", "_meta": {'
        '"io.modelcontextprotocol/protocolVersion": "2026-07-28", '
        '"io.modelcontextprotocol/clientCapabilities": {}}}}\n'
    )
    file = tmp_path / "bank.py"
    file.write_text(PROGRAM.format("accounts"))
    command = [sys.executable, str(file), "mcp", "--tag", "read"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=30, input=read)

    assert "<h1>Accounts</h1>" in done.stdout


def refused(app: App) -> bool:
    answer = asyncio.run(ask(app, "resources/read", {"uri": uri_of("accounts")}))
    found: object = answer.get("error", {}).get("data")
    return bool(found == {"code": "LOGIN_REQUIRED"})


def test_a_page_has_its_own_gates_but_not_those_of_its_app_and_its_tools() -> None:
    of_app, of_page, of_tool = App("bank", requires=[login()]), App("bank"), App("bank")
    of_app.widget("accounts", html=PAGE)
    of_page.widget("accounts", html=PAGE, requires=[login()])
    of_tool.widget("accounts", html=PAGE)
    of_tool.add_tool(lambda: 1, name="show", widget="accounts", requires=[login()])

    assert [refused(app) for app in (of_app, of_page, of_tool)] == [False, True, False]
