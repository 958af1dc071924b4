"""Decodes JSON text into a function's keyword arguments."""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, Protocol

import msgspec

from ..core.author_errors import did_you_mean, similar_names
from . import json_text, nodes
from .annotation_reader import read_type
from .nodes import Node
from .problems import (
    MAX_SHOWN,
    Coercion,
    InvalidArguments,
    InvalidJson,
    Problem,
    TooManyProblems,
    describe,
    describe_value,
    refusal,
)

if TYPE_CHECKING:
    from .msgspec_types import MsgspecTypes


class Parameter(msgspec.Struct, frozen=True, kw_only=True):
    """One parameter of a function: its name, resolved annotation and default."""

    name: str
    """The argument's name in JSON, in schemas and in messages."""
    annotation: Any
    # A factory, because NODEFAULT itself would mean that this field has no default.
    default: Any = msgspec.field(default_factory=lambda: msgspec.NODEFAULT)
    description: str | None = None
    keyword: str | None = None
    """The function's own name for the parameter, if it may differ from the argument's."""
    other_names: tuple[str, ...] = ()
    """Other names under which a caller may send the argument."""
    default_factory: Callable[[], Any] | None = None
    """Creates the default for each call, in place of the function's own."""

    @property
    def required(self) -> bool:
        """Whether a call must include this argument."""
        return self.default is msgspec.NODEFAULT and self.default_factory is None

    @property
    def target(self) -> str:
        """The function's own name for the parameter."""
        return self.keyword or self.name


def check_parameter(parameter: Parameter, where: str) -> None:
    """Raise UnservableType, naming *where*, for a type without a JSON form or a wrong default.

    A name that is not yet defined passes, because the first call reads the annotation again.
    """
    try:
        node = read_type(parameter.annotation, where)
    except NameError:
        return
    default = parameter.default
    if isinstance(node, nodes.Scalar) and (
        default is msgspec.NODEFAULT or type(default) is node.kind
    ):
        return
    from .default_check import check_default

    check_default(parameter, node, where)


class Arguments:
    """A decoder for one function's arguments, built on the first call."""

    def __init__(self, parameters: Sequence[Parameter], *, lenient: bool = False) -> None:
        self._parameters = tuple(parameters)
        self._lenient = lenient

    @cached_property
    def _decoder(self) -> ArgumentsDecoder:
        return ArgumentsDecoder(self._parameters, lenient=self._lenient)

    def decode(self, raw: bytes) -> dict[str, Any]:
        """Return typed keyword arguments; arguments that were not sent are left out.

        Instead of being left out, an argument with a mutable default is set to a copy of it, so
        that calls do not share it. Raises InvalidJson, or InvalidArguments with all problems.
        """
        decoder = self._decoder
        # msgspec does not check the text of values that it skips.
        if len(raw) > json_text.MAX_DEPTH or not raw.isascii():
            json_text.refuse_bad_text(raw)
        try:
            values = msgspec.structs.asdict(decoder.decode(raw))
        except Exception:  # noqa: BLE001 -- an author's __post_init__ may raise any exception
            values = self._coerce(decoder, raw)
        for name, copy_default in decoder.optional.items():
            if values[name] is msgspec.UNSET:
                if copy_default is None:
                    del values[name]
                else:
                    values[name] = copy_default()
        return values

    def has_too_many_values(self, raw: bytes, most: int) -> bool:
        """Return whether pydantic would read more than *most* values; see `has_more_values`."""
        return self._decoder.has_models and json_text.has_more_values(raw, most)

    @property
    def aliases(self) -> frozenset[str]:
        """The names of arguments and fields whose other names mark them as secret."""
        return self._decoder.aliases

    def _coerce(self, decoder: SlowDecoder, raw: bytes) -> dict[str, Any]:
        """Decode arguments that msgspec refused, or raise InvalidArguments with all problems."""
        coercion = Coercion(lenient=self._lenient, aliases=decoder.aliases)
        try:
            coerced = decoder.coerce(_load_object(raw, coercion), coercion)
            if not coercion.problems:
                return decoder.convert(coerced)
        except TooManyProblems:
            raise InvalidArguments(tuple(coercion.problems), are_all=False) from None
        except RecursionError:
            problem = Problem(path="", message="nested too deeply for these types")
            raise InvalidArguments((*coercion.problems, problem)) from None
        raise InvalidArguments(tuple(coercion.problems))


class SlowDecoder(Protocol):
    """Reads an argument object, and finds all problems with it."""

    @property
    def aliases(self) -> frozenset[str]:
        """The names of arguments and fields whose other names mark them as secret."""

    def coerce(self, sent: dict[str, Any], coercion: Coercion) -> Any:
        """Return the arguments as JSON that fits; *coercion* collects the problems."""

    def convert(self, coerced: Any) -> dict[str, Any]:
        """Return the function's keyword arguments."""


