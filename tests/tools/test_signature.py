"""Signatures: functions refused at registration, names defined later, and Context parameters."""

from __future__ import annotations

import asyncio
import functools
import inspect
import subprocess
import sys
from collections.abc import Callable
from dataclasses import dataclass
from pathlib import Path
from typing import Annotated, Any, Optional, Union

import msgspec
import pytest

from answerback import App, Context, Depends
from answerback.errors import UndefinedAnnotation


def star(*args: int) -> int:
    return sum(args)


def stars(**kwargs: int) -> int:
    return sum(kwargs.values())


def wrapper(*args: Any, **kwargs: Any) -> Any:
    return star(*args, **kwargs)


def slash(x: int, /) -> int:
    return x


def untyped(x) -> int:  # type: ignore[no-untyped-def]  # the subject
    return int(x)


def yields(x: int) -> Any:
    yield x


async def yields_async(x: int) -> Any:
    yield x


def two_contexts(a: Context, b: Context | None) -> int:
    return 1


def takes_callable(fn: Callable[[], int]) -> int:
    return fn()


class Thing:
    def method(self, x: int) -> int:
        return x


@dataclass
class Point:
    x: int


@pytest.mark.parametrize(
    ("fn", "message"),
    [
        (star, r"tool 'star' takes \*args; name each argument, or take one list"),
        (stars, r"tool 'stars' takes \*\*kwargs without saying which arguments there are"),
        (slash, "tool 'slash' has positional-only parameters; remove the '/'"),
        (untyped, "parameter 'x' of tool 'untyped' has no type; write x: str"),
        (yields, "tool 'yields' is a generator; .* or declare what it yields, as in -> Iterator"),
        (yields_async, "tool 'yields_async' is a generator; return a list instead"),
        (two_contexts, "tool 'two_contexts' takes more than one Context; one is enough"),
        (takes_callable, "parameter 'fn' of tool 'takes_callable': .* is code, not data"),
        (Thing.method, r"'method' is a method; register it from an object: app.add_tool\(thing.m"),
        (wrapper, r"takes \*args and \*\*kwargs, .* @functools.wraps\(fn\) above that function"),
        (len, "built-in function len> cannot be a tool; write a def that calls it"),
        ("".upper, "cannot be a tool; write a def that calls it"),
        (dict, "<class 'dict'> cannot be a tool; write a def that calls it"),
        (Point, "Point'> cannot be a tool; write a def that calls it"),
    ],
)
def test_a_function_that_cannot_be_called_with_named_arguments_is_refused(
    fn: Callable[..., Any], message: str
) -> None:
    with pytest.raises(TypeError, match=message):
        App("test").add_tool(fn)


def test_a_refused_tool_is_not_registered() -> None:
    app = App("test")

    with pytest.raises(TypeError):
        app.tool(star)

    assert app.tools == {}


def area(shape: Shape, scale: int = 1) -> Area:
    """Its types are defined below it."""
    return Area(shape.width * shape.width * scale)


class Shape(msgspec.Struct):
    width: int


class Area(msgspec.Struct):
    size: int


def test_an_annotation_may_name_a_class_that_is_defined_later() -> None:
    app = App("test")
    width = globals().pop("Shape")
    app.add_tool(area)

    globals()["Shape"] = width
    reply = asyncio.run(app.call("area", shape={"width": 3}, scale=2))

    assert reply.data == Area(18)


def test_an_undefined_name_fails_the_call_and_is_named_in_the_log(
    caplog: pytest.LogCaptureFixture,
) -> None:
    def broken(x: Missing) -> int:  # type: ignore[name-defined]  # noqa: F821 -- the subject
        return 1

    app = App("test")
    app.add_tool(broken)

    reply = asyncio.run(app.call("broken", x=1))

    assert reply.error is not None
    assert reply.error.code == "TOOL_EXECUTION_ERROR"
    assert "Missing" not in reply.error.message
    problem = "tool 'broken' is annotated with a type that is not defined: name 'Missing'"
    assert problem in caplog.text


