"""Tools that return pages or iterate, and the cursors between their pages."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Callable, Iterator
from dataclasses import dataclass
from typing import Annotated, Any

import pytest

from answerback import App, Depends, Page, Reply, success
from answerback.tools.paging import MAX_ITEMS


@dataclass
class Order:
    id: int


def call(app: App, name: str, **arguments: Any) -> Reply[Any]:
    return asyncio.run(app.call(name, **arguments))


def app_with(*functions: Callable[..., Any]) -> App:
    app = App("shop")
    for function in functions:
        app.add_tool(function)
    return app


def orders(cursor: str | None = None) -> Page[Order]:
    first = int(cursor or 0)
    rows = [Order(each) for each in range(first, min(first + 2, 5))]
    return Page(rows, total=5, next=str(first + 2) if first + 2 < 5 else None)


def counted(n: int) -> Iterator[Order]:
    for each in range(n):
        yield Order(each)


async def counted_async(n: int) -> AsyncIterator[Order]:
    for each in range(n):
        yield Order(each)


async def counted_later(n: int) -> AsyncIterator[Order]:
    return counted_async(n)


def test_the_pages_of_an_author_are_followed_to_their_end() -> None:
    app = app_with(orders)
    page = call(app, "orders").data
    found = list(page.items)
    while page.next is not None:
        page = call(app, "orders", cursor=page.next).data
        found += page.items

    assert found == [Order(each) for each in range(5)]
    assert (page.returned, page.total) == (1, 5)


def test_a_caller_cannot_make_a_cursor_or_use_one_of_another_tool() -> None:
    app = app_with(orders)
    app.add_tool(orders, name="other")
    foreign = call(app, "other").data.next

    for cursor in ("2", "", foreign, f"{foreign}A"):
        error = call(app, "orders", cursor=cursor).error
        assert error is not None
        assert error.code == "INVALID_ARGUMENTS"
        assert error.message == "Invalid arguments: this tool did not issue that cursor to you"


@pytest.mark.parametrize("function", [counted, counted_async, counted_later])
def test_an_iterator_is_read_into_a_page(function: Callable[..., Any]) -> None:
    reply = call(app_with(function), function.__name__, n=3)

    assert reply.data == Page([Order(0), Order(1), Order(2)], total=3)
    assert reply.to("rest")["items"] == [{"id": 0}, {"id": 1}, {"id": 2}]


@pytest.mark.parametrize("function", [counted, counted_async])
def test_an_iterator_without_end_is_refused(function: Callable[..., Any]) -> None:
    error = call(app_with(function), function.__name__, n=MAX_ITEMS + 1).error

    assert error is not None
    assert error.code == "TOO_LARGE"
    assert error.message == "The tool yields more than 100,000 items"


def pool() -> Iterator[list[str]]:
    steps: list[str] = []
    yield steps
    steps.append("pool closed")


def rows(steps: Annotated[list[str], Depends(pool)]) -> Iterator[list[str]]:
    yield steps
    steps.append("read to the end")


def test_a_generator_is_read_before_its_dependencies_end() -> None:
    reply = call(app_with(rows), "rows")

    assert reply.data.items == [["read to the end", "pool closed"]]


def test_the_argument_cursor_is_added_to_the_schema_with_a_description() -> None:
    paths = app_with(counted, orders).openapi()["paths"]
    schemas = {
        name: paths[f"/functions/{name}"]["post"]["requestBody"]["content"]["application/json"]
        for name in ("counted", "orders")
    }

    added = schemas["counted"]["schema"]["properties"]["cursor"]
    assert added["description"].startswith("The `next` of the previous page")
    assert schemas["orders"]["schema"]["properties"].keys() == {"cursor"}


def test_a_page_in_a_reply_keeps_its_text() -> None:
    def found(cursor: str | None = None) -> Reply[Page[Order]]:
        return success("Two orders", Page([Order(1), Order(2)], next="more"))

    reply = call(app_with(found), "found")

    assert reply.content[0].text == "Two orders"  # type: ignore[union-attr]  # a text
    assert reply.data.next != "more"
    assert call(app_with(found), "found", cursor=reply.data.next).ok


def test_a_next_without_a_parameter_for_it_is_the_authors_mistake() -> None:
    def lost() -> Page[int]:
        return Page([1], next="2")

    error = call(app_with(lost), "lost").error

    assert error is not None
    assert error.code == "INVALID_OUTPUT"
    assert "add cursor: str | None = None" in error.message


def numbered(cursor: int = 0) -> Page[int]:
    return Page([cursor])


def test_a_cursor_of_another_type_is_refused_at_registration() -> None:
    with pytest.raises(TypeError, match=r"'numbered' .* write cursor: str \| None = None"):
        app_with(numbered)
