"""Finds the App that a target names: `calculator.py`, `dir/calculator.py:app`, `pkg.mod:app`.

Also finds the server, for commands that accept one, and the folder with a program's source.
"""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
import sys
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from importlib import import_module
from importlib.machinery import PathFinder, SourceFileLoader
from types import ModuleType
from typing import TypeVar

from ..app import App
from ..core.author_errors import author_frames
from ..registry.declarations import registry_of
from ..tools.tool import Tool
from .program import LOADING, CannotLoad, NoSuchTarget

T = TypeVar("T")
_URL_WITHOUT_SCHEME = re.compile(r"(localhost|[\w.-]+\.\w+)(:\d+(/|$)|/mcp)")
IS_FOLDER = "{!r} is a folder; name a file in it"


def load(target: str) -> App:
    """Import the target's module and return the App that it names; raises CannotLoad."""
    where, name = split_target(target)
    import_it = _import_file if _is_file(where) else _import_module
    module = _run_authors_code(where, lambda: import_it(where))
    if not name:
        return _only_app(module, where)
    found: object = module
    for part in name.split("."):
        found = getattr(found, part, None)
    if isinstance(found, App):
        return found
    if callable(found):
        return _made_app(found, target)
    if found is None:
        names = [each for each, value in vars(module).items() if isinstance(value, App)]
        there = f"its Apps are {', '.join(names)}" if names else "it has no App"
        raise CannotLoad(f"there is no {name!r} in {target.removesuffix(f':{name}')}; {there}")
    raise CannotLoad(f"{target} is a {type(found).__name__}, not an App")


def split_target(target: str) -> tuple[str, str]:
    """Split off the name in the module; a drive letter's colon (`C:\\x.py`) does not count."""
    where, colon, name = target.rpartition(":")
    if colon and where and all(part.isidentifier() for part in name.split(".")):
        return where, name
    return target, ""


def _is_file(where: str) -> bool:
    return where.endswith(".py") or os.sep in where or os.path.isfile(where)


def _run_authors_code(where: str, run: Callable[[], T]) -> T:
    """Import the author's module, or call a function in it; raises CannotLoad if that fails.

    The code sees only its own name in sys.argv, and its `app.run()` does nothing.
    """
    arguments, sys.argv = sys.argv, [where]
    loading = LOADING.set(True)
    try:
        return run()
    except CannotLoad:
        raise
    except SystemExit:
        raise CannotLoad(f"{where} called sys.exit() while being loaded") from None
    except Exception as exc:
        exc.__traceback__ = author_frames(exc.__traceback__)
        message = f"{where} cannot be loaded: {type(exc).__name__}: {exc}"
        raise CannotLoad(message + _package_hint(where, exc)) from exc
    finally:
        LOADING.reset(loading)
        sys.argv = arguments


def _package_hint(where: str, exc: Exception) -> str:
    """Return a hint for a file whose relative imports fail because it is part of a package."""
    if not isinstance(exc, ImportError) or "no known parent package" not in str(exc):
        return ""
    folder, file = os.path.split(os.path.abspath(where))
    names = [os.path.splitext(file)[0]]
    while len(names) == 1 or os.path.isfile(os.path.join(folder, "__init__.py")):
        folder, name = os.path.split(folder)
        names.insert(0, name)
    place = "" if folder == os.getcwd() else f", in the folder {folder}"
    return f"; the file is part of a package, so name its module: {'.'.join(names)}{place}"


def _import_file(where: str) -> ModuleType:
    path = os.path.abspath(where)
    if os.path.isdir(path):
        raise CannotLoad(IS_FOLDER.format(where))
    if not os.path.isfile(path):
        raise CannotLoad(f"there is no file {where!r}{or_with_suffix(where)}")
    sys.path.insert(0, os.path.dirname(path))
    name = os.path.splitext(os.path.basename(path))[0].replace(".", "_")
    if name in sys.modules or name in sys.stdlib_module_names:
        name += "_tools"
    spec = importlib.util.spec_from_loader(name, SourceFileLoader(name, path))
    assert spec is not None
    assert spec.loader is not None
    # Added to sys.modules so that pickle and spawned processes can find the module by name.
    module = sys.modules[name] = importlib.util.module_from_spec(spec)
    spec.loader.exec_module(module)
    return module


