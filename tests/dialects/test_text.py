from __future__ import annotations

import json
from typing import Any

import pytest

from answerback.content import Block, Image, Text
from answerback.contract import ALIGNED, APPS, DIRECT, ENVELOPE, PRESETS, STANDARD, Contract
from answerback.dialects.contract_text import DONE, content_with_text
from answerback.reply import Reply, failure, success
from answerback.shape import BARE, EMPTY, RESULT, Shape

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
def test_a_returned_string_is_its_own_text_but_where_the_contract_says_json(
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
def test_beside_a_text_of_the_authors_own(contract: Contract, expected: list[str]) -> None:
    assert texts(success("Two found", {"count": 2}), BARE, contract) == expected


@pytest.mark.parametrize("contract", [ENVELOPE, APPS])
def test_without_a_text_of_the_authors_own_data_is_made_readable(contract: Contract) -> None:
    assert texts(success(data={"itemCount": 2}), BARE, contract) == ["Item count: 2"]


@pytest.mark.parametrize("contract", PRESETS.values())
def test_a_picture_beside_data_still_gets_the_text_and_the_text_comes_first(
    contract: Contract,
) -> None:
    first, *others = content_with_text(success(data={"a": 1}, content=[PICTURE]), BARE, contract)

    assert isinstance(first, Text)
    assert others == [PICTURE]


@pytest.mark.parametrize("contract", PRESETS.values())
@pytest.mark.parametrize("content", [(PICTURE,), (Text("hi"),), (Text(""), PICTURE)])
def test_content_without_data_is_left_as_it_is(
    content: tuple[Block, ...], contract: Contract
) -> None:
    assert content_with_text(Reply(content=content), RESULT, contract) == content


@pytest.mark.parametrize("contract", PRESETS.values())
def test_nothing_at_all_is_said_in_words(contract: Contract) -> None:
    assert texts(Reply(), RESULT, contract) == [DONE]


@pytest.mark.parametrize("contract", [ENVELOPE, APPS])
def test_none_is_said_in_words_where_text_is_for_people(contract: Contract) -> None:
    assert texts(success(data=None), EMPTY, contract) == [DONE]


def test_a_text_that_says_the_json_already_is_not_repeated() -> None:
    text = json.dumps({"a": 1}, separators=(",", ":"))

    assert texts(success(text, {"a": 1}), BARE, STANDARD) == [text]


def test_the_error_comes_before_what_the_author_says_beside_it() -> None:
    reply = failure("no such city")
    reply = Reply(error=reply.error, content=(Text("Try Oslo."), PICTURE))

    assert texts(reply, BARE, STANDARD) == ["no such city", "Try Oslo."]
