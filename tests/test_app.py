"""App: registering tools, refused options, and calls in memory."""

import asyncio
import re
import threading
import time
from collections.abc import Callable
from functools import partial
from typing import Any

import pydantic
import pytest

from answerback import App, Contract, Limits, NotFound, Reply
from answerback.options import Values
from answerback.registry.declarations import Change, ChangeFeed


def add(x: int, y: int) -> int:
    """Add two numbers."""
    return x + y


def test_the_decorator_returns_the_function_unchanged() -> None:
    app = App("test")

    assert app.tool(add) is add
    assert app.tool(name="plus")(add) is add
    assert list(app.tools) == ["add", "plus"]


def test_a_decorated_function_is_still_an_ordinary_function() -> None:
    app = App("test")

    @app.tool
    def double(x: int) -> int:
        return 2 * x

    assert double(4) == 8


def test_add_tool_registers_the_tool_and_returns_it() -> None:
    app = App("test")

    tool = app.add_tool(add, title="Sum")

    assert app.tools["add"] is tool
    assert tool.title == "Sum"


def test_a_call_in_memory_decodes_arguments_and_checks_the_reply() -> None:
    app = App("test")
    app.add_tool(add)

    good = asyncio.run(app.call("add", x=1, y=2))
    bad = asyncio.run(app.call("add", x="one", y=2))

    assert (good.ok, good.data, good.encoded) == (True, 3, b"3")
    assert bad.error is not None
    assert bad.error.code == "INVALID_ARGUMENTS"


def test_openapi_describes_the_tools_and_returns_a_copy() -> None:
    app = App("test", version="1.2.3")
    app.add_tool(add)

    document = app.openapi()
    document["info"]["title"] = "changed"

    assert document["openapi"].startswith("3.1")
    assert document["paths"]["/functions/add"]["post"]["operationId"] == "functions.add"
    assert app.openapi()["info"] == {"title": "test", "version": "1.2.3"}


def test_an_argument_may_be_called_name_or_self() -> None:
    app = App("test")

    @app.tool
    def greet(name: str, self: str = "me") -> str:
        return f"{name} and {self}"

    reply = asyncio.run(app.call("greet", name="Ann", self="I"))

    assert reply.data == "Ann and I"


def test_a_pydantic_model_can_be_an_argument_of_a_call_in_memory() -> None:
    class Point(pydantic.BaseModel):
        x: int

    def read(point: Point) -> int:
        return point.x

    app = App("test")
    app.add_tool(read)

    assert asyncio.run(app.call("read", point=Point(x=5))).data == 5


def test_one_app_can_be_called_from_several_loops_in_turn() -> None:
    app = App("test")
    app.add_tool(add)

    sums = [asyncio.run(app.call("add", x=n, y=1)).data for n in range(3)]

    assert sums == [1, 2, 3]


def test_concurrent_calls_each_get_their_own_reply() -> None:
    app = App("test", limits=Limits(threads=3))
    app.add_tool(add)

    async def many() -> list[Reply[Any]]:
        return await asyncio.gather(*(app.call("add", x=n, y=n) for n in range(200)))

    assert [reply.data for reply in asyncio.run(many())] == [2 * n for n in range(200)]


def test_a_second_tool_with_the_same_name_is_refused() -> None:
    app = App("test")
    app.add_tool(add)

    with pytest.raises(
        ValueError, match="there is already a tool 'add'; give one a different name"
    ):
        app.tool(add)


@pytest.mark.parametrize("given", ["plus", 5, None])
def test_a_positional_tool_name_is_refused(given: Any) -> None:
    register: Callable[..., Any] = App("test").tool

    if given is None:
        assert callable(register(given))
    else:
        with pytest.raises(TypeError, match=r"by name: @app\.tool\(name="):
            register(given)


@pytest.mark.parametrize(
    "option",
    [
        {"title": 7},
        {"timeout": -1},
        {"timeout": "soon"},
        {"examples": {"x": 7}},
        {"raises": [ValueError]},
        {"raises": NotFound},
        {"icons": ["https://example.com/i.png"]},
        {"meta": ["a"]},
        {"input_schema": {"type": "array"}},
    ],
)
def test_an_option_of_the_wrong_type_is_refused(option: dict[str, Any]) -> None:
    with pytest.raises(TypeError, match=f"{min(option)}=.* should be a "):
        App("test").add_tool(add, **option)


def test_a_resource_without_a_uri_is_refused() -> None:
    app: Any = App("test")

    with pytest.raises(TypeError, match=r"@app.resource\('config://app'\)"):
        app.resource(add)
    with pytest.raises(ValueError, match="'notes' is not a URI"):
        app.resource("notes")