def or_with_suffix(where: str) -> str:
    """Return a suggestion for an error message if only `.py` is missing."""
    return f"; did you mean '{where}.py'?" if os.path.isfile(f"{where}.py") else ""


def _import_module(where: str) -> ModuleType:
    sys.path.insert(0, os.getcwd())
    try:
        module = import_module(where)
        if module.__spec__ is not None and module.__spec__.origin is None:
            raise CannotLoad(IS_FOLDER.format(where))
        return module
    except ModuleNotFoundError as exc:
        # Any other missing module is one of the author's own imports, so show the traceback.
        if exc.name is not None and f"{where}.".startswith(f"{exc.name}."):
            raise CannotLoad(f"there is no file or module {where!r}") from None
        raise
    except (TypeError, ValueError) as exc:
        if os.path.isdir(where):
            raise CannotLoad(IS_FOLDER.format(where)) from None
        if "" in where.split("."):
            raise CannotLoad(f"{where!r} is not a file or a module name") from None
        raise exc


def _only_app(module: ModuleType, where: str) -> App:
    """Return the only App in a module; Apps included in another one do not count."""
    named = {name: each for name, each in vars(module).items() if isinstance(each, App)}
    inner = {id(each) for app in named.values() for each in app.apps() if each is not app}
    found = {id(app): app for app in named.values() if id(app) not in inner}
    if len(found) == 1:
        return next(iter(found.values()))
    names = f"these: {', '.join(named)}; add :NAME" if named else "none"
    message = f"{where} should have one App, but has {names}"
    if not named:
        command = f"python {where}" if _is_file(where) else f"python -m {where}"
        message += f"; if a function returns it, name the function: {where}:make"
        message += f"; call and list accept other servers as a command: {command!r}"
    raise CannotLoad(message)


def _made_app(make: Callable[..., object], target: str) -> App:
    """Return the App that the author's function returns; raises CannotLoad."""
    import inspect

    try:
        inspect.signature(make).bind()
    except TypeError as exc:
        raise CannotLoad(f"{target}() should be callable without arguments: {exc}") from None
    made = _run_authors_code(target, make)
    if isinstance(made, App):
        return made
    if inspect.iscoroutine(made):
        made.close()
        raise CannotLoad(f"{target}() is async; write a plain def that returns the App")
    raise CannotLoad(
        f"{target}() returned {type(made).__name__}, not an App; make it return the App"
    )


def select_by_tags(app: App, only: Sequence[str], without: Sequence[str]) -> None:
    """Serve only the entries with these tags; raises CannotLoad for an unused tag."""
    from ..registry.composition import select_tags

    registry = registry_of(app)
    tables: tuple[Mapping[str, Tool], ...]
    tables = (registry.tools, registry.resources, registry.prompts)
    known = {tag for table in tables for each in table.values() for tag in each.settings.tags}
    for tag in (*only, *without):
        if tag not in known:
            there = f"the tags are {', '.join(sorted(known))}" if known else "it has no tags"
            raise CannotLoad(f"nothing in {registry.name} has the tag {tag!r}; {there}")
    select_tags(registry, only, without)


def check_widgets_of(app: App) -> None:
    from ..protocol.widget import MissingWidget, check_widgets

    try:
        check_widgets(registry_of(app))
    except MissingWidget as exc:
        raise CannotLoad(str(exc)) from None


def program_folder(app: App | None, target: str | None) -> str:
    """Return the folder with the program's source; raises CannotLoad if there is no such file."""
    if app is None:
        where, _ = split_target(target or "")
        if not _is_file(where):
            return _outer_folder(os.getcwd(), _folder_of_package(where))
        if not os.path.isfile(where):
            raise CannotLoad(f"there is no file {where!r}")
        return os.path.dirname(os.path.abspath(where))
    main = getattr(sys.modules.get("__main__"), "__file__", None) or ""
    started = os.path.dirname(os.path.abspath(main))
    module = module_with(app)
    if module is None:
        names = {tool.source.function.__module__ for tool in app.tools.values()}
        module = next((name for name in sorted(names - {"__main__"}) if name in sys.modules), None)
    if module is None:
        return started
    package = _folder_of_package(module)
    # A console script is not the author's file.
    return _outer_folder(started, package) if main.endswith(".py") else package


