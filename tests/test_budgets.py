"""Limits on the source: sizes, reasons for ignored rules, and no state in modules."""

import ast
import re
from collections import defaultdict
from collections.abc import Iterator
from functools import cache
from graphlib import CycleError, TopologicalSorter
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
    # The servers on stdio: a child that a tool forks leaves their clients to its parent.
    "server/stdio.py: _SERVING",
    # What a forked child resets, because it has none of its parent's threads.
    "core/background_work.py: _RESETS",
    # The state of each service that has a breaker, as long as a breaker refers to it.
    "resilience/breaker.py: _SERVICES",
    # A context variable with the clocks of the call that runs.
    "core/clocks.py: RUNNING",
    # A context variable with the call that runs now.
    "tools/current_call.py: CURRENT",
    # A context variable that is set while a target is loaded.
    "cli/program.py: LOADING",
    # The table of error codes, to which `App(codes=…)` adds: an error is looked up without its app.
    "errors.py: CODES",
    # The module of each dialect, imported at first use.
    "dialects/__init__.py: _load",
    # The encoders of values without a declared type, built at first use.
    "calls/reply_check.py: _any_output",
    "calls/wrapping.py: _any_output",
    # The JSON forms of authors' classes, which all apps of the process share.
    "types/codecs.py: _REGISTERED",
    # Caches whose values depend on their keys alone.
    "core/content.py: block_class",
    "core/content.py: is_result_class",
    "types/pydantic_types.py: _cached_adapter",
    "server/console/console_page.py: console_page",
    "types/json_schema.py: _compiled",
    "reading/typed_data.py: _cached_decoder",
    "types/patterns.py: is_simple",
    "types/patterns.py: searcher",
    "core/metadata.py: _near_key",
    "tasks/task_runner.py: _machine",
    "rules/catalogue.py: plan_for",
    "verdicts/texts.py: _phrase_pattern",
    "types/schema_check.py: _compiled",
    "tools/elicitation.py: _arguments",
    "protocol/jsonrpc.py: _decoder",
    "protocol/jsonrpc.py: _batch_decoder",
    # The keys with which this process signs tokens.
    "core/signing.py: process_signer",
    "server/stdio.py: _signer",
    # The status line and headers of responses, in a bounded cache: few differ.
    "server/asgi/request.py: _head",
    # The headers of all responses of one second.
    "server/uvicorn/uvicorn_protocol.py: _line",
    # The OpenAPI document of each App, kept as long as the App exists.
    "server/http/openapi.py: _cache",
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


@cache
def tree_of(path: Path) -> ast.Module:
    return ast.parse(path.read_text())


@cache
def nodes_of(path: Path) -> list[ast.AST]:
    return list(ast.walk(tree_of(path)))


def definitions(path: Path, *kinds: type[ast.stmt]) -> Iterator[ast.stmt]:
    return (node for node in nodes_of(path) if isinstance(node, kinds))


def length(node: ast.stmt) -> int:
    assert node.end_lineno is not None
    return node.end_lineno - node.lineno + 1


def test_no_module_is_longer_than_900_lines() -> None:
    """A module is a topic that is read from top to bottom; above 900 lines it has two."""
    sizes = {name_of(path): len(path.read_text().splitlines()) for path in MODULES}

    assert {name: size for name, size in sizes.items() if size > 900} == {}


def test_no_function_is_longer_than_60_lines() -> None:
    sizes = {
        f"{name_of(path)}: {node.name}": length(node)
        for path in MODULES
        for node in definitions(path, ast.FunctionDef, ast.AsyncFunctionDef)
        if isinstance(node, Function)
    }

    assert {name: size for name, size in sizes.items() if size > 60} == {}


def methods(node: ast.ClassDef) -> set[str]:
    return {each.name for each in node.body if isinstance(each, Function)}


# The front door of an author: `test_an_app_has_at_most_33_public_names` bounds it.
FRONT_DOORS = {"app.py: App"}


