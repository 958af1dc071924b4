"""The laws of every dialect for writing and reading, tested with random replies."""

from __future__ import annotations

from collections.abc import Callable, Mapping
from datetime import UTC, datetime, timedelta, timezone
from typing import Any, Literal, get_args

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.dialects.carried import carried

from answerback.contract import PRESETS, STANDARD, Contract, Dialect
from answerback.core.content import Annotations, Audio, Block, Embedded, Image, Link, Text
from answerback.core.reply import Cut, Error, Reply
from answerback.core.shape import BARE, EMPTY, RESULT, SPREAD, Shape
from answerback.core.versions import LATEST_STATEFUL, VERSIONS, Version
from answerback.dialects import HttpReply, read, write
from answerback.dialects.returned_value import TOOL_FAILURE
from answerback.errors import CODES

DIALECTS: tuple[Dialect, ...] = get_args(Dialect)
CONTRACTS = (
    *PRESETS.values(),
    STANDARD.derive(error_text="coded"),
    STANDARD.derive(tool_failure=True),
    STANDARD.derive(text="indented", envelope_in_mcp=True, error_text="json"),
)
bounded = settings(
    derandomize=True,
    deadline=None,
    max_examples=200,
    suppress_health_check=[HealthCheck.too_slow, HealthCheck.data_too_large],
)


class Case(msgspec.Struct, frozen=True):
    reply: Reply[Any]
    shape: Shape
    contract: Contract
    version: Version

    def write(self, dialect: Dialect) -> HttpReply:
        return write(self.reply, dialect, self.shape, self.contract, self.version)

    def read(self, dialect: Dialect) -> Reply[Any]:
        return read(self.write(dialect), dialect, self.shape, self.contract)

    def carried(self, dialect: Dialect) -> Reply[Any]:
        return carried(self.reply, dialect, self.shape, self.contract, self.version)

    def carries_time(self, dialect: Dialect) -> bool:
        """Whether the dialect has a member for the time; mcp only with those of the envelope."""
        return dialect == "envelope" or (dialect == "mcp" and self.contract.envelope_in_mcp)


# These samples look like text that contracts and dialects add themselves.
texts = st.text(st.characters(exclude_categories=["Cs"]), max_size=8) | st.sampled_from(
    ["", "Error: no", "no", '{"result":1}', '{"error":"no"}', "1", "😀\u2028\x00", "a\r\nb: c"]
)
numbers = st.integers() | st.floats(allow_nan=False, allow_infinity=False)
scalars = st.none() | st.booleans() | numbers | texts
keys = texts | st.sampled_from(
    ["result", "result0", "error", "content", "data", "success", "message"]
)
values = st.recursive(
    scalars,
    lambda inner: st.lists(inner, max_size=3) | st.dictionaries(keys, inner, max_size=3),
    max_leaves=4,
)
objects = st.dictionaries(keys, values, max_size=3)
typed = st.datetimes() | st.uuids() | st.tuples(st.integers(), texts) | st.binary(max_size=4)
ours = st.sampled_from(
    [
        *("answerback/timestamp", "answerback/error", "answerback/image", "answerback/address"),
        *("answerback/added", "answerback/cut"),
    ]
)
metas = st.dictionaries(keys | ours, values, max_size=2)
notes = st.builds(
    Annotations,
    audience=st.none() | st.sampled_from([(), ("user",), ("user", "assistant"), ["assistant"]]),
    priority=st.none() | st.floats(0, 1),
    last_modified=st.none() | st.sampled_from(["2025-05-03T14:30:00Z", "2025-05-03"]),
)
maybe: dict[str, st.SearchStrategy[Any]] = {
    "annotations": st.none() | notes,
    "meta": st.none() | metas,
}
urls = texts | st.sampled_from(
    ["https://example.com/a.png", "data:image/png;base64,AAAA", "data:,x", "file:///a/"]
)
sizes = st.none() | st.integers(0, 4000)
words: st.SearchStrategy[str | None] = st.none() | texts
looks = {"alt": words, "caption": words, "width": sizes, "height": sizes}
mimes = st.sampled_from(
    ["image/png", "audio/L16; rate=8000", "a/b;base64,c", "text/html", "x/\r\n"]
)
bodies = {"data": st.binary(max_size=6), "mime": mimes}
addresses = {"url": urls, "mime": mimes | st.just("")}
media = [
    st.builds(kind, **where, **looks, **maybe)
    for kind in (Image, Audio)
    for where in (bodies, addresses)
]
links = st.builds(
    Link,
    uri=urls,
    name=texts,
    kind=texts | st.sampled_from(["url", "embedded"]),
    title=words,
    description=words,
    mime=words,
    metadata=st.none() | objects | st.just({"text": "a", "mimeType": "text/plain"}),
    **maybe,
)
body = st.one_of(
    st.builds(lambda text: {"text": text}, texts),
    st.builds(lambda blob: {"blob": blob}, st.binary(max_size=6)),
)
embedded = st.builds(
    lambda body, **members: Embedded(**body, **members),
    body=body,
    uri=urls,
    mime=words,
    title=words,
    content_meta=st.none() | metas,
    **maybe,
)
blocks = st.one_of(st.builds(Text, texts, **maybe), *media, links, embedded)
contents = st.lists(blocks, max_size=3).map(tuple)
codes = st.sampled_from([*CODES, "CITY_UNKNOWN", "NOT FOUND", "a\r\nSet-Cookie: x", ""]) | texts
errors = st.builds(
    Error,
    code=codes,
    message=texts,
    details=st.none() | values,
    retryable=st.none() | st.booleans(),
    hint=words,
    kind=st.none() | codes,
)


