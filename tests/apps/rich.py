"""All that one MCP version can say and another cannot, and more tools than a page holds."""

from typing import Annotated, TypedDict

from answerback import (
    Annotations,
    App,
    Ask,
    Audio,
    Context,
    Embedded,
    Header,
    Icon,
    Image,
    Link,
    Message,
    Reply,
    Text,
    failure,
    success,
)

app = App("rich", version="1.0.0", title="Rich", description="Says all there is to say.")

ICONS = [Icon("https://example.com/icon.png", "image/png", ("48x48",), "dark")]
META = {"example.com/note": {"kept": True}}
TOLD = Annotations(audience=("user",), priority=0.5, last_modified="2026-01-01T00:00:00Z")


class Point(TypedDict):
    x: float
    y: float


@app.tool(
    title="All",
    icons=ICONS,
    meta=META,
    read_only=True,
    destructive=False,
    idempotent=True,
    open_world=False,
)
def all_blocks() -> list[Text | Image | Audio | Link | Embedded]:
    """Give a block of each kind, with all that can be said about it."""
    return [
        Text("words", annotations=TOLD, meta=META),
        Image(b"\x89PNG", "image/png", annotations=TOLD, meta=META),
        Image(url="https://example.com/a.png", alt="a", width=2, height=1, caption="an a"),
        Audio(b"RIFF", "audio/wav", annotations=TOLD, meta=META),
        Audio(url="https://example.com/a.wav"),
        Link(
            "https://example.com/a", "a", title="A", mime="text/html", annotations=TOLD, meta=META
        ),
        Embedded("file:///a.txt", text="a", mime="text/plain", annotations=TOLD, meta=META),
        Embedded("file:///a.bin", blob=b"\x00\xff", mime="application/octet-stream"),
    ]


@app.tool
def located(region: Annotated[str, Header("Region")] = "") -> Reply[Point]:
    """Give text, data and meta."""
    return success(f"here {region}", {"x": 1.5, "y": -2}, meta=META)


@app.tool
def hinted() -> Reply[None]:
    """Fail with all that a failure can carry."""
    details = {"why": ["a", 1, None]}
    return failure("no", code="REFUSED", details=details, retryable=True, hint="wait", meta=META)


@app.tool
async def chatty(ctx: Context) -> str:
    """Log and tell progress, with whatever can be said."""
    ctx.log({"nested": [1, None, "é"]}, "warning", logger="rich")
    ctx.log(object(), "emergency")
    ctx.progress(0.5)
    ctx.progress(1, 2.5, "half")
    return "said"


@app.tool
async def inquisitive(ctx: Context) -> str:
    """Ask everything of everybody."""
    point = await ctx.elicit("Where?", Point)
    said = await ctx.sample("What?", max_tokens=5)
    roots = await ctx.roots()
    return f"{point} {said.text} {len(roots)}"


@app.tool
def asking(sure: Annotated[bool, Ask("Sure?")], size: Annotated[int, Ask("How big?")]) -> str:
    """Ask before it runs."""
    return f"{sure} {size}"


@app.tool
def change() -> None:
    """Change every list, and a resource."""

    def passing() -> str:
        """Be there for a moment."""
        return "here"

    app.add_tool(passing)
    app.remove_tool("passing")
    app.resource("rich://passing")(passing)
    app.remove_resource("rich://passing")
    app.prompt(passing)
    app.remove_prompt("passing")
    app.resource_changed("rich://text")


@app.resource(
    "rich://text",
    title="Text",
    mime="text/plain",
    size=4,
    icons=ICONS,
    meta=META,
    annotations=TOLD,
)
def text() -> str:
    """A text."""
    return "text"


@app.resource("rich://bytes")
def some_bytes() -> bytes:
    """Bytes of no kind."""
    return b"\x00\x01"


@app.resource("rich://many")
def many() -> list[Embedded]:
    """More than one body."""
    return [
        Embedded("rich://many/1", text="one", title="One", annotations=TOLD, meta=META),
        Embedded("rich://many/2", blob=b"two", mime="application/octet-stream"),
    ]


@app.resource("rich://failing")
def failing() -> str:
    """Never to be read."""
    raise RuntimeError("hunter2")


@app.resource("rich://{kind}/{number}", title="By number", icons=ICONS, meta=META, annotations=TOLD)
def numbered(kind: str, number: int) -> Point:
    """Made from its URI."""
    return {"x": number, "y": len(kind)}


@app.prompt(title="All", icons=ICONS, meta=META)
def all_messages(topic: str, tone: str = "plain") -> list[Message]:
    """A message of each kind, from both sides.

    Args:
        topic: What about.
    """
    return [
        Message(f"About {topic}, {tone}."),
        Message(Image(b"\x89PNG", "image/png", annotations=TOLD, meta=META)),
        Message(Audio(b"RIFF", "audio/wav")),
        Message(Link("https://example.com/a", "a", title="A"), "assistant"),
        Message(Embedded("file:///a.txt", text="a", mime="text/plain", annotations=TOLD)),
    ]


@app.completion("all_messages", "tone")
def tones(value: str) -> list[str]:
    """More than may be said at once."""
    return [f"{value}{number}" for number in range(150)]


@app.completion("rich://{kind}/{number}", "kind")
def kinds(value: str) -> list[str]:
    """Of a template's variable."""
    return [kind for kind in ("even", "odd") if kind.startswith(value)]


def _numbered(number: int) -> None:
    @app.tool(name=f"tool_{number}", inline=True)
    def tool() -> int:
        """Be one of many."""
        return number


for number in range(100):
    _numbered(number)


if __name__ == "__main__":
    app.run()
