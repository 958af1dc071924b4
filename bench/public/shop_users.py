"""The users of TM Dev Lab's second benchmark: four short sessions, again and again.

The requests, their order, the arguments, the pause and the checks are those of
http4k/benchmark-mcp-servers-v2 at 64ddc2e.
"""

from __future__ import annotations

from collections.abc import Callable
from typing import Any

import msgspec

from .http_answers import Answer, message_in
from .steps import (
    Pause,
    Send,
    User,
    check_initialized,
    check_listed,
    delete,
    expect,
    post,
    text_of,
    wrong,
)

PAUSE = 0.05
TOOLS = {"search_products", "get_user_cart", "checkout"}
TOTAL_FOUND = 2251
ITEMS = [{"product_id": 42, "quantity": 2}, {"product_id": 1337, "quantity": 1}]
_LIST = "tools/list"
_INITIALIZE = {
    "protocolVersion": "2024-11-05",
    "capabilities": {},
    "clientInfo": {"name": "k6-bench", "version": "1.0"},
}


class _Found(msgspec.Struct):
    total_found: int
    products: list[Any]
    top10_popular_ids: list[int]


class _Items(msgspec.Struct):
    items: list[Any]


class _Cart(msgspec.Struct):
    user_id: str
    cart: _Items
    recent_history: list[Any]


class _Order(msgspec.Struct):
    user_id: str
    status: str
    total: float
    items_count: int


_found = msgspec.json.Decoder(_Found)
_cart = msgspec.json.Decoder(_Cart)
_order = msgspec.json.Decoder(_Order)


def shop_user(port: int, number: int) -> User:
    """Send the requests of one user, who has a cart and a history."""
    user = f"user-{number % 1000:05d}"
    search = {"category": "Electronics", "min_price": 50.0, "max_price": 500.0, "limit": 10}
    calls: list[tuple[str, dict[str, Any], Callable[[str, Answer, str], None]] | None] = [
        ("search_products", search, check_search),
        ("get_user_cart", {"user_id": user}, check_cart),
        ("checkout", {"user_id": user, "items": ITEMS}, check_order),
        None,  # Lists the tools.
    ]
    opening = post(port, _request(1, "initialize", _INITIALIZE), {})
    # Each begins at another session, so that a short round has the same mix as a long one.
    first = number % len(calls)
    calls = calls[first:] + calls[:first]
    while True:
        for call in calls:
            if call is None:
                answer = yield from _session(port, opening, _LIST, _request(2, _LIST, {}))
                check_listed(_LIST, 2, TOOLS, answer, message_in(answer))
            else:
                name, arguments, check = call
                request = _request(2, "tools/call", {"name": name, "arguments": arguments})
                answer = yield from _session(port, opening, name, request)
                check(name, answer, text_of(name, 2, answer, message_in(answer)))
        yield Pause(PAUSE)


def _session(port: int, opening: bytes, name: str, request: dict[str, Any]) -> Any:
    """Open a session, send one request in it, end it, and return the answer to the request."""
    opened = yield Send(opening, "initialize")
    check_initialized("initialize", 1, opened, message_in(opened))
    session = opened.session
    headers = {"Mcp-Session-Id": session.decode()} if session else {}
    note = {"jsonrpc": "2.0", "method": "notifications/initialized"}
    noted = yield Send(post(port, note, headers), "initialized", counted=False)
    expect(noted.status in (200, 202, 204), "initialized", noted, "the status 202")
    answer = yield Send(post(port, request, headers), name)
    if session:
        ended = yield Send(delete(port, session), "delete", counted=False)
        expect(ended.status in (200, 202, 204), "delete", ended, "the status 200 or 204")
    return answer


def _request(id: int, method: str, params: dict[str, Any]) -> dict[str, Any]:
    return {"jsonrpc": "2.0", "id": id, "method": method, "params": params}


def check_search(name: str, answer: Answer, text: str) -> None:
    try:
        found = _found.decode(text)
    except msgspec.DecodeError as exc:
        raise wrong(name, answer, str(exc)) from None
    expect(found.total_found == TOTAL_FOUND, name, answer, f"total_found {TOTAL_FOUND}")
    expect(len(found.products) == 10, name, answer, "10 products")
    expect(len(found.top10_popular_ids) == 10, name, answer, "10 popular ids")


def check_cart(name: str, answer: Answer, text: str) -> None:
    try:
        found = _cart.decode(text)
    except msgspec.DecodeError as exc:
        raise wrong(name, answer, str(exc)) from None
    expect(len(found.cart.items) >= 1, name, answer, "an item in the cart")
    expect(len(found.recent_history) == 5, name, answer, "5 entries of the history")


def check_order(name: str, answer: Answer, text: str) -> None:
    try:
        found = _order.decode(text)
    except msgspec.DecodeError as exc:
        raise wrong(name, answer, str(exc)) from None
    expect(found.status == "confirmed", name, answer, "the status confirmed")
    expect(found.total > 0, name, answer, "a total")
    expect(found.items_count == 2, name, answer, "2 items")