def _outer_folder(folder: str, package: str) -> str:
    """Return *folder* if *package* is in it, because the files next to a package belong to it."""
    is_inside = package == folder or package.startswith(os.path.join(folder, ""))
    return folder if is_inside else package


def module_with(app: App) -> str | None:
    """Return the name of the module that contains the App; None if only the main module does."""
    for name, module in list(sys.modules.items()):
        if name != "__main__" and any(value is app for value in list(vars(module).values())):
            return name
    return None


def _folder_of_package(module: str) -> str:
    """Return the folder of a module's outermost package, without importing it."""
    name = module.partition(".")[0]
    in_this_folder = None if name in sys.modules else PathFinder.find_spec(name, [os.getcwd()])
    spec = in_this_folder or importlib.util.find_spec(name)
    if spec is None:
        return os.getcwd()
    folders = spec.submodule_search_locations or [os.path.dirname(spec.origin or "")]
    return os.path.abspath(next(iter(folders)))


def absolute_target(target: str) -> tuple[str, str | None]:
    """Return the target in a form that works from any folder, and the folder its module needs."""
    where, name = split_target(target)
    colon = f":{name}" if name else ""
    if _is_file(where):
        return os.path.abspath(where) + colon, None
    here = os.getcwd()
    elsewhere = [path for path in sys.path if path not in ("", here)]
    is_installed = PathFinder.find_spec(where.partition(".")[0], elsewhere) is not None
    return target, None if is_installed else here


def find_server(target: str) -> str | list[str] | None:
    """Return the server that a target names, for `connect`; None if it names an App.

    A URL or a host's file is a string, and a command is a list of words. Nothing is imported or
    started. Raises CannotLoad.
    """
    text = target.strip()
    if text.lower().startswith(("http://", "https://")):
        return text
    if not os.path.exists(text):
        try:
            words = shlex.split(text, posix=os.name == "posix")
        except ValueError as exc:
            raise CannotLoad(f"{text!r} is not a command: {exc}") from None
        if len(words) > 1:
            return words
    if text.endswith((".json", ".jsonc")):
        return text
    where, name = split_target(text)
    if name or where.endswith(".py") or _has_module(text):
        return None
    return [_find_command(text)]


def _has_module(name: str) -> bool:
    """Return whether a module can be found, without importing its packages."""
    first, *others = name.split(".")
    if not all(part.isidentifier() for part in (first, *others)):
        return False
    spec = PathFinder.find_spec(first, [os.getcwd()])
    if spec is None or spec.origin is None:
        with suppress(ValueError):  # `__main__` has no spec.
            spec = importlib.util.find_spec(first) or spec
    for part in others:
        if spec is None or spec.submodule_search_locations is None:
            return False
        name = f"{spec.name}.{part}"
        spec = PathFinder.find_spec(name, list(spec.submodule_search_locations))
    # A folder without `__init__.py` has no origin, and no App.
    return spec is not None and spec.origin is not None


def _find_command(text: str) -> str:
    """Return the path of the executable *text*, on the PATH or in the current folder."""
    # A shell does not look in the current folder, but the user may mean a file there.
    found = shutil.which(text) or shutil.which(os.path.join(os.curdir, text))
    if found is not None:
        return found
    if os.path.isdir(text):
        raise CannotLoad(IS_FOLDER.format(text))
    if os.path.isfile(text):
        raise CannotLoad(
            f"{text!r} cannot be executed; write {text}:app if it has an App of that name, or the "
            f"program that runs it, such as {f'node {shlex.quote(text)}'!r}"
        )
    if _URL_WITHOUT_SCHEME.match(text):
        raise CannotLoad(f"there is no file, module or command {text!r}; write http://{text}")
    if hint := or_with_suffix(text):
        raise CannotLoad(f"there is no file, module or command {text!r}{hint}")
    raise NoSuchTarget(
        f"there is no file, module or command {text!r}",
        "write a URL, an mcp.json, a file such as calculator.py, a module, or a command such as "
        "'npx -y server'",
    )