def added(wrapping: Literal["bare", "result"]) -> list[Shape]:
    """The shapes of replies to which MCP adds something for models."""
    message = Shape(wrapping, message=True)
    return [message, message.with_lines(), Shape(wrapping, lines=True)]


shaped = st.one_of(
    st.tuples(objects | values | typed, st.sampled_from([BARE, *added("bare")])),
    st.tuples(objects | values | typed, st.sampled_from([RESULT, *added("result")])),
    st.tuples(st.none(), st.sampled_from([EMPTY, EMPTY.with_lines()])),
    st.tuples(st.lists(values, max_size=3), st.just(SPREAD)),
)
cuts = st.builds(
    Cut, texts, st.integers(0, 9), st.integers(0, 9), st.sampled_from(["items", "lines"])
)
stamps = st.datetimes(
    datetime(1990, 1, 1),
    datetime(2100, 1, 1),
    timezones=st.sampled_from([UTC, timezone(timedelta(hours=-5, minutes=30))]),
)


@st.composite
def cases(draw: st.DrawFn) -> Case:
    data, shape = draw(shaped)
    holds = draw(st.sampled_from(["data", "data", "error", "content"]))
    reply = Reply(
        content=draw(contents),
        data=data if holds == "data" else msgspec.UNSET,
        error=draw(errors) if holds == "error" else None,
        meta=draw(metas),
        timestamp=draw(stamps),
        cuts=draw(st.lists(cuts, max_size=1).map(tuple)),
        encoded=msgspec.json.encode(data) if holds == "data" and draw(st.booleans()) else None,
    )
    version = VERSIONS[draw(st.sampled_from(sorted(VERSIONS)))]
    return Case(reply, shape, draw(st.sampled_from(CONTRACTS)), version)


# Each reply is generated once for all dialects, because that takes longer than a law.
@pytest.mark.slow
@bounded
@given(cases())
def test_a_reply_that_was_read_is_written_to_the_same_bytes(case: Case) -> None:
    for dialect in DIALECTS:
        again = msgspec.structs.replace(case, reply=case.read(dialect))

        assert again.write(dialect) == case.write(dialect)


