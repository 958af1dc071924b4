"""`app.include`, tags, `app.enable` and `app.disable`, called in memory."""

import asyncio
import gc
from typing import Annotated, Any

import pytest
from tests.steps import steps_of

from answerback import App, Ask, Context, Reply, wrap
from answerback.core.shape import BARE, RESULT
from answerback.options import Values
from answerback.registry.declarations import Change, Registry, registry_of
from answerback.tools.tool import Tool


def jira() -> App:
    app = App("jira")

    @app.tool(tags={"read"})
    def search(text: str) -> list[str]:
        return [text]

    @app.tool(tags={"write"})
    def create(title: str) -> str:
        return title

    @app.prompt
    def triage(issue: str) -> str:
        return f"Triage {issue}"

    @app.resource("jira://projects")
    def projects() -> list[str]:
        return ["AB"]

    @app.completion("triage", "issue")
    def issues(value: str) -> list[str]:
        return ["AB-1"]

    return app


def changes_of(app: Registry) -> list[Change]:
    seen: list[Change] = []
    app.changes.subscribe(seen.append)
    return seen


def test_included_tools_and_prompts_have_the_prefix_and_uris_keep_their_form() -> None:
    app, other = App("office"), jira()

    app.include(other, prefix="jira_")

    assert list(app.tools) == ["jira_search", "jira_create"]
    assert [tool.name for tool in app.tools.values()] == ["jira_search", "jira_create"]
    assert list(registry_of(app).prompts) == ["jira_triage"]
    assert list(app.resources) == ["jira://projects"]
    assert list(registry_of(app).completions) == ["issue of jira_triage"]
    assert (asyncio.run(app.call("jira_search", text="x"))).data == ["x"]
    assert list(other.tools) == ["search", "create"]


def test_a_tool_registered_later_in_the_included_app_is_served() -> None:
    app, other = App("office"), jira()
    app.include(other, prefix="jira_")
    seen = changes_of(registry_of(app))

    @other.tool
    def count() -> int:
        return 3

    assert (asyncio.run(app.call("jira_count"))).data == 3
    assert seen == [Change("tools")]


def test_a_tool_removed_later_from_the_included_app_is_gone() -> None:
    app, other = App("office"), jira()
    app.include(other, prefix="jira_")
    seen = changes_of(registry_of(app))

    other.remove_tool("search")

    reply = asyncio.run(app.call("jira_search", text="x"))
    assert reply.error is not None
    assert reply.error.code == "TOOL_NOT_FOUND"
    assert seen == [Change("tools")]


def test_a_tool_of_an_included_app_is_removed_in_its_own_app() -> None:
    app, other = App("office"), jira()
    app.include(other, prefix="jira_")

    with pytest.raises(ValueError, match="'jira_search' belongs to the included app 'jira'"):
        app.remove_tool("jira_search")
    with pytest.raises(KeyError):
        app.remove_tool("unknown")

    assert list(app.tools) == ["jira_search", "jira_create"]


def test_a_changed_resource_of_an_included_app_reaches_the_clients_of_the_including_app() -> None:
    root, app, other = App("root"), App("office"), jira()
    app.include(other)
    root.include(app)
    seen = changes_of(registry_of(root))

    other.resource_changed("jira://projects")

    assert seen == [Change("resource", "jira://projects")]


def test_a_clash_when_an_app_is_included_raises_and_changes_nothing() -> None:
    app, other = App("office"), jira()
    app.add_tool(lambda: 1, name="jira_create")

    with pytest.raises(ValueError, match="there is already a tool 'jira_create' in 'office'"):
        app.include(other, prefix="jira_")

    assert list(app.tools) == ["jira_create"]
    assert list(app.apps()) == [app]


def test_a_late_clash_raises_in_the_registration_that_causes_it() -> None:
    root, app, other = App("root"), App("office"), jira()
    app.include(other, prefix="jira_")
    root.include(app)
    root.add_tool(lambda: 1, name="jira_count")

    with pytest.raises(ValueError, match="there is already a tool 'jira_count' in 'root'"):
        other.add_tool(lambda: 1, name="count")
    with pytest.raises(ValueError, match="there is already a tool 'jira_search' in 'office'"):
        app.add_tool(lambda: 1, name="jira_search")

    assert "count" not in other.tools
    assert list(app.tools) == ["jira_search", "jira_create"]


