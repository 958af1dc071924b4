"""A function's return value to JSON text, checked against its return type."""

from collections.abc import Callable
from enum import Enum
from typing import Any

import msgspec

from . import nodes
from .annotation_reader import read_type
from .coerce import settle
from .decode_hooks import Builder, decode_hook
from .encoding import ENCODER
from .json_text import DEEPEST, is_too_deep
from .msgspec_types import Natives
from .nodes import Node
from .problems import InvalidOutput
from .scalars import is_loose
from .walk import TooManyProblems, Walk


class Output:
    """What one function returns; how to check it is worked out at the first call."""

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation
        self._run: Callable[[Any], tuple[bytes, Any]] | None = None

    def encode(self, value: Any) -> tuple[bytes, Any]:
        """Compact JSON of *value* as its type declares it, and the checked value.

        Raises InvalidOutput, which names where the value is wrong and never shows it.
        """
        run = self._run or self._make_check()
        return run(value)

    def _make_check(self) -> Callable[[Any], tuple[bytes, Any]]:
        node = read_type(self._annotation, "return")
        if has_models(node):
            from .pydantic_output import ModelCheck

            self._run = ModelCheck(node).run
        else:
            self._run = Check(node).run
        return self._run


def has_models(node: Node) -> bool:
    """Whether pydantic has a say in the type."""
    return any(isinstance(each, nodes.Model) for each in nodes.reachable(node))


class Check:
    """How values of one type are written and checked."""

    def __init__(self, node: Node) -> None:
        below = list(nodes.reachable(node))
        self.node = node
        self.natives = Natives(canonical=True)
        native = self.natives.of(node)
        self.encode = ENCODER.encode
        self.decode = msgspec.json.Decoder(native, dec_hook=decode_hook(self.natives)).decode
        # msgspec writes NaN as null, which passes only where null does.
        self.may_hide = any(isinstance(each, nodes.Null | nodes.Anything) for each in below)
        self.may_be_deep = any(isinstance(each, nodes.Record | nodes.Anything) for each in below)
        self.may_hold_more = any(map(_may_hold_more, below))
        self.is_simple = not (self.may_hide or self.may_be_deep or self.may_hold_more)

    def run(self, value: Any) -> tuple[bytes, Any]:
        """The text of *value* and the checked value."""
        try:
            encoded = self.encode(value)
            checked = self.decode(encoded)
        except Exception:  # noqa: BLE001 - an author's property or class may raise anything
            pass
        else:
            return (
                (encoded, checked) if self.is_simple else self.scrutinise(value, encoded, checked)
            )
        # Not in the handler: what is found here stands for itself.
        return self.look_closely(value)

    def scrutinise(self, value: Any, encoded: bytes, checked: Any) -> tuple[bytes, Any]:
        """Look for what decoding does not find: NaN, depth, and keys that were not declared."""
        if self.may_hide and may_be_not_finite(encoded):
            refuse_faults(value)
        if self.may_be_deep and is_too_deep(encoded):
            raise InvalidOutput("", f"nested deeper than {DEEPEST} levels")
        if self.may_hold_more and self.encode(checked) != encoded:
            return self.settle(encoded)
        return encoded, checked

    def look_closely(self, value: Any) -> tuple[bytes, Any]:
        """Find out why *value* was refused; it may yet be fine, as `1.0` is for an int."""
        refuse_faults(value)
        try:
            encoded = self.encode(value)
        except Exception as error:
            problem = f"{type(value).__name__} cannot be written as JSON"
            raise InvalidOutput("", problem) from error
        return self.settle(encoded)

    def settle(self, encoded: bytes) -> tuple[bytes, Any]:
        """The text with only what the type declares."""
        walk = Walk(prune=True, shown=False)
        try:
            data = settle(self.node, msgspec.json.decode(encoded), "", walk)
            if not walk.problems:
                hook = Builder(self.natives).hook
                native = self.natives.of(self.node)
                checked = msgspec.convert(data, native, str_keys=True, dec_hook=hook)
                return self.encode(data), checked
        except TooManyProblems:
            # The first of them is told below.
            pass
        except Exception as error:
            raise InvalidOutput("", "refused by its own type") from error
        raise InvalidOutput(walk.problems[0].path, walk.problems[0].message)


def may_be_not_finite(encoded: bytes) -> bool:
    """Whether a NaN or an infinity may be behind it: msgspec writes null, or a Decimal's name."""
    return b"null" in encoded or b"NaN" in encoded or b"Infinity" in encoded


def refuse_faults(value: Any) -> None:
    """Raise InvalidOutput for what JSON cannot hold: NaN, a cycle, an unknown class."""
    from .unencodable import find_fault

    fault = find_fault(value)
    if fault is not None:
        raise fault


def _may_hold_more(node: Node) -> bool:
    # Text in another form than ours shows up when it is written again, as extra keys do.
    match node:
        case nodes.Scalar():
            return is_loose(node)
        case nodes.Choice(annotation=type() as cls):
            # It may take values that are not listed.
            return cls._missing_.__func__ is not Enum._missing_.__func__  # type: ignore[attr-defined]
    return isinstance(node, nodes.Record)
