"""Ports what is done with the context: log messages, progress, the state and the request."""

from __future__ import annotations

import ast

from ...tools.other_frameworks import HINTS
from .imports import Imported
from .names import CONTEXT_ATTRIBUTES, LEVELS
from .python_file import PythonFile

_CHANGED = {
    "elicit": "await ctx.elicit(…) returns the answer itself and raises Declined, so remove the "
    "code that looks at action and data",
    "sample": "await ctx.sample(…) returns an object with text",
}
"""Members of both contexts that do not do the same."""
_LOG_METHODS = ("debug", "info", "warning", "error")
_OF_THE_REQUEST = {"request_id": "request.id", "meta": "request.meta", "lifespan_context": "state"}


def port_context(source: PythonFile, imported: Imported) -> None:
    names = _context_names(source, imported)
    for node in source.nodes:
        match node:
            # In any file, and whatever holds the context: nothing else has these two names.
            case ast.Attribute(
                attr="lifespan_context", value=ast.Attribute(attr="request_context") as inner
            ):
                source.replace(node, f"{source.code(inner.value)}.state")
            case ast.Attribute(value=owner) if imported and _is_context(owner, names):
                _port_member(source, node)


def _context_names(source: PythonFile, imported: Imported) -> set[str]:
    """The parameters that are annotated with Context, and `ctx`."""
    if not imported:
        return set()
    annotated = {
        node.arg
        for node in source.nodes
        if isinstance(node, ast.arg) and node.annotation is not None
        if any(imported.name_of(each) == "Context" for each in ast.walk(node.annotation))
    }
    return annotated | {"ctx"}


def _is_context(node: ast.expr, names: set[str]) -> bool:
    match node:
        case ast.Name(id=name):
            return name in names
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name == "get_context"
    return False


def _port_member(source: PythonFile, node: ast.Attribute) -> None:
    parent = source.parents.get(node)
    if isinstance(parent, ast.Call) and parent.func is node:
        if node.attr in _LOG_METHODS:
            _port_log(source, node, parent)
            return
        if node.attr in ("log", "elicit", "report_progress"):
            _port_call(source, node, parent)
    outer = parent.attr if isinstance(parent, ast.Attribute) else ""
    if node.attr == "request_context" and outer in _OF_THE_REQUEST:
        assert isinstance(parent, ast.Attribute)
        source.replace(parent, f"{source.code(node.value)}.{_OF_THE_REQUEST[outer]}")
    elif node.attr in CONTEXT_ATTRIBUTES:
        source.rename_attribute(node, CONTEXT_ATTRIBUTES[node.attr])
    elif node.attr in HINTS["Context"]:
        source.note(node, f"{node.attr} stays: {HINTS['Context'][node.attr]}")
    elif node.attr in _CHANGED:
        source.note(node, _CHANGED[node.attr])


def _port_call(source: PythonFile, node: ast.Attribute, call: ast.Call) -> None:
    if node.attr == "log":
        _port_log_with_level(source, call)
    elif node.attr == "report_progress":
        source.remove_await(call)
    for keyword in call.keywords:
        if node.attr == "elicit" and keyword.arg in ("schema", "response_type"):
            source.rename_keyword(keyword, "form")


def _port_log(source: PythonFile, node: ast.Attribute, call: ast.Call) -> None:
    """Write `ctx.log(message, "info")` for `await ctx.info(message)`."""
    level = node.attr
    source.rename_attribute(node, "log")
    source.remove_await(call)
    if call.args:
        source.insert_after(call.args[0], f', "{level}"')
    _port_log_options(source, call, "" if call.args else f', level="{level}"')


def _port_log_options(source: PythonFile, call: ast.Call, level: str = "") -> None:
    removed = []
    for keyword in call.keywords:
        match keyword.arg:
            case "message":
                source.rename_keyword(keyword, "data")
                source.insert_after(keyword, level)
            case "logger_name":
                source.rename_keyword(keyword, "logger")
            case "level" | "logger":
                pass
            case name:
                removed.append(keyword)
                source.note(
                    call,
                    f"{name}= was removed: put it into the message, which may be any JSON value",
                )
    source.remove_arguments(call, removed)


def _port_log_with_level(source: PythonFile, call: ast.Call) -> None:
    """The SDK's level is before the message."""
    source.remove_await(call)
    match call.args:
        case [ast.Constant(value=level), message] if level in LEVELS:
            source.replace(call.args[0], source.code(message))
            source.replace(message, f'"{level}"')
    _port_log_options(source, call)
