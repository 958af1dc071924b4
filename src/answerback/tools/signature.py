"""Reads the signature of a tool's function.

It does not use `inspect`, whose import takes as long as a whole call.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from contextlib import contextmanager
from functools import partial
from types import FunctionType, MethodType, SimpleNamespace, UnionType
from typing import Annotated, Any, Union, get_args, get_origin, get_type_hints

import msgspec

from ..errors import UndefinedAnnotation
from ..types.arguments import Parameter
from .context import Context
from .markers import Ask, Depends, Header, marker_of

# Bits of a code object's `co_flags`.
_VARARGS, _VARKEYWORDS, _GENERATOR, _COROUTINE, _ASYNC_GENERATOR = 0x04, 0x08, 0x20, 0x80, 0x200

HIDDEN_CONTEXT = "*context"
"""Receives the Context if a tool with dependencies takes none; not a parameter's name."""


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """A function's parameters, by what fills them, and its return annotation."""

    parameters: tuple[Parameter, ...]
    """The tool's arguments."""
    context: str | None
    """The parameter that receives the call's Context; a tool with dependencies always has one."""
    questions: tuple[Parameter, ...]
    """The parameters marked with `Ask`, which the user answers."""
    dependencies: dict[str, Callable[..., Any]]
    """The functions of the parameters marked with `Depends`, by parameter name."""
    header_params: dict[tuple[str, ...], str]
    """The headers of the arguments marked with `Header`, by the argument's path."""
    returns: object
    """The return annotation; `Any` if the function has none."""

    def from_strings(self, pairs: Sequence[tuple[str, str | bytes]]) -> dict[str, Any]:
        """Return the argument object for `name=value` strings, read by the arguments' types."""
        from ..types.values_from_text import from_strings

        return from_strings(self.parameters, pairs)


class Source(msgspec.Struct, frozen=True):
    """The plain function behind a callable, from which the signature is read."""

    function: FunctionType
    bound: int
    """How many of the first parameters are already filled, as `self` is."""
    is_async: bool
    """Whether the callable certainly returns a coroutine; the outermost decorator decides."""
    filled: frozenset[str] = frozenset()
    """The parameters that `functools.partial` filled by name."""
    given: Any = None
    """The `__signature__` that replaces the function's own parameters; None without one."""


