"""Pages that are larger than their tool's budget: their cursors lead through the whole."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from typing import Any

import pytest

from answerback import App, Page, connect

TEXT = "x" * 60


def shop(budget: int = 2000) -> App:
    app = App("shop", budget=budget)

    @app.tool
    def yields(n: int) -> Iterator[dict[str, Any]]:
        for each in range(n):
            yield {"id": each, "text": TEXT}

    @app.tool
    def pages(cursor: str | None = None) -> Page[dict[str, Any]]:
        first = int(cursor or 0)
        rows = [{"id": each, "text": TEXT} for each in range(first, first + 50)]
        return Page(rows, total=100, next="50" if first == 0 else None)

    return app


async def all_pages(server: Any, name: str, **arguments: Any) -> list[Any]:
    """Return the replies from the first page to the last."""
    replies = [await server.call(name, arguments)]
    while replies[-1].ok and (cursor := replies[-1].data["next"]) is not None:
        replies.append(await server.call(name, {**arguments, "cursor": cursor}))
    return replies


@pytest.mark.parametrize(("name", "arguments"), [("yields", {"n": 100}), ("pages", {})])
def test_the_sum_of_all_pages_is_the_whole(name: str, arguments: dict[str, Any]) -> None:
    async def main() -> list[Any]:
        async with connect(shop()) as server:
            return await all_pages(server, name, **arguments)

    replies = asyncio.run(main())
    assert len(replies) > 3
    assert [row["id"] for reply in replies for row in reply.data["items"]] == list(range(100))
    for reply in replies:
        assert reply.data["returned"] == len(reply.data["items"])
        assert reply.data["total"] == 100


def test_a_cut_page_says_which_items_it_has() -> None:
    async def main() -> list[Any]:
        async with connect(shop()) as server:
            return await all_pages(server, "yields", n=100)

    first, second, *_ = asyncio.run(main())
    shown, next_shown = first.data["returned"], second.data["returned"]
    assert f"Showing items 1 to {shown} of 100." in first.for_model()
    assert f"Showing items {shown + 1} to {shown + next_shown} of 100." in second.for_model()
    (cut,) = second.cuts
    assert (cut.path, cut.returned, cut.total) == ("items", next_shown, 100)


@pytest.mark.parametrize(("total", "said"), [(9_000, "of 9,000 items."), (None, "items.")])
def test_a_cut_page_of_your_own_does_not_pass_for_the_whole_list(
    total: int | None, said: str
) -> None:
    """Its 150 items are one page of many, so their number is not the number of all items."""
    app = App("shop", budget=1_000)

    @app.tool
    def orders(cursor: str | None = None) -> Page[str]:
        return Page([f"order number {n}" for n in range(150)], total=total, next="more")

    async def main() -> list[Any]:
        async with connect(app) as server:
            first = await server.call("orders")
            return [first, await server.call("orders", cursor=first.data["next"])]

    for reply in asyncio.run(main()):
        shown = reply.data["returned"]
        note = reply.content[0].text.splitlines()[0]
        assert shown < 75
        assert note.startswith(" ".join(filter(None, ["Showing", str(shown), said])))


def test_a_cursor_is_bound_to_the_arguments() -> None:
    async def main() -> Any:
        async with connect(shop()) as server:
            first = await server.call("yields", {"n": 100})
            return await server.call("yields", {"n": 99, "cursor": first.data["next"]})

    error = asyncio.run(main()).error
    assert error.code == "INVALID_ARGUMENTS"
    assert "the cursor is for different arguments" in error.message


def test_a_cursor_expires_with_the_kept_list() -> None:
    async def main() -> Any:
        async with connect(shop()) as server:
            cursor = (await server.call("yields", {"n": 100})).data["next"]
        async with connect(shop()) as server:
            return await server.call("yields", {"n": 100, "cursor": cursor})

    error = asyncio.run(main()).error
    assert error.code == "CURSOR_EXPIRED"
    assert error.hint == "leave cursor out to start again"


ITEMS: dict[str, list[Any]] = {
    "numbers": list(range(3_000)),
    "fractions": [number / 7 for number in range(2_000)],
    "texts with commas and quotes": [f'{number}, "é", ]}},\\' for number in range(2_000)],
    "characters of four bytes": ["🙂" * 20 + str(number) for number in range(1_000)],
    "lists and objects": [[{"a": [number, None]}, [], {}, True] for number in range(1_500)],
    "large items": [str(number) * 100 for number in range(100, 400)],
    "one value of each size": ["x" * (number % 400) for number in range(1_000)],
    "large numbers": [10**300 + number for number in range(200)],
}


@pytest.mark.parametrize("contract", ["standard", "envelope", "apps", "direct"])
def test_the_pages_are_the_whole_in_every_contract(contract: str) -> None:
    app = App("items", budget=1_500, contract=contract)

    @app.tool
    def items() -> Iterator[list[int]]:
        yield from ([number, number] for number in range(1_000))

    async def main() -> list[Any]:
        async with connect(app) as server:
            return await all_pages(server, "items")

    replies = asyncio.run(main())
    assert len(replies) > 3
    found = [number for reply in replies for number, _ in reply.data["items"]]
    assert found == list(range(1_000))


@pytest.mark.parametrize("kind", ITEMS)
def test_the_pages_of_any_items_are_the_whole(kind: str) -> None:
    app = App("items", budget=1_000)

    @app.tool
    def items() -> Iterator[Any]:
        yield from ITEMS[kind]

    async def main() -> list[Any]:
        async with connect(app) as server:
            return await all_pages(server, "items")

    replies = asyncio.run(main())
    assert [item for reply in replies for item in reply.data["items"]] == ITEMS[kind]
    assert [cut.total for reply in replies for cut in reply.cuts] == [len(ITEMS[kind])] * (
        len(replies) - 1
    )


def test_the_cost_of_a_page_does_not_grow_with_the_list() -> None:
    async def cost(n: int) -> float:
        """Return the least CPU seconds of a page."""
        async with connect(shop()) as server:
            reply = await server.call("yields", n=n)
            costs = []
            for _ in range(20):
                began = time.process_time()
                reply = await server.call("yields", n=n, cursor=reply.data["next"])
                costs.append(time.process_time() - began)
                assert reply.cuts
            return min(costs)

    assert asyncio.run(cost(30_000)) < 3 * asyncio.run(cost(1_000))
