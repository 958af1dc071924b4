"""A function and all that was worked out about it."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from functools import cached_property
from typing import TYPE_CHECKING, Any, TypedDict, cast

import msgspec

from ..content import Icon
from ..contract import Contract
from ..errors import ToolError
from ..peer import header_of
from ..shape import Shape
from ..types.arguments import Arguments
from ..types.output import Output
from ..types.parameter import Parameter
from ..types.unservable import check
from .return_type import Returns, read_returns
from .signature import (
    Signature,
    Source,
    check_callable,
    names_undefined,
    read_signature,
    source_of,
)

if TYPE_CHECKING:
    from .docstrings import Docstring

# No dot alone, nor two: a path drops them.
_NAME = re.compile(r"(?!\.{1,2}\Z)[A-Za-z0-9_.-]{1,128}")


class Options(TypedDict, total=False):
    """What an author may say about anything that is served, beside its function."""

    name: str
    title: str
    description: str
    icons: Sequence[Icon]
    meta: dict[str, Any]


class ToolOptions(Options, total=False):
    """What an author may say about a tool."""

    examples: Sequence[Mapping[str, Any]]
    """Argument objects, shown in the OpenAPI document."""
    raises: Sequence[type[ToolError]]
    """The failures its callers should expect, for the OpenAPI document."""
    input_schema: dict[str, Any]
    """Shown instead of the one made from the parameters; these still decide what is taken."""
    inline: bool
    """Run a plain `def` in place; for quick ones that never block."""
    timeout: float | None
    """How many seconds it may take."""
    lenient: bool
    """Take "7" for 7 and JSON in a string, which models send."""
    read_only: bool
    destructive: bool
    idempotent: bool
    open_world: bool
    """Hints for hosts; none is a promise that a host can rely on."""


_HINTS = {
    "read_only": "readOnlyHint",
    "destructive": "destructiveHint",
    "idempotent": "idempotentHint",
    "open_world": "openWorldHint",
}


class Tool:
    """Cheap to register; decoders are built at the first call, schemas at the first listing."""

    def __init__(
        self, fn: Callable[..., Any], options: Mapping[str, object], contract: Contract
    ) -> None:
        self._source = source_of(fn)
        self.fn = fn
        name: Any = options.get("name") or _name_of(fn, self._source)
        if not isinstance(name, str) or not _NAME.fullmatch(name):
            raise ValueError(
                f"{name!r} is no name for a tool; "
                "use 1 to 128 of the characters A-Z a-z 0-9 _ . -, as in @app.tool(name='add')"
            )
        self.name = name
        self.options = cast("ToolOptions", options)
        self.title = self.options.get("title")
        self.contract = contract
        self.lenient = self.options.get("lenient", False)
        self.is_async = self._source.is_async
        self.timeout = self.options.get("timeout")
        self.inline = self.options.get("inline", False) and not self.is_async
        check_callable(self._source, self.name)
        self._resolve_early()

    def _resolve_early(self) -> None:
        """Say what is wrong with an annotation now, unless it names what is not defined yet."""
        try:
            _ = self.returns
        except NameError:
            return

    @cached_property
    def signature(self) -> Signature:
        signature = read_signature(self._source, self.name)
        for parameter in signature.parameters:
            check(parameter.annotation, f"parameter {parameter.name!r} of tool {self.name!r}")
        return signature

    @cached_property
    def returns(self) -> Returns:
        annotation = self.signature.returns
        with names_undefined(self.name, self._source):
            return read_returns(
                annotation, self.contract, f"the return value of tool {self.name!r}"
            )

    @cached_property
    def arguments(self) -> Arguments:
        return Arguments(self.signature.parameters, lenient=self.lenient)

    @cached_property
    def output(self) -> Output:
        return Output(self.returns.data)

    @cached_property
    def shape(self) -> Shape:
        return self.returns.shape

    def from_strings(self, pairs: Sequence[tuple[str, str | bytes]]) -> dict[str, Any]:
        """The argument object for `name=value` strings, each read by its argument's type."""
        from ..types.shell_values import from_strings

        return from_strings(self.signature.parameters, pairs)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The arguments with their descriptions, for those who list them."""
        told = self._docstring.arguments
        return tuple(
            msgspec.structs.replace(parameter, description=told.get(parameter.name))
            for parameter in self.signature.parameters
        )

    @cached_property
    def header_params(self) -> dict[tuple[str, ...], str]:
        """The arguments that MCP clients also say in a header, by their path."""
        marked = {(each.name,): header_of(each.annotation) for each in self.signature.parameters}
        return {path: mark.name for path, mark in marked.items() if mark is not None}

    @property
    def hints(self) -> dict[str, bool]:
        """What it does to the world, in MCP's words."""
        given = {said: self.options.get(name) for name, said in _HINTS.items()}
        return {said: bool(value) for said, value in given.items() if value is not None}

    @cached_property
    def description(self) -> str:
        return self.options.get("description") or self._docstring.description

    @cached_property
    def _docstring(self) -> Docstring:
        from .docstrings import parse

        return parse(self.fn.__doc__ or self._source.function.__doc__)

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        from ..types.json_schema import arguments_schema

        own = self.options.get("input_schema")
        if own is not None:
            return own
        with names_undefined(self.name, self._source):
            schema = arguments_schema(self.parameters)
        for (name,), header in self.header_params.items():
            schema["properties"][name]["x-mcp-header"] = header
        return schema

    @cached_property
    def output_schema(self) -> dict[str, Any] | None:
        """The schema of what is sent, or None where the annotation does not say."""
        from ..types.json_schema import output_schema

        if not self.returns.declared:
            return None
        with names_undefined(self.name, self._source):
            return self.returns.shape.wrap_schema(output_schema(self.returns.data))


def _name_of(fn: Callable[..., Any], source: Source) -> str:
    """An object that can be called is named as its class is."""
    name = source.function.__name__
    return type(fn).__name__ if name == "__call__" else name


def check_options(given: Mapping[str, Any], known: type[Any]) -> None:
    """Refuse an option that nothing, or nothing good, would be done with."""
    if unknown := given.keys() - known.__annotations__.keys():
        options = ", ".join(sorted(known.__annotations__))
        raise TypeError(f"no option is named {min(unknown)!r}; there are {options}")
    for name, (wanted, fits) in _FITTING.items():
        value = given.get(name)
        if value is not None and not fits(value):
            raise TypeError(f"{name}={value!r} should be {wanted}")


def _are(values: Any, fits: Callable[[Any], bool]) -> bool:
    return isinstance(values, list | tuple) and all(map(fits, values))


def _is_failure(value: Any) -> bool:
    return isinstance(value, type) and issubclass(value, ToolError)


def _is_time(value: Any) -> bool:
    return isinstance(value, int | float) and not isinstance(value, bool) and value > 0


_FITTING: dict[str, tuple[str, Callable[[Any], bool]]] = {
    "title": ("a str", lambda value: isinstance(value, str)),
    "description": ("a str", lambda value: isinstance(value, str)),
    "icons": ("a list of Icon", lambda value: _are(value, lambda one: isinstance(one, Icon))),
    "meta": ("a dict", lambda value: isinstance(value, dict)),
    "examples": (
        "a list of argument objects, such as [{'x': 7}]",
        lambda value: _are(value, lambda one: isinstance(one, Mapping)),
    ),
    "raises": ("a list of subclasses of ToolError", lambda value: _are(value, _is_failure)),
    "timeout": ("a number of seconds greater than 0", _is_time),
    "input_schema": (
        "a JSON Schema with 'type': 'object'",
        lambda value: isinstance(value, dict) and value.get("type") == "object",
    ),
}
