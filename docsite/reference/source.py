"""Reads definitions and their sentences from the source, without importing it.

A class's field and an option are explained by the text below them, a parameter by the sentence
of the docstring that names it between asterisks, and a row of a table by the comment above it.
"""

from __future__ import annotations

import ast
import re
from collections.abc import Iterator
from dataclasses import dataclass, field, replace
from functools import cache
from itertools import pairwise
from pathlib import Path

ROOT = Path(__file__).parent.parent.parent
SRC = ROOT / "src"
Function = ast.FunctionDef | ast.AsyncFunctionDef
_SENTENCE = re.compile(r"(?<=[.!?])\s+(?=[A-Z*`\"(])")
_MAX_DEFAULT = 60
_NAMED = re.compile(r"(?<![\w*`])\*(\w+)\*(?![\w*`])")


@dataclass(frozen=True)
class Parameter:
    """A parameter, field, option or attribute, as a row of a table shows it."""

    name: str
    type: str
    default: str | None = None
    meaning: str = ""
    is_option: bool = True
    """False for a positional parameter, which the sentence about its function explains."""


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


@dataclass
class Class:
    """A class: how it is made, what it has, and what it does."""

    name: str
    text: str
    bases: list[str]
    made: Callable | None = None
    attributes: list[Parameter] = field(default_factory=list)
    methods: list[Callable] = field(default_factory=list)
    has_options: bool = False
    """Whether it is a TypedDict: its attributes are the options of a call."""


@dataclass(frozen=True)
class Found:
    """Where a name is defined; a function with overloads has several nodes."""

    module: str
    nodes: tuple[ast.stmt, ...]


@cache
def file_of(module: str) -> Path:
    path = SRC.joinpath(*module.split("."))
    return path.with_suffix(".py") if path.with_suffix(".py").is_file() else path / "__init__.py"


def tree_lines(module: str) -> list[str]:
    return file_of(module).read_text().splitlines()


@cache
def tree_of(module: str) -> ast.Module:
    return ast.parse(file_of(module).read_text())


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
            case ast.ImportFrom() if not nodes:
                for alias in each.names:
                    source = _imported_from(module, each)
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


@cache
def described(module: str, name: str) -> Class | Callable | Parameter:
    """Return what a page shows of a public name."""
    found = find(module, name)
    if found is None:
        raise LookupError(f"{module} has no {name}")
    node = found.nodes[-1]
    match node:
        case ast.ClassDef():
            return _class(found.module, node)
        case ast.FunctionDef() | ast.AsyncFunctionDef():
            functions = [each for each in found.nodes if isinstance(each, Function)]
            return _callable(found.module, functions, name)
        case ast.AnnAssign(annotation=annotation):
            return Parameter(name, ast.unparse(annotation), None, _text_below(found.module, node))
        case ast.Assign(value=value):
            return Parameter(name, "", ast.unparse(value), _text_below(found.module, node))
    raise LookupError(f"{module}.{name} is neither a class, a function nor a value")


def _text_below(module: str, node: ast.stmt) -> str:
    return texts_below(tree_of(module).body).get(node, "")


def texts_below(body: list[ast.stmt]) -> dict[ast.stmt, str]:
    """Return the text below each assignment, if there is one."""
    found: dict[ast.stmt, str] = {}
    listed = list(statements(body))
    for before, each in pairwise(listed):
        match each:
            case ast.Expr(value=ast.Constant(value=str(text))):
                found[before] = prose(text)
    return found


def prose(text: str) -> str:
    """Return a docstring as Markdown: names between asterisks are code."""
    lines = [line.strip() for line in text.strip().splitlines()]
    return _NAMED.sub(r"`\1`", "\n".join(lines))


def _docstring(node: ast.ClassDef | Function) -> str:
    return ast.get_docstring(node) or ""


def bases_of(module: str, node: ast.ClassDef) -> Iterator[tuple[str, str, ast.ClassDef]]:
    """Yield our own base classes, the nearest first: module, name and node."""
    for base in node.bases:
        bare = base.value if isinstance(base, ast.Subscript) else base
        name = bare.id if isinstance(bare, ast.Name) else ""
        found = find(module, name) if name else None
        if found is not None and isinstance(found.nodes[-1], ast.ClassDef):
            yield found.module, name, found.nodes[-1]


