"""The findings in a `Reply` are those of its MCP form, with pointers into the reply itself."""

from __future__ import annotations

import json
from typing import Any

import msgspec
import pytest
from hypothesis import example, given
from hypothesis import strategies as st
from tests.dialects.test_laws import DIALECTS, Case, bounded, cases, contents, metas
from tests.rules.test_bad_replies import BAD
from tests.rules.test_good_replies import GOOD

from answerback import Image, Reply, failure, success, validate
from answerback.contract import Dialect
from answerback.core.reply import Cut, Error
from answerback.records.recorder import reply_json
from answerback.rules.catalogue import RULES
from answerback.rules.reply_view import walk_values
from answerback.rules.validation import findings_in

DSN = "postgres://admin:Zk3vQ9pLw2@db.internal/main"
EXAMPLES = [example.build_reply() for rule in RULES.values() for example in (rule.bad, rule.good)]
CORPUS = [*(case.reply for case in BAD), *(case.reply for case in GOOD)]
# Every string and object of the examples and of the corpora, whether a rule must find it or not.
PARTS = [
    value
    for reply in (*EXAMPLES, *CORPUS)
    for _, value in walk_values(reply, "")
    if isinstance(value, str | dict) and len(msgspec.json.encode(value, enc_hook=repr)) < 120_000
]
TEXTS = sorted({value for value in PARTS if isinstance(value, str)})
OBJECTS = [msgspec.json.decode(msgspec.json.encode(each, enc_hook=repr)) for each in PARTS]

texts = st.sampled_from(TEXTS)
parts = st.one_of(texts, st.tuples(texts, texts).map(" ".join), st.sampled_from(OBJECTS))
values = st.one_of(
    parts,
    st.lists(parts, max_size=2),
    st.dictionaries(texts | st.sampled_from(["error", "status", "content"]), parts, max_size=2),
    st.sampled_from(OBJECTS).map(lambda each: msgspec.json.encode(each).decode()),
)
errors = st.builds(
    Error,
    code=st.sampled_from(["NOT_FOUND", "UNKNOWN_ERROR"]),
    message=texts,
    details=st.none() | values,
    hint=st.none() | texts,
)
replies = st.one_of(
    values.map(lambda data: Reply(data=data, encoded=msgspec.json.encode(data))),
    values.map(lambda data: Reply(data=data)),
    texts.map(success),
    errors.map(lambda error: Reply(error=error)),
    st.builds(lambda *parts: success(*parts), texts, values),
    st.builds(lambda error, content: Reply(error=error, content=content), errors, contents),
    st.builds(lambda data, content: Reply(data=data, content=content), values, contents),
    st.builds(lambda data, meta: Reply(data=data, meta=meta), values, metas),
    cases().map(lambda case: case.reply),
)


def rules_in(findings: Any) -> set[str]:
    return {each.rule for each in findings}


@bounded
@given(replies)
@example(Reply(data=["Ada"], encoded=b'["Ada"]', cuts=(Cut("", 1, 7253, "items"),)))
def test_the_findings_are_those_of_the_reply_written_as_mcp(reply: Reply[Any]) -> None:
    """The quick check, which does not write the reply, agrees with the full one."""
    assert rules_in(findings_in(reply)) == rules_in(validate(reply, "mcp"))


def test_the_quick_check_overlooks_nothing_that_a_rule_finds() -> None:
    with_data = [
        Reply(data=data, encoded=msgspec.json.encode(data))
        for part in OBJECTS
        for data in (part, [part], {"found": part}, {"error": part}, json.dumps(part))
    ]
    with_text = [
        reply
        for text in TEXTS
        for reply in (success(text), failure(text), failure("no such city", details=[text]))
    ]

    overlooked = [
        (reply, missed)
        for reply in (*with_data, *with_text)
        if (missed := rules_in(validate(reply, "mcp")) ^ rules_in(findings_in(reply)))
    ]

    assert overlooked == []


@pytest.mark.parametrize("char", ["a", '"', "\x01", "\\", "é", "😀"])
@pytest.mark.parametrize("length", [5_000, 16_000, 20_000, 30_000, 60_000, 110_000])
def test_a_reply_that_is_too_large_when_encoded_is_found(char: str, length: int) -> None:
    text = char * length
    encoded = msgspec.json.encode(text)
    replies = [success(text), failure(text), Reply(data=text, encoded=encoded)]
    replies += [Reply(data=[text], encoded=b"[%b]" % encoded)]
    replies += [Reply(data={"a": text}, encoded=b'{"a":%b}' % encoded)]

    for reply in replies:
        assert rules_in(findings_in(reply)) == rules_in(validate(reply, "mcp"))


@bounded
@given(replies)
@example(Reply(data=["Ada"], cuts=(Cut("", 1, 7253, "items"),)))
def test_each_finding_is_reported_once_with_a_pointer_into_the_recorded_reply(
    reply: Reply[Any],
) -> None:
    recorded = dict(walk_values(msgspec.json.decode(reply_json(reply)), ""))

    found = [(each.rule, each.pointer) for each in findings_in(reply)]

    assert len(set(found)) == len(found)
    assert [pointer for _, pointer in found if pointer not in recorded] == []


@pytest.mark.slow
@bounded
@given(cases())
def test_a_written_reply_breaks_no_rule_about_shape(case: Case) -> None:
    """So the check of a `Reply` may skip the rules about shape."""
    for dialect in DIALECTS:
        written = case.write(dialect)
        if not written.media_type.endswith("json"):
            continue
        version = case.version if dialect == "mcp" else None
        read_as: Dialect = "rest" if dialect == "problem" and case.reply.ok else dialect

        found = rules_in(validate(written.body, read_as, version=version))

        # These depend on the data: it is {"error": …}, or no object although the shape is bare.
        about_data = {"AB119", "AB110"}
        assert {rule for rule in found if rule.startswith("AB1")} <= about_data


@pytest.mark.parametrize(
    ("reply", "rule", "pointer"),
    [
        (success(data=DSN), "AB502", "/data"),
        (success(data={"env": {"DB": DSN}}), "AB502", "/data/env/DB"),
        (success(data=["", DSN]), "AB502", "/data/1"),
        (success(DSN), "AB502", "/content/0/text"),
        (success("fine", {"db": DSN}), "AB502", "/data/db"),
        (success(content=[Image(b"", "image/png")], data={"a": 1}), "AB407", "/content/0/data"),
        (failure(f"cannot reach {DSN}"), "AB502", "/error/message"),
        (failure("cannot reach it", details={"db": DSN}), "AB502", "/error/details/db"),
        (failure("Error occurred"), "AB204", "/error/message"),
        (success("fine", meta={"db": DSN}), "AB502", "/meta/db"),
        (success(data={"success": False, "error": "no such city"}), "AB202", "/data"),
    ],
)
def test_a_pointer_leads_into_the_reply(reply: Reply[Any], rule: str, pointer: str) -> None:
    assert [(each.rule, each.pointer) for each in findings_in(reply)] == [(rule, pointer)]


def test_a_hint_that_shows_internals_is_found_as_in_the_reply_that_is_sent() -> None:
    reply = failure(
        "The database is down", hint="PostgreSQL refused localhost:5432 with user 'admin'"
    )

    assert rules_in(findings_in(reply)) == rules_in(validate(reply, "mcp")) == {"AB506"}
