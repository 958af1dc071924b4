"""The 30 calls that each client makes, and the texts that its answer must contain."""

from __future__ import annotations

from typing import Any, NamedTuple


class ClientCall(NamedTuple):
    tool: str
    arguments: dict[str, Any]
    expected: tuple[str, ...]


_HOME = {"street": "Main", "city": "Oslo"}
CALLS = [
    ClientCall("nothing", {}, ()),
    ClientCall("hello", {}, ("žluťoučký",)),
    *(ClientCall("add", {"x": number}, (str(number + 3),)) for number in (7, -3, 2**40)),
    ClientCall("add", {"x": 1, "y": 41}, ("42",)),
    ClientCall("stats", {"values": [1, 2, 3]}, ("sum", "6", "mean", "2")),
    ClientCall("stats", {"values": [0.5]}, ("0.5",)),
    ClientCall("product", {"sku": "A7"}, ("A7", "9.5", "new")),
    ClientCall("product", {"sku": "ž"}, ("ž",)),
    ClientCall("products", {"count": 0}, ()),
    ClientCall("products", {"count": 3}, ("A0", "A1", "A2")),
    ClientCall("customer", {"who": {"name": "Ada", "home": _HOME}}, ("Ada", "Main", "Oslo")),
    ClientCall("customer", {"who": {"name": "Eve", "home": {"street": "Side"}}}, ("Eve", "Oslo")),
    ClientCall("maybe", {"value": "here"}, ("here",)),
    ClientCall("maybe", {}, ()),
    ClientCall("paint", {"colour": "red", "on": "2026-01-02"}, ("red 2026-01-02",)),
    ClientCall("paint", {"colour": "green", "on": "2026-12-31"}, ("green 2026-12-31",)),
    ClientCall("divide", {"number": 17, "by": 5}, ("3", "2")),
    ClientCall("anything", {"value": "a text"}, ("a text",)),
    ClientCall("anything", {"value": "☃"}, ("☃",)),
    ClientCall("both", {}, ("7",)),
    ClientCall("steps", {"count": 3}, ("3",)),
    ClientCall("steps", {}, ("3",)),
    ClientCall("product", {"sku": "none"}, ("no product none",)),
    ClientCall("broken", {}, ("failed unexpectedly",)),
    ClientCall("too_slow", {}, ("took longer than 0.05 seconds",)),
    ClientCall("picture", {}, ()),
    ClientCall("report", {}, ()),
    ClientCall("hello", {}, ("kůň",)),
]
SECRET = "hunter2"
