"""Uses the API as users do. Type-checked, not run."""

from collections.abc import AsyncIterator, Iterator
from contextlib import asynccontextmanager, contextmanager
from dataclasses import dataclass
from typing import Annotated, Any, TypedDict, assert_type

from fastapi import FastAPI

from answerback import (
    CSP,
    AllArguments,
    Annotations,
    App,
    Audio,
    Context,
    Contract,
    Depends,
    Embedded,
    Image,
    Invocation,
    Limits,
    Link,
    Next,
    NotFound,
    Observation,
    Reply,
    Text,
    ToolError,
    connect,
    failure,
    read,
    success,
    wrap,
)
from answerback.auth import ApiKeys
from answerback.client import FilledPrompt, ManyServers, RemoteServer, RemoteTool
from answerback.models import to_openai
from answerback.options import Access, ReplyLimits, Shown, Task, TaskLimits, Values
from answerback.resilience import Breaker, Limit, Retry

parts = App("parts")


@parts.tool(
    retry=Retry(attempts=3),
    breaker=Breaker("weather-api", failures=3, reset=30),
    limit=Limit("10/s", per="user"),
    idempotent=True,
)
def forecast(city: str) -> str:
    return city


app = App("typed", version="1.0.0", contract="aligned", values=Values(lenient=True))
mine = App("mine", contract=Contract(name="mine", text="own").derive(error_text="coded"))


@dataclass
class Point:
    x: int
    y: int


@app.tool
def add(x: int, y: int = 1) -> int:
    """The decorator returns the function with its own type."""
    return x + y


@app.tool(name="Sub", title="Subtract", inline=True, raises=[NotFound], examples=[{"x": 1}])
def subtract(x: int, y: int) -> int:
    return x - y


@app.tool
async def slowly(point: Point, ctx: Context) -> Reply[Point]:
    ctx.progress(1, 2, "half way")
    ctx.log({"at": point.x}, "warning")
    if ctx.cancelled:
        return failure("nobody waits", code="LATE", retryable=True, hint="ask again")
    return success("moved", Point(point.x + 1, point.y))


@app.tool
def picture(of: Annotated[str, "what to draw"]) -> list[Image | Text]:
    if not of:
        raise NotFound("nothing to draw", code="NOTHING", details={"of": of}, hint="say what")
    return [Image(b"", "image/png", alt=of), Text("drawn", annotations=Annotations(priority=0.5))]


class Desk:
    def count(self, drawer: str) -> int:
        return len(drawer)


class Lost(ToolError):
    code = "LOST"


assert_type(add(1), int)
assert_type(subtract(1, y=2), int)
assert_type(app.openapi(), dict[str, Any])
app.add_tool(Desk().count, name="count", read_only=True)

assert_type(success("five", 5), Reply[int])
assert_type(success(data=5), Reply[int])
assert_type(success("five"), Reply[Any])
assert_type(success({"five": 5}), Reply[dict[str, int]])
assert_type(success([5]), Reply[list[int]])
assert_type(failure("no"), Reply[Any])
blocks = success(
    "with blocks",
    Point(1, 2),
    content=[
        Audio(url="https://example.com/a.mp3"),
        Link("https://example.com", "example", kind="url", metadata={"a": 1}),
        Embedded("file:///a.txt", text="a", mime="text/plain"),
        Image.open("a.png", alt="a"),
    ],
    meta={"seen": True},
)
assert_type(blocks, Reply[Point, dict[str, bool]])
assert_type(blocks.ok, bool)


@wrap
def plain(x: int) -> dict[str, int]:
    return {"x": x}


async def call() -> None:
    reply = await app.call("add", x=1, y=2)
    assert_type(reply, Reply[Any])
    if reply.error is not None:
        assert_type(reply.error.code, str)
        assert_type(reply.error.message, str)
    assert_type(reply.to("envelope"), dict[str, Any])
    assert_type(app.write(reply), dict[str, Any])
    assert_type(await plain(1), dict[str, Any])
    await plain("1")  # type: ignore[arg-type]  # the wrapped function takes an int


@dataclass
class State:
    pool: list[str]


@asynccontextmanager
async def lifespan(app: App) -> AsyncIterator[State]:
    yield State(list(app.tools))


@contextmanager
def plain_lifespan() -> Iterator[State]:
    yield State([])


with_state = App("state", lifespan=lifespan)
App("plain state", lifespan=plain_lifespan)
App("maybe with keys", auth=ApiKeys({"…": "ci"}) if __debug__ else None)
FastAPI(lifespan=with_state.lifespan)


def get_pool(ctx: Context[State]) -> list[str]:
    assert_type(ctx.state, State)
    return ctx.state.pool


class Order(TypedDict):
    product: str


@app.tool
def order(params: Annotated[Order, AllArguments]) -> str:
    assert_type(params, Order)
    return params["product"]


def by_schema(**arguments: Any) -> Any:
    return arguments


app.add_tool(by_schema, input_schema={"type": "object"}, output_schema={"type": "object"})


@with_state.tool
def pool_size(pool: Annotated[list[str], Depends(get_pool)], ctx: Context) -> int:
    assert_type(ctx.state, Any)
    if ctx.request.headers is not None:
        assert_type(ctx.request.headers["x-tenant"], str)
    if ctx.request.client is not None:
        assert_type(ctx.request.client.name, str)
    assert_type(ctx.request.session, str | None)
    return len(pool)


