"""Reads the signature of a tool's function, and determines what fills each parameter."""

from __future__ import annotations

import re
import sys
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from types import UnionType
from typing import TYPE_CHECKING, Annotated, Any, TypeVar, Union, Unpack, get_args, get_origin

import msgspec

from ..errors import UndefinedAnnotation
from ..types.arguments import Parameter
from .callable_source import Source, all_names, keywords_name, open_parameters, resolved_hints
from .current_call import CallContext

if TYPE_CHECKING:
    from ..types.argument_object import ArgumentObject


MarkerT = TypeVar("MarkerT")


class AllArguments:
    """Marks the parameter that receives all arguments: `params: Annotated[T, AllArguments]`.

    The type describes the arguments: a TypedDict, a dataclass, a Struct or a model.
    `dict[str, Any]` accepts any arguments, or those in the tool's `input_schema`.
    """


def is_all_arguments(annotation: object) -> bool:
    """Return whether the parameter is marked with `AllArguments`, or with an instance of it."""
    markers = getattr(annotation, "__metadata__", ())
    return any(each is AllArguments or isinstance(each, AllArguments) for each in markers)


class Ask(msgspec.Struct, frozen=True):
    """Marks a parameter that the user fills in: `sure: Annotated[bool, Ask("Delete all?")]`.

    The parameter is not one of the tool's arguments, so a model cannot fill it in.
    """

    message: str
    """The question shown to the user."""


class Depends:
    """Marks a parameter that a function fills: `pool: Annotated[Pool, Depends(get_pool)]`.

    *function* may take the context and have its own dependencies. The parameter is not one of the
    tool's arguments, so it is not in any schema.
    """

    __slots__ = ("function",)

    def __init__(self, function: Callable[..., Any]) -> None:
        if not callable(function):
            raise TypeError(
                f"Depends takes a function, such as Depends(get_pool), not {function!r}"
            )
        self.function = function


class Header(msgspec.Struct, frozen=True):
    """Marks an argument that MCP clients also send in a header, `Mcp-Param-NAME`.

    Proxies and gateways can read the header, so never mark a secret.
    """

    name: str
    """The last part of the header's name: `Mcp-Param-NAME`."""

    def __post_init__(self) -> None:
        if not re.fullmatch(r"[!#$%&'*+.^_`|~0-9A-Za-z-]+", self.name):
            raise ValueError(f"{self.name!r} cannot be part of a header's name")


def marker_of(kind: type[MarkerT], annotation: object) -> MarkerT | None:
    """Return the marker of class *kind* in a parameter's annotation."""
    markers = getattr(annotation, "__metadata__", ())
    return next((each for each in markers if isinstance(each, kind)), None)


HIDDEN_CONTEXT = "*context"
"""The Context's name if a tool with dependencies takes none; parameters cannot have this name."""
_FRAMEWORKS = frozenset({"docket", "fastapi", "fastmcp", "mcp", "starlette", "uncalled_for"})


class Signature(msgspec.Struct, frozen=True, kw_only=True):
    """A function's parameters, grouped by what fills them, and its return annotation."""

    parameters: tuple[Parameter, ...]
    """The tool's arguments; none if it has `argument_object`."""
    argument_object: ArgumentObject | None = None
    """Set if the function takes all arguments as one object."""
    context: str | None
    """The parameter that receives the call's Context; a tool with dependencies always has one."""
    questions: tuple[Parameter, ...]
    """The parameters marked with `Ask`, which the user fills in."""
    dependencies: dict[str, Callable[..., Any]]
    """The functions for the parameters marked with `Depends`, by parameter name."""
    header_params: dict[tuple[str, ...], str]
    """The headers for the arguments marked with `Header`, by argument path."""
    returns: object
    """The return annotation; `Any` if the function has none."""

    def from_strings(self, pairs: Sequence[tuple[str, str | bytes]]) -> dict[str, Any]:
        """Return the argument object for `name=value` strings, parsed according to their types."""
        from ..types.values_from_text import from_strings

        return from_strings(self.parameters, pairs)


def read_signature(
    source: Source, owner: str, schema: Mapping[str, Any] | None = None
) -> Signature:
    """Resolve the annotations; raise NameError if a name in them is not defined yet.

    *schema* is the author's schema for the arguments of `**kwargs`.
    """
    with explain_undefined_names(owner, source):
        hints = resolved_hints(source)
    reader = _SignatureReader(source, owner, hints, schema)
    for parameter, default in open_parameters(source):
        annotation = hints.get(parameter)
        if _is_plain(annotation, default):
            plain = Parameter(name=parameter, annotation=annotation, default=default)
            reader.parameters.append(plain)
        else:
            reader.add(parameter, annotation, default)
    return reader.signature()


