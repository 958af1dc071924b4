"""Finds out whether a target is a server, and which: a URL, a host's file, or a command."""

from __future__ import annotations

import importlib.util
import os
import re
import shlex
import shutil
from contextlib import suppress
from importlib.machinery import PathFinder

from .program import CannotLoad, NoSuchTarget
from .target import IS_FOLDER, or_with_suffix, split_target

_URL_WITHOUT_SCHEME = re.compile(r"(localhost|[\w.-]+\.\w+)(:\d+(/|$)|/mcp)")


def find_server(target: str) -> str | list[str] | None:
    """Return the server that a target names, for `connect`; None if it names an App.

    A URL and a host's file are strings, and a command is a list of words. Nothing is imported or
    started. Raises CannotLoad.
    """
    text = target.strip()
    if text.lower().startswith(("http://", "https://")):
        return text
    if not os.path.exists(text) and len(words := _split_command(text)) > 1:
        return words
    if text.endswith((".json", ".jsonc")):
        return text
    where, name = split_target(text)
    if name or where.endswith(".py") or _has_module(text):
        return None
    return [_find_command(text)]


def _split_command(text: str) -> list[str]:
    try:
        return shlex.split(text, posix=os.name == "posix")
    except ValueError as exc:
        raise CannotLoad(f"{text!r} is not a command: {exc}") from None


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
    """Return the path of the executable file *text*, or of the command on the PATH."""
    # A shell does not look in the current folder, but a file there can be meant.
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