def _class(module: str, node: ast.ClassDef) -> Class:
    shown = Class(node.name, prose(_docstring(node)), [])
    lineage = _lineage(module, node, shown)
    fields: list[tuple[Parameter, bool]] = []
    methods: dict[str, _Method] = {}
    for where, each in reversed(lineage):
        by_name = any(keyword.arg == "kw_only" for keyword in each.keywords)
        fields += [(one, by_name) for one in _fields(where, each, shown)]
        _collect_methods(where, each, methods)
    fields = [each for each in fields if f"{node.name}.{each[0].name}" not in INTERNAL]
    if "__init__" in methods:
        _add_constructor(shown, methods["__init__"], _docstring(node), fields)
    elif fields and any(_is_record(each) for _, each in lineage):
        rows = [each for each, _ in fields]
        shown.made = Callable(node.name, [_made_of(node.name, fields)], "", rows, [], [])
    else:
        shown.attributes += [each for each, _ in fields]
    shown.has_options = is_typed_dict(module, node)
    is_protocol = "Protocol" in _bases_text(node)
    for name, method in methods.items():
        if name[0] != "_" or (name == "__call__" and is_protocol):
            _add_method(shown, method)
    shown.methods = [each for each in shown.methods if _is_shown(shown, each.name)]
    shown.attributes = [each for each in shown.attributes if _is_shown(shown, each.name)]
    return shown


def _is_record(node: ast.ClassDef) -> bool:
    """Return whether a class's fields are the parameters of its constructor."""
    bases = _bases_text(node)
    return "Struct" in bases or "NamedTuple" in bases


def _is_shown(shown: Class, member: str) -> bool:
    return f"{shown.name}.{member}" not in INTERNAL


def _lineage(module: str, node: ast.ClassDef, shown: Class) -> list[tuple[str, ast.ClassDef]]:
    """Return the class and the base classes that users do not meet; note the others."""
    found = [(module, node)]
    for where, each in found:
        for home, name, base in bases_of(where, each):
            if name[0] == "_" or name in _MERGED or is_typed_dict(home, base):
                found.append((home, base))
            else:
                shown.bases.append(name)
    return found


@dataclass(frozen=True)
class _Method:
    module: str
    owner: ast.ClassDef
    nodes: list[Function]
    """The overloads, then the function itself."""


def _collect_methods(module: str, node: ast.ClassDef, found: dict[str, _Method]) -> None:
    for each in statements(node.body):
        if isinstance(each, Function) and not _is_marked(each, "setter"):
            known = found.get(each.name)
            goes_on = known is not None and _is_marked(known.nodes[-1], "overload")
            before = known.nodes if known is not None and goes_on else []
            found[each.name] = _Method(module, node, [*before, each])


def _add_constructor(
    shown: Class, method: _Method, docstring: str, fields: list[tuple[Parameter, bool]]
) -> None:
    # The class whose constructor it is may be a base class.
    text = "\n\n".join(dict.fromkeys([docstring, _docstring(method.owner)]))
    made = _callable(method.module, method.nodes, shown.name, text, fields)
    given = {each.name for each in made.parameters} | _keys(made.options)
    if shown.name in NOT_MADE:
        shown.text, given = made.text, set()
    else:
        shown.made = made
    shown.attributes += [each for each, _ in fields if each.name not in given]
    shown.attributes += _attributes(method.nodes[-1], given | {each.name for each, _ in fields})


