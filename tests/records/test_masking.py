"""Secrets do not reach the records: in findings, arguments, replies and names."""

from __future__ import annotations

import asyncio
import json
import logging
from time import process_time
from typing import Annotated, Any

import pytest
from pydantic import Field
from tests.records.support import MemorySink

from answerback import App, ToolError, validate
from answerback.records import Event, Logging, Records

SECRET = "hunter2-Zk3vQ9"


def recorded(app: App, records: Records, sink: MemorySink, name: str, **arguments: object) -> Event:
    """Call a tool, and return the event of its reply."""
    asyncio.run(app.call(name, **arguments))
    records.close()
    (event,) = sink.replies
    return event


def test_a_secret_under_an_alias_is_masked_in_the_records() -> None:
    sink = MemorySink()
    records = Records(sink, arguments=True, content=True)
    app = App("test", records=records)

    @app.tool
    def login(password: Annotated[str, Field(alias="x1")]) -> str:
        return f"logged in with {password}"

    event = recorded(app, records, sink, "login", x1=SECRET)

    assert event.arguments is not None
    assert "'x1'" in str(event.arguments)
    assert all(SECRET.encode() not in entry.body for entry in sink.entries)


@pytest.mark.parametrize(
    "text",
    [
        f"cannot log in with password={SECRET}",
        f"cannot open /home/deploy/password:{SECRET}/x",
        f"login failed: the password '{SECRET}' is wrong, pwd={SECRET}",
        f"psycopg2.OperationalError: PASSWORD={SECRET} host=db",
        f'psycopg2.OperationalError in {{"api_key": "{SECRET}"}}',
        f"/home/deploy/app?token={SECRET}/x.py",
        "psycopg2.Error in postgres://app:" + SECRET + "x" * 60 + "@db.internal",
        "PostgreSQL refused redis://app:" + SECRET + "@cache:6379 at db:5432",
    ],
)
@pytest.mark.parametrize("flagged", [True, False])
def test_the_findings_of_a_reply_never_quote_a_secret(
    text: str, flagged: bool, caplog: pytest.LogCaptureFixture
) -> None:
    sink = MemorySink()
    records = Records(sink, Logging())
    app = App("test", records=records)

    @app.tool
    def login() -> str:
        if flagged:
            raise ToolError(text)
        return f"Error: {text}"

    with caplog.at_level(logging.INFO, "answerback.records"):
        event = recorded(app, records, sink, "login")

    assert event.findings
    assert all(SECRET.encode() not in entry.body for entry in sink.entries)
    assert SECRET not in caplog.text


def test_a_finding_still_says_what_it_is_about() -> None:
    reply = {"content": [{"type": "text", "text": "no login, password=tea4two now"}]}

    (finding,) = validate({**reply, "isError": True})

    assert finding.message == "the error shows internals: 'password=***'"


def test_a_violated_output_schema_does_not_quote_a_value_under_the_name_of_a_secret() -> None:
    schema = {"type": "object", "properties": {"password": {"type": "integer"}}}
    reply = {"content": [], "structuredContent": {"password": SECRET}}

    findings = validate(reply, schema=schema)

    assert [each.pointer for each in findings if each.rule == "AB320"] == [
        "/structuredContent/password"
    ]
    assert SECRET not in str(findings)


@pytest.mark.parametrize("value", [SECRET, SECRET * 8, "tea'four\"two\\", "correct horse staple"])
def test_a_refused_value_under_the_name_of_a_secret_is_masked_in_the_recorded_reply(
    value: str,
) -> None:
    sink = MemorySink()
    records = Records(sink, arguments=True, content=True)
    app = App("test", records=records)

    @app.tool
    def login(password: int, code: int) -> str:
        return ""

    # The same value is also sent under a name that says nothing.
    event = recorded(app, records, sink, "login", password=value, code=value)

    assert event.code == "INVALID_ARGUMENTS"
    assert event.arguments == {"password": "***", "code": "***"}
    assert "expected int" in str(event.reply)
    assert value[:12].encode() not in sink.entries[1].body


