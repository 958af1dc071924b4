"""Recorded replies are found in every layout, and the file is kept as it is."""

from __future__ import annotations

import io
import json
import time
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from answerback.rules.lint import json_pieces as reading
from answerback.rules.lint.conversation import Conversation
from answerback.rules.lint.json_locate import excerpt, locate
from answerback.rules.lint.json_pieces import pieces
from answerback.rules.lint.lines import BROKEN, NOTHING

REPLY = {"content": [{"type": "text", "text": 'a "quoted" {brace} [bracket] \\ and ü'}]}
JSON = st.recursive(
    st.none() | st.booleans() | st.integers(-9, 9) | st.text(max_size=8),
    lambda inner: (
        st.lists(inner, max_size=3) | st.dictionaries(st.text(max_size=5), inner, max_size=3)
    ),
    max_leaves=8,
)
OBJECTS = st.lists(st.dictionaries(st.text(max_size=5), JSON, min_size=1, max_size=3), max_size=4)


def values(source: bytes) -> list[Any]:
    return [piece.value for piece in pieces(io.BytesIO(source)) if piece.value is not NOTHING]


def whole(source: bytes) -> bytes:
    return b"".join(piece.raw for piece in pieces(io.BytesIO(source)))


@given(OBJECTS, st.sampled_from([None, 1, 2, "\t"]), st.sampled_from(["\n", "", " ", "\n\n"]))
def test_objects_one_after_another_are_read_in_any_layout(
    objects: list[Any], indent: Any, between: str
) -> None:
    source = between.join(json.dumps(each, indent=indent) for each in objects).encode()

    assert values(source) == objects
    assert whole(source) == source


@given(OBJECTS, st.sampled_from([1, 2, "\t"]))
def test_a_long_array_is_read_item_by_item(objects: list[Any], indent: Any) -> None:
    source = json.dumps(objects, indent=indent).encode() + b"\n"
    found = [piece for piece in pieces(io.BytesIO(source)) if piece.value is not NOTHING]

    if objects:
        assert [piece.value for piece in found] == objects
        assert [piece.place for piece in found] == [f"/{index}" for index in range(len(objects))]
        for piece in found:
            assert json.loads(piece.body) == piece.value
    assert whole(source) == source


@given(OBJECTS)
def test_a_line_longer_than_what_is_read_at_once_is_no_matter(objects: list[Any]) -> None:
    source = json.dumps([REPLY, *objects]).encode()
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(reading, "LONGEST", 7)

        assert values(source) == [REPLY, *objects]
        assert whole(source) == source


def test_a_piece_knows_the_line_its_value_begins_in() -> None:
    source = b'{"a":1}\n\n{\n "b": 2\n}\nnoise\n[\n {"c":\n 3},\n\n {"d":4}\n]\n{"e":5}\n'

    found = [
        (piece.value, piece.line)
        for piece in pieces(io.BytesIO(source))
        if piece.value is not NOTHING
    ]

    assert found == [({"a": 1}, 1), ({"b": 2}, 3), ({"c": 3}, 8), ({"d": 4}, 11), ({"e": 5}, 13)]


def test_json_is_found_in_the_lines_of_a_log() -> None:
    source = b'12:00 [info] <- {"id":1} { metadata: undefined }\nnothing {here}\ndata: {"id":2}\n'

    assert values(source) == [{"id": 1}, {"id": 2}]
    assert whole(source) == source


@pytest.mark.parametrize(
    "line", [b'{"a":' * 50_000, b"{x" * 50_000 + b"}" * 50_000, b'{"' * 50_000, b"{" * 200_000]
)
@pytest.mark.parametrize("before", [b"", b"x "])
def test_a_line_of_braces_takes_no_longer_than_its_length_suggests(
    line: bytes, before: bytes
) -> None:
    started = time.process_time()

    found = values(before + line + b' {"content": []}\n')

    assert BROKEN in found or {"content": []} in found
    assert time.process_time() - started < 2


WORDS = st.text(alphabet="ab: -<>[]}{'", max_size=6)


@given(st.lists(st.tuples(WORDS, st.just(REPLY) | st.just({"success": True})), min_size=1))
def test_every_object_in_a_line_is_found_or_the_line_is_told(
    glued: list[tuple[str, dict[str, Any]]],
) -> None:
    source = "".join(words + json.dumps(reply) for words, reply in glued).encode() + b" end\n"

    found = values(source)

    assert whole(source) == source
    assert BROKEN in found or [each for _, each in glued] == found


@pytest.mark.parametrize("source", [b'{"a":', b'{"a":1,}\n', b'[{"a":1},\n{"b":'])
def test_what_sets_out_to_be_json_and_is_not_is_told(source: bytes) -> None:
    assert values(source)[-1] is BROKEN
    assert whole(source) == source


