"""Reads modules, their names and their sentences from the source, without importing them.

An option, a field and a constant are explained by the text below them, and a row of a table by the
comment above it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass
from functools import cache
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SRC = ROOT / "src"
Function = ast.FunctionDef | ast.AsyncFunctionDef
NAMED = re.compile(r"(?<![\w*`])\*(\w+)\*(?![\w*`])")
"""A parameter's name between asterisks, as docstrings write it."""


@dataclass(frozen=True)
class Found:
    """Where a name is defined; a function with overloads has several nodes."""

    module: str
    nodes: tuple[ast.stmt, ...]


@cache
def file_of(module: str) -> Path:
    path = SRC.joinpath(*module.split("."))
    return path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"


def lines_of(module: str) -> list[str]:
    return file_of(module).read_text(encoding="utf-8").splitlines()


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(file_of(module).read_text(encoding="utf-8"))


def statements(body: list[ast.stmt]) -> Iterator[ast.stmt]:
    """Yield the statements of a body, also those for type checkers only."""
    for each in body:
        if isinstance(each, ast.If):
            yield from statements([*each.body, *each.orelse])
        else:
            yield each


@cache
def find(module: str, name: str) -> Found | None:
    """Find a name's definition, also through the imports of our own modules."""
    nodes: list[ast.stmt] = []
    for each in statements(tree_of(module).body):
        match each:
            case ast.FunctionDef() | ast.AsyncFunctionDef() | ast.ClassDef() if each.name == name:
                nodes.append(each)
            case ast.Assign(targets=[ast.Name(id=given)]) if given == name:
                nodes.append(each)
            case ast.AnnAssign(target=ast.Name(id=given)) if given == name:
                nodes.append(each)
            case ast.ImportFrom(names=aliases) if not nodes:
                source = _imported_from(module, each)
                for alias in aliases:
                    if (alias.asname or alias.name) == name and source.startswith("answerback"):
                        return find(source, alias.name)
    return Found(module, tuple(nodes)) if nodes else None


def _imported_from(module: str, node: ast.ImportFrom) -> str:
    if not node.level:
        return node.module or ""
    parts = module.split(".")
    is_package = file_of(module).name == "__init__.py"
    kept = parts[: len(parts) - node.level + is_package]
    return ".".join([*kept, *([node.module] if node.module else [])])


def texts_below(body: list[ast.stmt]) -> dict[ast.stmt, str]:
    """Return the text below each statement, if there is one."""
    found: dict[ast.stmt, str] = {}
    for before, each in pairwise(statements(body)):
        match each:
            case ast.Expr(value=ast.Constant(value=str(text))):
                found[before] = prose(text)
    return found


def prose(text: str) -> str:
    """Return a docstring as Markdown: names between asterisks are code."""
    return NAMED.sub(r"`\1`", "\n".join(line.strip() for line in text.strip().splitlines()))


def docstring_of(node: ast.ClassDef | Function) -> str:
    return ast.get_docstring(node) or ""


def bases_text(node: ast.ClassDef) -> str:
    return " ".join(map(ast.unparse, node.bases))


def bases_of(module: str, node: ast.ClassDef) -> Iterator[tuple[str, str, ast.ClassDef]]:
    """Yield a class's own base classes that are ours: module, name and node."""
    for base in node.bases:
        bare = base.value if isinstance(base, ast.Subscript) else base
        found = find(module, bare.id) if isinstance(bare, ast.Name) else None
        last = None if found is None else found.nodes[-1]
        if found is not None and isinstance(last, ast.ClassDef):
            yield found.module, last.name, last


def is_typed_dict(module: str, node: ast.ClassDef) -> bool:
    bases = bases_of(module, node)
    return "TypedDict" in bases_text(node) or any(is_typed_dict(at, base) for at, _, base in bases)


def value_of(module: str, text: str) -> str:
    """Return the value of a constant, if *text* is the name of one; else *text*."""
    found = find(module, text) if text.isupper() else None
    if found is not None and isinstance(node := found.nodes[-1], ast.Assign):
        return ast.unparse(node.value)
    return text


def alias_of(module: str, name: str) -> str:
    """Return what a name in an annotation stands for: an alias's type, or a class's sentence."""
    found = find(module, name)
    if found is None:
        return ""
    match found.nodes[-1]:
        case ast.ClassDef() as node if not is_typed_dict(found.module, node):
            return prose(docstring_of(node)).partition("\n\n")[0]
        case ast.Assign(value=value) if not isinstance(value, ast.Constant | ast.Call):
            return f"`{ast.unparse(value)}`"
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias"), value=ast.expr() as value):
            text = value.value if isinstance(value, ast.Constant) else ast.unparse(value)
            return f"`{text!s}`"
    return ""


def comments_above(module: str) -> dict[str, str]:
    """Return the comments of a module, each by the line of code below it."""
    found: dict[str, str] = {}
    above: list[str] = []
    for line in lines_of(module):
        if line.strip().startswith("# "):
            above.append(line.strip()[2:])
        elif above:
            found[line.strip()] = " ".join(above)
            above = []
    return found
