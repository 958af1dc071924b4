"""Paths, addresses, time zones, patterns and authors' own types in arguments and results."""

from __future__ import annotations

import asyncio
import dataclasses
import json
import re
import subprocess
import sys
from collections.abc import Callable, Iterator
from ipaddress import (
    IPv4Address,
    IPv4Interface,
    IPv4Network,
    IPv6Address,
    IPv6Interface,
    IPv6Network,
)
from pathlib import Path, PurePath, PurePosixPath, PureWindowsPath
from typing import Any
from zoneinfo import ZoneInfo

import pytest

from answerback import App, Reply, register_type
from answerback.types import codecs


@dataclasses.dataclass
class Host:
    address: IPv4Address
    config: Path = Path("/etc")


def _echo(annotation: Any) -> Callable[..., Any]:
    def echo(value: Any) -> Any:
        return value

    echo.__annotations__ = {"value": annotation, "return": annotation}
    return echo


def _call(annotation: Any, value: Any, **options: Any) -> Reply[Any]:
    app = App("codecs", **options)
    app.add_tool(_echo(annotation))
    return asyncio.run(app.call("echo", value=value))


STANDARD: list[tuple[Any, Any, Any]] = [
    (Path, "/a/b.txt", Path("/a/b.txt")),
    (PurePath, "a", PurePath("a")),
    (PurePosixPath, "/a", PurePosixPath("/a")),
    (PureWindowsPath, "C:\\a", PureWindowsPath("C:\\a")),
    (IPv4Address, "192.0.2.1", IPv4Address("192.0.2.1")),
    (IPv6Address, "2001:db8::1", IPv6Address("2001:db8::1")),
    (IPv4Network, "192.0.2.0/24", IPv4Network("192.0.2.0/24")),
    (IPv6Network, "2001:db8::/32", IPv6Network("2001:db8::/32")),
    (IPv4Interface, "192.0.2.1/24", IPv4Interface("192.0.2.1/24")),
    (IPv6Interface, "2001:db8::1/32", IPv6Interface("2001:db8::1/32")),
    (ZoneInfo, "Europe/Oslo", ZoneInfo("Europe/Oslo")),
    (re.Pattern, "^a+$", re.compile("^a+$")),
    (re.Pattern[str], "^a+$", re.compile("^a+$")),
    (list[Path], ["a", "b"], [Path("a"), Path("b")]),
    (Path | None, None, None),
    (Path | None, "a", Path("a")),
    (IPv4Address | IPv6Address, "::1", IPv6Address("::1")),
    (IPv4Address | str, "example.org", "example.org"),
    (IPv4Address | str, "192.0.2.1", IPv4Address("192.0.2.1")),
    (str | Path, "a", "a"),
    (dict[str, Path], {"x": "a"}, {"x": Path("a")}),
    (Host, {"address": "192.0.2.1"}, Host(IPv4Address("192.0.2.1"))),
]


@pytest.mark.parametrize(("annotation", "sent", "value"), STANDARD)
def test_a_type_of_the_standard_library_is_an_argument_and_a_result(
    annotation: Any, sent: Any, value: Any
) -> None:
    reply = _call(annotation, sent)

    assert reply.error is None
    assert reply.data == value
    assert type(reply.data) is type(value)


def test_types_of_the_standard_library_are_strings_in_an_undeclared_result() -> None:
    app = App("codecs")

    @app.tool
    def places() -> Any:
        return {"home": Path("/home"), "zone": ZoneInfo("UTC"), "ip": IPv4Address("192.0.2.1")}

    reply = asyncio.run(app.call("places"))

    assert json.loads(reply.encoded or b"") == {"home": "/home", "zone": "UTC", "ip": "192.0.2.1"}


@pytest.mark.parametrize(
    ("annotation", "schema"),
    [
        (Path, {"type": "string"}),
        (IPv4Address, {"type": "string", "format": "ipv4"}),
        (IPv6Address, {"type": "string", "format": "ipv6"}),
        (IPv4Network, {"type": "string"}),
        (ZoneInfo, {"type": "string"}),
        (re.Pattern[str], {"type": "string", "format": "regex"}),
        (Path | str, {"type": "string"}),
    ],
)
def test_a_type_of_the_standard_library_has_the_format_that_json_schema_has(
    annotation: Any, schema: dict[str, Any]
) -> None:
    app = App("codecs")
    app.add_tool(_echo(annotation))

    assert app.tools["echo"].input_schema["properties"]["value"] == schema


@pytest.mark.parametrize(
    ("annotation", "sent", "message"),
    [
        (Path, 7, "value: expected Path, got int 7"),
        (IPv4Address, 7, "value: expected IPv4Address, got int 7; write it like 192.0.2.1"),
        (
            IPv4Address,
            "localhost",
            "value: expected IPv4Address, got str 'localhost'; write it like 192.0.2.1",
        ),
        (
            ZoneInfo,
            "Nowhere",
            "value: expected ZoneInfo, got str 'Nowhere'; write it like Europe/Oslo",
        ),
        (re.Pattern, "(", "value: expected Pattern, got str '('; write it like ^[a-z]+$"),
        (
            Host,
            {"address": "x"},
            "value.address: expected IPv4Address, got str 'x'; write it like 192.0.2.1",
        ),
    ],
)
def test_a_string_that_is_no_value_of_the_type_is_refused_with_an_example(
    annotation: Any, sent: Any, message: str
) -> None:
    reply = _call(annotation, sent)

    assert reply.error is not None
    assert reply.error.message == f"Invalid arguments: {message}"


