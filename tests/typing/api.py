"""Uses the API as users do. Type-checked, not run."""

from dataclasses import dataclass
from typing import Annotated, Any, assert_type

from answerback import (
    Annotations,
    App,
    Audio,
    Context,
    Contract,
    Embedded,
    Image,
    Link,
    NotFound,
    Reply,
    Text,
    ToolError,
    failure,
    success,
    wrap,
)

app = App("typed", version="1.0.0", contract="aligned", lenient=True)
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
assert_type(blocks, Reply[Point])
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


App("a", returns="value", nan="null", codes={"CITY_UNKNOWN": 404})
App("a", nan="zero")  # type: ignore[arg-type]  # there is no such value
failure("gone", code="CITY_UNKNOWN", kind=NotFound)
app.tool(nmae="x")  # type: ignore[call-overload]  # there is no such option
App("a", "1.0")  # type: ignore[call-arg, arg-type]  # options are given by name
success("a", 5, (Text("b"),))  # type: ignore[call-overload]  # likewise

if __name__ == "__main__":
    app.run()
