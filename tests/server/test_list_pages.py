"""Parts of lists over REST: `?limit=`, and the links from one part to the next."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Iterator
from itertools import count
from typing import Annotated, Any

import httpx
import pytest
from msgspec import Meta

from answerback import App, Context, Forbidden, Page, connect

ROWS = [{"id": each} for each in range(7)]


def shop() -> App:
    app = App("shop", budget=1_000)

    @app.tool
    def rows() -> list[dict[str, int]]:
        return ROWS

    @app.tool
    def numbers(n: int) -> list[int]:
        return list(range(n))

    @app.tool
    def yields(n: int) -> Iterator[int]:
        yield from range(n)

    @app.tool
    def pages(cursor: str | None = None) -> Page[int]:
        first = int(cursor or 0)
        return Page(list(range(first, first + 5)), total=10, next="5" if first == 0 else None)

    @app.tool
    def three() -> Annotated[list[int], Meta(min_length=3)]:
        return [1, 2, 3, 4]

    @app.tool
    def name() -> str:
        return "shop"

    return app


def follow(app: App, path: str, body: dict[str, Any] | None = None) -> list[httpx.Response]:
    """Return the response to a POST, and those of the links in it."""

    async def main() -> list[httpx.Response]:
        transport = httpx.ASGITransport(app.asgi(hosts=["test"]))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            responses = [await client.post(path, json=body or {})]
            while "next" in responses[-1].links:
                responses.append(await client.get(responses[-1].links["next"]["url"]))
            return responses

    return asyncio.run(main())


def test_the_parts_of_a_list_are_the_whole() -> None:
    responses = follow(shop(), "/functions/rows?limit=3")

    assert [len(each.json()["result"]) for each in responses] == [3, 3, 1]
    assert [row for each in responses for row in each.json()["result"]] == ROWS


def test_the_parts_of_an_iterator_are_pages() -> None:
    responses = follow(shop(), "/functions/yields?limit=4", {"n": 10})
    pages = [each.json() for each in responses]

    assert [page["returned"] for page in pages] == [4, 4, 2]
    assert [page["total"] for page in pages] == [10, 10, 10]
    assert [item for page in pages for item in page["items"]] == list(range(10))
    assert pages[-1]["next"] is None


def test_a_part_of_a_page_has_a_cursor_that_continues_it() -> None:
    app = shop()

    async def main() -> list[int]:
        transport = httpx.ASGITransport(app.asgi(hosts=["test"]))
        found: list[int] = []
        cursor: str | None = None
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            while True:
                sent = {"cursor": cursor}
                page = (await client.post("/functions/pages?limit=3", json=sent)).json()
                found += page["items"]
                cursor = page["next"]
                if cursor is None:
                    return found

    assert asyncio.run(main()) == list(range(10))


def test_a_page_may_continue_on_another_wire() -> None:
    app = shop()

    async def main() -> list[int]:
        transport = httpx.ASGITransport(app.asgi(hosts=["test"]))
        found: list[int] = []
        sent: dict[str, Any] = {"n": 3_000}
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://test") as client,
            connect(app) as server,
        ):
            for turn in count():
                if turn % 3 == 0:
                    page = (await server.call("yields", sent)).data
                else:
                    response = await client.post("/functions/yields?limit=40", json=sent)
                    found += response.json()["items"]
                    page = (await client.get(response.links["next"]["url"])).json()
                found += page["items"]
                sent["cursor"] = page["next"]
                if page["next"] is None:
                    break
        return found

    assert asyncio.run(main()) == list(range(3_000))


def test_a_cursor_of_mcp_is_not_the_address_of_a_part() -> None:
    app = shop()

    async def main() -> httpx.Response:
        transport = httpx.ASGITransport(app.asgi(hosts=["test"]))
        async with (
            httpx.AsyncClient(transport=transport, base_url="http://test") as client,
            connect(app) as server,
        ):
            page = (await server.call("yields", n=3_000)).data
            return await client.get(f"/functions/yields/pages/{page['next']}")

    response = asyncio.run(main())
    assert response.status_code == 410
    assert response.headers["X-Error-Code"] == "CURSOR_EXPIRED"


@pytest.mark.parametrize("name", ["numbers", "yields"])
def test_the_cost_of_a_part_does_not_grow_with_the_list(name: str) -> None:
    async def cost(n: int) -> float:
        """Return the least CPU seconds of a part."""
        transport = httpx.ASGITransport(shop().asgi(hosts=["test"]))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            response = await client.post(f"/functions/{name}?limit=20", json={"n": n})
            costs = []
            for _ in range(20):
                began = time.process_time()
                response = await client.get(response.links["next"]["url"])
                costs.append(time.process_time() - began)
            return min(costs)

    assert asyncio.run(cost(60_000)) < 3 * asyncio.run(cost(1_000))


def test_a_reply_that_cannot_be_parted_is_sent_whole() -> None:
    for path, expected in (("name", "shop"), ("three", [1, 2, 3, 4])):
        (response,) = follow(shop(), f"/functions/{path}?limit=2")
        assert response.json() == {"result": expected}


@pytest.mark.parametrize("limit", ["0", "-1", "x", "", "1e3", "99999999999"])
def test_a_wrong_limit_is_refused(limit: str) -> None:
    (response,) = follow(shop(), f"/functions/rows?limit={limit}")

    assert response.status_code == 400
    assert "should be a positive integer" in response.json()["error"]


def test_a_list_that_is_no_longer_kept_is_gone() -> None:
    link = follow(shop(), "/functions/rows?limit=3")[0].links["next"]["url"]

    async def main() -> httpx.Response:
        transport = httpx.ASGITransport(shop().asgi(hosts=["test"]))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            return await client.get(link)

    response = asyncio.run(main())
    assert response.status_code == 410
    assert response.headers["X-Error-Code"] == "CURSOR_EXPIRED"


def test_the_rest_of_a_list_is_behind_the_gates_of_its_tool() -> None:
    app = App("shop")
    closed: list[str] = []

    def open_hours(ctx: Context, shop: str) -> None:
        if shop in closed:
            raise Forbidden("The shop is closed")

    @app.tool(requires=[open_hours])
    def rows(shop: str) -> list[int]:
        return [1, 2, 3]

    async def main() -> tuple[httpx.Response, httpx.Response]:
        transport = httpx.ASGITransport(app.asgi(hosts=["test"]))
        async with httpx.AsyncClient(transport=transport, base_url="http://test") as client:
            first = await client.post("/functions/rows?limit=2", json={"shop": "north"})
            link = first.links["next"]["url"]
            opened = await client.get(link)
            closed.append("north")
            return opened, await client.get(link)

    opened, refused = asyncio.run(main())
    assert opened.json() == {"result": [3]}
    assert (refused.status_code, refused.json()) == (403, {"error": "The shop is closed"})
