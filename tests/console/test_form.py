"""The form of a tool: it sends what a person types, and shows what is wrong at its field."""

from __future__ import annotations

import json
import shlex
import sys
from collections.abc import Callable, Iterator
from datetime import datetime
from pathlib import Path
from typing import Any

import pytest
from tests.protocol.official_tools import MODULES, NODE
from tests.widgets.browser_driver import Browser

from .opened import opened

APP = Path(__file__).parents[1] / "apps" / "every_argument.py"
CALL = "role=button[name='Call']"
JSON = "#arguments-json"


class Form:
    """The form of one tool in the console."""

    def __init__(self, browser: Browser, tool: str) -> None:
        self.browser = browser
        browser.click(f"nav >> role=button[name=/^{tool}/]")
        browser.until(f"document.querySelector('.detail h2')?.innerText.includes({tool!r})")

    def field(self, name: str) -> str:
        return f"form [data-path={json.dumps(name)}]"

    def fill(self, name: str, text: str) -> None:
        self.browser.fill(self.field(name), text)

    def choose(self, name: str, option: str) -> None:
        self.browser.choose(self.field(name), option)

    def press(self, button: str) -> None:
        self.browser.click(f"form >> role=button[name={json.dumps(button)}]")

    def write(self, arguments: Any) -> None:
        text = arguments if isinstance(arguments, str) else json.dumps(arguments)
        self.browser.fill(JSON, text)

    def json(self) -> Any:
        return json.loads(self.browser.run(f"document.querySelector('{JSON}').value"))

    def shows(self, name: str) -> Any:
        """What the field shows."""
        return self.browser.run(f"document.querySelector({json.dumps(self.field(name))})?.value")

    def call(self) -> None:
        self.browser.click(CALL)

    def says(self, text: str) -> bool:
        """Wait until the page shows *text*."""
        shown = "document.querySelector('main').innerText"
        return bool(self.browser.until(f"{shown}.includes({json.dumps(text)})"))

    def marks(self, name: str, problem: str) -> bool:
        """Wait until *problem* stands at the field."""
        selector = json.dumps(f"[data-problems-of={json.dumps(name)}]")
        shown = f"document.querySelector({selector})?.innerText"
        return bool(self.browser.until(f"{shown}.includes({json.dumps(problem)})"))

    def problems(self) -> list[str]:
        texts = "[...document.querySelectorAll('form .problem')].map((each) => each.innerText)"
        return [text for text in self.browser.run(texts) if text]


@pytest.fixture(scope="module")
def shop(serve: Callable[..., Any]) -> Iterator[str]:
    with serve(APP) as server:
        yield server.url


@pytest.fixture
def tool(browser: Browser, shop: str) -> Iterator[Callable[[str], Form]]:
    browser.open("about:blank")
    browser.open(f"{shop}/")
    yield lambda name: Form(browser, name)
    assert browser.errors() == []


ORDER = {
    "customer": "Ada",
    "lines": [{"item": "pens", "count": 2}],
    "address": {"street": "Main Street 1"},
    "payment": {"type": "Card", "number": "1234"},
}


def test_what_is_typed_into_the_form_is_sent(tool: Callable[[str], Form]) -> None:
    form = tool("order")
    form.fill("customer", "Ada")
    form.fill("lines[0].item", "pens")
    form.fill("lines[0].count", "2")
    form.press("Add an item to lines")
    form.fill("lines[1].item", "ink")
    form.fill("address.street", "Main Street 1")
    form.choose("payment", "Invoice")
    form.fill("payment.days", "14")
    form.choose("colour", "blue")
    form.fill("day", "2026-01-31")
    form.choose("gift", "true")
    form.call()
    assert form.says(
        "Ada ordered 2 pens, 1 ink to Main Street 1 in Bern, paid by in 14 days, "
        "blue as a gift on 2026-01-31"
    )


