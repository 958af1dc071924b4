"""Problems with values and types, and the collector for one coercion's problems.

ValueError
  InvalidJson           the text is not JSON
Exception
  InvalidArguments      the JSON does not fit the function's parameters
  InvalidOutput         the value does not fit the function's return type
TypeError
  UnservableType        a developer's mistake, raised at registration
"""

from __future__ import annotations

import collections
import collections.abc as abc
import math
import re
import typing
from typing import Any, NamedTuple, NoReturn, get_args, get_origin

import msgspec

from ..core.content import block_class
from . import nodes
from .nodes import Node

# Longer text is truncated in messages.
MAX_SHOWN = 60
_SIGNS = {"ge": ">=", "gt": ">", "le": "<=", "lt": "<", "multiple_of": "multiple of"}
_KINDS = {"null": "null", "array": "array", "object": "object", "boolean": "bool"}


def counted(number: int, noun: str, plural: str | None = None) -> str:
    """Return the number and its noun: `1 tool`, `2 tools`, `1,000 replies`."""
    return f"{number:,} {noun if number == 1 else plural or f'{noun}s'}"


def without_metadata(annotation: Any) -> Any:
    """Return the type inside `Annotated`."""
    while hasattr(annotation, "__metadata__"):
        annotation = annotation.__origin__
    return annotation


def is_plain_dict(annotation: Any) -> bool:
    """Return True for `dict` and `dict[str, Any]`, which say nothing about the members."""
    plain = without_metadata(annotation)
    items = get_args(plain)
    return dict in (plain, get_origin(plain)) and (not items or items[1] in (Any, object))


def name_of(annotation: Any) -> str:
    """Return the name of a type as its author would write it."""
    return annotation.__name__ if type(annotation) is type else str(annotation)


def shown(value: object) -> str:
    """Return *value* as an author would write it, truncated."""
    text = repr(value)
    return text if len(text) <= MAX_SHOWN else f"{text[: MAX_SHOWN - 1]}…"


def describe_value(value: Any) -> str:
    """Return a JSON value's kind and, for a scalar, the value, truncated."""
    name = kind_name(value)
    if value is None or isinstance(value, list | dict):
        return name
    # The repr of a long string is slow, and that of a huge int raises.
    if isinstance(value, int) and value.bit_length() > 256:
        text = f"of about {int(value.bit_length() * math.log10(2)) + 1} digits"
    else:
        text = repr(value[:MAX_SHOWN] if isinstance(value, str) else value)
    return f"{name} {text if len(text) <= MAX_SHOWN else text[: MAX_SHOWN - 1] + '…'}"


def kind_name(value: Any) -> str:
    """Return a JSON value's kind, without the value."""
    kind = nodes.kind_of(value)
    return _KINDS.get(kind) or type(value).__name__


def describe_length(node: Node, value: Any) -> str:
    """Return the length of a string, array or object, if it may be the problem."""
    node = nodes.without_notes(node)
    if isinstance(value, str):
        members = node.members if isinstance(node, nodes.Union) else (node,)
        is_wrong = any(_refuses_length(each, value) for each in members)
        return f" of length {len(value)}" if is_wrong else ""
    is_array = isinstance(node, nodes.Array | nodes.Fixed) or getattr(node, "array", False)
    wanted = list if is_array else dict if isinstance(node, nodes.Mapping) else ()
    return f" of length {len(value)}" if isinstance(value, wanted) else ""


def _refuses_length(node: Node, text: str) -> bool:
    """Return whether *node* is a str type that allows only shorter or only longer strings."""
    node = nodes.without_notes(node)
    if not isinstance(node, nodes.Scalar) or node.kind is not str:
        return False
    shortest, longest = node.limits.min_length or 0, node.limits.max_length
    return len(text) < shortest or (longest is not None and len(text) > longest)


