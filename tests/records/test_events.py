"""The event of a reply, and the sinks that store it."""

from __future__ import annotations

import asyncio
import logging
import sqlite3
from enum import Enum
from pathlib import Path
from typing import TypedDict

import pytest
from tests.records.support import TIMEOUT, MemorySink, app_with, call_add, replies_in
from tests.serving import handlers_of

from answerback import App, Context, Page, Reply, ToolError, connect, success
from answerback.contract import STANDARD, Contract
from answerback.records import JSONL, Logging, Records, SQLite
from answerback.records.event import Issue
from answerback.records.hash_chain import verify
from answerback.records.recorder import digest


def test_a_reply_becomes_one_event() -> None:
    sink = MemorySink()
    records = Records(sink)
    app = app_with(records)

    reply = asyncio.run(app.call("add", x=1, y=2))
    records.close()

    (event,) = sink.replies
    assert reply.data == 3
    assert event.event == "mcp_response"
    assert (event.kind, event.tool, event.wire, event.code) == ("tool", "add", "memory", "")
    assert (event.size, bool(event.digest)) == (1, True)
    assert event.arguments is None
    assert event.reply is None


def test_the_event_of_a_masked_failure_has_the_reference_of_the_reply() -> None:
    sink = MemorySink()
    records = Records(sink)

    reply = asyncio.run(app_with(records).call("fail"))
    records.close()

    (event,) = sink.replies
    assert event.code == "TOOL_EXECUTION_ERROR"
    assert event.reference == reply.error.details["reference"]  # type: ignore[union-attr]  # it failed


def test_the_event_of_a_failure_has_the_value_of_an_enum_code() -> None:
    class ErrorCode(Enum):
        ENTITY_EXISTS = "ENTITY_EXISTS"

    sink = MemorySink()
    records = Records(sink)
    app = App("test", records=records)

    @app.tool(inline=True)
    def create() -> None:
        raise ToolError("there is one", ErrorCode.ENTITY_EXISTS)

    asyncio.run(app.call("create"))
    records.close()

    assert [event.code for event in sink.replies] == ["ENTITY_EXISTS"]


def test_seed_000_a_reply_with_findings_becomes_a_format_issue_event() -> None:
    sink = MemorySink()
    records = Records(sink)

    text = "connected to postgres://admin:Zk3vQ9pLw2@db.internal/main"
    asyncio.run(app_with(records).call("echo", text=text))
    records.close()

    (event,) = sink.replies
    assert event.event == "mcp_response_format_issue"
    assert event.findings
    assert b"Zk3vQ9pLw2" not in sink.entries[1].body


def test_arguments_and_content_are_recorded_with_secrets_masked() -> None:
    sink = MemorySink()
    records = Records(sink, arguments=True, content=True)

    text = "postgres://admin:Zk3vQ9pLw2@db.internal/main"
    asyncio.run(app_with(records).call("echo", text=text))
    records.close()

    (event,) = sink.replies
    assert event.arguments is not None
    assert event.reply is not None
    assert event.arguments == {"text": "postgres://admin:***@db.internal/main"}
    assert "***" in str(event.reply)
    assert all(b"Zk3vQ9pLw2" not in entry.body for entry in sink.entries)


def test_arguments_and_replies_that_are_too_large_are_listed_as_omitted() -> None:
    sink = MemorySink()
    records = Records(sink, arguments=True, content=True)

    asyncio.run(app_with(records).call("echo", text="x" * 100_000))
    records.close()

    (event,) = sink.replies
    assert event.omitted == ("arguments", "reply")
    assert event.size > 100_000


def test_the_digest_ignores_white_space_and_member_order() -> None:
    assert digest(b'{"x":1,"y":2}') == digest(b'{ "y": 2, "x": 1 }')
    assert digest(b'{"x":1,"y":2}') != digest(b'{"x":2,"y":1}')
    assert digest(b"no json") != digest(b"other")


def test_a_cancelled_call_is_recorded_as_cancelled() -> None:
    sink = MemorySink()
    records = Records(sink)
    app = App("test", records=records)

    @app.tool
    async def forever() -> int:
        await asyncio.Event().wait()
        return 1

    async def give_up() -> None:
        task = asyncio.ensure_future(app.call("forever"))
        await asyncio.sleep(0)
        task.cancel()
        await asyncio.wait([task], timeout=TIMEOUT)

    asyncio.run(give_up())
    records.close()

    assert [event.code for event in sink.replies] == ["CANCELLED"]


def test_an_app_without_records_has_no_recording_handler() -> None:
    bare = App("bare")

    assert bare.records is None
    assert handlers_of(bare).tools.__qualname__.startswith("pipeline")


def test_an_app_accepts_a_sink_as_its_records(tmp_path: Path) -> None:
    app = App("test", records=SQLite(tmp_path / "audit.db"))

    asyncio.run(app.call("nothing"))
    assert app.records is not None
    app.records.close()

    assert [event.code for event in replies_in(tmp_path / "audit.db")] == ["TOOL_NOT_FOUND"]