def test_the_same_uri_in_two_apps_clashes() -> None:
    app, other = App("office"), jira()
    app.include(other)

    with pytest.raises(
        ValueError, match="there is already a resource 'jira://projects' in 'office'"
    ):

        @app.resource("jira://projects")
        def projects() -> str:
            return ""


def test_an_app_can_be_included_twice_with_different_prefixes() -> None:
    app, other = App("office"), jira()

    app.include(other, prefix="a_")
    app.include(other, prefix="b_")

    assert (asyncio.run(app.call("a_search", text="x"))).data == ["x"]
    assert (asyncio.run(app.call("b_search", text="x"))).data == ["x"]
    assert list(app.resources) == ["jira://projects"]
    assert list(app.apps()) == [app, other]
    with pytest.raises(ValueError, match="already includes 'jira'"):
        app.include(other, prefix="a_")


def test_cycles_are_refused() -> None:
    first, second, third = App("first"), App("second"), App("third")
    first.include(second)
    second.include(third)

    with pytest.raises(ValueError, match="must not be cyclic"):
        third.include(first)
    with pytest.raises(ValueError, match="must not be cyclic"):
        first.include(first)

    assert list(first.apps()) == [first, second, third]


@pytest.mark.parametrize("prefix", [3, None, b"jira_"])
def test_a_prefix_that_is_no_text_is_refused_with_an_example(prefix: Any) -> None:
    with pytest.raises(TypeError, match=r"prefix=.* should be a str, such as prefix='jira_'"):
        App("office").include(jira(), prefix=prefix)


def test_only_an_app_can_be_included_and_only_with_a_prefix_of_name_characters() -> None:
    wrong: Any = object()

    with pytest.raises(TypeError, match="include takes an App, not object"):
        App("office").include(wrong)
    with pytest.raises(ValueError, match="'jira/' cannot begin a name"):
        App("office").include(jira(), prefix="jira/")
    with pytest.raises(ValueError, match="longer than 128"):
        App("office").include(with_long_name(), prefix="x" * 64)


def with_long_name() -> App:
    app = App("long")
    app.add_tool(lambda: 1, name="n" * 100)
    return app


def numbers(**options: Any) -> App:
    app = App("numbers", **options)

    @app.tool
    def half(x: int) -> float:
        return float("nan") if x == 0 else x / 2

    return app


def ask(app: App, name: str, **arguments: Any) -> Any:
    return app.write(asyncio.run(app.call(name, **arguments)))


def test_included_tools_have_the_lenient_and_nan_settings_of_the_including_app() -> None:
    other = numbers()
    app = App("app", values=Values(lenient=False, nan="null"))
    app.include(other)

    assert "expected int" in ask(app, "half", x="8")["error"]
    assert ask(app, "half", x=0) == {"result": None}
    assert app.tools["half"].output_schema != other.tools["half"].output_schema
    # By itself the included app is as before.
    assert ask(other, "half", x="8") == {"result": 4.0}
    assert "not finite" in ask(other, "half", x=0)["error"]


def test_the_settings_that_an_included_app_or_tool_gives_come_first() -> None:
    other = numbers(values=Values(lenient=True, nan="refuse"))
    other.add_tool(other.tools["half"].fn, name="strict", values=Values(lenient=False))
    app = App("app", values=Values(lenient=False, nan="null"))
    app.include(other)

    assert ask(app, "half", x="8") == {"result": 4.0}
    assert "not finite" in ask(app, "half", x=0)["error"]
    assert "expected int" in ask(app, "strict", x="8")["error"]


def test_of_several_including_apps_the_nearest_that_gives_a_setting_counts() -> None:
    middle = App("middle", values=Values(nan="null"))
    outer = App("outer", values=Values(nan="refuse", lenient=False))
    middle.include(numbers())
    outer.include(middle)

    assert ask(outer, "half", x=0) == {"result": None}
    assert "expected int" in ask(outer, "half", x="8")["error"]


def test_an_included_function_that_wrap_made_has_the_nan_setting_too() -> None:
    other = App("other")

    @other.tool
    @wrap
    def mean() -> Any:
        return {"mean": float("nan")}

    app = App("app", values=Values(nan="null"))
    app.include(other)

    assert ask(app, "mean") == {"mean": None}