def test_an_undefined_name_is_named_when_schemas_are_made() -> None:
    def broken(x: Missing) -> int:  # type: ignore[name-defined]  # noqa: F821 -- the subject
        return 1

    def broken_inside(x: int) -> Hollow:
        return Hollow(x)

    @dataclass
    class Hollow:
        x: Missing  # type: ignore[name-defined]  # noqa: F821 -- the subject

    broken_inside.__annotations__["return"] = Hollow
    app = App("test")

    with pytest.raises(UndefinedAnnotation, match=f"import it at the top level of {__name__}"):
        _ = app.add_tool(broken).input_schema
    with pytest.raises(UndefinedAnnotation, match="tool 'broken_inside'"):
        _ = app.add_tool(broken_inside).output_schema


UNDEFINED = """
from __future__ import annotations
from answerback import App

app = App("undefined")

@app.tool
def broken(x: Missing) -> int:
    return 1

@app.tool
def fine(x: Point) -> int:
    return x.a

from dataclasses import dataclass

@dataclass
class Point:
    a: int

app.run()
"""


def run(path: Path, *words: str) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, str(path), *words]
    return subprocess.run(command, capture_output=True, text=True, timeout=30, check=False)


@pytest.mark.parametrize("words", ["list", "list --json", "openapi", "call broken x=1"])
def test_a_command_that_needs_an_undefined_name_prints_one_line(words: str, tmp_path: Path) -> None:
    path = tmp_path / "undefined.py"
    path.write_text(UNDEFINED)

    ended = run(path, *words.split())

    assert ended.returncode == 2
    assert ended.stdout == ""
    assert ended.stderr.startswith("error: tool 'broken' is annotated with a type that is not")
    assert ended.stderr.count("\n") == 1


def test_tools_beside_one_with_an_undefined_name_can_be_called(tmp_path: Path) -> None:
    path = tmp_path / "undefined.py"
    path.write_text(UNDEFINED)

    fine = run(path, "call", "fine", "--json", '{"x": {"a": 3}}')
    broken = run(path, "call", "broken", "--json", '{"x": 1}')

    assert (fine.returncode, fine.stdout) == (0, '{"result":3}\n')
    assert broken.returncode == 70
    assert "Missing" not in broken.stderr.splitlines()[-1]


def with_context(x: int, ctx: Context) -> str:
    return f"{ctx.tool} {x}"


def with_optional_context(x: int, ctx: Context | None = None) -> str:
    return f"{ctx.tool if ctx else None} {x}"


def with_old_optional_context(x: int, ctx: Optional[Context] = None) -> str:  # noqa: UP045 -- as some write it
    return f"{ctx.tool if ctx else None} {x}"


def with_noted_context(ctx: Annotated[Context, "the call"], x: int) -> str:
    return f"{ctx.tool} {x}"


async def with_context_async(ctx: Context, x: int) -> str:
    return f"{ctx.tool} {x}"


@pytest.mark.parametrize(
    "fn",
    [
        with_context,
        with_optional_context,
        with_old_optional_context,
        with_noted_context,
        with_context_async,
    ],
)
def test_the_context_is_injected_and_is_not_an_argument(fn: Callable[..., Any]) -> None:
    app = App("test")
    tool = app.add_tool(fn)

    reply = asyncio.run(app.call(tool.name, x=1))
    given = asyncio.run(app.call(tool.name, x=1, ctx={}))

    assert reply.data == f"{tool.name} 1"
    assert list(tool.input_schema["properties"]) == ["x"]
    assert given.error is not None
    assert given.error.code == "INVALID_ARGUMENTS"


def test_a_list_of_contexts_is_refused() -> None:
    def odd(each: list[Context]) -> int:
        return 1

    with pytest.raises(TypeError, match="parameter 'each' of tool 'odd'"):
        App("test").add_tool(odd)


Json = Union[str, list["Json"], dict[str, "Json"]]  # noqa: UP007 - as it was long written


