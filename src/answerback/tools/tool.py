"""Tool: a function, its options, and what its signature implies."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from contextlib import suppress
from functools import cached_property, partial
from typing import TYPE_CHECKING, Annotated, Any, get_args, get_origin

import msgspec

from ..contract import NAME_CHARACTERS, Contract
from ..core.reply import Reply
from ..core.shape import Shape
from ..types.annotation_reader import check_type
from ..types.arguments import Arguments, Parameter, check_parameter
from ..types.output import Output
from ..types.problems import UnservableType
from .callable_source import check_callable, source_of
from .return_type import ReturnType, can_have_message, declares_reply, read_return_type
from .signature import Signature, explain_undefined_names, read_signature
from .tool_options import ToolSettings, policy_of

if TYPE_CHECKING:
    from ..registry.declarations import Registry
    from .docstrings import Docstring
    from .requires import Gates
    from .tool_options import ToolPolicy

# URL normalization removes these names from a path.
_NO_NAMES = frozenset({"", ".", ".."})
_MAX_NAME = 128


def _refuse_lambda(name: object) -> None:
    if name == "<lambda>":
        raise ValueError("a lambda has no name and no types; write a def, or give a name=")


def check_tool_name(name: object) -> str:
    """Return a tool's name; raise ValueError for one that MCP or a URL does not allow."""
    _refuse_lambda(name)
    is_known = isinstance(name, str) and NAME_CHARACTERS.issuperset(name)
    if not isinstance(name, str) or not is_known or name in _NO_NAMES or len(name) > _MAX_NAME:
        raise ValueError(
            f"{name!r} cannot be the name of a tool; "
            "use 1 to 128 of the characters A-Z a-z 0-9 _ . -, as in @app.tool(name='add')"
        )
    return name


