"""The patch of `types`: adds types to the author's files, and changes return annotations."""

from __future__ import annotations

import ast
import difflib
import io
import os
import sys
import tokenize
from collections import defaultdict
from collections.abc import Collection, Iterator, Mapping
from pathlib import Path
from types import CodeType
from typing import NamedTuple

from ..inference.inferred_types import ANY, NONE, TEXT, InferredType, UnionOf
from ..inference.inferring import SeenReplies
from ..inference.python_source import annotation, definitions, import_lines
from ..tools.tool import Tool

_Node = ast.expr | ast.stmt
_Function = ast.FunctionDef | ast.AsyncFunctionDef
_PLAIN_OPTIONS = {"indent", "ensure_ascii", "sort_keys", "separators"}
"""The options of `json.dumps` that change the text and not the data."""


class _Edit(NamedTuple):
    """Replaces the bytes from *start* to *end*."""

    start: int
    end: int
    text: str


class Note(NamedTuple):
    """A sentence for the person who applies the patch."""

    line: int
    text: str


class PythonFile:
    """A file, its syntax tree, and the edits and notes that were made for it.

    Positions are bytes of its UTF-8 form, as in a syntax tree.
    """

    def __init__(self, path: Path) -> None:
        """Raises OSError, SyntaxError or UnicodeDecodeError if the file cannot be read."""
        content = path.read_bytes()
        self.path = path
        self.text = content.decode(tokenize.detect_encoding(io.BytesIO(content).readline)[0])
        self.tree = ast.parse(self.text, str(path))
        self.nodes = list(ast.walk(self.tree))
        self.notes: list[Note] = []
        self._bytes = self.text.encode()
        self._line_starts = [0]
        # `str.splitlines` also breaks at form feeds and the like, which Python's lines do not.
        for line in io.StringIO(self.text, newline=""):
            self._line_starts.append(self._line_starts[-1] + len(line.encode()))
        self._edits: list[_Edit] = []

    def start(self, node: _Node) -> int:
        return self._line_starts[node.lineno - 1] + node.col_offset

    def end(self, node: _Node) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._line_starts[node.end_lineno - 1] + node.end_col_offset

    def code(self, node: _Node) -> str:
        """Return the node's own text."""
        return self._bytes[self.start(node) : self.end(node)].decode()

    def note(self, node: _Node, text: str) -> None:
        self.notes.append(Note(node.lineno, text))

    def replace(self, node: _Node, text: str) -> None:
        self._edits.append(_Edit(self.start(node), self.end(node), text))

    def insert(self, position: int, text: str) -> None:
        self._edits.append(_Edit(position, position, text))

    @property
    def is_changed(self) -> bool:
        return bool(self._edits)

    def diff(self) -> str:
        """Return the edits as a patch. An edit inside of another one is left out."""
        parts, position = [], 0
        # Insertions are first, and an edit is before those inside of it.
        for edit in sorted(
            self._edits, key=lambda each: (each.start, each.end > each.start, -each.end)
        ):
            if edit.start >= position:
                parts += [self._bytes[position : edit.start], edit.text.encode()]
                position = edit.end
        changed = b"".join([*parts, self._bytes[position:]]).decode()
        old, new = (text.splitlines(keepends=True) for text in (self.text, changed))
        name = self.path.as_posix().lstrip("/")
        lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in lines
        )


def patched_files(
    tools: Mapping[str, Tool], seen: SeenReplies, *, dataclasses: bool
) -> tuple[list[PythonFile], list[str]]:
    """Return the changed files, and the notes about tools whose files cannot be changed.

    Raises OSError, SyntaxError or ValueError for a file that cannot be read.
    """
    by_file: dict[str, list[str]] = defaultdict(list)
    notes = []
    for name, tool in tools.items():
        path = tool.source.function.__code__.co_filename
        if not os.path.isfile(path) or "site-packages" in Path(path).parts:
            notes.append(f"{name} is not in a file of yours: {path}")
        else:
            by_file[path].append(name)
    files = []
    for path, names in sorted(by_file.items()):
        file = PythonFile(_relative(path))
        codes = {name: tools[name].source.function.__code__ for name in names}
        _patch_file(file, codes, seen, dataclasses=dataclasses)
        files.append(file)
    return files, notes