def test_data_under_the_name_of_a_secret_is_masked_in_every_part_of_the_recorded_reply() -> None:
    sink = MemorySink()
    records = Records(sink, content=True)
    app = App("test", records=records)

    @app.tool
    def account() -> dict[str, object]:
        return {"user": "ann", "note": f"use {SECRET}", "pin": 918273, "login": {"secret": SECRET}}

    event = recorded(app, records, sink, "account")

    data = event.reply["data"]
    assert data == {"user": "ann", "note": "use ***", "pin": "***", "login": {"secret": "***"}}


@pytest.mark.parametrize(
    "sent",
    [
        json.dumps({"user": "ann", "password": SECRET}),
        json.dumps({"user": "ann", "password": [SECRET]}),
        json.dumps([{"login": json.dumps({"password": SECRET})}]),
        "[" * 190 + json.dumps({"password": SECRET}) + "]" * 190,
        "[" * 190 + json.dumps("[" * 190 + json.dumps({"pin": SECRET}) + "]" * 190) + "]" * 190,
    ],
    ids=["object", "array in it", "text in text", "deep", "deep in deep"],
)
def test_a_secret_in_an_argument_that_is_json_in_a_string_is_masked_in_every_part(
    sent: str,
) -> None:
    sink = MemorySink()
    records = Records(sink, arguments=True, content=True)
    app = App("test", records=records)

    @app.tool
    def log_in(login: Any) -> str:
        return f"welcome, {SECRET}"

    event = recorded(app, records, sink, "log_in", login=sent)

    assert event.reply["data"] == "welcome, ***"
    assert SECRET not in str(event.arguments)


@pytest.mark.parametrize(
    "name",
    [
        *("password", "userPassword", "PASSWD", "passwd2", "pass_phrase", "pasword", "passwrod"),
        *("passsword", "api-key", "apiKey", "api_kye", "private.key", "client_secret", "secrt"),
        *("access_token", "refreshToken", "token", "pin", "user_pin", "credentials", "kennwort"),
    ],
)
def test_a_value_under_a_misspelt_name_of_a_secret_is_masked(name: str) -> None:
    sink = MemorySink()
    records = Records(sink, arguments=True)

    event = recorded(App("test", records=records), records, sink, "anything", **{name: SECRET})

    assert event.arguments == {name: "***"}


@pytest.mark.parametrize(
    "name",
    [
        *("passed", "passage", "compass", "max_tokens", "keyboard", "author", "spinner", "sector"),
        *("passenger", "wordpress", "primary_key", "monkey", "concrete"),
    ],
)
def test_a_value_under_an_ordinary_name_is_recorded(name: str) -> None:
    sink = MemorySink()
    records = Records(sink, arguments=True)

    event = recorded(App("test", records=records), records, sink, "anything", **{name: "12 items"})

    assert event.arguments == {name: "12 items"}


def test_the_name_of_an_unknown_tool_is_masked_and_shortened() -> None:
    sink = MemorySink()
    records = Records(sink)
    key = "ghp_1a2B3c4D5e6F7g8H9i0J1k2L3m4N5o6P7q8R"

    event = recorded(App("test", records=records), records, sink, f"use {key} " + "x" * 500)

    assert event.tool.startswith("use *** xxx")
    assert len(event.tool) == 60


@pytest.mark.parametrize(
    "text", ["pin=" * 16_000, "password: " * 6_000, 'secret="' * 7_000, "a=" * 32_000]
)
def test_a_hostile_text_is_masked_in_bounded_time(text: str) -> None:
    sink = MemorySink()
    records = Records(sink, arguments=True)

    started = process_time()
    event = recorded(App("test", records=records), records, sink, "none", text=text)

    assert event.arguments is not None
    assert process_time() - started < 5
