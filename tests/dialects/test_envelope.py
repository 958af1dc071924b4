"""The dialect envelope: its blocks, its errors, and reading other servers."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest

from answerback.contract import ENVELOPE, STANDARD
from answerback.core.content import Annotations, Audio, Embedded, Image, Link, Text
from answerback.core.reply import Error, Reply, failure, success
from answerback.core.shape import BARE, RESULT
from answerback.dialects import MalformedReply, envelope


@pytest.mark.parametrize(
    ("image", "url", "alt"),
    [
        (Image(b"png", "image/png", alt="a cat"), "data:image/png;base64,cG5n", "a cat"),
        (Image(b"png", "image/png", caption="Tom"), "data:image/png;base64,cG5n", "Tom"),
        (Image(url="https://example.com/cat.png"), "https://example.com/cat.png", "Image"),
    ],
)
def test_an_image_has_a_url_and_an_alt_text(image: Image, url: str, alt: str) -> None:
    block = envelope.write_block(image)

    assert (block["type"], block["url"], block["altText"]) == ("image", url, alt)
    assert envelope.read_block(json.loads(msgspec.json.encode(block))) == image


def test_audio_is_a_block_of_type_audio() -> None:
    block = envelope.write_block(Audio(b"wav", "audio/wav"))

    assert block == {"type": "audio", "url": "data:audio/wav;base64,d2F2"}


def test_an_embedded_resource_keeps_its_contents_in_its_metadata() -> None:
    block = envelope.write_block(Embedded("file:///src/main.rs", "fn main", mime="text/x-rust"))

    assert block == {
        "type": "resource",
        "resourceType": "embedded",
        "identifier": "file:///src/main.rs",
        "name": "main.rs",
        "metadata": {"text": "fn main", "mimeType": "text/x-rust"},
        "embedded": True,
    }


def test_annotations_and_meta_are_additional_members_if_there_are_any() -> None:
    text = Text("hi", {"a": 1}, Annotations(priority=0.5))
    reply: Reply[Any] = success(content=[text, Text("ho")], meta={"b": 2})

    found = json.loads(envelope.write(reply, BARE, ENVELOPE))

    assert found["content"] == [
        {"type": "text", "text": "hi", "annotations": {"priority": 0.5}, "_meta": {"a": 1}},
        {"type": "text", "text": "ho"},
    ]
    assert found["meta"] == {"b": 2}


@pytest.mark.parametrize(
    ("error", "more"),
    [
        (failure("no", retryable=True, hint="wait"), {"retryable": True, "hint": "wait"}),
        (failure("no", code="TIMED_OUT"), {"retryable": True}),
        (failure("no", code="TIMED_OUT", retryable=False), {"retryable": False}),
        (failure("no", code="CONFLICT", retryable=False), {}),
    ],
)
def test_retryable_is_written_where_it_is_true_or_differs_from_the_table(
    error: Any, more: Any
) -> None:
    found = json.loads(envelope.write(error, BARE, ENVELOPE))["error"]

    assert found == {"code": error.error.code, "message": "no", **more}


def test_the_error_text_follows_the_contract() -> None:
    found = json.loads(envelope.write(failure("no"), BARE, STANDARD))

    assert found["content"] == [{"type": "text", "text": "no"}]


@pytest.mark.parametrize(
    ("found", "message"),
    [
        ({"success": False, "error": "oops", "content": []}, "oops"),
        ({"success": False, "message": "Instance not found"}, "Instance not found"),
        ({"success": False, "content": [{"type": "text", "text": "Error: bad"}]}, "bad"),
        ({"success": False}, "Unknown error"),
        ({"error": {"message": "no flag"}}, "no flag"),
    ],
)
def test_errors_of_another_server_are_read(found: Any, message: str) -> None:
    reply = envelope.read(found, BARE, ENVELOPE)

    assert reply.error == Error("UNKNOWN_ERROR", message, retryable=False)


def test_successes_of_another_server_are_read() -> None:
    chart = {"type": "chart", "rows": [1]}
    link = {"type": "resource", "resourceType": "file", "identifier": "/a", "name": "a"}

    reply = envelope.read({"content": [chart, {"text": "hi"}, link], "data": 5}, RESULT)

    assert reply.ok
    assert reply.data == 5
    assert reply.content == (
        Text('{"type":"chart","rows":[1]}'),
        Text("hi"),
        Link("/a", "a", kind="file"),
    )


@pytest.mark.parametrize(
    "found",
    [
        b"{",
        b"5",
        {"success": "yes"},
        {"content": "text"},
        {"content": ["text"]},
        {"content": [{"type": "text"}]},
        {"content": [{"type": "image", "altText": "no url"}]},
        {"content": [{"type": "audio", "url": "data:audio/wav;base64,%%%"}]},
        {"content": [{"type": "resource", "name": "no identifier"}]},
        {"timestamp": "yesterday"},
        {"success": False, "error": {"code": 5}},
    ],
)
def test_a_malformed_envelope_is_refused(found: Any) -> None:
    with pytest.raises(MalformedReply):
        envelope.read(found)
