"""`read` never raises on a bad reply: it is read as well as it can be, or it is a failed reply."""

from __future__ import annotations

import json
import time
from typing import Any

import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from tests.rules.test_bad_replies import BAD
from tests.rules.test_good_replies import GOOD

from answerback import Image, Text, read
from answerback.errors import MalformedReply

_NAMES = [
    *("content", "isError", "structuredContent", "_meta", "resultType", "success", "error", "data"),
    *("message", "code", "jsonrpc", "result", "id", "method", "type", "text", "mimeType", "uri"),
    *("resource", "annotations", "audience", "status", "title", "detail", "details", "errors"),
    *("timestamp", "task", "taskId", "inputRequests", "is_error", "structured_content", "meta"),
    *("kind", "hint", "retryable", "blob", "url", "loc", "fastmcp", "answerback/error"),
]
_TEXTS = [
    *("text", "image", "audio", "resource", "resource_link", "complete", "input_required", "task"),
    *("true", "{}", "[]", '{"error":"x"}', "2.0", "iVBORw0K", "image/png", "A_B: c ({})", "NaN"),
]
_LEAVES = (
    st.none()
    | st.booleans()
    | st.integers()
    | st.floats()
    | st.text(max_size=6)
    | st.sampled_from(_TEXTS)
)
_KEYS = st.sampled_from(_NAMES) | st.text(max_size=3)
VALUES = st.recursive(
    _LEAVES,
    lambda inner: st.lists(inner, max_size=4) | st.dictionaries(_KEYS, inner, max_size=5),
    max_leaves=20,
)


def wrapped(value: Any) -> list[Any]:
    """The value itself, and as the parts of results in which most of the reading happens."""
    return [
        value,
        {"content": value, "isError": True},
        {"jsonrpc": "2.0", "id": 1, "result": value},
        {"content": [{"type": "text", "text": json.dumps(value)}]},
        json.dumps(value).encode(),
    ]


@settings(max_examples=150, deadline=None)
@given(VALUES)
def test_no_value_makes_read_raise(value: Any) -> None:
    replies = [read(each) for each in wrapped(value)]

    assert all(reply.ok or reply.error is not None for reply in replies)
    assert all(isinstance(reply.for_model(400, untrusted=True), str) for reply in replies)


@settings(max_examples=300, deadline=None)
@given(st.binary(max_size=200) | st.text(max_size=200))
def test_no_bytes_and_no_text_make_read_raise(source: bytes | str) -> None:
    reply = read(source)

    assert reply.ok or reply.error is not None
    assert reply.raw is not None
    assert reply.for_model()


@settings(max_examples=100, deadline=None)
@given(VALUES)
def test_no_value_makes_typed_reading_raise(value: Any) -> None:
    for into in (int, list[str], dict[str, float]):
        reply = read({"content": [], "structuredContent": value}, into=into)

        assert reply.has_data or reply.error is not None


@pytest.mark.parametrize("case", BAD, ids=lambda case: case.name)
def test_every_bad_reply_of_the_corpus_is_understood(case: Any) -> None:
    reply = read(case.reply)

    assert reply.error is None or reply.error.code != "INVALID_RESPONSE_FORMAT"
    assert reply.for_model()
    assert reply.raw is not None


@pytest.mark.parametrize("case", GOOD, ids=lambda case: case.name)
def test_every_good_reply_of_the_corpus_is_read_without_findings(case: Any) -> None:
    reply = read(case.reply)

    assert reply.findings == ()
    assert read(case.reply, strict=True).ok is reply.ok


def test_most_bad_blocks_are_read_and_reported() -> None:
    blocks = [
        {"type": "image", "data": "data:image/gif;base64,R0lGODlh", "mimeType": "image/gif"},
        {"type": "image", "data": "R0lGODlh", "mime_type": "image/gif"},
        {"type": "image", "url": "https://example.com/a.png", "altText": "a"},
        {"type": "text", "text": 5},
        "plain",
        {"type": "audio", "data": "not base64!", "mimeType": "audio/wav"},
    ]

    reply = read({"content": blocks})

    assert reply.ok
    assert reply.content[:2] == (Image(b"GIF89a", "image/gif"),) * 2
    assert reply.content[2] == Image(url="https://example.com/a.png", alt="a")
    assert reply.content[3:5] == (Text("5"), Text("plain"))
    assert "a block that cannot be read" in reply.for_model()
    assert {finding.rule for finding in reply.findings} >= {"AB112", "AB403"}
    assert reply.raw["content"] == blocks


def test_strict_raises_for_a_reply_that_had_to_be_mended() -> None:
    with pytest.raises(MalformedReply, match="/content/0"):
        read({"content": [{"type": "text", "text": 5}]}, strict=True)


def test_strict_raises_for_a_reply_that_cannot_be_read_but_not_for_a_failure() -> None:
    with pytest.raises(ValueError, match="not JSON"):
        read('{"content": [', strict=True)

    assert not read({"error": "no"}, strict=True).ok


def test_a_reply_that_cannot_be_read_has_the_findings() -> None:
    reply = read(b'{"content": [')

    assert reply.error is not None
    assert reply.error.code == "INVALID_RESPONSE_FORMAT"
    assert [finding["rule"] for finding in reply.error.details["findings"]] == ["AB100"]
    assert reply.raw == b'{"content": ['


def test_deep_and_large_replies_are_refused() -> None:
    deep = read(b'{"content":' + b"[" * 100_000)
    large = read("x" * 2000, max_bytes=1000)

    assert deep.error is not None
    assert "nested deeper" in deep.error.message
    assert large.error is not None
    assert large.error.code == "TOO_LARGE"


