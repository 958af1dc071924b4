"""Finds the function behind a callable, and reads its parameters and annotations.

It does not use `inspect`, because importing it takes as long as an entire call.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Iterator
from contextlib import contextmanager
from functools import partial
from types import FunctionType, MethodType, SimpleNamespace
from typing import Any, get_type_hints

import msgspec

# Bits of a code object's `co_flags`.
_VARARGS, _VARKEYWORDS, _GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x04, 0x08, 0x20, 0x80, 0x200


def is_generator(function: FunctionType) -> bool:
    """Return whether calling the function returns a generator, plain or async."""
    return bool(function.__code__.co_flags & (_GENERATOR | _ASYNC_GENERATOR))


class Source(msgspec.Struct, frozen=True):
    """The plain function behind a callable, from which the signature is read."""

    function: FunctionType
    bound: int
    """How many leading parameters are already filled, such as `self`."""
    is_async: bool
    """Whether the callable is known to return a coroutine; the outermost decorator decides."""
    filled: frozenset[str] = frozenset()
    """The parameters that `functools.partial` filled by name."""
    given: Any = None
    """The `__signature__` that replaces the function's own parameters; None if there is none."""

    @property
    def is_generator(self) -> bool:
        """Whether calling the function returns a generator, plain or async."""
        function: Any = self.function  # mypy mistakes the field for a method
        return is_generator(function)


def source_of(fn: Callable[..., Any]) -> Source:
    """Find the function behind methods, partials, callable objects and `__wrapped__`.

    As in `inspect`, a `__signature__` along the way replaces the wrapped function's parameters.
    """
    seen: object = fn
    bound, filled = 0, set[str]()
    outermost: FunctionType | None = None
    given: tuple[Any, int] | None = None
    while True:
        # A method has all attributes of its function, so methods are unwrapped first.
        if isinstance(seen, MethodType):
            seen, bound = seen.__func__, bound + 1
            continue
        if given is None and is_signature(found := getattr(seen, "__signature__", None)):
            given = found, bound
        if isinstance(seen, FunctionType):
            outermost = outermost or seen
            if given or not hasattr(seen, "__wrapped__"):
                is_async = bool(outermost.__code__.co_flags & _COROUTINE)
                signature, bound = given or (None, bound)
                return Source(seen, bound, is_async, frozenset(filled), signature)
        if isinstance(seen, partial):
            filled |= seen.keywords.keys()
            bound += len(seen.args)
            seen = seen.func
        elif hasattr(seen, "__wrapped__"):
            seen = seen.__wrapped__
        # callable() is not enough: the function in the object's class is needed.
        elif isinstance(call := getattr(type(seen), "__call__", None), FunctionType):  # noqa: B004
            seen, bound = call, bound + 1
        else:
            raise TypeError(f"{fn!r} cannot be a tool; write a def that calls it")


def is_signature(value: object) -> bool:
    """Return whether this is an `inspect.Signature`, without importing `inspect`."""
    return type(value).__name__ == "Signature" and hasattr(value, "parameters")


class CallableKind(msgspec.Struct, frozen=True):
    """The kind of value that a callable returns."""

    is_async: bool
    is_generator: bool
    is_manager: bool
    """Whether contextlib has already turned a generator into a context manager function."""


def callable_kind(fn: Any) -> CallableKind:
    """Return whether a callable is async, a generator, or decorated by contextlib."""
    if isinstance(fn, type):
        return CallableKind(False, False, False)
    inner = source_of(fn).function.__code__.co_flags
    while isinstance(fn, partial):
        fn = fn.func
    outer: Any = getattr(fn, "__func__", fn)
    if not isinstance(outer, FunctionType):
        outer = getattr(type(fn), "__call__", fn)  # noqa: B004 -- the class's function
    code = outer.__code__
    is_generator = bool(inner & (_GENERATOR | _ASYNC_GENERATOR))
    return CallableKind(
        bool((inner if is_generator else code.co_flags) & (_COROUTINE | _ASYNC_GENERATOR)),
        is_generator,
        is_generator and code.co_filename == contextmanager.__code__.co_filename,
    )


def parameter_hints(fn: Any) -> dict[str, Any]:
    """Return the annotations of a callable's parameters; None for a parameter without one."""
    if isinstance(fn, type):
        if not isinstance(fn.__init__, FunctionType):  # type: ignore[misc]  # any class
            return {}
        source = Source(fn.__init__, 1, False)  # type: ignore[misc]  # any class
    else:
        source = source_of(fn)
    hints = resolved_hints(source)
    return {name: hints.get(name) for name, _ in open_parameters(source)}