def _relative(path: str) -> Path:
    found = Path(path).resolve()
    here = Path.cwd().resolve()
    return found.relative_to(here) if found.is_relative_to(here) else found


def _patch_file(
    file: PythonFile,
    codes: Mapping[str, CodeType],
    seen: SeenReplies,
    *,
    dataclasses: bool,
) -> None:
    taken = _names_in(file)
    patchable = {}
    for name, code in codes.items():
        node = _find(file, code)
        if node is not None:
            patchable[name] = node
    kinds = {each.tool: each for each in seen.types(patchable.keys(), taken)}
    changed = [
        kinds[name]
        for name, node in patchable.items()
        if name in kinds and _patch_function(file, node, kinds[name].kind)
    ]
    if changed:
        parts = definitions(changed, dataclasses=dataclasses)
        texts = [*parts, *(annotation(each.kind) for each in changed)]
        imports = _missing_imports(import_lines(texts), file)
        _insert_after_imports(file, imports, parts)


def _names_in(file: PythonFile) -> set[str]:
    """Return all names of a module, so that a new class does not replace another one."""
    names = {node.id for node in file.nodes if isinstance(node, ast.Name)}
    names |= {node.name for node in file.nodes if isinstance(node, ast.ClassDef | _Function)}
    for node in file.nodes:
        if isinstance(node, ast.alias):
            names.add((node.asname or node.name).partition(".")[0])
    return names


def _find(file: PythonFile, code: CodeType) -> _Function | None:
    for node in file.nodes:
        if isinstance(node, _Function) and node.name == code.co_name:
            first = min([node.lineno, *(each.lineno for each in node.decorator_list)])
            if first == code.co_firstlineno:
                return node
    return None


def _patch_function(file: PythonFile, node: _Function, kind: InferredType) -> bool:
    """Change what a function returns, and its annotation; return whether that could be done."""
    returned = [each for each in _returns(node) if each.value is not None]
    dumps = [each for each in returned if _is_dumps(each.value)]
    others = [each for each in returned if not _is_dumps(each.value)]
    kind = _with_unseen(kind, node)
    text = annotation(kind)
    if kind == TEXT and node.returns is not None:
        return False
    returns_text = node.returns is not None and ast.unparse(node.returns) in ("str", "'str'")
    if (dumps or returns_text) and others and not _may_be_text(kind):
        line = others[0].lineno
        file.note(
            node,
            f"{node.name} returns JSON text, but line {line} is not `return json.dumps(…)`; raise "
            f"ToolError where it fails, return the object elsewhere, and write -> {text}",
        )
        return False
    for each in dumps:
        assert isinstance(each.value, ast.Call)
        if not _is_plain_dumps(each.value):
            file.note(
                each, f"`json.dumps` has options here; return the object, then write -> {text}"
            )
            return False
    for each in dumps:
        assert isinstance(each.value, ast.Call)
        file.replace(each.value, _object_code(file, each.value.args[0]))
    if node.returns is not None:
        file.replace(node.returns, text)
    else:
        file.insert(_colon(file, node), f" -> {text}")
    return True


def _with_unseen(kind: InferredType, node: _Function) -> InferredType:
    """Return the type with `str` and `None`, if the function may return them and no reply has.

    It declares a union with them, or declares nothing and returns them, as for an error.
    """
    found = [kind] if not isinstance(kind, UnionOf) else list(kind.members)
    if ANY in found:
        return kind
    for unseen in (TEXT, NONE):
        if unseen not in found and any(_unseen_type(each) == unseen for each in _possible(node)):
            found.append(unseen)
    return kind if len(found) == 1 else UnionOf(tuple(found))


def _possible(node: _Function) -> list[ast.expr | None]:
    """Return what a function may return: the members of a declared union, else its values."""
    if node.returns is None:
        return [each.value for each in _returns(node)]
    members = _union_members(node.returns)
    return [*members] if len(members) > 1 else []


def _union_members(declared: ast.expr) -> list[ast.expr]:
    match declared:
        case ast.BinOp(left=left, op=ast.BitOr(), right=right):
            return [*_union_members(left), *_union_members(right)]
        case ast.Subscript(value=ast.Name(id="Union"), slice=ast.Tuple(elts=members)):
            return members
        case ast.Subscript(value=ast.Name(id="Optional"), slice=member):
            return [*_union_members(member), ast.Constant(None)]
    return [declared]


