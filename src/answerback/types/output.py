"""Encodes a function's return value as JSON text, checked against the return type."""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from enum import Enum
from functools import cached_property
from typing import Any

import msgspec

from ..core.limits import LARGE_BODY
from . import nodes
from .annotation_reader import read_type
from .json_text import ENCODER, MAX_DEPTH, UnencodableType, dump, encode_hook, is_too_deep
from .nodes import NAN_AS_NULL, Node, has_mark
from .problems import Coercion, InvalidOutput, TooManyProblems


class Output:
    """An encoder for one function's return values; the check is built on the first call."""

    def __init__(self, annotation: Any) -> None:
        self._annotation = annotation

    def encode(self, value: Any) -> tuple[bytes, Any]:
        """Return compact JSON for *value* without undeclared keys, and the checked value.

        Raises InvalidOutput, which names the problem's path but never the value.
        """
        return self._run(value)

    @cached_property
    def _run(self) -> Callable[[Any], tuple[bytes, Any]]:
        node = read_type(self._annotation, "return")
        nan_is_null = has_mark(self._annotation, NAN_AS_NULL)
        if nodes.has_models(node):
            from .pydantic_types import ModelOutputCheck

            return ModelOutputCheck(node, nan_is_null=nan_is_null).run
        check = TextCheck if nodes.accepts_any_text(node) else OutputCheck
        return check(node, nan_is_null=nan_is_null).run


class OutputCheck:
    """An encoder for one type's values that checks them by decoding the text again.

    msgspec does not check the fields of an existing object.
    """

    def __init__(self, node: Node, *, nan_is_null: bool = False) -> None:
        from .msgspec_types import MsgspecTypes

        below = list(nodes.reachable(node))
        self.node = node
        self._nan_is_null = nan_is_null
        self._types = MsgspecTypes(canonical=True)
        self._type = self._types.type_of(node)
        self.encode = ENCODER.encode
        self.decode = self._types.decoder(self._type).decode
        # msgspec writes a non-finite float as null, and a non-finite Decimal as text.
        self.may_hide_decimal = any(map(_may_be_decimal, below))
        self.may_hide_nan = self.may_hide_decimal or any(
            isinstance(each, nodes.Null) for each in below
        )
        self.may_be_deep = any(
            isinstance(each, nodes.Record | nodes.Anything | nodes.Custom) for each in below
        )
        self.may_differ = any(map(_may_differ, below))
        self._plain_kinds = _plain_kinds(node)
        self.is_simple = not (self.may_hide_nan or self.may_be_deep or self.may_differ)

    def run(self, value: Any) -> tuple[bytes, Any]:
        """Return the JSON text of *value*, and the checked value."""
        try:
            encoded = self.encode(value)
            if len(encoded) >= LARGE_BODY and self._is_plain(value):
                return encoded, value
            checked = self.decode(encoded)
        except Exception:  # noqa: BLE001 -- an author's property or class may raise any exception
            pass
        else:
            if self.is_simple:
                return encoded, checked
            return self.find_hidden_faults(value, encoded, checked)
        # Outside the handler, so that a new exception does not carry the first as its context.
        return self.explain_refusal(value)

    def find_hidden_faults(self, value: Any, encoded: bytes, checked: Any) -> tuple[bytes, Any]:
        """Check for faults that decoding does not find: NaN, depth, undeclared keys."""
        if self.may_hide_nan and may_be_not_finite(
            value, encoded, nan_is_null=self._nan_is_null, texts=self.may_hide_decimal
        ):
            refuse_unencodable(value, nan_is_null=self._nan_is_null)
        if self.may_be_deep and is_too_deep(encoded):
            raise InvalidOutput("", f"nested deeper than {MAX_DEPTH} levels")
        if self.may_differ and self.encode(checked) != encoded:
            return self.coerce(encoded)
        return encoded, checked

    def _is_plain(self, value: Any) -> bool:
        """Return whether *value* is a record of plain strings and numbers, as declared.

        Decoding the text again would show that too, but for megabytes it takes far too long.
        """
        kinds, node = self._plain_kinds, self.node
        if kinds is None or not isinstance(node, nodes.Record):
            return False
        if type(value) is not (dict if node.style == "typeddict" else node.cls):
            return False
        if type(value) is dict:
            return value.keys() == kinds.keys() and all(
                type(value[name]) is kind for name, kind in kinds.items()
            )
        return all(type(getattr(value, name)) is kind for name, kind in kinds.items())

    def explain_refusal(self, value: Any) -> tuple[bytes, Any]:
        """Raise an error saying why *value* was refused, or accept it, as with `1.0` for an int."""
        refuse_unencodable(value, nan_is_null=self._nan_is_null)
        try:
            encoded = self.encode(value)
        except Exception as error:
            problem = f"{type(value).__name__} cannot be written as JSON"
            raise InvalidOutput("", problem) from error
        return self.coerce(encoded)

    def coerce(self, encoded: bytes) -> tuple[bytes, Any]:
        """Return the text without undeclared keys, and the checked value."""
        from .coerce import coerce

        coercion = Coercion(prune=True, show_values=False)
        try:
            data = coerce(self.node, msgspec.json.decode(encoded), "", coercion)
            if not coercion.problems:
                checked = self._types.convert(data, self._type)
                return self.encode(data), checked
        except TooManyProblems:
            # The error below names only the first problem.
            pass
        except Exception as error:
            raise InvalidOutput("", "refused by its own type") from error
        raise InvalidOutput(coercion.problems[0].path, coercion.problems[0].message)


