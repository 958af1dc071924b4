"""Patterns of authors: no string makes a search take longer than linear time."""

import sys
import time
from typing import Annotated, Any

import msgspec
import pydantic
import pytest

from answerback import App
from answerback.types.arguments import Arguments, Parameter
from answerback.types.patterns import is_simple
from answerback.types.problems import InvalidArguments

SIMPLE = [
    "a",
    "[a-z]+",
    "^[a-z]+$",
    "^[a-z]+@example\\.com$",
    "^[0-9]{1,3}(?:\\.[0-9]{1,3})?$",
    "^[A-Z]{3,30}-[0-9]{1,12}$",
    "^(?P<word>foo|foobar)$",
    "^a|b$",
    "^\\S+$",
    "^[\\w.]*$",
    "^.{1,5000}$",
    "\\A[]()*+]+\\Z",
    "^[^]*+]+\\*$",
    "^{a}$",
]
# Each with a string of which a prefix matches in many ways, and the whole does not.
SLOW = [
    ("^(a+)+$", "a" * 5_000 + "!"),
    ("^(a|aa)+$", "a" * 5_000 + "!"),
    ("^(a{1,3}){20}$", "a" * 5_000 + "!"),
    ("^a*a*$", "a" * 50_000 + "!"),
    ("^a{1,900}a{1,900}$", "a" * 50_000 + "!"),
    ("^a{0,}a{500,}$", "a" * 50_000 + "!"),
    ("^b|[a-z]+@", "a" * 50_000 + "!"),
    ("(?:^|a)a+!!", "a" * 50_000 + "!"),
    ("[a-z]+@", "a" * 50_000 + "!"),
    ("[a-z]+$", "a" * 50_000 + "!"),
    ("^.*x.*y$", "x" * 50_000 + "!"),
    ("(?m)^\\s*a", "\n" * 50_000 + "!"),
    ("(?i)^[a-z]+Z$", "a" * 50_000 + "!"),
]
IMPOSSIBLE = ["^(.)\\1$", "^(?=.*[0-9])(?=.*[a-z]).*$", "^(?<!a)b+b+$"]


def _serve(annotation: Any) -> App:
    def take(text: Any) -> None:
        return

    take.__annotations__ = {"text": annotation, "return": None}
    app = App("patterns")
    app.add_tool(take)
    return app


@pytest.mark.parametrize("pattern", SIMPLE)
def test_a_simple_pattern_stays_on_the_fast_path_of_msgspec(pattern: str) -> None:
    _serve(Annotated[str, msgspec.Meta(pattern=pattern)])

    assert is_simple(pattern)


@pytest.mark.parametrize("pattern", SIMPLE)
@pytest.mark.parametrize("text", ["a" * 100_000 + "!", "a-" * 50_000 + "!", "1." * 50_000 + "!"])
def test_a_simple_pattern_searches_a_long_string_in_linear_time(pattern: str, text: str) -> None:
    arguments = Arguments(
        [Parameter(name="text", annotation=Annotated[str, msgspec.Meta(pattern=pattern)])]
    )
    body = msgspec.json.encode({"text": text})
    began = time.process_time()

    try:
        accepted = bool(arguments.decode(body))
    except InvalidArguments:
        accepted = False

    assert time.process_time() - began < 5
    assert accepted in (True, False)


@pytest.mark.parametrize("meta", [msgspec.Meta, pydantic.Field])
@pytest.mark.parametrize("pattern", [pattern for pattern, _ in SLOW] + IMPOSSIBLE)
def test_without_re2_a_slow_pattern_is_refused_at_registration(
    pattern: str, meta: Any, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setitem(sys.modules, "re2", None)

    with pytest.raises(TypeError, match=r"pip install 'answerback\[patterns\]', or rewrite it"):
        _serve(Annotated[str, meta(pattern=pattern)])


@pytest.mark.parametrize("meta", [msgspec.Meta, pydantic.Field])
@pytest.mark.parametrize(("pattern", "text"), SLOW)
def test_with_re2_a_slow_pattern_is_served_in_linear_time(
    pattern: str, text: str, meta: Any
) -> None:
    pytest.importorskip("re2")
    record = msgspec.defstruct("Record", [("inner", Annotated[str, meta(pattern=pattern)])])
    for annotation, value in (
        (Annotated[str, meta(pattern=pattern)], text),
        (record, {"inner": text}),
    ):
        arguments = Arguments([Parameter(name="text", annotation=annotation)])
        began = time.process_time()

        with pytest.raises(InvalidArguments, match="matching"):
            arguments.decode(msgspec.json.encode({"text": value}))

        assert time.process_time() - began < 5


@pytest.mark.parametrize("pattern", IMPOSSIBLE)
def test_with_re2_a_pattern_that_it_cannot_run_is_refused_at_registration(pattern: str) -> None:
    pytest.importorskip("re2")

    with pytest.raises(TypeError, match=r"RE2 cannot run it \([^b]\w+ [^']*\)"):
        _serve(Annotated[str, msgspec.Meta(pattern=pattern)])


def test_a_malformed_pattern_is_refused_at_registration() -> None:
    with pytest.raises(TypeError, match="is malformed"):
        _serve(Annotated[str, pydantic.Field(pattern="(")])