async def in_tests() -> None:
    async with with_state.running():
        with with_state.override(get_pool, lambda: ["fake"]):
            await with_state.call("pool_size")
    with_state.overrides[get_pool] = lambda: ["fake"]


app.widget(
    "accounts",
    html="<p>",
    csp=CSP(connect=["https://example.com"], redirects={"https://example.com"}),
    permissions={"camera"},
    border=True,
    host="claude",
)
app.add_tool(add, widget=Shown("accounts", invoking="…", invoked=".", visible_to={"model", "app"}))
app.widget("b", html="<p>", csp={"connect": []})  # type: ignore[arg-type]  # it is a CSP
Shown(visible_to={"user"})  # type: ignore[arg-type]  # there is no such caller
Shown("accounts", "Loading…")  # type: ignore[call-arg]  # only the widget's name is positional
app.add_tool(add, widget=Shown(visible_to={"app"}), task="optional", values=Values(nan="null"))
app.add_tool(add, task=Task("optional", key=True))
app.add_tool(add, task=Task(key=True))
app.add_tool(add, task="later")  # type: ignore[arg-type]  # there is no such mode
Task("later")  # type: ignore[arg-type]  # likewise
Task("optional", True)  # type: ignore[call-arg]  # key is given by name
assert_type(Task("optional").key, bool)
assert_type(Shown("accounts").name, str | None)
app.add_tool(add, invoking="…")  # type: ignore[call-arg]  # it is part of widget=
App("a", task_limits=TaskLimits())  # type: ignore[call-arg]  # it is part of limits=
App("a", access=Access(url="https://example.com/mcp", sessions=False))
App("a", limits=Limits(tasks=TaskLimits(slots=20), replies=ReplyLimits(retention=600)))
CSP(["https://example.com"])  # type: ignore[call-arg]  # members are given by name

App("a", values=Values(returns="value", nan="null"), codes={"CITY_UNKNOWN": 404})
Values(nan="zero")  # type: ignore[arg-type]  # there is no such value
failure("gone", code="CITY_UNKNOWN", kind=NotFound)
app.tool(nmae="x")  # type: ignore[call-overload]  # there is no such option
version: Any = "1.0"
App("a", version)  # type: ignore[call-arg]  # options are given by name
success("a", 5, (Text("b"),))  # type: ignore[call-overload]  # likewise

if __name__ == "__main__":
    app.run()


async def timing(call: Invocation, next: Next) -> object:
    call.arguments["x"] = call.name
    return await next(call)


def count(seen: Observation) -> None:
    assert_type(seen.seconds, float)


office = App("office", middleware=[timing], observers=[count])
office.include(app, prefix="calc_")
office.disable("calc_add")
office.enable(tag="read")

assert_type(read(b"{}"), Reply[Any])
assert_type(read({}, into=Point, strict=True), Reply[Point])
assert_type(read({}, Point | None), Reply[Any])
assert_type(read("x").for_model(budget=4000, untrusted=True), str)
assert_type(read("x").as_seen_by("claude-code", max_chars=100_000).text, str)


def narrowed(reply: Reply[Point]) -> Point | None:
    """The data of a success has the declared type."""
    if reply.ok:
        assert_type(reply.data, Point)
        return reply.data
    assert_type(read({}, into=Point).data, Point)
    return None


async def call_servers() -> None:
    async with connect("python server.py") as server:
        assert_type(server, RemoteServer)
        assert_type(server.info.instructions, str)
        assert_type(await server.call("add", {"x": 1}, y=2), Reply[Any])
        assert_type(await server.call("point", x=1, into=Point), Reply[Point])
        assert_type(await server.call("point", into=list[Point]), Reply[list[Point]])
        assert_type(await server.call("point", into=Point | None), Reply[Any])
        assert_type(await to_openai(app).run(server, {}), tuple[str | None, Reply[Any], str])
        assert_type(await server.options(timeout=2).tools(), list[RemoteTool])
        server.options(timeouts=2)  # type: ignore[call-arg]  # there is no such option
    async with connect({"mcpServers": {}}) as servers:
        assert_type(servers, ManyServers)
        assert_type(servers.failures, dict[str, str])
        assert_type(servers.servers["math"], RemoteServer)
        assert_type(await servers.options(retry=None).call("math_add", x=1), Reply[Any])


def call_servers_without_async() -> None:
    with connect("python server.py") as server:
        assert_type(server.tools(), list[RemoteTool])
        assert_type(server.call("add", {"x": 1}, y=2), Reply[Any])
        assert_type(server.call("point", {"x": 1}, into=Point), Reply[Point])
        assert_type(to_openai(app).run(server, {})[1], Reply[Any])
        assert_type(server.options(timeout=2).read("file:///a"), Reply[Any])
        assert_type(server.prompt("greet", name="Ada"), FilledPrompt)
        assert_type(server.complete("greet", "name", "A", context={"x": "y"}), list[str])
        server.prompt("greet", name=1)
        server.read()  # type: ignore[call-arg]  # there is no URI