class _SignatureReader:
    """Collects a function's parameters, grouped by what fills them."""

    def __init__(
        self,
        source: Source,
        owner: str,
        hints: dict[str, Any],
        schema: Mapping[str, Any] | None,
    ) -> None:
        self._source = source
        self._owner = owner
        self._hints = hints
        self._schema = schema
        self._keywords = keywords_name(source)
        self._keywords_hint = hints.get(self._keywords or "", Any)
        self._by_schema = (
            self._keywords is not None
            and schema is not None
            and get_origin(self._keywords_hint) is not Unpack
        )
        self.parameters: list[Parameter] = []
        self._contexts: list[str] = []
        self._questions: list[Parameter] = []
        self._dependencies: dict[str, Callable[..., Any]] = {}
        self._objects: list[ArgumentObject] = []

    def add(self, parameter: str, annotation: object, default: object) -> None:
        """Add a parameter that is not plain."""
        where = f"parameter {parameter!r} of {self._owner}"
        # Another framework's marker can appear here only if that framework is loaded.
        if not _FRAMEWORKS.isdisjoint(sys.modules):
            from .other_frameworks import refuse_foreign_marker

            refuse_foreign_marker(parameter, annotation, default, where)
        # Functions created in a loop have defaults that callers must not replace.
        keeps_default = self._by_schema and default is not msgspec.NODEFAULT
        if parameter not in self._hints and not keeps_default:
            raise TypeError(_missing_type_message(parameter, self._owner, self._source))
        if is_context(annotation):
            self._contexts.append(parameter)
        elif (depends := marker_of(Depends, annotation)) is not None:
            self._dependencies[parameter] = depends.function
        elif is_all_arguments(annotation):
            from ..types.argument_object import ArgumentObject

            self._objects.append(ArgumentObject(parameter, annotation))
        elif not keeps_default:
            from ..types.field_info import read_parameter

            if annotation is AllArguments:
                advice = (
                    f"write {parameter}: Annotated[dict, AllArguments], or a TypedDict for dict"
                )
                raise TypeError(f"{where} has AllArguments as its type; {advice}")
            if isinstance(default, Depends):
                advice = f"write {parameter}: Annotated[TYPE, Depends(…)]"
                raise TypeError(f"{where} has Depends as its default; {advice}")
            group = self._questions if marker_of(Ask, annotation) else self.parameters
            group.append(read_parameter(parameter, annotation, default, where))

    def signature(self) -> Signature:
        """Return all parameters; raise TypeError for parameters that cannot be combined."""
        if len(self._contexts) > 1:
            raise TypeError(f"{self._owner} takes more than one Context; one is enough")
        if self._objects or self._keywords is not None:
            from ..types.argument_object import ArgumentObject, keyword_parameters, refuse_others

            names = all_names(self._source)
            if self._by_schema:
                self._objects.append(ArgumentObject(None, dict, names))
            elif self._keywords is not None:
                self.parameters += keyword_parameters(
                    self._keywords_hint, self._keywords, names, self._owner
                )
            if self._objects:
                refuse_others(self._objects, self.parameters, self._owner, self._schema)
                self.parameters = []
        if any(each.keyword for each in self.parameters):
            from ..types.field_info import refuse_shared_names

            refuse_shared_names(self.parameters, self._owner)
        headers: dict[tuple[str, ...], str] = {
            (each.name,): marker.name
            for each in self.parameters
            if (marker := marker_of(Header, each.annotation)) is not None
        }
        hidden = HIDDEN_CONTEXT if self._dependencies else None
        return Signature(
            parameters=tuple(self.parameters),
            argument_object=self._objects[0] if self._objects else None,
            context=self._contexts[0] if self._contexts else hidden,
            questions=tuple(self._questions),
            dependencies=self._dependencies,
            header_params=headers,
            returns=self._hints.get("return", Any),
        )


def _is_plain(annotation: object, default: object) -> bool:
    """Return whether the parameter is a plain type such as int or str, without any markers."""
    if type(annotation) is not type or annotation.__module__ != "builtins":
        return False
    return default is msgspec.NODEFAULT or type(default) is annotation


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
    function: Any = source.function  # mypy mistakes the field for a method
    if parameter in ("self", "cls"):
        name = function.__name__
        return f"{owner} is a method; register it from an object: app.add_tool(thing.{name})"
    from .other_frameworks import missing_type_hint

    hint = missing_type_hint(parameter, function.__name__)
    return f"parameter {parameter!r} of {owner} has no type; {hint}"


def is_context(annotation: object) -> bool:
    """Return True for `Context`, `Context[State]`, `Context | None` and `Annotated[Context, …]`."""
    if get_origin(annotation) in (Annotated, Union, UnionType):
        return any(map(is_context, get_args(annotation)))
    # Only `Context`, which is in a higher layer, is a direct subclass.
    kind = get_origin(annotation) or annotation
    return isinstance(kind, type) and CallContext in kind.__bases__
