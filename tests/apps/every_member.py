"""Every member that some MCP version has and another lacks, and more tools than one page."""

from typing import Annotated, TypedDict

from answerback import (
    CSP,
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
from answerback.options import Shown
from answerback.registry.declarations import registry_of

app = App("every-member", version="1.0.0", title="Every member", description="Sends every member.")

ICONS = [Icon("https://example.com/icon.png", "image/png", ("48x48",), "dark")]
META = {"example.com/note": {"kept": True}}
ANNOTATIONS = Annotations(audience=("user",), priority=0.5, last_modified="2026-01-01T00:00:00Z")


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
    """Return a block of each kind, with all its members."""
    return [
        Text("words", annotations=ANNOTATIONS, meta=META),
        Image(b"\x89PNG", "image/png", annotations=ANNOTATIONS, meta=META),
        Image(url="https://example.com/a.png", alt="a", width=2, height=1, caption="an a"),
        Audio(b"RIFF", "audio/wav", annotations=ANNOTATIONS, meta=META),
        Audio(url="https://example.com/a.wav"),
        Link(
            "https://example.com/a",
            "a",
            title="A",
            mime="text/html",
            annotations=ANNOTATIONS,
            meta=META,
        ),
        Embedded("file:///a.txt", text="a", mime="text/plain", annotations=ANNOTATIONS, meta=META),
        Embedded("file:///a.bin", blob=b"\x00\xff", mime="application/octet-stream"),
    ]


@app.tool
def located(region: Annotated[str, Header("Region")] = "") -> Reply[Point]:
    """Return text, data and meta."""
    return success(f"here {region}", {"x": 1.5, "y": -2}, meta=META)


@app.tool
def hinted() -> Reply[None]:
    """Fail with every member of a failure."""
    details = {"why": ["a", 1, None]}
    return failure("no", code="REFUSED", details=details, retryable=True, hint="wait", meta=META)


@app.tool
async def notifying(ctx: Context) -> str:
    """Send log messages and progress of every form."""
    ctx.log({"nested": [1, None, "é"]}, "warning", logger="every-member")
    ctx.log(object(), "emergency")
    ctx.progress(0.5)
    ctx.progress(1, 2.5, "half")
    return "sent"


@app.tool
async def inquisitive(ctx: Context) -> str:
    """Ask the user, the model and the client."""
    point = await ctx.elicit("Where?", Point)
    sampled = await ctx.sample("What?", max_tokens=5)
    roots = await ctx.roots()
    return f"{point} {sampled.text} {len(roots)}"


@app.tool
def asking(sure: Annotated[bool, Ask("Sure?")], size: Annotated[int, Ask("How big?")]) -> str:
    """Ask before the tool runs."""
    return f"{sure} {size}"


@app.tool
def change() -> None:
    """Change every list twice, and a resource once."""

    def temporary() -> str:
        """Exist for a moment."""
        return "here"

    app.add_tool(temporary)
    app.remove_tool("temporary")
    app.resource("test://temporary")(temporary)
    registry_of(app).remove("resources", "test://temporary")
    app.prompt(temporary)
    app.remove_prompt("temporary")
    app.resource_changed("test://text")


@app.resource(
    "test://text",
    title="Text",
    mime="text/plain",
    size=4,
    icons=ICONS,
    meta=META,
    annotations=ANNOTATIONS,
)
def text() -> str:
    """A text."""
    return "text"


app.widget(
    "point",
    html="<!doctype html><title>Point</title>",
    csp=CSP(connect=["https://example.com"]),
    domain="https://point.example.com",
    border=False,
    description="A point",
    permissions={"camera"},
    host="claude",
    bridge=False,
)


@app.tool(widget=Shown("point", invoking="Looking", invoked="Found", visible_to={"app"}))
def point() -> Point:
    return {"x": 1, "y": 2}


@app.resource("test://bytes")
def some_bytes() -> bytes:
    """Bytes without a media type."""
    return b"\x00\x01"


@app.resource("test://many")
def many() -> list[Embedded]:
    """Several contents."""
    return [
        Embedded("test://many/1", text="one", title="One", annotations=ANNOTATIONS, meta=META),
        Embedded("test://many/2", blob=b"two", mime="application/octet-stream"),
    ]


@app.resource("test://failing")
def failing() -> str:
    """Fail when it is read."""
    raise RuntimeError("hunter2")


@app.resource(
    "test://{kind}/{number}", title="By number", icons=ICONS, meta=META, annotations=ANNOTATIONS
)
def numbered(kind: str, number: int) -> Point:
    """A point made from the URI."""
    return {"x": number, "y": len(kind)}


@app.prompt(title="All", icons=ICONS, meta=META)
def all_messages(topic: str, tone: str = "plain") -> list[Message]:
    """A message of each kind, of both roles.

    Args:
        topic: The topic.
    """
    return [
        Message(f"About {topic}, {tone}."),
        Message(Image(b"\x89PNG", "image/png", annotations=ANNOTATIONS, meta=META)),
        Message(Audio(b"RIFF", "audio/wav")),
        Message(Link("https://example.com/a", "a", title="A"), "assistant"),
        Message(Embedded("file:///a.txt", text="a", mime="text/plain", annotations=ANNOTATIONS)),
    ]


@app.completion("all_messages", "tone")
def tones(value: str) -> list[str]:
    """More values than one result may have."""
    return [f"{value}{number}" for number in range(150)]


@app.completion("test://{kind}/{number}", "kind")
def kinds(value: str) -> list[str]:
    """The values of a variable of the template."""
    return [kind for kind in ("even", "odd") if kind.startswith(value)]


def _numbered(number: int) -> None:
    @app.tool(name=f"tool_{number}", inline=True)
    def tool() -> int:
        """Be one of many tools."""
        return number


for number in range(100):
    _numbered(number)


if __name__ == "__main__":
    app.run()
