"""Limits on the source: sizes, reasons for ignored rules, and no state in modules."""

import ast
import re
from collections.abc import Iterator
from pathlib import Path

import answerback

SRC = Path(answerback.__file__).parent
MODULES = sorted(SRC.rglob("*.py"))
Function = ast.FunctionDef | ast.AsyncFunctionDef

# State that outlives a call, each with its reason.
STATE = {
    # Public names are loaded at first use, and then kept.
    "__init__.py: globals()",
    "records/__init__.py: globals()",
    # The open writers: a process that forks must notify them.
    "records/writer.py: _WRITERS",
    # The thread pools: a forked child resets them, because it has none of their threads.
    "calls/thread_pool.py: _POOLS",
    # A context variable that is set while a target is loaded.
    "cli/program.py: LOADING",
    # The module of each dialect, imported at first use.
    "dialects/__init__.py: _load",
    # The encoders of values without a declared type, built at first use.
    "calls/reply_check.py: _ANYTHING",
    "wrapping.py: _anything",
    # Caches whose values depend on their keys alone.
    "types/pydantic_types.py: _cached_adapter",
    "types/pydantic_types.py: _cached_hasty_validator",
    "types/scalars.py: _compiled",
    "rules/catalogue.py: plan_for",
    "rules/checks/ab32_output_schema.py: _compiled",
    "rules/detectors/failure_text.py: _saying",
    "mcp/jsonrpc.py: _decoder",
    # The key with which this process signs tokens.
    "wires/stdio/stdio_server.py: _signer",
    # The status line and headers of responses, in a bounded cache: few differ.
    "wires/asgi/request.py: _head",
    # The OpenAPI document of each App, kept as long as the App exists.
    "wires/http/openapi/document.py: _made",
}
MUTABLE = {
    "ContextVar",
    "Counter",
    "Lock",
    "Output",
    "cache",
    "WeakKeyDictionary",
    "WeakValueDictionary",
    "count",
    "defaultdict",
    "deque",
    "dict",
    "list",
    "local",
    "set",
}
MUTATING_METHODS = {"add", "append", "clear", "extend", "insert", "pop", "popitem", "remove"} | {
    "setdefault",
    "update",
    "appendleft",
    "popleft",
    "discard",
}


def name_of(path: Path) -> str:
    return path.relative_to(SRC).as_posix()


def definitions(path: Path, *kinds: type[ast.stmt]) -> Iterator[ast.stmt]:
    return (node for node in ast.walk(ast.parse(path.read_text())) if isinstance(node, kinds))


def length(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def test_no_module_is_longer_than_500_lines() -> None:
    sizes = {name_of(path): len(path.read_text().splitlines()) for path in MODULES}

    assert {name: size for name, size in sizes.items() if size > 500} == {}


def test_no_function_is_longer_than_50_lines() -> None:
    sizes = {
        f"{name_of(path)}: {node.name}": length(node)
        for path in MODULES
        for node in definitions(path, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, Function)
    }

    assert {name: size for name, size in sizes.items() if size > 50} == {}


def methods(node: ast.ClassDef) -> set[str]:
    return {each.name for each in node.body if isinstance(each, Function)}


def test_no_class_has_more_than_15_methods() -> None:
    sizes = {
        f"{name_of(path)}: {node.name}": len(methods(node))
        for path in MODULES
        for node in definitions(path, ast.ClassDef)
        if isinstance(node, ast.ClassDef)
    }

    assert {name: size for name, size in sizes.items() if size > 15} == {}


IGNORED = re.compile(r"#\s*(noqa|type:\s*ignore)\b")
NAMED = re.compile(r"# (noqa: [A-Z]+\d+|type: ignore\[[a-z-]+(, [a-z-]+)*\])(?P<more>.*)")


def unexplained(path: Path) -> Iterator[str]:
    """Comments that ignore a rule without its name, or without a reason beside or above."""
    before = ""
    for number, line in enumerate(path.read_text().splitlines(), 1):
        if IGNORED.search(line):
            named = NAMED.search(line)
            reason = named is not None and (
                re.fullmatch(r"\s*(-+|#) \S.*", named["more"]) or before.strip().startswith("#")
            )
            if not reason:
                yield f"{name_of(path)}:{number}"
        before = line


def test_every_ignored_rule_is_named_and_has_a_reason() -> None:
    assert [where for path in MODULES for where in unexplained(path)] == []


def called(node: ast.expr | None) -> str:
    match node:
        case ast.Call(func=ast.Name(id=name) | ast.Attribute(attr=name)):
            return name
    return ""


def assigned(node: ast.stmt) -> tuple[str, ast.expr | None]:
    match node:
        case ast.Assign(targets=[ast.Name(id=name)], value=value):
            return name, value
        case ast.AnnAssign(target=ast.Name(id=name), value=value):
            return name, value
    return "", None


def is_cached(node: ast.stmt) -> bool:
    if not isinstance(node, Function):
        return False
    decorators = {ast.unparse(each).partition("(")[0] for each in node.decorator_list}
    return bool(decorators & {"cache", "lru_cache", "functools.cache", "functools.lru_cache"})


def changed(tree: ast.Module, names: set[str]) -> Iterator[str]:
    """The names among *names* that a line of the module changes."""
    for node in ast.walk(tree):
        match node:
            case ast.Global(names=rebound):
                yield from rebound
            case ast.Subscript(value=ast.Name(id=name), ctx=ast.Store() | ast.Del()):
                yield from {name} & names
            case ast.Subscript(value=ast.Call() as call, ctx=ast.Store()):
                yield from {"globals()"} & {ast.unparse(call)}
            case ast.Call(func=ast.Attribute(value=ast.Name(id=name), attr=method)):
                yield from {name} & names if method in MUTATING_METHODS else ()


def state_of(path: Path) -> set[str]:
    tree = ast.parse(path.read_text())
    values = dict(map(assigned, tree.body))
    held = {name for name, value in values.items() if name and called(value) in MUTABLE}
    held |= {node.name for node in tree.body if isinstance(node, Function) and is_cached(node)}
    # `del CODE_BY_STATUS[…]` runs while the module is loaded, to build the table.
    made = ast.Module([node for node in tree.body if not isinstance(node, ast.Delete)], [])
    held |= set(changed(made, set(values)))
    return {f"{name_of(path)}: {name}" for name in held}


def test_modules_hold_only_the_state_that_is_listed_here_with_its_reason() -> None:
    assert set().union(*map(state_of, MODULES)) == STATE
