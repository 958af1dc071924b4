"""Reads functions: their signatures, and what their docstrings say about each parameter.

A parameter is explained by the sentence of the docstring that names it between asterisks.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator, Sequence
from dataclasses import dataclass, replace

from .source import NAMED, Function, docstring_of, value_of

_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z*`\"(])")
_WIDTH = 88


@dataclass(frozen=True)
class Parameter:
    """A parameter, field, option or attribute, as a row of a table shows it."""

    name: str
    type: str
    default: str | None = None
    meaning: str = ""
    by_name: bool = False
    """Whether it is given by name only."""
    stars: str = ""


@dataclass(frozen=True)
class Callable:
    """A function, a method, or the constructor of a class."""

    name: str
    signatures: list[str]
    text: str
    parameters: list[Parameter]
    options: list[str]
    """The TypedDicts whose keys it takes as keyword arguments, as `module:name`."""
    raises: list[str]


def read_function(
    module: str, functions: Sequence[Function], name: str, more: str = ""
) -> Callable:
    """Read a function, which comes after its overloads; *more* is the docstring of its class."""
    last = functions[-1]
    forms = _shown_forms(functions)
    names = {each.arg for each in _arguments(last)}
    text, meanings = split_docstring(f"{more}\n\n{docstring_of(last)}", names)
    rows: dict[str, Parameter] = {}
    for row in (row for form in forms for row in parameters_of(form, module)):
        rows.setdefault(row.name, row)
    options = [_unpacked(row) for row in rows.values() if _unpacked(row)]
    shown = [
        replace(row, meaning=meanings.get(row.name, ""))
        for row in rows.values()
        if not _unpacked(row)
    ]
    signatures = [_signature(each, name, module) for each in forms]
    # The text has its own words for some of them.
    raised = dict.fromkeys(each for each in _raised_in(last) if each not in text)
    return Callable(
        name, signatures, text, shown, [f"{module}:{each}" for each in options], [*raised]
    )


def _shown_forms(functions: Sequence[Function]) -> Sequence[Function]:
    """Return the function itself, or its two overloads if they have other parameters.

    The function gets the options from its overloads: its own annotation says less.
    """
    *overloads, last = functions
    names = [[each.arg for each in _arguments(one)] for one in overloads]
    if len(overloads) == 2 and names[0] != names[1]:
        return overloads
    for each in overloads:
        if each.args.kwarg is not None and last.args.kwarg is not None:
            last.args.kwarg.annotation = each.args.kwarg.annotation
    return [last]


def _arguments(node: Function) -> list[ast.arg]:
    given = node.args
    extra = [each for each in (given.vararg, given.kwarg) if each is not None]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *extra]


def parameters_of(node: Function, module: str) -> Iterator[Parameter]:
    """Yield a function's parameters, but those that only exist to be refused with an advice."""
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    missing = [None] * (len(positional) - len(given.defaults))
    found = [
        *map(_parameter, positional, [*missing, *given.defaults]),
        *([_parameter(given.vararg, stars="*")] if given.vararg else []),
        *(
            replace(_parameter(each, value), by_name=True)
            for each, value in zip(given.kwonlyargs, given.kw_defaults, strict=True)
        ),
        *([_parameter(given.kwarg, stars="**")] if given.kwarg else []),
    ]
    for row in found:
        is_object = row.name in ("self", "cls") and not row.type
        if not is_object and row.name not in ("unknown", "exc") and row.type != "Never":
            yield replace(row, default=row.default and value_of(module, row.default))


def _parameter(node: ast.arg, value: ast.expr | None = None, stars: str = "") -> Parameter:
    kind = "" if node.annotation is None else ast.unparse(node.annotation)
    return Parameter(node.arg, kind, default_of(value), stars=stars)


def default_of(value: ast.expr | None) -> str | None:
    """Return a default as text; it is empty if a function makes it."""
    match value:
        case None:
            return None
        case ast.Call(keywords=keywords) if "field" in ast.unparse(value.func):
            given = {each.arg: ast.unparse(each.value) for each in keywords}
            return given.get("default", "" if "default_factory" in given else None)
        case ast.Call(func=ast.Name(id="cast"), args=[_, inner]):
            return ast.unparse(inner)
    return ast.unparse(value)


def _unpacked(row: Parameter) -> str:
    """Return the TypedDict of a parameter such as `**options: Unpack[AppOptions]`."""
    found = re.fullmatch(r"Unpack\[(\w+)\]", row.type)
    return found[1] if found else ""


def _signature(node: Function, name: str, module: str) -> str:
    returns = "" if node.returns is None or node.name == "__init__" else ast.unparse(node.returns)
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    slash = node.args.posonlyargs[-1].arg if node.args.posonlyargs else ""
    return prefix + signature(name, list(parameters_of(node, module)), returns, slash)


def signature(name: str, rows: list[Parameter], returns: str = "", slash: str = "") -> str:
    """Return a signature, in several lines if it is long; *slash* is the last positional name."""
    parts: list[str] = []
    has_star = False
    for row in rows:
        if row.by_name and not has_star:
            parts.append("*")
        has_star = has_star or row.by_name or row.stars == "*"
        default = "" if row.default is None else f" = {row.default or '…'}"
        parts.append(f"{row.stars}{row.name}: {row.type}{default}")
        parts += ["/"] if row.name == slash else []
    arrow = f" -> {returns}" if returns else ""
    line = f"{name}({', '.join(parts)}){arrow}"
    if len(line) <= _WIDTH:
        return line
    return f"{name}(\n" + "".join(f"    {each},\n" for each in parts) + f"){arrow}"


def _raised_in(node: Function) -> Iterator[str]:
    for each in ast.walk(node):
        match each:
            case ast.Raise(exc=ast.Call(func=ast.Name(id=name))) if name[0].isupper():
                yield name


def split_docstring(docstring: str, known: set[str]) -> tuple[str, dict[str, str]]:
    """Return the text without the sentences about parameters, and these, by parameter.

    The first sentence stays in any case.
    """
    meanings: dict[str, str] = {}
    paragraphs, summary = [], ""
    for paragraph in re.split(r"\n\s*\n", docstring.strip()):
        kept: list[str] = []
        before: set[str] = set()
        for sentence in _SENTENCE.split(" ".join(paragraph.split())):
            names = known.intersection(NAMED.findall(sentence))
            if not names and sentence.startswith("It "):
                # It goes on about the parameter of the sentence before.
                names = before
            shown = NAMED.sub(r"`\1`", sentence)
            summary = summary or shown
            for name in names:
                earlier = meanings.get(name, summary)
                meanings[name] = shown if earlier == summary else f"{earlier} {shown}"
            is_kept = not names or shown == summary
            before = set() if is_kept else names
            kept += [shown] if is_kept else []
        paragraphs.append(" ".join(kept))
    return "\n\n".join(filter(None, paragraphs)), meanings
