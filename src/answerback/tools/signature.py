"""Reads a function's signature by hand: importing `inspect` costs as much as a whole call."""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from types import FunctionType, MethodType, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from ..context import Context
from ..errors import UndefinedAnnotation
from ..types.parameter import Parameter
from .markers import ask_of

_VARARGS, _VARKEYWORDS, _GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x04, 0x08, 0x20, 0x80, 0x200


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """What a function takes and gives."""

    parameters: tuple[Parameter, ...]
    context: str | None
    """The parameter that is given the call's Context, not an argument."""
    questions: tuple[Parameter, ...]
    """Those that the user is asked for; no arguments either."""
    returns: Any
    """The return annotation; `Any` where there is none."""


class Source(msgspec.Struct, frozen=True):
    """The function that holds a callable's signature; if `bound`, its first parameter is given."""

    function: FunctionType
    bound: bool
    is_async: bool
    """Whether calling it gives a coroutine for sure; a decorator decides, not what is in it."""


def source_of(fn: Callable[..., Any]) -> Source:
    """Look through methods, decorators that keep `__wrapped__`, and callable objects."""
    seen: Any = fn
    bound = False
    outermost: FunctionType | None = None
    while True:
        if isinstance(seen, FunctionType):
            outermost = outermost or seen
            if not hasattr(seen, "__wrapped__"):
                return Source(seen, bound, bool(outermost.__code__.co_flags & _COROUTINE))
        # A method hands out its function's attributes, so it is looked at first.
        if isinstance(seen, MethodType):
            seen, bound = seen.__func__, True
        elif hasattr(seen, "__wrapped__"):
            seen = seen.__wrapped__
        # Not callable(): the function behind an object is what is looked for.
        elif isinstance(call := getattr(type(seen), "__call__", None), FunctionType):  # noqa: B004
            seen, bound = call, True
        else:
            raise TypeError(f"{fn!r} cannot be a tool; write a def that calls it")


def check_callable(source: Source, name: str) -> None:
    """Refuse, in words that say what to change, what cannot be called by argument names."""
    code = source.function.__code__
    if code.co_flags & (_GENERATOR | _ASYNC_GENERATOR):
        raise TypeError(f"tool {name!r} is a generator; return a list instead of yielding")
    if code.co_flags & _VARARGS:
        raise TypeError(f"tool {name!r} takes *args; name each argument, or take one list")
    if code.co_flags & _VARKEYWORDS:
        raise TypeError(f"tool {name!r} takes **kwargs; name each argument, or take one dict")
    if code.co_posonlyargcount > source.bound:
        raise TypeError(f"tool {name!r} has positional-only parameters; remove the '/'")


def read_signature(source: Source, name: str) -> Signature:
    """Resolve the annotations; raises NameError while one of them is not defined yet."""
    with names_undefined(name, source):
        hints = get_type_hints(source.function, include_extras=True)
    returns = hints.pop("return", Any)
    contexts: list[str] = []
    questions: list[Parameter] = []
    parameters: list[Parameter] = []
    for parameter, default in _parameters(source):
        if parameter not in hints:
            raise TypeError(_untyped(parameter, name))
        annotation = hints[parameter]
        if _is_context(annotation):
            contexts.append(parameter)
            continue
        kind = questions if ask_of(annotation) else parameters
        kind.append(Parameter(name=parameter, annotation=annotation, default=default))
    if len(contexts) > 1:
        raise TypeError(f"tool {name!r} takes more than one Context; one is enough")
    return Signature(
        parameters=tuple(parameters),
        context=contexts[0] if contexts else None,
        questions=tuple(questions),
        returns=returns,
    )


@contextmanager
def names_undefined(tool: str, source: Source) -> Iterator[None]:
    """Say which tool it is whose annotations have a name that is not defined yet."""
    try:
        yield
    except UndefinedAnnotation:
        raise
    except NameError as exc:
        raise UndefinedAnnotation(
            f"tool {tool!r} is annotated with a type that is not there: {exc}; "
            f"define or import it at the top level of {source.function.__module__}"
        ) from exc


def _untyped(parameter: str, tool: str) -> str:
    if parameter in ("self", "cls"):
        return f"tool {tool!r} is a method; register it of an object: app.add_tool(thing.{tool})"
    return f"parameter {parameter!r} of tool {tool!r} has no type; write {parameter}: str"


def _parameters(source: Source) -> Iterator[tuple[str, Any]]:
    function: Any = source.function  # mypy takes the field for a method
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    keyword = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    defaults = function.__defaults__ or ()
    required = len(positional) - len(defaults)
    for index, name in enumerate(positional):
        if index == 0 and source.bound:
            continue
        yield name, defaults[index - required] if index >= required else msgspec.NODEFAULT
    for name in keyword:
        yield name, (function.__kwdefaults__ or {}).get(name, msgspec.NODEFAULT)


def _is_context(annotation: Any) -> bool:
    """`Context`, `Context | None` or `Annotated[Context, …]`."""
    if get_origin(annotation) in (Annotated, Union, UnionType):
        return any(map(_is_context, get_args(annotation)))
    return annotation is Context
