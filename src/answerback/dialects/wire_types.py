"""The JSON of each dialect as TypedDicts, from which `reply_schemas` makes JSON Schemas.

Nothing is decoded or encoded with these types. `reply_schemas` adds the constraints that
a type cannot express. A docstring would become a description in the schemas, so notes
are comments. The prefix Wire keeps the names apart from those of other classes, such as
the blocks in `content`; the schemas are named without it.
"""

from datetime import datetime
from typing import Annotated, Any, Literal, NotRequired, TypeAlias, TypedDict

from msgspec import Meta

Object: TypeAlias = dict[str, Any]
Pixels: TypeAlias = int
Timestamp: TypeAlias = Annotated[datetime, Meta(tz=True)]


class WireAnnotations(TypedDict, total=False):
    audience: list[Literal["user", "assistant"]]
    priority: Annotated[float, Meta(ge=0, le=1)]
    lastModified: Annotated[str, Meta(description="ISO 8601")]


class _BlockMembers(TypedDict, total=False):
    annotations: WireAnnotations
    _meta: Object


class WireText(_BlockMembers):
    type: Literal["text"]
    text: str


class WireImage(_BlockMembers):
    type: Literal["image"]
    data: bytes
    mimeType: str


class WireAudio(_BlockMembers):
    type: Literal["audio"]
    data: bytes
    mimeType: str


class ResourceLink(_BlockMembers):
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
    _meta: NotRequired[Object]


class BlobBody(TypedDict):
    uri: str
    blob: bytes
    title: NotRequired[str]
    mimeType: NotRequired[str]
    _meta: NotRequired[Object]


class WireResource(_BlockMembers):
    type: Literal["resource"]
    resource: TextBody | BlobBody


WireBlock: TypeAlias = WireText | WireImage | WireAudio | ResourceLink | WireResource


class Content(TypedDict):
    content: list[WireBlock]


class McpResult(TypedDict):
    content: list[WireBlock]
    structuredContent: NotRequired[Object]
    isError: NotRequired[Literal[False]]
    _meta: NotRequired[Object]


class McpError(TypedDict):
    content: list[WireBlock]
    isError: Literal[True]
    _meta: NotRequired[Object]


class _MediaMembers(_BlockMembers, total=False):
    mimeType: str
    width: Pixels
    height: Pixels
    caption: str


class EnvelopeImage(_MediaMembers):
    type: Literal["image"]
    url: str
    altText: str


class EnvelopeAudio(_MediaMembers):
    type: Literal["audio"]
    url: str
    altText: NotRequired[str]


class EnvelopeResource(_BlockMembers):
    type: Literal["resource"]
    resourceType: str
    identifier: str
    name: str
    description: NotRequired[str]
    metadata: NotRequired[Object]
    title: NotRequired[str]
    mimeType: NotRequired[str]
    embedded: NotRequired[Literal[True]]


EnvelopeBlock: TypeAlias = WireText | EnvelopeImage | EnvelopeAudio | EnvelopeResource


class Failure(TypedDict):
    code: Annotated[str, Meta(description="A stable name for what went wrong")]
    message: str
    details: NotRequired[Any]
    retryable: NotRequired[
        Annotated[bool, Meta(description="Whether the same call may work later")]
    ]
    hint: NotRequired[Annotated[str, Meta(description="What to do about it")]]
    kind: NotRequired[
        Annotated[str, Meta(description="The code in the table of codes whose status the code has")]
    ]


class Envelope(TypedDict):
    success: Literal[True]
    timestamp: Timestamp
    content: Annotated[list[EnvelopeBlock], Meta(min_length=1)]
    data: NotRequired[Any]
    meta: NotRequired[Object]


class EnvelopeError(TypedDict):
    success: Literal[False]
    timestamp: Timestamp
    content: Annotated[list[EnvelopeBlock], Meta(min_length=1)]
    error: Failure
    meta: NotRequired[Object]


class RestError(TypedDict):
    error: str


class WireProblem(TypedDict):
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
