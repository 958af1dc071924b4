"""`read` understands the replies of servers that others have written, and loses nothing."""

from __future__ import annotations

from typing import Any

import pytest
from tests.reading.live_servers import (
    LiveReply,
    everything,
    fastmcp,
    filesystem,
    memory,
    official_sdk,
)

from answerback import Reply, read


@pytest.fixture(scope="module")
def replies(tmp_path_factory: pytest.TempPathFactory) -> list[LiveReply]:
    memory_folder, files = (tmp_path_factory.mktemp(name) for name in ("memory", "files"))
    recorded = [*everything(), *memory(memory_folder), *filesystem(files.resolve())]
    return [*recorded, *official_sdk(), *fastmcp()]


def lost(reply: Reply[Any], sent: dict[str, Any]) -> list[str]:
    """The members of a result that are not written again."""
    written = reply.to("mcp")
    kept = [block for block in written["content"] if block in sent.get("content", [])]
    differences = [] if kept == sent.get("content", []) else [f"content: {kept}"]
    structured = written.get("structuredContent")
    if reply.error is not None and "structuredContent" in sent:
        structured = reply.error.details
    if "structuredContent" in sent and structured != sent["structuredContent"]:
        differences.append(f"structuredContent: {structured}")
    if written["isError"] != sent.get("isError", False):
        differences.append("isError")
    return differences


def test_there_are_at_least_300_replies_of_five_servers(replies: list[LiveReply]) -> None:
    servers = {reply.name.split()[0] for reply in replies}

    assert servers == {"everything", "memory", "filesystem", "sdk", "fastmcp"}
    assert len(replies) >= 300


def test_every_reply_is_understood_as_the_server_meant_it(replies: list[LiveReply]) -> None:
    wrong = []
    for each in replies:
        reply = read(each.source)
        is_success = each.sent is not None and not each.sent.get("isError", False)
        # A demonstration of server-everything is an error's text without the flag.
        rules = {found.rule for found in reply.findings} - {"AB201"}
        if reply.ok is not is_success or rules or not reply.for_model():
            wrong.append((each.name, reply.error))

    assert wrong == []


def test_nothing_of_a_result_is_lost(replies: list[LiveReply]) -> None:
    results = [each for each in replies if each.sent is not None and "content" in each.sent]

    differences = {each.name: lost(read(each.source), each.sent or {}) for each in results}

    assert len(results) >= 250
    assert {name: found for name, found in differences.items() if found} == {}


def test_a_reply_that_is_written_is_read_again_as_the_same(replies: list[LiveReply]) -> None:
    different = []
    for each in replies:
        reply = read(each.source)
        again = read(reply.to("mcp"))
        same = (reply.data, reply.meta) == (again.data, again.meta)
        if reply.error is None and reply.data_from == "structuredContent" and not same:
            different.append((each.name, reply.data, again.data))

    assert [each for each in different if not is_wrapped_again(*each[1:])] == []


def is_wrapped_again(data: Any, again: Any) -> bool:
    """Whether the data was unwrapped by a marker, which is not written again."""
    return bool(again == {"result": data})


def test_the_structured_content_is_the_data(replies: list[LiveReply]) -> None:
    found = {}
    for each in replies:
        structured = (each.sent or {}).get("structuredContent")
        reply = read(each.source)
        if (
            structured is not None
            and reply.ok
            and reply.data
            not in (
                structured,
                structured.get("result"),
            )
        ):
            found[each.name] = reply.data

    assert found == {}