def test_no_class_has_more_than_25_methods() -> None:
    sizes = {
        f"{name_of(path)}: {node.name}": len(methods(node))
        for path in MODULES
        for node in definitions(path, ast.ClassDef)
        if isinstance(node, ast.ClassDef)
    }

    assert {name: size for name, size in sizes.items() if size > 25}.keys() <= FRONT_DOORS


# These read annotations and values of any type.
ANY_PACKAGES = {"types", "rules", "models", "reading", "dialects", "inference", "verdicts"}
# Annotations that are `Any` and nothing else; the number may only fall.
BARE_ANY = 174


def annotations(node: ast.AST) -> Iterator[ast.expr | None]:
    match node:
        case ast.AnnAssign(annotation=annotation) | ast.arg(annotation=annotation):
            yield annotation
        case ast.FunctionDef(returns=returns) | ast.AsyncFunctionDef(returns=returns):
            yield returns


def test_a_parameter_member_or_result_is_rarely_any() -> None:
    """A type checker sees nothing behind `Any`: name the type, or write `object` or `Json`."""
    found = [
        f"{name_of(path)}:{each.lineno}"
        for path in MODULES
        if path.relative_to(SRC).parts[0] not in ANY_PACKAGES
        for node in nodes_of(path)
        for each in annotations(node)
        if isinstance(each, ast.Name) and each.id == "Any"
    ]

    assert len(found) <= BARE_ANY, "\n".join(found)


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
    tree = tree_of(path)
    values = dict(map(assigned, tree.body))
    held = {name for name, value in values.items() if name and called(value) in MUTABLE}
    held |= {node.name for node in tree.body if isinstance(node, Function) and is_cached(node)}
    # `del CODE_BY_STATUS[…]` runs while the module is loaded, to build the table.
    made = ast.Module([node for node in tree.body if not isinstance(node, ast.Delete)], [])
    held |= set(changed(made, set(values)))
    return {f"{name_of(path)}: {name}" for name in held}


def test_modules_hold_only_the_state_that_is_listed_here_with_its_reason() -> None:
    assert set().union(*map(state_of, MODULES)) == STATE


SHARED_MODULE_NAMES = {
    # A command's module has the name of the command, which is the name of the thing it shows.
    "call": "calls/call.py is the Call; cli/call.py is the command",
    "console": "server/console/ is the page; cli/console.py is the command",
    "cgi": "server/cgi.py is the wire; cli/cgi.py is the command",
    "lint": "rules/lint/ is the linter; cli/lint.py is the command",
    "prompt": "tools/prompt.py is the Prompt; cli/prompt.py is the command",
    "openapi": "server/http/openapi/ makes the document; cli/openapi.py is the command",
    "state": "state/ keeps what hosts share; cli/state.py is the command",
    "tasks": "tasks/ runs tasks; cli/tasks.py is the command",
    "types": "types/ reads annotations; cli/types.py is the command",
    # MCP is a dialect of replies and a command.
    "mcp": "dialects/mcp.py is the dialect; cli/mcp.py is the command",
    # Users import the middleware by the name of the interface that it is for.
    "asgi": "server/asgi/ serves an app; middleware/asgi.py checks other people's apps",
}
SHARED_CLASS_NAMES = {
    # One middleware, under the same name in each framework's module.
    "ValidReplies",
}


def test_module_names_are_unique_except_those_listed_with_a_reason() -> None:
    paths = defaultdict(set)
    for path in MODULES:
        if (path.name != "__main__.py" and path.parent != SRC) or path.name != "__init__.py":
            name = path.parent.name if path.name == "__init__.py" else path.stem
            paths[name].add(name_of(path))

    assert {name for name, found in paths.items() if len(found) > 1} == set(SHARED_MODULE_NAMES)
    assert len(SHARED_MODULE_NAMES) + len(SHARED_CLASS_NAMES) <= 12


def test_public_class_names_are_unique_except_those_listed_with_a_reason() -> None:
    paths = defaultdict(set)
    for path in MODULES:
        for node in definitions(path, ast.ClassDef):
            assert isinstance(node, ast.ClassDef)
            if not node.name.startswith("_"):
                paths[node.name].add(name_of(path))

    assert {name for name, found in paths.items() if len(found) > 1} == SHARED_CLASS_NAMES


