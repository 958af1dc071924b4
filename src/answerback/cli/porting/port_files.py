"""Ports the files of a program together: a server object of one is used in the others."""

from __future__ import annotations

import ast
from collections.abc import Sequence

from .context_calls import port_context
from .imports import Imported, note_imports_that_stay, port_imports
from .names import NOT_NEEDED, READS_ARGUMENTS
from .python_file import PythonFile
from .server_calls import ServerCalls, names_used, server_names

_MASKED = (
    "callers do not see the text of this exception: raise ToolError or InvalidInput, or name "
    "the class in App(errors=…)"
)


def port_files(sources: Sequence[PythonFile]) -> None:
    """Make the edits and notes of each file."""
    imported = {source: Imported(source) for source in sources}
    servers = {source: server_names(source, imported[source]) for source in sources}
    shared = set().union(*servers.values())
    reads_arguments = any(map(_reads_arguments, sources))
    for source in sources:
        names = servers[source] | names_used(source, shared)
        ServerCalls(source, imported[source], names, reads_arguments).port()
        port_context(source, imported[source])
        _port_images(source, imported[source])
        _note_exceptions(source, names)
        _remove_unused_annotations(source, imported[source])
        unused = _unused(source, imported[source])
        port_imports(source, imported[source], unused)
        note_imports_that_stay(source, imported[source], unused)
        source.notes.sort()


def _reads_arguments(source: PythonFile) -> bool:
    """Whether a program reads its command line itself."""
    for node in source.nodes:
        match node:
            case ast.Import(names=names) if any(each.name in READS_ARGUMENTS for each in names):
                return True
            case ast.ImportFrom(module=module) if module in READS_ARGUMENTS:
                return True
            case ast.Attribute(value=ast.Name(id="sys"), attr="argv"):
                return True
    return False


def _port_images(source: PythonFile, imported: Imported) -> None:
    """Port `Image(data=…, format="png")` and `Image(path=…)`."""
    for node in source.nodes:
        if not isinstance(node, ast.Call) or imported.name_of(node.func) not in ("Image", "Audio"):
            continue
        kind = imported.name_of(node.func).lower()
        for keyword in node.keywords:
            match keyword.arg, keyword.value:
                case "path", value:
                    source.insert_after(node.func, ".open")
                    source.replace(keyword, source.code(value))
                case "format", ast.Constant(value=str(form)):
                    source.replace(keyword, f'mime="{kind}/{form}"')
                case "format", value:
                    source.replace(keyword, f'mime=f"{kind}/{{{source.code(value)}}}"')


def _note_exceptions(source: PythonFile, servers: set[str]) -> None:
    kinds = ast.FunctionDef | ast.AsyncFunctionDef
    for function in source.nodes:
        if isinstance(function, kinds) and any(
            _root(decorator) in servers for decorator in function.decorator_list
        ):
            for node in ast.walk(function):
                if isinstance(node, ast.Raise) and _class_of(node.exc) in (
                    "ValueError",
                    "Exception",
                ):
                    source.note(node, _MASKED)


def _root(node: ast.expr) -> str:
    while isinstance(node, ast.Call | ast.Attribute):
        node = node.func if isinstance(node, ast.Call) else node.value
    return node.id if isinstance(node, ast.Name) else ""


def _class_of(node: ast.expr | None) -> str:
    return _root(node) if isinstance(node, ast.Call) else ""


def _remove_unused_annotations(source: PythonFile, imported: Imported) -> None:
    """Remove `READ_ONLY = ToolAnnotations(…)` if its uses became options."""
    made = {
        target.id: node
        for node in source.tree.body
        if isinstance(node, ast.Assign) and isinstance(node.value, ast.Call)
        if imported.name_of(node.value.func) in NOT_NEEDED
        for target in node.targets
        if isinstance(target, ast.Name)
    }
    for name in made.keys() - _names_read_in(source, bool(made)):
        source.remove_line(made[name])


def _unused(source: PythonFile, imported: Imported) -> set[str]:
    """The names of theirs that the ported text does not use any more."""
    wanted = {local for local, name in imported.names.items() if name in NOT_NEEDED}
    return wanted - _names_read_in(source, bool(wanted))


def _names_read_in(source: PythonFile, is_needed: bool) -> set[str]:
    """The names that the ported text reads; parsing it takes a while, so only if it is needed."""
    nodes = ast.walk(ast.parse(source.ported())) if is_needed else iter(())
    return {
        node.id for node in nodes if isinstance(node, ast.Name) and isinstance(node.ctx, ast.Load)
    }
