"""Tools: names, descriptions, options, and where the function runs."""

import asyncio
import threading
from collections.abc import Callable, Coroutine
from contextvars import ContextVar
from functools import cache, wraps
from typing import Any, TypedDict

import msgspec
import pytest

from answerback import App, Reply
from answerback.tools.tool import Tool
from answerback.tools.tool_options import ToolOptions


def answer(fn: Callable[..., Any], /, **arguments: Any) -> Reply[Any]:
    app = App("test")
    return asyncio.run(app.call(app.add_tool(fn, name="tool").name, **arguments))


def added(fn: Callable[..., Any]) -> Tool:
    return App("test").add_tool(fn)


def double(x: int) -> int:
    """Double a number."""
    return 2 * x


async def double_async(x: int) -> int:
    """Double a number."""
    return 2 * x


def wrapped_sync(fn: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return fn(*args, **kwargs)

    return call


def wrapped_async(fn: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(fn)
    async def call(*args: Any, **kwargs: Any) -> Any:
        value = fn(*args, **kwargs)
        return await value if isinstance(value, Coroutine) else value

    return call


def run_in_new_loop(fn: Callable[..., Any]) -> Callable[..., Any]:
    @wraps(fn)
    def call(*args: Any, **kwargs: Any) -> Any:
        return asyncio.run(fn(*args, **kwargs))

    return call


class Doubler:
    """Doubles numbers."""

    def __init__(self, by: int = 2) -> None:
        self.by = by

    def __call__(self, x: int) -> int:
        return self.by * x

    def method(self, x: int) -> int:
        """Multiply."""
        return self.by * x

    @wrapped_sync
    def decorated(self, x: int) -> int:
        return self.by * x

    @classmethod
    def of_class(cls, x: int) -> int:
        return 2 * x

    @staticmethod
    def static(x: int) -> int:
        return 2 * x


class AsyncDoubler:
    async def __call__(self, x: int) -> int:
        return 2 * x


@pytest.mark.parametrize(
    "fn",
    [
        double,
        double_async,
        wrapped_sync(double),
        wrapped_sync(double_async),
        wrapped_async(double),
        wrapped_async(double_async),
        run_in_new_loop(double_async),
        wrapped_sync(wrapped_async(wrapped_sync(double))),
        cache(double),
        Doubler(),
        AsyncDoubler(),
        Doubler().method,
        Doubler().decorated,
        Doubler.of_class,
        Doubler.static,
        lambda x: double(x),
    ],
)
def test_any_callable_with_named_arguments_can_be_a_tool(fn: Callable[..., Any]) -> None:
    if getattr(fn, "__name__", "") == "<lambda>":
        fn.__annotations__ = {"x": int}

    reply = answer(fn, x=4)

    assert reply.data == 8


def test_a_plain_function_may_return_the_coroutine_of_another() -> None:
    def hand_on(x: int) -> Any:
        return double_async(x)

    assert answer(hand_on, x=4).data == 8


def test_a_tool_is_named_after_its_function_or_its_class() -> None:
    assert added(double).name == "double"
    assert added(wrapped_sync(double)).name == "double"
    assert added(Doubler().method).name == "method"
    assert added(Doubler()).name == "Doubler"


def test_a_decorated_function_keeps_its_schema_and_its_description() -> None:
    tool = added(wrapped_sync(double))

    assert tool.description == "Double a number."
    assert tool.input_schema["properties"] == {"x": {"type": "integer"}}


def test_the_schema_of_a_method_does_not_have_self() -> None:
    assert list(added(Doubler(3).method).input_schema["properties"]) == ["x"]
    assert added(Doubler(3)).description == "Doubles numbers."


@pytest.mark.parametrize("name", ["a", "get-user", "files.list", "A_1", "x" * 128])
def test_a_name_of_permitted_characters_is_accepted(name: str) -> None:
    assert App("test").add_tool(double, name=name).name == name


@pytest.mark.parametrize("name", ["a b", "a/b", "é", ".", "..", "a\n", "x" * 129, 5, ["a"]])
def test_any_other_name_is_refused_with_an_example(name: Any) -> None:
    with pytest.raises(
        ValueError, match=r"cannot be the name of a tool; use .* @app\.tool\(name='add'\)"
    ):
        App("test").add_tool(double, name=name)


def test_a_lambda_needs_a_name() -> None:
    with pytest.raises(ValueError, match="a lambda has no name and no types; write a def"):
        App("test").add_tool(lambda: 1)


def test_an_empty_name_counts_as_no_name() -> None:
    assert App("test").add_tool(double, name="").name == "double"


def test_options_override_the_function() -> None:
    tool = App("test").add_tool(
        double, name="twice", title="Twice", description="Double it.", meta={"a": 1}
    )

    assert (tool.name, tool.title, tool.description) == ("twice", "Twice", "Double it.")
    assert tool.settings.meta == {"a": 1}


def test_an_option_that_is_none_has_its_default() -> None:
    options: dict[str, Any] = dict.fromkeys(ToolOptions.__annotations__)
    app, plain = App("test"), App("test")

    tool = app.add_tool(double, **options)

    defaults = plain.add_tool(double).settings
    assert tool.settings == msgspec.structs.replace(defaults, chosen=tool.settings.chosen)
    assert app.openapi() == plain.openapi()


def test_hints_are_only_those_that_the_author_gave() -> None:
    tool = App("test").add_tool(double, read_only=True, destructive=False)

    assert tool.settings.hints == {"readOnlyHint": True, "destructiveHint": False}
    assert added(double).settings.hints == {}


def google(x: int) -> int:
    """Double a number.

    Args:
        x: what to double
    """
    return x


def numpy(x: int) -> int:
    """Double a number.

    Parameters
    ----------
    x : int
        what to double
    """
    return x


def sphinx(x: int) -> int:
    """Double a number.

    :param x: what to double
    """
    return x


@pytest.mark.parametrize("fn", [google, numpy, sphinx])
def test_each_docstring_style_describes_tool_and_arguments(fn: Callable[..., Any]) -> None:
    tool = added(fn)

    assert tool.description == "Double a number."
    assert tool.input_schema["properties"]["x"]["description"] == "what to double"
    assert [each.description for each in tool.parameters] == ["what to double"]


class Found(TypedDict):
    rows: list[str]


SEARCH = """Search.

    Returns:
        rows: the rows

    Examples:
        search("tea")
    """


@pytest.mark.parametrize("returns", [str, dict, dict[str, Any], list[int], Any, str | None])
def test_the_returns_section_stays_where_no_schema_names_the_members(returns: Any) -> None:
    def search(query: str) -> Any:
        return query

    search.__doc__ = SEARCH
    search.__annotations__["return"] = returns

    description = added(search).description

    assert description == (
        'Search.\n\nExamples:\n    search("tea")\n\nReturns:\n    rows: the rows'
    )


@pytest.mark.parametrize("returns", [Found, list[Found], Found | None])
def test_the_returns_section_is_left_out_if_a_schema_names_the_members(returns: Any) -> None:
    def search(query: str) -> Any:
        return query

    search.__doc__ = SEARCH
    search.__annotations__["return"] = returns

    assert added(search).description == 'Search.\n\nExamples:\n    search("tea")'


def test_a_function_without_a_docstring_has_no_description() -> None:
    def bare(x: int) -> int:
        return x

    assert added(bare).description == ""


def test_parameters_with_a_default_are_not_required() -> None:
    def make(a: int, b: list[int] = [], *, c: str, d: str | None = None) -> str:  # noqa: B006
        return f"{a}{b}{c}{d}"

    tool = added(make)

    assert tool.input_schema["required"] == ["a", "c"]
    assert answer(make, a=1, c="x").data == "1[]xNone"
    assert answer(make, a=1, b=[2], c="x", d="y").data == "1[2]xy"


def test_a_keyword_only_parameter_is_an_argument_like_any_other() -> None:
    def make(*, a: int, b: int = 2) -> int:
        return a + b

    assert answer(make, a=1).data == 3


def test_a_plain_function_runs_in_another_thread_and_an_inline_one_in_place() -> None:
    def which() -> str:
        return threading.current_thread().name

    app = App("test")
    app.add_tool(which)
    app.add_tool(which, name="inline", inline=True)

    assert "answerback-" in str(asyncio.run(app.call("which")).data)
    assert asyncio.run(app.call("inline")).data == threading.current_thread().name


def test_an_async_function_runs_on_the_caller_s_loop() -> None:
    loops = []

    async def which() -> None:
        loops.append(asyncio.get_running_loop())

    app = App("test")
    app.add_tool(which)

    async def call() -> None:
        await app.call("which")
        loops.append(asyncio.get_running_loop())

    asyncio.run(call())

    assert loops[0] is loops[1]


USER: ContextVar[str] = ContextVar("USER", default="nobody")


def read_user() -> str:
    return USER.get()


async def read_user_async() -> str:
    return USER.get()


@pytest.mark.parametrize("inline", [True, False])
@pytest.mark.parametrize("fn", [read_user, read_user_async])
def test_context_variables_reach_the_tool(fn: Callable[..., Any], inline: bool) -> None:
    app = App("test")
    app.add_tool(fn, name="user", inline=inline)

    async def call() -> Reply[Any]:
        USER.set("ann")
        return await app.call("user")

    assert asyncio.run(call()).data == "ann"
    assert USER.get() == "nobody"


def test_schemas_are_cached() -> None:
    tool = added(double)

    assert tool.input_schema is tool.input_schema
    assert tool.output_schema is tool.output_schema
