"""The content types of seed 004 with the seed's values, and a resource that fails."""

from answerback import (
    Annotations,
    App,
    Audio,
    Context,
    Embedded,
    Image,
    Link,
    Text,
    Unavailable,
)

app = App("contents-004")

RUST = 'fn main() {\n    println!("Hello world!");\n}'


@app.tool
def text() -> Text:
    """The result text."""
    return Text("The result text")


@app.tool
def image() -> Image:
    """An image."""
    return Image(b"image-data", "image/png")


@app.tool
def audio() -> Audio:
    """A sound."""
    return Audio(b"audio-data", "audio/wav")


@app.tool
def link() -> Link:
    """A resource that is not embedded."""
    return Link(
        "file:///project/src/main.rs",
        "main.rs",
        description="Primary application entry point",
        mime="text/x-rust",
    )


@app.tool
def embedded() -> Embedded:
    """A resource that is embedded."""
    return Embedded(
        "file:///project/src/main.rs",
        title="Project Rust Main File",
        mime="text/x-rust",
        text=RUST,
    )


@app.tool
def annotated() -> Text:
    """Text with all annotations."""
    annotations = Annotations(
        audience=("user",), priority=0.9, last_modified="2025-05-03T14:30:00Z"
    )
    return Text("Important result", annotations=annotations)


@app.tool
async def endless(ctx: Context) -> str:
    """Report progress, then run until the call is cancelled."""
    import asyncio

    ctx.progress(1)
    await asyncio.Event().wait()
    return "never"


@app.resource("seed://away")
def away() -> str:
    """A resource that is unavailable."""
    raise Unavailable("the disk is away")


if __name__ == "__main__":
    app.run()
