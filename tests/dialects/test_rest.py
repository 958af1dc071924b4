"""The dialect rest: bodies, media types, statuses and headers."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from answerback.contract import STANDARD
from answerback.core.content import Audio, Block, Image, Link, Text
from answerback.core.reply import Error, Reply, failure, success
from answerback.core.shape import BARE, RESULT
from answerback.dialects import HttpReply, MalformedReply, rest
from answerback.errors import NotFound

JSON = "application/json"


def written(reply: Reply[Any]) -> HttpReply:
    return rest.write(reply, RESULT, STANDARD)


def test_content_beside_data_is_not_sent() -> None:
    found = written(success("ten", 10, content=[Image(b"png", "image/png")], meta={"a": 1}))

    assert found == HttpReply(200, b'{"result":10}', JSON)


def test_data_is_written_without_entering_another_module_than_shape(
    modules_entered: Callable[[Callable[[], object]], set[str]],
) -> None:
    reply = Reply(data=10, encoded=b"10")

    entered = modules_entered(lambda: rest.write(reply, RESULT, STANDARD))

    assert entered == {"answerback.dialects.rest", "answerback.core.shape"}


@pytest.mark.parametrize(
    ("block", "media_type"),
    [
        (Image(b"bytes", "image/png"), "image/png"),
        (Audio(b"bytes", "audio/L16; rate=8000"), "audio/L16; rate=8000"),
        (Image(b"bytes", "image/png\r\nSet-Cookie: a=b"), "application/octet-stream"),
        (Image(b"bytes", "image/png; a"), "application/octet-stream"),
        (Image(b"bytes", "image/"), "application/octet-stream"),
        (Image(b"bytes", "text/html"), "application/octet-stream"),
    ],
)
def test_a_single_image_or_audio_block_is_sent_as_bytes_with_a_safe_media_type(
    block: Block, media_type: str
) -> None:
    found = written(success(content=[block]))

    assert (found.status, found.body, found.media_type) == (200, b"bytes", media_type)
    assert found.header("x-content-type-options") == "nosniff"


def test_other_content_is_a_list_of_blocks() -> None:
    found = written(success("See:", content=[Link("ab:c", "there")]))

    assert found.media_type == JSON
    assert msgspec.json.decode(found.body) == {
        "content": [
            {"type": "text", "text": "See:"},
            {"type": "resource_link", "uri": "ab:c", "name": "there"},
        ]
    }


def test_data_that_looks_like_content_is_read_as_data() -> None:
    data = {"content": [{"type": "text", "text": "hi"}]}

    assert rest.read(rest.write(success(data=data), BARE, STANDARD)).data == data


def test_an_error_is_its_message_with_its_code_in_a_header() -> None:
    found = written(failure("no", code="RATE_LIMITED", details={"a": 1}, hint="wait"))

    headers = (("X-Error-Code", "RATE_LIMITED"), ("X-Error-Hint", "wait"))
    assert found == HttpReply(429, b'{"error":"no"}', JSON, headers)


def test_an_error_code_of_the_author_keeps_its_status_when_it_is_read() -> None:
    error = Error.of(NotFound("no such city", code="CITY_UNKNOWN"))

    found = rest.read(written(Reply(error=error)))

    assert found.error == error
    assert found.error.row.status == 404


def test_an_error_code_cannot_add_a_header() -> None:
    found = written(failure("no", code="A\r\nSet-Cookie: a=b"))

    assert found.headers == (("X-Error-Code", "A--Set-Cookie--a-b"),)


@pytest.mark.parametrize(
    ("status", "body", "code", "message"),
    [
        (404, b'{"error":"gone"}', "NOT_FOUND", "gone"),
        (403, b'{"detail":"not you"}', "FORBIDDEN", "not you"),
        (500, b'{"error":{"message":"bad","id":7}}', "UNKNOWN_ERROR", "bad"),
        (422, b'{"detail":[{"loc":["x"]}]}', "UNKNOWN_ERROR", '[{"loc":["x"]}]'),
        (503, b"Service Unavailable", "UNAVAILABLE", "Service Unavailable"),
        (502, b"", "UNKNOWN_ERROR", "HTTP status 502"),
        (409, b'{"error":null}', "CONFLICT", "HTTP status 409"),
    ],
)
def test_errors_of_another_server_are_read(
    status: int, body: bytes, code: str, message: str
) -> None:
    found = rest.read(HttpReply(status, body, JSON))

    assert found.error == Error(code, message)


@pytest.mark.parametrize(
    ("media_type", "body", "reply"),
    [
        ("image/png", b"png", Reply(content=(Image(b"png", "image/png"),))),
        ("audio/wav", b"wav", Reply(content=(Audio(b"wav", "audio/wav"),))),
        ("text/plain; charset=utf-8", b"hi", Reply(content=(Text("hi"),))),
        ("application/hal+json", b"[1]", Reply(data=[1])),
        ("", b"", Reply()),
    ],
)
def test_successes_of_another_server_are_read(
    media_type: str, body: bytes, reply: Reply[Any]
) -> None:
    found = rest.read(HttpReply(200, body, media_type))

    assert found == msgspec.structs.replace(reply, timestamp=found.timestamp)


@pytest.mark.parametrize(
    "found",
    [
        HttpReply(200, b"{", JSON),
        HttpReply(200, b"PK", "application/zip"),
        HttpReply(200, b"{}", JSON, (("x-answerback-form", "content"),)),
        HttpReply(200, b'{"content":[5]}', JSON, (("X-Answerback-Form", "content"),)),
    ],
)
def test_a_malformed_body_is_refused(found: HttpReply) -> None:
    with pytest.raises(MalformedReply):
        rest.read(found)


@pytest.mark.parametrize(
    ("hint", "header"),
    [
        ("ask for Oslo", "ask for Oslo"),
        ("  spaces  ", "spaces"),
        ("two\r\nX-Evil: 1", "two%0D%0AX-Evil: 1"),
        ("100 % sure", "100 %25 sure"),
        ("Tromsø", "Troms%C3%B8"),
        ("a" * 600, "a" * 500),
        ("ø" * 600, "%C3%B8" * 83),
        ("\ud800", "%3F"),
    ],
)
def test_a_hint_is_a_header_that_is_short_and_safe(hint: str, header: str) -> None:
    found = written(failure("no", hint=hint))

    assert found.header("X-Error-Hint") == header
    assert found.header("X-Error-Code") == "UNKNOWN_ERROR"


@pytest.mark.parametrize("hint", [None, "", "   "])
def test_without_a_hint_there_is_no_header_for_it(hint: str | None) -> None:
    assert written(failure("no", hint=hint)).header("X-Error-Hint") is None


def test_a_hint_is_read_from_its_header() -> None:
    found = rest.read(written(failure("no", hint="Tromsø, 100 %"))).error

    assert found is not None
    assert found.hint == "Tromsø, 100 %"
