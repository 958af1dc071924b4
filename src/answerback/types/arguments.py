"""JSON text to the keyword arguments of a function."""

from collections.abc import Sequence
from typing import Any

import msgspec

from answerback.types import syntax
from answerback.types.building import Builder, decode_hook
from answerback.types.naming import LONGEST, describe, show
from answerback.types.native import Natives
from answerback.types.nodes import Node
from answerback.types.parameter import Parameter
from answerback.types.problems import InvalidArguments, Problem
from answerback.types.reading import read_type
from answerback.types.settling import Walk, settle


class Arguments:
    """The arguments of one function; its decoder is made at the first call."""

    def __init__(self, parameters: Sequence[Parameter], *, lenient: bool = False) -> None:
        self._parameters = tuple(parameters)
        self._optional = tuple(each.name for each in parameters if not each.required)
        self._lenient = lenient
        self._decoder: msgspec.json.Decoder[Any] | None = None

    def decode(self, raw: bytes) -> dict[str, Any]:
        """Typed keyword arguments, those that were not given left out.

        Raises InvalidJson, or InvalidArguments with all that is wrong.
        """
        decoder = self._decoder or self._make_decoder()
        # Quicker than two calls; it is asked for every call.
        if not raw.isascii() or raw.count(b"[") + raw.count(b"{") > syntax.DEEPEST:
            syntax.refuse_bad_text(raw)
        try:
            values = msgspec.structs.asdict(decoder.decode(raw))
        except Exception:  # noqa: BLE001 - an author's __post_init__ may raise what it likes
            values = self._decode_slowly(raw)
        for name in self._optional:
            if values[name] is msgspec.UNSET:
                del values[name]
        return values

    def _make_decoder(self) -> msgspec.json.Decoder[Any]:
        natives = self._natives = Natives()
        self._nodes = {
            each.name: read_type(each.annotation, each.name) for each in self._parameters
        }
        absent = dict.fromkeys(self._optional, msgspec.UNSET)
        fields: list[Any] = [
            (name, natives.of(node), absent[name]) if name in absent else (name, natives.of(node))
            for name, node in self._nodes.items()
        ]
        self._struct = msgspec.defstruct(
            "Arguments", fields, forbid_unknown_fields=True, kw_only=True
        )
        self._decoder = msgspec.json.Decoder(self._struct, dec_hook=decode_hook(natives))
        return self._decoder

    def _decode_slowly(self, raw: bytes) -> dict[str, Any]:
        walk = Walk(lenient=self._lenient)
        try:
            given = _load_object(raw, walk)
            settled = self._settle(given, walk)
            if not walk.problems:
                return self._build(settled)
        except RecursionError:
            walk.report("", "nested too deep for these types")
        raise InvalidArguments(tuple(walk.problems))

    def _settle(self, given: dict[str, Any], walk: Walk) -> dict[str, Any]:
        for each in self._parameters:
            if each.required and each.name not in given:
                expected = describe(self._nodes[each.name])
                walk.report(each.name, f"missing, expected {expected}", expected=expected)
        settled = {}
        for name, value in given.items():
            if name not in self._nodes:
                walk.report(name, "unknown argument", hint=_near(name, self._nodes))
            elif value is not _UNREADABLE:
                settled[name] = settle(self._nodes[name], value, name, walk)
        return settled

    def _build(self, settled: dict[str, Any]) -> dict[str, Any]:
        hook = Builder(self._natives).hook
        try:
            made = msgspec.convert(settled, self._struct, str_keys=True, dec_hook=hook)
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
        given = syntax.load(raw)
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
    import difflib

    near = difflib.get_close_matches(name[:LONGEST], known, n=1)
    return f"did you mean {near[0]!r}?" if near else None


def _from_msgspec(message: str) -> Problem:
    text, _, path = message.rpartition(" - at `$")
    text = (text or message).replace("`", "")
    path = path.rstrip("`").removeprefix(".").replace("[...]", "[]") if text != message else ""
    return Problem(path=path, message=text[:1].lower() + text[1:])
