"""What can be wrong with a value or a type.

ValueError
  InvalidJson           the text is not JSON at all
Exception
  InvalidArguments      JSON, but not what the function takes
  InvalidOutput         not what the function promised to return
TypeError
  UnservableType        a developer's mistake, told at registration
"""

import msgspec


class Problem(msgspec.Struct, frozen=True, kw_only=True, omit_defaults=True):
    """One thing wrong with a value: where, what was expected and what came."""

    path: str
    message: str
    expected: str | None = None
    got: str | None = None
    hint: str | None = None

    def __str__(self) -> str:
        text = f"{self.path}: {self.message}" if self.path else self.message
        return f"{text}; {self.hint}" if self.hint else text


class InvalidJson(ValueError):
    """The text is not JSON that we read: broken, not UTF-8 or nested too deep."""


class InvalidArguments(Exception):
    """The arguments do not fit the function; `problems` lists what is wrong."""

    def __init__(self, problems: tuple[Problem, ...], *, are_all: bool = True) -> None:
        rest = () if are_all else ("there are more problems than these",)
        super().__init__("\n".join((*map(str, problems), *rest)))
        self.problems = problems


class InvalidOutput(Exception):
    """The value is not what the return type says; the message never shows the value."""

    def __init__(self, path: str, message: str) -> None:
        super().__init__(f"{path}: {message}" if path else message)
        self.path = path
        self.message = message

    def below(self, path: str) -> "InvalidOutput":
        """The same, of a value that stands at *path* of another."""
        return InvalidOutput(join(path, self.path), self.message)


class UnservableType(TypeError):
    """A type that cannot be read from or written to JSON."""

    def __init__(self, where: str, problem: str) -> None:
        super().__init__(f"{where}: {problem}")
        self.where = where


def member(path: str, name: object) -> str:
    """The path of a member of the object at *path*."""
    text = str(name)
    if not text.isidentifier():
        return f"{path}[{text[:60]!r}]"
    return f"{path}.{text[:60]}" if path else text[:60]


def item(path: str, index: int) -> str:
    """The path of an item of the array at *path*."""
    return f"{path}[{index}]"


def join(path: str, below: str) -> str:
    """The path *below*, seen from where *path* starts."""
    return f"{path}.{below}" if path and below and not below.startswith("[") else path + below