def test_the_value_of_a_piece_can_be_replaced_and_nothing_else_changes() -> None:
    source = b'12:00 <- {"id":1} { metadata: undefined }\n'
    (piece,) = pieces(io.BytesIO(source))

    assert piece.replaced(b"{}") == b"12:00 <- {} { metadata: undefined }\n"


@given(st.dictionaries(st.text(max_size=5), JSON, max_size=4), st.sampled_from([None, 2]))
def test_every_member_is_located_where_it_stands(value: dict[str, Any], indent: int | None) -> None:
    body = json.dumps(value, indent=indent).encode()

    for name, member in value.items():
        pointer = "/" + name.replace("~", "~0").replace("/", "~1")
        start, end = locate(body, pointer)
        assert json.loads(body[start:end]) == member
        if isinstance(member, list):
            for index, item in enumerate(member):
                start, end = locate(body, f"{pointer}/{index}")
                assert json.loads(body[start:end]) == item


def test_of_what_is_not_there_the_nearest_thing_is_located() -> None:
    body = b' {"a": {"b": 1}} '

    assert body[slice(*locate(body, "/a/c"))] == b'{"b": 1}'
    assert body[slice(*locate(body, "/x"))] == body.strip()


def test_an_excerpt_is_one_line_with_the_value_in_it() -> None:
    body = b'{\n  "text": "' + b"x" * 500 + b'"\n}'

    before, text, column, length = excerpt(body, locate(body, "/text"), 40)

    assert before == 1
    assert len(text) <= 40
    assert text[column] == '"'
    assert column + length <= 40


def replies(*recorded: Any) -> list[tuple[Any, str]]:
    conversation = Conversation()
    return [
        (each.reply, each.pointer) for value in recorded for each in conversation.answers(value)
    ]


def call(number: int, tool: str = "add") -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "method": "tools/call", "params": {"name": tool}}


def result(number: int, value: Any) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": number, "result": value}


def test_only_the_answers_to_tool_calls_are_replies() -> None:
    ping = {"jsonrpc": "2.0", "id": 1, "method": "ping"}
    note = {"jsonrpc": "2.0", "method": "notifications/progress", "params": {"progress": 1}}

    assert replies(ping, result(1, {}), note, call(2), result(2, REPLY)) == [(REPLY, "/result")]


def test_an_answer_whose_question_was_not_recorded_is_told_by_its_members() -> None:
    contents = {"contents": [{"uri": "file:///a", "text": "a"}]}

    assert replies(result(1, REPLY), result(2, contents), result(3, {})) == [(REPLY, "/result")]


@pytest.mark.parametrize(
    ("recorded", "pointer"),
    [
        ({"direction": "in", "message": result(1, REPLY)}, "/message/result"),
        ({"ts": 1, "payload": json.dumps(result(1, REPLY))}, "/payload/result"),
        ({"request": call(1), "response": result(1, REPLY)}, "/response/result"),
        ({"request": json.dumps(call(1)), "response": json.dumps(REPLY)}, "/response"),
        (
            {
                "request": {"url": "/mcp", "body": json.dumps(call(1))},
                "response": {"status": 200, "body": json.dumps(result(1, REPLY))},
            },
            "/response/result",
        ),
        (
            {"direction": "request", "message": call(1), "response": result(1, REPLY)},
            "/response/result",
        ),
        ([REPLY], "/0"),
        ([call(1), result(1, REPLY)], "/1/result"),
        (REPLY, ""),
    ],
)
def test_replies_are_found_in_what_proxies_and_the_inspector_record(
    recorded: Any, pointer: str
) -> None:
    assert replies(recorded) == [(REPLY, pointer)]


def test_lines_of_a_log_that_hold_no_message_are_no_replies() -> None:
    assert replies({"level": "info", "msg": "listening on 8000"}) == []


def test_version_and_schemas_are_learned_from_the_conversation() -> None:
    schema = {"type": "object"}
    tools = {"tools": [{"name": "add", "inputSchema": schema, "outputSchema": schema}]}
    conversation = Conversation()
    opening = {"jsonrpc": "2.0", "id": 0, "method": "initialize"}
    listing = {"jsonrpc": "2.0", "id": 1, "method": "tools/list"}
    said = [opening, result(0, {"protocolVersion": "2025-06-18"}), listing, result(1, tools)]

    found = [
        each for value in [*said, call(2), result(2, REPLY)] for each in conversation.answers(value)
    ]

    assert found[-1].given.schema == schema
    assert found[-1].given.version is not None
    assert found[-1].given.version.name == "2025-06-18"


def test_questions_that_are_never_answered_are_forgotten_in_the_end() -> None:
    conversation = Conversation()

    for number in range(20_000):
        list(conversation.answers(call(number)))

    assert len(conversation._waiting) <= 10_000