_MERGED = {"ServerMethods", "HasRegistry", "ListedEntry", "HttpMiddleware"}
"""Base classes that users do not meet: what they have is shown in the class itself."""
NOT_MADE = {"Context", "Invocation", "RemoteServer", "StartedTask", "ConnectContext"} | {
    *("RequestInfo", "ModelTools"),
}
"""Classes whose objects users get and do not make: their constructors are not shown."""
INTERNAL = {
    *("Retry.option", "Retry.policy", "Retry.wait_after", "Breaker.option", "Breaker.policy"),
    *("Breaker.enter", "Breaker.holds", "Breaker.leave", "Limit.key", "Limit.enter"),
    *("Limit.count", "Limit.start", "Limit.leave", "Limit.give_back"),
    *("Limit.option", "Limit.policy", "Login.choice", "Login.records", "Login.for_server"),
    *("OAuth.options", "OAuth.metadata", "OAuth.pages", "DevelopmentOAuth.pages"),
    *("ApiKeys.security_schemes", "ModelTools.rules", "FilledPrompt.read", "ServerFacts.of"),
    *("ValidReplies.on_call_tool", "ValidReplies.applies_to", "ValidReplies.check"),
    *("ValidReplies.has_checkable_body", "Error.of", "Values.settings", "Task.settings"),
    *("Shown.settings", "Reply.encoded", "Reply.shape", "Reply.received", "Reply.contract"),
    *("ToolError.may_have_run", "ToolError.thread_goes_on", "Records.sinks"),
}
"""Members that only our own packages use; no page shows them."""


def _keys(options: list[str]) -> set[str]:
    """Return the keys of TypedDicts, which are given as `module:name`."""
    found = [described(*each.split(":")) for each in options]
    return {row.name for each in found if isinstance(each, Class) for row in each.attributes}


def _bases_text(node: ast.ClassDef) -> str:
    return " ".join(map(ast.unparse, node.bases))


def _is_marked(node: Function, *marks: str) -> bool:
    return any(ast.unparse(each).split(".")[-1] in marks for each in node.decorator_list)


def is_typed_dict(module: str, node: ast.ClassDef) -> bool:
    if "TypedDict" in _bases_text(node):
        return True
    return any(is_typed_dict(where, base) for where, _, base in bases_of(module, node))


def _fields(module: str, node: ast.ClassDef, shown: Class) -> Iterator[Parameter]:
    texts = texts_below(node.body)
    for each in statements(node.body):
        match each:
            case ast.AnnAssign(target=ast.Name(id=name), annotation=kind, value=value):
                if name.startswith("_"):
                    continue
                default = _default(value)
                default = default and value_of(module, default)
                row = Parameter(name, ast.unparse(kind), default, texts.get(each, ""))
                if row.type.startswith("ClassVar["):
                    inner = row.type[len("ClassVar[") : -1]
                    shown.attributes.append(Parameter(name, inner, row.default, row.meaning))
                else:
                    yield row


def _default(value: ast.expr | None) -> str | None:
    match value:
        case None:
            return None
        case ast.Call(keywords=keywords) if "field" in ast.unparse(value.func):
            for each in keywords:
                if each.arg == "default":
                    return ast.unparse(each.value)
                if each.arg == "default_factory":
                    return ""
            return None
        case ast.Call(func=ast.Name(id="cast"), args=[_, inner]):
            return ast.unparse(inner)
    return ast.unparse(value)


def _made_of(name: str, fields: list[tuple[Parameter, bool]]) -> str:
    """Return the constructor's signature for a class that has only fields."""
    positional = [_written(each) for each, by_name in fields if not by_name]
    named = [_written(each) for each, by_name in fields if by_name]
    return _joined(name, [*positional, *(["*", *named] if named else [])], "")


def _written(each: Parameter) -> str:
    return f"{each.name}: {each.type}" + (
        "" if each.default is None else f" = {each.default or '…'}"
    )


def _attributes(init: Function, known: set[str]) -> Iterator[Parameter]:
    """Yield the public attributes that a constructor sets, except its parameters and fields."""
    texts = texts_below(init.body)
    types = {each.arg: each.annotation for each in _arguments(init)}
    for each in statements(init.body):
        match each:
            case (
                ast.Assign(targets=[ast.Attribute(attr=name)], value=value)
                | ast.AnnAssign(target=ast.Attribute(attr=name), value=value)
            ) if not name.startswith("_") and name not in known:
                kind = each.annotation if isinstance(each, ast.AnnAssign) else None
                if kind is None and isinstance(value, ast.Name):
                    kind = types.get(value.id)
                yield Parameter(name, ast.unparse(kind) if kind else "", None, texts.get(each, ""))