def test_a_path_is_given_as_text_on_the_command_line(tmp_path: Path) -> None:
    target = tmp_path / "paths.py"
    target.write_text(
        "from pathlib import Path\n"
        "from answerback import App\n"
        "app = App('paths')\n"
        "@app.tool\n"
        "def name(path: Path) -> str:\n"
        "    return path.name\n"
    )
    command = [sys.executable, "-m", "answerback", "call", str(target), "name", "path=/a/b.txt"]

    done = subprocess.run(command, capture_output=True, text=True, timeout=60, check=False)

    assert (done.returncode, done.stdout) == (0, '{"result":"b.txt"}\n')


class Money:
    """A class that JSON does not know."""

    def __init__(self, cents: int) -> None:
        self.cents = cents

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Money) and other.cents == self.cents

    def __hash__(self) -> int:
        return hash(self.cents)


class Tip(Money):
    pass


def _read_money(value: Any) -> Money:
    if not isinstance(value, dict) or not isinstance(value.get("cents"), int):
        raise ValueError("not money")
    return Money(value["cents"])


@dataclasses.dataclass
class Bill:
    total: Money


@pytest.fixture
def registered() -> Iterator[None]:
    """`Money` is registered while a test runs; the table is the process's."""
    before = dict(codecs._REGISTERED)
    register_type(
        Money,
        encode=lambda money: {"cents": money.cents},
        decode=_read_money,
        schema={"type": "object", "properties": {"cents": {"type": "integer"}}},
    )
    yield
    codecs._REGISTERED.clear()
    codecs._REGISTERED.update(before)


@pytest.mark.parametrize(
    ("annotation", "sent", "value"),
    [
        (Money, {"cents": 5}, Money(5)),
        (Money, '{"cents": 5}', Money(5)),
        (list[Money], [{"cents": 5}], [Money(5)]),
        (Money | None, None, None),
        (Money | int, {"cents": 5}, Money(5)),
        (Bill, {"total": {"cents": 5}}, Bill(Money(5))),
    ],
)
def test_a_registered_type_is_an_argument_a_result_and_a_field(
    registered: None, annotation: Any, sent: Any, value: Any
) -> None:
    assert _call(annotation, sent).data == value


def test_a_registered_type_has_its_own_schema(registered: None) -> None:
    app = App("codecs")
    app.add_tool(_echo(Money))
    schema = {"type": "object", "properties": {"cents": {"type": "integer"}}}

    assert app.tools["echo"].input_schema["properties"]["value"] == schema


def test_a_value_of_another_kind_than_the_schema_s_never_reaches_decode() -> None:
    class Rows:
        pass

    before = dict(codecs._REGISTERED)
    seen: list[Any] = []
    register_type(Rows, encode=list, decode=seen.append, schema={"type": "array"})
    try:
        reply = _call(Rows, "x")
    finally:
        codecs._REGISTERED.clear()
        codecs._REGISTERED.update(before)

    assert seen == []
    assert reply.error is not None
    assert reply.error.message == "Invalid arguments: value: expected Rows, got str 'x'"


def test_a_value_that_decode_refuses_is_an_invalid_argument(registered: None) -> None:
    reply = _call(Money, {"euros": 5})

    assert reply.error is not None
    assert reply.error.message == "Invalid arguments: value: expected Money, got object"


def test_a_subclass_of_a_registered_type_is_encoded_as_its_base(registered: None) -> None:
    app = App("codecs")

    @app.tool
    def tip() -> Any:
        return [Tip(3)]

    assert asyncio.run(app.call("tip")).encoded == b'[{"cents":3}]'


def test_a_number_that_is_not_finite_inside_a_registered_type_is_refused() -> None:
    class Curve:
        pass

    before = dict(codecs._REGISTERED)
    register_type(Curve, encode=lambda curve: [1.0, float("nan")], schema={"type": "array"})
    try:
        app = App("codecs")

        def curve() -> Any:
            return Curve()

        curve.__annotations__ = {"return": Curve}
        app.add_tool(curve)
        reply = asyncio.run(app.call("curve"))
    finally:
        codecs._REGISTERED.clear()
        codecs._REGISTERED.update(before)

    assert reply.error is not None
    assert "[1]: a number that is not finite" in reply.error.message


def test_a_type_without_decode_is_refused_as_an_argument() -> None:
    class Drawing:
        pass

    before = dict(codecs._REGISTERED)
    register_type(Drawing, encode=lambda drawing: "drawn")
    try:
        with pytest.raises(TypeError, match="Drawing is registered without decode"):
            App("codecs").add_tool(_echo(Drawing))
    finally:
        codecs._REGISTERED.clear()
        codecs._REGISTERED.update(before)


def test_a_type_is_registered_once(registered: None) -> None:
    with pytest.raises(ValueError, match="Money is already registered"):
        register_type(Money, encode=str)


@pytest.mark.parametrize("cls", [int, Bill, Path])
def test_a_type_that_is_served_already_cannot_be_registered(registered: None, cls: type) -> None:
    with pytest.raises(ValueError, match="already has a JSON form"):
        register_type(cls, encode=str)