class Tool:
    """A registered function; `settings` has all its options, including defaults.

    Decoders are built on the first call, schemas when the tool is listed.
    """

    path: tuple[Registry, ...] = ()
    """The app that serves the tool, then each included app down to the one that owns it."""
    middleware: tuple[Any, ...] = ()
    """The middleware that wraps each run, from the apps in `path`, in that order."""
    gates: Gates | None = None
    """The gates that a caller must pass before the function runs; None if there are none."""
    policy: ToolPolicy | None = None
    """Its limits, breaker and retries; None if it has none."""
    has_gates_or_policy = False
    """True if the tool has either, so that calls to other tools skip both checks."""
    is_paged = False
    """Whether it returns a `Page`, and takes a `cursor` argument."""
    is_listed = True
    """Whether it is listed; `@app.visible` hides only listed entries."""
    is_widget = False
    """Whether it is a widget: a page for tools, served regardless of the tags that select tools."""
    noun = "tool"
    _check_name = staticmethod(check_tool_name)

    def __init__(self, fn: Callable[..., Any], settings: ToolSettings, contract: Contract) -> None:
        self.contract = contract
        # A function made by `wrap` is served unwrapped: a tool treats its result the same way.
        wrapped = getattr(fn, "made_by_wrap", None)
        if wrapped is not None and wrapped.made is not fn:
            wrapped = None
        if wrapped is not None and wrapped.nan is not None:
            chosen = settings.chosen | {"nan"}
            settings = msgspec.structs.replace(settings, nan=wrapped.nan, chosen=chosen)
        self.fn = fn if wrapped is None else wrapped.fn
        self.settings = settings
        self.budget = settings.budget
        self.source = source_of(self.fn)
        name = self.source.function.__name__
        # A callable object is named after its class.
        name = type(self.fn).__name__ if name == "__call__" else name
        self.name = self._check_name(settings.name or name)
        self.title = settings.title
        self.security_schemes = read_security_schemes(settings, self.noun)
        """How a caller authenticates, for hosts; it is listed, but not enforced."""
        self.timeout = settings.timeout
        if settings.limit or settings.breaker or settings.retry:
            self.policy = policy_of(settings)
            self.has_gates_or_policy = True
        self.is_async = self.source.is_async
        self.inline = settings.inline and not self.is_async
        # The author of a wrapped function knows that its finished replies are sent.
        self.logged_finished = wrapped is not None
        """Whether a finished reply from this tool has been logged; only the first one is."""
        self.logged_meta = False
        """Whether invalid metadata in a finished reply has been logged; only the first case is."""
        check_callable(self.source, self.owner, is_tool=True)
        # Refuse unservable annotations now, unless a name in them is not defined yet; those are
        # read on the first call.
        with suppress(NameError):
            _ = self.returns
            given = {"output_schema": self.settings.output_schema}
            if (received := self.signature.argument_object) is not None and received.is_free:
                given["input_schema"] = self.settings.input_schema
            for option, schema in given.items():
                if schema is not None:
                    from ..types.schema_arguments import check_schema

                    check_schema(schema, f"{option} of {self.owner}")

    @property
    def public_name(self) -> str:
        """The name that callers use; for a resource it is the URI or URI template."""
        return self.name

    @property
    def owner(self) -> str:
        """The tool's name in messages, such as `tool 'add'`."""
        return f"{self.noun} {self.name!r}"

    @cached_property
    def signature(self) -> Signature:
        signature = read_signature(self.source, self.owner, self.settings.input_schema)
        for parameter in signature.parameters:
            where = f"parameter {parameter.target!r} of {self.owner}"
            try:
                check_parameter(parameter, where)
            except UnservableType as exc:
                raise _with_advice(exc, parameter, where) from None
        if self.noun == "tool" and _may_have_pages(signature.returns):
            from .paging import with_pages

            signature = with_pages(self, signature)
        elif self.source.is_generator:
            instead = "return a list instead of yielding"
            if self.noun == "tool":
                instead += ", or declare what it yields, as in -> Iterator[str]"
            raise TypeError(f"{self.owner} is a generator; {instead}")
        if signature.dependencies:
            from .dependencies import with_dependencies

            self.fn = with_dependencies(self, signature)
        return signature

    @cached_property
    def returns(self) -> ReturnType:
        annotation = self.signature.returns
        finished = self.settings.returns == "reply"
        with explain_undefined_names(self.owner, self.source):
            returns = read_return_type(
                annotation,
                self.contract,
                f"the return value of {self.owner}",
                finished=finished,
                schema=self.settings.output_schema,
            )
        if self.settings.nan == "null":
            from ..types.unencodable import with_nan_as_null

            nullable = with_nan_as_null(returns.data_type)
            returns = msgspec.structs.replace(returns, data_type=nullable)
        return returns

    @cached_property
    def shape(self) -> Shape:
        """The shape of the data that MCP sends, to which a `message` may be added."""
        settings = self.settings
        shape = self.sent_shape(self.returns.shape)
        may_have_text = settings.budget is not None or declares_reply(self.signature.returns)
        if not (self.has_lines and settings.structured and may_have_text):
            return shape
        if not can_have_message(self.returns):
            return shape
        return msgspec.structs.replace(shape, message=True)

    def shape_of_stored(self, shape: Shape) -> Shape:
        """Return a stored reply's shape as this tool sends it now."""
        found = self.shape if shape == self.shape.without_additions() else shape
        return found.with_lines() if self.has_lines else found

    @cached_property
    def has_lines(self) -> bool:
        """Whether MCP replies have a text block that names the blocks hosts may not show."""
        return self.contract.message and self.settings.message and self.noun == "tool"

    def sent_shape(self, shape: Shape) -> Shape:
        """Return *shape* as this tool sends it, which may be without structuredContent."""
        if self.settings.structured:
            return shape
        return msgspec.structs.replace(shape, structured=False)

    @cached_property
    def arguments(self) -> Arguments:
        """The arguments' decoder."""
        received, schema = self.signature.argument_object, self.settings.input_schema
        lenient = self.settings.lenient
        if received is None:
            return Arguments(self.signature.parameters, lenient=lenient)
        if received.is_free and schema is not None:
            from ..types.schema_arguments import SchemaArguments

            return SchemaArguments(
                received.parameter, schema, reserved=received.reserved, lenient=lenient
            )
        from ..types.argument_object import ObjectArguments

        # Only `**kwargs` has no parameter, and it always has a schema.
        return ObjectArguments(str(received.parameter), received.annotation, lenient=lenient)

    @cached_property
    def output(self) -> Output:
        """The return value's encoder, which also checks the value."""
        if self.settings.output_schema is not None:
            from ..types.schema_arguments import SchemaOutput

            return SchemaOutput(self.returns.data_type, self.settings.output_schema)
        return Output(self.returns.data_type)

    @cached_property
    def docstring(self) -> Docstring:
        from .docstrings import parse

        # A partial has its class's docstring.
        own = None if isinstance(self.fn, partial) else self.fn.__doc__
        return parse(own or self.source.function.__doc__)

    @cached_property
    def description(self) -> str:
        if self.settings.description:
            return self.settings.description
        docstring = self.docstring
        if docstring.returns and not self._has_described_result():
            return docstring.with_returns
        return docstring.description

    def _has_described_result(self) -> bool:
        """Return whether callers see a schema that names the result's members."""
        if self.noun != "tool" or not self.settings.structured or not self.returns.declared:
            return False
        if self.settings.output_schema is not None:
            return True
        from ..types.json_schema import has_named_members

        return has_named_members(self.returns.data_type)

    @cached_property
    def parameters(self) -> tuple[Parameter, ...]:
        """The arguments with their descriptions from the docstring, for listings."""
        descriptions = self.docstring.arguments
        return tuple(
            msgspec.structs.replace(
                parameter, description=descriptions.get(parameter.target, parameter.description)
            )
            for parameter in self.signature.parameters
        )

    @property
    def argument_names(self) -> list[str]:
        """The names of the arguments, in schema order."""
        if self.signature.argument_object is None:
            return [each.name for each in self.signature.parameters]
        return list(self.input_schema.get("properties", ()))

    def from_strings(self, pairs: Sequence[tuple[str, str | bytes]]) -> dict[str, Any]:
        """Return the argument object for `name=value` strings, parsed according to their types."""
        if self.signature.argument_object is None:
            return self.signature.from_strings(pairs)
        from ..types.schema_arguments import parameters_of
        from ..types.values_from_text import from_strings

        return from_strings(parameters_of(self.input_schema, [name for name, _ in pairs]), pairs)

    @cached_property
    def input_schema(self) -> dict[str, Any]:
        """The author's schema, or else the parameters' schema."""
        if self.settings.input_schema is not None:
            return self.settings.input_schema
        from ..types.json_schema import argument_object_schema, arguments_schema

        with explain_undefined_names(self.owner, self.source):
            if (received := self.signature.argument_object) is not None:
                return argument_object_schema(received.annotation)
            schema = arguments_schema(self.parameters)
        for (name,), header in self.signature.header_params.items():
            schema["properties"][name]["x-mcp-header"] = header
        return schema

    @cached_property
    def output_schema(self) -> dict[str, Any] | None:
        """The wrapped data's schema; None if the return annotation has no data type."""
        if not self.returns.declared:
            return None
        with explain_undefined_names(self.owner, self.source):
            return self.returns.shape.wrap_schema(self.data_schema)

    @cached_property
    def data_schema(self) -> dict[str, Any]:
        """The schema of the data itself, which every success has if the type is declared."""
        if self.settings.output_schema is not None:
            return self.settings.output_schema
        from ..types.json_schema import output_schema

        return output_schema(self.returns.data_type)


