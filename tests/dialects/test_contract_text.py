"""The text that each contract adds to a reply."""

from __future__ import annotations

import json
from typing import Any

import pytest

from answerback.contract import ALIGNED, APPS, DIRECT, ENVELOPE, PRESETS, STANDARD, Contract
from answerback.core.content import Block, Image, Text
from answerback.core.reply import Reply, failure, success
from answerback.core.shape import BARE, EMPTY, RESULT, Shape
from answerback.dialects import mcp
from answerback.dialects.reply_text import DONE, content_with_text

PICTURE = Image(b"png", "image/png")


def texts(reply: Reply[Any], shape: Shape, contract: Contract) -> list[str]:
    return [
        block.text for block in content_with_text(reply, shape, contract) if isinstance(block, Text)
    ]


@pytest.mark.parametrize(
    ("contract", "expected"),
    [
        (STANDARD, "hi"),
        (ALIGNED, '{"result":"hi"}'),
        (ENVELOPE, "hi"),
        (APPS, "hi"),
        (DIRECT, '{\n  "result": "hi"\n}'),
    ],
)
def test_a_returned_string_is_its_own_text_unless_the_contract_wants_json(
    contract: Contract, expected: str
) -> None:
    assert texts(success(data="hi"), RESULT, contract) == [expected]


@pytest.mark.parametrize(
    ("contract", "expected"),
    [
        (STANDARD, ["Two found", '{"count":2}']),
        (ALIGNED, ['{"count":2}', "Two found"]),
        (ENVELOPE, ["Two found"]),
        (APPS, ["Two found"]),
        (DIRECT, ["Two found", '{\n  "count": 2\n}']),
    ],
)
def test_the_json_beside_a_text_of_the_author_follows_the_contract(
    contract: Contract, expected: list[str]
) -> None:
    assert texts(success("Two found", {"count": 2}), BARE, contract) == expected


@pytest.mark.parametrize("contract", [ENVELOPE, APPS])
def test_data_without_a_text_of_the_author_is_rendered_for_people(contract: Contract) -> None:
    assert texts(success(data={"itemCount": 2}), BARE, contract) == ["Item count: 2"]


@pytest.mark.parametrize("contract", PRESETS.values())
def test_the_text_for_data_comes_before_an_image(
    contract: Contract,
) -> None:
    first, *others = content_with_text(success(data={"a": 1}, content=[PICTURE]), BARE, contract)

    assert isinstance(first, Text)
    assert others == [PICTURE]


@pytest.mark.parametrize("contract", PRESETS.values())
@pytest.mark.parametrize("content", [(PICTURE,), (Text("hi"),), (Text(""), PICTURE)])
def test_content_without_data_is_not_changed(
    content: tuple[Block, ...], contract: Contract
) -> None:
    assert content_with_text(Reply(content=content), RESULT, contract) == content


@pytest.mark.parametrize("contract", PRESETS.values())
def test_a_reply_without_content_and_data_gets_a_text(contract: Contract) -> None:
    assert texts(Reply(), RESULT, contract) == [DONE]


@pytest.mark.parametrize("contract", [ENVELOPE, APPS])
def test_none_gets_a_text_where_text_is_for_people(contract: Contract) -> None:
    assert texts(success(data=None), EMPTY, contract) == [DONE]


def test_a_text_equal_to_the_json_is_not_repeated() -> None:
    text = json.dumps({"a": 1}, separators=(",", ":"))

    assert texts(success(text, {"a": 1}), BARE, STANDARD) == [text]


def test_the_error_text_comes_before_content_of_the_author() -> None:
    reply = failure("no such city")
    reply = Reply(error=reply.error, content=(Text("Try Oslo."), PICTURE))

    assert texts(reply, BARE, STANDARD) == ["no such city", "Try Oslo."]


@pytest.mark.parametrize(
    ("contract", "expected"),
    [
        (STANDARD, "no city\nHint: ask for Oslo"),
        (STANDARD.derive(error_text="prefixed"), "Error: no city\nHint: ask for Oslo"),
        (STANDARD.derive(error_text="coded"), "CITY_UNKNOWN: no city"),
        (ALIGNED, '{"error":"no city"}'),
        (ENVELOPE, "Error: no city"),
        (APPS, "no city"),
        (DIRECT, "Error: no city"),
    ],
)
def test_the_hint_follows_the_message_where_the_contract_allows_it(
    contract: Contract, expected: str
) -> None:
    reply = failure("no city", code="CITY_UNKNOWN", hint="ask for Oslo")

    assert texts(reply, BARE, contract) == [expected]


def test_the_message_is_read_from_a_text_with_a_hint() -> None:
    reply = failure("no city", code="CITY_UNKNOWN", hint="ask for Oslo")

    found = mcp.read(reply.to("mcp")).error

    assert found is not None
    assert (found.message, found.hint) == ("no city", "ask for Oslo")


@pytest.mark.parametrize("data", [None, {}])
def test_no_data_says_the_same_as_an_empty_object(data: Any) -> None:
    assert texts(success(data=data), BARE, ENVELOPE) == [DONE]


def test_the_readable_text_of_a_string_that_looks_like_an_object_is_not_doubled() -> None:
    written = mcp.write(success(data=['{"result":1}']), RESULT, ENVELOPE)

    again = mcp.write(mcp.read(written, RESULT, ENVELOPE), RESULT, ENVELOPE)

    assert again == written
