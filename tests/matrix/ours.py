"""The server of the matrix on Answerback."""

from __future__ import annotations

from typing import TypedDict

from tests.matrix import parts

from answerback import App, Audio, Embedded, Image, Link, NotFound, Reply, Text, success

app = App("matrix")


class Weather(TypedDict):
    city: str
    humidity: int


WEATHER: Weather = {"city": "Oslo", "humidity": 78}


@app.tool
def text() -> str:
    return parts.TEXT


@app.tool
def data() -> Weather:
    return WEATHER


@app.tool
def items() -> list[dict[str, str]]:
    return [{"city": parts.ITEM}]


@app.tool
def both() -> Reply[Weather]:
    return success(parts.TEXT, WEATHER)


@app.tool
def failed() -> str:
    raise NotFound(parts.MESSAGE)


@app.tool
def failed_with_details() -> str:
    raise NotFound(parts.MESSAGE, details={"near": [parts.DETAIL]}, hint=parts.HINT)


@app.tool
def crashed() -> str:
    raise RuntimeError(f"the password is {parts.SECRET}")


@app.tool
def image() -> Image:
    return Image(parts.PNG, "image/png")


@app.tool
def image_and_data() -> Reply[Weather]:
    return success(data=WEATHER, content=[Image(parts.PNG, "image/png")])


@app.tool
def audio() -> Audio:
    return Audio(parts.WAV, "audio/wav")


@app.tool
def link() -> list[Text | Link]:
    return [Text(parts.TEXT), Link(parts.LINK, "report")]


@app.tool
def embedded() -> Embedded:
    return Embedded("file:///sky.txt", text=parts.TEXT, mime="text/plain")


@app.tool
def empty() -> None:
    """Return nothing."""


@app.tool
def large() -> list[dict[str, str]]:
    return [{"name": f"row-{number}-end"} for number in range(2000)]


@app.tool
def widget() -> Reply[Weather]:
    return success(None, WEATHER, {"example.com/page": parts.META})


if __name__ == "__main__":
    app.run()