def describe(node: Node) -> str:
    """Describe in a few words which values *node* accepts."""
    match node:
        case nodes.Noted(inner=inner):
            return describe(inner)
        case nodes.Scalar(kind=kind, limits=limits):
            return kind.__name__ + _describe_limits(limits)
        case nodes.Choice(values=values):
            shown = ", ".join(repr(value) for value, _ in values[:20])
            return f"one of {shown}"
        case nodes.Array(limits=limits):
            return "array" + _describe_limits(limits)
        case nodes.Fixed(items=items):
            return f"array of length {len(items)}"
        case nodes.Mapping(limits=limits):
            return "object" + _describe_limits(limits)
        case nodes.Union(members=members):
            return " | ".join(dict.fromkeys(map(describe, members)))
    return _describe_class(node)


def _describe_class(node: Node) -> str:
    match node:
        case nodes.Record(array=True, min_items=min_items, cls=cls):
            return f"{cls.__name__} array of length >= {min_items}"
        case nodes.Record(cls=cls, tag=(field, tag)):
            return f"{cls.__name__} object with {field} {tag!r}"
        case nodes.Record(cls=cls):
            return f"{cls.__name__} object"
        case nodes.Model(annotation=annotation):
            bare = without_metadata(annotation)
            return str(getattr(bare, "__name__", bare))
        case nodes.Null():
            return "null"
        case nodes.Custom(cls=cls):
            return cls.__name__
    return "any value"


def _describe_limits(limits: nodes.ValueLimits) -> str:
    parts = []
    for name, limit in limits.as_dict().items():
        if name in _SIGNS:
            parts.append(f"{_SIGNS[name]} {limit}")
        elif name == "pattern":
            # Not repr, which doubles each backslash.
            parts.append(f"matching '{limit}'")
        elif name == "tz":
            parts.append("with an offset" if limit else "without an offset")
        else:
            parts.append(f"of length {'>=' if name == 'min_length' else '<='} {limit}")
    parts.extend("that passes its check" for _ in limits.checks[:1])
    return "".join(f" {each}" for each in parts)


MAX_PROBLEMS = 50
MAX_TEXTS = 1_000
_MAX_REFUSAL = 500
# Messages about return values show only the start and end of a longer path.
_MAX_PATH_START = 120
_MAX_PATH_END = 60
# A dict's key, as `dict_item` writes it.
_KEY = r"""\[key (?:'(?:[^'\\]|\\.)*'|"(?:[^"\\]|\\.)*")\]"""


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One problem with a value: its path, the expected type and the received value."""

    path: str
    message: str
    expected: str | None = None
    got: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}" if self.path else self.message
        return f"{text}; {self.hint}" if self.hint else text


class InvalidJson(ValueError):
    """The text is malformed JSON, is not UTF-8, or is nested too deeply."""


class InvalidArguments(Exception):
    """The arguments do not fit the function; `problems` lists what is wrong."""

    def __init__(self, problems: tuple[Problem, ...], *, are_all: bool = True) -> None:
        rest = () if are_all else ("there are more problems than these",)
        super().__init__("\n".join((*map(str, problems), *rest)))
        self.problems = problems


class InvalidOutput(Exception):
    """The value does not fit the return type; the message never contains the value.

    The path contains dict keys, which may be data; `for_caller` leaves them out.
    """

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{_shortened(path)}: {message}" if path else message)
        self.path = path
        self.message = message
        self.returned_text: str | None = None
        """The text that the function returned instead of data; only for the log."""

    def for_caller(self) -> str:
        """Return the text without dict keys."""
        path = _shortened(re.sub(_KEY, "[key]", self.path))
        return f"{path}: {self.message}" if path else self.message

    def below(self, path: str) -> InvalidOutput:
        """Return the same problem for a value that is part of another, at *path*."""
        return InvalidOutput(join(path, self.path), self.message)


def _shortened(path: str) -> str:
    """Return the path, without its middle if it is long."""
    left_out = len(path) - _MAX_PATH_START - _MAX_PATH_END
    if left_out <= 0:
        return path
    return f"{path[:_MAX_PATH_START]}…({left_out} characters)…{path[-_MAX_PATH_END:]}"


class UnservableType(TypeError):
    """A type that cannot be read from or written as JSON."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where = where


def member(path: str, name: object) -> str:
    """Return the path of a member of the object at *path*."""
    text = str(name)
    if not text.isidentifier():
        return f"{path}[{text[:60]!r}]"
    return f"{path}.{text[:60]}" if path else text[:60]