def _add_method(shown: Class, method: _Method) -> None:
    node = method.nodes[-1]
    if _is_marked(node, "property", "cached_property"):
        kind = ast.unparse(node.returns) if node.returns else ""
        shown.attributes.append(Parameter(node.name, kind, None, prose(_docstring(node))))
        return
    shown.methods.append(_callable(method.module, method.nodes, node.name))


def _arguments(node: Function) -> list[ast.arg]:
    given = node.args
    extra = [each for each in (given.vararg, given.kwarg) if each is not None]
    return [*given.posonlyargs, *given.args, *given.kwonlyargs, *extra]


def _callable(
    module: str,
    functions: list[Function],
    name: str,
    more: str = "",
    fields: list[tuple[Parameter, bool]] | None = None,
) -> Callable:
    last = functions[-1]
    shown = _shown_forms(functions)
    known = {each.name: each.meaning for each, _ in fields or ()}
    names = {each.arg for each in _arguments(last)}
    text, meanings = _split(f"{more}\n\n{_docstring(last)}".strip(), names)
    options: list[str] = []
    parameters: dict[str, Parameter] = {}
    for each in shown:
        for row in _parameters(each):
            if row.type.startswith("Unpack["):
                options.append(f"{module}:{row.type[len('Unpack[') : -1]}")
            elif row.name not in parameters and not _is_refused(row):
                meaning = meanings.get(row.name) or known.get(row.name, "")
                default = None if row.default is None else value_of(module, row.default)
                is_option = row.is_option or last.name == "__init__"
                parameters[row.name] = replace(
                    row, default=default, meaning=meaning, is_option=is_option
                )
    signatures = [_signature(each, name) for each in shown]
    # The text has its own words for some of them.
    raised = dict.fromkeys(each for each in _raised_in(last) if each not in text)
    options = list(dict.fromkeys(options))
    return Callable(name, signatures, text, list(parameters.values()), options, [*raised])


def _shown_forms(functions: list[Function]) -> list[Function]:
    """Return the function itself, or its two overloads if they have other parameters.

    The function gets the options from its overloads: its own annotation says less.
    """
    last = functions[-1]
    overloads = functions[:-1]
    names = [[each.arg for each in _arguments(one)] for one in overloads]
    if len(overloads) == 2 and names[0] != names[1]:
        return overloads
    for each in overloads:
        if each.args.kwarg is not None and last.args.kwarg is not None:
            last.args.kwarg.annotation = each.args.kwarg.annotation
    return [last]


def _is_refused(row: Parameter) -> bool:
    """Return whether a parameter only exists to be refused with a better message."""
    is_object = row.name in ("self", "cls") and not row.type
    return is_object or row.name in ("unknown", "exc") or row.type.endswith("Never")


def _split(docstring: str, known: set[str]) -> tuple[str, dict[str, str]]:
    """Return the text without the sentences about parameters, and these, by parameter.

    The first sentence stays in any case.
    """
    meanings: dict[str, str] = {}
    paragraphs = []
    summary = ""
    for paragraph in prose_paragraphs(docstring):
        kept: list[str] = []
        before: set[str] = set()
        for sentence in _SENTENCE.split(paragraph):
            names = known.intersection(_NAMED.findall(sentence))
            if not names and sentence.startswith("It "):
                # It goes on about the parameter of the sentence before.
                names = before
            shown = _NAMED.sub(r"`\1`", sentence)
            summary = summary or shown
            for name in names:
                known_so_far = meanings.get(name, summary)
                meanings[name] = shown if known_so_far == summary else f"{known_so_far} {shown}"
            is_kept = not names or shown == summary
            before = set() if is_kept else names
            kept += [shown] if is_kept else []
        if kept:
            paragraphs.append(" ".join(kept))
    return "\n\n".join(paragraphs), meanings


def prose_paragraphs(text: str) -> list[str]:
    return [" ".join(each.split()) for each in re.split(r"\n\s*\n", text.strip()) if each.strip()]