Documented = ast.Module | ast.ClassDef | Function


def test_no_docstring_begins_with_what() -> None:
    """A docstring begins with the noun that a reader would search for."""
    found = [
        f"{name_of(path)}: {getattr(node, 'name', 'module')}"
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, Documented) and (ast.get_docstring(node) or "").startswith("What")
    ]

    assert found == []


def imports_in(node: ast.AST, in_function: bool = False) -> Iterator[tuple[ast.stmt, bool]]:
    """The imports that run, and whether they do so only when a function is called."""
    for each in ast.iter_child_nodes(node):
        if isinstance(each, ast.Import | ast.ImportFrom):
            yield each, in_function
        elif not (isinstance(each, ast.If) and "TYPE_CHECKING" in ast.unparse(each.test)):
            yield from imports_in(each, in_function or isinstance(each, Function))


def imported_modules(path: Path) -> Iterator[Path]:
    """The modules of ours that a module imports when it is loaded or used."""
    for node, _ in imports_in(tree_of(path)):
        if isinstance(node, ast.ImportFrom) and node.level:
            base = path.parents[node.level - 1].joinpath(*(node.module or "").split("."))
            for alias in node.names:
                modules = (base / f"{alias.name}.py", base / alias.name / "__init__.py")
                found = [*modules, base.with_suffix(".py"), base / "__init__.py"]
                yield next(each for each in found if each.exists())


# Private functions that are named once beside their definition, per 1,000 lines. A reader follows
# such a name instead of reading on, so the code stays in its caller unless the name says more
# than the lines. The number may only fall.
ONE_CALLER_HELPERS = 11.6


def test_few_private_functions_have_only_one_caller() -> None:
    texts = {path: path.read_text() for path in MODULES}
    found = [
        node.name
        for path, text in texts.items()
        for node in nodes_of(path)
        if isinstance(node, Function) and re.fullmatch(r"_[^_]\w*", node.name)
        if len(re.findall(rf"\b{node.name}\b", text)) == 2
    ]
    lines = sum(text.count("\n") for text in texts.values())

    assert 1000 * len(found) / lines <= ONE_CALLER_HELPERS


# Modules under 90 lines that one other module imports; the number may only fall.
SMALL_MODULES_WITH_ONE_IMPORTER = 3


def test_few_small_modules_have_only_one_importer() -> None:
    """A new file needs a second importer or a second topic."""
    importers = defaultdict(set)
    for path in MODULES:
        for imported in imported_modules(path):
            importers[imported].add(path)
    # A command's module is loaded by its name.
    small = {
        name_of(path)
        for path, found in importers.items()
        if len(found) == 1 and len(path.read_text().splitlines()) < 90
        if path.parent.name != "cli" and path.name != "__init__.py"
    }

    assert len(small) <= SMALL_MODULES_WITH_ONE_IMPORTER, sorted(small)


# Functions with an import inside; the number may only fall. A program that does not call the
# function starts without the module, as `tests/test_import_cost.py` shows.
FUNCTIONS_WITH_IMPORTS = 309


def test_few_functions_have_an_import_inside() -> None:
    found = [
        node
        for path in MODULES
        for node in nodes_of(path)
        if isinstance(node, Function)
        if any(isinstance(each, ast.Import | ast.ImportFrom) for each in ast.walk(node))
    ]

    assert len(found) <= FUNCTIONS_WITH_IMPORTS


