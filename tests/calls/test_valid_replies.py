"""An app cannot send an invalid reply: whatever a tool returns, the rules find no error in it.

`make returns` checks 100,000 returns; the variable `RETURNS` sets another number.
"""

from __future__ import annotations

import asyncio
import json
import logging
import os
import warnings
from typing import Any

import msgspec
import pytest
from hypothesis import HealthCheck, given, settings
from hypothesis import strategies as st
from tests.calls.one_tool import answer
from tests.calls.returns import ANNOTATIONS, PNG, Make, returns

from answerback import App, Audio, Image, Reply, Text, failure, success, validate
from answerback.core.versions import VERSIONS
from answerback.dialects import shape_of, write

CONTRACTS = ("standard", "aligned", "envelope", "apps", "direct")
# Each value is returned by a tool without a type and by one with a type, under every contract.
EXAMPLES = int(os.environ.get("RETURNS", "5000")) // (2 * len(CONTRACTS))
MADE: list[Make] = []


def app_of_every_type(contract: str) -> App:
    """An app with one tool for each return type; each runs the function in MADE."""
    app = App("returns", contract=contract)
    for index, annotation in enumerate(ANNOTATIONS):

        def tool() -> Any:
            return MADE[-1]()

        tool.__annotations__["return"] = annotation
        app.add_tool(tool, name=f"tool{index}", inline=True)
    return app


APPS = {contract: app_of_every_type(contract) for contract in CONTRACTS}


def errors_in(sent: Any, dialect: Any, schema: Any = None, version: str | None = None) -> list[str]:
    found = validate(sent, dialect, schema, version)
    return [f"{each.rule} {each.message}" for each in found if each.severity == "error"]


def faults_of(app: App, reply: Reply[Any], schema: Any) -> dict[str, list[str]]:
    """The errors that the rules find in each form in which the app may send the reply."""
    shape, contract = reply.shape or shape_of(reply), app.contract
    faults = {}
    for name, version in VERSIONS.items():
        body = write(reply, "mcp", shape, contract, version).body
        faults[name] = errors_in(msgspec.json.decode(body), "mcp", schema, name)
    for dialect in ("rest", "envelope") if reply.ok else ("rest", "envelope", "problem"):
        written = write(reply, dialect, shape, contract)
        if written.media_type.endswith("json"):
            faults[dialect] = errors_in(msgspec.json.decode(written.body), dialect)
    return {name: each for name, each in faults.items() if each}


@pytest.fixture(scope="module")
def loop() -> Any:
    # Many examples fail on purpose, and each would be logged.
    logging.getLogger("answerback").setLevel(logging.CRITICAL + 1)
    with asyncio.Runner() as runner:
        yield runner
    logging.getLogger("answerback").setLevel(logging.NOTSET)


@settings(
    max_examples=EXAMPLES,
    derandomize="RETURNS" not in os.environ,
    deadline=None,
    database=None,
    suppress_health_check=list(HealthCheck),
)
@given(make=returns, index=st.integers(1, len(ANNOTATIONS) - 1))
def test_the_rules_find_no_error_in_what_an_app_sends(
    loop: asyncio.Runner, make: Make, index: int
) -> None:
    MADE[:] = [make]

    for app in APPS.values():
        for name in ("tool0", f"tool{index}"):
            with warnings.catch_warnings():
                warnings.simplefilter("ignore")
                reply = loop.run(app.call(name))

            faults = faults_of(app, reply, app.tools[name].output_schema)
            assert faults == {}, (faults, reply)


@pytest.mark.parametrize("mime", ["image/jpeg", "image/png", "a/b"])
def test_an_image_is_sent_with_the_media_type_of_its_bytes(mime: str) -> None:
    assert answer(Image(PNG, mime)).content == (Image(PNG, "image/png"),)


@pytest.mark.parametrize(
    ("block", "message"),
    [
        (Image(b"", "image/png"), "content[0].data: the image has no bytes"),
        (Audio(PNG, "audio/wav"), "content[0].mime: expected a media type such as audio/"),
        (Image(b"hello", "text/plain"), "content[0].mime: expected a media type such as image/"),
    ],
)
def test_an_image_that_hosts_cannot_show_is_refused(block: Any, message: str) -> None:
    error = answer(block).error

    assert error is not None
    assert error.code == "INVALID_OUTPUT"
    assert message in error.message


PRINTED = ["<coroutine object f at 0x7f12>", "[object Object]", " <Response [200]>\n"]


@pytest.mark.parametrize("annotation", [Any, str])
@pytest.mark.parametrize("text", PRINTED)
def test_a_text_that_is_a_printed_object_is_refused(text: str, annotation: Any) -> None:
    returned = [text, Text(text), success(text), success(data=text)]

    refused = [answer(each, annotation).error for each in returned]

    assert [error and error.code for error in refused] == ["INVALID_OUTPUT"] * 4


@pytest.mark.parametrize("contract", CONTRACTS)
@pytest.mark.parametrize(
    "value",
    [["undefined"], ["<function f", "g>"], {"<function": ">"}, "\x0bundefined", "\xa0undefined"],
)
def test_data_that_reads_like_a_printed_object_is_sent_as_data(value: Any, contract: str) -> None:
    app = App("test", contract=contract)
    app.add_tool(lambda: value, name="tool")

    reply = asyncio.run(app.call("tool"))

    assert reply.data == value
    assert errors_in(app.write(reply, "mcp"), "mcp") == []


@pytest.mark.parametrize("message", ["", " ", "\x85", *PRINTED])
def test_an_error_that_says_nothing_gets_the_words_of_its_code(message: str) -> None:
    error = answer(failure(message, "CITY_UNKNOWN")).error

    assert error is not None
    assert error.message == "City unknown"


@pytest.mark.parametrize("make", [Text, success, lambda text: success(content=[Text(text)])])
def test_a_block_or_a_success_whose_text_is_the_json_of_a_failure_is_that_failure(
    make: Any,
) -> None:
    error = answer(make('{"success": false, "error": {"code": "GONE", "message": "gone"}}')).error

    assert error is not None
    assert (error.code, error.message) == ("GONE", "gone")


def test_a_result_in_the_text_of_a_result_is_sent_as_the_inner_result() -> None:
    inner = {"content": [{"type": "text", "text": "5 °C"}], "structuredContent": {"celsius": 5}}
    outer = {"content": [{"type": "text", "text": json.dumps(inner)}]}

    reply = answer(outer)

    assert reply.content[0] == Text("5 °C")
    assert reply.data == {"celsius": 5}


@pytest.mark.parametrize("contract", CONTRACTS)
def test_the_data_is_sent_as_text_too_if_the_own_text_is_json_that_contradicts_it(
    contract: str,
) -> None:
    app = App("test", contract=contract)
    app.add_tool(lambda: success('{"x": 1}', data={"x": 2}), name="tool")

    sent = app.write(asyncio.run(app.call("tool")), "mcp")

    assert errors_in(sent, "mcp") == []
    texts = [json.loads(block["text"]) for block in sent["content"]]
    assert sent["structuredContent"] in texts


def test_a_result_as_the_data_of_a_success_is_sent_as_that_result() -> None:
    inner = {"content": [{"type": "text", "text": "5 °C"}], "isError": False}

    reply = answer(success(data=inner))

    assert reply.content == (Text("5 °C"),)
    assert not reply.has_data