def _unseen_type(value: ast.expr | None) -> InferredType | None:
    match value:
        case None | ast.Constant(value=None):
            return NONE
        case ast.Name(id="str") | ast.Constant(value=str()) | ast.JoinedStr():
            return TEXT
    return None


def _returns(node: ast.AST) -> Iterator[ast.Return]:
    """Yield the function's own return statements, not those of functions inside of it."""
    for child in ast.iter_child_nodes(node):
        if isinstance(child, ast.Return):
            yield child
        elif not isinstance(child, _Function | ast.Lambda | ast.ClassDef):
            yield from _returns(child)


def _is_dumps(value: ast.expr | None) -> bool:
    match value:
        case ast.Call(func=ast.Attribute(value=ast.Name(id="json"), attr="dumps")):
            return True
        case ast.Call(func=ast.Name(id="dumps")):
            return True
    return False


def _is_plain_dumps(call: ast.Call) -> bool:
    return len(call.args) == 1 and all(each.arg in _PLAIN_OPTIONS for each in call.keywords)


def _may_be_text(kind: InferredType) -> bool:
    return isinstance(kind, UnionOf) and TEXT in kind.members


def _object_code(file: PythonFile, value: ast.expr) -> str:
    code = file.code(value)
    return f"({code})" if "\n" in code and code[0] not in "([{" else code


def _colon(file: PythonFile, node: _Function) -> int:
    """Return the position of the colon after a function's parameters."""
    start = file.start(node)
    code = file.text.encode()[start:]
    depth = 0
    for token in tokenize.tokenize(io.BytesIO(code).readline):
        if token.type != tokenize.OP:
            continue
        if token.string == ":" and depth == 0:
            lines = code.splitlines(keepends=True)
            before = sum(map(len, lines[: token.start[0] - 1]))
            column = len(token.line[: token.start[1]].encode())
            return start + before + column
        depth += (token.string in "([{") - (token.string in ")]}")
    raise ValueError(f"line {node.lineno} has no colon")


def _missing_imports(imports: str, file: PythonFile) -> list[str]:
    """Return the import lines without the names that the module imports already."""
    known: set[tuple[str | None, str]] = set()
    for node in file.tree.body:
        if isinstance(node, ast.ImportFrom):
            known |= {(node.module, each.name) for each in node.names if each.asname is None}
    lines = []
    for line in imports.splitlines():
        _, module, _, names = line.split(maxsplit=3)
        missing = [name for name in names.split(", ") if (module, name) not in known]
        if missing:
            lines.append(f"from {module} import {', '.join(missing)}")
    return lines


def _insert_after_imports(file: PythonFile, imports: Collection[str], parts: list[str]) -> None:
    """Insert the types before the first function or class, which may use them."""
    body = file.tree.body
    first = next((node for node in body if isinstance(node, _Function | ast.ClassDef)), None)
    end = len(body) if first is None else body.index(first)
    head = [node for node in body[:end] if isinstance(node, ast.Import | ast.ImportFrom)]
    is_docstring = ast.get_docstring(file.tree) is not None
    last = head[-1] if head else body[0] if is_docstring else None
    lines = "\n".join(imports)
    text = "\n\n\n".join(parts)
    if last is None:
        file.insert(file.start(body[0]), "\n\n\n".join(filter(None, [lines, text])) + "\n\n\n")
        return
    if lines:
        before = [node for node in head if _is_of_standard_library(node)]
        gap = "\n" if before else "\n\n"
        file.insert(file.end(before[-1] if before else last), f"{gap}{lines}")
    if text:
        follows = file.text.encode()[file.end(last) :].startswith(b"\n\n\n")
        file.insert(file.end(last), f"\n\n\n{text}" + ("" if follows else "\n"))


def _is_of_standard_library(node: ast.Import | ast.ImportFrom) -> bool:
    module = node.module if isinstance(node, ast.ImportFrom) else node.names[0].name
    return (module or "").partition(".")[0] in sys.stdlib_module_names - {"__future__"}