def test_a_positional_prompt_name_is_refused() -> None:
    app: Any = App("test")

    with pytest.raises(TypeError, match=r"@app.prompt\(name='greet'\)"):
        app.prompt("greet")


def test_an_unknown_option_is_refused_with_a_list_of_options() -> None:
    app = App("test")
    options: dict[str, Any] = {"quux": "plus"}

    with pytest.raises(TypeError, match=r"no option is named 'quux'; the options are .*name"):
        app.add_tool(add, **options)
    with pytest.raises(TypeError, match="no option is named 'quux'"):
        app.tool(**options)(add)
    with pytest.raises(TypeError, match="no option is named 'quux'"):
        app.resource("file:///a", **options)
    with pytest.raises(TypeError, match="no option is named 'quux'"):
        app.prompt(**options)(add)


@pytest.mark.parametrize("name", ["mcp", "functions", "openapi.json", "healthz", "readyz"])
def test_a_tool_named_like_a_route_is_refused_under_the_direct_contract(name: str) -> None:
    with pytest.raises(ValueError, match=f"/{name} is one of the server's own routes"):
        App("test", contract="direct").add_tool(add, name=name)

    assert App("test").add_tool(add, name=name).name == name


def test_a_contract_is_given_by_name_or_as_an_object() -> None:
    mine = Contract(name="mine", text="own")

    assert App("test").contract.name == "standard"
    assert App("test", contract="aligned").contract.name == "aligned"
    assert App("test", contract=mine).contract is mine


def test_an_unknown_contract_is_refused_with_a_list_of_contracts() -> None:
    with pytest.raises(ValueError, match="no contract is named 'alinged'; use one of standard, al"):
        App("test", contract="alinged")


def test_lenient_is_taken_from_the_app_unless_the_tool_sets_it() -> None:
    app = App("test", values=Values(lenient=True))
    app.add_tool(add)
    app.add_tool(add, name="strict", values=Values(lenient=False))

    lenient = asyncio.run(app.call("add", x="1", y="2"))
    strict = asyncio.run(app.call("strict", x="1", y="2"))

    assert lenient.data == 3
    assert strict.error is not None
    assert strict.error.code == "INVALID_ARGUMENTS"


def test_one_tool_can_be_lenient_in_a_strict_app() -> None:
    def total(numbers: list[int]) -> int:
        return sum(numbers)

    app = App("test")
    app.add_tool(total, values=Values(lenient=True))

    assert asyncio.run(app.call("total", numbers="[1, 2, 3]")).data == 6


def test_a_change_feed_takes_constant_time_for_each_subscriber() -> None:
    feed = ChangeFeed()
    count = 20_000

    started = time.process_time()
    subscriptions = [feed.subscribe(lambda change: None) for _ in range(count)]
    for unsubscribe in subscriptions:
        unsubscribe()

    # It took 20 seconds when each subscriber made a copy of all.
    assert time.process_time() - started < 10


def test_a_change_feed_keeps_the_subscribers_of_all_threads() -> None:
    feed = ChangeFeed()
    received: list[int] = []
    count, threads = 500, 8

    def receive(subscriber: int, _: Change) -> None:
        received.append(subscriber)

    def subscribe(thread: int) -> None:
        for number in range(count):
            feed.subscribe(partial(receive, thread * count + number))
            feed.subscribe(lambda _: None)()

    running = [threading.Thread(target=subscribe, args=(number,)) for number in range(threads)]
    for thread in running:
        thread.start()
    for thread in running:
        thread.join(60)
    feed.publish(Change("tools"))

    assert sorted(received) == list(range(count * threads))


@pytest.mark.parametrize(
    ("wrong", "meant"), [("lifespn", "did you mean 'lifespan'?"), ("Version", "write version=")]
)
def test_an_unknown_option_of_an_app_gets_the_name_that_was_meant(wrong: str, meant: str) -> None:
    options: Any = {wrong: None}

    with pytest.raises(TypeError, match=re.escape(f"no option is named '{wrong}'; {meant}")):
        App("test", **options)


@pytest.mark.parametrize(("wrong", "meant"), [("tittle", "title"), ("desription", "description")])
def test_an_unknown_option_of_a_tool_gets_the_name_that_was_meant(wrong: str, meant: str) -> None:
    options: Any = {wrong: "Add"}

    with pytest.raises(
        TypeError, match=rf"no option is named '{wrong}'; .*did you mean '{meant}'\?"
    ):
        App("test").add_tool(len, **options)


def test_a_subclass_may_give_the_name_itself() -> None:
    class Shop(App):
        def __init__(self) -> None:
            super().__init__("shop")

    assert Shop().tools == App("shop").tools
