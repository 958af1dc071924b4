"""Replies over their tool's budget: what is cut, what is said, and who gets everything."""

from __future__ import annotations

import asyncio
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from typing import Annotated, Any, NamedTuple

import httpx
import msgspec
import pytest
from tests.fitting.kept_replies import said
from tests.records.support import MemorySink

from answerback import App, Embedded, Image, Limits, Link, Reply, Text, connect, failure, success
from answerback.core.reply import Cut
from answerback.options import ReplyLimits, Values
from answerback.records import Records

PNG = bytes.fromhex("89504e470d0a1a0a0000000d49484452")


@dataclass
class Row:
    id: int
    name: str


def rows(count: int) -> list[Row]:
    return [Row(number, f"the name of row {number}") for number in range(count)]


def reply_to(fn: Callable[[], Any], budget: int = 2000, **options: Any) -> Reply[Any]:
    """The reply of a tool with this budget, as a client reads it."""
    app = App("large", **options)
    app.add_tool(fn, name="tool", budget=budget)

    async def run() -> Reply[Any]:
        async with connect(app) as server:
            return await server.call(f"{app.contract.tool_prefix}tool")

    return asyncio.run(run())


async def read_text(server: Any, uri: str) -> str:
    [block] = (await server.read(uri)).content
    text: str = block.text
    return text


def sizes(reply: Reply[Any]) -> tuple[int, int]:
    """The characters of the texts, and those of the data."""
    texts = sum(len(block["text"]) for block in reply.raw["content"] if "text" in block)
    return texts, len(msgspec.json.encode(reply.raw.get("structuredContent")).decode())


def test_a_list_is_cut_after_an_item_and_the_note_has_the_numbers() -> None:
    def tool() -> list[Row]:
        return rows(7253)

    reply = reply_to(tool)

    kept = len(reply.data)
    assert reply.data == msgspec.to_builtins(rows(7253)[:kept])
    assert reply.cuts == (Cut("", kept, 7253),)
    assert f"Showing {kept} of 7,253 items. The rest: answerback://replies/" in said(reply)
    assert f"?offset={kept}&limit={kept}" in said(reply)
    assert f"Showing {kept} of 7,253 items." in reply.raw["structuredContent"]["message"]
    # Another item would not have fitted.
    assert 2000 - 60 < max(sizes(reply)) <= 2000


def test_the_link_leads_to_the_whole_and_the_note_to_the_rest() -> None:
    app = App("large", budget=2000)

    @app.tool
    def tool() -> list[Row]:
        return rows(500)

    async def run() -> tuple[Any, Any, int]:
        async with connect(app) as server:
            reply = await server.call("tool")
            [link] = [block for block in reply.content if isinstance(block, Link)]
            whole = await read_text(server, link.uri)
            found: list[Any] = list(reply.data)
            start = len(found)
            while len(found) < 500:
                uri = f"{link.uri}?offset={len(found)}&limit={start}"
                found += msgspec.json.decode(await read_text(server, uri))
            return msgspec.json.decode(whole), found, start

    whole, found, start = asyncio.run(run())

    assert start < 100
    assert whole == found == msgspec.to_builtins(rows(500))


def test_a_reply_within_its_budget_is_sent_as_it_is() -> None:
    def tool() -> list[Row]:
        return rows(20)

    reply = reply_to(tool)

    assert reply.data == msgspec.to_builtins(rows(20))
    assert reply.cuts == ()
    assert len(reply.raw["content"]) == 1


class Report(msgspec.Struct):
    title: str
    count: int
    rows: list[Row]
    tags: list[str]


def test_the_largest_list_is_cut_and_counts_stay() -> None:
    def tool() -> Report:
        return Report("all", 300, rows(300), ["a", "b", "c"])

    reply = reply_to(tool)

    assert [cut.path for cut in reply.cuts] == ["rows"]
    assert 10 < len(reply.data["rows"]) < 300
    assert (reply.data["count"], reply.data["tags"]) == (300, ["a", "b", "c"])
    assert f'Showing {len(reply.data["rows"])} of 300 items of "rows".' in said(reply)


def test_two_large_lists_are_cut_to_about_the_same_size() -> None:
    def tool() -> Report:
        return Report("all", 300, rows(300), [f"the tag with number {n}" for n in range(500)])

    reply = reply_to(tool)

    found = [len(msgspec.json.encode(reply.data[name])) for name in ("rows", "tags")]
    assert [cut.path for cut in reply.cuts] == ["rows", "tags"]
    assert abs(found[0] - found[1]) < 100