def test_the_form_and_the_json_show_the_same_arguments(tool: Callable[[str], Form]) -> None:
    form = tool("order")
    form.write(ORDER)
    assert form.shows("customer") == "Ada"
    assert form.shows("lines[0].count") == "2"
    assert form.shows("payment.number") == "1234"
    form.fill("address.city", "Oslo")
    assert form.json() == {**ORDER, "address": {"street": "Main Street 1", "city": "Oslo"}}


def test_a_default_is_shown_and_left_out(tool: Callable[[str], Form]) -> None:
    form = tool("values")
    shown = form.browser.accessible("form .arguments")
    assert "default: 2" in shown
    assert form.json() == {}
    form.call()
    assert form.says("sent: [5, 0.5, 2, None, b'']")


def test_text_and_free_json_are_told_from_numbers(tool: Callable[[str], Form]) -> None:
    form = tool("values")
    form.choose("key", "text")
    form.browser.fill("#field-key-value", "5")
    form.choose("size", "3")
    form.fill("ratio", "0.25")
    form.fill("anything", '{"free": [1, null]}')
    assert form.json() == {"key": "5", "size": 3, "ratio": 0.25, "anything": {"free": [1, None]}}
    form.fill("anything", "free")
    form.call()
    assert form.marks("anything", "This is not JSON")
    form.fill("anything", '"free"')
    form.call()
    assert form.says("sent: ['5', 0.25, 3, 'free', b'']")


def test_lists_and_objects_can_be_given_and_taken_back(tool: Callable[[str], Form]) -> None:
    form = tool("groups")
    form.press("Add words")
    form.press("Add an item to words")
    form.fill("words[0]", "one")
    form.press("Add an item to words")
    form.fill("words[1]", "two")
    form.press("Remove words 1")
    form.press("Add days")
    form.browser.click("role=checkbox[name='tue']")
    form.press("Add stock")
    form.press("Add an entry to stock")
    form.browser.fill("#field-stock\\.key1-key", "pens")
    form.browser.press("Tab")
    form.fill("stock.pens", "7")
    form.press("Add tree")
    form.fill("tree.name", "top")
    form.press("Add folders")
    form.press("Add an item to folders")
    form.fill("tree.folders[0].name", "below")
    form.press("Add pair")
    form.fill("pair[0]", "2")
    form.fill("pair[1]", "b")
    assert form.json() == {
        "pair": [2, "b"],
        "words": ["two"],
        "days": ["tue"],
        "stock": {"pens": 7},
        "tree": {"name": "top", "folders": [{"name": "below"}]},
    }
    form.press("Leave out stock")
    form.call()
    assert form.says("sent: [(2, 'b'), ['two'], {'tue'}, None, ['top', 'below']]")


def test_null_is_sent_where_it_is_allowed(tool: Callable[[str], Form]) -> None:
    form = tool("values")
    form.browser.click("role=checkbox[name='ratio is null']")
    assert form.json() == {"ratio": None}
    form.call()
    assert form.says("sent: [5, None, 2")


def test_an_example_fills_the_form(tool: Callable[[str], Form]) -> None:
    form = tool("order")
    form.press('Use the example "Grace Hopper"')
    assert form.shows("customer") == "Grace Hopper"
    form.press("Fill in an example")
    assert form.json() == {
        "customer": "Ada",
        "lines": [{"item": "text"}],
        "address": {"street": "text"},
        "payment": {"type": "Card", "number": "0000"},
    }


PATTERNS = """
from typing import Annotated
from msgspec import Meta
from answerback import App

app = App("patterns")

@app.tool(read_only=True)
def send(
    code: Annotated[str, Meta(pattern=r"^[A-Z]{2}-[0-9]{4,6}$")],
    iban: Annotated[str, Meta(pattern=r"^CH[0-9]+$")],
    mail: Annotated[str, Meta(pattern=r"^[a-z]+@[a-z]+[.]org$")],
    colour: Annotated[str, Meta(pattern="^(red|blue)$")],
) -> str:
    return "sent"

app.run()
"""