@pytest.mark.slow
@bounded
@given(cases())
def test_what_a_dialect_carries_of_a_reply_is_read(case: Case) -> None:
    for dialect in DIALECTS:
        expected = case.carried(dialect)

        found = case.read(dialect)

        if not case.carries_time(dialect):
            found = msgspec.structs.replace(found, timestamp=expected.timestamp)
        assert (dialect, found) == (dialect, expected)


@bounded
@given(cases())
def test_mcp_carries_everything_but_the_time_and_the_envelope_that_too(case: Case) -> None:
    case = msgspec.structs.replace(case, version=LATEST_STATEFUL)
    dialects: tuple[Dialect, ...] = ("mcp", "envelope")

    for dialect in dialects:
        found = case.read(dialect)

        assert _without_added(found.content, case.reply.content) == _received(case.reply.content)
        assert found.data == _json(case.reply.data)
        assert _with_defaults(found.error) == _with_defaults(case.reply.error)
        # What MCP's proposal adds stays in the metadata, beside the author's keys.
        meta = {key: value for key, value in found.meta.items() if key != TOOL_FAILURE}
        assert meta == _json(_author_keys(case.reply.meta))
        assert found.cuts == (case.reply.cuts if dialect == "mcp" else ())
        assert not case.carries_time(dialect) or found.timestamp == case.reply.timestamp


@bounded
@given(cases())
def test_the_status_never_depends_on_the_dialect(case: Case) -> None:
    error = case.reply.error

    for dialect in DIALECTS:
        written = case.write(dialect)

        assert written.status == (200 if error is None else error.row.status)
        assert ("X-Error-Code" in dict(written.headers)) == (error is not None)
        for name, value in (*written.headers, ("Content-Type", written.media_type)):
            assert (name + value).isprintable()


@settings(bounded, max_examples=300)
@given(case=cases())
def test_every_mcp_result_is_valid_in_its_version(
    validate_result: Callable[[bytes, str], None], case: Case
) -> None:
    body = case.write("mcp").body

    validate_result(body, case.version.name)
    result = msgspec.json.decode(body)
    assert result["content"] != []
    assert result["isError"] is (case.reply.error is not None)
    assert ("resultType" in result) is case.version.stateless
    structured = case.reply.data is not msgspec.UNSET and case.version.structured
    assert ("structuredContent" in result) is structured
    assert isinstance(result.get("structuredContent", {}), dict)
    assert None not in [*result.values(), *(v for b in result["content"] for v in b.values())]


def _without_added(found: tuple[Block, ...], own: tuple[Block, ...]) -> list[Block]:
    """Return the content without the text of the contract, which is the first or last block."""
    spare = len(found) - len(own)
    assert spare in (0, 1)
    kept = list(found)
    if spare and kept[1:] == _received(own):
        assert isinstance(kept[0], Text)
        return kept[1:]
    return kept[:-1] if spare else kept


def _received(content: tuple[Block, ...]) -> list[Block]:
    """Return the blocks as a client receives them, without keys that have our prefix."""
    return [_received_block(block) for block in content]


def _received_block(block: Block) -> Block:
    changes: dict[str, Any] = {"meta": _json(_author_keys(block.meta or {})) or None}
    if isinstance(block, Link):
        changes["metadata"] = _json(block.metadata)
    if isinstance(block, Embedded):
        changes["content_meta"] = _json(_author_keys(block.content_meta or {})) or None
    if block.annotations is not None and block.annotations.audience is not None:
        audience = tuple(block.annotations.audience)
        changes["annotations"] = msgspec.structs.replace(block.annotations, audience=audience)
    return msgspec.structs.replace(block, **changes)


def _author_keys(meta: Mapping[str, Any]) -> dict[str, Any]:
    return {key: value for key, value in meta.items() if not key.startswith("answerback/")}


def _json(value: Any) -> Any:
    return value if value is msgspec.UNSET else msgspec.json.decode(msgspec.json.encode(value))


def _with_defaults(error: Error | None) -> Error | None:
    if error is None:
        return None
    retryable = error.row.retryable if error.retryable is None else error.retryable
    return msgspec.structs.replace(error, retryable=retryable, details=_json(error.details))