class Series(msgspec.Struct):
    days: list[int]
    values: list[float]
    station: str


def test_lists_of_equal_length_beside_each_other_are_cut_together() -> None:
    def tool() -> Series:
        return Series(list(range(900)), [0.123456789] * 900, "north")

    reply = reply_to(tool)

    assert len(reply.data["days"]) == len(reply.data["values"]) > 50
    assert len(reply.cuts) == 2


def test_a_dict_keeps_its_entries_and_their_lists_are_cut() -> None:
    def tool() -> dict[str, list[int]]:
        return {"even": list(range(0, 2000, 2)), "odd": list(range(1, 900, 2))}

    reply = reply_to(tool)

    assert reply.data.keys() == {"even", "odd"}
    assert [cut.path for cut in reply.cuts] == ["even", "odd"]


def test_lists_in_the_items_of_a_list_are_cut_if_one_item_is_too_large() -> None:
    def tool() -> list[Report]:
        return [Report(str(n), n, rows(300), []) for n in range(50)]

    reply = reply_to(tool)

    assert [(cut.path, cut.total) for cut in reply.cuts] == [("", 50), ("0.rows", 300)]
    assert len(reply.data) == 1
    assert 10 < len(reply.data[0]["rows"]) < 300


def test_a_few_items_that_are_too_large_all_stay() -> None:
    def tool() -> list[Report]:
        return [Report("large", 0, rows(300), []), Report("small", 1, [], ["a"])]

    reply = reply_to(tool)

    assert [cut.path for cut in reply.cuts] == ["0.rows"]
    assert [each["title"] for each in reply.data] == ["large", "small"]


class Pair(NamedTuple):
    first: list[int]
    second: str


@pytest.mark.parametrize("contract", ["standard", "aligned"])
def test_a_tuple_keeps_its_length(contract: str) -> None:
    def tool() -> Pair:
        return Pair(list(range(2000)), "end")

    reply = reply_to(tool, contract=contract)

    assert reply.ok
    assert [cut.path for cut in reply.cuts] == ["0"]
    assert "end" in str(reply.raw["structuredContent"])


Many = Annotated[list[int], msgspec.Meta(min_length=900)]


def test_a_list_never_gets_shorter_than_its_schema_allows() -> None:
    def tool() -> Many:
        return list(range(1000))

    reply = reply_to(tool)

    assert reply.error is not None
    assert reply.error.code == "TOO_LARGE"


def test_a_text_is_cut_at_the_end_of_a_line() -> None:
    def tool() -> str:
        return "a line of the log\n" * 1000

    reply = reply_to(tool)

    kept = reply.data.count("\n")
    assert reply.data == "a line of the log\n" * kept
    assert reply.cuts == (Cut("", kept, 1000, "lines"),)
    assert max(sizes(reply)) > 1900


def test_a_text_without_lines_is_cut_after_a_character() -> None:
    def tool() -> str:
        return "日本" * 5000

    reply = reply_to(tool)

    [cut] = reply.cuts
    assert (cut.unit, cut.returned, cut.total) == ("characters", len(reply.data), 10000)
    assert 1900 < max(sizes(reply)) <= 2000


class Page(msgspec.Struct):
    url: Annotated[str, msgspec.Meta(pattern="^https:")]
    links: list[str]
    text: str


def test_a_text_is_cut_before_lists_that_are_small() -> None:
    url = "https://example.org/" + "x" * 400

    def tool() -> Page:
        return Page(url, ["a", "b", "c"], "words and words. " * 1000)

    reply = reply_to(tool)

    assert [cut.path for cut in reply.cuts] == ["text"]
    assert (reply.data["url"], reply.data["links"]) == (url, ["a", "b", "c"])


def test_what_cannot_be_cut_is_an_error_with_a_preview_and_a_link() -> None:
    def tool() -> dict[str, int]:
        return {f"member {n}": n for n in range(500)}

    reply = reply_to(tool)

    assert reply.error is not None
    assert (reply.error.code, reply.error.retryable) == ("TOO_LARGE", False)
    assert "2,000" in reply.error.message
    assert reply.raw["isError"] is True
    assert "structuredContent" not in reply.raw
    [link] = [block for block in reply.content if isinstance(block, Link)]
    assert link.uri in str(reply.error.hint)
    assert 'It begins: {"member 0":0,' in said(reply)
    assert max(sizes(reply)) <= 2000