def _parameters(node: Function) -> Iterator[Parameter]:
    given = node.args
    positional = [*given.posonlyargs, *given.args]
    missing = [None] * (len(positional) - len(given.defaults))
    for each, value in zip(positional, [*missing, *given.defaults], strict=True):
        yield replace(_parameter(each, value), is_option=False)
    if given.vararg is not None:
        yield replace(_parameter(given.vararg, None, "*"), is_option=False)
    for each, value in zip(given.kwonlyargs, given.kw_defaults, strict=True):
        yield _parameter(each, value)
    if given.kwarg is not None:
        yield replace(_parameter(given.kwarg, None, "**"), is_option=False)


def _parameter(node: ast.arg, value: ast.expr | None, stars: str = "") -> Parameter:
    kind = "" if node.annotation is None else ast.unparse(node.annotation)
    return Parameter(
        node.arg, stars + kind if stars and kind[:6] != "Unpack" else kind, _default(value)
    )


def _signature(node: Function, name: str) -> str:
    parts = []
    given = node.args
    own = given.posonlyargs + given.args
    rows = {each.name: each for each in _parameters(node)}
    for each in own:
        if _is_refused(rows[each.arg]):
            continue
        parts.append(_written(rows[each.arg]))
        if given.posonlyargs and each is given.posonlyargs[-1]:
            parts.append("/")
    if given.vararg is not None and not _is_refused(rows[given.vararg.arg]):
        parts.append(f"*{given.vararg.arg}: {rows[given.vararg.arg].type.lstrip('*')}")
    elif given.kwonlyargs:
        parts.append("*")
    parts += [_written(rows[each.arg]) for each in given.kwonlyargs]
    if given.kwarg is not None and not _is_refused(rows[given.kwarg.arg]):
        parts.append(f"**{given.kwarg.arg}: {rows[given.kwarg.arg].type.lstrip('*')}")
    returns = "" if node.returns is None or node.name == "__init__" else ast.unparse(node.returns)
    prefix = "async " if isinstance(node, ast.AsyncFunctionDef) else ""
    return prefix + _joined(name, parts, returns)


def _joined(name: str, parts: list[str], returns: str) -> str:
    arrow = f" -> {returns}" if returns else ""
    line = f"{name}({', '.join(parts)}){arrow}"
    if len(line) <= 88:
        return line
    return f"{name}(\n" + "".join(f"    {each},\n" for each in parts) + f"){arrow}"


def _raised_in(node: Function) -> Iterator[str]:
    for each in ast.walk(node):
        match each:
            case ast.Raise(exc=ast.Call(func=ast.Name(id=name))) if name[0].isupper():
                yield name


def comments_in(module: str) -> dict[int, str]:
    """Return the comment above or behind a row of a table, by the row's line number."""
    found: dict[int, str] = {}
    above: list[str] = []
    for number, line in enumerate(tree_lines(module), 1):
        stripped = line.strip()
        if stripped.startswith("# "):
            above.append(stripped[2:])
            continue
        behind = line.partition("  # ")[2]
        if behind or above:
            found[number] = behind or " ".join(above)
        above = []
    return found


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
        assert isinstance(shown, Class)
        assert shown.made is not None
        found |= {each.name: each.default or "" for each in shown.made.parameters}
    return {
        name: value
        for name, value in found.items()
        if value not in ("None", "''") and len(value) < _MAX_DEFAULT
    }


def value_of(module: str, text: str) -> str:
    """Return the value of a constant's name, if *text* is one."""
    found = find(module, text) if text.isupper() else None
    if found is not None and isinstance(node := found.nodes[-1], ast.Assign):
        return ast.unparse(node.value)
    return text


def alias_of(module: str, name: str) -> str:
    """Return what a name in an annotation stands for: an alias's type, or a class's sentence."""
    found = find(module, name)
    match found.nodes[-1] if found is not None else None:
        case ast.ClassDef() as node if not is_typed_dict(found.module if found else module, node):
            return prose(_docstring(node)).partition("\n\n")[0]
        case ast.Assign(value=value) if not isinstance(value, ast.Constant | ast.Call):
            return f"`{ast.unparse(value)}`"
        case ast.AnnAssign(annotation=ast.Name(id="TypeAlias"), value=ast.expr() as value):
            return f"`{ast.unparse(value)}`".replace('"', "")
    return ""
