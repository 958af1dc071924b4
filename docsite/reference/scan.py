"""Finds in the source what servers and programs read and send: variables, headers, routes, keys."""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from functools import cache
from pathlib import Path

from .source import SRC

PACKAGE = SRC / "answerback"
_VARIABLE = re.compile(r"[A-Z][A-Z0-9_]+\Z")
_HEADER = re.compile(r"[a-z]+(-[a-z]+)+-?\Z")
_TITLE = re.compile(r"[A-Z][A-Za-z]*(-[A-Z][A-Za-z]*)*\Z")
_KEY = re.compile(
    r"(answerback|io\.modelcontextprotocol|openai|anthropic|mcp|ui|webplus)/[\w/-]+\Z"
)
_PATH = re.compile(r"/(\.well-known/)?[a-z][\w./-]*/?\Z|/\Z")
_PREFIXES = {"PREFIX": "io.modelcontextprotocol/", "META_PREFIX": "answerback/"}
ONE_WORD = frozenset(
    {"accept", "allow", "authorization", "cookie", "date", "forwarded", "host", "location"}
    | {"origin", "prefer", "vary", "via"}
)
"""Headers whose names are one word, which a scan cannot tell from other words."""
NOT_HEADERS = frozenset({"event-stream", "x-mcp-header", "no-store", "no-cache", "respond-async"})
SERVING = ("server", "dialects/status_and_headers.py", "dialects/rest.py", "auth")
"""Where headers and routes are; the client's are not among them."""


@cache
def _nodes(path: Path) -> list[ast.AST]:
    return list(ast.walk(ast.parse(path.read_text())))


def _files(*parts: str) -> list[Path]:
    found = [PACKAGE / part for part in parts]
    return [file for each in found for file in ([each] if each.is_file() else each.rglob("*.py"))]


def _files_with(word: str) -> list[Path]:
    """Return the files of the package that have a word; parsing all of them takes long."""
    return [file for file in PACKAGE.rglob("*.py") if re.search(word, file.read_text())]


def _texts(path: Path) -> Iterator[str]:
    for node in _nodes(path):
        match node:
            case ast.Constant(value=str(text)):
                yield text
            case ast.BinOp(
                left=ast.Name(id=name), op=ast.Add(), right=ast.Constant(value=str(text))
            ):
                yield f"{_PREFIXES.get(name, '')}{text}"


def variables() -> set[str]:
    """Return the environment variables that are read."""
    files = _files_with("environ|ANSWERBACK_")
    return {name for path in files for name in _variables_in(path)}


def _variables_in(path: Path) -> Iterator[str]:
    constants = {
        target.id: node.value.value
        for node in _nodes(path)
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Constant)
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    yield from (text for text in _texts(path) if re.fullmatch(r"ANSWERBACK_[A-Z_]+", text))
    for node in _nodes(path):
        match node:
            case ast.Call(func=ast.Attribute(value=source, attr="get" | "pop"), args=[name, *_]):
                pass
            case ast.Subscript(value=source, slice=name):
                pass
            case ast.Compare(left=name, ops=[ast.In() | ast.NotIn()], comparators=[source]):
                pass
            case ast.Call(func=ast.Name(id="_text"), args=[source, name]):
                pass
            case _:
                continue
        value = name.value if isinstance(name, ast.Constant) else None
        if isinstance(name, ast.Name):
            value = constants.get(name.id)
        if isinstance(value, str) and _VARIABLE.match(value) and _is_environment(source):
            yield value


def _is_environment(source: ast.expr) -> bool:
    return ast.unparse(source).rpartition(".")[2].lstrip("_") == "environ"


def headers() -> set[str]:
    """Return the headers that the server reads (bytes) and sends, in small letters."""
    found: set[str] = set()
    for path in _files(*SERVING):
        for node in _nodes(path):
            match node:
                case ast.Constant(value=bytes(raw)) if raw.lower() == raw:
                    found.add(raw.decode("latin-1"))
                case ast.Constant(value=str(text)) if _TITLE.match(text):
                    found.add(text.lower())
    return {name for name in found if name in ONE_WORD or _HEADER.match(name)} - NOT_HEADERS


def routes() -> set[str]:
    """Return the paths that the server answers."""
    return {
        text
        for path in _files("server/http", "server/asgi", "server/console", "auth")
        for text in _texts(path)
        if _PATH.match(text)
    }


def meta_keys() -> set[str]:
    """Return the keys of `_meta` that have a prefix."""
    files = _files_with("PREFIX|(answerback|modelcontextprotocol|openai|anthropic|mcp|ui|webplus)/")
    return {text for path in files for text in _texts(path) if _KEY.match(text)}