# The names of `Page` and of the iterator classes; `paging` has the classes themselves.
_PAGED = frozenset({"Page", "Iterator", "Generator", "AsyncIterator", "AsyncGenerator"})


def _may_have_pages(annotation: object) -> bool:
    """Return False for nearly all annotations, so that `paging` need not be imported."""
    origin = get_origin(annotation)
    if origin is Annotated or origin is Reply:
        return _may_have_pages(get_args(annotation)[0])
    return getattr(origin, "__name__", None) in _PAGED


def _with_advice(exc: UnservableType, parameter: Parameter, where: str) -> UnservableType:
    """Return the error, with advice about `Depends` if the type is a class with no JSON form."""
    kind = parameter.annotation
    if exc.where != where or not isinstance(kind, type) or kind.__module__ == "builtins":
        return exc
    try:
        check_type(kind, where)
    except UnservableType:
        example = f"{parameter.target}: Annotated[{kind.__name__}, Depends(fn)]"
        problem = str(exc).removeprefix(f"{where}: ")
        return UnservableType(where, f"{problem}; for a value from the server, write {example}")
    # The default is invalid, not the type.
    return exc


def read_security_schemes(settings: ToolSettings, noun: str) -> tuple[Any, ...]:
    """Return the security schemes in the tool's `_meta`.

    Raises TypeError or ValueError if a host's key in that `_meta` is invalid.
    """
    # Hosts define no keys for prompts, and widgets set their own.
    if not settings.meta or noun not in ("tool", "resource"):
        return ()
    from ..core.metadata import check_meta

    check_meta(settings.meta, "tool" if noun == "tool" else "resource")
    return tuple(settings.meta.get("securitySchemes", ()))


def check_free_name(name: object) -> str:
    """Return the name of a resource or prompt, which can be any text in MCP."""
    _refuse_lambda(name)
    if not isinstance(name, str) or not name.strip() or not name.isprintable():
        raise ValueError(f"{name!r} cannot be a name; write text without control characters")
    return name