def resolved_hints(source: Source) -> dict[str, Any]:
    """Return the resolved annotations of the parameters and of the return value."""
    if source.given is None:
        return get_type_hints(source.function, include_extras=True)
    function: Any = source.function  # mypy mistakes the field for a method
    given = {name: each.annotation for name, each in source.given.parameters.items()}
    given["return"] = source.given.return_annotation
    missing = source.given.empty
    if sys.version_info >= (3, 14):
        import annotationlib

        # `__annotations__` would raise for an undefined name, even for a parameter left out here.
        every = annotationlib.get_annotations(function, format=annotationlib.Format.FORWARDREF)
    else:
        every = function.__annotations__
    own = {name: hint for name, hint in every.items() if name in given}
    known = own | {name: hint for name, hint in given.items() if hint is not missing}
    annotated = SimpleNamespace(__annotations__=known)
    return get_type_hints(annotated, function.__globals__, include_extras=True)


def required_parameters(source: Source) -> list[str]:
    """Return the names of the parameters without a default."""
    return [name for name, default in open_parameters(source) if default is msgspec.NODEFAULT]


def check_callable(source: Source, owner: str, *, is_tool: bool = False) -> None:
    """Raise TypeError for a function that cannot be called with named arguments.

    *owner* names the function in messages, such as `tool 'add'`. Whether a tool may take `**kwargs`
    or yield is decided when its signature is read.
    """
    if source.is_generator and not is_tool:
        raise TypeError(f"{owner} is a generator; return a value instead of yielding")
    flags, positional_only = _forms(source)
    if flags & _VARARGS and flags & _VARKEYWORDS:
        raise TypeError(
            f"{owner} takes *args and **kwargs, like a decorator's inner function; write "
            "@functools.wraps(fn) above that function, or name each argument"
        )
    if flags & _VARARGS:
        raise TypeError(f"{owner} takes *args; name each argument, or take one list")
    if flags & _VARKEYWORDS and not is_tool:
        raise TypeError(f"{owner} takes **kwargs; name each argument, or take one dict")
    if positional_only > source.bound:
        raise TypeError(f"{owner} has positional-only parameters; remove the '/'")


def _forms(source: Source) -> tuple[int, int]:
    """Return the flags for `*args` and `**kwargs`, and the number of positional-only parameters."""
    if source.given is None:
        code = source.function.__code__
        return code.co_flags & (_VARARGS | _VARKEYWORDS), code.co_posonlyargcount
    kinds = [each.kind.name for each in source.given.parameters.values()]
    flags = ("VAR_POSITIONAL" in kinds) * _VARARGS | ("VAR_KEYWORD" in kinds) * _VARKEYWORDS
    return flags, kinds.count("POSITIONAL_ONLY")


def open_parameters(source: Source) -> Iterator[tuple[str, Any]]:
    """Yield the name and the default, or NODEFAULT, of each parameter that is not filled yet."""
    every = _own_parameters(source) if source.given is None else _given_parameters(source)
    for index, (name, default) in enumerate(every):
        if index >= source.bound and name not in source.filled:
            yield name, default


def _own_parameters(source: Source) -> Iterator[tuple[str, Any]]:
    function: Any = source.function  # mypy mistakes the field for a method
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    keyword = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    defaults = function.__defaults__ or ()
    required = len(positional) - len(defaults)
    for index, name in enumerate(positional):
        yield name, defaults[index - required] if index >= required else msgspec.NODEFAULT
    for name in keyword:
        yield name, (function.__kwdefaults__ or {}).get(name, msgspec.NODEFAULT)


def keywords_name(source: Source) -> str | None:
    """Return the name of `**kwargs`; None if the function takes no extra keywords."""
    if not _forms(source)[0] & _VARKEYWORDS:
        return None
    if source.given is not None:
        return str(list(source.given.parameters)[-1])
    code = source.function.__code__
    return code.co_varnames[code.co_argcount + code.co_kwonlyargcount]


def all_names(source: Source) -> frozenset[str]:
    """Return the names of all parameters, including those that are already filled."""
    given = () if source.given is None else source.given.parameters
    own = (name for name, _ in _own_parameters(source))
    return frozenset((*own, *given)) - {keywords_name(source)}


def _given_parameters(source: Source) -> Iterator[tuple[str, Any]]:
    for name, each in source.given.parameters.items():
        if each.kind.name not in ("VAR_POSITIONAL", "VAR_KEYWORD"):
            yield name, msgspec.NODEFAULT if each.default is each.empty else each.default
