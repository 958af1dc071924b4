"""A Python file, its syntax tree, and the edits and notes that were made for it."""

from __future__ import annotations

import ast
import difflib
import io
import tokenize
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

Node = ast.expr | ast.stmt | ast.keyword | ast.arg
Argument = ast.expr | ast.keyword


class Edit(NamedTuple):
    """Replaces the bytes from *start* to *end*."""

    start: int
    end: int
    text: str


class Note(NamedTuple):
    """A sentence for the person who ports the file."""

    line: int
    text: str


class PythonFile:
    """A file's text. Positions are bytes of its UTF-8 form, as in a syntax tree."""

    def __init__(self, path: Path) -> None:
        """Raises OSError, SyntaxError or UnicodeDecodeError if the file cannot be read."""
        content = path.read_bytes()
        self.path = path
        self.encoding = tokenize.detect_encoding(io.BytesIO(content).readline)[0]
        self.text = content.decode(self.encoding)
        self.tree = ast.parse(self.text, str(path))
        self.nodes = list(ast.walk(self.tree))
        self.parents = {child: node for node in self.nodes for child in ast.iter_child_nodes(node)}
        self.notes: list[Note] = []
        self._bytes = self.text.encode()
        self._line_starts = self._starts_of_lines()
        self._edits: list[Edit] = []
        self._imports: dict[str, set[str]] = {}

    def _starts_of_lines(self) -> list[int]:
        starts, position = [0], 0
        # `str.splitlines` also breaks at form feeds and the like, which Python's lines do not.
        for line in io.StringIO(self.text, newline=""):
            position += len(line.encode())
            starts.append(position)
        return starts

    def start(self, node: Node) -> int:
        return self._line_starts[node.lineno - 1] + node.col_offset

    def end(self, node: Node) -> int:
        assert node.end_lineno is not None
        assert node.end_col_offset is not None
        return self._line_starts[node.end_lineno - 1] + node.end_col_offset

    def code(self, node: Node) -> str:
        """Return the node's own text."""
        return self._bytes[self.start(node) : self.end(node)].decode()

    def note(self, node: Node, text: str) -> None:
        self.notes.append(Note(node.lineno, text))

    def replace(self, node: Node, text: str) -> None:
        self._edits.append(Edit(self.start(node), self.end(node), text))

    def insert(self, position: int, text: str) -> None:
        self._edits.append(Edit(position, position, text))

    def insert_after(self, node: Node, text: str) -> None:
        self._edits.append(Edit(self.end(node), self.end(node), text))

    def insert_before(self, node: Node, text: str) -> None:
        self._edits.append(Edit(self.start(node), self.start(node), text))

    def rename_attribute(self, node: ast.Attribute, name: str) -> None:
        end = self.end(node)
        self._edits.append(Edit(end - len(node.attr.encode()), end, name))

    def rename_keyword(self, keyword: ast.keyword, name: str) -> None:
        start = self.start(keyword)
        self._edits.append(Edit(start, start + len((keyword.arg or "").encode()), name))

    def remove_line(self, statement: ast.stmt) -> None:
        """Remove a statement with its lines."""
        assert statement.end_lineno is not None
        start = self._line_starts[statement.lineno - 1]
        self._edits.append(Edit(start, self._line_starts[statement.end_lineno], ""))

    def remove_await(self, call: ast.expr) -> None:
        """Remove `await` before a call that is a statement."""
        parent = self.parents.get(call)
        if isinstance(parent, ast.Await) and isinstance(self.parents.get(parent), ast.Expr):
            self._edits.append(Edit(self.start(parent), self.start(call), ""))

    def remove_arguments(self, call: ast.Call, removed: Sequence[Argument]) -> None:
        """Remove arguments of a call, with their commas."""
        given: list[Argument] = [*call.args, *call.keywords]
        everything = sorted(given, key=self.start)
        kept = [each for each in everything if each not in removed]
        for position, argument in enumerate(everything):
            if argument in kept:
                continue
            start, end = self.start(argument), self.end(argument)
            if any(each in kept for each in everything[position + 1 :]):
                end = self.start(everything[position + 1])
            elif kept:
                start = self.end(everything[position - 1])
            elif position + 1 == len(everything):
                end = self._after_comma(end)
            else:
                end = self.start(everything[position + 1])
            self._edits.append(Edit(start, end, ""))

    def _after_comma(self, position: int) -> int:
        rest = self._bytes[position:]
        comma = len(rest) - len(rest.lstrip())
        return position + comma + 1 if rest[comma : comma + 1] == b"," else position

    def need_import(self, module: str, name: str) -> None:
        """Import a name of ours, beside the other imports of ours."""
        self._imports.setdefault(module, set()).add(name)

    def take_imports(self) -> list[str]:
        """Return the import lines that the edits need, once."""
        lines = [
            f"from {module} import {', '.join(sorted(names))}"
            for module, names in sorted(self._imports.items())
        ]
        self._imports.clear()
        return lines

    @property
    def is_changed(self) -> bool:
        return bool(self._edits)

    def ported(self) -> str:
        """Return the text with all edits. An edit inside of another one is left out."""
        parts, position = [], 0
        for edit in sorted(self._edits, key=_order):
            if edit.start >= position:
                parts += [self._bytes[position : edit.start], edit.text.encode()]
                position = edit.end
        return b"".join([*parts, self._bytes[position:]]).decode()

    def line_in_ported(self, line: int) -> int:
        """Return the number that a line has after the edits."""
        start = self._line_starts[line - 1]
        before = [edit for edit in self._edits if edit.start < start]
        added = sum(edit.text.count("\n") for edit in before)
        removed = sum(self._bytes[edit.start : edit.end].count(b"\n") for edit in before)
        return line + added - removed

    def diff(self) -> str:
        old, new = (text.splitlines(keepends=True) for text in (self.text, self.ported()))
        name = self.path.as_posix().lstrip("/")
        lines = difflib.unified_diff(old, new, f"a/{name}", f"b/{name}")
        return "".join(
            line if line.endswith("\n") else f"{line}\n\\ No newline at end of file\n"
            for line in lines
        )

    def write(self) -> None:
        self.path.write_bytes(self.ported().encode(self.encoding))


def _order(edit: Edit) -> tuple[int, bool, int]:
    """Insertions are first, and an edit is before those inside of it."""
    return (edit.start, edit.end > edit.start, -edit.end)
