"""Ports the imports: the names of theirs that we have go to `from answerback import …`."""

from __future__ import annotations

import ast
from collections.abc import Collection

from ...tools.other_frameworks import HINTS
from .names import FRAMEWORKS, MODULES_OF_RESULTS, NEW_NAMES
from .python_file import PythonFile


class Imported:
    """The names that a file imports from other frameworks: the local name, and theirs."""

    def __init__(self, source: PythonFile) -> None:
        self.names: dict[str, str] = {}
        self.modules: dict[str, str] = {}
        """Local names of imported packages, such as `fastmcp`."""
        self.statements: list[ast.ImportFrom] = []
        self.all_statements: list[ast.Import | ast.ImportFrom] = []
        for node in source.nodes:
            if isinstance(node, ast.ImportFrom) and _is_theirs(node.module) and not node.level:
                self.statements.append(node)
                self.all_statements.append(node)
                self.names |= {each.asname or each.name: each.name for each in node.names}
            elif isinstance(node, ast.Import):
                for each in node.names:
                    if _is_theirs(each.name):
                        self.all_statements.append(node)
                        self.modules[each.asname or each.name.partition(".")[0]] = each.name

    def __bool__(self) -> bool:
        return bool(self.names or self.modules)

    def name_of(self, node: ast.AST | None) -> str:
        """Return what an expression is called in their package; empty if it is not theirs."""
        match node:
            case ast.Name(id=name):
                return self.names.get(name, "")
            case ast.Attribute(attr=name):
                root = node.value
                while isinstance(root, ast.Attribute):
                    root = root.value
                if isinstance(root, ast.Name) and root.id in self.modules:
                    return name
        return ""


def _is_theirs(module: str | None) -> bool:
    return (module or "").partition(".")[0] in FRAMEWORKS


def port_imports(source: PythonFile, imported: Imported, unused: Collection[str]) -> None:
    """Edit the imports; *unused* are the local names that nothing uses any more."""
    taken = _names_defined_in(source)
    renamed = {
        local: NEW_NAMES[name]
        for local, name in imported.names.items()
        if local == name != NEW_NAMES.get(name, name) and NEW_NAMES[name] not in taken
    }
    for node in source.nodes:
        if isinstance(node, ast.Name) and node.id in renamed:
            source.replace(node, renamed[node.id])
    _port_module_names(source, imported)
    statements = [each for each in imported.statements if _is_ported(each, unused)]
    for statement in statements:
        theirs = _names_that_stay(statement, unused)
        lines = [f"from {statement.module} import {', '.join(theirs)}"] if theirs else []
        together = _imported_with(statement, statements, source)
        if statement is together[0]:
            for name in [name for each in together for name in _new_names(each, renamed)]:
                source.need_import("answerback", name)
            lines += source.take_imports()
        _replace_statement(source, statement, lines)
    if (more := source.take_imports()) and imported.all_statements:
        first = imported.all_statements[0]
        gap = "\n" + " " * first.col_offset
        source.insert_before(first, gap.join([*more, ""]))


def _is_ported(statement: ast.ImportFrom, unused: Collection[str]) -> bool:
    return bool(_new_names(statement, {})) or any(
        (each.asname or each.name) in unused for each in statement.names
    )


def _imported_with(
    statement: ast.ImportFrom, statements: list[ast.ImportFrom], source: PythonFile
) -> list[ast.ImportFrom]:
    """The statements whose names are imported together: those of the module, or one in a block."""
    top = [each for each in statements if isinstance(source.parents[each], ast.Module)]
    return top if statement in top else [statement]


def _names_defined_in(source: PythonFile) -> set[str]:
    """The names that the file defines itself."""
    kinds = ast.FunctionDef | ast.AsyncFunctionDef | ast.ClassDef
    found = {node.name for node in source.nodes if isinstance(node, kinds)}
    found |= {node.arg for node in source.nodes if isinstance(node, ast.arg)}
    return found | {
        node.id
        for node in source.nodes
        if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Store)
    }


def _new_names(statement: ast.ImportFrom, renamed: dict[str, str]) -> list[str]:
    """The names of ours that replace names of an import statement."""
    found = []
    for each in statement.names:
        if each.name in NEW_NAMES and statement.module not in MODULES_OF_RESULTS:
            new, local = NEW_NAMES[each.name], each.asname or each.name
            found.append(new if local in (new, *renamed) else f"{new} as {local}")
    return found


def _names_that_stay(statement: ast.ImportFrom, unused: Collection[str]) -> list[str]:
    found = []
    for each in statement.names:
        is_new = each.name in NEW_NAMES and statement.module not in MODULES_OF_RESULTS
        if not is_new and (each.asname or each.name) not in unused:
            found.append(f"{each.name} as {each.asname}" if each.asname else each.name)
    return found


def note_imports_that_stay(source: PythonFile, imported: Imported, unused: Collection[str]) -> None:
    """Note the names of theirs that have no equal here."""
    for statement in imported.statements:
        for name in _names_that_stay(statement, unused):
            _note_name(source, statement, name.partition(" ")[0])


def _note_name(source: PythonFile, statement: ast.ImportFrom, name: str) -> None:
    if statement.module in MODULES_OF_RESULTS:
        return
    if statement.module == "mcp.server" and name == "Server":
        hint = "write one typed function for each tool; the page coming-from-the-sdk shows how"
    else:
        hint = HINTS["from answerback import"].get(
            name, "find what does its work here, and remove the import"
        )
    source.note(statement, f"{statement.module}.{name} stays: {hint}")


def _replace_statement(source: PythonFile, statement: ast.ImportFrom, lines: list[str]) -> None:
    if lines:
        source.replace(statement, f"\n{' ' * statement.col_offset}".join(lines))
    elif _is_only_statement(source, statement):
        source.replace(statement, "pass")
    else:
        source.remove_line(statement)


def _is_only_statement(source: PythonFile, statement: ast.ImportFrom) -> bool:
    parent = source.parents[statement]
    bodies = [getattr(parent, name, []) for name in ("body", "orelse", "finalbody")]
    return not isinstance(parent, ast.Module) and [statement] in bodies


def _port_module_names(source: PythonFile, imported: Imported) -> None:
    """Replace `fastmcp.FastMCP` by `App`."""
    for statement in imported.all_statements:
        if isinstance(statement, ast.Import):
            source.note(statement, "remove this import once nothing uses it")
    for node in source.nodes:
        if isinstance(node, ast.Attribute) and (name := imported.name_of(node)) in NEW_NAMES:
            source.replace(node, NEW_NAMES[name])
            source.need_import("answerback", NEW_NAMES[name])