def test_an_example_fits_plain_patterns_and_marks_what_is_left(
    browser: Browser, tmp_path: Path, serve: Callable[..., Any]
) -> None:
    (tmp_path / "patterns.py").write_text(PATTERNS)
    with serve(tmp_path / "patterns.py") as server:
        browser.open("about:blank")
        browser.open(f"{server.url}/")
        form = Form(browser, "send")
        form.press("Fill in an example")

        assert form.json() == {"code": "AA-0000", "iban": "CH0", "mail": "a@a.org"}
        assert form.marks("colour", "required")
        assert browser.until("document.activeElement.dataset.path") == "colour"


def test_a_call_without_required_arguments_is_not_sent(tool: Callable[[str], Form]) -> None:
    form = tool("order")
    form.call()
    assert form.marks("customer", "required")
    assert form.marks("lines[0].item", "required")
    assert form.marks("payment.number", "required")
    assert form.says("4 arguments are wrong.")
    focused = form.browser.until("document.activeElement.dataset.path")
    assert focused == "customer"
    described = form.browser.run(
        "document.getElementById(document.activeElement.getAttribute('aria-describedby')"
        ".split(' ').at(-1)).innerText"
    )
    assert described == "required"


@pytest.mark.parametrize(
    ("change", "path", "problem"),
    [
        ({"lines": [{"item": "a", "count": 0}]}, "lines[0].count", "at least 1"),
        ({"lines": [{"item": "a", "count": 1.5}]}, "lines[0].count", "expected an integer"),
        ({"lines": []}, "lines", "at least 1 item"),
        ({"lines": [{"item": "a"}] * 4}, "lines", "at most 3 items"),
        ({"address": {"street": "a", "city": "b"}}, "address.city", "at least 2 characters"),
        ({"address": 7}, "address", "expected an object, got 7"),
        ({"payment": {"type": "Card", "number": "12"}}, "payment.number", "like ^[0-9]{4}$"),
        ({"payment": {"type": "Invoice", "days": 61}}, "payment.days", "at most 60"),
        ({"colour": "green"}, "colour", 'one of "red", "blue", got "green"'),
        ({"customer": 7}, "customer", "expected text, got 7"),
        ({"gift": "yes"}, "gift", 'expected true or false, got "yes"'),
    ],
)
def test_what_is_wrong_stands_at_its_field_before_sending(
    tool: Callable[[str], Form], change: dict[str, Any], path: str, problem: str
) -> None:
    form = tool("order")
    form.write(ORDER | change)
    form.call()
    assert form.marks(path, problem)
    assert form.problems() == [form.problems()[0], "One argument is wrong."]


def test_an_unknown_argument_is_named_beside_the_button(tool: Callable[[str], Form]) -> None:
    form = tool("order")
    form.write(ORDER | {"custmer": "Ada"})
    form.call()
    assert form.says("custmer unknown; the names are: customer, lines")


def test_a_wrong_number_is_marked_when_its_field_is_left(tool: Callable[[str], Form]) -> None:
    form = tool("order")
    form.fill("lines[0].count", "two")
    assert form.problems() == []
    form.browser.press("Tab")
    assert form.marks("lines[0].count", 'expected an integer, got "two"')
    form.fill("lines[0].count", "2")
    form.browser.until("!document.querySelector('form .problem')?.innerText")


def test_what_the_server_refuses_stands_at_its_field(tool: Callable[[str], Form]) -> None:
    form = tool("order")
    form.write(ORDER | {"lines": [{"item": "pens", "count": 0}]})
    form.call()
    form.press("Call anyway")
    assert form.marks("lines[0].count", "expected int >= 1, got int 0")
    form.fill("customer", "Grace")
    assert form.marks("lines[0].count", "expected int >= 1, got int 0")
    form.fill("lines[0].count", "3")
    form.browser.until("!document.querySelector('form .field .problem')")
    form.call()
    assert form.says("Grace ordered 3 pens")


def test_broken_json_is_not_sent(tool: Callable[[str], Form]) -> None:
    form = tool("order")
    form.write('{"customer": ')
    assert form.says("This is not JSON")
    form.call()
    form.browser.until("document.activeElement.id === 'arguments-json'")
    form.write(ORDER)
    form.call()
    assert form.says("Ada ordered 2 pens")