def test_the_contract_of_the_including_app_counts() -> None:
    other = App("other", contract="standard")

    @other.tool
    def point() -> dict[str, int]:
        return {"x": 1}

    assert other.tools["point"].shape is BARE
    app = App("app", contract="aligned")
    app.include(other)

    assert app.tools["point"].shape is RESULT
    assert app.tools["point"].contract is app.contract
    assert other.tools["point"].shape is BARE


def test_a_tool_named_like_a_route_is_refused_where_it_is_included() -> None:
    other = App("other")
    other.add_tool(lambda: 1, name="mcp")

    with pytest.raises(ValueError, match="/mcp is one of the server's own routes"):
        App("app", contract="direct").include(other)


def test_a_tool_knows_the_app_that_owns_it() -> None:
    root, app, other = App("root"), App("office"), jira()
    app.include(other, prefix="jira_")
    root.include(app)

    tool: Tool = root.tools["jira_search"]

    assert tool.path == tuple(map(registry_of, (root, app, other)))
    assert other.tools["search"].path == (registry_of(other),)


def test_an_app_that_no_longer_exists_does_not_clash() -> None:
    other = jira()
    app: App | None = App("office")
    assert app is not None
    app.add_tool(lambda: 1, name="count")
    app.include(other)

    del app
    gc.collect()

    assert other.add_tool(lambda: 1, name="count").name == "count"


def test_a_disabled_tool_is_unknown_and_an_enabled_one_is_served_again() -> None:
    app = jira()
    seen = changes_of(registry_of(app))

    app.disable("search")
    refused = asyncio.run(app.call("search", text="x"))
    unknown = asyncio.run(app.call("serch", text="x"))
    app.enable("search")
    served = asyncio.run(app.call("search", text="x"))

    assert refused.error is not None
    assert (refused.error.code, refused.error.hint) == ("TOOL_NOT_FOUND", None)
    assert unknown.error is not None
    assert unknown.error.hint is None
    assert served.data == ["x"]
    assert seen == [Change("tools"), Change("tools")]
    assert list(app.tools) == ["search", "create"]


def test_a_tag_disables_every_entry_that_has_it_and_the_last_word_counts() -> None:
    app = jira()

    app.disable(tag="write")

    @app.tool(tags=["write"])
    def remove(title: str) -> None: ...

    assert list(app.tools) == ["search"]
    app.enable("remove")
    assert list(app.tools) == ["search", "remove"]
    app.enable(tag="write")
    assert list(app.tools) == ["search", "create", "remove"]


def test_disabling_in_an_included_app_and_in_the_including_app() -> None:
    app, other = App("office"), jira()
    app.include(other, prefix="jira_")

    app.disable("jira_search")
    assert list(app.tools) == ["jira_create"]
    assert list(other.tools) == ["search", "create"]

    other.disable(tag="write")
    assert list(app.tools) == []

    app.enable("jira_create")
    assert list(app.tools) == []
    other.enable(tag="write")
    assert list(app.tools) == ["jira_create"]


def test_prompts_and_resources_can_be_disabled() -> None:
    app = jira()

    app.disable("triage")
    app.disable("jira://projects")

    assert list(registry_of(app).prompts) == list(app.resources) == []


def test_prompts_and_resources_have_tags() -> None:
    app = App("app")

    @app.prompt(tags={"beta"})
    def draft() -> str:
        return ""

    @app.resource("note://one", tags=["beta"])
    def note() -> str:
        return ""

    assert (list(registry_of(app).prompts), list(app.resources)) == (["draft"], ["note://one"])
    app.disable(tag="beta")
    assert (list(registry_of(app).prompts), list(app.resources)) == ([], [])


def test_a_disabled_name_cannot_be_taken() -> None:
    app = jira()
    app.disable("search")

    with pytest.raises(ValueError, match="there is already a tool 'search'"):
        app.add_tool(lambda: 1, name="search")
    assert list(app.tools) == ["create"]


def test_an_unknown_name_cannot_be_disabled() -> None:
    app = jira()

    with pytest.raises(ValueError, match="'jira' has no tool, prompt or resource 'serch'"):
        app.disable("serch")
    with pytest.raises(TypeError, match="give a name or a tag"):
        app.disable()
    with pytest.raises(TypeError, match="give a name or a tag"):
        app.enable("search", tag="read")


