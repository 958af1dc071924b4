"""Ports what is done with the server object: its options, decorators, `run` and other methods."""

from __future__ import annotations

import ast
from collections.abc import Collection

from ...tools.other_frameworks import HINTS as WORDS
from .imports import Imported
from .names import (
    HINTS,
    POSITIONS,
    REGISTERING,
    REMOVED_OPTIONS,
    RENAMED_OPTIONS,
    SERVER_ATTRIBUTES,
    SERVERS,
)
from .python_file import PythonFile

_SERVE_OPTIONS = ("host", "port", "log_level")
"""The options of `run` that are flags of the command `serve`."""
_APP_OPTIONS = frozenset(
    {"name", "version", "title", "description", "lifespan", "icons", "website_url", "instructions"}
)
_APP_ADVICE = {
    "auth": "write auth=OAuth(…) or auth=ApiKeys(…), of answerback.auth",
    "middleware": WORDS["App"]["add_middleware"],
}
_ENTRY_OPTIONS = frozenset(
    {"name", "title", "description", "icons", "meta", "tags", "timeout", "mime_type", "uri"}
)


def server_names(source: PythonFile, imported: Imported) -> set[str]:
    """Return the variables and parameters that hold a server object."""
    found = set()
    for node in source.nodes:
        match node:
            case ast.Assign(targets=[ast.Name(id=name)], value=ast.Call(func=function)):
                found |= {name} if imported.name_of(function) in SERVERS else set()
            case ast.AnnAssign(target=ast.Name(id=name), value=ast.Call(func=function)):
                found |= {name} if imported.name_of(function) in SERVERS else set()
            case ast.arg(arg=name, annotation=annotation):
                found |= {name} if imported.name_of(annotation) in SERVERS else set()
    return found


def names_used(source: PythonFile, names: Collection[str]) -> set[str]:
    """Return those of *names* that the file imports from a module of its own."""
    return {
        each.asname or each.name
        for node in source.nodes
        if isinstance(node, ast.ImportFrom)
        for each in node.names
        if each.name in names
    }