def source_of(fn: Callable[..., Any]) -> Source:
    """Find the function behind methods, partials, callable objects and `__wrapped__`.

    As for `inspect`, a `__signature__` on the way replaces the parameters of what is behind it.
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
            seen, bound = seen.func, bound + len(seen.args)
        elif hasattr(seen, "__wrapped__"):
            seen = seen.__wrapped__
        # callable() would not do: the function in the object's class is needed.
        elif isinstance(call := getattr(type(seen), "__call__", None), FunctionType):  # noqa: B004
            seen, bound = call, bound + 1
        else:
            raise TypeError(f"{fn!r} cannot be a tool; write a def that calls it")


def is_signature(value: object) -> bool:
    """Return whether this is an `inspect.Signature`, without importing `inspect`."""
    return type(value).__name__ == "Signature" and hasattr(value, "parameters")


def is_generator(function: FunctionType) -> bool:
    """Return whether calling the function returns a generator, plain or async."""
    return bool(function.__code__.co_flags & (_GENERATOR | _ASYNC_GENERATOR))


class CallableKind(msgspec.Struct, frozen=True):
    """The kind of value that a callable returns."""

    is_async: bool
    is_generator: bool
    is_manager: bool
    """Whether contextlib has already made a context manager function from a generator."""


def callable_kind(fn: Any) -> CallableKind:
    """Return whether a callable is async, a generator, or decorated by contextlib."""
    if isinstance(fn, type):
        return CallableKind(False, False, False)
    inner = source_of(fn).function.__code__.co_flags
    while isinstance(fn, partial):
        fn = fn.func
    outer: Any = getattr(fn, "__func__", fn)
    if not isinstance(outer, FunctionType):
        outer = getattr(type(fn), "__call__", fn)  # noqa: B004 -- the function of the class
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
    hints = _hints(source)
    return {name: hints.get(name) for name, _ in _parameters(source)}


def _hints(source: Source) -> dict[str, Any]:
    """Return the resolved annotations of the parameters and of the return value."""
    if source.given is None:
        return get_type_hints(source.function, include_extras=True)
    function: Any = source.function  # mypy takes the field for a method
    given = {name: each.annotation for name, each in source.given.parameters.items()}
    given["return"] = source.given.return_annotation
    missing = source.given.empty
    own = {name: hint for name, hint in function.__annotations__.items() if name in given}
    known = own | {name: hint for name, hint in given.items() if hint is not missing}
    annotated = SimpleNamespace(__annotations__=known)
    return get_type_hints(annotated, function.__globals__, include_extras=True)


def dependency_functions(signature: Signature) -> Iterator[FunctionType]:
    """Yield the functions that fill `Depends` parameters, also those of dependencies."""
    waiting = list(signature.dependencies.values())
    for each in waiting:
        if isinstance(each, type):
            continue
        function: Any = source_of(each).function  # mypy takes the field for a method
        yield function
        markers = (marker_of(Depends, hint) for hint in parameter_hints(each).values())
        waiting += [found.function for found in markers if found and found.function not in waiting]


def required_parameters(source: Source) -> list[str]:
    """Return the names of the parameters without a default."""
    return [name for name, default in _parameters(source) if default is msgspec.NODEFAULT]


def check_callable(source: Source, owner: str) -> None:
    """Raise TypeError for a function that cannot be called with named arguments.

    *owner* names the function in messages, such as `tool 'add'`.
    """
    if is_generator(source.function):
        raise TypeError(f"{owner} is a generator; return a list instead of yielding")
    flags, positional_only = _forms(source)
    if flags & _VARARGS and flags & _VARKEYWORDS:
        raise TypeError(
            f"{owner} takes *args and **kwargs, as a decorator's inner function does; write "
            "@functools.wraps(fn) above that function, or name each argument"
        )
    if flags & _VARARGS:
        raise TypeError(f"{owner} takes *args; name each argument, or take one list")
    if flags & _VARKEYWORDS:
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


def read_signature(source: Source, owner: str) -> Signature:
    """Resolve the annotations; raise NameError while a name in them is not defined yet."""
    with explain_undefined_names(owner, source):
        hints = _hints(source)
    returns = hints.pop("return", Any)
    contexts: list[str] = []
    questions: list[Parameter] = []
    parameters: list[Parameter] = []
    dependencies: dict[str, Callable[..., Any]] = {}
    for parameter, default in _parameters(source):
        annotation = hints.get(parameter)
        if _is_plain(annotation, default):
            parameters.append(Parameter(name=parameter, annotation=annotation, default=default))
            continue
        # Imported at the first parameter that is not plain.
        from ..types.field_info import read_parameter
        from .foreign_markers import refuse_foreign_marker

        where = f"parameter {parameter!r} of {owner}"
        refuse_foreign_marker(parameter, annotation, default, where)
        if parameter not in hints:
            raise TypeError(_missing_type_message(parameter, owner, source))
        if is_context(annotation):
            contexts.append(parameter)
            continue
        if (depends := marker_of(Depends, annotation)) is not None:
            dependencies[parameter] = depends.function
            continue
        if isinstance(default, Depends):
            advice = f"write {parameter}: Annotated[TYPE, Depends(…)]"
            raise TypeError(f"{where} has Depends as its default; {advice}")
        group = questions if marker_of(Ask, annotation) else parameters
        group.append(read_parameter(parameter, annotation, default, where))
    if len(contexts) > 1:
        raise TypeError(f"{owner} takes more than one Context; one is enough")
    if any(each.keyword for each in parameters):
        from ..types.field_info import refuse_shared_names

        refuse_shared_names(parameters, owner)
    return Signature(
        parameters=tuple(parameters),
        context=contexts[0] if contexts else HIDDEN_CONTEXT if dependencies else None,
        questions=tuple(questions),
        dependencies=dependencies,
        header_params=_header_params(parameters),
        returns=returns,
    )


def _is_plain(annotation: object, default: object) -> bool:
    """Return whether the parameter is an int, a str or the like, without any markers."""
    if type(annotation) is not type or annotation.__module__ != "builtins":
        return False
    return default is msgspec.NODEFAULT or type(default) is annotation


def _header_params(parameters: Sequence[Parameter]) -> dict[tuple[str, ...], str]:
    return {
        (each.name,): marker.name
        for each in parameters
        if (marker := marker_of(Header, each.annotation)) is not None
    }


@contextmanager
def explain_undefined_names(owner: str, source: Source) -> Iterator[None]:
    """Turn a NameError in an annotation into UndefinedAnnotation, which names the tool."""
    try:
        yield
    except UndefinedAnnotation:
        raise
    except NameError as exc:
        raise UndefinedAnnotation(
            f"{owner} is annotated with a type that is not defined: {exc}; "
            f"define or import it at the top level of {source.function.__module__}"
        ) from exc


def _missing_type_message(parameter: str, owner: str, source: Source) -> str:
    function: Any = source.function  # mypy takes the field for a method
    if parameter in ("self", "cls"):
        name = function.__name__
        return f"{owner} is a method; register it of an object: app.add_tool(thing.{name})"
    from .other_frameworks import missing_type_hint

    hint = missing_type_hint(parameter, function.__name__)
    return f"parameter {parameter!r} of {owner} has no type; {hint}"


def _parameters(source: Source) -> Iterator[tuple[str, Any]]:
    """Yield the name and the default, or NODEFAULT, of each parameter that is not filled yet."""
    every = _own_parameters(source) if source.given is None else _given_parameters(source)
    for index, (name, default) in enumerate(every):
        if index >= source.bound and name not in source.filled:
            yield name, default


def _own_parameters(source: Source) -> Iterator[tuple[str, Any]]:
    function: Any = source.function  # mypy takes the field for a method
    code = function.__code__
    positional = code.co_varnames[: code.co_argcount]
    keyword = code.co_varnames[code.co_argcount : code.co_argcount + code.co_kwonlyargcount]
    defaults = function.__defaults__ or ()
    required = len(positional) - len(defaults)
    for index, name in enumerate(positional):
        yield name, defaults[index - required] if index >= required else msgspec.NODEFAULT
    for name in keyword:
        yield name, (function.__kwdefaults__ or {}).get(name, msgspec.NODEFAULT)


def _given_parameters(source: Source) -> Iterator[tuple[str, Any]]:
    for name, each in source.given.parameters.items():
        if each.kind.name not in ("VAR_POSITIONAL", "VAR_KEYWORD"):
            yield name, msgspec.NODEFAULT if each.default is each.empty else each.default


def is_context(annotation: object) -> bool:
    """Return True for `Context`, `Context[State]`, `Context | None` and `Annotated[Context, …]`."""
    if get_origin(annotation) in (Annotated, Union, UnionType):
        return any(map(is_context, get_args(annotation)))
    return annotation is Context or get_origin(annotation) is Context