# The modules that functions may import, each with its reason; every other import is at the top.
DOORS = {
    # The standard library and dependencies: each costs time or memory, and most programs
    # never use it.
    *("annotationlib", "argparse", "asyncio", "base64", "binascii", "certifi", "concurrent"),
    *("copy", "difflib", "email", "fcntl", "gc", "getpass", "hashlib", "http", "importlib"),
    *("inspect", "joserfc", "json", "keyring", "logging", "mimetypes", "msgspec", "pathlib"),
    *("rich", "secrets", "select", "shlex", "signal", "socket", "sys", "tempfile", "threading"),
    *("traceback", "urllib", "webbrowser"),
    # The parts of a wire, a client or a command, loaded when it is used.
    *("auth", "auth.development", "auth.token_check", "cli.argument_parser", "cli.call"),
    *("cli.help", "cli.program", "cli.readable_reply", "cli.server_target"),
    "cli.store_options",
    *("cli.target", "cli.terminal_login", "cli.tool_help", "client.blocking"),
    *("client.http_requests", "client.in_memory", "client.login.login_settings"),
    *("client.login.server_login", "client.rest_session", "client.streamable_http"),
    *("client.tap", "rules", "rules.terminal_report", "server.asgi.application"),
    *("server.asgi.database_bus", "server.asgi.mcp_endpoint", "server.cgi_request_info"),
    *("server.console.console_page", "server.http.authentication_step"),
    *("server.http.list_pages", "server.http.openapi", "server.http.openapi_tasks"),
    *("server.http.routes", "server.http.server_options", "server.http.task_routes"),
    *("server.memory", "server.process", "server.uvicorn.reload"),
    *("server.uvicorn.uvicorn_server", "testing.context_for_tests"),
    # What only some apps declare: gates, tasks, records, a lifespan, pages, prompts and so
    # on.
    *("calls.fitted_reply", "calls.gating", "calls.middleware_and_observers", "calls.started"),
    *("fitting.cut_lists", "fitting.postgres_replies", "fitting.reply_store", "gates.links"),
    *("gates.prompts", "options", "protocol.listing"),
    *("protocol.mcp_request_info", "protocol.refusals"),
    *("protocol.task_methods", "protocol.widget", "records", "registry.composition"),
    *("registry.lifespan", "registry.lifespan_on_loop", "resilience", "resilience.policy"),
    *("resilience.service_failure", "resilience.shared_limits", "state.maintenance"),
    *("state.shared", "tasks.postgres_store", "tasks.service", "tasks.sqlite_store"),
    *("tools.dependencies", "tools.docstrings", "tools.elicitation", "tools.other_frameworks"),
    *("tools.paging", "tools.prompt", "tools.requires", "tools.resource"),
    # What only some types or values need.
    *("types.annotation_reader", "types.argument_object", "types.coerce", "types.default_check"),
    *("types.field_info", "types.json_schema", "types.msgspec_types", "types.patterns"),
    *("types.problems", "types.pydantic_types", "types.schema_arguments", "types.schema_check"),
    *("types.unencodable", "types.values_from_text"),
    # What only some calls need: threads, failures, foreign replies, other dialects.
    *("calls.context", "calls.failures", "calls.finished_reply", "calls.loop_thread"),
    *("calls.runtime", "calls.thread_pool", "core.authentication", "core.author_errors"),
    *("core.clocks", "core.log", "core.media_types", "core.metadata", "core.reply"),
    *("core.request_info", "core.secrets", "core.signing", "core.versions", "dialects"),
    *("dialects.common", "dialects.foreign_blocks", "dialects.mcp_blocks"),
    *("dialects.model_text", "dialects.readable", "dialects.reply_text", "dialects.rest"),
    *("dialects.returned_value", "dialects.seen_reply", "verdicts.forms", "reading"),
    *("reading.foreign_errors", "reading.typed_data"),
}


def imported_in_functions(path: Path) -> Iterator[str]:
    """The modules: ours by their dotted names, the others by their top-level names."""
    package = path.relative_to(SRC).parent.parts
    for node, in_function in imports_in(tree_of(path)):
        if not in_function:
            continue
        if isinstance(node, ast.Import):
            yield from (each.name.partition(".")[0] for each in node.names)
        elif isinstance(node, ast.ImportFrom) and node.level == 0:
            yield (node.module or "").partition(".")[0]
        elif isinstance(node, ast.ImportFrom):
            parts = [*package[: len(package) - node.level + 1], *(node.module or "").split(".")]
            base = SRC.joinpath(*filter(None, parts))
            for name in (each.name for each in node.names):
                is_module = (base / name).is_dir() or (base / f"{name}.py").exists()
                found = base / name if is_module else base
                yield ".".join(found.relative_to(SRC).parts)


