"""Reads classes: how they are made, their attributes and their methods."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache

from .functions import Callable, Parameter, default_of, read_function, signature
from .plan import INTERNAL, MERGED, NOT_MADE
from .source import (
    Function,
    bases_of,
    bases_text,
    docstring_of,
    find,
    is_typed_dict,
    prose,
    statements,
    texts_below,
    tree_of,
    value_of,
)

_MAX_DEFAULT = 60


@dataclass
class Class:
    """A class: how it is made, what it has, and what it does."""

    name: str
    text: str
    bases: list[str] = field(default_factory=list)
    made: Callable | None = None
    attributes: list[Parameter] = field(default_factory=list)
    methods: list[Callable] = field(default_factory=list)
    has_options: bool = False
    """Whether it is a TypedDict: its attributes are the options of a call."""


@dataclass(frozen=True)
class _Method:
    module: str
    owner: ast.ClassDef
    nodes: list[Function]
    """The overloads, then the function itself."""


@cache
def described(module: str, name: str) -> Class | Callable | Parameter:
    """Return what a page shows of a public name."""
    found = find(module, name)
    if found is None:
        raise LookupError(f"{module} has no {name}")
    node = found.nodes[-1]
    if isinstance(node, ast.ClassDef):
        return _read_class(found.module, node)
    functions = [each for each in found.nodes if isinstance(each, Function)]
    if functions:
        return read_function(found.module, functions, name)
    meaning = texts_below(tree_of(found.module).body).get(node, "")
    assert isinstance(node, ast.Assign)
    return Parameter(name, "", ast.unparse(node.value), meaning)


def _read_class(module: str, node: ast.ClassDef) -> Class:
    shown = Class(node.name, prose(docstring_of(node)))
    shown.has_options = is_typed_dict(module, node)
    lineage = _lineage(module, node, shown)
    fields = [row for where, each in reversed(lineage) for row in _fields(where, each)]
    fields = [each for each in fields if _is_shown(shown, each.name)]
    shown.attributes = [each for each in fields if each.stars]
    fields = [each for each in fields if not each.stars]
    methods = _methods(lineage)
    if "__init__" in methods:
        _add_constructor(shown, methods["__init__"], docstring_of(node), fields)
    elif fields and any("Struct" in bases_text(each) for _, each in lineage):
        made = signature(node.name, fields)
        shown.made = Callable(node.name, [made], "", fields, [], [])
    else:
        shown.attributes += fields
    shown.attributes = [replace(each, stars="") for each in shown.attributes]
    is_protocol = "Protocol" in bases_text(node)
    for name, method in methods.items():
        is_public = name[0] != "_" or (name == "__call__" and is_protocol)
        if is_public and _is_shown(shown, name):
            _add_method(shown, method)
    return shown


def _is_shown(shown: Class, member: str) -> bool:
    return f"{shown.name}.{member}" not in INTERNAL


def _lineage(module: str, node: ast.ClassDef, shown: Class) -> list[tuple[str, ast.ClassDef]]:
    """Return the class and the base classes that users do not meet; note the others."""
    found = [(module, node)]
    for where, each in found:
        for home, name, base in bases_of(where, each):
            place = MERGED.get(name, name)
            if name[0] == "_" or place in ("", node.name) or is_typed_dict(home, base):
                found.append((home, base))
            else:
                shown.bases.append(place)
    return found


def _fields(module: str, node: ast.ClassDef) -> Iterator[Parameter]:
    """Yield the annotated names in a class's body; those of the class itself have stars."""
    texts = texts_below(node.body)
    by_name = any(keyword.arg == "kw_only" for keyword in node.keywords)
    for each in statements(node.body):
        match each:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=value):
                if name[0] == "_":
                    continue
                default = default_of(value)
                default = default and value_of(module, default)
                row = Parameter(name, ast.unparse(kind), default, texts.get(each, ""), by_name)
                inner = row.type.removeprefix("ClassVar[")
                yield row if inner == row.type else replace(row, type=inner[:-1], stars="class")