class TextCheck(OutputCheck):
    """An encoder for strings without limits: any encodable `str` fits the type.

    It does not decode the text again; for megabytes, that takes longer than everything else.
    """

    def run(self, value: Any) -> tuple[bytes, Any]:
        if type(value) is not str:
            return super().run(value)
        try:
            return self.encode(value), value
        except UnicodeEncodeError:
            pass
        return self.explain_refusal(value)


def _plain_kinds(node: Node) -> dict[str, type] | None:
    """Return a record's field types by name, if comparing types is enough to validate it."""
    if not isinstance(node, nodes.Record) or node.style not in ("typeddict", "struct", "dataclass"):
        return None
    fields = {field.name: nodes.without_notes(field.node) for field in node.fields}
    kinds: dict[str, type] = {
        name: each.kind
        for name, each in fields.items()
        if isinstance(each, nodes.Scalar)
        and each.kind in (str, int, bool)
        and each.limits is nodes.NO_LIMITS
    }
    return kinds if kinds.keys() == fields.keys() else None


def _pack_hook(value: Any) -> Any:
    if hasattr(value, "__pydantic_serializer__"):
        # In JSON, pydantic writes some non-finite numbers as null.
        return dump(value), dump(value, "python")
    try:
        return encode_hook(value)
    except UnencodableType:
        # The value is inside a pydantic object, which has already written it as JSON.
        return None


_PACKER = msgspec.msgpack.Encoder(enc_hook=_pack_hook)
# A MessagePack float with all exponent bits set. No UTF-8 text contains these bytes.
_PACKED_NAN = re.compile(rb"\xcb[\x7f\xff][\xf0-\xff]")
# A non-finite Decimal, which is written as a string.
_WRITTEN_NAN = re.compile(rb'"-?(?:s?NaN\d*|Infinity)"')


def may_be_not_finite(value: Any, encoded: bytes, *, nan_is_null: bool, texts: bool = True) -> bool:
    """Return whether *value*, whose JSON is *encoded*, may contain NaN or infinity.

    In JSON, such a float is null and, with *texts*, such a Decimal is a string. MessagePack keeps
    the float, and msgspec encodes it much faster than Python could search the value.
    """
    if texts and (b"NaN" in encoded or b"Infinity" in encoded) and _WRITTEN_NAN.search(encoded):
        return True
    # Search from the end, because members that may be null usually come last.
    if nan_is_null or encoded.rfind(b"null") < 0:
        return False
    try:
        return _PACKED_NAN.search(_PACKER.encode(value)) is not None
    except Exception:  # noqa: BLE001 -- MessagePack has no integers above 64 bits, for one
        return True


def refuse_unencodable(value: Any, *, nan_is_null: bool = False) -> None:
    """Raise InvalidOutput for NaN, a reference cycle or a class without a JSON form."""
    from .unencodable import find_fault

    fault = find_fault(value, nan_is_null=nan_is_null)
    if fault is not None:
        raise fault


def _may_be_decimal(node: Node) -> bool:
    if isinstance(node, nodes.Scalar):
        return issubclass(node.kind, Decimal)
    return isinstance(node, nodes.Anything | nodes.Custom)


def _may_differ(node: Node) -> bool:
    """Return whether the text may decode to a value that is encoded differently.

    This applies to strings in another form, such as a UUID without hyphens, to undeclared
    keys, and to an Enum whose `_missing_` accepts values that it does not list.
    """
    match node:
        case nodes.Scalar():
            return nodes.is_loose_in_msgspec(node)
        case nodes.Choice(annotation=type() as cls):
            # mypy does not know that a classmethod has `__func__`.
            return cls._missing_.__func__ is not Enum._missing_.__func__  # type: ignore[attr-defined]
    return isinstance(node, nodes.Record)
