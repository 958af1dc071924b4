"""The dialect mcp: results in each version of the protocol, and reading other servers."""

from __future__ import annotations

import json
from collections.abc import Callable
from typing import Any

import msgspec
import pytest

from answerback.contract import ALIGNED, DIRECT, ENVELOPE, STANDARD, Contract
from answerback.core.content import Annotations, Audio, Embedded, Image, Link, Text
from answerback.core.reply import Reply, failure, success
from answerback.core.shape import BARE, RESULT, Shape
from answerback.core.versions import (
    LATEST_STATEFUL,
    V2024_11_05,
    V2025_03_26,
    V2025_06_18,
    V2026_07_28,
    VERSIONS,
    Version,
)
from answerback.dialects import MalformedReply, mcp

SERVER_INFO = "io.modelcontextprotocol/serverInfo"
OLD = [V2024_11_05, V2025_03_26]
USUAL = (RESULT, STANDARD, LATEST_STATEFUL)


def written(
    reply: Reply[Any],
    version: Version = LATEST_STATEFUL,
    shape: Shape = RESULT,
    contract: Contract = STANDARD,
) -> Any:
    return json.loads(mcp.write(reply, shape, contract, version))


def with_server_info(reply: Reply[Any], contract: Contract, info: bytes) -> bytes:
    pieces = mcp.write_in_pieces(reply, RESULT, contract, V2026_07_28, server_info=info)
    return b"".join(pieces)


@pytest.mark.parametrize("contract", [STANDARD, ALIGNED, DIRECT, ENVELOPE])
@pytest.mark.parametrize(
    "reply",
    [
        success(data=10),
        success(data="ten"),
        success("ten", data=10),
        success(data=10, meta={"a": 1}),
        success(content=[Image(b"png", "image/png")]),
        failure("no", code="CONFLICT"),
    ],
)
def test_server_info_is_added_to_the_meta_and_changes_nothing_else(
    reply: Reply[Any], contract: Contract
) -> None:
    info = b'{"name":"shop","version":"1.0.0"}'

    found = json.loads(with_server_info(reply, contract, info))

    expected = written(reply, V2026_07_28, contract=contract)
    meta = {SERVER_INFO: {"name": "shop", "version": "1.0.0"}}
    assert found == {**expected, "_meta": {**expected.get("_meta", {}), **meta}}


def test_server_info_is_written_once_where_the_author_has_a_key_of_that_name() -> None:
    reply = success(data=10, meta={SERVER_INFO: {"name": "mine"}})

    body = with_server_info(reply, STANDARD, b'{"name":"shop"}')

    assert body.count(SERVER_INFO.encode()) == 1
    assert json.loads(body)["_meta"][SERVER_INFO] == {"name": "shop"}


@pytest.mark.parametrize("info", [b"", b'{"name":"shop"}'])
def test_data_alone_is_written_without_entering_another_module_than_shape(
    info: bytes, modules_entered: Callable[[Callable[[], object]], set[str]]
) -> None:
    reply = Reply(data=10, encoded=b"10")

    entered = modules_entered(lambda: with_server_info(reply, STANDARD, info))

    assert entered == {"answerback.dialects.mcp", "answerback.core.shape"}


@pytest.mark.parametrize("version", OLD)
def test_old_versions_get_no_structured_content_but_the_same_text(version: Version) -> None:
    found = written(success(data=10), version)

    assert "structuredContent" not in found
    assert found["content"] == [{"type": "text", "text": '{"result":10}'}]
    assert found["isError"] is False


@pytest.mark.parametrize("version", OLD)
def test_a_link_becomes_text_in_versions_without_links(version: Version) -> None:
    link = Link("https://example.com", "home", title="Home page", description="Start here")

    found = written(success(content=[link]), version)

    text = "Home page: https://example.com\nStart here"
    assert found["content"] == [{"type": "text", "text": text}]


def test_audio_becomes_a_resource_in_the_version_without_audio() -> None:
    found = written(success(content=[Audio(b"wav", "audio/wav")]), V2024_11_05)

    resource = {"uri": "urn:answerback:audio", "mimeType": "audio/wav", "blob": "d2F2"}
    assert found["content"] == [{"type": "resource", "resource": resource}]


@pytest.mark.parametrize("version", OLD)
def test_old_versions_get_only_the_block_members_they_have(version: Version) -> None:
    notes = Annotations(priority=1, last_modified="2025-05-03T14:30:00Z")
    image = Image(b"png", "image/png", alt="a cat", annotations=notes, meta={"a": 1})

    found = written(success(content=[image]), version)

    block = {"type": "image", "data": "cG5n", "mimeType": "image/png"}
    assert found["content"] == [block | {"annotations": {"priority": 1}}]