class ArgumentsDecoder:
    """The parameters' nodes, and a msgspec decoder for the argument object."""

    def __init__(self, parameters: Sequence[Parameter], *, lenient: bool) -> None:
        self.nodes = {each.name: read_type(each.annotation, each.name) for each in parameters}
        self.required = [each.name for each in parameters if each.required]
        # Keyed by the function's own names; each value creates a default, or is None if the
        # function's own default will do.
        self.optional = {
            each.target: each.default_factory or default_copier(each.default)
            for each in parameters
            if not each.required
        }
        self._names = [(each.target, each.name, *each.other_names) for each in parameters]
        self._other_names = {other: each.name for each in parameters for other in each.other_names}
        fields = [(each.target, self.nodes[each.name], each.required) for each in parameters]
        rename = {each.target: each.name for each in parameters}
        # Imported on a tool's first call.
        from .msgspec_types import MsgspecTypes

        self._types = MsgspecTypes(lenient=lenient)
        self._struct = self._types.struct(
            "Arguments", fields, rename=rename, forbid_unknown_fields=True, kw_only=True
        )
        self.decode = self._types.decoder(self._struct).decode

    @cached_property
    def has_models(self) -> bool:
        """Whether pydantic reads any of the arguments."""
        return any(map(nodes.has_models, self.nodes.values()))

    @cached_property
    def aliases(self) -> frozenset[str]:
        """All names of each argument or field that has at least one secret name."""
        from ..core.secrets import aliases_of_secrets

        names = list(self._names)
        for tree in self.nodes.values():
            names += names_in(tree)
        return aliases_of_secrets(names)

    def coerce(self, sent: dict[str, Any], coercion: Coercion) -> dict[str, Any]:
        """Return the arguments as JSON that fits their types; *coercion* collects problems."""
        from .coerce import coerce

        if self._other_names:
            # An argument is stored under its first name, unless that was sent too.
            first = self._other_names
            sent = {
                name if first.get(name, name) in sent else first[name]: value
                for name, value in sent.items()
            }
        for name in self.required:
            if name not in sent:
                expected = describe(self.nodes[name])
                coercion.report(name, f"missing, expected {expected}", expected=expected)
        coerced = {}
        for name, value in sent.items():
            if name not in self.nodes:
                report_unknown(name, self.nodes, coercion)
            elif value is not _OUT_OF_RANGE:
                coerced[name] = coerce(self.nodes[name], value, name, coercion)
        return coerced

    def convert(self, coerced: dict[str, Any]) -> dict[str, Any]:
        """Return typed values, and UNSET for arguments that were not sent."""
        made = converted(self._types, coerced, self._struct, self.aliases)
        return msgspec.structs.asdict(made)


def converted(types: MsgspecTypes, coerced: Any, kind: Any, aliases: frozenset[str]) -> Any:
    """Return the value of type *kind*; raise InvalidArguments if an author's class refuses it."""
    try:
        return types.convert(coerced, kind)
    except RecursionError:
        raise
    except msgspec.ValidationError as error:
        message = str(error)
        text, _, path = message.rpartition(" - at `$")
        path = path.rstrip("`").removeprefix(".").replace("[...]", "[]") if text else ""
        if error.__cause__ is not None:
            text = refusal(error.__cause__, coerced, aliases=aliases)
        else:
            text = (text or message).replace("`", "")
            text = text[:1].lower() + text[1:]
        raise InvalidArguments((Problem(path=path, message=text),)) from None
    except Exception as error:
        problem = Problem(path="", message=refusal(error, coerced, aliases=aliases))
        raise InvalidArguments((problem,)) from error


def names_in(tree: Node) -> Iterator[tuple[str, ...]]:
    """Yield the names of each field in a type, in Python and in JSON."""
    for each in nodes.reachable(tree):
        if isinstance(each, nodes.Record):
            yield from ((field.name, field.json_name) for field in each.fields)
        elif isinstance(each, nodes.Model):
            from .pydantic_types import model_names

            yield from model_names(each)


# Stands for an argument with an out-of-range number, which has already been reported.
_OUT_OF_RANGE = object()


def default_copier(default: Any) -> Callable[[], Any] | None:
    """Return a function that copies the default, or None if calls may share it."""
    if default is None or isinstance(default, str | int | float | bytes):
        return None
    from copy import deepcopy

    try:
        is_shared = deepcopy(default) is default
    except Exception:  # noqa: BLE001 -- an object of any class may be a default
        return None
    return None if is_shared else lambda: deepcopy(default)


def _load_object(raw: bytes, coercion: Coercion) -> dict[str, Any]:
    try:
        sent = json_text.load(raw)
    except msgspec.ValidationError:
        # One of the numbers is out of range, so each argument is decoded separately below.
        pass
    else:
        if isinstance(sent, dict):
            return sent
        message = f"expected an object with the arguments, got {describe_value(sent)}"
        coercion.report("", message, expected="object")
        raise InvalidArguments(tuple(coercion.problems))
    try:
        parts = msgspec.json.decode(raw, type=dict[str, msgspec.Raw])
    except msgspec.ValidationError:
        coercion.report("", "expected an object with the arguments", expected="object")
        return {}
    except msgspec.DecodeError as error:
        # msgspec found the out-of-range number before it reached the malformed JSON.
        raise InvalidJson(str(error)) from None
    found: dict[str, Any] = {}
    for name, part in parts.items():
        try:
            found[name] = msgspec.json.decode(part)
        except msgspec.ValidationError:
            found[name] = _OUT_OF_RANGE
            coercion.report(name, "number out of range")
        except msgspec.DecodeError as error:
            raise InvalidJson(str(error)) from None
    return found


# A message lists at most this many arguments.
_MAX_NAMES = 20


def report_unknown(name: str, known: Collection[str], coercion: Coercion) -> None:
    """Report an argument that is not among the *known* ones."""
    hint = did_you_mean(similar_names(name[:MAX_SHOWN], known))
    if not hint and len(known) == 1:
        hint = f"the only argument is {next(iter(known))}"
    elif not hint:
        names = ", ".join(list(known)[:_MAX_NAMES])
        more = ", …" if len(known) > _MAX_NAMES else ""
        hint = f"the arguments are {names}{more}" if known else "it takes no arguments"
    coercion.report(name[:MAX_SHOWN], "unknown argument", hint=hint)