def test_functions_import_only_the_modules_that_are_listed_here_with_a_reason() -> None:
    assert {name for path in MODULES for name in imported_in_functions(path)} == DOORS


UPWARD = {
    # The front door: an App is run as a program by one line at the end of a file.
    ("app.py", "cli"),
    # `reply.to(dialect)` shows what a dialect sends, for tests and for programs without an App.
    ("core", "dialects"),
    # The console answers requests of the application, which loads it only if it is shown.
    ("server/asgi", "server/console"),
}


def units(path: Path, imported: Path) -> tuple[str, str] | None:
    """The packages or loose modules of an import, below the folder that has both of them."""
    one, other = path.relative_to(SRC), imported.relative_to(SRC)
    pairs = zip(one.parts, other.parts, strict=False)
    depth = next(n for n, (mine, its) in enumerate(pairs) if mine != its)
    pair = ["/".join(each.parts[: depth + 1]) for each in (one, other)]
    in_package = any(each.endswith(".py") and "/" in each for each in pair)
    return None if in_package or "__init__.py" in pair else (pair[0], pair[1])


def test_packages_do_not_import_each_other_in_a_circle() -> None:
    """Imports inside functions count: they hide a circle from Python, not from a reader."""
    imports = defaultdict(set)
    for path in MODULES:
        for imported in imported_modules(path):
            if imported != path and (pair := units(path, imported)) and pair not in UPWARD:
                imports[pair[0]].add(pair[1])

    circle: list[str] = []
    try:
        TopologicalSorter(imports).prepare()
    except CycleError as exc:
        circle = exc.args[1]

    assert circle == []


# The lines and files of each package; "" has the loose modules. A number rises only together with
# the sentence in CHANGELOG.md that a user would want it for.
PACKAGES = {
    "": (1_406, 6),
    "auth": (1_345, 8),
    "calls": (3_702, 15),
    "cli": (4_909, 34),
    "client": (7_426, 27),
    "core": (3_824, 22),
    "dialects": (3_649, 17),
    "fitting": (1_638, 7),
    "gates": (635, 4),
    "http1": (993, 3),
    "inference": (799, 3),
    "middleware": (579, 6),
    "models": (2_001, 7),
    "protocol": (3_258, 13),
    "reading": (1_296, 5),
    "records": (2_027, 10),
    "registry": (1_252, 5),
    "resilience": (1_545, 6),
    "rules": (4_507, 19),
    "server": (9_187, 33),
    "state": (1_315, 6),
    "tasks": (2_550, 8),
    "testing": (329, 2),
    "tools": (3_542, 15),
    "types": (6_181, 21),
    "verdicts": (902, 4),
}


def test_no_package_outgrows_its_lines_and_files() -> None:
    sizes: dict[str, tuple[int, int]] = defaultdict(lambda: (0, 0))
    for path in MODULES:
        package = path.relative_to(SRC).parts[0] if path.parent != SRC else ""
        lines, files = sizes[package]
        sizes[package] = lines + len(path.read_text().splitlines()), files + 1

    assert sizes.keys() == PACKAGES.keys()
    grown = {
        name: size
        for name, size in sizes.items()
        if size[0] > PACKAGES[name][0] or size[1] > PACKAGES[name][1]
    }
    assert grown == {}


TESTS = Path(__file__).parent
VISIBLE = {"raises", "warns", "fail"}


def is_visible_assertion(node: ast.AST) -> bool:
    match node:
        case ast.Assert():
            return True
        case ast.Call(func=ast.Attribute(value=ast.Name(id="pytest"), attr=name)):
            return name in VISIBLE
    return False


def test_every_test_shows_its_assertion() -> None:
    """A reader of a test sees what can make it fail."""
    hidden = [
        f"{path.relative_to(TESTS).as_posix()}: {node.name}"
        for path in sorted(TESTS.rglob("test_*.py"))
        for node in ast.walk(ast.parse(path.read_text()))
        if isinstance(node, Function) and node.name.startswith("test_")
        if not any(map(is_visible_assertion, ast.walk(node)))
    ]

    assert hidden == []