def dict_item(path: str, key: object) -> str:
    """Return the path of a value in the dict at *path* in a return value."""
    return f"{path}[key {str(key)[:60]!r}]"


def item(path: str, index: int) -> str:
    """Return the path of an item in the array at *path*."""
    return f"{path}[{index}]"


def join(path: str, below: str) -> str:
    """Return the path *below*, which is relative to *path*, as an absolute path."""
    return f"{path}.{below}" if path and below and not below.startswith("[") else path + below


class TooManyProblems(Exception):
    """Stops a coercion that has found more than MAX_PROBLEMS; the first ones are kept."""


class TextReads:
    """The strings that a lenient coercion reads as other values; shared by all its forks."""

    __slots__ = ("left", "unpacked")

    def __init__(self) -> None:
        # Each string takes time, especially in a union; no model sends this many.
        self.left = MAX_TEXTS
        # The arrays and objects found in strings, by the string's id.
        self.unpacked: dict[int, tuple[str, Any]] = {}

    def take(self) -> bool:
        """Count one more string; return whether it may be read."""
        self.left -= 1
        return self.left >= 0


class Coercion:
    """One coercion's options, and the problems found so far."""

    __slots__ = (
        *("lenient", "problems", "prune", "repair", "show_values", "stopped_early"),
        *("aliases", "key_differences", "repairs", "texts", "union_attempts"),
    )

    def __init__(
        self,
        *,
        repair: bool = True,
        lenient: bool = False,
        prune: bool = False,
        show_values: bool = True,
        aliases: frozenset[str] = frozenset(),
    ) -> None:
        # Accept values that JSON Schema accepts but msgspec does not, such as 1.0 for an int.
        self.repair = repair
        # Accept numbers, booleans, arrays and objects written as strings.
        self.lenient = lenient
        # Remove the keys that a record does not declare.
        self.prune = prune
        # Callers may see the arguments that they sent, except under a secret's name. A
        # return value may be secret.
        self.show_values = show_values
        # Other names of secret fields, which do not look secret themselves.
        self.aliases = aliases
        self.problems: list[Problem] = []
        self.stopped_early = False
        # The number of repaired values, and of undeclared or absent keys. They decide which
        # member of a union is closest.
        self.repairs = 0
        self.key_differences = 0
        # Results by union id, value id and `lenient`. Without this cache, nested unions of
        # recursive types would take exponential time.
        self.union_attempts: dict[tuple[int, int, bool], MemberAttempt] = {}
        self.texts = TextReads()

    def may_read(self, value: Any) -> bool:
        """Return whether *value* is a string that may be read as another value."""
        return self.lenient and isinstance(value, str) and self.texts.take()

    def report_mismatch(self, node: Node, value: Any, path: str) -> Any:
        """Report that *node* does not accept *value*; return *value*."""
        from ..core.secrets import has_secret_name, is_secret_path

        expected = describe(node)
        # The shown part of a string may be JSON with a secret's name.
        is_secret = is_secret_path(path, self.aliases) or (
            isinstance(value, str) and has_secret_name(value[:MAX_SHOWN])
        )
        is_shown = self.show_values and not is_secret
        got = describe_value(value) if is_shown else kind_name(value)
        got += describe_length(node, value)
        message, hint = f"expected {expected}, got {got}", _format_hint(node, value)
        self.report(path, message, expected=expected, got=got, hint=hint)
        return value

    def report(self, path: str, message: str, **more: str | None) -> None:
        """Add one problem; raise TooManyProblems if there are already MAX_PROBLEMS."""
        if len(self.problems) == MAX_PROBLEMS:
            self.stop()
        self.problems.append(Problem(path=path, message=message, **more))

    def stop(self) -> NoReturn:
        """Stop the coercion early, by raising TooManyProblems."""
        self.stopped_early = True
        raise TooManyProblems

    def fork(self, *, lenient: bool = False) -> Coercion:
        """Return a new coercion with the same options, to try one union member."""
        fork = Coercion(
            repair=self.repair, lenient=lenient, prune=self.prune, show_values=self.show_values
        )
        fork.aliases = self.aliases
        fork.union_attempts = self.union_attempts
        fork.texts = self.texts
        return fork


