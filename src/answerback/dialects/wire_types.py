"""What the dialects send, as types: the one source of their JSON Schemas.

For what a type cannot say, see `schemas`. Nothing is decoded or encoded with these.
"""

from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from msgspec import Meta

Object: TypeAlias = dict[str, Any]
Pixels: TypeAlias = int
Moment: TypeAlias = Annotated[datetime, Meta(tz=True)]


class Annotations(TypedDict, total=False):
    audience: list[Literal["user", "assistant"]]
    priority: Annotated[float, Meta(ge=0, le=1)]
    lastModified: Annotated[str, Meta(description="ISO 8601")]


class _Block(TypedDict, total=False):
    annotations: Annotations
    _meta: Object


class Text(_Block):
    type: Literal["text"]
    text: str


class Image(_Block):
    type: Literal["image"]
    data: bytes
    mimeType: str


class Audio(_Block):
    type: Literal["audio"]
    data: bytes
    mimeType: str


class ResourceLink(_Block):
    type: Literal["resource_link"]
    uri: str
    name: str
    title: NotRequired[str]
    description: NotRequired[str]
    mimeType: NotRequired[str]


class TextBody(TypedDict):
    uri: str
    text: str
    title: NotRequired[str]
    mimeType: NotRequired[str]


class BlobBody(TypedDict):
    uri: str
    blob: bytes
    title: NotRequired[str]
    mimeType: NotRequired[str]


class Resource(_Block):
    type: Literal["resource"]
    resource: TextBody | BlobBody


Block: TypeAlias = Text | Image | Audio | ResourceLink | Resource


class Content(TypedDict):
    content: list[Block]


class McpResult(TypedDict):
    content: list[Block]
    structuredContent: NotRequired[Object]
    isError: NotRequired[Literal[False]]
    _meta: NotRequired[Object]


class McpError(TypedDict):
    content: list[Block]
    isError: Literal[True]
    _meta: NotRequired[Object]


class _Looks(_Block, total=False):
    mimeType: str
    width: Pixels
    height: Pixels
    caption: str


class EnvelopeImage(_Looks):
    type: Literal["image"]
    url: str
    altText: str


class EnvelopeAudio(_Looks):
    type: Literal["audio"]
    url: str
    altText: NotRequired[str]


class EnvelopeResource(_Block):
    type: Literal["resource"]
    resourceType: str
    identifier: str
    name: str
    description: NotRequired[str]
    metadata: NotRequired[Object]
    title: NotRequired[str]
    mimeType: NotRequired[str]
    embedded: NotRequired[Literal[True]]


EnvelopeBlock: TypeAlias = Text | EnvelopeImage | EnvelopeAudio | EnvelopeResource


class Failure(TypedDict):
    code: Annotated[str, Meta(description="A stable name for what went wrong")]
    message: str
    details: NotRequired[Any]
    retryable: NotRequired[
        Annotated[bool, Meta(description="Whether the same call may work later")]
    ]
    hint: NotRequired[Annotated[str, Meta(description="What to do about it")]]
    kind: NotRequired[Annotated[str, Meta(description="The code of ours that the code counts as")]]


class Envelope(TypedDict):
    success: Literal[True]
    timestamp: Moment
    content: Annotated[list[EnvelopeBlock], Meta(min_length=1)]
    data: NotRequired[Any]
    meta: NotRequired[Object]


class EnvelopeError(TypedDict):
    success: Literal[False]
    timestamp: Moment
    content: Annotated[list[EnvelopeBlock], Meta(min_length=1)]
    error: Failure
    meta: NotRequired[Object]


class RestError(TypedDict):
    error: str


class Problem(TypedDict):
    type: str
    title: str
    status: int
    detail: str
    code: Annotated[str, Meta(description="A stable name for what went wrong")]
    details: NotRequired[Any]
    retryable: NotRequired[
        Annotated[bool, Meta(description="Whether the same call may work later")]
    ]
    hint: NotRequired[Annotated[str, Meta(description="What to do about it")]]
