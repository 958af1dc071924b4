"""The recipes of docs/guides/own-types.md, with stand-ins for the libraries' classes."""

from __future__ import annotations

import asyncio
import re
import sys
import types
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from tests.docs.page_runner import blocks

from answerback import App, register_type
from answerback.core.content import Image
from answerback.types import codecs

PAGE = Path(__file__).parent.parent.parent / "docs" / "guides" / "own-types.md"


class Frame:
    """The part of a data frame that the recipes of pandas and polars use."""

    def __init__(self, rows: list[dict[str, Any]]) -> None:
        self.rows = rows

    @classmethod
    def from_records(cls, rows: list[dict[str, Any]]) -> Frame:
        return cls(rows)

    def astype(self, _: type) -> Frame:
        return self

    def notna(self) -> None: ...

    def where(self, _: None, __: None) -> Frame:
        return self

    def fill_nan(self, _: None) -> Frame:
        return self

    def to_dict(self, orient: str) -> list[dict[str, Any]]:
        assert orient == "records"
        return self.rows

    def to_dicts(self) -> list[dict[str, Any]]:
        return self.rows


class PolarsFrame(Frame):
    pass


class Scalar:
    def __init__(self, number: float) -> None:
        self.number = number

    def item(self) -> float:
        return self.number


class Array:
    def __init__(self, items: list[Any]) -> None:
        self.items = items

    def tolist(self) -> list[Any]:
        return self.items


class Picture:
    def save(self, buffer: Any, *, format: str) -> None:
        buffer.write(f"{format} bytes".encode())


STAND_INS: dict[str, dict[str, Any]] = {
    "pandas": {"DataFrame": Frame},
    "polars": {"DataFrame": PolarsFrame, "from_dicts": PolarsFrame},
    "numpy": {"ndarray": Array, "generic": Scalar, "asarray": Array},
    "PIL": {},
    "PIL.Image": {"Image": Picture},
}


@pytest.fixture
def libraries(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    for name, members in STAND_INS.items():
        module = types.ModuleType(name)
        vars(module).update(members)
        monkeypatch.setitem(sys.modules, name, module)
    before = dict(codecs._REGISTERED)
    yield
    codecs._REGISTERED.clear()
    codecs._REGISTERED.update(before)


def _run_recipe(library: str) -> dict[str, Any]:
    (recipe,) = (
        block.text
        for block in blocks(PAGE)
        if block.kind == "py" and re.search(rf"^(import|from) {library}\b", block.text, re.M)
    )
    names: dict[str, Any] = {"register_type": register_type}
    exec(compile(recipe, str(PAGE), "exec"), names)
    return names


def _tools(annotation: Any) -> App:
    app = App("recipes")

    def echo(value: Any) -> Any:
        return value

    echo.__annotations__ = {"value": annotation, "return": annotation}
    app.add_tool(echo)
    return app


@pytest.mark.parametrize("library", ["pandas", "polars"])
def test_the_recipe_for_a_data_frame_takes_and_gives_rows(libraries: None, library: str) -> None:
    names = _run_recipe(library)
    app = _tools(names[library].DataFrame)

    reply = asyncio.run(app.call("echo", value=[{"a": 1}, {"a": 2}]))

    assert reply.encoded == b'[{"a":1},{"a":2}]'
    assert app.tools["echo"].output_schema is not None


def test_the_recipe_for_numpy_takes_arrays_and_gives_arrays_and_numbers(
    libraries: None,
) -> None:
    names = _run_recipe("numpy")
    app = _tools(names["numpy"].ndarray)

    @app.tool
    def total() -> Any:
        return {"total": names["numpy"].generic(3)}

    arrays = asyncio.run(app.call("echo", value=[[1, 2], [3, 4]]))
    numbers = asyncio.run(app.call("total"))

    assert arrays.encoded == b"[[1,2],[3,4]]"
    assert numbers.encoded == b'{"total":3}'


def test_the_recipe_for_pil_makes_an_image_block(libraries: None) -> None:
    names = _run_recipe("PIL")

    block = names["block_of"](names["Picture"]())

    assert block == Image(b"PNG bytes", "image/png")