class ServerCalls:
    """Edits one file; *servers* are the names of its server objects."""

    def __init__(
        self, source: PythonFile, imported: Imported, servers: set[str], reads_arguments: bool
    ) -> None:
        self._source = source
        self._imported = imported
        self._servers = servers
        self._reads_arguments = reads_arguments
        self._handled: set[ast.AST] = set()

    def port(self) -> None:
        for node in self._source.nodes:
            if isinstance(node, ast.Call):
                self._port_call(node)
        for node in self._source.nodes:
            if isinstance(node, ast.Attribute) and node not in self._handled:
                self._port_attribute(node)

    def _port_call(self, call: ast.Call) -> None:
        if self._imported.name_of(call.func) in SERVERS:
            self._port_constructor(call)
        elif isinstance(call.func, ast.Attribute):
            method = call.func.attr
            if method in REGISTERING and (self._is_decorator(call) or self._is_server(call)):
                self._port_registration(call, method)
            elif self._is_server(call):
                self._port_method(call, call.func)

    def _is_decorator(self, call: ast.Call) -> bool:
        parent = self._source.parents.get(call)
        kinds = ast.FunctionDef | ast.AsyncFunctionDef
        return bool(self._imported) and isinstance(parent, kinds) and call in parent.decorator_list

    def _is_server(self, call: ast.Call) -> bool:
        return isinstance(call.func, ast.Attribute) and self._holds_server(call.func.value)

    def _holds_server(self, node: ast.expr) -> bool:
        return isinstance(node, ast.Name) and node.id in self._servers

    def _port_constructor(self, call: ast.Call) -> None:
        source = self._source
        if len(call.args) > 1:
            source.insert_before(call.args[1], "description=")
        given = {keyword.arg for keyword in call.keywords}
        if not call.args and "name" not in given:
            source.note(call, "an App needs a name: write App('NAME')")
        removed = []
        for keyword in call.keywords:
            name = keyword.arg or "**"
            if name in RENAMED_OPTIONS and not {"description", "instructions"} <= given:
                source.rename_keyword(keyword, RENAMED_OPTIONS[name])
            elif name in REMOVED_OPTIONS:
                removed.append(keyword)
                source.note(
                    keyword,
                    f"{name}= was removed: {WORDS['option'].get(name, 'it has no use here')}",
                )
            elif name not in _APP_OPTIONS or name in RENAMED_OPTIONS:
                source.note(keyword, f"{name}= stays: {_APP_ADVICE.get(name) or _advice(name)}")
        source.remove_arguments(call, removed)

    def _port_registration(self, call: ast.Call, method: str) -> None:
        source = self._source
        self._handled.add(call.func)
        for name, argument in zip(POSITIONS.get(method, ()), call.args, strict=False):
            if name and not isinstance(argument, ast.Name | ast.Attribute | ast.Lambda):
                source.insert_before(argument, f"{name}=")
        given = {keyword.arg for keyword in call.keywords}
        removed = []
        for keyword in call.keywords:
            if not self._port_option(call, keyword, given):
                removed.append(keyword)
        source.remove_arguments(call, removed)

    def _port_option(self, call: ast.Call, keyword: ast.keyword, given: set[str | None]) -> bool:
        """Port an option of a tool, resource or prompt. Returns False if it has to go."""
        source, name = self._source, keyword.arg or "**"
        is_resource = isinstance(call.func, ast.Attribute) and call.func.attr == "resource"
        match name, keyword.value:
            case "annotations", value if not is_resource:
                return self._port_annotations(keyword, value, given)
            case "uri", value if is_resource and call.keywords[0] is keyword:
                source.replace(keyword, source.code(value))
            case "task", ast.Constant(value=bool(wanted)):
                source.replace(keyword, "task='optional'" if wanted else "task='forbidden'")
            case "run_in_thread", ast.Constant(value=bool(wanted)):
                source.replace(keyword, f"inline={not wanted}")
            case ("structured_output", ast.Constant(value=False)) | (
                "output_schema",
                ast.Constant(value=None),
            ):
                source.replace(keyword, "values=Values(structured=False)")
                source.need_import("answerback.options", "Values")
            case ("structured_output" | "enabled", ast.Constant(value=True | None)):
                return False
            case "mime_type", _:
                source.rename_keyword(keyword, "mime")
            case _ if name not in _ENTRY_OPTIONS:
                source.note(keyword, f"{name}= stays: {_advice(name)}")
        return True

    def _port_annotations(
        self, keyword: ast.keyword, value: ast.expr, given: set[str | None]
    ) -> bool:
        members = self._members(value)
        if members is None or members.keys() - HINTS.keys():
            advice = WORDS["option"]["annotations"]
            self._source.note(keyword, f"annotations= stays: {advice}")
            return True
        options = [
            f"{HINTS[name]}={self._source.code(hint)}"
            for name, hint in members.items()
            if HINTS[name] not in given
        ]
        if options:
            is_long = keyword.lineno != keyword.end_lineno
            between = ",\n" + " " * keyword.col_offset if is_long else ", "
            self._source.replace(keyword, between.join(options))
        return bool(options)

    def _members(self, value: ast.expr) -> dict[str, ast.expr] | None:
        """The members of annotations that are written out, here or at the top of the file."""
        match value:
            case ast.Call(args=[], keywords=keywords) if (
                self._imported.name_of(value.func) == "ToolAnnotations"
            ):
                return {each.arg or "**": each.value for each in keywords}
            case ast.Dict(keys=keys, values=values):
                names = [str(each.value) for each in keys if isinstance(each, ast.Constant)]
                return dict(zip(names, values, strict=True)) if len(names) == len(keys) else None
            case ast.Name(id=name):
                assigned = self._assigned_at_the_top(name)
                return self._members(assigned) if assigned is not None else None
        return None

    def _assigned_at_the_top(self, name: str) -> ast.expr | None:
        found = [
            node.value
            for node in self._source.tree.body
            if isinstance(node, ast.Assign)
            if [each.id for each in node.targets if isinstance(each, ast.Name)] == [name]
        ]
        return found[0] if len(found) == 1 and not isinstance(found[0], ast.Name) else None

    def _port_method(self, call: ast.Call, function: ast.Attribute) -> None:
        match function.attr:
            case "run":
                self._port_run(call)
            case "mount" | "import_server":
                self._port_mount(call, function)
            case "get_context":
                self._source.replace(call, "get_context()")
                self._source.need_import("answerback", "get_context")
            case "custom_route":
                unused = [each for each in call.keywords if each.arg not in ("path", "methods")]
                self._source.remove_arguments(call, unused)
                return
            case "http_app" | "streamable_http_app" | "sse_app":
                self._source.remove_arguments(call, [*call.args, *call.keywords])
                return
            case _:
                return
        self._handled.add(function)

    def _port_run(self, call: ast.Call) -> None:
        options = {keyword.arg or "**": keyword.value for keyword in call.keywords}
        if call.args:
            options["transport"] = call.args[0]
        if "**" in options:
            self._source.note(call, "write the words of a command line: app.run(['mcp'])")
            return
        new = f"{self._source.code(call.func)}({self._words_for(options)})"
        if new != self._source.code(call):
            self._source.replace(call, new)
        for name in options.keys() - {"transport", *_SERVE_OPTIONS}:
            advice = WORDS["option"].get(name, "it is a flag of serve, or not needed")
            self._source.note(call, f"{name}= was removed: {advice}")

    def _words_for(self, options: dict[str, ast.expr]) -> str:
        """The argument of `run`, such as `['serve']`; empty for the words of the command line."""
        stdio = '["mcp"]' if self._reads_arguments else ""
        more = "".join(
            f', "--{name.replace("_", "-")}", {self._as_text(options[name])}'
            for name in _SERVE_OPTIONS
            if name in options
        )
        serve = f'["serve"{more}]'
        match options.get("transport"):
            case None | ast.Constant(value="stdio" | None):
                return serve if more else stdio
            case ast.Constant():
                return serve
            case transport:
                return f'["mcp"] if {self._source.code(transport)} == "stdio" else {serve}'

    def _as_text(self, value: ast.expr) -> str:
        code = self._source.code(value)
        if isinstance(value, ast.Constant):
            return code if isinstance(value.value, str) else f'"{code}"'
        return f"str({code})"

    def _port_mount(self, call: ast.Call, function: ast.Attribute) -> None:
        source = self._source
        match call.args, call.keywords:
            case [ast.Name() | ast.Attribute()], []:
                source.rename_attribute(function, "include")
            case [ast.Name() | ast.Attribute()], [
                ast.keyword(arg="prefix" | "namespace", value=ast.Constant(value=str(prefix)))
            ]:
                source.rename_attribute(function, "include")
                source.replace(call.keywords[0], f'prefix="{prefix}_"')
            case _:
                source.note(
                    call, f"{function.attr} stays: write app.include(other, prefix='other_')"
                )

    def _port_attribute(self, node: ast.Attribute) -> None:
        if not self._holds_server(node.value):
            return
        if (name := SERVER_ATTRIBUTES.get(node.attr)) is not None:
            self._source.rename_attribute(node, name)
            if name == "asgi":
                self._source.note(
                    node,
                    "MCP is served at /mcp of app.asgi(); give the application that mounts "
                    "it lifespan=app.lifespan",
                )
        elif node.attr in WORDS["App"]:
            self._source.note(node, f"{node.attr} stays: {WORDS['App'][node.attr]}")
        elif node.attr.startswith("_"):
            self._source.note(node, f"{node.attr} is an inner part of the other framework")


def _advice(name: str) -> str:
    if name == "**":
        return "check that all of the options are ours"
    return WORDS["option"].get(name, "check what it means here")