def test_every_sink_gets_every_event(tmp_path: Path) -> None:
    memory = MemorySink()
    records = Records(memory, SQLite(tmp_path / "a.db"), JSONL(tmp_path / "a.jsonl"))
    app = app_with(records)

    async def calls() -> None:
        for number in range(600):
            await app.call("add", x=number, y=1)

    asyncio.run(calls())
    records.close()

    digests = [event.digest for event in memory.replies]
    assert len(set(digests)) == 600
    for name in ("a.db", "a.jsonl"):
        assert [event.digest for event in replies_in(tmp_path / name)] == digests
        assert verify(str(tmp_path / name)).holds


def test_replies_can_be_queried_with_sql(tmp_path: Path) -> None:
    records = Records(SQLite(tmp_path / "a.db"))

    asyncio.run(app_with(records).call("add", x=1, y="no"))
    records.close()

    with sqlite3.connect(tmp_path / "a.db") as connection:
        rows = connection.execute("SELECT tool, code FROM replies").fetchall()
    connection.close()
    assert rows == [("add", "INVALID_ARGUMENTS")]


class City(TypedDict):
    name: str


def found_text(
    *, declared: object, data: object, contract: str | Contract = "standard"
) -> tuple[Issue, ...]:
    """The findings in a reply with a text beside its data."""
    sink = MemorySink()
    records = Records(sink)
    app = App("test", records=records, contract=contract)

    def find() -> object:
        return success("Found one city.", data)

    find.__annotations__["return"] = declared
    app.add_tool(find)
    assert asyncio.run(app.call("find")).ok
    records.close()
    (event,) = sink.replies
    return event.findings


def test_a_text_beside_data_of_a_tool_without_reply_is_found_with_what_to_declare() -> None:
    """Hosts that show only the data would not show the text to a model."""
    (found,) = found_text(declared=City, data={"name": "Oslo"})

    assert (found.rule, found.pointer) == ("AB313", "/content/0")
    assert "declare Reply[City] to" in found.message


def test_a_text_beside_data_is_found_under_a_contract_derived_from_standard() -> None:
    contract = STANDARD.derive(name="mine")

    (found,) = found_text(declared=list[City], data=[{"name": "Oslo"}], contract=contract)

    assert "declare Reply[" in found.message


def test_a_text_beside_data_of_a_tool_that_declares_reply_is_not_found() -> None:
    assert found_text(declared=Reply[City], data={"name": "Oslo"}) == ()


def test_a_text_beside_data_under_a_convention_is_not_found() -> None:
    assert found_text(declared=City, data={"name": "Oslo"}, contract="apps") == ()


@pytest.mark.parametrize("total", [None, 300])
def test_a_page_cut_to_its_budget_has_no_findings(total: int | None) -> None:
    """Its data says that there is more: `returned`, `total` and `next`."""
    sink = MemorySink()
    records = Records(sink)
    app = App("test", records=records, budget=1_000)

    @app.tool
    def orders(cursor: str | None = None) -> Page[str]:
        return Page([f"order {number}" for number in range(150)], total=total, next="150")

    async def items_on_first_page() -> int:
        async with connect(app) as server:
            return len((await server.call("orders")).data["items"])

    items = asyncio.run(items_on_first_page())
    records.close()

    assert items < 150
    (event,) = sink.replies
    assert event.findings == ()


def test_a_dict_with_any_members_is_not_told_to_declare_reply() -> None:
    (found,) = found_text(declared=dict[str, str], data={"name": "Oslo"})

    assert "declare" not in found.message


def test_seed_000_the_log_warns_of_findings(
    caplog: pytest.LogCaptureFixture,
) -> None:
    records = Records(Logging())
    app = app_with(records)

    with caplog.at_level(logging.INFO, logger="answerback.records"):
        asyncio.run(app.call("add", x=1, y=2))
        asyncio.run(app.call("echo", text="postgres://admin:Zk3vQ9pLw2@db.internal/main"))
        records.close()

    warned = [record for record in caplog.records if record.levelno == logging.WARNING]
    assert [record.getMessage().partition(":")[0] for record in warned] == [
        "MCP response format issues in echo"
    ]
    assert '"tool":"add"' in caplog.text


@pytest.mark.parametrize("sink", [SQLite, JSONL])
def test_only_the_owner_can_read_and_write_the_files(
    sink: type[SQLite | JSONL], tmp_path: Path
) -> None:
    records = Records(sink(tmp_path / "audit"))
    call_add(app_with(records))
    assert records.flush()

    modes = {file.name: file.stat().st_mode & 0o777 for file in tmp_path.iterdir()}
    records.close()

    assert set(modes.values()) == {0o600}


def test_a_question_to_a_client_that_answers_is_not_a_failure_and_to_any_other_is() -> None:
    sink = MemorySink()
    records = Records(sink)
    app = App("asking", records=records)

    @app.tool
    async def ask(ctx: Context) -> str:
        return await ctx.elicit("Your name?", str)

    with connect(app, elicit=lambda question: {"value": "Ada"}) as client:
        answered = client.call("ask")
    refused = asyncio.run(app.call("ask"))
    records.close()

    assert (answered.data, refused.error is not None) == ("Ada", True)
    assert [(event.code, event.failed) for event in sink.replies] == [
        ("ASKED", False),
        ("", False),
        ("INPUT_REQUIRED", True),
    ]