def test_deep_json_in_a_text_stays_a_text() -> None:
    text = "[" * 5000 + "]" * 5000

    reply = read({"content": [{"type": "text", "text": text}]})

    assert reply.content == (Text(text),)
    assert not reply.has_data


def test_a_value_that_contains_itself_does_not_make_read_raise() -> None:
    block: dict[str, Any] = {"type": "table"}
    block["rows"] = block
    data: dict[str, Any] = {}
    data["data"] = data

    assert not read({"content": [block]}).ok
    assert read({"content": [], "structuredContent": data}).for_model()


@pytest.mark.parametrize("member", ["content", "structuredContent"])
def test_half_a_character_does_not_make_read_raise(member: str) -> None:
    half = "\ud800"
    result = {"content": [{"type": "text", "text": half}], "structuredContent": {"a": half}}

    reply = read({member: result[member]})

    assert reply.ok
    assert reply.for_model(400, untrusted=True)


def test_an_object_that_raises_when_it_is_read_is_a_failed_reply() -> None:
    class Broken:
        def model_dump(self, **_: Any) -> Any:
            raise RuntimeError("secret path")

    reply = read(Broken())

    assert reply.error is not None
    assert reply.error.message == "the reply cannot be read: RuntimeError"


@pytest.mark.parametrize(
    "value",
    [
        {"jsonrpc": "2.0", "id": 1, "method": "ping"},
        {"jsonrpc": "2.0", "method": "notifications/progress", "params": {}},
        [{"jsonrpc": "2.0", "id": n, "result": {}} for n in (1, 2)],
        {"content": None, "isError": False},
        {"content": 5},
    ],
)
def test_a_value_that_is_no_reply_is_a_failed_reply(value: Any) -> None:
    reply = read(value)

    assert reply.error is not None
    assert reply.error.code == "INVALID_RESPONSE_FORMAT"
    assert reply.findings


def test_a_block_of_an_unknown_type_is_shown_without_its_metadata() -> None:
    block = {
        "type": "video",
        "url": "https://example.com/a",
        "frames": [{"at": 1, "_meta": {"b": "secret"}}],
        "_meta": {"a": "secret"},
    }

    shown = read({"content": [block]}).for_model()

    assert shown == '{"type":"video","url":"https://example.com/a","frames":[{"at":1}]}'


def test_an_error_whose_text_is_for_the_user_alone_is_not_shown_to_the_model() -> None:
    block = {"type": "text", "text": "private", "annotations": {"audience": ["user"]}}

    reply = read({"content": [block], "isError": True})

    assert reply.error is not None
    assert reply.error.message == "private"
    assert reply.for_model() == "[the call failed; its message is for the user]"


def test_half_a_character_in_json_is_replaced_and_the_rest_is_read() -> None:
    # JavaScript writes such escapes where a text was cut inside an emoji.
    text = '{"content": [{"type": "text", "text": "ab\\ud83d"}], "structuredContent": {"n": 1}}'

    replies = [read(text), read(text.encode())]

    assert [(each.content, each.data) for each in replies] == [((Text("ab�"),), {"n": 1})] * 2


def test_data_that_json_cannot_express_does_not_make_for_model_raise() -> None:
    deep: Any = []
    for _ in range(100_000):
        deep = [deep]

    shown = [read({"content": [], "structuredContent": each}) for each in (deep, 10**5000)]

    text = "[data that cannot be written as JSON]"
    assert [each.for_model() for each in shown] == [text, text]


def test_an_empty_result_with_a_misspelt_flag_is_a_success_with_a_finding() -> None:
    reply = read({"content": [], "isError": "false"})

    assert (reply.ok, [each.rule for each in reply.findings]) == (True, ["AB115"])


@pytest.mark.parametrize("flag", [{}, [], 0, 0.0, ""])
@pytest.mark.parametrize("content", [[], [{"type": "text", "text": "fine"}]])
def test_an_empty_value_in_place_of_the_flag_is_a_success_with_a_finding(
    flag: Any, content: Any
) -> None:
    reply = read({"content": content, "isError": flag})

    assert (reply.ok, [each.rule for each in reply.findings]) == (True, ["AB115"])


@pytest.mark.parametrize(
    ("response", "is_ok"),
    [
        ({"id": 1, "result": {"content": [], "isError": True}, "error": None}, False),
        ({"id": 1, "result": {"content": [], "isError": False}, "error": None}, True),
        ({"id": 1, "result": None, "error": {"code": 1, "message": "no"}}, False),
        ({"jsonrpc": "2.0", "id": 1}, False),
    ],
)
def test_a_response_of_another_version_of_json_rpc_is_read_as_a_response(
    response: dict[str, Any], is_ok: bool
) -> None:
    reply = read(response)

    assert (reply.ok, reply.has_data) == (is_ok, False)


@pytest.mark.parametrize("other", [{"priority": 7}, {"lastModified": "yesterday"}])
def test_a_text_for_the_user_stays_hidden_if_its_other_annotations_are_malformed(
    other: dict[str, Any],
) -> None:
    annotations = {"audience": ["user"], **other}
    block = {"type": "text", "text": "private", "annotations": annotations}

    shown = read({"content": [block, {"type": "text", "text": "public"}]}).for_model()

    assert shown == "public"


def test_a_long_message_of_an_error_is_read_at_once() -> None:
    error = {"code": -32602, "message": "tool " * 1_000_000}
    started = time.process_time()

    reply = read({"jsonrpc": "2.0", "id": 1, "error": error})

    assert not reply.ok
    assert time.process_time() - started < 5