def _methods(lineage: list[tuple[str, ast.ClassDef]]) -> dict[str, _Method]:
    found: dict[str, _Method] = {}
    for module, node in reversed(lineage):
        for each in statements(node.body):
            if isinstance(each, Function) and not _is_marked(each, "setter"):
                known = found.get(each.name)
                is_same = known is not None and _is_marked(known.nodes[-1], "overload")
                before = known.nodes if known is not None and is_same else []
                found[each.name] = _Method(module, node, [*before, each])
    return found


def _is_marked(node: Function, *marks: str) -> bool:
    return any(ast.unparse(each).split(".")[-1] in marks for each in node.decorator_list)


def _add_constructor(
    shown: Class, method: _Method, docstring: str, fields: list[Parameter]
) -> None:
    # The class whose constructor it is may be a base class.
    text = "\n\n".join(dict.fromkeys([docstring, docstring_of(method.owner)]))
    made = read_function(method.module, method.nodes, shown.name, text)
    known = {each.name: each.meaning for each in fields}
    rows = [replace(row, meaning=row.meaning or known.get(row.name, "")) for row in made.parameters]
    given = {each.name for each in rows} | _keys(made.options)
    if shown.name in NOT_MADE:
        shown.text, given = made.text, set()
    else:
        shown.made = replace(made, parameters=rows)
    set_here = _attributes(method.nodes[-1], given | known.keys())
    found = [*(each for each in fields if each.name not in given), *set_here]
    shown.attributes += [each for each in found if _is_shown(shown, each.name)]


def _keys(options: list[str]) -> set[str]:
    """Return the keys of TypedDicts, which are given as `module:name`."""
    found = [described(*each.split(":")) for each in options]
    return {row.name for each in found if isinstance(each, Class) for row in each.attributes}


def _attributes(init: Function, known: set[str]) -> Iterator[Parameter]:
    """Yield the public attributes that a constructor sets, except its parameters and fields."""
    texts = texts_below(init.body)
    types = {each.arg: each.annotation for each in init.args.args}
    for each in statements(init.body):
        match each:
            case (
                ast.Assign(targets=[ast.Attribute(attr=name)], value=value)
                | ast.AnnAssign(target=ast.Attribute(attr=name), value=value)
            ) if name[0] != "_" and name not in known:
                kind = each.annotation if isinstance(each, ast.AnnAssign) else None
                if kind is None and isinstance(value, ast.Name):
                    kind = types.get(value.id)
                yield Parameter(name, ast.unparse(kind) if kind else "", None, texts.get(each, ""))


def _add_method(shown: Class, method: _Method) -> None:
    node = method.nodes[-1]
    if _is_marked(node, "property", "cached_property"):
        kind = ast.unparse(node.returns) if node.returns else ""
        shown.attributes.append(Parameter(node.name, kind, None, prose(docstring_of(node))))
    else:
        shown.methods.append(read_function(method.module, method.nodes, node.name))


def defaults_in(module: str, settings: str = "") -> dict[str, str]:
    """Return the defaults of options: `.get("name", default)`, and the fields of *settings*."""
    found: dict[str, str] = {}
    for each in ast.walk(tree_of(module)):
        match each:
            case ast.Call(
                func=ast.Attribute(attr="get"), args=[ast.Constant(value=str(name)), default]
            ) if isinstance(default, ast.Constant | ast.Name | ast.Tuple):
                value = value_of(module, ast.unparse(default))
                if not value.isidentifier() or value.istitle():
                    found.setdefault(name, value)
    if settings:
        shown = described(*settings.split(":"))
        rows = shown.made.parameters if isinstance(shown, Class) and shown.made else []
        found |= {each.name: each.default or "" for each in rows}
    is_said = ("None", "''")
    return {
        name: value
        for name, value in found.items()
        if value not in is_said and len(value) < _MAX_DEFAULT
    }
