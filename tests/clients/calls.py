"""The 30 calls that each client makes, and the answers that it must show."""

from __future__ import annotations

import json
from collections.abc import Sequence
from typing import Any, NamedTuple

from tests.clients.app import PIXEL_BASE64, REPORT


class ClientCall(NamedTuple):
    tool: str
    arguments: dict[str, Any]
    data: Any = None
    """The structured content, which is also the body of the REST response."""
    text: str = ""
    """The text of all blocks; of a failure a part of its message."""
    codes: tuple[str | int, ...] = ()
    """The codes of a failure, any of which is right; none for a success."""
    image: str | None = None
    link: str | None = None
    message: str = ""
    """The member that MCP adds to the data, for hosts that show nothing else."""
    line: str = ""
    """The line that MCP adds to the text, for hosts that do not show links."""


def _gives(tool: str, data: Any, **arguments: Any) -> ClientCall:
    """A call whose text is its data as JSON."""
    text = json.dumps(data, ensure_ascii=False, separators=(",", ":"))
    return ClientCall(tool, arguments, data, text)


def _says(tool: str, text: str, **arguments: Any) -> ClientCall:
    """A call that returns a str, which is its text."""
    return ClientCall(tool, arguments, {"result": text}, text)


def _fails(tool: str, codes: tuple[str | int, ...], text: str, **arguments: Any) -> ClientCall:
    return ClientCall(tool, arguments, None, text, codes)


def _product(sku: str, price: float = 9.5, tags: tuple[str, ...] = ("new",)) -> dict[str, Any]:
    return {"sku": sku, "price": price, "tags": [*tags]}


_ADA = {"name": "Ada", "home": {"street": "Main", "city": "Oslo"}}
_EVE = {"name": "Eve", "home": {"street": "Side", "city": "Oslo"}}
_THREE = [_product(f"A{number}", number, ()) for number in range(3)]
CALLS = [
    _gives("nothing", {}),
    _says("hello", "Hello, žluťoučký kůň!"),
    *(_gives("add", {"result": number + 3}, x=number) for number in (7, -3, 2**40)),
    _gives("add", {"result": 42}, x=1, y=41),
    _gives("stats", {"sum": 6.0, "mean": 2.0}, values=[1, 2, 3]),
    _gives("stats", {"sum": 0.5, "mean": 0.5}, values=[0.5]),
    _gives("product", _product("A7"), sku="A7"),
    _gives("product", _product("ž"), sku="ž"),
    _gives("products", {"result": []}, count=0),
    _gives("products", {"result": _THREE}, count=3),
    _gives("customer", _ADA, who=_ADA),
    _gives("customer", _EVE, who={"name": "Eve", "home": {"street": "Side"}}),
    _says("maybe", "here", value="here"),
    _gives("maybe", {"result": None}),
    _says("paint", "red 2026-01-02", colour="red", on="2026-01-02"),
    _says("paint", "green 2026-12-31", colour="green", on="2026-12-31"),
    _gives("divide", {"result": [3, 2]}, number=17, by=5),
    _says("anything", "a text", value="a text"),
    _says("anything", "☃", value="☃"),
    ClientCall(
        "both", {}, {"result": 7}, 'There are seven.\n{"result":7}', message="There are seven."
    ),
    _gives("steps", {"result": 3}, count=3),
    _gives("steps", {"result": 3}),
    _fails("product", ("SKU_UNKNOWN",), "no product none", sku="none"),
    _fails("broken", ("TOOL_EXECUTION_ERROR",), "The tool failed unexpectedly (reference "),
    _fails("too_slow", ("TIMED_OUT",), "The tool took longer than 0.05 seconds"),
    # From MCP 2026-07-28 on it is an error of the protocol, with a number for its code.
    _fails("wipe", ("INPUT_REQUIRED", -32021), "does not offer: elicitation", folder="/x"),
    ClientCall("picture", {}, image=PIXEL_BASE64),
    ClientCall("report", {}, text="See the report.", link=REPORT, line=f"report: {REPORT}"),
]
SECRET = "hunter2"


def faults(call: ClientCall, answer: dict[str, Any], lacks: Sequence[str]) -> list[str]:
    """The parts of *answer* that differ from the expected, but for those that the client lacks."""
    failed = bool(call.codes)
    data = [call.data, {**call.data, "message": call.message}] if call.message else [call.data]
    texts = [call.text, f"{call.text}\n{call.line}"] if call.line else [call.text]
    found = {
        "error": answer.get("error", False) is failed,
        "message": not failed or call.text in answer.get("text", ""),
        "text": failed or answer.get("text", "") in texts,
        "data": answer.get("data") in data,
        "code": answer.get("code") in (call.codes or (None,)),
        "image": answer.get("image") == call.image,
        "link": answer.get("link") == call.link,
        "secret": SECRET not in json.dumps(answer),
    }
    ignored = {*lacks, *(part.removeprefix(f"{call.tool}.") for part in lacks)}
    return [part for part, right in found.items() if not right and part not in ignored]
