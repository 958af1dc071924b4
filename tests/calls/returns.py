"""Strategies for what authors return: values, results by hand, blocks, replies, and mistakes.

Each example is a function, because some of these values cannot be built: then it raises.
"""

from __future__ import annotations

import json
from collections.abc import Callable
from dataclasses import dataclass
from datetime import UTC, date, datetime
from decimal import Decimal
from enum import Enum
from typing import Any, NamedTuple, TypedDict
from uuid import UUID

import msgspec
import pydantic
from hypothesis import strategies as st

from answerback import (
    Audio,
    Embedded,
    Image,
    Link,
    NotFound,
    Reply,
    Text,
    ToolError,
    failure,
    success,
)
from answerback.core.content import Annotations

Make = Callable[[], Any]

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452")


class Weather(TypedDict):
    celsius: float


class Loose(TypedDict, total=False):
    name: str
    message: str


class Problem(TypedDict, total=False):
    status: int
    title: str
    detail: str
    error: str


class Doc(TypedDict):
    content: list[dict[str, Any]]


class EnvelopeDict(TypedDict, total=False):
    success: bool
    content: list[Any]
    data: Any
    error: Any
    message: str


@dataclass
class ResultData:
    content: Any = None
    isError: Any = False  # noqa: N815 -- the member of MCP
    structuredContent: Any = None  # noqa: N815 -- the member of MCP


@dataclass
class Flagged:
    success: Any
    error: Any = None
    rows: Any = None


class EnvelopeModel(pydantic.BaseModel):
    success: Any
    data: Any = None
    error: Any = None


class Point(msgspec.Struct):
    x: int
    note: str = ""


class Pair(NamedTuple):
    one: int
    other: str


class Colour(Enum):
    RED = "red"


ANNOTATIONS: list[Any] = [
    Any,
    None,
    object,
    dict,
    dict[str, Any],
    dict[str, str],
    list,
    list[dict[str, Any]],
    list[int],
    str,
    int,
    bool,
    float | None,
    str | int | None,
    tuple[int, str],
    Weather,
    Loose,
    Problem,
    Doc,
    Point,
    Pair,
    EnvelopeDict,
    EnvelopeDict | None,
    ResultData,
    Flagged,
    EnvelopeModel,
    EnvelopeModel | Weather,
    Weather | Image,
    Text,
    list[Text | Image | Link],
    Reply,
    Reply[Weather],
    Reply[Any],
]

# The names that mean something to a reader of replies, and a few that do not.
NAMES = [
    *("content", "isError", "structuredContent", "_meta", "resultType", "success", "ok", "error"),
    *("errors", "message", "data", "result", "status", "code", "title", "detail", "type", "text"),
    *("timestamp", "meta", "path", "details", "is_error", "uri", "name", "celsius", "x", "rows"),
]
WORDS = [
    *("", " ", "\n", "gone", "Error: gone", "text", "image", "NOT_FOUND", "failed", "ok", "error"),
    *("true", "null", "[]", "{}", '""', "undefined", "[object Object]", "Promise {1}", "é\u0000"),
    *("<coroutine object f at 0x7f>", "<Response [200]>", '{"mean": NaN}', "```\n{}\n```", "404"),
    "2025-05-03T14:30:00Z",
]
names = st.sampled_from(NAMES) | st.text(max_size=3)
words = st.sampled_from(WORDS) | st.text(max_size=6)
scalars = (
    st.none()
    | st.booleans()
    | st.sampled_from([0, 1, 404, -1, 200, 1.5, 10**30, float("nan"), float("inf")])
    | words
)


def _containers(inner: st.SearchStrategy[Any]) -> st.SearchStrategy[Any]:
    return st.lists(inner, max_size=3) | st.dictionaries(names, inner, max_size=4)


json_values: st.SearchStrategy[Any] = st.recursive(scalars, _containers, max_leaves=8)
flags = st.sampled_from([True, False, None, 0, 1, "true", "false"])


def _optional(**members: st.SearchStrategy[Any]) -> st.SearchStrategy[dict[str, Any]]:
    return st.fixed_dictionaries({}, optional=members)