@pytest.mark.parametrize("version", VERSIONS.values())
def test_only_the_stateless_version_has_a_result_type(version: Version) -> None:
    for reply in (success(data=1), success("hi", data=1), failure("no")):
        assert written(reply, version).get("resultType") == (
            "complete" if version is V2026_07_28 else None
        )


def test_the_code_details_and_hint_of_an_error_are_in_the_meta() -> None:
    reply = failure("wait", code="RATE_LIMITED", details={"limit": 5}, hint="in a minute")

    found = written(reply)

    assert found["_meta"]["answerback/error"] == {
        "code": "RATE_LIMITED",
        "details": {"limit": 5},
        "hint": "in a minute",
        "message": "wait",
        "retryable": True,
    }
    assert "structuredContent" not in found


def test_a_model_reads_the_hint_of_an_error_in_its_text() -> None:
    """Most clients show a model the text alone."""
    reply = failure("no product none", hint="try A1")

    (block,) = written(reply)["content"]
    error = mcp.read(mcp.write(reply, BARE, STANDARD)).error

    assert block["text"] == "no product none\nHint: try A1"
    assert error is not None
    assert (error.message, error.hint) == ("no product none", "try A1")


def test_an_error_that_is_not_retryable_is_marked_so() -> None:
    assert written(failure("no"))["_meta"]["answerback/error"]["retryable"] is False


def test_the_message_is_in_the_meta_only_if_the_text_differs_from_it() -> None:
    plain = written(failure("no"))
    prefixed = written(failure("no"), contract=DIRECT)

    assert "message" not in plain["_meta"]["answerback/error"]
    assert prefixed["_meta"]["answerback/error"]["message"] == "no"


def test_an_image_with_a_url_is_a_link_marked_as_an_image() -> None:
    image = Image(url="https://example.com/cat.png", alt="a cat", width=4)

    [block] = written(success(content=[image]))["content"]

    assert block == {
        "type": "resource_link",
        "uri": "https://example.com/cat.png",
        "name": "a cat",
        "_meta": {"answerback/image": {"alt": "a cat", "width": 4}},
    }


def test_the_bytes_of_an_image_are_sent_once() -> None:
    by_bytes = mcp.write(success(content=[Image(b"\0\1\2" * 9, "image/png")]), *USUAL)
    by_address = mcp.write(success(content=[Image(url="data:image/png;base64,AAEC")]), *USUAL)

    assert by_bytes.count(b"AAECAAEC" * 4) == 1
    assert by_address.count(b"AAEC") == 1


def test_keys_with_our_prefix_in_an_authors_meta_are_not_sent() -> None:
    reply = Reply(data=1, meta={"answerback/timestamp": "1999", "openai/outputTemplate": "ui://w"})

    found = written(reply)

    assert found["_meta"] == {"openai/outputTemplate": "ui://w"}


@pytest.mark.parametrize("version", VERSIONS.values(), ids=str)
@pytest.mark.parametrize("contract", [STANDARD, ALIGNED, DIRECT, ENVELOPE])
@pytest.mark.parametrize("reply", [Reply(data={"a": 1}), success("text"), success("text", 5)])
def test_a_plain_success_has_no_meta_of_ours(
    reply: Reply[Any], contract: Contract, version: Version
) -> None:
    assert "_meta" not in written(reply, version, contract=contract)


def test_the_meta_of_an_error_has_its_code_and_no_time() -> None:
    found = written(failure("no such city", code="NOT_FOUND"))

    assert found["_meta"] == {"answerback/error": {"code": "NOT_FOUND", "retryable": False}}


@pytest.mark.parametrize("reply", [Reply(data={"a": 1}), success("text")])
def test_the_server_info_is_the_only_meta_of_a_plain_success(reply: Reply[Any]) -> None:
    body = with_server_info(reply, STANDARD, b'{"name":"x"}')

    assert json.loads(body)["_meta"] == {SERVER_INFO: {"name": "x"}}


def test_the_time_in_the_meta_of_an_earlier_version_of_answerback_is_read() -> None:
    meta = {"answerback/timestamp": "2026-01-31T12:00:00Z"}

    found = mcp.read({"content": [], "_meta": meta})

    assert found.timestamp.isoformat() == "2026-01-31T12:00:00+00:00"
    assert found.meta == {}


@pytest.mark.parametrize("data", [[1, 2], "text", 5, None])
def test_data_that_is_not_an_object_is_sent_as_an_object(data: Any) -> None:
    body = mcp.write(success(data=data), BARE, STANDARD, LATEST_STATEFUL)

    assert json.loads(body)["structuredContent"] == {"result": data}
    assert mcp.read(body, BARE).data == data