def test_a_schema_by_the_author_holds_after_the_cut() -> None:
    schema = {
        "type": "object",
        "properties": {
            "rows": {"type": "array", "items": {"$ref": "#/$defs/row"}, "minItems": 2},
            "ids": {"type": "array", "maxItems": 500, "contains": {"const": 499}},
        },
        "required": ["rows", "ids"],
        "$defs": {"row": {"type": "object", "required": ["n"]}},
    }

    def app(ids: list[int]) -> Reply[Any]:
        app = App("schemas")

        @app.tool(budget=1000, output_schema=schema)
        def tool() -> dict[str, Any]:
            return {"rows": [{"n": n} for n in range(300)], "ids": ids}

        async def run() -> Reply[Any]:
            async with connect(app) as server:
                return await server.call("tool")

        return asyncio.run(run())

    # The list of ids would have to lose the item that it must contain.
    fitted, refused = app([499]), app(list(range(500)))

    assert len(fitted.data["rows"]) > 30
    assert refused.error is not None
    assert refused.error.code == "TOO_LARGE"


def test_data_without_a_type_is_cut_by_its_value() -> None:
    def tool() -> Any:
        return {"query": "x", "rows": [{"n": n, "tags": ["a"]} for n in range(500)]}

    reply = reply_to(tool)

    assert [cut.path for cut in reply.cuts] == ["rows"]
    assert reply.data["query"] == "x"


@pytest.mark.parametrize(("depth", "is_cut"), [(50, True), (150, False), (198, False)])
def test_data_that_is_very_deep_is_cut_near_its_surface(depth: int, is_cut: bool) -> None:
    def tool() -> Any:
        value: Any = "text " * 1000
        for _ in range(depth):
            value = [value]
        return {"rows": list(range(1000)), "deep": value}

    reply = reply_to(tool, 4000)

    assert reply.ok == is_cut
    assert reply.ok or (reply.error is not None and reply.error.code == "TOO_LARGE")


def test_the_texts_of_a_reply_without_data_are_cut_and_kept() -> None:
    def tool() -> list[Text]:
        return [Text("short"), Text("a line of the log\n" * 1000)]

    app = App("texts", budget=2000)
    app.add_tool(tool)

    async def run() -> tuple[Reply[Any], str]:
        async with connect(app) as server:
            reply = await server.call("tool")
            [link] = [block for block in reply.content if isinstance(block, Link)]
            return reply, await read_text(server, link.uri)

    reply, whole = asyncio.run(run())

    [cut] = reply.cuts
    assert (cut.path, cut.total, cut.unit) == ("content[1]", 1000, "lines")
    texts = [block for block in reply.content if isinstance(block, Text)]
    assert texts[0].text == "short"
    assert texts[1].text == "a line of the log\n" * cut.returned
    assert msgspec.json.decode(whole) == ["short", "a line of the log\n" * 1000]
    assert f"?path=1&offset={cut.returned}&limit={cut.returned}&unit=lines" in said(reply)
    assert max(sizes(reply)) <= 2000


def test_of_many_texts_the_last_ones_are_left_out() -> None:
    def tool() -> list[Text | Image]:
        texts: list[Text | Image] = [Text(f"the text with number {n}") for n in range(500)]
        return [*texts, Image(PNG, "image/png")]

    reply = reply_to(tool)

    [cut] = reply.cuts
    assert (cut.path, cut.total, cut.unit) == ("content[]", 500, "items")
    texts = [block.text for block in reply.content if isinstance(block, Text)]
    assert texts[: cut.returned] == [f"the text with number {n}" for n in range(cut.returned)]
    assert f"Showing {cut.returned} of 500 items." in texts[-1]
    assert any(isinstance(block, Image) for block in reply.content)
    assert 1800 < max(sizes(reply)) <= 2000


def test_a_file_in_the_content_is_cut_if_it_is_text() -> None:
    def tool() -> list[Embedded]:
        return [Embedded("file:///log", text="a line\n" * 1000, mime="text/plain")]

    reply = reply_to(tool)

    [file] = [block for block in reply.content if isinstance(block, Embedded)]
    assert file.text == "a line\n" * reply.cuts[0].returned


def test_the_text_and_the_data_of_a_reply_share_its_budget() -> None:
    def tool() -> Reply[list[int]]:
        return success("a line about the numbers\n" * 200, list(range(2000)))

    reply = reply_to(tool)

    assert [cut.path for cut in reply.cuts] == ["", "content[0]"]
    assert 1800 < max(sizes(reply)) <= 2000


