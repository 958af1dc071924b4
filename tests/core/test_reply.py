"""Reply, and the functions success and failure."""

from datetime import UTC, datetime, timedelta
from typing import Any

import msgspec
import pytest

from answerback import Image, Reply, Text, failure, success
from answerback.core.reply import Error

NOW = datetime(2026, 1, 1, tzinfo=UTC)


def test_success_takes_text_or_data_or_both() -> None:
    both = success("five", 5)

    assert (both.content, both.data, both.error, both.ok) == ((Text("five"),), 5, None, True)
    assert success("five").data is msgspec.UNSET
    assert success(data=5).content == ()
    assert success().ok


def test_success_puts_the_content_after_the_text() -> None:
    picture = Image(url="https://example.com/a.png")

    assert success("a", content=[picture]).content == (Text("a"), picture)


def test_none_is_data_and_differs_from_no_data() -> None:
    assert success(data=None).data is None
    assert success(data=None) != success()


def test_an_empty_text_is_a_text_block() -> None:
    assert success("").content == (Text(""),)


def test_failure_takes_all_members_of_an_error() -> None:
    reply = failure(
        "it broke", code="BROKEN", details={"n": 1}, retryable=True, hint="wait", meta={"a": 1}
    )

    assert not reply.ok
    assert reply.error == Error("BROKEN", "it broke", {"n": 1}, True, "wait")
    assert (reply.meta, reply.data) == ({"a": 1}, msgspec.UNSET)


def test_a_failure_without_a_code_is_an_unknown_error() -> None:
    error = failure("it broke").error

    assert error is not None
    assert (error.code, error.row.status) == ("UNKNOWN_ERROR", 500)


def test_the_timestamp_of_a_reply_is_the_present_time_in_utc() -> None:
    before = datetime.now(UTC)

    reply = success("a")

    assert reply.timestamp.tzinfo is UTC
    assert before <= reply.timestamp <= before + timedelta(seconds=30)


@pytest.mark.parametrize("name", ["content", "data", "error", "meta", "timestamp", "encoded"])
def test_a_reply_is_frozen(name: str) -> None:
    with pytest.raises(AttributeError):
        setattr(success("a"), name, None)


def test_two_replies_do_not_share_their_meta() -> None:
    one, other = success("a"), success("a")

    one.meta["seen"] = True

    assert other.meta == {}


@pytest.mark.parametrize(
    "change",
    [
        {"content": (Text("b"),)},
        {"data": 6},
        {"data": msgspec.UNSET},
        {"error": Error("A", "a")},
        {"meta": {"a": 1}},
        {"timestamp": NOW + timedelta(seconds=1)},
    ],
)
def test_replies_with_a_different_member_are_not_equal(change: dict[str, Any]) -> None:
    reply = Reply(content=(Text("a"),), data=5, timestamp=NOW)

    assert msgspec.structs.replace(reply, **change) != reply


def test_equality_and_hash_ignore_the_encoded_data() -> None:
    plain = Reply(data=5, timestamp=NOW)
    encoded = Reply(data=5, timestamp=NOW, encoded=b"5")

    assert plain == encoded
    assert hash(plain) == hash(encoded)
    assert plain != 5


def test_a_reply_with_unhashable_data_has_a_hash() -> None:
    assert {success(data=[1]), failure("a", meta={"a": []})}


@pytest.mark.parametrize("name", ["jsonrpc", "MCP", ""])
def test_a_dialect_that_does_not_exist_is_refused_with_those_that_do(name: Any) -> None:
    with pytest.raises(ValueError, match=r"should be one of mcp, rest, envelope, problem"):
        failure("no").to(name)
