"""Twenty replies of our own builders, to compare what each modelled host shows of them."""

from __future__ import annotations

from typing import TypedDict

from tests.matrix.parts import PNG, WAV

from answerback import (
    App,
    Audio,
    Embedded,
    Image,
    Link,
    NotFound,
    RateLimited,
    Reply,
    Text,
    failure,
    success,
)

app = App("builders")


class City(TypedDict):
    name: str
    people: int


OSLO: City = {"name": "Oslo", "people": 717_710}
CHART = Image(PNG, "image/png", alt="people by year")
PHOTO = Image(url="https://example.com/oslo.jpg", mime="image/jpeg", alt="the harbour")
REPORT = Link("https://example.com/report", "report", mime="text/html")


@app.tool
def a_text() -> str:
    return "Oslo is the capital."


@app.tool
def a_record() -> City:
    return OSLO


@app.tool
def a_list() -> list[City]:
    return [OSLO]


@app.tool
def a_number() -> int:
    return 717_710


@app.tool
def nothing() -> None:
    """Return nothing."""


@app.tool
def text_and_record() -> Reply[City]:
    return success("Found one city.", OSLO)


@app.tool
def text_and_list() -> Reply[list[City]]:
    return success("Found one city.", [OSLO])


@app.tool
def two_texts_and_record() -> Reply[City]:
    return success("Found one city.", OSLO, content=[Text("The figure is of 2024.")])


@app.tool
def an_image() -> Image:
    return CHART


@app.tool
def image_and_record() -> Reply[City]:
    return success(data=OSLO, content=[CHART])


@app.tool
def linked_image_and_record() -> Reply[City]:
    return success(data=OSLO, content=[PHOTO])


@app.tool
def text_images_and_list() -> Reply[list[City]]:
    return success("Two pictures.", [OSLO], content=[CHART, PHOTO])


@app.tool
def an_audio() -> Audio:
    return Audio(WAV, "audio/wav", alt="the bells")


@app.tool
def audio_and_record() -> Reply[City]:
    return success(data=OSLO, content=[Audio(WAV, "audio/wav", alt="the bells")])


@app.tool
def text_and_link() -> list[Text | Link]:
    return [Text("The report is out."), REPORT]


@app.tool
def link_and_record() -> Reply[City]:
    return success(data=OSLO, content=[REPORT])


@app.tool
def an_embedded_text() -> Embedded:
    return Embedded("file:///oslo.txt", text="Oslo is the capital.", mime="text/plain")


@app.tool
def embedded_text_and_record() -> Reply[City]:
    embedded = Embedded("file:///oslo.txt", text="Oslo is the capital.", mime="text/plain")
    return success(data=OSLO, content=[embedded])


@app.tool
def a_failure() -> City:
    raise NotFound("no city Osl", hint="try Oslo")


@app.tool
def a_failure_to_retry() -> Reply[City]:
    return failure("too many calls", kind=RateLimited, details={"retry_after": 3})
