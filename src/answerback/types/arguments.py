"""JSON text to the keyword arguments of a function."""

from collections.abc import Sequence
from typing import Any

import msgspec

from . import json_text
from .annotation_reader import read_type
from .coerce import settle
from .decode_hooks import Builder, decode_hook
from .describe import LONGEST, describe, near, show
from .msgspec_types import Natives
from .nodes import Node
from .parameter import Parameter
from .problems import InvalidArguments, Problem
from .walk import TooManyProblems, Walk


class Arguments:
    """The arguments of one function; its decoder is made at the first call."""

    def __init__(self, parameters: Sequence[Parameter], *, lenient: bool = False) -> None:
        self._parameters = tuple(parameters)
        self._lenient = lenient
        self._plan: _Plan | None = None

    def decode(self, raw: bytes) -> dict[str, Any]:
        """Typed keyword arguments, those that were not given left out.

        Raises InvalidJson, or InvalidArguments with all that is wrong.
        """
        # Threads may both make one; either will do, because it is set whole.
        plan = self._plan or self._make_plan()
        # msgspec does not look at the text of values that it skips.
        if len(raw) > json_text.DEEPEST or not raw.isascii():
            json_text.refuse_bad_text(raw)
        try:
            values = msgspec.structs.asdict(plan.decode(raw))
        except Exception:  # noqa: BLE001 - an author's __post_init__ may raise what it likes
            values = self._decode_slowly(plan, raw)
        for name in plan.optional:
            if values[name] is msgspec.UNSET:
                del values[name]
        return values

    def _make_plan(self) -> "_Plan":
        self._plan = _Plan(self._parameters)
        return self._plan

    def _decode_slowly(self, plan: "_Plan", raw: bytes) -> dict[str, Any]:
        walk = Walk(lenient=self._lenient)
        try:
            settled = plan.settle(_load_object(raw, walk), walk)
            if not walk.problems:
                return plan.build(settled)
        except TooManyProblems:
            raise InvalidArguments(tuple(walk.problems), are_all=False) from None
        except RecursionError:
            problem = Problem(path="", message="nested too deep for these types")
            raise InvalidArguments((*walk.problems, problem)) from None
        raise InvalidArguments(tuple(walk.problems))


class _Plan:
    """What was worked out about the parameters of one function."""

    def __init__(self, parameters: Sequence[Parameter]) -> None:
        self.nodes = {each.name: read_type(each.annotation, each.name) for each in parameters}
        self.required = [each.name for each in parameters if each.required]
        self.optional = [each.name for each in parameters if not each.required]
        self.natives = Natives()
        fields: list[Any] = [(name, self.natives.of(self.nodes[name])) for name in self.required]
        fields += [
            (name, self.natives.of(self.nodes[name]), msgspec.UNSET) for name in self.optional
        ]
        self.struct = msgspec.defstruct(
            "Arguments", fields, forbid_unknown_fields=True, kw_only=True
        )
        hook = decode_hook(self.natives)
        self.decode = msgspec.json.Decoder(self.struct, dec_hook=hook).decode

    def settle(self, given: dict[str, Any], walk: Walk) -> dict[str, Any]:
        """The arguments as JSON that fits; what is wrong is noted in *walk*."""
        for name in self.required:
            if name not in given:
                expected = describe(self.nodes[name])
                walk.report(name, f"missing, expected {expected}", expected=expected)
        settled = {}
        for name, value in given.items():
            if name not in self.nodes:
                walk.report(name[:LONGEST], "unknown argument", hint=_near(name, self.nodes))
            elif value is not _UNREADABLE:
                settled[name] = settle(self.nodes[name], value, name, walk)
        return settled

    def build(self, settled: dict[str, Any]) -> dict[str, Any]:
        """Typed values, UNSET for those that were not given."""
        hook = Builder(self.natives).hook
        try:
            made = msgspec.convert(settled, self.struct, str_keys=True, dec_hook=hook)
        except RecursionError:
            raise
        except msgspec.ValidationError as error:
            raise InvalidArguments((_from_msgspec(str(error)),)) from None
        except Exception as error:
            message = f"refused by its class ({type(error).__name__})"
            raise InvalidArguments((Problem(path="", message=message),)) from error
        return msgspec.structs.asdict(made)


_UNREADABLE = object()


def _load_object(raw: bytes, walk: Walk) -> dict[str, Any]:
    try:
        given = json_text.load(raw)
    except msgspec.ValidationError:
        # A number too large for Python; look which arguments can still be read.
        return _load_each(raw, walk)
    if isinstance(given, dict):
        return given
    walk.report("", f"expected an object of arguments, got {show(given)}", expected="object")
    raise InvalidArguments(tuple(walk.problems))


def _load_each(raw: bytes, walk: Walk) -> dict[str, Any]:
    given: dict[str, Any] = {}
    try:
        parts = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        walk.report("", "expected an object of arguments", expected="object")
        return given
    for name, part in parts.items():
        try:
            given[name] = msgspec.json.decode(part)
        except msgspec.ValidationError:
            given[name] = _UNREADABLE
            walk.report(name, "number out of range")
    return given


def _near(name: str, known: dict[str, Node]) -> str | None:
    found = near(name[:LONGEST], known)
    return f"did you mean {found[0]!r}?" if found else None


def _from_msgspec(message: str) -> Problem:
    text, _, path = message.rpartition(" - at `$")
    text = (text or message).replace("`", "")
    path = path.rstrip("`").removeprefix(".").replace("[...]", "[]") if text != message else ""
    return Problem(path=path, message=text[:1].lower() + text[1:])
