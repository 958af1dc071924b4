"""Some MCP hosts show only texts and images: a text names the links, sounds and files."""

from __future__ import annotations

import asyncio
from typing import Any

import msgspec
import pytest
from tests.serving import ServedApp
from tests.tasks.task_client import TaskClient, run_with

from answerback import (
    App,
    Audio,
    Embedded,
    Image,
    Link,
    Reply,
    Text,
    connect,
    failure,
    read,
    success,
    validate,
)
from answerback.contract import PRESETS, STANDARD
from answerback.core.content import Annotations, Block
from answerback.core.shape import BARE, RESULT
from answerback.core.versions import V2025_03_26
from answerback.dialects import mcp
from answerback.options import Task, Values

ADDED = {"answerback/added": True}
BELLS = Audio(b"RIFF0000WAVE", "audio/wav", alt="the bells")
DOG = Image(url="https://example.com/dog.png", mime="image/png", alt="a dog")
NOTES = Link("https://example.com/notes", "notes")
DUMP = Embedded("file:///dump", blob=b"123")


def app_returning(value: Any, **options: Any) -> App:
    app = App("test", contract=options.pop("contract", "standard"))
    app.add_tool(lambda: value, name="tool", **options)
    return app


def reply_of(app: App) -> Reply[Any]:
    with connect(app) as server:
        return server.call("tool")


def added_in(result: Any) -> list[str]:
    return [each["text"] for each in result["content"] if each.get("_meta") == ADDED]


def lines_of(app: App) -> list[str]:
    """The lines that are added to what a client receives."""
    raw: Any = reply_of(app).raw
    return "\n".join(added_in(raw)).splitlines()


@pytest.mark.parametrize(
    ("block", "line"),
    [
        (BELLS, "[audio: audio/wav, 12 bytes, the bells]"),
        (DOG, "[image: image/png, https://example.com/dog.png, a dog]"),
        (NOTES, "notes: https://example.com/notes"),
        (DUMP, "[resource: file:///dump, 3 bytes]"),
    ],
)
def test_a_text_names_a_block_that_hosts_may_not_show(block: Block, line: str) -> None:
    assert lines_of(app_returning(block)) == [line]
    assert lines_of(app_returning([Text("Look:"), block])) == [line]
    assert lines_of(app_returning(success("Look:", {"a": 1}, content=[block]))) == [line]
    assert lines_of(app_returning(success("Look:", [1], content=[block, NOTES])))[0] == line
    failed = msgspec.structs.replace(failure("no city"), content=(block,))
    assert lines_of(app_returning(failed)) == [line]


def test_a_client_does_not_receive_the_lines_as_content() -> None:
    reply = reply_of(app_returning([Text("Look:"), BELLS, DOG, NOTES, DUMP]))

    assert reply.content == (Text("Look:"), BELLS, DOG, NOTES, DUMP)


def test_a_malformed_result_is_read_without_the_lines() -> None:
    line = {"type": "text", "text": "notes: https://example.com/notes", "_meta": ADDED}
    result = {"content": [{"type": "text", "text": 5}, line], "isError": "false"}

    assert read(result).content == (Text("5"),)


@pytest.mark.parametrize(
    "content",
    [
        [Text("Hello.")],
        [Image(b"GIF89a", "image/gif")],
        [Embedded("file:///log.txt", "all is well")],
        [Text("See https://example.com/notes and https://example.com/dog.png"), NOTES, DOG],
        [Text("[audio: audio/wav, 12 bytes, the bells]"), BELLS],
        [Link("file:///a", "a", annotations=Annotations(audience=("user",)))],
    ],
)
def test_what_is_shown_or_said_or_only_for_the_user_gets_no_line(content: list[Block]) -> None:
    assert lines_of(app_returning(content)) == []


def test_data_that_has_the_address_needs_no_line() -> None:
    data = {"address": "https://example.com/notes"}

    assert lines_of(app_returning(success(data=data, content=[NOTES]))) == []


def test_a_long_address_stays_whole_and_the_bytes_in_an_address_do_not() -> None:
    signed = "https://example.com/dog.png?signature=" + "a1" * 300
    inline = "data:image/png;base64," + "A" * 10_000

    assert signed in lines_of(app_returning(Image(url=signed, alt="a dog")))[0]
    assert len(lines_of(app_returning(Image(url=inline)))[0]) == 200


@pytest.mark.parametrize("contract", sorted(PRESETS.keys() - {"standard"}))
def test_other_contracts_add_no_lines(contract: str) -> None:
    app = app_returning(NOTES, contract=contract)

    result = app.write(asyncio.run(app.call("tool")), "mcp")

    assert added_in(result) == []


def test_values_turn_the_lines_off() -> None:
    assert lines_of(app_returning(NOTES, values=Values(message=False))) == []


def test_an_older_client_gets_no_lines() -> None:
    reply = success("Look:", content=[BELLS])

    assert b"answerback" not in mcp.write(reply, BARE.with_lines(), STANDARD, V2025_03_26)


def test_a_reply_that_no_app_made_has_no_lines() -> None:
    assert len(success("Look:", content=[NOTES]).to("mcp")["content"]) == 2


def test_the_rules_find_nothing_wrong_with_the_lines() -> None:
    beside_data = App("test")

    @beside_data.tool
    def tool() -> Reply[int]:
        return success("Look:", 5, content=[NOTES, BELLS])

    for app in (beside_data, app_returning([Text("Look:"), NOTES])):
        raw: Any = reply_of(app).raw
        assert added_in(raw)
        assert validate(raw) == ()


def test_the_lines_count_for_the_budget() -> None:
    links = [Link(f"https://example.com/{number:030}", "a") for number in range(8)]
    app = app_returning(success(data=list(range(300)), content=links), budget=2000)

    raw: Any = reply_of(app).raw

    texts = [str(each.get(name, "")) for each in raw["content"] for name in ("text", "uri", "name")]
    assert sum(map(len, texts)) <= 2000
    assert len(added_in(raw)[0].splitlines()) == 8


def test_a_stored_reply_is_sent_with_the_lines() -> None:
    app = ServedApp("test")
    app.add_tool(lambda: [Text("Look:"), NOTES], name="tool", task=Task(key=True))
    app.add_tool(lambda: success("Look:", [1], content=[NOTES]), name="job", task="optional")

    async def steps(client: TaskClient) -> list[Any]:
        task = await client.request("tools/call", name="job", arguments={})
        stored = (await client.until(task["taskId"]))["result"]
        client.capabilities = {}
        meta = {"answerback/idempotencyKey": "one"}
        arguments: dict[str, Any] = {"name": "tool", "arguments": {}}
        return [
            stored,
            await client.request("tools/call", meta, **arguments),
            await client.request("tools/call", meta, **arguments),
        ]

    results = run_with(app, steps)

    assert [added_in(each) for each in results] == [["notes: https://example.com/notes"]] * 3


def test_a_shape_without_additions_is_the_one_for_other_wires() -> None:
    assert RESULT.with_lines().without_additions() == RESULT