def _format_hint(node: Node, value: Any) -> str | None:
    """Return how to write a value of *node*; for a union, the first hint from a member."""
    node = nodes.without_notes(node)
    if isinstance(node, nodes.Union):
        return next((hint for each in node.members if (hint := _format_hint(each, value))), None)
    if isinstance(node, nodes.Custom) and node.codec.example is not None:
        return f"write it like {node.codec.example}"
    if not isinstance(node, nodes.Scalar):
        return None
    from .json_schema import format_hint

    return format_hint(node, value)


def refusal(
    error: BaseException, sent: Any, path: str = "", aliases: frozenset[str] = frozenset()
) -> str:
    """Return the error's text if the caller may see it, otherwise a message with only its class.

    *sent* is the value at *path* that an author's class refused, and *aliases* are other secret
    names. Text that the caller may not see is logged.
    """
    from ..core.log import logger
    from ..core.secrets import quotes_secret

    text = str(error)
    is_for_caller = isinstance(error, ValueError | AssertionError)
    if is_for_caller and not quotes_secret(text, sent, path, aliases):
        return text if len(text) <= _MAX_REFUSAL else text[: _MAX_REFUSAL - 1] + "…"
    message = "a validator or __post_init__ raised an exception; callers do not see its text"
    logger().warning(message, exc_info=error)
    return f"refused by its class ({type(error).__name__})"


class MemberAttempt(NamedTuple):
    """The result of coercing a value to one member of a union."""

    value: Any
    """Kept alive here, because `Coercion.union_attempts` uses its id."""
    data: Any
    coercion: Coercion
    member: Node | None = None
    """None if no member fits."""


_READ_ONCE = "can be read only once; write list[...]"
_REASONS: dict[Any, str] = {
    abc.Callable: "is code, not data; write str and look the function up by name",
    type: "is a class, not data; write str and look the class up by name",
    complex: "is not a JSON number; write tuple[float, float]",
    abc.Iterator: _READ_ONCE,
    abc.Iterable: "does not name its container; write list[...]",
    abc.Generator: _READ_ONCE,
    abc.AsyncIterator: _READ_ONCE,
    abc.AsyncIterable: _READ_ONCE,
    abc.AsyncGenerator: _READ_ONCE,
    abc.Awaitable: "is not the value yet; write the type of the value",
    abc.Coroutine: "is not the value yet; write the type of the value",
    collections.deque: "has no JSON form; write list[...]",
    collections.defaultdict: "has no JSON form; write dict[str, ...]",
    collections.OrderedDict: "has no JSON form; write dict[str, ...]",
    collections.Counter: "has no JSON form; write dict[str, int]",
    range: "has no JSON form; write list[int]",
    typing.NoReturn: "has no values; write None",
    typing.Never: "has no values; write None",
}
_WITH_RECIPES = frozenset({"pandas", "polars", "numpy", "PIL"})
_FILE_TYPES = frozenset({"IO", "TextIO", "BinaryIO"})


def explain_unservable(annotation: Any) -> str:
    """Return why *annotation* cannot be served, and what to write instead."""
    origin = typing.get_origin(annotation) or annotation
    name = name_of(annotation)
    try:
        reason = _REASONS.get(origin)
    except TypeError:  # an annotation that is not hashable
        reason = None
    if reason is not None:
        return f"{name} {reason}"
    if getattr(origin, "__name__", "") in _FILE_TYPES or hasattr(origin, "readline"):
        return f"{name} is an open file; write bytes or str for its content"
    for base in (str, bytes, int, float, list, dict, set, tuple):
        if isinstance(origin, type) and issubclass(origin, base):
            kind = base.__name__
            return f"{name} is a kind of {kind} that JSON does not support; write {kind}"
    if isinstance(origin, type) and block_class(origin) is not None:
        return f"{name} is a content block, which only results have; write bytes"
    if getattr(origin, "__module__", "").partition(".")[0] in _WITH_RECIPES:
        return (
            f"{name} has no JSON form; register it with register_type: "
            "docs/guides/own-types.md has a recipe"
        )
    return (
        f"{name} is not a type that JSON supports; "
        "make it a dataclass, write str, or register it with register_type"
    )