def test_a_call_that_runs_while_its_tool_is_disabled_ends_normally() -> None:
    app = App("app")

    @app.tool
    async def work() -> str:
        app.disable("work")
        return "done"

    assert (asyncio.run(app.call("work"))).data == "done"
    assert list(app.tools) == []


def test_tags_are_a_set_of_words() -> None:
    wrong: Any = "read"

    with pytest.raises(TypeError, match="tags='read' should be a set of str"):
        App("app").add_tool(lambda: 1, name="x", tags=wrong)


def test_an_included_tool_has_its_context_and_its_questions() -> None:
    other, app = App("other"), App("app")

    @other.tool
    def where(ctx: Context) -> str:
        return ctx.tool

    @other.tool
    def sure(answer: Annotated[bool, Ask("Sure?")]) -> bool:
        return answer

    app.include(other, prefix="o_")
    reply: Reply[Any] = asyncio.run(app.call("o_where"))
    asked = asyncio.run(app.call("o_sure"))

    assert reply.data == "o_where"
    assert asked.error is not None
    assert asked.error.code == "INPUT_REQUIRED"


def test_registering_in_an_included_app_takes_as_long_beside_many_tools_as_beside_few() -> None:
    def steps_beside(count: int) -> int:
        root, team, other = App("root"), App("team"), App("other")
        root.include(team, prefix="t_")
        team.include(other, prefix="o_")
        for number in range(count):
            other.add_tool(_nothing, name=f"tool_{number}")
        steps = steps_of(lambda: other.add_tool(_nothing, name="last"))
        assert len(root.tools) == count + 1
        return steps

    steps_beside(1)  # The first registration in a process imports modules.

    assert steps_beside(200) < 1.5 * steps_beside(10)


def _nothing() -> None:
    pass


def test_a_thread_that_iterates_sees_a_whole_table_while_another_registers() -> None:
    root, other = App("root"), jira()
    root.include(other, prefix="jira_")
    names = iter(root.tools)
    first = next(names)

    other.add_tool(_nothing, name="late")

    assert [first, *names] == ["jira_search", "jira_create"]
    assert list(root.tools) == ["jira_search", "jira_create", "jira_late"]


@pytest.mark.parametrize("late", [False, True])
def test_apps_are_composed_alike_before_and_after_their_entries_are_registered(late: bool) -> None:
    root, left, right, leaf = App("root"), App("left"), App("right"), App("leaf")

    def register() -> None:
        leaf.add_tool(_nothing, name="read", tags={"read"})
        leaf.add_tool(_nothing, name="write", tags={"write"})
        leaf.resource("leaf://one")(_text)
        leaf.prompt(name="ask")(_text)
        leaf.completion("leaf://one", "x")(_completions)
        right.add_tool(_nothing, name="own")

    def compose() -> None:
        left.include(leaf, prefix="a_")
        left.include(leaf, prefix="b_")
        right.include(leaf)
        root.include(left, prefix="l_")
        root.include(right, prefix="r_")
        right.disable(tag="write")

    for step in (compose, register) if late else (register, compose):
        step()
    root.disable("l_b_read")

    assert set(root.tools) == {"l_a_read", "l_a_write", "l_b_write", "r_read", "r_own"}
    assert [root.tools[name].name for name in root.tools] == list(root.tools)
    assert set(root.resources) == {"leaf://one"}
    assert set(registry_of(root).prompts) == {"l_a_ask", "l_b_ask", "r_ask"}
    assert set(registry_of(root).completions) == {"x of leaf://one"}
    assert [app.name for app in root.tools["l_a_read"].path] == ["root", "left", "leaf"]


def _text() -> str:
    return ""


def _completions(value: str) -> list[str]:
    return [value]


def test_a_clash_in_an_app_two_levels_up_leaves_every_table_as_it_was() -> None:
    root, team, other = App("root"), App("team"), App("other")
    root.add_tool(_nothing, name="t_o_tool")
    team.include(other, prefix="o_")
    root.include(team, prefix="t_")

    with pytest.raises(ValueError, match="there is already a tool 't_o_tool' in 'root'"):
        other.add_tool(_nothing, name="tool")

    assert (list(other.tools), list(team.tools), list(root.tools)) == ([], [], ["t_o_tool"])
    assert other.add_tool(_nothing, name="tool_2").name == "tool_2"
    assert list(root.tools) == ["t_o_tool", "t_o_tool_2"]