def test_a_call_needs_no_mouse(tool: Callable[[str], Form]) -> None:
    form = tool("ping")
    browser = form.browser
    browser.run("document.activeElement.blur()")
    browser.press("/")
    for key in "order":
        browser.press(key)
    browser.until("document.querySelectorAll('nav li').length === 2")
    browser.press("ArrowDown")
    browser.press("Enter")
    browser.until("document.querySelector('form [data-path=customer]') && true")
    form.write(ORDER)
    browser.press("Control+Enter")
    assert form.says("Ada ordered 2 pens")
    # The call goes on over the other wires; Enter does nothing meanwhile.
    browser.until("!document.querySelector('.call-row [type=submit]').disabled")
    browser.run("document.querySelector('[data-path=customer]').focus()")
    form.fill("customer", "Grace")
    browser.press("Enter")
    assert form.says("Grace ordered 2 pens")


def test_hostile_names_and_schemas_are_shown_as_text(tool: Callable[[str], Form]) -> None:
    form = tool("hostile")
    form.call()
    assert form.marks("constructor", "required")
    form.fill("constructor", "a")
    form.fill('["it\'s <b>"]', "b")
    form.fill("words", "c")
    assert form.json() == {"constructor": "a", "it's <b>": "b", "words": "c"}
    assert not form.browser.run("document.querySelector('main b, main img') && true")
    form.call()
    assert form.says("('constructor', 'a')")


def test_a_schema_that_refers_to_itself_has_a_form(tool: Callable[[str], Form]) -> None:
    form = tool("endless")
    form.write({"itself": 7, "all": "b"})
    form.fill("elsewhere", "[1]")
    form.call()
    assert form.says("sent: 7 b [1]")


def test_a_button_is_pressed_though_a_problem_appears_above_it(
    tool: Callable[[str], Form],
) -> None:
    form = tool("groups")
    form.write({"pair": ["one", "a"], "words": []})
    form.browser.click(form.field("pair[0]"))
    form.press("Add an item to words")
    assert form.marks("pair[0]", 'expected an integer, got "one"')
    assert form.json()["words"] == [None]


def test_a_picked_time_gets_the_offset_that_its_format_needs(tool: Callable[[str], Form]) -> None:
    form = tool("hostile")
    form.fill("at", "2026-01-31T10:20:30")
    picked = datetime.fromisoformat(form.json()["at"])
    assert picked.replace(tzinfo=None) == datetime(2026, 1, 31, 10, 20, 30)
    assert picked.tzinfo is not None
    form.write({"at": picked.isoformat()})
    assert form.shows("at") == "2026-01-31T10:20:30"
    form.write({"at": "tomorrow"})
    assert form.shows("at") == "tomorrow"


FASTMCP = """
from typing import Annotated
from fastmcp import FastMCP
from pydantic import BaseModel, Field

server = FastMCP("shop")

class Line(BaseModel):
    count: Annotated[int, Field(ge=1)]

@server.tool
def order(lines: list[Line]) -> str:
    return "ordered"

server.run(show_banner=False)
"""
EVERYTHING = MODULES / "@modelcontextprotocol" / "server-everything" / "dist" / "index.js"


def test_what_pydantic_refuses_stands_at_its_field(browser: Browser, tmp_path: Path) -> None:
    server = tmp_path / "server.py"
    server.write_text(FASTMCP)
    with opened(f"{shlex.quote(sys.executable)} {server}") as console:
        browser.open(console.page)
        form = Form(browser, "Order")
        form.write({"lines": [{"count": 0}]})
        form.call()
        form.press("Call anyway")

        assert form.marks("lines[0].count", "Input should be greater than or equal to 1")


def test_what_the_typescript_sdk_refuses_stands_at_its_field(browser: Browser) -> None:
    with opened(shlex.join([str(NODE), str(EVERYTHING), "stdio"])) as console:
        browser.open(console.page)
        form = Form(browser, "Get Sum Tool")
        form.fill("a", "x")
        form.call()
        form.press("Call anyway")

        assert form.marks("a", "expected number, received string")