def test_images_are_not_counted() -> None:
    def tool() -> Reply[list[int]]:
        return success("a chart", [1, 2, 3], content=[Image(PNG * 1000, "image/png")])

    reply = reply_to(tool)

    assert reply.data == [1, 2, 3]
    assert reply.cuts == ()


@pytest.mark.parametrize("contract", ["standard", "aligned", "envelope", "apps", "direct"])
def test_both_halves_of_a_cut_reply_show_its_data_under_every_contract(contract: str) -> None:
    def tool() -> list[Row]:
        return rows(1000)

    reply = reply_to(tool, contract=contract)

    kept = reply.cuts[0].returned
    texts = "".join(block.get("text", "") for block in reply.raw["content"])
    data = str(reply.raw["structuredContent"])
    # A text for people shows at most 50 rows.
    assert f"the name of row {min(kept, 50) - 1}" in texts
    assert f"the name of row {kept - 1}" in data
    assert f"the name of row {kept}" not in texts + data
    assert "Found" not in texts
    assert f"Showing {kept} of 1,000 items" in texts
    assert max(sizes(reply)) <= 2000


def test_a_tool_that_sends_only_text_still_shows_its_data() -> None:
    app = App("text")

    @app.tool(budget=2000, values=Values(structured=False))
    def tool() -> list[Row]:
        return rows(1000)

    async def run() -> dict[str, Any]:
        async with connect(app) as server:
            found: dict[str, Any] = (await server.call("tool")).raw
            return found

    result = asyncio.run(run())

    texts = [block["text"] for block in result["content"] if "text" in block]
    assert "structuredContent" not in result
    assert texts[0].startswith('{"result":[{"id":0,')
    assert texts[1].startswith("Showing ")


def test_the_budget_of_an_app_is_for_its_tools_without_their_own() -> None:
    app = App("large", budget=1000)

    @app.tool
    def small() -> list[int]:
        return list(range(5000))

    @app.tool(budget=5000)
    def larger() -> list[int]:
        return list(range(5000))

    async def run() -> tuple[int, int]:
        async with connect(app) as server:
            return len((await server.call("small")).data), len((await server.call("larger")).data)

    few, more = asyncio.run(run())

    assert 100 < few < 300
    assert 900 < more < 1500


def test_errors_are_not_cut() -> None:
    def tool() -> list[int]:
        return failure("gone " * 1000)  # type: ignore[return-value]  # an error instead of data

    reply = reply_to(tool)

    assert reply.error is not None
    assert reply.error.code == "UNKNOWN_ERROR"
    assert len(reply.error.message) == 5000


def test_rest_and_programs_get_everything() -> None:
    app = App("large", budget=500)

    @app.tool
    def numbers() -> list[int]:
        return list(range(5000))

    async def run() -> tuple[Any, Any]:
        transport = httpx.ASGITransport(app.asgi())
        async with httpx.AsyncClient(transport=transport, base_url="http://x") as http:
            rest = (await http.post("/functions/numbers", json={})).json()
            return rest, (await app.call("numbers")).data

    rest, called = asyncio.run(run())

    assert rest == {"result": called} == {"result": list(range(5000))}


def test_the_record_says_how_much_was_sent() -> None:
    sink = MemorySink()

    def tool() -> Report:
        return Report("all", 300, rows(300), [])

    records = Records(sink)
    reply = reply_to(tool, records=records)
    records.flush()

    record = next(entry.event for entry in sink.entries if entry.event.is_reply)
    assert (record.returned, record.total) == (len(reply.data["rows"]), 300)
    assert record.size < 3000


def test_a_reply_whose_whole_is_too_large_to_keep_says_so() -> None:
    def tool() -> list[int]:
        return list(range(5000))

    small = Limits(replies=ReplyLimits(reply_bytes=1000))

    reply = reply_to(tool, limits=small)

    assert "The rest was not kept" in said(reply)
    assert not any(isinstance(block, Link) for block in reply.content)


def test_a_call_without_a_budget_does_not_load_the_code_for_it() -> None:
    program = (
        "import asyncio, sys\n"
        "from answerback import App, connect\n"
        "app = App('small')\n"
        "app.add_tool(lambda: [1, 2], name='tool')\n"
        "async def run():\n"
        "    async with connect(app) as server:\n"
        "        await server.call('tool')\n"
        "asyncio.run(run())\n"
        "print([name for name in sys.modules if 'fitting' in name or 'fitted' in name])\n"
    )

    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True)

    assert done.stdout == "[]\n", done.stderr
