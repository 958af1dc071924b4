"""`@app.visible`: a function decides which entries exist for a caller, on every wire."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest
from tests.gates.named_users import gated_app, post, rpc

from answerback import App, connect
from answerback.testing import TestContext

ERAS = pytest.mark.parametrize("era", ["2025-11-25", "2026-07-28"])


def admins_only(entry: Any, request: Any) -> bool:
    is_admin = request.user is not None and request.user.subject == "ada"
    return "admin" not in entry.tags or is_admin


def office(app: App | None = None) -> App:
    """An app whose entries with the tag "admin" only ada sees."""
    app = gated_app("office") if app is None else app

    @app.tool
    def orders_list() -> int:
        return 1

    @app.tool(tags={"admin"})
    def orders_delete(x: int) -> int:
        return x

    @app.resource("office://plan", tags={"admin"})
    def plan() -> str:
        return "p"

    @app.resource("office://{room}/plan", tags={"admin"})
    def plans(room: str) -> str:
        return room

    @app.prompt(tags={"admin"})
    def fire(name: str) -> str:
        return name

    # After the entries, as an author may write it.
    app.visible(admins_only)
    return app


def names(response: Any, key: str, member: str = "name") -> list[str]:
    return [each[member] for each in response.json()["result"][key]]


@ERAS
def test_lists_have_only_what_the_function_shows(era: str) -> None:
    app = office()

    assert names(rpc(app, "tools/list", "bob", era=era), "tools") == ["orders_list"]
    assert len(names(rpc(app, "tools/list", "ada", era=era), "tools")) == 2
    for method, key in (
        ("prompts/list", "prompts"),
        ("resources/list", "resources"),
        ("resources/templates/list", "resourceTemplates"),
    ):
        assert names(rpc(app, method, "bob", era=era), key) == []
        assert len(names(rpc(app, method, "ada", era=era), key)) == 1


@ERAS
@pytest.mark.parametrize(
    ("method", "asked", "unknown"),
    [
        ("tools/call", {"name": "orders_delete", "arguments": {"x": 1}}, "Unknown tool: orders_d"),
        ("prompts/get", {"name": "fire", "arguments": {"name": "a"}}, "Unknown prompt: fire"),
        ("resources/read", {"uri": "office://plan"}, "Resource not found: office://plan"),
        ("resources/read", {"uri": "office://7/plan"}, "Resource not found: office://7/plan"),
    ],
)
def test_a_hidden_entry_does_not_exist_for_the_caller(
    era: str, method: str, asked: dict[str, Any], unknown: str
) -> None:
    app = office()

    hidden, shown = (rpc(app, method, token, era=era, **asked) for token in ("bob", "ada"))

    assert unknown in hidden.text
    assert "result" in shown.json()


@pytest.mark.parametrize("method", ["resources/subscribe", "resources/read"])
def test_a_hidden_resource_cannot_be_subscribed_to(method: str) -> None:
    app = office()

    assert "Resource not found" in rpc(app, method, "bob", uri="office://plan").text
    assert "error" not in rpc(app, method, "ada", uri="office://plan").json()


def test_rest_does_not_call_suggest_list_or_document_a_hidden_tool() -> None:
    app = office()

    hidden = post(app, "/functions/orders_delete", {"x": 1}, "bob")
    near = post(app, "/functions/orders_delet", {"x": 1}, "bob")
    shown = post(app, "/functions/orders_delete", {"x": 1}, "ada")

    assert (hidden.status_code, hidden.headers["x-error-code"]) == (404, "TOOL_NOT_FOUND")
    assert "orders_delete'" not in str(near.headers) + near.text
    assert shown.json() == {"result": 1}
    assert "/functions/orders_list" in app.openapi()["paths"]
    assert "/functions/orders_delete" not in app.openapi()["paths"]


def test_a_test_calls_as_a_user() -> None:
    app = office(App("office"))

    class Ada:
        subject = "ada"

    refused = asyncio.run(app.call("orders_delete", x=1))
    allowed = asyncio.run(app.call("orders_delete", x=1, ctx=TestContext(user=Ada())))

    assert refused.error is not None
    assert refused.error.code == "TOOL_NOT_FOUND"
    assert allowed.data == 1


def test_the_function_gets_the_kind_name_and_tags_of_an_entry_and_the_client() -> None:
    app = App("office")
    seen: set[tuple[str, str, frozenset[str], str]] = set()

    @app.visible
    def note(entry: Any, request: Any) -> bool:
        seen.add((entry.kind, entry.name, entry.tags, request.client.name))
        return True

    office(app)

    async def list_all() -> None:
        async with connect(app) as server:
            await server.tools()
            await server.resources()
            await server.prompts()

    asyncio.run(list_all())

    assert {(kind, name) for kind, name, _, _ in seen} == {
        ("tool", "orders_list"),
        ("tool", "orders_delete"),
        ("resource", "office://plan"),
        ("prompt", "fire"),
    }
    assert {client for *_, client in seen} == {"answerback"}
    assert {tags for *_, tags, _ in seen} == {frozenset(), frozenset({"admin"})}


def test_an_included_app_hides_its_own_entries_and_its_parent_hides_all() -> None:
    inner, outer = office(App("inner")), App("outer")
    outer.include(inner, prefix="in_")
    outer.visible(lambda entry, request: entry.name != "in_orders_list")

    codes = [asyncio.run(outer.call(f"in_orders_{name}", x=1)).error for name in ("list", "delete")]

    assert [error.code for error in codes if error] == ["TOOL_NOT_FOUND", "TOOL_NOT_FOUND"]
    assert asyncio.run(inner.call("orders_list")).ok


def test_a_function_that_raises_hides_the_entry(caplog: pytest.LogCaptureFixture) -> None:
    app = App("office")

    @app.tool
    def one() -> int:
        return 1

    @app.visible
    def broken(entry: Any, request: Any) -> bool:
        raise RuntimeError("no database")

    error = asyncio.run(app.call("one")).error

    assert error is not None
    assert error.code == "TOOL_NOT_FOUND"
    assert "so tool 'one' is hidden" in caplog.text
    assert "no database" in caplog.text


def test_a_wrong_or_late_function_is_refused() -> None:
    app, outer = App("office"), App("outer")
    wrong: Any = app.visible

    async def later(entry: Any, request: Any) -> bool:
        return True

    with pytest.raises(TypeError, match=r"'later' is async; write def later\(entry, request\)"):
        wrong(later)
    with pytest.raises(TypeError, match=r"takes \['user'\]; write def"):
        wrong(lambda user: True)
    with pytest.raises(TypeError, match="decorates a function: def visible"):
        wrong("admin")
    # The application is kept: an app that nothing serves takes changes again.
    served = outer.asgi()
    with pytest.raises(ValueError, match=r"'office' has @app\.visible; include it before 'outer'"):
        outer.include(office(app))
    with pytest.raises(ValueError, match="before 'outer' is served or called"):
        outer.visible(admins_only)
    assert served is not None