def test_a_recursive_alias_is_refused_at_registration() -> None:
    def keep(value: Json) -> int:
        return 1

    with pytest.raises(TypeError, match="contains itself without a class in between; write Any"):
        App("test").add_tool(keep)


def area_of(width: int, height: int = 2, *, unit: str = "m") -> str:
    """Return an area."""
    return f"{width * height} {unit}"


async def area_later(width: int, height: int = 2, *, unit: str = "m") -> str:
    """Return an area."""
    return area_of(width, height, unit=unit)


class Ruler:
    def area(self, width: int, height: int = 2, *, unit: str = "m") -> str:
        """Return an area."""
        return area_of(width, height, unit=unit)


@pytest.mark.parametrize("fn", [area_of, area_later, Ruler().area])
def test_a_parameter_that_partial_fills_is_not_an_argument(fn: Callable[..., Any]) -> None:
    app = App("test")
    tool = app.add_tool(functools.partial(functools.partial(fn, 3), unit="km"), name="area")

    reply = asyncio.run(app.call("area", height=5))
    refused = asyncio.run(app.call("area", unit="cm"))

    assert list(tool.input_schema["properties"]) == ["height"]
    assert tool.description == "Return an area."
    assert reply.data == "15 km"
    assert refused.error is not None
    assert refused.error.code == "INVALID_ARGUMENTS"


def test_a_partial_has_the_name_of_its_function() -> None:
    assert App("test").add_tool(functools.partial(slash, 1)).name == "slash"


def test_a_dependency_may_be_a_partial() -> None:
    app = App("test")

    @app.tool
    def told(area: Annotated[str, Depends(functools.partial(area_of, 3, 4, unit="km"))]) -> str:
        return area

    assert asyncio.run(app.call("told")).data == "12 km"


def generated(**types: Any) -> Callable[..., Any]:
    def call(**kwargs: Any) -> Any:
        return kwargs

    parameters = [
        inspect.Parameter(name, inspect.Parameter.KEYWORD_ONLY, annotation=each)
        for name, each in types.items()
    ]
    call.__signature__ = inspect.Signature(parameters)  # type: ignore[attr-defined]
    return call


def test_the_parameters_come_from_a_signature_that_the_function_carries() -> None:
    app = App("test")
    app.add_tool(generated(id=int, shape="Shape"), name="get")

    reply = asyncio.run(app.call("get", id="7", shape={"width": 2}))
    refused = asyncio.run(app.call("get", id="x"))

    assert list(app.tools["get"].input_schema["properties"]) == ["id", "shape"]
    assert reply.data == {"id": 7, "shape": {"width": 2}}
    assert refused.error is not None
    assert refused.error.code == "INVALID_ARGUMENTS"


def test_the_outermost_signature_counts() -> None:
    @functools.wraps(area_of)
    def call(**kwargs: Any) -> Any:
        return area_of(3, **kwargs)

    signature = inspect.signature(area_of)
    kept = [each for name, each in signature.parameters.items() if name != "width"]
    call.__signature__ = signature.replace(parameters=kept)  # type: ignore[attr-defined]
    app = App("test")
    app.add_tool(call, name="area")

    reply = asyncio.run(app.call("area", unit="km"))

    assert reply.data == "6 km"


def test_a_parameter_that_the_signature_leaves_out_may_have_an_undefined_annotation() -> None:
    # From 3.14 on, Python defers annotations without the import.
    source = "" if sys.version_info >= (3, 14) else "from __future__ import annotations\n"
    source += "def get(id: int, hidden: OnlyForTypeCheckers = None) -> int:\n    return id\n"
    namespace: dict[str, Any] = {}
    exec(compile(source, "<test>", "exec", dont_inherit=True), namespace)
    get = namespace["get"]
    kept = inspect.Parameter("id", inspect.Parameter.KEYWORD_ONLY, annotation=int)
    get.__signature__ = inspect.Signature([kept])
    app = App("test")
    app.add_tool(get)

    reply = asyncio.run(app.call("get", id=7))

    assert reply.data == 7