def test_checked_json_is_inserted_without_encoding_the_data_again() -> None:
    reply = Reply(data=object(), encoded=b'{"price":1.10}')

    for contract in (STANDARD, ENVELOPE):
        body = mcp.write(reply, BARE, contract, V2025_06_18)
        assert b'"structuredContent":{"price":1.10}' in body


@pytest.mark.parametrize("result", [{"content": []}, '{"content":[]}', b'{"content":[]}'])
def test_a_result_of_another_server_without_is_error_is_a_success(result: Any) -> None:
    reply = mcp.read(result)

    assert reply.ok
    assert reply.content == ()
    assert reply.data is msgspec.UNSET


@pytest.mark.parametrize(
    ("contract", "text"),
    [
        (STANDARD, "city not found"),
        (DIRECT, "Error: city not found"),
        (ALIGNED, '{"error":"city not found"}'),
    ],
)
def test_an_error_of_another_server_is_read_by_the_contract(contract: Contract, text: str) -> None:
    result = {"content": [{"type": "text", "text": text}], "isError": True}

    reply = mcp.read(result, BARE, contract)

    assert reply.error is not None
    assert (reply.error.code, reply.error.message) == ("UNKNOWN_ERROR", "city not found")


def test_an_error_of_another_server_without_a_text_still_has_a_message() -> None:
    reply = mcp.read({"content": [], "isError": True})

    assert reply.error is not None
    assert reply.error.message == "Unknown error"


def test_structured_content_beside_an_error_is_read_as_its_details() -> None:
    reply = mcp.read({"content": [], "isError": True, "structuredContent": {"limit": 5}})

    assert reply.error is not None
    assert reply.error.details == {"limit": 5}
    assert reply.data is msgspec.UNSET


def test_structured_content_without_content_is_read() -> None:
    reply = mcp.read({"structuredContent": {"result": [1]}, "isError": None}, RESULT)

    assert reply.data == [1]
    assert reply.content == ()


def test_json_in_a_text_block_is_left_as_text() -> None:
    reply = mcp.read({"content": [{"type": "text", "text": '{"a":1}'}]})

    assert reply.data is msgspec.UNSET
    assert reply.content == (Text('{"a":1}'),)


@pytest.mark.parametrize(
    ("block", "text"),
    [
        ({"type": "thinking", "text": "hm"}, "hm"),
        ({"type": "chart", "rows": [1]}, '{"type":"chart","rows":[1]}'),
        ({"text": "no type"}, "no type"),
    ],
)
def test_a_block_of_an_unknown_type_is_read_as_text(block: Any, text: str) -> None:
    assert mcp.read({"content": [block]}).content == (Text(text),)


def test_null_members_and_malformed_annotations_of_another_server_are_ignored() -> None:
    link = {"type": "resource_link", "uri": "a:b", "title": None, "_meta": None}
    text = {"type": "text", "text": "t", "annotations": {"priority": 7}}
    blob = {"type": "resource", "resource": {"uri": "a:b", "blob": "", "mimeType": None}}

    reply = mcp.read({"content": [link, text, blob], "_meta": {"answerback/error": 5}})

    assert reply.content == (Link("a:b", "a:b"), Text("t"), Embedded("a:b", blob=b""))


@pytest.mark.parametrize(
    "result",
    [
        b"not json",
        b"[]",
        b"[" * 100_000,
        {},
        {"content": "text"},
        {"content": ["text"]},
        {"content": [], "isError": "yes"},
        {"content": [{"type": "text"}]},
        {"content": [{"type": "image", "data": "%%%", "mimeType": "image/png"}]},
        {"content": [{"type": "image", "data": "AAAA"}]},
        {"content": [{"type": "resource", "resource": {"uri": "a:b"}}]},
        {"content": [{"type": "resource"}]},
        {"content": [{"type": "resource_link"}]},
        {"content": [], "_meta": {"answerback/timestamp": "yesterday"}},
        {"content": [], "isError": True, "_meta": {"answerback/error": {"code": 5}}},
    ],
)
def test_a_malformed_result_is_refused(result: Any) -> None:
    with pytest.raises(MalformedReply):
        mcp.read(result)


@pytest.mark.parametrize("name", VERSIONS)
def test_a_reply_with_data_alone_is_valid_in_every_version(
    name: str, validate_result: Callable[[bytes, str], None]
) -> None:
    result = mcp.write(success(data=10), RESULT, STANDARD, VERSIONS[name])

    validate_result(result, name)
    assert json.loads(result)["content"] == [{"type": "text", "text": '{"result":10}'}]
