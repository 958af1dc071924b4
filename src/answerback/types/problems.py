"""Problems with values and types, and the collector of one coercion's problems.

ValueError
  InvalidJson           the text is not JSON
Exception
  InvalidArguments      the JSON does not fit the function's parameters
  InvalidOutput         the value does not fit the function's return type
TypeError
  UnservableType        a developer's mistake, raised at registration
"""

from __future__ import annotations

import re
from typing import Any, NamedTuple, NoReturn

import msgspec

from . import nodes
from .describe import MAX_SHOWN, describe, describe_length, describe_value, kind_name
from .nodes import Node

MAX_PROBLEMS = 50
MAX_TEXTS = 1_000
# The message about a return value has only the start and end of a longer path.
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
    """The text is malformed JSON, is not UTF-8, or is nested too deep."""


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
    """Return the path, without its middle if it leads to a deep value."""
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
    """Return the path of a value in the dict at *path*, which is a return value."""
    return f"{path}[key {str(key)[:60]!r}]"


def item(path: str, index: int) -> str:
    """Return the path of an item of the array at *path*."""
    return f"{path}[{index}]"


def join(path: str, below: str) -> str:
    """Return the path *below*, which is relative to *path*, as an absolute path."""
    return f"{path}.{below}" if path and below and not below.startswith("[") else path + below


class TooManyProblems(Exception):
    """Stops a coercion that found more than MAX_PROBLEMS; it keeps the first ones."""


class TextReads:
    """The strings that a lenient coercion reads as other values; all its forks share one."""

    __slots__ = ("left", "unpacked")

    def __init__(self) -> None:
        # Each takes time, especially in a union; no model sends this many.
        self.left = MAX_TEXTS
        # The arrays and objects that were found in strings, by the id of the string.
        self.unpacked: dict[int, tuple[str, Any]] = {}

    def take(self) -> bool:
        """Return whether one more string may be read."""
        self.left -= 1
        return self.left >= 0


class Coercion:
    """One coercion's options, and the problems that it found."""

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
        # Accept values that JSON Schema accepts and msgspec does not, such as 1.0 for an int.
        self.repair = repair
        # Accept numbers, booleans, arrays and objects that are written in strings.
        self.lenient = lenient
        # Remove the keys that a record does not declare.
        self.prune = prune
        # Callers may see the arguments that they sent, except under a secret's name. A
        # return value may be secret.
        self.show_values = show_values
        # Further secret names, which do not look secret.
        self.aliases = aliases
        self.problems: list[Problem] = []
        self.stopped_early = False
        # The number of repaired values, and of undeclared or absent keys. They decide which
        # member of a union is the closest.
        self.repairs = 0
        self.key_differences = 0
        # Results by the ids of union and value, and by `lenient`. Without them, nested unions
        # of recursive types would take exponential time.
        self.union_attempts: dict[tuple[int, int, bool], MemberAttempt] = {}
        self.texts = TextReads()

    def may_read(self, value: Any) -> bool:
        """Return whether *value* is a string that may be read as another value."""
        return self.lenient and isinstance(value, str) and self.texts.take()

    def report_mismatch(self, node: Node, value: Any, path: str) -> Any:
        """Report that *node* does not accept *value*; return *value*."""
        from ..core.secrets import is_secret_path

        expected = describe(node)
        is_secret = is_secret_path(path, self.aliases) or _quotes_secret_name(value)
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


def _quotes_secret_name(value: Any) -> bool:
    """Return whether the shown part of a string is JSON with a secret's name."""
    from ..core.secrets import has_secret_name

    return isinstance(value, str) and has_secret_name(value[:MAX_SHOWN])


def _format_hint(node: Node, value: Any) -> str | None:
    """Return how to write a value of *node*; for a union, the first hint that a member has."""
    node = nodes.without_notes(node)
    if isinstance(node, nodes.Union):
        return next((hint for each in node.members if (hint := _format_hint(each, value))), None)
    if isinstance(node, nodes.Custom) and node.codec.example is not None:
        return f"write it like {node.codec.example}"
    if not isinstance(node, nodes.Scalar):
        return None
    from .scalars import format_hint

    return format_hint(node, value)


class MemberAttempt(NamedTuple):
    """The result of coercing a value to one member of a union."""

    value: Any
    """It stays alive here, because `Coercion.union_attempts` has its id."""
    data: Any
    coercion: Coercion
    member: Node | None = None
    """None if no member fits."""