metadata = _optional(key=json_values) | st.dictionaries(names, json_values, max_size=2)
uris = st.sampled_from(["https://a.example/b", "ui://w", "instance-1", "/etc/x", "", "a b", "x:y"])
mimes = st.sampled_from(["image/png", "image/jpeg", "audio/wav", "text/plain", "png", "", "a/b"])
payloads = st.sampled_from([b"", PNG, b"GIF89a..", b"hello", b"RIFF\x00\x00\x00\x00WAVE"])
marks = _optional(
    audience=json_values | st.just(["user"]),
    priority=st.sampled_from([0.5, 2, "high", float("nan"), None]),
    lastModified=words,
)
block_objects: st.SearchStrategy[Any] = (
    st.fixed_dictionaries(
        {"type": st.sampled_from(["text", "image", "audio", "resource", "resource_link", "chart"])},
        optional={
            "text": words | json_values,
            "data": st.sampled_from(["", "aGVsbG8=", "not base64!", "data:image/png;base64,aGk="]),
            "mimeType": mimes,
            "uri": uris,
            "url": uris,
            "name": words,
            "altText": words,
            "resourceType": words,
            "identifier": uris,
            "resource": _optional(uri=uris, text=words, blob=words, mimeType=mimes),
            "annotations": marks,
            "_meta": metadata,
        },
    )
    | json_values
)
errors = (
    words | _optional(code=words | st.just(7), message=words, details=json_values) | json_values
)
results = _optional(
    content=st.lists(block_objects, max_size=3) | json_values,
    isError=flags,
    structuredContent=json_values,
    _meta=metadata | json_values,
    resultType=words,
)
envelopes = st.fixed_dictionaries(
    {"success": flags},
    optional={
        "content": st.lists(block_objects, max_size=2),
        "data": json_values,
        "error": errors,
        "message": words,
        "timestamp": words,
        "meta": metadata,
        "rows": json_values,
    },
)
by_hand = results | envelopes | _optional(error=errors, ok=flags, status=words, rows=json_values)


def _dumped(value: Any) -> str:
    return json.dumps(value)


texts = words | (json_values | by_hand).map(_dumped)
texts |= by_hand.map(lambda value: f"```json\n{json.dumps(value)}\n```")


def _block(kind: Any, /, **members: st.SearchStrategy[Any]) -> st.SearchStrategy[Make]:
    more = {"meta": metadata | st.none(), "annotations": st.none() | marks}
    given = st.fixed_dictionaries(dict(members), optional=more)

    def make(found: dict[str, Any]) -> Make:
        return lambda: kind(**{**found, **_annotated(found)})

    return given.map(make)


def _annotated(found: dict[str, Any]) -> dict[str, Any]:
    given = found.get("annotations")
    if not given:
        return {}
    renamed = {"last_modified" if name == "lastModified" else name: given[name] for name in given}
    return {"annotations": Annotations(**renamed)}


blocks = st.one_of(
    _block(Text, text=texts | scalars),
    _block(Image, data=payloads, mime=mimes),
    _block(Image, url=uris, alt=words | st.none()),
    _block(Audio, data=payloads, mime=mimes),
    _block(Link, uri=uris, name=words, kind=words | st.just("instance"), metadata=metadata),
    _block(Embedded, uri=uris, text=texts, mime=mimes | st.none()),
    _block(Embedded, uri=uris, blob=payloads, mime=mimes | st.none()),
)


def _made(makes: list[Make]) -> list[Any]:
    return [make() for make in makes]


block_lists = st.lists(blocks, max_size=3)
others: st.SearchStrategy[Any] = st.sampled_from(
    [
        datetime(2025, 5, 3, tzinfo=UTC),
        date(2025, 5, 3),
        Decimal("1.5"),
        Decimal("NaN"),
        UUID(int=5),
        b"bytes",
        {1, 2},
        (1, "a"),
        Colour.RED,
        object(),
        print,
        Point(1, "a"),
        Pair(1, "a"),
        "\ud800",
        range(3),
    ]
)


def _value(strategy: st.SearchStrategy[Any]) -> st.SearchStrategy[Make]:
    return strategy.map(lambda value: lambda: value)


def _raise(error: Exception) -> Any:
    raise error


records = st.one_of(
    results.map(lambda found: lambda: ResultData(found.get("content"), found.get("isError"))),
    st.tuples(flags, errors, json_values).map(lambda each: lambda: Flagged(*each)),
    envelopes.map(
        lambda found: (
            lambda: EnvelopeModel(
                success=found["success"], data=found.get("data"), error=found.get("error")
            )
        )
    ),
)
replies = st.one_of(
    st.tuples(texts | st.none(), json_values, metadata, block_lists).map(
        lambda each: lambda: success(each[0], data=each[1], meta=each[2], content=_made(each[3]))
    ),
    st.tuples(texts | st.none(), block_lists).map(
        lambda each: lambda: success(each[0], content=_made(each[1]))
    ),
    st.tuples(words, words, json_values, metadata).map(
        lambda each: lambda: failure(each[0], each[1], each[2], meta=each[3])
    ),
    st.tuples(json_values, block_lists).map(
        lambda each: lambda: Reply(data=each[0], content=tuple(_made(each[1])))
    ),
    st.tuples(words, words, json_values).map(
        lambda each: lambda: _raise(ToolError(each[0], code=each[1], details=each[2]))
    ),
    words.map(lambda word: lambda: _raise(NotFound(word, hint=word))),
    words.map(lambda word: lambda: _raise(ValueError(word))),
)
with_blocks = st.one_of(
    block_lists.map(lambda makes: lambda: _made(makes)),
    blocks,
    st.tuples(block_lists, flags).map(
        lambda each: lambda: {"content": _made(each[0]), "isError": each[1]}
    ),
    st.tuples(names, blocks).map(lambda each: lambda: {each[0]: each[1](), "rows": [each[1]()]}),
)
returns: st.SearchStrategy[Make] = st.one_of(
    _value(json_values),
    _value(by_hand),
    _value(texts),
    _value(others),
    records,
    replies,
    with_blocks,
)
